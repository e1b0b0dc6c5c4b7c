"""Whether the sums that a child reports can be those of any samples at all.

Honest sums belong together: S = sum s phi phi', R = sum s e phi, q = sum s e^2 and v = d'S d are over the same n
samples. A parent knows S but for what its senders leave out, which is within a few of their tolerances where everything
is whitened by L: with m agents below, a = kappa sqrt(m n / n^) bounds the sum of these. So with X = n U + 4 a L L',
whatever the samples were, X >= S and

    X is positive,    sqrt(R'X^-1 R) <= sqrt(q),    v <= d'X d,    pull^2 <= n doubt,

but for what rounding does, for which there is room. Where |phi| = 1, no entry of U is much above the largest weight s,
nor is its trace beyond twice that of C, on which it builds, and a few s. Each of these also holds of a sum if it holds
of its parts: who passes on what it could not tell from the truth is not blamed for it.
"""

from __future__ import annotations

import math

import numpy as np

from laconic._validate import Array
from laconic.waves.common import Common
from laconic.waves.message import Said
from laconic.waves.rule import Rule
from laconic.waves.terms import dots

LEFT_OUT = 4.0  # of a matrix, in tolerances
NEAR, ROOM = 1.1, 2.0  # of a length and of a number that was rounded, how many times as much it may have been
ENTRY, MORE = 10.0, 4.0  # of U, and of its trace beyond twice C's, in weights of a sample with |phi| = 1
_ROUNDING = 1e-6
_LEAST, _MOST = 1e-37, 1e38  # that a bfloat16 tells from nothing, and that it has room for


def heaviest(rule: Rule, unit: bool) -> float:
    """The largest s |phi|^2 of a sample; infinite where nobody knows how long phi may be."""
    return max(1.0, float(rule.loss.curvature)) if unit else math.inf


def why_not(
    common: Common,
    carried: float,
    said: Said,
    information: Array,
    moments: Array,
    members: int,
    weight: float,
    height: int,
) -> str:
    """What a child's message says that cannot be; empty if all of it can.

    Parameters
    ----------
    common, carried
        What everybody knows, and n^, by which the message is whitened.
    said, information, moments
        The message, and U and R as they were understood.
    members : int
        How many agents are in the child's subtree.
    weight : float
        ``heaviest``.
    height : int
        Of the whole tree.
    """
    rule, arithmetic, n = common.rule, common.arithmetic, said.n
    if not n <= members * rule.horizon * (1 + 1e-6):
        return "more samples than are remembered"
    if n == 0 and (moments.any() or np.any(said.q)):
        return "residuals without samples"
    doubt = np.asarray(said.doubt)
    if np.any((np.square(said.pull) > ROOM * max(n, 1.0) * (doubt + _LEAST)) & (doubt < _MOST)):
        return "a pull without doubt"
    if math.isfinite(weight) and not (
        np.abs(information).max() <= ENTRY * weight
        and np.trace(information) <= 2 * np.trace(common.information) + MORE * weight
    ):
        return "more information than samples have"
    lower, _ = common.whitener(carried)
    left = LEFT_OUT * rule.coarse(height) * math.sqrt(members * max(n, float(members)) / carried)
    if len(said.terms) >= rule.most:  # there was more to be told, each term smaller than those that were
        left += len(lower) * min(float(arithmetic.square(term.step, term.codes)) for term in said.terms)
    whole = arithmetic.whitened(lower, n * information) + left * np.eye(len(lower))
    try:
        factor = np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return "negative information"
    # The vector is the sum of m that were rounded, the error of each at most half a step in every entry; and so is
    # b - A theta, a little.
    rounded = rule.delta / 2 * math.sqrt(len(lower)) * members / math.sqrt(carried * left)
    seen = np.linalg.solve(factor, np.atleast_2d(arithmetic.forward(lower, moments)).T)
    told = (NEAR + rounded) * np.sqrt(said.q) + _ROUNDING * _lengths(common.theta @ lower)
    if not np.all(_lengths(seen.T) <= told):
        return "residuals beyond their squares"
    step = common.step @ lower
    if not np.all(said.v <= ROOM * dots(step @ whole, step)):
        return "a step more bent than information allows"
    return ""


def _lengths(vectors: Array) -> Array:
    return np.sqrt((vectors**2).sum(axis=-1))
