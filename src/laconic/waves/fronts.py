"""Fronts: what neighbours in a deep tree tell each other until the first wave has come to them.

In a deep tree a first wave is under way for long, and nearly all that is lost against a centre is lost meanwhile. So
messages run along the tree from the first round on, one hop a round, away from the root and towards it, a front of
them every few hops. A message says all that is known on the sender's side of the edge that it takes; of a tree's two
sides of an edge neither has a sample of the other's, so a receiver adds up its own data and what came over each of its
edges, and nothing is counted twice.

A matrix is told very coarsely, as a change to what went over the edge before and in units of that, and instead of a
vector r = sum z phi the model w that S and r give. Then who takes the matrix S^ for S, and r^ = (S^ + thick I) w for r,
still finds w: what S^ lacks is an error of second order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from laconic._validate import Array
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.message import FRONT, Said, Term, briefly
from laconic.waves.rule import FRONT_LOOSENESS, Numbers, Rule
from laconic.waves.terms import quantized_each


class Known(NamedTuple):
    """What some samples say: their number, sum s phi phi', sum s z phi, sum s z^2; over how many edges it came."""

    n: float
    information: Array
    moments: Array
    square: Numbers
    edges: int = 1

    def matrix(self, rule: Rule) -> Array:
        """S with something on its diagonal: floor n, and a ridge for each edge.

        Where a direction was too weak to be told, all that came of it is a ridge times what a model has in it. What
        came over two edges is their mean then, not their sum.
        """
        thick = rule.thick(self.n) + rule.ridge * max(0, self.edges - 1)
        return self.information + thick * np.eye(len(self.information))


class Front(NamedTuple):
    """What went over an edge last: n, S^, w, q. Both ends have it, equal to the bit."""

    n: float
    information: Array
    model: Array
    square: Numbers

    def known(self, rule: Rule) -> Known:
        """The same as sums, r^ = (S^ + thick I) w."""
        moments = self.model @ self.information + rule.thick(self.n) * self.model
        return Known(self.n, self.information, moments, self.square)


@final
class Fronts:
    """What went over an agent's edges, towards it and away from it.

    Attributes
    ----------
    heard, told : dict
        By neighbour, the last front from there, and the last to there.
    """

    def __init__(self, rule: Rule, arithmetic: Arithmetic, n_features: int) -> None:
        self.rule, self.arithmetic = rule, arithmetic
        self.heard: dict[int, Front] = {}
        self.told: dict[int, Front] = {}
        self._n_features = n_features

    @cached_property
    def _nothing(self) -> Front:
        """What went over an edge before anything did; a matrix that nobody needs where the tree is not deep."""
        n = self._n_features
        return Front(0.0, np.zeros((n, n)), np.zeros(self.rule.models(n)), 0.0)

    def forget(self, other: int) -> None:
        """What went over this edge does not count any more."""
        self.heard.pop(other, None)
        self.told.pop(other, None)

    def clear(self) -> None:
        """Nothing counts any more."""
        self.heard, self.told = {}, {}

    def hear(self, sender: int, said: Said) -> bool:
        """Take in a front; False if it builds on one that is not known here."""
        before, share = self.heard.get(sender, self._nothing), _one(said.v)
        if not said.n > 0 or (share > 0 and _one(said.pull) != _brief(before.n)):
            return False
        base, lower = self._known(before, share, said.n)
        information, outer = self._told(base, lower, said.terms, said.n)
        self.heard[sender] = self._after(before, information, outer, said)
        return True

    def say(self, to: int, total: Known) -> Said | None:
        """What to tell a neighbour of ``total``; None if these sums are of no model."""
        rule, arithmetic, S = self.rule, self.arithmetic, total.information
        n, before = float(np.float32(total.n)), self.told.get(to, self._nothing)
        thick = rule.thick(n)
        H = total.matrix(rule)
        if not (n > 0 and arithmetic.above(H, thick / 4)):
            return None
        share = _brief(min(n / before.n, self._share(S, thick, before.information))) if before.n > 0 else 0.0
        base, lower = self._known(before, share, n)
        tolerance, size = FRONT_LOOSENESS * rule.kappa, rule.delta * np.sqrt(total.square / n)
        fineness = rule.front_fineness(len(S))
        terms = arithmetic.told(lower, S, n, base, tolerance, fineness, rule.most)
        information, outer = self._told(base, lower, terms, n)
        model = np.linalg.solve(H, total.moments.T).T
        step, codes = quantized_each((model - before.model) @ outer, size)
        nothing, (square,) = 0.0 * total.square, briefly([total.square])
        of = nothing + _brief(before.n)
        said = Said(FRONT, False, n, square, nothing + share, terms, step, codes, pull=of, doubt=nothing)
        self.told[to] = self._after(before, information, outer, said)
        return said

    def _share(self, S: Array, thick: float, before: Array) -> float:
        """The largest c with c S^ <= 2 S + thick I, S^ as told before: it may count for twice its worth, not for more.

        Where inputs differ from agent to agent, a mean that was told is not that of more samples in all directions.
        """
        half = S + thick / 2 * np.eye(len(S))
        if not self.arithmetic.above(half, thick / 8):  # what came over several edges may add up to less than nothing
            return 0.0
        factor = np.linalg.cholesky(half)
        largest = float(np.linalg.eigvalsh(self.arithmetic.whitened(factor, before))[-1])
        return 2.0 / largest if largest > 0 else np.inf

    # Both ends make this of the same bytes. -------------------------------------------------------------------------

    def _known(self, before: Front, share: float, n: float) -> tuple[Array, Array]:
        """B, of which n B is what is known before a message of n samples, and chol(n B + thick I)."""
        base = before.information * (share / n)
        return base, self._factor(base, n)

    def _told(self, base: Array, lower: Array, terms: Sequence[Term], n: float) -> tuple[Array, Array]:
        """S^/n after a message, and chol(S^ + thick I)."""
        mean = self.arithmetic.raised(base, lower, terms, n)
        return mean, self._factor(mean, n)

    def _factor(self, mean: Array, n: float) -> Array:
        return self.arithmetic.factor(mean, n, self.rule.thick(n))[0]

    def _after(self, before: Front, mean: Array, outer: Array, said: Said) -> Front:
        """Of a model its change is told, d = L'^-1 k s."""
        model = before.model + self.arithmetic.back_each(outer, said.step, said.codes)
        return Front(said.n, said.n * mean, model, said.q)


def _brief(number: float) -> float:
    """A number as it travels."""
    (brief,) = briefly([number])
    return float(brief)


def _one(numbers: Numbers) -> float:
    """The number of all outputs, where they have one."""
    return float(np.max(numbers))
