"""What a sender says of a matrix and a vector, compiled: whitened, decomposed and rounded in one call.

Only the sender computes this, so its sums may run in any order; they are exact enough for the codes to be those of any
other decomposition. A half, which comes up, is rounded towards 0 by all; what comes that near to one otherwise is rare.

Matrices are padded to whole vectors, and of those that are symmetric only tiles on and below the diagonal are made.
A row of what is said is (sign, step, codes) for a term, (-1, step, codes) for a vector, as ``wave_coding`` writes it.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import dot_row
from laconic.engine.vectors import from_bits, jit, ladder, lean, load, splat, store, sum_of, to_bits, turned, vector_fma
from laconic.engine.wave_coding import write_body
from laconic.engine.wave_kernels import on_grid
from laconic.engine.wave_pairs import LANES, find_pairs, least_pivot, reflect_columns, solve_tridiagonal
from laconic.engine.wave_spectrum import TURNS, count_below, diagonalise, reduce_matrix, reflect, turn_back, turn_on
from laconic.engine.wave_turning import more_of, turn_columns, turn_row
from laconic.engine.wide import lanes_of, load_like, longest_zero, splat_like, store_four
from laconic.waves.codes import LARGEST, NO_HALF, WIDEST

_TILE = 4  # doubles of a vector
_LEAST = 0.5  # of the eigenvalues that the root solves with
_POSITIVE = 1e-6  # what they are all above, if T is to be factorised without a look at the pivots
_SOUND = 1e-3  # and what pivots are above otherwise


@entry
def add_share(total, n, information):
    """S + n U into S, both symmetric: of S what is above the diagonal's tiles is left as it was."""
    size, share = total.shape[0], splat(n)
    for i in range(size):
        end = i // _TILE * _TILE
        end = end + _TILE if end + _TILE <= size else end
        for at in range(i * size, i * size + end, _TILE):
            store(total, at, load(total, at) + share * load(information, at))
        for j in range(end, i + 1):
            total[i, j] += n * information[i, j]


@entry
def tell(inverse, turned, information, n, base, tolerance, nu, up_to, most, turning, room, rows):
    """Terms of K (S - n B) K' beyond the tolerance, turned, into ``rows``.

    Returns how many there are. ``room`` is that of two matrices.
    """
    n_features, matrix, half = information.shape[0], room[0], room[1]
    subtract_share(information, n, base, matrix)
    whiten(inverse, turned, matrix, half)
    if not n > 0.0:
        return 0
    return describe(matrix, n_features, 0.0, tolerance, (nu, up_to), most, False, turning, rows)


@jit
def add_vectors(inverse, moments, sizes, turning, rows, found):
    """K r of each output, turned, in steps near its size, into ``rows`` behind the terms that were ``found``."""
    n_features, size = moments.shape[1], inverse.shape[1]
    more, row, whitened = more_of(turning, rows, found), np.zeros((1, size)), np.empty((1, n_features))
    for k in range(moments.shape[0]):
        row[0, :n_features] = moments[k]
        for i in range(n_features):
            whitened[0, i] = dot_row(inverse, i * size, row, 0, size)
        turn_row(turning, 0, turning.shape[0], 1, whitened)
        turn_row(more, 0, more.shape[0], 1, whitened)
        step = grid(sizes[k])
        width = on_grid(step)
        rows[found + k, 0], rows[found + k, 1] = -1, step
        for i in range(n_features):
            rows[found + k, 2 + i] = rounded(whitened[0, i] / width)


@entry
def letter(
    inverse, turned, information, n, base, tolerance, nu, up_to, most, moments, numbers, turning, room, rows, first,
    data
):  # fmt: skip
    """``tell`` and vectors, then all of the message up as bytes: how many terms there are, and how many bits.

    ``numbers`` are q, v, pull, doubt, of which what travels is left, and sizes of steps, each of all outputs; ``first``
    are the 16 bits that the message begins with.
    """
    found = tell(inverse, turned, information, n, base, tolerance, nu, up_to, most, turning, room, rows)
    add_vectors(inverse, moments, numbers[4], turning, rows, found)
    share = np.int64(to_bits(np.float32(n if n < WIDEST else WIDEST)))
    at = put_half(first, data, 0)
    at = put_half(share & 0xFFFF, data, put_half(share >> 16, data, at))
    for k in range(numbers.shape[1]):
        for which in range(4):
            half = brief(numbers[which, k])
            at = put_half(half, data, at)
            numbers[which, k] = from_bits(np.uint32(half << 16))
    return found, write_body(rows[: found + moments.shape[0]], found, False, data, at)


