"""A few eigenvalues of a tridiagonal matrix and their eigenvectors, compiled, a dozen at a time.

Bisection brings each eigenvalue near; then T - x I is factorised from its top and from its bottom, the eigenvector is
read off where the two meet best, and its Rayleigh quotient is the next x. Three to five such steps leave nothing but
rounding. There is no pivoting, so that a dozen eigenvalues go through the same instructions, a lane each; whoever calls
is told where that was not exact enough. Only a sender computes this, so sums may run in any order.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.vectors import jit, load, splat, store, vector_fma, vector_larger, vector_smaller

LANES = 12  # eigenvalues at a time: three vectors, whose divisions overlap
_FINER = 12  # halvings of the tolerance
_STEPS, _MOST_STEPS = 3, 5  # Rayleigh quotients
_EXACT = 1e-12  # of the largest entry, that may be left of T z - x z


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
    wanted, under, over = np.empty((1, width)), np.empty((1, width)), np.empty((1, width))
    for k in range(width):
        own = min(k, count - 1)
        if own < low:
            wanted[0, k], under[0, k], over[0, k] = own, -bound, least
        else:
            wanted[0, k], under[0, k], over[0, k] = n - 1 - (own - low), most, bound
    times = _FINER + int(min(60.0, math.ceil(math.log2(max(4.0, 2.0 * bound / tolerance)))))
    top, bottom = np.empty((n, LANES)), np.empty((n, LANES))
    for at in range(0, width, LANES):
        halve(diagonal, squares, n, wanted, under, over, at, times)
        for k in range(at, at + LANES):
            values[0, k] = 0.5 * (under[0, k] + over[0, k])
        left = np.inf
        for step in range(_MOST_STEPS):
            factorise(diagonal, squares, n, values, at, top, bottom)
            left = improve(diagonal, beside, n, values, at, top, bottom, columns, step >= _STEPS - 1)
            if step >= _STEPS - 1 and left <= _EXACT * largest:
                break
        if not left <= _EXACT * largest:
            return False
    for k in range(count):
        wide = over[0, k] - under[0, k]
        if not under[0, k] - wide <= values[0, k] <= over[0, k] + wide:
            return False
        if k > 0 and k != low and abs(values[0, k] - values[0, k - 1]) <= 4.0 * wide:
            return False
    return True


@jit
def halve(diagonal, squares, n, wanted, low, high, at, times):
    """Narrow a dozen brackets by counting the eigenvalues below their middles (Sturm)."""
    half, none, one, huge, less = splat(0.5), splat(0.0), splat(1.0), splat(1e300), splat(-1.0)
    a0, a1, a2 = load(low, at), load(low, at + 4), load(low, at + 8)
    b0, b1, b2 = load(high, at), load(high, at + 4), load(high, at + 8)
    w0, w1, w2 = load(wanted, at), load(wanted, at + 4), load(wanted, at + 8)
    for _ in range(times):
        x0, x1, x2 = half * (a0 + b0), half * (a1 + b1), half * (a2 + b2)
        q0 = q1 = q2 = one
        c0 = c1 = c2 = none
        for k in range(n):
            d, e = splat(diagonal[k]), splat(squares[k])
            q0, q1, q2 = d - x0 - e / q0, d - x1 - e / q1, d - x2 - e / q2
            c0 = c0 - vector_larger(vector_smaller(q0 * huge, none), less)
            c1 = c1 - vector_larger(vector_smaller(q1 * huge, none), less)
            c2 = c2 - vector_larger(vector_smaller(q2 * huge, none), less)
        m0 = vector_smaller(vector_larger(c0 - w0, none), one)  # 1 where it is in the lower half, else 0
        m1 = vector_smaller(vector_larger(c1 - w1, none), one)
        m2 = vector_smaller(vector_larger(c2 - w2, none), one)
        b0, b1, b2 = vector_fma(m0, x0 - b0, b0), vector_fma(m1, x1 - b1, b1), vector_fma(m2, x2 - b2, b2)
        a0 = vector_fma(one - m0, x0 - a0, a0)
        a1 = vector_fma(one - m1, x1 - a1, a1)
        a2 = vector_fma(one - m2, x2 - a2, a2)
    store(low, at, a0)
    store(low, at + 4, a1)
    store(low, at + 8, a2)
    store(high, at, b0)
    store(high, at + 4, b1)
    store(high, at + 8, b2)


@jit
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
def improve(diagonal, beside, n, values, at, top, bottom, columns, last):
    """Eigenvectors of a dozen x, in which T z - x z is 0 but where the factors meet, and x by their quotients.

    Returns the most that is there; vectors get the length 1 if they may be the ``last``.
    """
    left = 0.0
    for lane in range(LANES):
        column = at + lane
        x = values[0, column]
        least, meet = np.inf, 0
        for k in range(n):
            gap = abs(top[k, lane] + bottom[k, lane] - (diagonal[k] - x))
            if gap < least:
                least, meet = gap, k
        columns[meet, column] = 1.0
        total = z = 1.0
        for k in range(meet - 1, -1, -1):
            z *= -beside[k] / top[k, lane]
            columns[k, column] = z
            total += z * z
        z = 1.0
        for k in range(meet + 1, n):
            z *= -beside[k - 1] / bottom[k, lane]
            columns[k, column] = z
            total += z * z
        scale = 1.0 / math.sqrt(total)
        if not total < np.inf:
            return np.inf
        left = max(left, least * scale)
        values[0, column] = x + (top[meet, lane] + bottom[meet, lane] - (diagonal[meet] - x)) / total
        if last:
            for k in range(n):
                columns[k, column] *= scale
    return left


@jit
def reflect_columns(matrix, lengths, n, columns):
    """H_n-1 .. H_1 x of dozens of columns: see ``wave_spectrum.reduce_matrix``."""
    width = columns.shape[1]
    for at in range(0, width, LANES):
        for i in range(1, n):
            if lengths[i] > 0.0:
                s0 = s1 = s2 = splat(0.0)
                for j in range(i):
                    v, place = splat(matrix[i, j]), j * width + at
                    s0 = vector_fma(v, load(columns, place), s0)
                    s1 = vector_fma(v, load(columns, place + 4), s1)
                    s2 = vector_fma(v, load(columns, place + 8), s2)
                scale = splat(-1.0 / lengths[i])
                s0, s1, s2 = scale * s0, scale * s1, scale * s2
                for j in range(i):
                    v, place = splat(matrix[i, j]), j * width + at
                    store(columns, place, vector_fma(v, s0, load(columns, place)))
                    store(columns, place + 4, vector_fma(v, s1, load(columns, place + 4)))
                    store(columns, place + 8, vector_fma(v, s2, load(columns, place + 8)))


@jit
def solve_tridiagonal(diagonal, beside, rows, row):
    """T^-1 x of a row, T with no eigenvalue near 0 or below."""
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
