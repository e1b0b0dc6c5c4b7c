"""What a sender chooses to say of a matrix: a few rank-one terms, so that the rest is small.

Only the sender computes this. Receivers make what they share of the codes alone, so any method that finds an
eigenvector will do, and two senders may choose differently.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from laconic._validate import Array
from laconic.waves.codes import LARGEST, NO_HALF
from laconic.waves.message import Term, grid, on_grid
from laconic.waves.rule import Fineness, Numbers


def quantized_each(vectors: Array, sizes: Numbers) -> tuple[int | Array, Array]:
    """``quantized`` of a vector, or of the vector of each output."""
    if vectors.ndim == 1:
        return quantized(vectors, float(sizes))
    found = [quantized(vector, float(size)) for vector, size in zip(vectors, np.asarray(sizes), strict=True)]
    return np.array([step for step, _ in found]), np.array([codes for _, codes in found])


def quantized(vector: Array, size: float) -> tuple[int, Array]:
    """The byte of the step next to ``size``, and x / step rounded to whole numbers, a half towards 0."""
    step = grid(size)
    units = vector / on_grid(step)
    codes = np.rint(units - np.copysign(NO_HALF, units))
    if not max(codes.max(), -codes.min()) <= LARGEST:  # a run that diverges
        codes = np.clip(np.nan_to_num(codes), -LARGEST, LARGEST)
    return step, codes.astype(np.int64)


def term_of(sign: int, vector: Array, tolerance: float, fineness: Fineness) -> Term:
    """The term of sign z z': its step is grid(nu tol / sqrt(max(z.z, tol))), z.z counted up to a size."""
    size = fineness.nu * tolerance / math.sqrt(max(min(float(vector @ vector), fineness.up_to), tolerance))
    return Term(sign, *quantized(vector, size))


def matrix_of(term: Term) -> Array:
    """sign (s k)(s k)'."""
    scaled = term.codes * on_grid(term.step)
    return term.sign * np.outer(scaled, scaled)


class Spectrum:
    """Eigenvalues of a symmetric matrix, and eigenvectors in the columns of ``basis``."""

    def __init__(self, matrix: Array) -> None:
        self.values, self.basis = np.linalg.eigh(matrix)

    def with_values(self, values: Array) -> Spectrum:
        """Other eigenvalues for the same eigenvectors."""
        made = copy(self)
        made.values = values
        return made


def describe(
    spectrum: Spectrum, tolerance: float, fineness: Fineness, most: int, origin: float = 0.0, positive: bool = False
) -> list[Term]:
    """Terms whose sum is a matrix less ``origin`` I, but for eigenvalues of magnitude at most ``tolerance``.

    Each eigenvalue x with |x| > tol becomes the term of sign(x) z z', z = sqrt|x| eigenvector, the largest first, until
    there are ``most``. Where ``positive``, eigenvalues x < 0 are left as they are. (The rule subtracts every term as it
    was rounded and decomposes the rest again: of 439 terms it found 4 more, for many times the work. What is left can
    be a little more than the tolerance; the next wave will see it.)
    """
    values = spectrum.values - origin
    sizes = values if positive else np.abs(values)
    terms: list[Term] = []
    for k in np.argsort(-sizes, kind="stable")[:most]:
        if not sizes[k] > tolerance:
            break
        vector = upright(spectrum.basis[:, k]) * math.sqrt(sizes[k])
        term = term_of(1 if values[k] > 0 else -1, vector, tolerance, fineness)
        if term.codes.any():
            terms.append(term)
    return terms


def upright(vector: Array) -> Array:
    """``vector`` or its opposite: a term is the same with either, so let the choice not be a library's."""
    return -vector if vector.sum() < 0 else vector


def shortened(vector: Array, told: Numbers, trust: Numbers) -> Array:
    """A step L'd, shorter where C knows of more curvature along it than S: by sqrt(d'S d / d'C d), and by trust.

    S lacks what senders leave out, most of all where it is small, and that is where a step is long. With kappa = 1 C
    is at most three times S along d, so a step is at most sqrt(3) times what C would have; from twice on it would
    overshoot by more than it was off before, and grow from wave to wave.
    """
    known = dots(vector, vector)
    if vector.ndim == 1:
        share = told / known if known > 0 else 1.0
        return vector * (math.sqrt(min(1.0, max(0.0, share))) / trust)
    share = np.divide(told, known, out=np.ones_like(known), where=known > 0)
    return np.multiply(vector.T, np.sqrt(np.clip(share, 0.0, 1.0)) / trust).T


def dots(one: Array, other: Array) -> Numbers:
    """Inner product of two vectors, or of those of each output."""
    product: Numbers = one @ other if one.ndim == 1 else np.einsum("kd,kd->k", one, other)
    return product
