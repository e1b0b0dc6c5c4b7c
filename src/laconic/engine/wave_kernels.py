"""The shared arithmetic of waves, compiled: entry by entry the order of ``laconic.waves.arithmetic``, nothing fused.

Without fast-math flags a compiler neither fuses a product and a sum nor changes their order; it may only do several
entries at once. So these give NumPy's bits, and a thin agent agrees with a compiled one.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.vectors import load, splat, store
from laconic.waves.codes import FOURTHS, LONGEST, ORDERS, STEEP

_TILE = 4  # doubles of a vector


@entry
def cholesky(left, least, lower):
    """Lower factor of a matrix, a pivot under ``least`` raised to it. Returns whether one was.

    ``left`` is the matrix turned over, padded to whole vectors, and is used up: four of its rows at a time become
    columns of the factor. Each entry still loses its products from left to right.
    """
    n, size, raised = lower.shape[0], left.shape[1], False
    for j in range(0, n, _TILE):
        i = j
        while i < size:
            at0 = j * size + i
            at1, at2, at3 = at0 + size, at0 + 2 * size, at0 + 3 * size
            t0, t1, t2, t3 = load(left, at0), load(left, at1), load(left, at2), load(left, at3)
            for k in range(j):
                x = load(left, k * size + i)
                t0 = t0 - splat(left[k, j]) * x
                t1 = t1 - splat(left[k, j + 1]) * x
                t2 = t2 - splat(left[k, j + 2]) * x
                t3 = t3 - splat(left[k, j + 3]) * x
            store(left, at0, t0)
            store(left, at1, t1)
            store(left, at2, t2)
            store(left, at3, t3)
            i += _TILE
        for own in range(j, min(j + _TILE, n)):
            for k in range(j, own):
                factor = left[k, own]
                for i in range(own, n):
                    left[own, i] -= factor * left[k, i]
            pivot = left[own, own]
            if not pivot >= least:
                pivot, raised = least, True
            root = math.sqrt(pivot)
            left[own, own] = root
            for i in range(own + 1, n):
                left[own, i] /= root
    for i in range(n):
        for j in range(i + 1):
            lower[i, j] = left[j, i]
    return raised


@entry
def factor(information, n, thick, left, lower):
    """``cholesky`` of n C + thick I, a pivot under thick raised to it; ``left`` is room. Returns whether one was."""
    size = information.shape[0]
    for i in range(size):
        for j in range(size):
            left[j, i] = n * information[i, j]
        left[i, i] += thick
    return cholesky(left, thick, lower)


@entry
def add_terms(base, columns, rows, n, made):
    """B + (1/n) sum sign (L k s)(L k s)' into ``made``; a row (sign, step, codes) a term.

    The columns of L are rows of ``columns``, padded to whole vectors.
    Four rows by four columns at a time; each entry is still summed up from the first term to the last.
    """
    size, n_terms, zero, share = base.shape[0], rows.shape[0], splat(0.0), splat(n)
    wide = (size + _TILE - 1) // _TILE * _TILE
    spread, tile = np.zeros((n_terms, wide)), np.empty((_TILE, _TILE))
    scaled = np.empty(size)
    for term in range(n_terms):
        step = on_grid(rows[term, 1])
        for j in range(size):
            scaled[j] = rows[term, 2 + j] * step
        for i in range(0, wide, _TILE):  # above its diagonal L is 0
            a0 = load(columns, i) * splat(scaled[0])
            for j in range(1, min(i + _TILE, size)):
                a0 = a0 + load(columns, j * wide + i) * splat(scaled[j])
            store(spread, term * wide + i, a0)
    for i in range(0, wide, _TILE):
        for k in range(0, i + 1, _TILE):
            a0 = a1 = a2 = a3 = zero
            for term in range(n_terms):
                x, sign = load(spread, term * wide + k), splat(float(rows[term, 0]))
                a0, a1 = a0 + sign * (splat(spread[term, i]) * x), a1 + sign * (splat(spread[term, i + 1]) * x)
                a2, a3 = a2 + sign * (splat(spread[term, i + 2]) * x), a3 + sign * (splat(spread[term, i + 3]) * x)
            store(tile, 0, a0 / share)
            store(tile, _TILE, a1 / share)
            store(tile, 2 * _TILE, a2 / share)
            store(tile, 3 * _TILE, a3 / share)
            # The sum is symmetric to the bit; the base need not be.
            high = min(_TILE, size - i)
            for row in range(high):
                for column in range(min(_TILE, size - k)):
                    made[i + row, k + column] = base[i + row, k + column] + tile[row, column]
            if k < i:
                for column in range(_TILE):
                    for row in range(high):
                        made[k + column, i + row] = base[k + column, i + row] + tile[row, column]


@entry
def on_grid(step):
    """2^((j-128)/4): a power of two times one of four constants."""
    return FOURTHS[step & 3] * 2.0 ** ((step >> 2) - 32)


@entry
def product(columns, step, codes, spread):
    """L (k s), the columns of L as rows: each entry l_i0 x_0 + l_i1 x_1 + ... over all of them, from left to right."""
    size = len(codes)
    scaled = codes[0] * step
    for i in range(size):
        spread[i] = columns[0, i] * scaled
    for j in range(1, size):
        scaled = codes[j] * step
        for i in range(size):
            spread[i] += columns[j, i] * scaled


@entry
def solve_back(lower, step, codes, solution):
    """L'^-1 (k s), from the last entry to the first."""
    size = len(codes)
    for j in range(size):
        solution[j] = codes[j] * step
    for j in range(size - 1, -1, -1):
        solution[j] /= lower[j, j]
        for i in range(j):
            solution[i] -= lower[j, i] * solution[j]


