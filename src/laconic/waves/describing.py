"""What the root chooses to say of the information of all: terms that leave it safely positive."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from laconic._validate import Array
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.message import Term, grid
from laconic.waves.rule import Fineness
from laconic.waves.terms import Spectrum, describe, matrix_of, term_of, upright


def describe_change(
    arithmetic: Arithmetic, known: Array | None, wanted: Array, kappa: float, fineness: Fineness, most: int
) -> tuple[list[Term], Spectrum]:
    """The root's terms from X0, None for I, to X1, so that what comes out is safely positive; and the spectrum of X1.

    The eigenvalues of X1 are raised to at least 1/2. While X0 + terms has an eigenvalue x < 1/4, there is one more
    term, z = sqrt(1/2 - x) eigenvector. (Where X0 = I and kappa is at least 1/2, an eigenvalue that is raised to 1/2
    has no term, and all terms are positive: ``Arithmetic.settled`` does that at once.)
    """
    spectrum = Spectrum(wanted)
    values = np.maximum(spectrum.values, 0.5)
    if known is None:  # eigenvalues that are raised are the same then, but their eigenvectors are those of X1
        known, change = np.eye(len(wanted)), spectrum.with_values(values - 1.0)
    else:
        change = Spectrum((spectrum.basis * values) @ spectrum.basis.T - known)
    terms = describe(change, kappa, fineness, most)
    total = known + sum((matrix_of(term) for term in terms), np.zeros_like(known))
    for _ in range(len(known)):
        if arithmetic.above(total, 0.25):
            break
        value, vector = arithmetic.least(total)
        if not value < 0.25:
            break
        term = term_of(1, math.sqrt(0.5 - value) * upright(vector), kappa, fineness)
        if not term.codes.any():
            break
        terms.append(term)
        total += matrix_of(term)
    return terms, spectrum


def lift_low(
    arithmetic: Arithmetic,
    information: Array,
    lower: Array,
    terms: Sequence[Term],
    n: float,
    low: float,
    kappa: float,
    fineness: Fineness,
) -> tuple[Sequence[Term], int | None, Array]:
    """More terms, and a lift if they do not do, so that C + terms/n has no eigenvalue under ``low`` < 0; and that.

    While it has l < low, eigenvector u: one more term, z = L^-1 u sqrt(-n l). The lift is the byte of 2^(1/4) grid(what
    is missing), to be added to the diagonal.
    """
    raised = arithmetic.raised(information, lower, terms, n)
    found = terms
    for _ in range(len(lower)):
        if arithmetic.above(raised, low):
            return found, None, raised
        value, vector = arithmetic.least(raised)
        if not value < low:
            return found, None, raised
        term = term_of(1, upright(arithmetic.forward(lower, vector)) * math.sqrt(-n * value), kappa, fineness)
        if not term.codes.any():
            break
        found = [*found, term]
        raised = arithmetic.raised(information, lower, found, n)
    value, _ = arithmetic.least(raised)
    return found, (min(255, grid(low - value) + 1) if value < low else None), raised
