"""The reflections by which messages up are turned, compiled: ``laconic.waves.turning`` entry by entry.

A reflection is a row. Vectors that are turned stand side by side, four of them in the lanes of a register, and each of
the four parts of a sum has a register of its own. Nothing is fused.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.vectors import jit, lean, load, splat, store

_TILE = 4  # doubles of a vector
_LANES = 8  # columns at most
_SMALLEST = 2.0**-20


@entry
def reflections(information, lower, made):
    """A row of ``made`` for each reflection that U and L make; returns how many there are, at most as many as rows."""
    n = information.shape[0]
    count = strongest(information, np.empty(n), made)
    x = np.zeros((n, _LANES))
    for k in range(count):
        for i in range(n):
            x[i, k] = made[k, i]
    solve_forward(lower, x)
    for k in range(count):
        for i in range(n):
            made[k, i] = x[i, k]
        make_reflection(made, k, k)
        turn_lanes(made, k, x, 0)
        turn_lanes(made, k, x, _TILE)
    return count


@lean
def strongest(information, left, made):
    """The first columns of a pivoted Cholesky factor of U, a row each; returns how many."""
    n, count, pivot = information.shape[0], 0, 0
    for i in range(n):
        left[i] = information[i, i]
        if left[i] > left[pivot]:
            pivot = i
    least = _SMALLEST * left[pivot]
    while count < made.shape[0] and left[pivot] > least:
        for i in range(n):
            made[count, i] = information[pivot, i]
        for k in range(count):
            share = made[k, pivot]
            for i in range(n):
                made[count, i] -= made[k, i] * share
        root = math.sqrt(left[pivot])
        for i in range(n):
            made[count, i] /= root
            left[i] -= made[count, i] * made[count, i]
        left[pivot] = 0.0
        count, pivot = count + 1, 0
        for i in range(n):
            if left[i] > left[pivot]:
                pivot = i
    return count


@lean
def solve_forward(lower, x):
    """L^-1 x of eight columns, from the first row to the last: four rows at a time lose what those above them are."""
    n = lower.shape[0]
    full = n // _TILE * _TILE
    for i in range(0, full, _TILE):
        a0, b0 = load(x, i * _LANES), load(x, i * _LANES + 4)
        a1, b1 = load(x, (i + 1) * _LANES), load(x, (i + 1) * _LANES + 4)
        a2, b2 = load(x, (i + 2) * _LANES), load(x, (i + 2) * _LANES + 4)
        a3, b3 = load(x, (i + 3) * _LANES), load(x, (i + 3) * _LANES + 4)
        for j in range(i):
            a, b = load(x, j * _LANES), load(x, j * _LANES + 4)
            l0, l1, l2, l3 = splat(lower[i, j]), splat(lower[i + 1, j]), splat(lower[i + 2, j]), splat(lower[i + 3, j])
            a0, b0, a1, b1 = a0 - l0 * a, b0 - l0 * b, a1 - l1 * a, b1 - l1 * b
            a2, b2, a3, b3 = a2 - l2 * a, b2 - l2 * b, a3 - l3 * a, b3 - l3 * b
        store(x, i * _LANES, a0)
        store(x, i * _LANES + 4, b0)
        store(x, (i + 1) * _LANES, a1)
        store(x, (i + 1) * _LANES + 4, b1)
        store(x, (i + 2) * _LANES, a2)
        store(x, (i + 2) * _LANES + 4, b2)
        store(x, (i + 3) * _LANES, a3)
        store(x, (i + 3) * _LANES + 4, b3)
        for own in range(i, i + _TILE):
            solve_row(lower, x, own, i)
    for own in range(full, n):
        solve_row(lower, x, own, 0)


@lean
def solve_row(lower, x, own, first):
    """Row ``own`` loses what those from ``first`` on are, and is divided."""
    divisor = splat(lower[own, own])
    for k in range(0, _LANES, _TILE):
        total = load(x, own * _LANES + k)
        for j in range(first, own):
            total = total - splat(lower[own, j]) * load(x, j * _LANES + k)
        store(x, own * _LANES + k, total / divisor)


@lean
def make_reflection(made, row, place):
    """Row ``row`` becomes v, zero before ``place``, of the reflection that leaves nothing of what it is behind that."""
    n = made.shape[1]
    made[row, :place] = 0.0
    square = product_of(made, row, made, row)
    if not 0.0 < square < np.inf:
        made[row, :] = 0.0
        return
    root = math.sqrt(square)
    scale = 1.0 / math.sqrt(square + abs(made[row, place]) * root)
    made[row, place] += root if made[row, place] >= 0.0 else -root
    for i in range(n):
        made[row, i] *= scale


@lean
def product_of(some, one, others, other):
    """Inner product of two rows, in four parts."""
    n = some.shape[1]
    p0 = p1 = p2 = p3 = 0.0
    full = n // 4 * 4
    for i in range(0, full, 4):
        p0 += some[one, i] * others[other, i]
        p1 += some[one, i + 1] * others[other, i + 1]
        p2 += some[one, i + 2] * others[other, i + 2]
        p3 += some[one, i + 3] * others[other, i + 3]
    if full < n:
        p0 += some[one, full] * others[other, full]
    if full + 1 < n:
        p1 += some[one, full + 1] * others[other, full + 1]
    if full + 2 < n:
        p2 += some[one, full + 2] * others[other, full + 2]
    return (p0 + p2) + (p1 + p3)


@lean
def turn_lanes(made, row, x, at):
    """H of one row, to the four columns of x from ``at`` on."""
    n, width = x.shape
    p0 = p1 = p2 = p3 = splat(0.0)
    full = n // 4 * 4
    for i in range(0, full, 4):
        place = i * width + at
        p0 = p0 + splat(made[row, i]) * load(x, place)
        p1 = p1 + splat(made[row, i + 1]) * load(x, place + width)
        p2 = p2 + splat(made[row, i + 2]) * load(x, place + 2 * width)
        p3 = p3 + splat(made[row, i + 3]) * load(x, place + 3 * width)
    if full < n:
        p0 = p0 + splat(made[row, full]) * load(x, full * width + at)
    if full + 1 < n:
        p1 = p1 + splat(made[row, full + 1]) * load(x, (full + 1) * width + at)
    if full + 2 < n:
        p2 = p2 + splat(made[row, full + 2]) * load(x, (full + 2) * width + at)
    total = (p0 + p2) + (p1 + p3)
    for i in range(n):
        store(x, i * width + at, load(x, i * width + at) - splat(made[row, i]) * total)


@lean
def turn_row(known, first, stop, step, row):
    """H of rows ``first``, ``first`` + ``step``, .. before ``stop``, to the only row of ``row``."""
    for k in range(first, stop, step):
        share = product_of(known, k, row, 0)
        for i in range(row.shape[1]):
            row[0, i] -= known[k, i] * share


@lean
def turn_columns(known, columns):
    """H_c .. H_1 to columns, of which there are a multiple of four."""
    for at in range(0, columns.shape[1], _TILE):
        for k in range(known.shape[0]):
            turn_lanes(known, k, columns, at)


@jit
def more_of(known, rows, n_terms):
    """Reflections of the codes of the first few of some terms, which are turned by those that are ``known`` already."""
    n = rows.shape[1] - 2
    made, row = np.empty((min(n_terms, (head_of(n) + 1) // 2), n)), np.empty((1, n))
    for k in range(made.shape[0]):
        for i in range(n):
            row[0, i] = rows[k, 2 + i]
        turn_row(made, 0, k, 1, row)
        for i in range(n):
            made[k, i] = row[0, i]
        make_reflection(made, k, known.shape[0] + k)
    return made


@lean
def head_of(n_features):
    """How many numbers of a term are its head."""
    return min(_LANES, n_features // _LANES)
