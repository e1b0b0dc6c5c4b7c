"""One agent's share of a round, and nothing else: losses, learners and channel over single rows.

A row is given as its array and the position ``at`` where it starts: a slice would do, but numba counts references to
slices, and in loops as short as these the counting costs as much as the work. Rows are padded with zeros to whole
vectors; ``size`` is the padded length. All arrays of rows have two axes, scratch too, so that each function is compiled
for one signature. The simulator calls these functions for N rows and a running agent for one, so
both compute the same bits. Whoever changes this file changes ``kernels.STAMP`` too.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.vectors import (
    from_bits,
    jit,
    largest_of,
    load,
    splat,
    store,
    sum_of,
    to_bits,
    vector_abs,
    vector_floor,
    vector_fma,
    vector_larger,
    vector_smaller,
    width_of,
)

SQUARED, LOGISTIC, HINGE = range(3)
DENSE, RISE, TREAD = range(3)

_FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


# --------------------------------------------------------------------------------------------------------------------
# Losses: the slope l'(m, y), and the slope at the solution of c m + l'(m) = a
# --------------------------------------------------------------------------------------------------------------------


@jit
def slope_of(loss, margin, label):
    """Derivative of the loss in the prediction; a missing label (NaN) pulls nowhere."""
    if math.isnan(label):
        return 0.0
    if loss == SQUARED:
        return 2.0 * (margin - label)
    if loss == LOGISTIC:
        return -label / (1.0 + math.exp(label * margin))
    return -label if label * margin < 1.0 else 0.0


@jit
def value_of(loss, margin, label):
    """The loss itself; NaN where the label is missing."""
    if loss == SQUARED:
        return (margin - label) ** 2
    if loss == LOGISTIC:
        return max(0.0, -label * margin) + math.log1p(math.exp(-abs(label * margin)))
    return max(0.0, 1.0 - label * margin)


@jit
def proximal_slope(loss, a, c, label):
    """``s = l'(m, y)`` where ``m = (a - s) / c``: the scalar that DOKL's exact update comes down to."""
    if math.isnan(label):
        return 0.0
    if loss == SQUARED:
        return 2.0 * (a - c * label) / (c + 2.0)
    if loss == HINGE:
        return label * min(0.0, max(-1.0, label * a - c))
    # Logistic. With u = y m the equation is c u - y a - 1/(1 + e^u) = 0, increasing in u, its root in [ya/c, (ya+1)/c].
    target = label * a
    low, high = target / c, (target + 1.0) / c
    u = 0.5 * (low + high)
    for _ in range(100):
        p = 1.0 / (1.0 + math.exp(u))
        residual = c * u - target - p
        if residual > 0.0:
            high = u
        else:
            low = u
        newton = u - residual / (c + p * (1.0 - p))
        following = newton if low <= newton <= high else 0.5 * (low + high)
        if abs(following - u) <= 2e-16 * abs(u):
            u = following
            break
        u = following
    return -label / (1.0 + math.exp(u))


# --------------------------------------------------------------------------------------------------------------------
# One agent's rows
# --------------------------------------------------------------------------------------------------------------------


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
def linearized_row(weights, duals, disagreement, at, phi, phi_at, size, slope, shrink, rho, gain):
    """ODKLA: theta <- theta - gain [slope phi + shrink theta + rho g + gamma], gain = 1/(eta + 2 rho d)."""
    slope, shrink, rho, gain = splat(slope), splat(shrink), splat(rho), splat(gain)
    for k in range(0, size, width_of(weights)):
        theta = load(weights, at + k)
        gradient = slope * load(phi, phi_at + k) + shrink * theta
        pull = rho * load(disagreement, at + k) + load(duals, at + k)
        store(weights, at + k, theta - gain * (gradient + pull))


@jit
def proximal_row(
    weights, duals, disagreement, broadcast, at, phi, phi_at, size, label, loss, eta, rho, degree, shrink, v
):
    """DOKL: theta <- (v - s phi)/c with v = eta theta + rho (2 d theta-hat - g) - gamma; ``v`` is room to work in."""
    real = weights.dtype.type
    width = width_of(weights)
    twice = real(2.0) * degree
    curvature = eta + twice * rho + shrink
    eta, rho, twice = splat(eta), splat(rho), splat(twice)
    for k in range(0, size, width):
        together = twice * load(broadcast, at + k) - load(disagreement, at + k)
        store(v, k, eta * load(weights, at + k) + rho * together - load(duals, at + k))
    slope = splat(real(proximal_slope(loss, dot_row(phi, phi_at, v, 0, size), curvature, label)))
    inverse = splat(real(1.0) / curvature)
    for k in range(0, size, width):
        store(weights, at + k, (load(v, k) - slope * load(phi, phi_at + k)) * inverse)


@jit
def descend_row(weights, at, phi, phi_at, size, slope, shrink, step):
    """Gradient step: theta <- theta - step [slope phi + shrink theta]."""
    slope, shrink, step = splat(slope), splat(shrink), splat(step)
    for k in range(0, size, width_of(weights)):
        theta = load(weights, at + k)
        store(weights, at + k, theta - step * (slope * load(phi, phi_at + k) + shrink * theta))


@jit
def combine_descend_row(weights, at, mixing, pull, phi, phi_at, size, slope, shrink, step):
    """Combine, then adapt, in one pass: psi = theta + mixing * pull, theta <- psi - step [slope phi + shrink psi]."""
    mixing, slope, shrink, step = splat(mixing), splat(slope), splat(shrink), splat(step)
    for k in range(0, size, width_of(weights)):
        psi = load(weights, at + k) + mixing * load(pull, at + k)
        store(weights, at + k, psi - step * (slope * load(phi, phi_at + k) + shrink * psi))


@jit
def add_row(total, total_at, factor, row, row_at, size):
    """Total <- total + factor * row: the dual step, and diffusion's combination with what was heard."""
    factor = splat(factor)
    for k in range(0, size, width_of(total)):
        store(total, total_at + k, load(total, total_at + k) + factor * load(row, row_at + k))


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


