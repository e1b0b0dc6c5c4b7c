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
from laconic.engine.vectors import lean, load, splat, store, sum_of, vector_fma

_TILE = 4  # doubles of a vector
_LONGEST = 60  # shifts for one eigenvalue
TURNS = 3  # rotations that are kept, times the square of the features: one is usual


@lean
def reduce_matrix(matrix, n_features, diagonal, beside, lengths, work):
    """A = Q T Q' with T tridiagonal: ``diagonal``, and ``beside``[k] next to k and k + 1.

    Q = H_n-1 .. H_1, H_i = I - v v'/h, v the first i entries of row i of ``matrix``, h = ``lengths``[i] (0: H_i = I).
    ``work`` is room for a row.
    """
    size = matrix.shape[1]
    for i in range(n_features - 1, 0, -1):
        own = i * size
        diagonal[i] = matrix[i, i]
        for k in range(i, size):
            matrix[i, k] = 0.0
        length = (i + _TILE - 1) // _TILE * _TILE
        total = dot_row(matrix, own, matrix, own, length)
        edge = matrix[i, i - 1]
        if total - edge * edge <= 1e-300:
            beside[i - 1], lengths[i] = edge, 0.0
            continue
        root = -math.sqrt(total) if edge >= 0.0 else math.sqrt(total)
        h = total - edge * root
        beside[i - 1], lengths[i] = root, h
        matrix[i, i - 1] = edge - root
        reflect_gain(matrix, i, length, work)
        for k in range(i, length):
            work[0, k] = 0.0
        half = dot_row(work, 0, matrix, own, length) / (2.0 * h * h)
        inverse, less = splat(1.0 / h), splat(-half)
        for k in range(0, length, _TILE):
            store(work, k, vector_fma(less, load(matrix, own + k), inverse * load(work, k)))
        subtract_pair(matrix, i, work, length)
    diagonal[0] = matrix[0, 0]
    lengths[0] = 0.0


@lean
def reflect_gain(matrix, i, length, work):
    """The first row of ``work`` = A v, A the first ``length`` rows and columns, v the start of row i."""
    size, zero, own = matrix.shape[1], splat(0.0), i * matrix.shape[1]
    for k in range(0, length, _TILE):
        store(work, k, zero)
    for j in range(0, length, _TILE):
        row0 = j * size
        row1, row2, row3 = row0 + size, row0 + 2 * size, row0 + 3 * size
        f0, f1, f2, f3 = splat(matrix[i, j]), splat(matrix[i, j + 1]), splat(matrix[i, j + 2]), splat(matrix[i, j + 3])
        s0 = s1 = s2 = s3 = zero
        for k in range(0, j, _TILE):
            p0, p1, p2, p3 = (
                load(matrix, row0 + k),
                load(matrix, row1 + k),
                load(matrix, row2 + k),
                load(matrix, row3 + k),
            )
            x = load(matrix, own + k)
            s0, s1, s2, s3 = vector_fma(p0, x, s0), vector_fma(p1, x, s1), vector_fma(p2, x, s2), vector_fma(p3, x, s3)
            one, other = vector_fma(p1, f1, p0 * f0), vector_fma(p3, f3, p2 * f2)
            store(work, k, load(work, k) + (one + other))
        x = load(matrix, own + j)
        work[0, j] += sum_of(vector_fma(load(matrix, row0 + j), x, s0))
        work[0, j + 1] += sum_of(vector_fma(load(matrix, row1 + j), x, s1))
        work[0, j + 2] += sum_of(vector_fma(load(matrix, row2 + j), x, s2))
        work[0, j + 3] += sum_of(vector_fma(load(matrix, row3 + j), x, s3))


@lean
def subtract_pair(matrix, i, work, length):
    """A - v q' - q v' in the first ``length`` rows and columns, v the start of row i, q that of ``work``."""
    size, own = matrix.shape[1], i * matrix.shape[1]
    for j in range(0, length, _TILE):
        row0 = j * size
        row1, row2, row3 = row0 + size, row0 + 2 * size, row0 + 3 * size
        v0, v1, v2, v3 = (
            splat(-matrix[i, j]),
            splat(-matrix[i, j + 1]),
            splat(-matrix[i, j + 2]),
            splat(-matrix[i, j + 3]),
        )
        q0, q1, q2, q3 = splat(-work[0, j]), splat(-work[0, j + 1]), splat(-work[0, j + 2]), splat(-work[0, j + 3])
        for k in range(0, j + 1, _TILE):
            v, q = load(matrix, own + k), load(work, k)
            store(matrix, row0 + k, vector_fma(v0, q, vector_fma(q0, v, load(matrix, row0 + k))))
            store(matrix, row1 + k, vector_fma(v1, q, vector_fma(q1, v, load(matrix, row1 + k))))
            store(matrix, row2 + k, vector_fma(v2, q, vector_fma(q2, v, load(matrix, row2 + k))))
            store(matrix, row3 + k, vector_fma(v3, q, vector_fma(q3, v, load(matrix, row3 + k))))


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
