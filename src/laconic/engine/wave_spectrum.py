"""Eigenvalues of a symmetric matrix, and what is asked of its eigenvectors, compiled.

Householder's reflections make the matrix tridiagonal, and QL with implicit shifts makes that diagonal. The rotations of
QL are kept, not multiplied out: an eigenvector is a unit vector turned back by all of them, and whoever wants three
eigenvectors turns three back. Where few are wanted, ``wave_pairs`` finds them sooner. Only a sender computes this, so
sums may run in any order.

Matrices are padded to whole vectors; of a matrix only tiles on and below the diagonal are read, those on it whole.
"""

from __future__ import annotations

import math

from laconic.engine.rows import add_row, clear_row, dot_row
from laconic.engine.vectors import ladder, lean, load, splat, store, sums_of, vector_fma, vector_fnma
from laconic.engine.wave_lowering import along, share_of, splats
from laconic.engine.wide import WIDE, load_like, load_twice, lower_halves, nothing_wide, split, upper_halves

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
def subtract_and_gain_narrow(matrix, i, length, work):
    """A - v q' - q v' in the first ``length`` rows and columns, then A x, x the start of row i, into ``work``.

    Of v and q, rows of ``work``, what was done to row i is 0.
    """
    size, zero = matrix.shape[1], splat(0.0)
    clear_row(work, 0, length)
    for j in range(0, length, _TILE):
        f, v, q = splats(matrix, i * size + j, zero), splats(work, size + j, zero), splats(work, 2 * size + j, zero)
        subtract_rows(matrix, i, j, 0, f, v, q, (zero, zero, zero, zero), work)


@lean
def subtract_and_gain_wide(matrix, i, length, work):
    """The same with registers of 64 bytes, and with the same bits.

    Sums along rows r and r + 2 are in one register, so that they are of four lanes as everywhere.
    """
    size = matrix.shape[1]
    own, v_at, q_at, zero = i * size, size, 2 * size, nothing_wide(matrix)
    clear_row(work, 0, length)
    for j in range(0, length, _TILE):
        row0, whole = j * size, j // (2 * _TILE) * (2 * _TILE)
        f, v, q = splats(matrix, own + j, zero), splats(work, v_at + j, zero), splats(work, q_at + j, zero)
        s02 = s13 = zero
        for k in range(0, whole, 2 * _TILE):
            x, y = load_twice(matrix, own + k), load_twice(matrix, own + k + _TILE)
            a, b = load_like(work, v_at + k, zero), load_like(work, q_at + k, zero)
            tile = subtract_tile(matrix, row0 + k, a, b, v, q)
            p0, p1, p2, p3 = tile
            s02 = vector_fma(upper_halves(p0, p2), y, vector_fma(lower_halves(p0, p2), x, s02))
            s13 = vector_fma(upper_halves(p1, p3), y, vector_fma(lower_halves(p1, p3), x, s13))
            store(work, k, load_like(work, k, zero) + share_of(tile, f))
        (s0, s2), (s1, s3) = split(s02), split(s13)
        subtract_rows(matrix, i, j, whole, halved(f), halved(v), halved(q), (s0, s1, s2, s3), work)


subtract_and_gain = subtract_and_gain_wide if WIDE else subtract_and_gain_narrow


@ladder
def halved(four):
    """Four short vectors of four wide ones: the first halves."""
    a, b, c, d = four
    return split(a)[0], split(b)[0], split(c)[0], split(d)[0]


@ladder
def subtract_rows(matrix, i, j, first, f, v, q, sums, work):
    """That for rows j to j + 3, from column ``first`` on; ``sums`` are what was before it."""
    size = matrix.shape[1]
    own, row0, v_at, q_at = i * size, j * size, size, 2 * size
    for k in range(first, j, _TILE):
        tile = subtract_tile(matrix, row0 + k, load(work, v_at + k), load(work, q_at + k), v, q)
        sums = along(tile, load(matrix, own + k), sums)
        store(work, k, load(work, k) + share_of(tile, f))
    tile = subtract_tile(matrix, row0 + j, load(work, v_at + j), load(work, q_at + j), v, q)
    s0, s1, s2, s3 = along(tile, load(matrix, own + j), sums)
    store(work, j, load(work, j) + sums_of(s0, s1, s2, s3))


@ladder
def subtract_tile(matrix, at, v, q, vs, qs):
    """Entries of four rows from ``at`` on lose v and q times each of four numbers; returns what they are then."""
    size, (v0, v1, v2, v3), (q0, q1, q2, q3) = matrix.shape[1], vs, qs
    p0 = vector_fnma(v0, q, vector_fnma(q0, v, load_like(matrix, at, v)))
    p1 = vector_fnma(v1, q, vector_fnma(q1, v, load_like(matrix, at + size, v)))
    p2 = vector_fnma(v2, q, vector_fnma(q2, v, load_like(matrix, at + 2 * size, v)))
    p3 = vector_fnma(v3, q, vector_fnma(q3, v, load_like(matrix, at + 3 * size, v)))
    store(matrix, at, p0)
    store(matrix, at + size, p1)
    store(matrix, at + 2 * size, p2)
    store(matrix, at + 3 * size, p3)
    return p0, p1, p2, p3


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
