"""Eigenvalues of a symmetric matrix, and what is asked of its eigenvectors, compiled.

Householder's reflections make the matrix tridiagonal, and QL with implicit shifts makes that diagonal. The rotations of
QL are kept, not multiplied out: an eigenvector is a unit vector turned back by all of them, and whoever wants three
eigenvectors turns three back. Where few are wanted, ``wave_pairs`` finds them sooner. Only a sender computes this, so
sums may run in any order.

Matrices are padded to whole vectors; of a matrix only tiles on and below the diagonal are read, those on it whole.
"""

from __future__ import annotations

import math

from laconic.engine.rows import add_row, dot_row
from laconic.engine.vectors import lean, load, splat, splat_at, store, sums_of, vector_fma, vector_fnma

_TILE = 4  # doubles of a vector
_LONGEST = 60  # shifts for one eigenvalue
_NOTHING = 1e-60  # of squares: what is left of a row counts as 0, long before its square and that of h are too small
TURNS = 3  # rotations that are kept, times the square of the features: one is usual


@lean
def reduce_matrix(matrix, n_features, diagonal, beside, lengths, work):
    """A = Q T Q' with T tridiagonal: ``diagonal``, and ``beside``[k] next to k and k + 1.

    Q = H_n-1 .. H_1, H_i = I - v v'/h, v the first i entries of row i of ``matrix``, h = ``lengths``[i] (0: H_i = I).
    ``work`` is room for three rows: A v, and v and q of a reflection whose v q' + q v' is still to be subtracted.
    """
    size = matrix.shape[1]
    for k in range(0, size, _TILE):
        for row in range(3):
            store(work, row * size + k, splat(0.0))
    for i in range(n_features - 1, 0, -1):
        own = i * size
        for k in range(0, i + 1, _TILE):
            rest = vector_fma(splat(-work[2, i]), load(work, size + k), load(matrix, own + k))
            store(matrix, own + k, vector_fma(splat(-work[1, i]), load(work, 2 * size + k), rest))
        work[1, i] = work[2, i] = 0.0  # so that it is done once
        diagonal[i] = matrix[i, i]
        for k in range(i, size):
            matrix[i, k] = 0.0
        length = (i + _TILE - 1) // _TILE * _TILE
        total = dot_row(matrix, own, matrix, own, length)
        edge = matrix[i, i - 1]
        still = total - edge * edge <= _NOTHING
        root = edge
        if not still:
            root = -math.sqrt(total) if edge >= 0.0 else math.sqrt(total)
            matrix[i, i - 1] = edge - root
        h = total - edge * root
        beside[i - 1], lengths[i] = root, 0.0 if still else h
        subtract_and_gain(matrix, i, length, work)
        for k in range(0, length, _TILE):
            store(work, size + k, splat(0.0))
        if still:
            continue
        for k in range(i, length):
            work[0, k] = 0.0
        half = dot_row(work, 0, matrix, own, length) / (2.0 * h * h)
        inverse, less = splat(1.0 / h), splat(-half)
        for k in range(0, length, _TILE):
            v = load(matrix, own + k)
            store(work, size + k, v)
            store(work, 2 * size + k, vector_fma(less, v, inverse * load(work, k)))
    diagonal[0] = matrix[0, 0] - 2.0 * work[1, 0] * work[2, 0]
    lengths[0] = 0.0


@lean
def subtract_and_gain(matrix, i, length, work):
    """A - v q' - q v' in the first ``length`` rows and columns, then A x, x the start of row i, into ``work``.

    Of v and q, rows of ``work``, what was done to row i is 0.
    """
    size, zero, own = matrix.shape[1], splat(0.0), i * matrix.shape[1]
    v_at, q_at = size, 2 * size
    for k in range(0, length, _TILE):
        store(work, k, zero)
    for j in range(0, length, _TILE):
        row0 = j * size
        row1, row2, row3 = row0 + size, row0 + 2 * size, row0 + 3 * size
        f0, f1 = splat_at(matrix, own + j), splat_at(matrix, own + j + 1)
        f2, f3 = splat_at(matrix, own + j + 2), splat_at(matrix, own + j + 3)
        v0, v1 = splat_at(work, v_at + j), splat_at(work, v_at + j + 1)
        v2, v3 = splat_at(work, v_at + j + 2), splat_at(work, v_at + j + 3)
        q0, q1 = splat_at(work, q_at + j), splat_at(work, q_at + j + 1)
        q2, q3 = splat_at(work, q_at + j + 2), splat_at(work, q_at + j + 3)
        s0 = s1 = s2 = s3 = zero
        for k in range(0, j + 1, _TILE):
            v, q, x = load(work, v_at + k), load(work, q_at + k), load(matrix, own + k)
            p0 = vector_fnma(v0, q, vector_fnma(q0, v, load(matrix, row0 + k)))
            p1 = vector_fnma(v1, q, vector_fnma(q1, v, load(matrix, row1 + k)))
            p2 = vector_fnma(v2, q, vector_fnma(q2, v, load(matrix, row2 + k)))
            p3 = vector_fnma(v3, q, vector_fnma(q3, v, load(matrix, row3 + k)))
            store(matrix, row0 + k, p0)
            store(matrix, row1 + k, p1)
            store(matrix, row2 + k, p2)
            store(matrix, row3 + k, p3)
            s0, s1, s2, s3 = vector_fma(p0, x, s0), vector_fma(p1, x, s1), vector_fma(p2, x, s2), vector_fma(p3, x, s3)
            if k < j:
                one, other = vector_fma(p1, f1, p0 * f0), vector_fma(p3, f3, p2 * f2)
                store(work, k, load(work, k) + (one + other))
        store(work, j, load(work, j) + sums_of(s0, s1, s2, s3))