# --------------------------------------------------------------------------------------------------------------------
# The channel: censor, then quantize
# --------------------------------------------------------------------------------------------------------------------


@jit
def upward_float32(peak):
    """The least float32 that is not below ``peak`` (at most the largest finite one): the scale that travels."""
    if peak > _FLOAT32_MAX:
        return np.float32(_FLOAT32_MAX)
    rounded = np.float32(peak)
    if rounded < peak:
        rounded = from_bits(np.uint32(to_bits(rounded) + np.uint32(1)))
    return rounded


@jit
def peak_row(row, size):
    """The largest magnitude in a row."""
    peak = splat(row.dtype.type(0))
    for k in range(0, size, width_of(row)):
        peak = vector_larger(vector_abs(load(row, k)), peak)
    return largest_of(peak)


@jit
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


@jit
def add_quantized_row(innovation, n_features, size, rounding, cells, low, high, broadcast, at):
    """theta-hat <- theta-hat + Q(h) of eq. (quantizer)."""
    real = innovation.dtype.type
    edge, base, shift, width = lattice(real, rounding, cells, low, high)
    zero, last = splat(real(0.0)), splat(real(cells - 1))
    edge, base, shift, width = splat(edge), splat(base), splat(shift), splat(width)
    for k in range(0, size, width_of(innovation)):
        cell = vector_floor((load(innovation, k) - edge) / width)
        cell = vector_smaller(vector_larger(cell, zero), last)
        store(broadcast, at + k, load(broadcast, at + k) + (base + (cell + shift) * width))
    for k in range(n_features, size):
        broadcast[at // size, k] = 0  # zero need not be a code word, but the padding stays zero


@jit
def code_row(innovation, innovation_at, size, rounding, cells, low, high, code, code_at):
    """Code <- the cells of an innovation: the first half of ``add_quantized_row``, where a message is to be sent."""
    real = innovation.dtype.type
    edge, _, _, width = lattice(real, rounding, cells, low, high)
    zero, last, edge, width = splat(real(0.0)), splat(real(cells - 1)), splat(edge), splat(width)
    for k in range(0, size, width_of(innovation)):
        cell = vector_floor((load(innovation, innovation_at + k) - edge) / width)
        store(code, code_at + k, vector_smaller(vector_larger(cell, zero), last))


@jit
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


@jit
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


@jit
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


@jit
def count_outside(innovation, n_features, low, high):
    """How many entries lie outside the range and so saturate."""
    outside = 0
    for k in range(n_features):
        outside += (innovation[0, k] < low) | (innovation[0, k] > high)
    return outside


@jit
def range_row(innovation, n_features, size, low, high):
    """The quantizer's range for a message and how many entries it saturates; given ``low == high`` it adapts.

    The range of a message of zeros is empty.
    """
    real = innovation.dtype.type
    if low != high:
        return low, high, count_outside(innovation, n_features, low, high)
    peak = peak_row(innovation, size)
    if peak == 0:
        return real(0), real(0), 0
    high = real(upward_float32(peak))
    return -high, high, (count_outside(innovation, n_features, -high, high) if peak > high else 0)


@jit
def transmit_row(weights, broadcast, at, n_features, size, threshold, rounding, cells, low, high, innovation):
    """Send what the censor lets through; returns (sent, entries outside the range, squared error of the replica)."""
    real = weights.dtype.type
    subtract_row(weights, at, broadcast, at, innovation, 0, size)
    square = dot_row(innovation, 0, innovation, 0, size)
    if math.sqrt(square) < threshold:
        return False, 0, square
    if rounding == DENSE:
        copy_row(weights, at, broadcast, at, size)
        return True, 0, real(0)
    low, high, outside = range_row(innovation, n_features, size, low, high)
    if low == high:  # h = 0, and so is Q(h)
        return True, 0, square
    add_quantized_row(innovation, n_features, size, rounding, cells, low, high, broadcast, at)
    return True, outside, distance_row(weights, at, broadcast, at, size)
