"""Arithmetic over single rows: sums in a written order, so that a row has the same bits in any company.

A row is given as its array and the position ``at`` where it starts: a slice would do, but numba counts references to
slices, and in loops as short as these the counting costs as much as the work. Rows are padded with zeros to whole
vectors; ``size`` is the padded length. Arrays of rows have two axes, scratch too, so that each function is compiled for
few signatures. The simulator calls these functions for N rows and a running agent for one, so both compute the same
bits.
"""

from __future__ import annotations

from laconic.engine.vectors import jit, load, splat, store, sum_of, vector_fma, width_of


@jit
def dot_row(a, a_at, b, b_at, size):
    """Inner product, summed in four interleaved vectors that meet pairwise: one order, on every machine."""
    width = width_of(a)
    s0 = s1 = s2 = s3 = splat(a.dtype.type(0))
    k = 0
    while k + 4 * width <= size:
        s0 = vector_fma(load(a, a_at + k), load(b, b_at + k), s0)
        s1 = vector_fma(load(a, a_at + k + width), load(b, b_at + k + width), s1)
        s2 = vector_fma(load(a, a_at + k + 2 * width), load(b, b_at + k + 2 * width), s2)
        s3 = vector_fma(load(a, a_at + k + 3 * width), load(b, b_at + k + 3 * width), s3)
        k += 4 * width
    while k < size:
        s0 = vector_fma(load(a, a_at + k), load(b, b_at + k), s0)
        k += width
    return sum_of((s0 + s2) + (s1 + s3))


@jit
def distance_row(a, a_at, b, b_at, size):
    """Squared distance of two rows, summed as ``dot_row`` sums."""
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
    while k < size:
        d0 = load(a, a_at + k) - load(b, b_at + k)
        s0 = vector_fma(d0, d0, s0)
        k += width
    return sum_of((s0 + s2) + (s1 + s3))


@jit
def add_row(total, total_at, factor, row, row_at, size):
    """Total <- total + factor * row: the dual step, and diffusion's combination with what was heard."""
    factor = splat(factor)
    for k in range(0, size, width_of(total)):
        store(total, total_at + k, load(total, total_at + k) + factor * load(row, row_at + k))


@jit
def subtract_row(a, a_at, b, b_at, difference, difference_at, size):
    """Difference <- a - b."""
    for k in range(0, size, width_of(a)):
        store(difference, difference_at + k, load(a, a_at + k) - load(b, b_at + k))


@jit
def copy_row(source, source_at, target, target_at, size):
    """Target <- source."""
    for k in range(0, size, width_of(source)):
        store(target, target_at + k, load(source, source_at + k))


@jit
def clear_row(row, at, size):
    """Row <- 0."""
    zero = splat(row.dtype.type(0))
    for k in range(0, size, width_of(row)):
        store(row, at + k, zero)


@jit
def disagree_row(broadcast, at, neighbours, start, stop, disagreement, size):
    """G = sum over neighbours of (theta-hat_i - theta-hat_j), in the order of the neighbour list."""
    width = width_of(broadcast)
    if start == stop:
        clear_row(disagreement, at, size)
        return
    subtract_row(broadcast, at, broadcast, neighbours[start] * size, disagreement, at, size)
    n = start + 1
    while n + 2 <= stop:  # two at a time halve the traffic; the order of the sum stays that of the list
        first, second = neighbours[n] * size, neighbours[n + 1] * size
        for k in range(0, size, width):
            own = load(broadcast, at + k)
            total = load(disagreement, at + k) + (own - load(broadcast, first + k))
            store(disagreement, at + k, total + (own - load(broadcast, second + k)))
        n += 2
    if n < stop:
        last = neighbours[n] * size
        for k in range(0, size, width):
            apart = load(broadcast, at + k) - load(broadcast, last + k)
            store(disagreement, at + k, load(disagreement, at + k) + apart)


@jit
def mix_row(broadcast, at, neighbours, combination, start, stop, pull, size):
    """Sum over neighbours of a_ij (theta-hat_j - theta-hat_i), in the order of the neighbour list."""
    width = width_of(broadcast)
    if start == stop:
        clear_row(pull, at, size)
        return
    other, share = neighbours[start] * size, splat(combination[start])
    for k in range(0, size, width):
        store(pull, at + k, share * (load(broadcast, other + k) - load(broadcast, at + k)))
    n = start + 1
    while n + 2 <= stop:  # two at a time, as above
        first, second = neighbours[n] * size, neighbours[n + 1] * size
        one, two = splat(combination[n]), splat(combination[n + 1])
        for k in range(0, size, width):
            own = load(broadcast, at + k)
            total = load(pull, at + k) + one * (load(broadcast, first + k) - own)
            store(pull, at + k, total + two * (load(broadcast, second + k) - own))
        n += 2
    if n < stop:
        last, share = neighbours[n] * size, splat(combination[n])
        for k in range(0, size, width):
            apart = load(broadcast, last + k) - load(broadcast, at + k)
            store(pull, at + k, load(pull, at + k) + share * apart)


@jit
def mix_spoken_row(weights, broadcast, at, neighbours, combination, start, stop, spoken, pull, size):
    """Sum over neighbours that have just spoken of a_ij (theta-hat_j - theta_i), in the order of the neighbour list."""
    clear_row(pull, at, size)
    for n in range(start, stop):
        if spoken[neighbours[n]]:
            other, share = neighbours[n] * size, splat(combination[n])
            for k in range(0, size, width_of(broadcast)):
                apart = load(broadcast, other + k) - load(weights, at + k)
                store(pull, at + k, load(pull, at + k) + share * apart)
