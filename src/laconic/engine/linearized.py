"""ODKLA and QC-ODKLA for blocks of rows, as many abreast as a vector has lanes.

What ``hear_row``, ``learn_row``, ``encode_row`` and ``apply_row`` do to one row after the other is done in fewer
passes: here dual, step and what is asked of the innovation; in ``settling`` codes and all that follows from them. Each
sum has the order that it has there, so the bits are the same.
"""

from __future__ import annotations

import math

from laconic.engine.abreast import disagree_row, peaks_across, sums_across
from laconic.engine.ahead import CACHED, prefetch_ahead, prefetch_distant
from laconic.engine.budgeting import BY_ROUND, N_REMEMBERED, admits, pays
from laconic.engine.coding import DENSE, SAID, SAME, upward_float32
from laconic.engine.lanes import (
    lengths_of,
    load_few,
    store_few,
    store_few_bytes,
    upward,
    where_equal,
    where_less,
    where_numbers,
)
from laconic.engine.rows import add_row, clear_row, dot_part, dot_row
from laconic.engine.steps import SQUARED, slope_of
from laconic.engine.summing import MAGIC_32, MAGIC_64
from laconic.engine.vectors import (
    add_bits,
    all_less,
    ladder,
    lean,
    load,
    load_some,
    splat,
    splat_at,
    store,
    store_some,
    vector_abs,
    vector_fma,
    vector_larger,
    vector_sqrt,
    width_of,
)

# Rows of what is found for each of the rows abreast.
MARGIN, SQUARE, PEAK, SLOPE, GAIN, SPEAKS, N_LEARNED = range(7)


@ladder
def step_at(
    weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k, half, answer, asks, slope, shrink, rho, gain, factor,
    magic, units, top, peak, square,
):  # fmt: skip
    """``step_row`` for the vector at entry k, of which rows may have but ``half``.

    Returns what was given as ``top``, ``peak`` and ``square``, moved on.
    """
    theta, gamma = load_some(weights, at + k, half), load_some(duals, at + k, half)
    force = rho * load_some(pull, pull_at + k, half)
    if answer:
        gamma = gamma + force
        store_some(duals, at + k, gamma, half)
    theta = theta - gain * ((slope * load(phi, phi_at + k) + shrink * theta) + (force + gamma))
    store_some(weights, at + k, theta, half)
    add_bits(units, k, vector_fma(theta, factor, magic))
    top = vector_larger(vector_abs(theta), top)
    if asks:
        h = theta - load_some(broadcast, at + k, half)
        peak = vector_larger(vector_abs(h), peak)
        square = vector_fma(h, h, square)
    return top, peak, square


@ladder
def step_row(
    weights, duals, broadcast, at, pull, pull_at, phi, phi_at, size, answer, asks, slope, shrink, rho, gain, factor,
    magic, units, tops,
):  # fmt: skip
    """The dual step of the last round and the primal step of this one; tallies the model.

    Returns the parts of the innovation's peak and, as ``dot_part`` sums, of its square, unless nobody ``asks``.
    """
    real, width = weights.dtype.type, width_of(weights)
    shrink, rho, factor, magic = splat(shrink), splat(rho), splat(factor), splat(magic)
    top, peak = load(tops, 0), splat(real(0))
    s0 = s1 = s2 = s3 = splat(real(0))
    k = 0
    while k + 4 * width <= size:
        top, peak, s0 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k, False, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s0,
        )  # fmt: skip
        top, peak, s1 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k + width, False, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s1,
        )  # fmt: skip
        top, peak, s2 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k + 2 * width, False, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s2,
        )  # fmt: skip
        top, peak, s3 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k + 3 * width, False, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s3,
        )  # fmt: skip
        k += 4 * width
    while k + width <= size:
        top, peak, s0 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k, False, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s0,
        )  # fmt: skip
        k += width
    if k < size:
        top, peak, s0 = step_at(
            weights, duals, broadcast, at, pull, pull_at, phi, phi_at, k, True, answer, asks, slope,
            shrink, rho, gain, factor, magic, units, top, peak, s0,
        )  # fmt: skip
    store(tops, 0, top)
    return peak, (s0 + s2) + (s1 + s3)


