"""APPLY for rows that were learned abreast: replicas move, and what is measured of a row is measured then.

A row's message is a function of its model and its replica, and both stay as they are from LEARN to APPLY. So nobody
keeps it: its codes are found again where they are needed, in a pass over models and replicas that waits for memory
anyway. Only those that come from elsewhere, or go there, are kept as bytes.
"""

from __future__ import annotations

from laconic.engine.abreast import sums_across
from laconic.engine.ahead import CACHED
from laconic.engine.coding import BYTE, DENSE, SAID, lattice, put_codes
from laconic.engine.lanes import lattices, load_few, load_few_bytes, store_few, where_equal
from laconic.engine.rows import distance_part, subtract_row
from laconic.engine.vectors import (
    keep,
    ladder,
    lean,
    load,
    load_bytes,
    load_some,
    prefetch_row,
    splat,
    splat_at,
    store,
    store_some,
    vector_floor,
    vector_fma,
    vector_larger,
    vector_smaller,
    width_of,
)

# Rows of what is found for each of the rows abreast.
ERROR, DISTANCE, EDGE, BASE, SHIFT, CELL, N_SETTLED = range(7)

# Of models that the cache does not hold, and their replicas, so many bytes are asked for in advance.
_AHEAD_BYTES = 2048


@ladder
def settle_at(
    weights, broadcast, at, k, half, mean, mask, zero, last, edge, base, shift, cell_width, quantized, error, distance
):  # fmt: skip
    """``settle_row`` for the vector at entry k, of which rows may have but ``half``.

    Returns ``error`` and ``distance`` with what it adds to them.
    """
    theta = load_some(weights, at + k, half)
    replica = theta
    if quantized:
        replica = load_some(broadcast, at + k, half)
        cell = vector_floor(((theta - replica) - edge) / cell_width)
        cell = vector_smaller(vector_larger(cell, zero), last)
        replica = replica + keep(base + (cell + shift) * cell_width, mask, k)
        apart = theta - replica
        error = vector_fma(apart, apart, error)
    store_some(broadcast, at + k, replica, half)
    apart = theta - load(mean, k)
    return error, vector_fma(apart, apart, distance)


@ladder
def settle_row(weights, broadcast, at, size, mean, mask, cells, edge, base, shift, cell_width, quantized):
    """theta-hat <- theta-hat + Q(theta - theta-hat), or theta where nothing is ``quantized``.

    Returns the parts of two squared distances as ``distance_part`` sums them: of the model from its replica, which is
    left out where that is the model, and of the model from the ``mean``.
    """
    real, width = weights.dtype.type, width_of(weights)
    zero, last = splat(real(0)), splat(real(cells - 1))
    e0 = e1 = e2 = e3 = d0 = d1 = d2 = d3 = zero
    k = 0
    while k + 4 * width <= size:
        e0, d0 = settle_at(
            weights, broadcast, at, k, False, mean, mask, zero, last, edge, base, shift, cell_width, quantized, e0, d0
        )  # fmt: skip
        e1, d1 = settle_at(
            weights, broadcast, at, k + width, False, mean, mask, zero, last, edge, base, shift, cell_width,
            quantized, e1, d1,
        )  # fmt: skip
        e2, d2 = settle_at(
            weights, broadcast, at, k + 2 * width, False, mean, mask, zero, last, edge, base, shift, cell_width,
            quantized, e2, d2,
        )  # fmt: skip
        e3, d3 = settle_at(
            weights, broadcast, at, k + 3 * width, False, mean, mask, zero, last, edge, base, shift, cell_width,
            quantized, e3, d3,
        )  # fmt: skip
        k += 4 * width
    while k + width <= size:
        e0, d0 = settle_at(
            weights, broadcast, at, k, False, mean, mask, zero, last, edge, base, shift, cell_width, quantized, e0, d0
        )  # fmt: skip
        k += width
    if k < size:
        e0, d0 = settle_at(
            weights, broadcast, at, k, True, mean, mask, zero, last, edge, base, shift, cell_width, quantized, e0, d0
        )  # fmt: skip
    return (e0 + e2) + (e1 + e3), (d0 + d2) + (d1 + d3)


