"""Arithmetic over single rows: sums in a written order, so that a row has the same bits in any company.

A row is given as its array and the position ``at`` where it starts: a slice would do, but numba counts references to
slices, and in loops as short as these the counting costs as much as the work. Rows are padded with zeros to whole
vectors; ``size`` is the padded length. Sums, distances and ``add_row`` also take rows that end with half a vector,
where that has no part in a group of four. Arrays of rows have two axes, scratch too, so that each function is compiled
for few signatures. The simulator calls these functions for N rows and a running agent for one, so both compute the same
bits.
"""

from __future__ import annotations

from laconic.engine.vectors import (
    ladder,
    lean,
    load,
    load_half,
    splat,
    store,
    store_half,
    sum_of,
    vector_fma,
    width_of,
)


@ladder
def dot_part(a, a_at, b, b_at, size):
    """Inner product up to the sum over lanes, in four interleaved vectors that meet pairwise."""
    width = width_of(a)
    s0 = s1 = s2 = s3 = splat(a.dtype.type(0))
    k = 0
    while k + 4 * width <= size:
        s0 = vector_fma(load(a, a_at + k), load(b, b_at + k), s0)
        s1 = vector_fma(load(a, a_at + k + width), load(b, b_at + k + width), s1)
        s2 = vector_fma(load(a, a_at + k + 2 * width), load(b, b_at + k + 2 * width), s2)
        s3 = vector_fma(load(a, a_at + k + 3 * width), load(b, b_at + k + 3 * width), s3)
        k += 4 * width
    while k + width <= size:
        s0 = vector_fma(load(a, a_at + k), load(b, b_at + k), s0)
        k += width
    if k < size:
        s0 = vector_fma(load_half(a, a_at + k), load_half(b, b_at + k), s0)
    return (s0 + s2) + (s1 + s3)


@lean
def dot_row(a, a_at, b, b_at, size):
    """Inner product, in one order on every machine."""
    return sum_of(dot_part(a, a_at, b, b_at, size))


@ladder
def distance_part(a, a_at, b, b_at, size):
    """Squared distance of two rows up to the sum over lanes, as ``dot_part`` sums."""
    width = width_of(a)
    s0 = s1 = s2 = s3 = splat(a.dtype.type(0))
    k = 0
    while k + 4 * width <= size:
        d0 = load(a, a_at + k) - load(b, b_at + k)
        d1 = load(a, a_at + k + width) - load(b, b_at + k + width)
        d2 = load(a, a_at + k + 2 * width) - load(b, b_at + k + 2 * width)
        d3 = load(a, a_at + k + 3 * width) - load(b, b_at + k + 3 * width)
        s0, s1 = vector_fma(d0, d0, s0), vector_fma(d1, d1, s1)
        s2, s3 = vector_fma(d2, d2, s2), vector_fma(d3, d3, s3)
        k += 4 * width
    while k + width <= size:
        d0 = load(a, a_at + k) - load(b, b_at + k)
        s0 = vector_fma(d0, d0, s0)
        k += width
    if k < size:
        d0 = load_half(a, a_at + k) - load_half(b, b_at + k)
        s0 = vector_fma(d0, d0, s0)
    return (s0 + s2) + (s1 + s3)


@lean
def distance_row(a, a_at, b, b_at, size):
    """Squared distance of two rows."""
    return sum_of(distance_part(a, a_at, b, b_at, size))


@lean
def add_row(total, total_at, factor, row, row_at, size):
    """Total <- total + factor * row: the dual step, and diffusion's combination with what was heard."""
    factor, width = splat(factor), width_of(total)
    k = 0
    while k + width <= size:
        store(total, total_at + k, load(total, total_at + k) + factor * load(row, row_at + k))
        k += width
    if k < size:
        store_half(total, total_at + k, load_half(total, total_at + k) + factor * load_half(row, row_at + k))


@lean
def subtract_row(a, a_at, b, b_at, difference, difference_at, size):
    """Difference <- a - b."""
    for k in range(0, size, width_of(a)):
        store(difference, difference_at + k, load(a, a_at + k) - load(b, b_at + k))


@lean
def copy_row(source, source_at, target, target_at, size):
    """Target <- source."""
    for k in range(0, size, width_of(source)):
        store(target, target_at + k, load(source, source_at + k))


@lean
def clear_row(row, at, size):
    """Row <- 0."""
    zero = splat(row.dtype.type(0))
    for k in range(0, size, width_of(row)):
        store(row, at + k, zero)


@lean
def mix_row(broadcast, at, neighbours, combination, start, stop, pull, size):
    """Sum over neighbours of a_ij (theta-hat_j - theta-hat_i), in the order of the neighbour list."""
    width = width_of(broadcast)
    if start == stop:
        clear_row(pull, 0, size)
        return
    k = 0
    while k + 2 * width <= size:  # two vectors at a time stay in registers from the first neighbour to the last
        k1, other, share = k + width, neighbours[start] * size, splat(combination[start])
        o0, o1 = load(broadcast, at + k), load(broadcast, at + k1)
        s0, s1 = share * (load(broadcast, other + k) - o0), share * (load(broadcast, other + k1) - o1)
        for n in range(start + 1, stop):
            other, share = neighbours[n] * size, splat(combination[n])
            s0 = s0 + share * (load(broadcast, other + k) - o0)
            s1 = s1 + share * (load(broadcast, other + k1) - o1)
        store(pull, k, s0)
        store(pull, k1, s1)
        k += 2 * width
    while k < size:
        own = load(broadcast, at + k)
        total = splat(combination[start]) * (load(broadcast, neighbours[start] * size + k) - own)
        for n in range(start + 1, stop):
            total = total + splat(combination[n]) * (load(broadcast, neighbours[n] * size + k) - own)
        store(pull, k, total)
        k += width


@lean
def mix_spoken_row(weights, broadcast, at, neighbours, combination, start, stop, spoken, pull, size):
    """Sum over neighbours that have just spoken of a_ij (theta-hat_j - theta_i), in the order of the neighbour list."""
    clear_row(pull, 0, size)
    for n in range(start, stop):
        if spoken[neighbours[n]]:
            other, share = neighbours[n] * size, splat(combination[n])
            for k in range(0, size, width_of(broadcast)):
                apart = load(broadcast, other + k) - load(weights, at + k)
                store(pull, k, load(pull, k) + share * apart)
