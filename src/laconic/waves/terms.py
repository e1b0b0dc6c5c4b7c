"""What a sender chooses to say of a matrix: a few rank-one terms, until the rest is small.

Only the sender computes this. Receivers make what they share of the codes alone, so any method that finds an
eigenvector will do, and two senders may choose differently.
"""

from __future__ import annotations

import math

import numpy as np

from laconic._validate import Array
from laconic.waves.codes import LARGEST
from laconic.waves.message import Term, grid, on_grid
from laconic.waves.rule import Numbers


def quantized_each(vectors: Array, sizes: Numbers) -> tuple[int | Array, Array]:
    """``quantized`` of a vector, or of the vector of each output."""
    if vectors.ndim == 1:
        return quantized(vectors, float(sizes))
    found = [quantized(vector, float(size)) for vector, size in zip(vectors, np.asarray(sizes), strict=True)]
    return np.array([step for step, _ in found]), np.array([codes for _, codes in found])


def quantized(vector: Array, size: float) -> tuple[int, Array]:
    """The byte of the step next to ``size``, and rint(x / step)."""
    step = grid(size)
    codes = np.rint(vector / on_grid(step))
    if not max(codes.max(), -codes.min()) <= LARGEST:  # a run that diverges
        codes = np.clip(np.nan_to_num(codes), -LARGEST, LARGEST)
    return step, codes.astype(np.int64)


def term_of(sign: int, vector: Array, tolerance: float, nu: float) -> Term:
    """The term of sign z z': its step is grid(nu tol / sqrt(max(z.z, tol)))."""
    size = nu * tolerance / math.sqrt(max(float(vector @ vector), tolerance))
    return Term(sign, *quantized(vector, size))


def matrix_of(term: Term) -> Array:
    """sign (s k)(s k)'."""
    scaled = term.codes * on_grid(term.step)
    return term.sign * np.outer(scaled, scaled)


def describe(matrix: Array, tolerance: float, nu: float, most: int, positive: bool = False) -> list[Term]:
    """Terms whose sum is ``matrix`` but for eigenvalues of magnitude at most ``tolerance``, ``most`` at the most.

    Each eigenvalue x with |x| > tol becomes the term of sign(x) z z', z = sqrt|x| eigenvector, the largest first; what
    they say is subtracted, and the rest described in the same way until nothing is left beyond the tolerance, or
    terms round to nothing. (The rule decomposes again after every term: same error and bits, many times the work.)
    Where ``positive``, eigenvalues x < 0 are left as they are.
    """
    rest = matrix.copy()
    terms: list[Term] = []
    while len(terms) < most:
        values, basis = np.linalg.eigh(rest)
        sizes = values if positive else np.abs(values)
        before = len(terms)
        for k in np.argsort(-sizes, kind="stable")[: most - before]:
            if not sizes[k] > tolerance:
                break
            term = term_of(1 if values[k] > 0 else -1, upright(basis[:, k]) * math.sqrt(sizes[k]), tolerance, nu)
            if term.codes.any():
                terms.append(term)
                rest -= matrix_of(term)
        if len(terms) == before:
            break
    return terms


def upright(vector: Array) -> Array:
    """``vector`` or its opposite: a term is the same with either, so let the choice not be a library's."""
    return -vector if vector.sum() < 0 else vector