@lean
def put_half(half, data, at):
    """Sixteen bits from byte ``at`` on; returns where they end."""
    data[at], data[at + 1] = half >> 8 & 255, half & 255
    return at + 2


@lean
def brief(x):
    """The upper half of the float32 of a number, rounded to the nearest, to the even one of two."""
    if not abs(x) < WIDEST:
        x = math.copysign(WIDEST, x)
    bits = np.int64(to_bits(np.float32(x)))
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


@entry
def settle(inverse, turned, information, thick, tolerance, nu, up_to, most, moments, room, rows, solution):
    """The root's terms of W = K (S + thick I) K' beyond I, and K' W^-1 K r of each output.

    The eigenvalues of W that it solves with are at least 1/2. Returns how many terms there are.
    """
    n_features, size, outputs = information.shape[0], inverse.shape[1], moments.shape[0]
    matrix, half = room[0], room[1]
    subtract_share(information, 0.0, information, matrix)
    for i in range(n_features):
        matrix[i, i] += thick
    whiten(inverse, turned, matrix, half)
    diagonal, beside, lengths = np.empty(n_features), np.empty(n_features), np.empty(n_features)
    reduce_matrix(matrix, n_features, diagonal, beside, lengths, half)
    turned_rows, fineness = np.zeros((outputs, size)), (nu, up_to)
    for k in range(outputs):
        row = np.zeros((1, size))
        row[0, :n_features] = moments[k]
        for i in range(n_features):
            turned_rows[k, i] = dot_row(inverse, i * size, row, 0, size)
        reflect(matrix, lengths, n_features, turned_rows, k, True)
    found = settle_few(matrix, lengths, diagonal, beside, tolerance, fineness, most, rows, turned_rows)
    if found < 0:
        found = settle_all(matrix, lengths, diagonal, beside, tolerance, fineness, most, rows, turned_rows)
    for k in range(outputs):
        reflect(matrix, lengths, n_features, turned_rows, k, False)
        for i in range(n_features):
            solution[k, i] = 0.0
        for i in range(n_features):
            for j in range(i + 1):
                solution[k, j] += turned_rows[k, i] * inverse[i, j]
    return found


