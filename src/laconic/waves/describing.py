"""What a sender chooses to say of a matrix: a few rank-one terms, until the rest is small.

Only the sender computes this. Receivers make what they share of the codes alone, so any method that finds an
eigenvector will do, and two senders may choose differently.
"""

from __future__ import annotations

import math

import numpy as np

from laconic._validate import Array
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.codes import LARGEST
from laconic.waves.message import Term, grid, on_grid


def quantized(vector: Array, size: float) -> tuple[int, Array]:
    """The byte of the step next to ``size``, and rint(x / step)."""
    step = grid(size)
    with np.errstate(over="ignore", invalid="ignore"):
        codes = np.rint(vector / on_grid(step))
    return step, np.clip(np.nan_to_num(codes), -LARGEST, LARGEST).astype(np.int64)


def term_of(sign: int, vector: Array, tolerance: float, nu: float) -> Term:
    """The term of sign z z': its step is grid(nu tol / sqrt(max(z.z, tol)))."""
    size = nu * tolerance / math.sqrt(max(float(vector @ vector), tolerance))
    return Term(sign, *quantized(vector, size))


def matrix_of(term: Term) -> Array:
    """sign (s k)(s k)'."""
    scaled = term.codes * on_grid(term.step)
    return term.sign * np.outer(scaled, scaled)


def describe(arithmetic: Arithmetic, matrix: Array, tolerance: float, nu: float, most: int) -> list[Term]:
    """Terms whose sum is ``matrix`` but for eigenvalues of magnitude at most ``tolerance``, ``most`` at the most.

    Each eigenvalue x with |x| > tol becomes the term of sign(x) z z', z = sqrt|x| eigenvector, the largest first; what
    they say is subtracted, and the rest described in the same way until nothing is left beyond the tolerance, or
    terms round to nothing. (The rule decomposes again after every term: same error and bits, many times the work.)
    """
    rest = matrix.copy()
    terms: list[Term] = []
    while len(terms) < most:
        values, basis = arithmetic.beyond(rest, tolerance)
        before = len(terms)
        for k in np.argsort(-np.abs(values), kind="stable")[: most - before]:
            sign = 1 if values[k] > 0 else -1
            term = term_of(sign, upright(basis[:, k]) * math.sqrt(abs(values[k])), tolerance, nu)
            if term.codes.any():
                terms.append(term)
                rest -= matrix_of(term)
        if len(terms) == before:
            break
    return terms


def upright(vector: Array) -> Array:
    """``vector`` or its opposite: a term is the same with either, so let the choice not be a library's."""
    return -vector if vector.sum() < 0 else vector


def describe_change(
    arithmetic: Arithmetic, lower: Array, known: Array | None, wanted: Array, kappa: float, nu: float, most: int
) -> list[Term]:
    """The root's terms: from X0 (the identity if None) to X1, so that what comes out is safely positive.

    The eigenvalues of X1 are raised to at least 1/2. While X0 + terms has an eigenvalue x < 1/4, there is one more
    term, z = sqrt(1/2 - x) eigenvector.
    """
    start = np.eye(len(lower)) if known is None else known
    if not arithmetic.above(wanted, 0.5):
        values, vectors = np.linalg.eigh(wanted)
        wanted = (vectors * np.maximum(values, 0.5)) @ vectors.T
    terms = describe(arithmetic, wanted - start, kappa, nu, most)
    total = start + sum((matrix_of(term) for term in terms), np.zeros_like(start))
    for _ in range(len(lower)):
        if arithmetic.above(total, 0.25):
            break
        value, vector = arithmetic.least(total)
        if not value < 0.25:
            break
        term = term_of(1, math.sqrt(0.5 - value) * upright(vector), kappa, nu)
        if not term.codes.any():
            break
        terms.append(term)
        total += matrix_of(term)
    return terms


def lift_low(
    arithmetic: Arithmetic,
    information: Array,
    lower: Array,
    terms: list[Term],
    n: float,
    low: float,
    kappa: float,
    nu: float,
) -> tuple[list[Term], int | None, Array]:
    """More terms, and a lift if they do not do, so that C + terms/n has no eigenvalue under ``low`` < 0; and that.

    While it has l < low, eigenvector u: one more term, z = L^-1 u sqrt(-n l). The lift is the byte of 2^(1/4) grid(what
    is missing), to be added to the diagonal.
    """
    raised = arithmetic.raised(information, lower, terms, n)
    found = list(terms)
    for _ in range(len(lower)):
        if arithmetic.above(raised, low):
            return found, None, raised
        value, vector = arithmetic.least(raised)
        if not value < low:
            return found, None, raised
        term = term_of(1, upright(arithmetic.forward(lower, vector)) * math.sqrt(-n * value), kappa, nu)
        if not term.codes.any():
            break
        found.append(term)
        raised = arithmetic.raised(information, lower, found, n)
    value, _ = arithmetic.least(raised)
    return found, (min(255, grid(low - value) + 1) if value < low else None), raised
