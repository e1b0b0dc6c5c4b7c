"""A symmetric matrix P in the rounds of WaveRLS: P x, P - u u', and both in one pass.

A matrix of D features is kept as D rows, padded to whole vectors, of which only the tiles on and below the diagonal are
read and written: half the memory that passes. Tiles on the diagonal are whole, and stay symmetric to the bit since both
halves are the same products. Rows may be longer than those of vectors, so that wide vectors start on a cache line.
"""

from __future__ import annotations

from laconic.engine.rows import clear_row
from laconic.engine.vectors import ladder, lean, load, splat, store, sums_of, vector_fma, vector_fnma
from laconic.engine.wide import (
    WIDE,
    load_like,
    load_twice,
    lower_halves,
    nothing_wide,
    splat_like,
    split,
    upper_halves,
)

_TILE = 4  # doubles of a vector


@lean
def gain_row(spread, at, phi, row, size, gain):
    """gain = P phi, P the matrix whose rows start at ``at``, phi a row of features."""
    zero, phi_at, stride = splat(0.0), row * size, spread.shape[1]
    for k in range(0, size, _TILE):
        store(gain, k, zero)
    for j in range(0, size, _TILE):
        row0 = at + j * stride
        row1, row2, row3 = row0 + stride, row0 + 2 * stride, row0 + 3 * stride
        own = load(phi, phi_at + j)
        f0, f1, f2, f3 = splat(phi[row, j]), splat(phi[row, j + 1]), splat(phi[row, j + 2]), splat(phi[row, j + 3])
        s0 = s1 = s2 = s3 = zero
        for k in range(0, j, _TILE):
            p0, p1 = load(spread, row0 + k), load(spread, row1 + k)
            p2, p3 = load(spread, row2 + k), load(spread, row3 + k)
            x = load(phi, phi_at + k)
            s0, s1, s2, s3 = vector_fma(p0, x, s0), vector_fma(p1, x, s1), vector_fma(p2, x, s2), vector_fma(p3, x, s3)
            one, other = vector_fma(p1, f1, p0 * f0), vector_fma(p3, f3, p2 * f2)
            store(gain, k, load(gain, k) + (one + other))
        s0, s1 = vector_fma(load(spread, row0 + j), own, s0), vector_fma(load(spread, row1 + j), own, s1)
        s2, s3 = vector_fma(load(spread, row2 + j), own, s2), vector_fma(load(spread, row3 + j), own, s3)
        store(gain, j, load(gain, j) + sums_of(s0, s1, s2, s3))


@lean
def lower_spread(spread, at, size, gains, own):
    """P <- P - u u', u a row of ``gains``."""
    first, stride = own * size, spread.shape[1]
    for j in range(0, size, _TILE):
        row0 = at + j * stride
        row1, row2, row3 = row0 + stride, row0 + 2 * stride, row0 + 3 * stride
        u0, u1 = splat(-gains[own, j]), splat(-gains[own, j + 1])
        u2, u3 = splat(-gains[own, j + 2]), splat(-gains[own, j + 3])
        for k in range(0, j + 1, _TILE):
            u = load(gains, first + k)
            store(spread, row0 + k, vector_fma(u0, u, load(spread, row0 + k)))
            store(spread, row1 + k, vector_fma(u1, u, load(spread, row1 + k)))
            store(spread, row2 + k, vector_fma(u2, u, load(spread, row2 + k)))
            store(spread, row3 + k, vector_fma(u3, u, load(spread, row3 + k)))


@ladder
def splats(array, at, like):
    """Four entries, a vector each with one of them in every lane, as long as ``like``."""
    return (
        splat_like(array, at, like),
        splat_like(array, at + 1, like),
        splat_like(array, at + 2, like),
        splat_like(array, at + 3, like),
    )


@ladder
def lower_tile(spread, at, u, others):
    """Entries of four rows from ``at`` on lose u times each of four numbers; returns what they are then."""
    stride, (u0, u1, u2, u3) = spread.shape[1], others
    p0 = vector_fnma(u0, u, load_like(spread, at, u))
    p1 = vector_fnma(u1, u, load_like(spread, at + stride, u))
    p2 = vector_fnma(u2, u, load_like(spread, at + 2 * stride, u))
    p3 = vector_fnma(u3, u, load_like(spread, at + 3 * stride, u))
    store(spread, at, p0)
    store(spread, at + stride, p1)
    store(spread, at + 2 * stride, p2)
    store(spread, at + 3 * stride, p3)
    return p0, p1, p2, p3


@ladder
def share_of(tile, factors):
    """What four rows times a number each come to."""
    p0, p1, p2, p3 = tile
    f0, f1, f2, f3 = factors
    return vector_fma(p1, f1, p0 * f0) + vector_fma(p3, f3, p2 * f2)


@ladder
def along(tile, x, sums):
    """Sums along each of four rows, and what a tile of them times x adds."""
    p0, p1, p2, p3 = tile
    s0, s1, s2, s3 = sums
    return vector_fma(p0, x, s0), vector_fma(p1, x, s1), vector_fma(p2, x, s2), vector_fma(p3, x, s3)


