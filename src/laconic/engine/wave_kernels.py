"""The shared arithmetic of waves, compiled: entry by entry the order of ``laconic.waves.arithmetic``, nothing fused.

Without fast-math flags a compiler neither fuses a product and a sum nor changes their order; it may only do several
entries at once. So these give NumPy's bits, and a thin agent agrees with a compiled one.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.vectors import jit, lean, load, splat, store, turned, vector_fma
from laconic.engine.wave_turning import more_of, turn_lanes, turn_row
from laconic.waves.codes import FOURTHS

_TILE = 4  # doubles of a vector


@entry
def cholesky(left, least, lower):
    """Lower factor of a matrix, a pivot under ``least`` raised to it. Returns whether one was.

    ``left`` is the matrix turned over, padded to whole vectors, and is used up: four of its rows at a time become
    columns of the factor. Each entry still loses its products from left to right. What is written before the diagonal
    of ``left`` is never read.
    """
    n, size, raised = lower.shape[0], left.shape[1], False
    for j in range(0, n, _TILE):
        subtract_above(left, j)
        for own in range(j, min(j + _TILE, n)):
            for k in range(j, own):
                share = splat(left[k, own])
                for i in range(j, size, _TILE):
                    at = own * size + i
                    store(left, at, load(left, at) - share * load(left, k * size + i))
            pivot = left[own, own]
            if not pivot >= least:
                pivot, raised = least, True
            root = math.sqrt(pivot)
            divisor = splat(root)
            for i in range(j, size, _TILE):
                store(left, own * size + i, load(left, own * size + i) / divisor)
            left[own, own] = root
    turn_over(left, lower)
    return raised


@lean
def subtract_above(left, j):
    """From four rows of ``left`` from j on, from column j on, their products with all rows above."""
    i, size = j, left.shape[1]
    if (size - j) // _TILE % 2 == 1:
        subtract_tile(left, j, i)
        i += _TILE
    while i < size:
        subtract_two(left, j, i)
        i += 2 * _TILE


@lean
def subtract_tile(left, j, i):
    """From four rows of ``left`` from j on, in four columns from i on, their products with all rows above."""
    size = left.shape[1]
    at0 = j * size + i
    at1, at2, at3 = at0 + size, at0 + 2 * size, at0 + 3 * size
    t0, t1, t2, t3 = load(left, at0), load(left, at1), load(left, at2), load(left, at3)
    for k in range(j):
        x = load(left, k * size + i)
        t0, t1 = t0 - splat(left[k, j]) * x, t1 - splat(left[k, j + 1]) * x
        t2, t3 = t2 - splat(left[k, j + 2]) * x, t3 - splat(left[k, j + 3]) * x
    store(left, at0, t0)
    store(left, at1, t1)
    store(left, at2, t2)
    store(left, at3, t3)


@lean
def subtract_two(left, j, i):
    """The same in eight columns."""
    size = left.shape[1]
    at0 = j * size + i
    at1, at2, at3 = at0 + size, at0 + 2 * size, at0 + 3 * size
    t0, t1, t2, t3 = load(left, at0), load(left, at1), load(left, at2), load(left, at3)
    r0, r1, r2, r3 = load(left, at0 + 4), load(left, at1 + 4), load(left, at2 + 4), load(left, at3 + 4)
    for k in range(j):
        x, y = load(left, k * size + i), load(left, k * size + i + 4)
        f0, f1, f2, f3 = splat(left[k, j]), splat(left[k, j + 1]), splat(left[k, j + 2]), splat(left[k, j + 3])
        t0, r0 = t0 - f0 * x, r0 - f0 * y
        t1, r1 = t1 - f1 * x, r1 - f1 * y
        t2, r2 = t2 - f2 * x, r2 - f2 * y
        t3, r3 = t3 - f3 * x, r3 - f3 * y
    store(left, at0, t0)
    store(left, at1, t1)
    store(left, at2, t2)
    store(left, at3, t3)
    store(left, at0 + 4, r0)
    store(left, at1 + 4, r1)
    store(left, at2 + 4, r2)
    store(left, at3 + 4, r3)


@lean
def turn_over(left, lower):
    """The upper triangle of ``left`` as a lower one."""
    n, size = lower.shape[0], left.shape[1]
    full = n // _TILE * _TILE
    for i in range(0, full, _TILE):
        for k in range(0, i, _TILE):
            at, to = k * size + i, i * n + k
            r0, r1, r2, r3 = turned(
                load(left, at), load(left, at + size), load(left, at + 2 * size), load(left, at + 3 * size)
            )
            store(lower, to, r0)
            store(lower, to + n, r1)
            store(lower, to + 2 * n, r2)
            store(lower, to + 3 * n, r3)
        for row in range(i, i + _TILE):
            for column in range(i, row + 1):
                lower[row, column] = left[column, row]
    for row in range(full, n):
        for column in range(row + 1):
            lower[row, column] = left[column, row]


@entry
def above(symmetric, least, left):
    """Whether all eigenvalues are larger than ``least``: whether what is left of it has a factor. ``left`` is room."""
    n, size = symmetric.shape[0], left.shape[1]
    for i in range(n):
        for k in range(i // _TILE * _TILE, n):
            left[i, k] = symmetric[i, k]
        left[i, n:] = 0.0
        left[i, i] -= least
    left[n:] = 0.0
    for j in range(0, n, _TILE):
        subtract_above(left, j)
        for own in range(j, min(j + _TILE, n)):
            for k in range(j, own):
                share = splat(-left[k, own])
                for i in range(j, size, _TILE):
                    at = own * size + i
                    store(left, at, vector_fma(share, load(left, k * size + i), load(left, at)))
            pivot = left[own, own]
            if not pivot > 0.0:
                return False
            scale = splat(1.0 / math.sqrt(pivot))
            for i in range(j, size, _TILE):
                store(left, own * size + i, scale * load(left, own * size + i))
    return True


@entry
def factor(information, n, thick, left, lower):
    """``cholesky`` of n C + thick I, a pivot under thick raised to it; ``left`` is room. Returns whether one was.

    Of C what is above the tiles on its diagonal is not read.
    """
    size, wide, share = information.shape[0], left.shape[1], splat(n)
    full = size // _TILE * _TILE
    for i in range(0, full, _TILE):
        for k in range(0, i + 1, _TILE):
            at, over = i * size + k, k * wide + i
            r0, r1, r2, r3 = turned(
                share * load(information, at),
                share * load(information, at + size),
                share * load(information, at + 2 * size),
                share * load(information, at + 3 * size),
            )
            store(left, over, r0)
            store(left, over + wide, r1)
            store(left, over + 2 * wide, r2)
            store(left, over + 3 * wide, r3)
    for i in range(full, size):
        for j in range(i + 1):
            left[j, i] = n * information[i, j]
    for i in range(size):
        left[i, i] += thick
    return cholesky(left, thick, lower)


@entry
def add_terms(base, columns, turning, rows, n, made):
    """B + (1/n) sum sign (L k s)(L k s)' into ``made``; a row (sign, step, codes) a term, turned back.

    The columns of L are rows of ``columns``, padded to whole vectors.
    Four rows by four columns at a time; each entry is still summed up from the first term to the last.
    """
    size, n_terms, zero, share = base.shape[0], rows.shape[0], splat(0.0), splat(n)
    wide, full = (size + _TILE - 1) // _TILE * _TILE, size // _TILE * _TILE
    spread, tile = spread_terms(columns, turning, rows, size, wide), np.empty((_TILE, _TILE))
    for i in range(0, wide, _TILE):
        for k in range(0, i + 1, _TILE):
            a0 = a1 = a2 = a3 = zero
            for term in range(n_terms):
                x, sign = load(spread, term * wide + k), splat(float(rows[term, 0]))
                a0, a1 = a0 + sign * (splat(spread[term, i]) * x), a1 + sign * (splat(spread[term, i + 1]) * x)
                a2, a3 = a2 + sign * (splat(spread[term, i + 2]) * x), a3 + sign * (splat(spread[term, i + 3]) * x)
            a0, a1, a2, a3 = a0 / share, a1 / share, a2 / share, a3 / share
            # The sum is symmetric to the bit; the base need not be.
            if i < full:
                add_tile(base, i * size + k, size, a0, a1, a2, a3, made)
                if k < i:
                    a0, a1, a2, a3 = turned(a0, a1, a2, a3)
                    add_tile(base, k * size + i, size, a0, a1, a2, a3, made)
                continue
            store(tile, 0, a0)
            store(tile, _TILE, a1)
            store(tile, 2 * _TILE, a2)
            store(tile, 3 * _TILE, a3)
            high = min(_TILE, size - i)
            for row in range(high):
                for column in range(min(_TILE, size - k)):
                    made[i + row, k + column] = base[i + row, k + column] + tile[row, column]
            if k < i:
                for column in range(_TILE):
                    for row in range(high):
                        made[k + column, i + row] = base[k + column, i + row] + tile[row, column]


@lean
def add_tile(base, at, size, a0, a1, a2, a3, made):
    """A whole tile at ``at`` of ``base``, and four rows, into that of ``made``."""
    store(made, at, load(base, at) + a0)
    store(made, at + size, load(base, at + size) + a1)
    store(made, at + 2 * size, load(base, at + 2 * size) + a2)
    store(made, at + 3 * size, load(base, at + 3 * size) + a3)


@jit
def spread_terms(columns, turning, rows, size, wide):
    """L k s of each term, a row each; four terms at a time, those that are missing 0."""
    n_terms = rows.shape[0]
    spread = np.zeros(((n_terms + 3) // 4 * 4, wide))
    scaled = np.zeros((size, 4))
    for first in range(0, n_terms, 4):
        for term in range(first, min(first + 4, n_terms)):
            step = on_grid(rows[term, 1])
            for j in range(size):
                scaled[j, term - first] = rows[term, 2 + j] * step
        for k in range(turning.shape[0] - 1, -1, -1):
            turn_lanes(turning, k, scaled, 0)
        for i in range(0, wide, _TILE):  # above its diagonal L is 0
            x = load(columns, i)
            a0, a1 = x * splat(scaled[0, 0]), x * splat(scaled[0, 1])
            a2, a3 = x * splat(scaled[0, 2]), x * splat(scaled[0, 3])
            for j in range(1, min(i + _TILE, size)):
                x = load(columns, j * wide + i)
                a0, a1 = a0 + x * splat(scaled[j, 0]), a1 + x * splat(scaled[j, 1])
                a2, a3 = a2 + x * splat(scaled[j, 2]), a3 + x * splat(scaled[j, 3])
            at = first * wide + i
            store(spread, at, a0)
            store(spread, at + wide, a1)
            store(spread, at + 2 * wide, a2)
            store(spread, at + 3 * wide, a3)
    return spread


@entry
def on_grid(step):
    """2^((j-128)/4): a power of two times one of four constants."""
    return FOURTHS[step & 3] * 2.0 ** ((step >> 2) - 32)


@entry
def product(columns, turning, more, step, codes, spread):
    """L x, x = k s turned back, the columns of L as rows: each entry l_i0 x_0 + l_i1 x_1 + ..., from left to right."""
    size = len(codes)
    scaled = np.empty((1, size))
    for j in range(size):
        scaled[0, j] = codes[j] * step
    turn_row(more, more.shape[0] - 1, -1, -1, scaled)
    turn_row(turning, turning.shape[0] - 1, -1, -1, scaled)
    for i in range(size):
        spread[i] = columns[0, i] * scaled[0, 0]
    for j in range(1, size):
        for i in range(size):
            spread[i] += columns[j, i] * scaled[0, j]


@entry
def understand(base, columns, turning, rows, n, step, codes, made, spread):
    """``add_terms`` of a message, unless it has none or they are of no sample, and ``product`` of its vector."""
    if rows.shape[0] > 0 and n > 0.0:
        add_terms(base, columns, turning, rows, n, made)
    product(columns, turning, more_of(turning, rows, rows.shape[0]), on_grid(step), codes, spread)


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
