"""A few eigenvalues of a tridiagonal matrix and their eigenvectors, compiled, a dozen at a time.

Counting the eigenvalues below some points (Sturm) brings each of them near; then T - x I is factorised from its top and
from its bottom, the eigenvector is read off where the two meet best, and its Rayleigh quotient is the next x. Three to
five such steps leave nothing but rounding. There is no pivoting, so that a dozen numbers go through the same
instructions, a lane each; whoever calls is told where that was not exact enough. Only a sender computes this, so sums
may run in any order.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.vectors import (
    count_apart,
    jit,
    lean,
    load,
    splat,
    splat_at,
    store,
    vector_abs,
    vector_fma,
    vector_larger,
)

LANES = 12  # eigenvalues at a time: three vectors, whose divisions overlap
_FINER = 16  # halvings of the tolerance
_RESCALED = 16  # steps of a recurrence after which numbers are brought back to about 1
_STEPS, _MOST_STEPS = 3, 5  # Rayleigh quotients
_EXACT = 1e-14  # of the largest entry, that may be left of T z - x z


@jit
def find_pairs(diagonal, beside, low, high, least, most, tolerance, values, columns):
    """The ``low`` least eigenvalues and the ``high`` largest, each the farthest first, and eigenvectors of length 1.

    The former are all below ``least``, the latter above ``most``; ``tolerance`` is how near they are brought, before
    they are made exact. ``beside``[k] is next to entries k and k + 1. ``columns`` has room for whole dozens. Returns
    whether they were found, and can be told apart.
    """
    n, count, width = len(diagonal), low + high, columns.shape[1]
    squares = np.empty(n + 1)  # k: next to k - 1 and k; never 0, so that nothing is divided 0 by 0
    squares[0] = squares[n] = 0.0
    largest = abs(diagonal[0])
    for k in range(1, n):
        squares[k] = max(beside[k - 1] * beside[k - 1], 1e-290)
        largest = max(largest, abs(diagonal[k]), abs(beside[k - 1]))
    bound = 3.0 * largest
    if not bound < np.inf:
        return False
    under, over = np.empty(width), np.empty(width)
    for k in range(width):
        own = min(k, count - 1)
        under[k], over[k] = (-bound, least) if own < low else (most, bound)
    finest = tolerance / 2.0**_FINER
    top, bottom, starts = np.empty((n, LANES)), np.empty((n, LANES)), np.zeros((n, LANES))
    for at in range(0, width, LANES):
        narrow(diagonal, squares, n, low, count, under, over, at, bound, finest)
        for k in range(at, at + LANES):
            values[0, k] = 0.5 * (under[k] + over[k])
        left = np.inf
        for step in range(_MOST_STEPS):
            factorise(diagonal, squares, n, values, at, top, bottom)
            last, few = step >= _STEPS - 1, min(LANES, count - at)
            left = improve(diagonal, beside, n, values, at, few, top, bottom, starts, columns, last)
            if last and left <= _EXACT * largest:
                break
        if not left <= _EXACT * largest:
            return False
    for k in range(count):
        wide = over[k] - under[k]
        if not under[k] - wide <= values[0, k] <= over[k] + wide:
            return False
        if k > 0 and k != low and abs(values[0, k] - values[0, k - 1]) <= 4.0 * wide:
            return False
    return True


@jit
def narrow(diagonal, squares, n, low, count, under, over, at, bound, finest):
    """Narrow the brackets of a dozen eigenvalues, or of those that are left of ``count``, until they are ``finest``.

    Where they are few, each has several points at a time.
    """
    few = min(LANES, count - at)
    each = LANES // few
    points, below = np.zeros((1, LANES)), np.empty((1, LANES))
    widest = 0.0
    for k in range(at, at + few):
        widest = max(widest, over[k] - under[k])
    while widest > finest:
        for k in range(few):
            wide = (over[at + k] - under[at + k]) / (each + 1)
            for point in range(each):
                points[0, k * each + point] = (under[at + k] + (point + 1) * wide) / bound
        count_each(diagonal, squares, n, bound, points, below)
        widest /= each + 1
        for k in range(few):
            own = at + k
            wanted = own if own < low else n - 1 - (own - low)
            inside = 0  # points that it is above
            while inside < each and below[0, k * each + inside] <= wanted:
                inside += 1
            wide = (over[own] - under[own]) / (each + 1)
            under[own] += inside * wide
            over[own] = under[own] + wide
    for k in range(at + few, at + LANES):
        under[k], over[k] = under[at + few - 1], over[at + few - 1]


@lean
def count_each(diagonal, squares, n, bound, points, below):
    """How many eigenvalues are below each of a dozen points: how often det(T_k - x I) changes its sign with k.

    In units of ``bound`` everything is at most 1, so that the determinants need to be brought back now and then only.
    """
    x0, x1, x2 = load(points, 0), load(points, 4), load(points, 8)
    c0 = c1 = c2 = splat(0.0)
    p0 = p1 = p2 = splat(1.0)  # the determinant before
    o0 = o1 = o2 = splat(0.0)  # and the one before that
    unit, tiny, one = 1.0 / bound, splat(1e-300), splat(1.0)
    for first in range(0, n, _RESCALED):
        for k in range(first, min(first + _RESCALED, n)):
            d, e = splat(diagonal[k] * unit), splat(-squares[k] * unit * unit)
            n0, n1 = vector_fma(d - x0, p0, e * o0), vector_fma(d - x1, p1, e * o1)
            n2 = vector_fma(d - x2, p2, e * o2)
            c0, c1, c2 = count_apart(c0, n0, p0), count_apart(c1, n1, p1), count_apart(c2, n2, p2)
            o0, o1, o2, p0, p1, p2 = p0, p1, p2, n0, n1, n2
        s0 = one / vector_larger(vector_larger(vector_abs(p0), vector_abs(o0)), tiny)
        s1 = one / vector_larger(vector_larger(vector_abs(p1), vector_abs(o1)), tiny)
        s2 = one / vector_larger(vector_larger(vector_abs(p2), vector_abs(o2)), tiny)
        o0, o1, o2, p0, p1, p2 = s0 * o0, s1 * o1, s2 * o2, s0 * p0, s1 * p1, s2 * p2
    store(below, 0, c0)
    store(below, 4, c1)
    store(below, 8, c2)


@lean
def factorise(diagonal, squares, n, values, at, top, bottom):
    """Pivots of T - x I from the top and from the bottom, for a dozen x."""
    x0, x1, x2 = load(values, at), load(values, at + 4), load(values, at + 8)
    p0 = p1 = p2 = q0 = q1 = q2 = splat(1.0)
    for k in range(n):
        m = n - 1 - k
        d, e = splat(diagonal[k]), splat(squares[k])
        p0, p1, p2 = d - x0 - e / p0, d - x1 - e / p1, d - x2 - e / p2
        store(top, k * LANES, p0)
        store(top, k * LANES + 4, p1)
        store(top, k * LANES + 8, p2)
        d, e = splat(diagonal[m]), splat(squares[m + 1])
        q0, q1, q2 = d - x0 - e / q0, d - x1 - e / q1, d - x2 - e / q2
        store(bottom, m * LANES, q0)
        store(bottom, m * LANES + 4, q1)
        store(bottom, m * LANES + 8, q2)


@jit
def improve(diagonal, beside, n, values, at, few, top, bottom, starts, columns, last):
    """Eigenvectors of a dozen x, in which T z - x z is 0 but where the factors meet, and x by their quotients.

    Returns the most that is there; vectors get the length 1 if they may be the ``last``. Entries grow from the place
    where the factors meet, at which ``starts`` is 1, to both ends. From the ``few``-th on all x are the same.
    """
    width, meets = columns.shape[1], np.empty(LANES, dtype=np.int64)
    tiny = splat(1e-300)  # so that a pivot is never 0: beyond where the factors meet, 0 times a quotient is to be 0
    for lane in range(LANES):
        x, least, meet = values[0, at + lane], np.inf, 0
        if lane >= few:  # the same as the one before
            meet = meets[lane - 1]
        else:
            for k in range(n):
                gap = abs(top[k, lane] + bottom[k, lane] - (diagonal[k] - x))
                if gap < least:
                    least, meet = gap, k
        meets[lane] = meet
        starts[meet, lane] = 1.0
    z0, z1, z2 = load(starts, (n - 1) * LANES), load(starts, (n - 1) * LANES + 4), load(starts, (n - 1) * LANES + 8)
    store_dozen(columns, (n - 1) * width + at, z0, z1, z2)
    for k in range(n - 2, -1, -1):
        b, own = splat(-beside[k]), k * LANES
        z0 = vector_fma(z0, b / (load(top, own) + tiny), load(starts, own))
        z1 = vector_fma(z1, b / (load(top, own + 4) + tiny), load(starts, own + 4))
        z2 = vector_fma(z2, b / (load(top, own + 8) + tiny), load(starts, own + 8))
        store_dozen(columns, k * width + at, z0, z1, z2)
    z0, z1, z2 = load(starts, 0), load(starts, 4), load(starts, 8)
    y0, y1, y2 = load(columns, at), load(columns, at + 4), load(columns, at + 8)
    t0, t1, t2 = y0 * y0, y1 * y1, y2 * y2
    for k in range(1, n):
        b, own, place = splat(-beside[k - 1]), k * LANES, k * width + at
        z0 = z0 * (b / (load(bottom, own) + tiny))
        z1 = z1 * (b / (load(bottom, own + 4) + tiny))
        z2 = z2 * (b / (load(bottom, own + 8) + tiny))
        y0, y1, y2 = load(columns, place) + z0, load(columns, place + 4) + z1, load(columns, place + 8) + z2
        z0, z1, z2 = z0 + load(starts, own), z1 + load(starts, own + 4), z2 + load(starts, own + 8)
        t0, t1, t2 = vector_fma(y0, y0, t0), vector_fma(y1, y1, t1), vector_fma(y2, y2, t2)
        store_dozen(columns, place, y0, y1, y2)
    totals, scales, left = np.empty((1, LANES)), np.empty((1, LANES)), 0.0
    store_dozen(totals, 0, t0, t1, t2)
    for lane in range(LANES):
        meet, total, x = meets[lane], totals[0, lane], values[0, at + lane]
        starts[meet, lane] = 0.0
        if not total < np.inf:
            left = np.inf
        gap = top[meet, lane] + bottom[meet, lane] - (diagonal[meet] - x)
        scales[0, lane] = 1.0 / math.sqrt(total)
        left = max(left, abs(gap) * scales[0, lane])
        values[0, at + lane] = x + gap / total
    if last:
        s0, s1, s2 = load(scales, 0), load(scales, 4), load(scales, 8)
        for place in range(at, at + n * width, width):
            y0, y1, y2 = load(columns, place), load(columns, place + 4), load(columns, place + 8)
            store_dozen(columns, place, s0 * y0, s1 * y1, s2 * y2)
    return left


@lean
def store_dozen(rows, at, one, two, three):
    """Three vectors, one after the other."""
    store(rows, at, one)
    store(rows, at + 4, two)
    store(rows, at + 8, three)


@lean
def reflect_columns(matrix, lengths, n, first, columns):
    """H_n-1 .. H_1 x of dozens of columns from ``first`` on: see ``wave_spectrum.reduce_matrix``.

    While one reflection is subtracted, the next is multiplied with what is left: columns pass once.
    """
    width, size = columns.shape[1], matrix.shape[1]
    for at in range(first, width, LANES):
        s0 = s1 = s2 = splat(0.0)
        before, b0, b1, b2 = 0, s0, s1, s2  # the reflection that is still to be subtracted, and by how much
        for i in range(1, n + 1):
            if i < n and not lengths[i] > 0.0:
                continue
            after = i if i < n else before  # beyond the last there is none
            s0 = s1 = s2 = splat(0.0)
            for j in range(before):
                u, v, place = splat_at(matrix, before * size + j), splat_at(matrix, after * size + j), j * width + at
                x0 = vector_fma(u, b0, load(columns, place))
                x1 = vector_fma(u, b1, load(columns, place + 4))
                x2 = vector_fma(u, b2, load(columns, place + 8))
                s0, s1, s2 = vector_fma(v, x0, s0), vector_fma(v, x1, s1), vector_fma(v, x2, s2)
                store_dozen(columns, place, x0, x1, x2)
            for j in range(before, after):
                v, place = splat_at(matrix, after * size + j), j * width + at
                s0 = vector_fma(v, load(columns, place), s0)
                s1 = vector_fma(v, load(columns, place + 4), s1)
                s2 = vector_fma(v, load(columns, place + 8), s2)
            scale = splat(-1.0 / lengths[after]) if i < n else splat(0.0)
            before, b0, b1, b2 = after, scale * s0, scale * s1, scale * s2


@lean
def least_pivot(diagonal, beside):
    """The smallest of the pivots, by magnitude, that T is factorised with."""
    pivot = diagonal[0]
    least = abs(pivot)
    for k in range(1, len(diagonal)):
        pivot = diagonal[k] - beside[k - 1] / pivot * beside[k - 1]
        least = min(least, abs(pivot))
    return least


@jit
def solve_tridiagonal(diagonal, beside, rows, row):
    """T^-1 x of a row, T with no eigenvalue near 0 or below, or with sound pivots."""
    n = len(diagonal)
    pivots = np.empty(n)
    pivots[0] = diagonal[0]
    for k in range(1, n):
        share = beside[k - 1] / pivots[k - 1]
        pivots[k] = diagonal[k] - share * beside[k - 1]
        rows[row, k] -= share * rows[row, k - 1]
    rows[row, n - 1] /= pivots[n - 1]
    for k in range(n - 2, -1, -1):
        rows[row, k] = (rows[row, k] - beside[k] * rows[row, k + 1]) / pivots[k]
