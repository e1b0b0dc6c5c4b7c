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
    """Terms whose sum is ``matrix`` but for eigenvalues of magnitude at most ``tolerance``.

    While |x| > tol for the eigenvalue x of largest magnitude, and fewer than ``most`` terms: z = sqrt|x| eigenvector;
    the term of sign(x) z z' is taken, and what it says is subtracted. A term that rounds to nothing ends it.
    """
    rest = matrix.copy()
    terms: list[Term] = []
    while len(terms) < most:
        value, vector = arithmetic.largest(rest)
        if not abs(value) > tolerance:
            break
        term = term_of(1 if value > 0 else -1, math.sqrt(abs(value)) * vector, tolerance, nu)
        if not term.codes.any():
            break
        terms.append(term)
        rest -= matrix_of(term)
    return terms


def describe_change(
    arithmetic: Arithmetic, lower: Array, known: Array | None, wanted: Array, kappa: float, nu: float, most: int
) -> list[Term]:
    """The root's terms: from X0 (the identity if None) to X1, so that what comes out is safely positive.

    The eigenvalues of X1 are raised to at least 1/2. While X0 + terms has an eigenvalue x < 1/4, there is one more
    term, z = sqrt(1/2 - x) eigenvector.
    """
    start = np.eye(len(lower)) if known is None else known
    terms = describe(arithmetic, _raised(wanted, 0.5) - start, kappa, nu, most)
    total = start + sum((matrix_of(term) for term in terms), np.zeros_like(start))
    for _ in range(len(lower)):
        if _above(total, 0.25):
            break
        value, vector = arithmetic.least(total)
        if not value < 0.25:
            break
        term = term_of(1, math.sqrt(0.5 - value) * vector, kappa, nu)
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
) -> tuple[list[Term], int | None]:
    """More terms, and a lift if they do not do, so that C + terms/n has no eigenvalue under ``low`` < 0.

    While it has l < low, eigenvector u: one more term, z = L^-1 u sqrt(-n l). The lift is the byte of 2^(1/4) grid(what
    is missing), to be added to the diagonal.
    """
    raised = arithmetic.raised(information, lower, terms, n)
    found = list(terms)
    for _ in range(len(lower)):
        if _above(raised, low):
            return found, None
        value, vector = arithmetic.least(raised)
        if not value < low:
            return found, None
        term = term_of(1, arithmetic.forward(lower, vector) * math.sqrt(-n * value), kappa, nu)
        if not term.codes.any():
            break
        found.append(term)
        raised = arithmetic.raised(information, lower, found, n)
    value, _ = arithmetic.least(raised)
    return found, (min(255, grid(low - value) + 1) if value < low else None)


def _raised(symmetric: Array, least: float) -> Array:
    """``symmetric`` with its eigenvalues raised to at least ``least``."""
    if _above(symmetric, least):
        return symmetric
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * np.maximum(values, least)) @ vectors.T


def _above(symmetric: Array, least: float) -> bool:
    """Whether all eigenvalues are larger than ``least``: whether what is left of it has a Cholesky factor."""
    try:
        np.linalg.cholesky(symmetric - least * np.eye(len(symmetric)))
    except np.linalg.LinAlgError:
        return False
    return True