@entry
def write_vector(codes, bits, at):
    """Order and codes of a vector of integers, a bit an entry of ``bits`` from ``at`` on; returns where they end."""
    best, order = 1 << 62, 0
    for p in range(ORDERS):
        if (p + 1) * len(codes) >= best:
            break
        length = 0
        for k in codes:
            high = (2 * k - 1 if k > 0 else -2 * k) >> p
            length += high + 1 if high < STEEP else STEEP + 2 * digits_of(high - STEEP + 1) - 1
            if length >= best:
                break
        length += p * len(codes)
        if length < best:
            best, order = length, p
    for shift in range(3, -1, -1):
        bits[at] = order >> shift & 1
        at += 1
    for k in codes:
        u = 2 * k - 1 if k > 0 else -2 * k
        high, one, digits = u >> order, 1, 1
        zeros = high
        if high >= STEEP:
            one = high - STEEP + 1
            digits = digits_of(one)
            zeros = STEEP + digits - 1
        for _ in range(zeros):
            bits[at] = 0
            at += 1
        for shift in range(digits - 1, -1, -1):
            bits[at] = one >> shift & 1
            at += 1
        for shift in range(order - 1, -1, -1):
            bits[at] = u >> shift & 1
            at += 1
    return at


@entry
def read_vector(bits, at, codes):
    """Read what ``write_vector`` wrote; returns where it ends, or -1 if bits are missing or mean nothing."""
    if at + 4 > len(bits):
        return -1
    order = 0
    for _ in range(4):
        order = order << 1 | np.int64(bits[at])
        at += 1
    for k in range(len(codes)):
        zeros = 0
        while at < len(bits) and bits[at] == 0:
            zeros += 1
            at += 1
        digits = max(zeros - STEEP, 0) + 1
        if at + digits + order > len(bits) or digits + order > LONGEST:
            return -1
        high = 0
        for _ in range(digits):
            high = high << 1 | np.int64(bits[at])
            at += 1
        u = zeros if zeros < STEEP else high + STEEP - 1
        for _ in range(order):
            u = u << 1 | np.int64(bits[at])
            at += 1
        codes[k] = (u + 1) >> 1 if u & 1 else -(u >> 1)
    return at


@entry
def write_body(rows, n_terms, bits):
    """A row a term, (sign, step, codes), then (lift or -1, step, codes) a vector; returns where the bits end."""
    at = 0
    for k in range(n_terms):
        bits[at], bits[at + 1] = 1, 1 if rows[k, 0] > 0 else 0
        at = write_byte(rows[k, 1], bits, at + 2)
        at = write_vector(rows[k, 2:], bits, at)
    bits[at] = 0
    at += 1
    if rows[n_terms, 0] >= 0:
        at = write_byte(rows[n_terms, 0], bits, at)
    for k in range(n_terms, rows.shape[0]):
        at = write_vector(rows[k, 2:], bits, write_byte(rows[k, 1], bits, at))
    return at


@entry
def read_body(bits, lifted, most, rows):
    """Read what ``write_body`` wrote, of ``most`` terms at the most: how many there are, and where the bits end.

    -1 terms if it is nothing of the kind. The vectors are as many as ``rows`` has beyond the terms.
    """
    at = n_terms = 0
    while True:
        if at >= len(bits):
            return -1, 0
        more = bits[at] == 1
        at += 1
        if not more:
            break
        if n_terms >= most or at + 9 > len(bits):
            return -1, 0
        rows[n_terms, 0] = 1 if bits[at] else -1
        rows[n_terms, 1] = read_byte(bits, at + 1)
        at = read_vector(bits, at + 9, rows[n_terms, 2:])
        if at < 0:
            return -1, 0
        n_terms += 1
    if lifted:
        if at + 8 > len(bits):
            return -1, 0
        rows[n_terms, 0] = read_byte(bits, at)
        at += 8
    for k in range(n_terms, n_terms + rows.shape[0] - most):
        if at + 8 > len(bits):
            return -1, 0
        rows[k, 1] = read_byte(bits, at)
        at = read_vector(bits, at + 8, rows[k, 2:])
        if at < 0:
            return -1, 0
    if len(bits) - at > 7:
        return -1, 0
    for k in range(at, len(bits)):
        if bits[k]:
            return -1, 0
    return n_terms, at


@entry
def write_byte(value, bits, at):
    """Eight bits, the highest first; returns where they end."""
    for shift in range(7, -1, -1):
        bits[at] = value >> shift & 1
        at += 1
    return at


@entry
def read_byte(bits, at):
    """The number of eight bits."""
    value = 0
    for k in range(at, at + 8):
        value = value << 1 | np.int64(bits[k])
    return value


@entry
def digits_of(positive):
    """Binary digits of a whole number."""
    digits = 0
    while positive > 0:
        digits += 1
        positive >>= 1
    return digits
