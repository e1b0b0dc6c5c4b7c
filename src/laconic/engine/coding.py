"""The channel over single rows: censor, then quantize; and the bits that travel.

A round of many agents speaks in two halves. ``encode_row`` decides and leaves a row's codes, a byte or two an entry;
``apply_row`` adds them to the replica, when nobody reads that any more.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.channel.entropy import STEPS
from laconic.engine.budgeting import N_REMEMBERED, admits, pays
from laconic.engine.entropy_coding import choose_codes, write_codes
from laconic.engine.rows import copy_row, distance_row, dot_row, subtract_row
from laconic.engine.vectors import (
    from_bits,
    ladder,
    largest_of,
    lean,
    load,
    load_bytes,
    splat,
    store,
    store_bytes,
    to_bits,
    vector_abs,
    vector_floor,
    vector_larger,
    vector_smaller,
    width_of,
)

DENSE, RISE, TREAD, ENTROPY = range(4)
#: What a row has said in a round: nothing, its codes, or that nothing has changed.
SILENT, SAID, SAME = range(3)
BYTE = 256  # more cells than this take two bytes each, the higher ones behind the lower ones of the whole row

_FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


@lean
def upward_float32(peak):
    """The least float32 that is not below ``peak`` (at most the largest finite one): the scale that travels."""
    if peak > _FLOAT32_MAX:
        return np.float32(_FLOAT32_MAX)
    rounded = np.float32(peak)
    if rounded < peak:
        rounded = from_bits(np.uint32(to_bits(rounded) + np.uint32(1)))
    return rounded


@lean
def peak_row(row, size):
    """The largest magnitude in a row."""
    peak = splat(row.dtype.type(0))
    for k in range(0, size, width_of(row)):
        peak = vector_larger(vector_abs(load(row, k)), peak)
    return largest_of(peak)


@lean
def lattice(real, rounding, cells, low, high):
    """Lower edge, and base, shift, width such that code k stands for ``base + (k + shift) * width``.

    The same lines as ``channel.Quantizer``, to the bit.
    """
    half = real(0.5)
    if rounding == RISE:
        return low, low, half, (high - low) / real(cells)
    width = (high - low) / real(cells - 1)
    lowest = real(np.rint(low / width))
    return (lowest - half) * width, real(0.0), lowest, width


@lean
def code_row(innovation, innovation_at, size, rounding, cells, low, high, code, code_at):
    """Code <- the cells of an innovation: the first half of ``add_quantized_row``, where a message is to be sent."""
    real = innovation.dtype.type
    edge, _, _, width = lattice(real, rounding, cells, low, high)
    zero, last, edge, width = splat(real(0.0)), splat(real(cells - 1)), splat(edge), splat(width)
    for k in range(0, size, width_of(innovation)):
        cell = vector_floor((load(innovation, innovation_at + k) - edge) / width)
        store(code, code_at + k, vector_smaller(vector_larger(cell, zero), last))


@lean
def add_code_row(code, code_at, n_features, size, rounding, cells, low, high, broadcast, at):
    """theta-hat <- theta-hat + Q(h), from the cells: the second half, for who sent a message and who received it."""
    real = code.dtype.type
    _, base, shift, width = lattice(real, rounding, cells, low, high)
    base, shift, width = splat(base), splat(shift), splat(width)
    for k in range(0, size, width_of(code)):
        value = base + (load(code, code_at + k) + shift) * width
        store(broadcast, at + k, load(broadcast, at + k) + value)
    for k in range(n_features, size):
        broadcast[at // size, k] = 0


@ladder
def put_codes(innovation, n_features, size, rounding, cells, low, high, broadcast, at, codes, codes_at):
    """The cells of an innovation into bytes; in its place comes theta-hat + Q(h), the replica as it will be."""
    real = innovation.dtype.type
    edge, base, shift, width = lattice(real, rounding, cells, low, high)
    zero, last = splat(real(0.0)), splat(real(cells - 1))
    edge, base, shift, width = splat(edge), splat(base), splat(shift), splat(width)
    byte, part = splat(real(BYTE)), splat(real(1.0 / BYTE))
    for k in range(0, size, width_of(innovation)):
        cell = vector_floor((load(innovation, k) - edge) / width)
        cell = vector_smaller(vector_larger(cell, zero), last)
        if cells > BYTE:
            above = vector_floor(cell * part)
            store_bytes(codes, codes_at + size + k, above)
            store_bytes(codes, codes_at + k, cell - above * byte)
        else:
            store_bytes(codes, codes_at + k, cell)
        store(innovation, k, load(broadcast, at + k) + (base + (cell + shift) * width))
    for k in range(n_features, size):
        innovation[0, k] = 0  # zero need not be a code word, but the padding stays zero


@ladder
def take_codes(codes, codes_at, n_features, size, rounding, cells, low, high, broadcast, at):
    """theta-hat <- theta-hat + Q(h), from the bytes that ``put_codes`` wrote."""
    real = broadcast.dtype.type
    _, base, shift, width = lattice(real, rounding, cells, low, high)
    base, shift, width, byte = splat(base), splat(shift), splat(width), splat(real(BYTE))
    for k in range(0, size, width_of(broadcast)):
        cell = load_bytes(codes, codes_at + k, base)
        if cells > BYTE:
            cell = cell + load_bytes(codes, codes_at + size + k, base) * byte
        store(broadcast, at + k, load(broadcast, at + k) + (base + (cell + shift) * width))
    for k in range(n_features, size):
        broadcast[at // size, k] = 0


@lean
def put_chosen(step, chosen, n_features, size, broadcast, row, innovation, codes):
    """As ``put_codes``, for the codes from -255 to 255 of an entropy code."""
    real = broadcast.dtype.type
    for k in range(n_features):
        code = chosen[k] + BYTE
        codes[row, k], codes[row, size + k] = code & 255, code >> 8
        innovation[0, k] = broadcast[row, k] + real(np.float64(chosen[k]) * STEPS[step])


@lean
def take_chosen(step, codes, n_features, size, broadcast, row):
    """As ``take_codes``, for those of ``put_chosen``."""
    real = broadcast.dtype.type
    for k in range(n_features):
        code = np.int64(codes[row, k]) + BYTE * np.int64(codes[row, size + k]) - BYTE
        broadcast[row, k] += real(np.float64(code) * STEPS[step])


@lean
def pack_row(code, row, n_features, bits, packed, at):
    """The cells of a row into ``bits`` bits each, the first in the lowest bits, from byte ``at`` of ``packed`` on."""
    waiting, n_waiting = np.uint32(0), 0
    for k in range(n_features):
        waiting |= np.uint32(np.uint32(code[row, k]) << np.uint32(n_waiting))
        n_waiting += bits
        while n_waiting >= 8:
            packed[at] = np.uint8(waiting & np.uint32(255))
            waiting >>= np.uint32(8)
            n_waiting -= 8
            at += 1
    if n_waiting:
        packed[at] = np.uint8(waiting)


@lean
def unpack_row(packed, at, n_features, bits, code, row):
    """The inverse of ``pack_row``; False if the bits left over at the end are not zero."""
    waiting, n_waiting = np.uint32(0), 0
    mask = np.uint32((1 << bits) - 1)
    for k in range(n_features):
        while n_waiting < bits:
            waiting |= np.uint32(np.uint32(packed[at]) << np.uint32(n_waiting))
            n_waiting += 8
            at += 1
        code[row, k] = waiting & mask
        waiting >>= np.uint32(bits)
        n_waiting -= bits
    return waiting == 0


@lean
def count_outside(innovation, row, n_features, low, high):
    """How many entries lie outside the range and so saturate."""
    outside = 0
    for k in range(n_features):
        outside += (innovation[row, k] < low) | (innovation[row, k] > high)
    return outside


@lean
def range_row(innovation, n_features, size, low, high):
    """The quantizer's range for a message and how many entries it saturates; given ``low == high`` it adapts.

    The range of a message of zeros is empty.
    """
    real = innovation.dtype.type
    if low != high:
        return low, high, count_outside(innovation, 0, n_features, low, high)
    peak = peak_row(innovation, size)
    if peak == 0:
        return real(0), real(0), 0
    high = real(upward_float32(peak))
    return -high, high, (count_outside(innovation, 0, n_features, -high, high) if peak > high else 0)


@ladder
def encode_row(
    weights, broadcast, at, n_features, size, threshold, purse, memory, message_bits,
    rounding, cells, low, high, coarseness, dead_zone, innovation, chosen, written, codes, scales,
):  # fmt: skip
    """Say what the censor lets through, into the row's codes and scale; the replica stays as it is.

    Returns (SILENT, SAID or SAME; bits; entries outside the range; squared error of the replica once it is told).
    ``chosen`` and ``written`` are room for the codes and bytes of an entropy code. A row that is not quantized leaves
    no codes: its message is the model.
    """
    real = weights.dtype.type
    row = at // size
    subtract_row(weights, at, broadcast, at, innovation, 0, size)
    square = dot_row(innovation, 0, innovation, 0, size)
    norm, remembered = math.sqrt(square), row * N_REMEMBERED
    if not admits(norm, threshold, purse, memory, remembered):
        return SILENT, 0, 0, square
    if rounding == ENTROPY:
        if not norm < np.inf:  # the run has diverged, which its energy tells
            return SAME, 0, 0, square
        step, outside = choose_codes(innovation, n_features, coarseness, dead_zone, chosen)
        bits = 8 * write_codes(step, chosen, n_features, written)
        if not pays(norm, bits, purse, memory, remembered):
            return SILENT, 0, 0, square
        scales[row] = step
        put_chosen(step, chosen, n_features, size, broadcast, row, innovation, codes)
        return SAID, bits, outside, distance_row(weights, at, innovation, 0, size)
    if not pays(norm, message_bits, purse, memory, remembered):
        return SILENT, 0, 0, square
    if rounding == DENSE:
        return SAID, message_bits, 0, real(0)
    low, high, outside = range_row(innovation, n_features, size, low, high)
    if low == high:  # h = 0, and so is Q(h)
        return SAME, message_bits, 0, square
    scales[row] = high
    put_codes(innovation, n_features, size, rounding, cells, low, high, broadcast, at, codes, row * codes.shape[1])
    return SAID, message_bits, outside, distance_row(weights, at, innovation, 0, size)


@ladder
def apply_row(weights, broadcast, row, n_features, size, rounding, cells, low, high, codes, scales):
    """Let the replica of a row that has SAID something know it: the second half of ``encode_row``.

    Rows of ``broadcast`` behind those of ``weights`` are replicas of agents that learn elsewhere; where nothing is
    quantized their new models have been put there already.
    """
    real = broadcast.dtype.type
    at = row * size
    if rounding == DENSE:
        if row < weights.shape[0]:
            copy_row(weights, at, broadcast, at, size)
    elif rounding == ENTROPY:
        take_chosen(int(scales[row]), codes, n_features, size, broadcast, row)
    else:
        if low == high:
            high = real(scales[row])
            low = -high
        take_codes(codes, row * codes.shape[1], n_features, size, rounding, cells, low, high, broadcast, at)