@lean
def settle_rows(begin, end, alone, plan, rows, scratch, mean, errors, distances):
    """APPLY and MEASURE for rows of agents that learn here; who is ``alone`` is at no distance from the mean."""
    rounding, cells, fixed_low, fixed_high = plan.rounding, plan.cells, plan.low, plan.high
    weights, broadcast, spoken = rows.weights, rows.broadcast, rows.spoken
    mask, parts, peaks, found = scratch.mask, scratch.parts, scratch.peaks, scratch.found
    real, size, width = weights.dtype.type, weights.shape[1], width_of(weights)
    nothing, said, quantized = splat(real(0)), splat(real(SAID)), rounding != DENSE
    far, ahead = weights.size * weights.itemsize > CACHED, _AHEAD_BYTES // weights.itemsize
    for first in range(begin, end, width):
        n_rows = min(width, end - first)
        if quantized:
            low, high = splat(fixed_low), splat(fixed_high)
            if fixed_low == fixed_high:
                high = load_few(errors, first, n_rows)  # where LEARN has left it
                low = nothing - high
            edge, base, shift, cell_width = lattices(real, rounding, cells, low, high)
            store(found, EDGE * width, edge)
            store(found, BASE * width, base)
            store(found, SHIFT * width, shift)
            store(found, CELL * width, cell_width)
        for r in range(n_rows):
            at, error = (first + r) * size, nothing
            if far:
                prefetch_row(weights, at + ahead, size)
                prefetch_row(broadcast, at + ahead, size)
            if spoken[first + r] != SAID:
                distance = distance_part(weights, at, mean, 0, size)
            elif quantized:
                error, distance = settle_row(
                    weights, broadcast, at, size, mean, mask, cells, splat_at(found, EDGE * width + r),
                    splat_at(found, BASE * width + r), splat_at(found, SHIFT * width + r),
                    splat_at(found, CELL * width + r), True,
                )  # fmt: skip
            else:
                error, distance = settle_row(
                    weights, broadcast, at, size, mean, mask, cells, nothing, nothing, nothing, nothing, False
                )  # fmt: skip
            store(parts, r * width, error)
            store(peaks, r * width, distance)
        if quantized:
            sums_across(parts, found, ERROR * width)
            spoke, before = load_few_bytes(spoken, first, n_rows, said), load_few(errors, first, n_rows)
            store_few(errors, first, where_equal(spoke, said, load(found, ERROR * width), before), n_rows)
        if not alone:
            sums_across(peaks, found, DISTANCE * width)
            store_few(distances, first, load(found, DISTANCE * width), n_rows)


@lean
def measure_rows(begin, end, weights, mean, scratch, distances):
    """MEASURE: the squared distance of each model from their mean."""
    parts, found = scratch.parts, scratch.found
    size, width = weights.shape[1], width_of(weights)
    for first in range(begin, end, width):
        n_rows = min(width, end - first)
        for r in range(n_rows):
            store(parts, r * width, distance_part(weights, (first + r) * size, mean, 0, size))
        sums_across(parts, found, DISTANCE * width)
        store_few(distances, first, load(found, DISTANCE * width), n_rows)


@lean
def apply_rows(begin, end, plan, rows, scratch):
    """APPLY for rows whose codes were kept: theta-hat <- theta-hat + Q(h) for all of them that have SAID something."""
    rounding, cells, fixed_low, fixed_high = plan.rounding, plan.cells, plan.low, plan.high
    _, _, broadcast, _, spoken, codes, scales, _ = rows
    mask, size, real = scratch.mask, broadcast.shape[1], broadcast.dtype.type
    byte = splat(real(BYTE))
    for i in range(begin, end):
        if spoken[i] != SAID:
            continue
        low, high = fixed_low, fixed_high
        if low == high:
            high = real(scales[i])
            low = -high
        _, from_, by, of = lattice(real, rounding, cells, low, high)
        base, shift, cell_width = splat(from_), splat(by), splat(of)
        at, codes_at = i * size, i * codes.shape[1]
        for k in range(0, size, width_of(broadcast)):
            cell = load_bytes(codes, codes_at + k, base)
            if cells > BYTE:
                cell = cell + load_bytes(codes, codes_at + size + k, base) * byte
            value = keep(base + (cell + shift) * cell_width, mask, k)
            store(broadcast, at + k, load(broadcast, at + k) + value)


@lean
def code_rows(members, plan, rows, scratch, errors):
    """Between LEARN and APPLY: codes and scales of some rows that were learned abreast, for who is elsewhere."""
    weights, broadcast, codes = rows.weights, rows.broadcast, rows.codes
    size = weights.shape[1]
    for k in range(members.size):
        i = members[k]
        if rows.spoken[i] == SAID:
            low, high = plan.low, plan.high
            if low == high:
                rows.scales[i] = errors[i]
                high, low = errors[i], -errors[i]
            subtract_row(weights, i * size, broadcast, i * size, scratch.innovation, 0, size)
            put_codes(
                scratch.innovation, plan.n_features, size, plan.rounding, plan.cells, low, high, broadcast, i * size,
                codes, i * codes.shape[1],
            )  # fmt: skip