@jit
def settle_few(matrix, lengths, diagonal, beside, tolerance, fineness, most, rows, turned_rows):
    """Terms, and ``turned_rows`` solved, by the eigenvalues that have a term and those under 1/2; -1 if that fails.

    T^-1 is right for what is left of a row without the eigenvectors of the latter, which count as 1/2; also where some
    of these are negative, as long as no pivot comes near 0.
    """
    n_features, outputs = len(diagonal), turned_rows.shape[0]
    low = count_below(diagonal, beside, n_features, _LEAST)
    high = n_features - count_below(diagonal, beside, n_features, 1.0 + tolerance)
    if high > most or 2 * (low + high) > n_features:
        return -1
    if count_below(diagonal, beside, n_features, _POSITIVE) > 0 and not least_pivot(diagonal, beside) > _SOUND:
        return -1
    values = np.empty((1, (low + high + LANES - 1) // LANES * LANES))
    columns = np.empty((n_features, values.shape[1]))
    if low + high > 0 and not find_pairs(diagonal, beside, low, high, _LEAST, 1.0 + tolerance, _LEAST, values, columns):
        return -1
    shares, left = np.empty((1, columns.shape[1])), np.empty((1, columns.shape[1]))
    for k in range(outputs):
        take_shares(columns, low, turned_rows, k, shares)
        take_out(columns, low, shares, turned_rows, k)
        solve_tridiagonal(diagonal, beside, turned_rows, k)
        take_shares(columns, low, turned_rows, k, left)  # what rounding has left there, many times as large by now
        for j in range(low):
            left[0, j] -= shares[0, j] / _LEAST
        take_out(columns, low, left, turned_rows, k)
    order, sizes = np.empty(high, dtype=np.int64), np.empty(high)
    for j in range(high):
        order[j], sizes[j] = low + j, values[0, low + j] - 1.0
    reflect_columns(matrix, lengths, n_features, low // LANES * LANES, columns)
    return coded_terms(sizes, order, columns, tolerance, fineness, rows)


@lean
def take_shares(columns, count, rows, row, shares):
    """Inner products of a row and the first ``count`` columns into ``shares``, and 0 for those that fill a vector."""
    for j in range(0, count, _TILE):
        total = splat(0.0)
        for i in range(columns.shape[0]):
            total = vector_fma(splat(rows[row, i]), load(columns, i * columns.shape[1] + j), total)
        store(shares, j, total)
    shares[0, count : (count + _TILE - 1) // _TILE * _TILE] = 0.0


@lean
def take_out(columns, count, shares, rows, row):
    """Subtract from a row so much of each of the first ``count`` columns."""
    for i in range(columns.shape[0]):
        total = splat(0.0)
        for j in range(0, count, _TILE):
            total = vector_fma(load(shares, j), load(columns, i * columns.shape[1] + j), total)
        rows[row, i] -= sum_of(total)


@jit
def settle_all(matrix, lengths, diagonal, beside, tolerance, fineness, most, rows, turned_rows):
    """The same by all eigenvalues, those under 1/2 raised to it; ``turned_rows`` are solved. Returns how many terms."""
    n_features, outputs = len(diagonal), turned_rows.shape[0]
    turns, places = np.empty((TURNS * n_features * n_features, 2)), np.empty(TURNS * n_features**2, dtype=np.int64)
    n_turns = diagonalise(diagonal, beside, n_features, turns, places)
    found = terms_of(
        matrix, lengths, diagonal, turns, places, n_turns, 1.0, tolerance, fineness, most, True,
        np.empty((0, n_features)), rows,
    )  # fmt: skip
    columns = np.zeros((n_features, (outputs + _TILE - 1) // _TILE * _TILE))
    for k in range(outputs):
        columns[:, k] = turned_rows[k, :n_features]
    turn_on(turns, places, n_turns, columns)
    for i in range(n_features):
        for k in range(outputs):
            columns[i, k] /= max(diagonal[i], _LEAST)
    turn_back(turns, places, n_turns, columns)
    for k in range(outputs):
        turned_rows[k, :n_features] = columns[:, k]
    return found


@lean
def subtract_share(information, n, base, matrix):
    """S - n B into ``matrix``, padded with zeros; both are read up to the tiles on their diagonals."""
    n_features, size, share = information.shape[0], matrix.shape[1], splat(n)
    matrix[n_features:, :] = 0.0
    whole = n_features // _TILE * _TILE
    for i in range(0, whole, _TILE):
        for k in range(0, i + 1, _TILE):
            at, to, over = i * n_features + k, i * size + k, k * size + i
            a0 = load(information, at) - share * load(base, at)
            at += n_features
            a1 = load(information, at) - share * load(base, at)
            at += n_features
            a2 = load(information, at) - share * load(base, at)
            at += n_features
            a3 = load(information, at) - share * load(base, at)
            if k < i:
                store(matrix, to, a0)
                store(matrix, to + size, a1)
                store(matrix, to + 2 * size, a2)
                store(matrix, to + 3 * size, a3)
            a0, a1, a2, a3 = turned(a0, a1, a2, a3)
            store(matrix, over, a0)
            store(matrix, over + size, a1)
            store(matrix, over + 2 * size, a2)
            store(matrix, over + 3 * size, a3)
    for i in range(whole, n_features):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = information[i, j] - n * base[i, j]
    matrix[:, n_features:] = 0.0


@lean
def whiten(inverse, turned, matrix, half):
    """K X K' into the tiles of ``matrix`` on and below its diagonal, where X was; ``half`` is room."""
    whiten_by(inverse, turned, matrix, half, longest_zero(matrix))


@lean
def whiten_by(inverse, turned, matrix, half, zero):
    """That in vectors as long as ``zero``, which all give the same bits."""
    size = inverse.shape[1]
    for i in range(0, size, _TILE):
        multiply(inverse, matrix, i, i + _TILE, False, half, zero)
    for i in range(0, size, _TILE):
        multiply(half, turned, i, i + _TILE, True, matrix, zero)
    for i in range(size):
        for j in range(i // _TILE * _TILE, i):
            matrix[j, i] = matrix[i, j]


@lean
def multiply(one, other, i, end, triangular, product, zero):
    """Rows i to i + 3 of a product, up to column ``end``; where ``triangular``, ``other`` is an upper triangle."""
    k, length = 0, lanes_of(zero)
    while k + 2 * length <= end:
        multiply_two(one, other, i, k, k + 2 * length if triangular else end, zero, product)
        k += 2 * length
    while k + length <= end:
        multiply_one(one, other, i, k, k + length if triangular else end, zero, product)
        k += length
    if k < end:
        multiply_one(one, other, i, k, end, splat(0.0), product)


@ladder
def multiply_two(one, other, i, k, top, zero, product):
    """Four rows of a product from i on, in two vectors from column k on; rows of ``other`` from ``top`` on are 0."""
    size, length = one.shape[1], lanes_of(zero)
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
    for m in range(top):
        x, y = load_like(other, m * size + k, zero), load_like(other, m * size + k + length, zero)
        f0, f1, f2, f3 = splats_down(one, i * size + m, zero)
        a0, b0 = vector_fma(f0, x, a0), vector_fma(f0, y, b0)
        a1, b1 = vector_fma(f1, x, a1), vector_fma(f1, y, b1)
        a2, b2 = vector_fma(f2, x, a2), vector_fma(f2, y, b2)
        a3, b3 = vector_fma(f3, x, a3), vector_fma(f3, y, b3)
    store_four(product, i * size + k, a0, a1, a2, a3)
    store_four(product, i * size + k + length, b0, b1, b2, b3)


@ladder
def multiply_one(one, other, i, k, top, zero, product):
    """The same in one vector."""
    size = one.shape[1]
    a0 = a1 = a2 = a3 = zero
    for m in range(top):
        x = load_like(other, m * size + k, zero)
        f0, f1, f2, f3 = splats_down(one, i * size + m, zero)
        a0, a1, a2, a3 = vector_fma(f0, x, a0), vector_fma(f1, x, a1), vector_fma(f2, x, a2), vector_fma(f3, x, a3)
    store_four(product, i * size + k, a0, a1, a2, a3)


@ladder
def splats_down(matrix, at, like):
    """Four entries below each other, a vector each with one of them in every lane."""
    size = matrix.shape[1]
    return (
        splat_like(matrix, at, like),
        splat_like(matrix, at + size, like),
        splat_like(matrix, at + 2 * size, like),
        splat_like(matrix, at + 3 * size, like),
    )


@jit
def describe(matrix, n_features, origin, tolerance, fineness, most, positive, turning, rows):
    """Terms of ``matrix``, which is used up, beyond the tolerance from ``origin`` I, turned; returns how many."""
    diagonal, beside, lengths = np.empty(n_features), np.empty(n_features), np.empty(n_features)
    reduce_matrix(matrix, n_features, diagonal, beside, lengths, np.empty((3, matrix.shape[1])))
    found = few_terms(matrix, lengths, diagonal, beside, origin, tolerance, fineness, most, positive, turning, rows)
    if found >= 0:
        return found
    turns, places = np.empty((TURNS * n_features * n_features, 2)), np.empty(TURNS * n_features**2, dtype=np.int64)
    n_turns = diagonalise(diagonal, beside, n_features, turns, places)
    return terms_of(
        matrix, lengths, diagonal, turns, places, n_turns, origin, tolerance, fineness, most, positive, turning, rows
    )


@jit
def few_terms(matrix, lengths, diagonal, beside, origin, tolerance, fineness, most, positive, turning, rows):
    """Terms by a search for the eigenvalues that count, if there are at most ``most`` and they are told apart; else -1.

    What the matrix was reduced to is left as it is.
    """
    n_features = len(diagonal)
    low = count_below(diagonal, beside, n_features, origin - tolerance) if not positive else 0
    high = n_features - count_below(diagonal, beside, n_features, origin + tolerance)
    count = low + high
    if count == 0:
        return 0
    width = (count + LANES - 1) // LANES * LANES
    values, columns = np.empty((1, width)), np.empty((n_features, width))
    if count > most or not find_pairs(
        diagonal, beside, low, high, origin - tolerance, origin + tolerance, tolerance, values, columns
    ):
        return -1
    order, sizes = np.empty(count, dtype=np.int64), np.empty(count)
    first, last = 0, low
    for k in range(count):  # the farthest first
        up = last < count and (first >= low or values[0, last] - origin >= origin - values[0, first])
        order[k] = last if up else first
        sizes[k] = values[0, order[k]] - origin
        last, first = (last + 1, first) if up else (last, first + 1)
    reflect_columns(matrix, lengths, n_features, 0, columns)
    turn_columns(turning, columns)
    return coded_terms(sizes, order, columns, tolerance, fineness, rows)


@jit
def terms_of(
    matrix, lengths, values, turns, places, n_turns, origin, tolerance, fineness, most, positive, turning, rows
):
    """A row for each eigenvalue beyond the tolerance from ``origin``, the farthest first; returns how many."""
    n_features = len(values)
    chosen, taken = np.empty(min(most, n_features), dtype=np.int64), np.zeros(n_features, dtype=np.bool_)
    count = 0
    while count < len(chosen):
        best, farthest = -1, tolerance
        for k in range(n_features):
            x = values[k] - origin
            if (x > farthest or (-x > farthest and not positive)) and not taken[k]:
                best, farthest = k, abs(x)
        if best < 0:
            break
        taken[best], chosen[count] = True, best
        count += 1
    if count == 0:
        return 0
    columns = np.zeros((n_features, (count + LANES - 1) // LANES * LANES))
    for k in range(count):
        columns[chosen[k], k] = 1.0
    turn_back(turns, places, n_turns, columns)
    order, sizes = np.empty(count, dtype=np.int64), np.empty(count)
    for k in range(count):
        order[k], sizes[k] = k, values[chosen[k]] - origin
    reflect_columns(matrix, lengths, n_features, 0, columns)
    turn_columns(turning, columns)
    return coded_terms(sizes, order, columns, tolerance, fineness, rows)


@lean
def coded_terms(sizes, order, columns, tolerance, fineness, rows):
    """Eigenvectors, columns in an order, and their eigenvalues as rows; returns how many do not round to nothing.

    ``fineness`` is that of the rule as a plain pair, nu and the size up to which it goes.
    """
    n_features, found = columns.shape[0], 0
    for k in range(len(sizes)):
        x, column, total = sizes[k], order[k], 0.0
        for i in range(n_features):
            total += columns[i, column]
        scale = math.sqrt(abs(x)) if total >= 0.0 else -math.sqrt(abs(x))
        step = grid(fineness[0] * tolerance / math.sqrt(max(min(abs(x), fineness[1]), tolerance)))
        width, some = on_grid(step), False
        for i in range(n_features):
            code = rounded(scale * columns[i, column] / width)
            rows[found, 2 + i] = code
            some |= code != 0
        if some:
            rows[found, 0], rows[found, 1] = 1 if x > 0.0 else -1, step
            found += 1
    return found


@lean
def rounded(x):
    """The whole number next to x, a half towards 0, within bounds; of what is none, 0."""
    if math.isnan(x):
        return 0
    return np.int64(np.rint(min(float(LARGEST), max(-float(LARGEST), x - math.copysign(NO_HALF, x)))))


@lean
def grid(size):
    """The byte of the largest 2^(j/4) that is at most ``size``, as near as bytes go."""
    if not size > 0.0:
        return 0
    return int(min(127.0, max(-128.0, math.floor(4.0 * math.log2(size))))) + 128
