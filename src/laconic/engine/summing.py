"""Sums over agents that come out the same, to the bit, in whatever order and in however many parts they are summed.

Floating-point sums depend on their order, and so on how agents are numbered and over how many threads or machines they
are spread. Whole numbers do not. So each term is rounded to a multiple of a common power of two, small enough that
nothing of weight is lost and large enough that the sum of all fits into 64 bits, and these multiples are added up.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from laconic.engine.vectors import (
    add_bits,
    all_less,
    ladder,
    largest_of,
    lean,
    load,
    load_half,
    splat,
    store,
    vector_abs,
    vector_fma,
    vector_larger,
    width_of,
)

# Adding 1.5 times 2 to the length of the mantissa rounds to a whole number and leaves that in the lowest bits.
MAGIC_32, _MAGIC_BITS_32, _BITS_32 = 1.5 * 2.0**23, 0x4B400000, 22
MAGIC_64, _MAGIC_BITS_64, _BITS_64 = 1.5 * 2.0**52, 0x4338000000000000, 51
_LEAST_32, _LEAST_64 = -100, -900  # exponents below which a peak counts as if it were that
_SPARE = 6  # bits that may be lost before a sum is made again
FOLDED = 256  # rows after which multiples of 32 bits must be taken over into those of 64


@register_jitable
def room(n_terms, itemsize):
    """How many bits a multiple may have so that ``n_terms`` of them can be added."""
    bits = 62
    while n_terms > 1:
        n_terms = (n_terms + 1) // 2
        bits -= 1
    return min(bits, _BITS_32) if itemsize == 4 else (min(bits, _BITS_64) if itemsize == 8 else bits)


@register_jitable
def scale_of(peak, n_terms, itemsize):
    """The power of two by which terms of magnitudes up to ``peak`` are multiplied; a peak of 0 counts as 1."""
    exponent = math.frexp(peak)[1] if peak > 0.0 else 0
    exponent = max(exponent, _LEAST_32 if itemsize == 4 else _LEAST_64)
    return math.ldexp(1.0, room(n_terms, itemsize) - exponent)


@lean
def fits(peak, scale, n_terms, itemsize):
    """Whether a sum of terms up to ``peak`` with this scale has neither run over nor lost much."""
    limit = math.ldexp(1.0, room(n_terms, itemsize))
    return peak == 0.0 or (peak * scale <= limit and peak * scale * 2.0**_SPARE >= limit)


@ladder
def tally_row(weights, at, size, scale, units, tops):
    """Add a row, in multiples of 1/scale, to ``units`` (1, size), and keep the largest magnitudes in ``tops``.

    These are kept in the first vector of ``tops`` only: to read and write all of it cost eight times as much.
    """
    real = weights.dtype.type
    factor, magic = splat(real(scale)), splat(real(MAGIC_32 if weights.itemsize == 4 else MAGIC_64))
    top, width = load(tops, 0), width_of(weights)
    for k in range(0, size, width):
        row = load(weights, at + k) if k + width <= size else load_half(weights, at + k)
        add_bits(units, k, vector_fma(row, factor, magic))
        top = vector_larger(vector_abs(row), top)
    store(tops, 0, top)


@lean
def fold(units, n_rows, totals):
    """Take the sums of ``n_rows`` rows over into ``totals``, of 64 bits, and begin anew."""
    narrow = units.itemsize == 4
    magic = (_MAGIC_BITS_32 if narrow else _MAGIC_BITS_64) * n_rows
    for k in range(units.shape[1]):
        multiple = np.int64(units[0, k]) - magic
        totals[0, k] += np.int64(np.int32(multiple)) if narrow else multiple
        units[0, k] = 0


@lean
def total_of(values, n_values, scale):
    """The sum of values that are not negative, in multiples of 1/scale."""
    total = np.int64(0)
    for i in range(n_values):
        total += np.int64(np.rint(np.float64(values[i]) * scale))
    return total


@lean
def top_of(values, n_values):
    """The largest of some values; infinite if one of them is not a number."""
    real, width = values.dtype.type, width_of(values)
    limits, tops, finite = splat(real(np.inf)), splat(real(0)), True
    whole = n_values - n_values % width
    for i in range(0, whole, width):
        some = load(values, i)
        finite &= all_less(some, limits)
        tops = vector_larger(some, tops)
    top = np.float64(largest_of(tops)) if finite else np.inf
    for i in range(whole, n_values):
        top = max(top, np.float64(values[i])) if values[i] < np.inf else np.inf
    return top