@lean
def count_below(diagonal, beside, n, x):
    """How many eigenvalues of a tridiagonal matrix are less than x (Sturm)."""
    count, q = 0, 1.0
    for k in range(n):
        q = diagonal[k] - x - (beside[k - 1] * beside[k - 1] / q if k > 0 else 0.0)
        if q == 0.0:
            q = 1e-300
        count += q < 0.0
    return count


@lean
def diagonalise(diagonal, beside, n, turns, places):
    """Eigenvalues of a tridiagonal matrix into ``diagonal``; ``beside`` is used up. Returns the number of rotations.

    Rotation r turns entries i = ``places``[r] and i + 1 by c and s = ``turns``[r]. -1 if there are more than fit.
    """
    beside[n - 1] = 0.0
    at = 0
    for left in range(n):
        for _ in range(_LONGEST):
            m = left
            while m < n - 1 and abs(beside[m]) > 1e-16 * (abs(diagonal[m]) + abs(diagonal[m + 1])):
                m += 1
            if m == left:
                break
            if at + m - left > turns.shape[0]:
                return -1
            g = (diagonal[left + 1] - diagonal[left]) / (2.0 * beside[left])
            r = math.sqrt(g * g + 1.0)
            g = diagonal[m] - diagonal[left] + beside[left] / (g + (r if g >= 0.0 else -r))
            s = c = 1.0
            p = 0.0
            i = m - 1
            while i >= left:
                f, b = s * beside[i], c * beside[i]
                r = math.sqrt(f * f + g * g)
                beside[i + 1] = r
                if r == 0.0:
                    diagonal[i + 1] -= p
                    beside[m] = 0.0
                    break
                inverse = 1.0 / r
                s, c = f * inverse, g * inverse
                g = diagonal[i + 1] - p
                r = (diagonal[i] - g) * s + 2.0 * c * b
                p = s * r
                diagonal[i + 1] = g + p
                g = c * r - b
                turns[at, 0], turns[at, 1], places[at] = c, s, i
                at += 1
                i -= 1
            if i < left:
                diagonal[left] -= p
                beside[left] = g
                beside[m] = 0.0
    return at


@lean
def turn_back(turns, places, n_turns, columns):
    """Columns of coefficients of eigenvectors become those of the features of T, all rotations undone."""
    width = columns.shape[1]
    for r in range(n_turns - 1, -1, -1):
        upper = places[r] * width
        under = upper + width
        c, s, back = splat(turns[r, 0]), splat(turns[r, 1]), splat(-turns[r, 1])
        for k in range(0, width, _TILE):
            one, other = load(columns, upper + k), load(columns, under + k)
            store(columns, upper + k, vector_fma(c, one, s * other))
            store(columns, under + k, vector_fma(c, other, back * one))


@lean
def turn_on(turns, places, n_turns, columns):
    """Columns over the features of T become coefficients of eigenvectors."""
    width = columns.shape[1]
    for r in range(n_turns):
        upper = places[r] * width
        under = upper + width
        c, s, back = splat(turns[r, 0]), splat(turns[r, 1]), splat(-turns[r, 1])
        for k in range(0, width, _TILE):
            one, other = load(columns, upper + k), load(columns, under + k)
            store(columns, under + k, vector_fma(c, other, s * one))
            store(columns, upper + k, vector_fma(c, one, back * other))


@lean
def reflect(matrix, lengths, n_features, rows, row, forward):
    """H_n-1 .. H_1 x of a row, in that order of factors; H_1 .. H_n-1 x where ``forward``."""
    size = matrix.shape[1]
    for step in range(1, n_features):
        i = n_features - step if forward else step
        if lengths[i] > 0.0:
            length = (i + _TILE - 1) // _TILE * _TILE
            share = dot_row(rows, row * size, matrix, i * size, length) / lengths[i]
            add_row(rows, row * size, -share, matrix, i * size, length)