@ladder
def lower_four(spread, at, phi, phi_at, gains, first, gain, j):
    """``lower_and_gain`` of rows j to j + 3."""
    zero, row0 = splat(0.0), at + j * spread.shape[1]
    f, u, sums = splats(phi, phi_at + j, zero), splats(gains, first + j, zero), (zero, zero, zero, zero)
    for k in range(0, j, _TILE):
        tile = lower_tile(spread, row0 + k, load(gains, first + k), u)
        sums = along(tile, load(phi, phi_at + k), sums)
        store(gain, k, load(gain, k) + share_of(tile, f))
    tile = lower_tile(spread, row0 + j, load(gains, first + j), u)
    s0, s1, s2, s3 = along(tile, load(phi, phi_at + j), sums)
    store(gain, j, load(gain, j) + sums_of(s0, s1, s2, s3))


@ladder
def lower_two(spread, one, other, g, u, v, x, y, total):
    """Eight entries each of two rows, lowered, and what they add to the sums along them, side by side."""
    p, q = vector_fnma(u, g, load_like(spread, one, g)), vector_fnma(v, g, load_like(spread, other, g))
    store(spread, one, p)
    store(spread, other, q)
    total = vector_fma(lower_halves(p, q), x, total)
    return p, q, vector_fma(upper_halves(p, q), y, total)


@ladder
def lower_eight(spread, at, phi, phi_at, gains, first, gain, j):
    """``lower_and_gain`` of rows j to j + 7, j a multiple of eight, with their bits: eight columns at a time.

    Sums along rows r and r + 4 are in one register, so that they are of four lanes as everywhere.
    """
    stride, next_ = spread.shape[1], j + _TILE
    row0, row4 = at + j * stride, at + next_ * stride
    zero = nothing_wide(gain)
    f0, f1, f2, f3 = splats(phi, phi_at + j, zero)
    f4, f5, f6, f7 = splats(phi, phi_at + next_, zero)
    u0, u1, u2, u3 = splats(gains, first + j, zero)
    u4, u5, u6, u7 = splats(gains, first + next_, zero)
    s0 = s1 = s2 = s3 = zero
    for k in range(0, j, 2 * _TILE):
        x, y, g = load_twice(phi, phi_at + k), load_twice(phi, phi_at + k + _TILE), load_like(gains, first + k, zero)
        p, q, s0 = lower_two(spread, row0 + k, row4 + k, g, u0, u4, x, y, s0)
        one, under = p * f0, q * f4
        p, q, s1 = lower_two(spread, row0 + stride + k, row4 + stride + k, g, u1, u5, x, y, s1)
        one, under = vector_fma(p, f1, one), vector_fma(q, f5, under)
        p, q, s2 = lower_two(spread, row0 + 2 * stride + k, row4 + 2 * stride + k, g, u2, u6, x, y, s2)
        two, last = p * f2, q * f6
        p, q, s3 = lower_two(spread, row0 + 3 * stride + k, row4 + 3 * stride + k, g, u3, u7, x, y, s3)
        two, last = vector_fma(p, f3, two), vector_fma(q, f7, last)
        store(gain, k, load_like(gain, k, zero) + (one + two) + (under + last))
    (a0, b0), (a1, b1), (a2, b2), (a3, b3) = split(s0), split(s1), split(s2), split(s3)
    x, g = load(phi, phi_at + j), load(gains, first + j)
    f, u, v = splats(phi, phi_at + next_, x), splats(gains, first + j, x), splats(gains, first + next_, x)
    a0, a1, a2, a3 = along(lower_tile(spread, row0 + j, g, u), x, (a0, a1, a2, a3))
    tile = lower_tile(spread, row4 + j, g, v)
    store(gain, j, load(gain, j) + sums_of(a0, a1, a2, a3) + share_of(tile, f))
    sums = along(tile, x, (b0, b1, b2, b3))
    tile = lower_tile(spread, row4 + next_, load(gains, first + next_), v)
    b0, b1, b2, b3 = along(tile, load(phi, phi_at + next_), sums)
    store(gain, next_, load(gain, next_) + sums_of(b0, b1, b2, b3))


@lean
def lower_and_gain_narrow(spread, at, phi, row, size, gains, own, gain):
    """``lower_spread``, then ``gain_row``, with their bits, while a tile is at hand: memory passes once."""
    clear_row(gain, 0, size)
    for j in range(0, size, _TILE):
        lower_four(spread, at, phi, row * size, gains, own * size, gain, j)


@lean
def lower_and_gain_wide(spread, at, phi, row, size, gains, own, gain):
    """The same with registers of 64 bytes, and with the same bits."""
    clear_row(gain, 0, size)
    whole = size // (2 * _TILE) * (2 * _TILE)
    for j in range(0, whole, 2 * _TILE):
        lower_eight(spread, at, phi, row * size, gains, own * size, gain, j)
    if whole < size:
        lower_four(spread, at, phi, row * size, gains, own * size, gain, whole)


lower_and_gain = lower_and_gain_wide if WIDE else lower_and_gain_narrow