@lean
def learn_rows(
    begin, end, t, phi, phi_row, answer, limit, threshold, rate, scale,
    plan, graph, rows, scratch, errors, record, labels,
):  # fmt: skip
    """LEARN for the rows from ``begin`` to ``end``, whose features begin at ``phi_row``; the row that diverged, or -1.

    What is tallied is still to be folded: as many rows as there are, at most ``FOLDED``. In ``errors`` who speaks in
    codes leaves their scale, until ``settle_rows`` knows the error. What is one number a row is a lane of a vector.
    """
    _, loss, rho, shrink, _, rounding, _, fixed_low, fixed_high, _, n_features, _, unit, _ = plan[:14]
    message_bits, purse = plan.message_bits, plan.purse
    starts, neighbours, _, distant_starts, distant = graph
    weights, duals, broadcast, _, spoken, _, _, memory = rows
    _, _, pull, _, _, _, parts, peaks, found, _, _, units, tops, _ = scratch
    predictions, sent, outside, _, _, _, _ = record
    real, size, width = weights.dtype.type, weights.shape[1], width_of(weights)
    n_agents, whole, length = labels.shape[1], pull.shape[1], phi.shape[1]
    factor, magic = real(scale), real(MAGIC_32 if weights.itemsize == 4 else MAGIC_64)
    by_round = purse.kind == BY_ROUND
    direct = rounding == DENSE and threshold <= 0.0 and by_round
    far = weights.size * weights.itemsize > CACHED
    zero, one, two = splat(real(0)), splat(real(1)), splat(real(2))
    # A norm of this precision is below a threshold if it is below the least number of that precision that is not.
    limits, least = splat(real(limit)), splat(real(upward_float32(threshold) if weights.itemsize == 4 else threshold))
    for first in range(begin, end, width):
        n_rows, here = min(width, end - first), t * n_agents + first
        if far:
            prefetch_distant(broadcast, distant_starts, distant, first, width)
        for r in range(n_rows):
            i, pull_at = first + r, r * whole
            if far:
                prefetch_ahead(weights, duals, broadcast, i)
            if starts[i] < starts[i + 1]:
                disagree_row(broadcast, i * size, neighbours, starts[i], starts[i + 1], pull, pull_at, whole)
            else:
                clear_row(pull, pull_at, whole)
            phi_at = (phi_row + i - begin) * length
            store(parts, r * width, dot_part(weights, i * size, phi, phi_at, size))
        sums_across(parts, found, MARGIN * width)

        bad, margins, degrees = -1, load(found, MARGIN * width), lengths_of(starts, first, n_rows, one)
        store_few(predictions, here, margins, n_rows)
        if not all_less(vector_abs(margins), limits):  # rare: some row diverges, if none of those behind the last one
            for r in range(n_rows):
                if not abs(found[MARGIN, r]) <= limit:
                    bad, n_rows = here + r, r
                    break
        if loss == SQUARED and unit:
            label = load_few(labels, here, n_rows)
            store(found, SLOPE * width, where_numbers(label, label, two * (margins - label), zero))
        else:
            for r in range(n_rows):
                phi_at = (phi_row + first + r - begin) * length
                square = real(1.0) if unit else dot_row(phi, phi_at, phi, phi_at, length)
                slope = real(slope_of(loss, found[MARGIN, r], labels[t, first + r]))
                found[SLOPE, r] = (real(1.0) / max(real(1.0), square)) * slope
        store(found, GAIN * width, one / (splat(rate) + splat(real(2.0) * rho) * degrees))

        for r in range(n_rows):
            phi_at = (phi_row + first + r - begin) * length
            peak_part, square_part = step_row(
                weights, duals, broadcast, (first + r) * size, pull, r * whole, phi, phi_at, size, answer, not direct,
                splat_at(found, SLOPE * width + r), shrink, rho, splat_at(found, GAIN * width + r), factor, magic,
                units, tops,
            )  # fmt: skip
            if not direct:
                store(peaks, r * width, peak_part)
                store(parts, r * width, square_part)

        # Nothing is said but what the censor lets through, and where h = 0, and so is Q(h), that nothing has changed.
        speaks, peak, square = one, zero, zero
        if not direct:
            sums_across(parts, found, SQUARE * width)
            peaks_across(peaks, found, PEAK * width)
            peak, square = load(found, PEAK * width), load(found, SQUARE * width)
            if by_round:
                speaks = where_less(vector_sqrt(square), least, zero, one)
            else:
                for r in range(n_rows):
                    norm, remembered = math.sqrt(found[SQUARE, r]), (first + r) * N_REMEMBERED
                    found[SPEAKS, r] = admits(norm, threshold, purse, memory, remembered) and pays(
                        norm, message_bits, purse, memory, remembered
                    )
                speaks = load(found, SPEAKS * width)
        said, high, most = speaks, zero, zero
        if rounding != DENSE:
            high = splat(fixed_high)
            most = splat(min(fixed_high, -fixed_low))
            if fixed_low == fixed_high:
                high = most = upward(peak)
                said = where_less(zero, peak, speaks, speaks * splat(real(SAME)))
        store_few(errors, first, where_equal(said, one, high, square), n_rows)
        store_few_bytes(spoken, first, said, n_rows)
        heard = where_less(zero, degrees, where_less(zero, said, one, zero), zero)
        store_few_bytes(sent, here, heard, n_rows)
        if rounding != DENSE and not all_less(where_less(most, peak, heard, zero), one):
            for r in range(n_rows):  # else it stays zero
                if spoken[first + r] == SAID and sent[t, first + r]:
                    top = errors[first + r]
                    low = -top if fixed_low == fixed_high else fixed_low
                    outside[t, first + r] = count_beyond(weights, broadcast, first + r, n_features, low, top)

        if bad >= 0:
            return bad
    return -1


@lean
def count_beyond(weights, broadcast, i, n_features, low, high):
    """How many entries of an innovation lie outside the range and so saturate."""
    beyond = 0
    for k in range(n_features):
        h = weights[i, k] - broadcast[i, k]
        beyond += (h < low) | (h > high)
    return beyond


@lean
def answer_rows(begin, end, rho, graph, rows, scratch):
    """HEAR, before a state is taken: the dual step that is otherwise the beginning of the next round's LEARN."""
    starts, neighbours, duals, broadcast, pull = (
        graph.starts,
        graph.neighbours,
        rows.duals,
        rows.broadcast,
        scratch.pull,
    )
    size = duals.shape[1]
    for i in range(begin, end):
        if starts[i] < starts[i + 1]:
            disagree_row(broadcast, i * size, neighbours, starts[i], starts[i + 1], pull, 0, pull.shape[1])
            add_row(duals, i * size, rho, pull, 0, size)
