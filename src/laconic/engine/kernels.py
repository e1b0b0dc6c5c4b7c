"""The compiled kernels: one round of one agent, written over rows, and the loop that runs many of them.

Every function that ends in ``_row`` is one agent's share of a round and touches nothing but that agent's rows; the
simulator calls them for N rows and a running agent for one, so both compute the same bits. No fast-math flag is set
anywhere: see ``vectors`` for why, and for the fused operations that are asked for by name.

numba does not notice when a cached function calls one that changed in *another* file. Hence all compiled functions live
here and in ``vectors``, and ``VECTORS_STAMP`` changes this file whenever that one changes (a test holds the two together).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from laconic.engine.vectors import fma, from_bits, project, to_bits, wave

VECTORS_STAMP = "to be filled"

# Values of the switches below; ``engine.compiled`` translates learners, losses and channels into them.
LINEARIZED, PROXIMAL, COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE, LOCAL = range(5)
SQUARED, LOGISTIC, HINGE = range(3)
DENSE, RISE, TREAD = range(3)
FINISHED, BAD_INPUT, DIVERGED = range(3)

# A prediction this many times larger than any label seen so far can only come from a run that diverges.
DIVERGENCE = 1e6

_FLOAT32_MAX = np.float64(np.finfo(np.float32).max)

jit = njit(cache=True, nogil=True, error_model="numpy")


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
def dot_row(a, b):
    """Inner product, summed in eight interleaved chains that meet pairwise: one order, on every machine."""
    zero = a.dtype.type(0)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
    n = a.size
    k = 0
    while k + 8 <= n:
        s0 = fma(a[k], b[k], s0)
        s1 = fma(a[k + 1], b[k + 1], s1)
        s2 = fma(a[k + 2], b[k + 2], s2)
        s3 = fma(a[k + 3], b[k + 3], s3)
        s4 = fma(a[k + 4], b[k + 4], s4)
        s5 = fma(a[k + 5], b[k + 5], s5)
        s6 = fma(a[k + 6], b[k + 6], s6)
        s7 = fma(a[k + 7], b[k + 7], s7)
        k += 8
    while k < n:
        s0 = fma(a[k], b[k], s0)
        k += 1
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@jit
def linearized_row(weights, duals, disagreement, phi, slope, shrink, rho, gain):
    """ODKLA: theta <- theta - gain [slope phi + shrink theta + rho g + gamma], gain = 1/(eta + 2 rho d)."""
    for k in range(weights.size):
        step = slope * phi[k] + shrink * weights[k] + rho * disagreement[k] + duals[k]
        weights[k] -= gain * step


@jit
def proximal_row(weights, duals, disagreement, broadcast, phi, label, loss, eta, rho, degree, shrink, v):
    """DOKL: theta <- (v - s phi)/c with v = eta theta + rho (2 d theta-hat - g) - gamma; ``v`` is room to work in."""
    real = weights.dtype.type
    both = real(2.0) * rho * degree
    curvature = eta + both + shrink
    for k in range(weights.size):
        v[k] = eta * weights[k] + both * broadcast[k] - rho * disagreement[k] - duals[k]
    slope = real(proximal_slope(loss, dot_row(phi, v), curvature, label))
    inverse = real(1.0) / curvature
    for k in range(weights.size):
        weights[k] = (v[k] - slope * phi[k]) * inverse


@jit
def descend_row(weights, phi, slope, shrink, step):
    """Gradient step: theta <- theta - step [slope phi + shrink theta]."""
    for k in range(weights.size):
        weights[k] -= step * (slope * phi[k] + shrink * weights[k])


@jit
def add_row(weights, mixing, pull):
    """theta <- theta + mixing * pull: diffusion's combination with what was heard."""
    for k in range(weights.size):
        weights[k] += mixing * pull[k]


@jit
def disagree_row(broadcast, agent, neighbours, disagreement):
    """g = sum over neighbours of (theta-hat_i - theta-hat_j), in the order of the neighbour list."""
    own = broadcast[agent]
    disagreement[:] = 0
    n = neighbours.size
    k = 0
    while k + 2 <= n:  # two at a time halves the traffic; the order of the sum stays that of the list
        first, second = broadcast[neighbours[k]], broadcast[neighbours[k + 1]]
        for f in range(own.size):
            disagreement[f] = (disagreement[f] + (own[f] - first[f])) + (own[f] - second[f])
        k += 2
    if k < n:
        first = broadcast[neighbours[k]]
        for f in range(own.size):
            disagreement[f] += own[f] - first[f]


@jit
def mix_row(broadcast, agent, neighbours, combination, pull):
    """Sum over neighbours of a_ij (theta-hat_j - theta-hat_i)."""
    own = broadcast[agent]
    pull[:] = 0
    for k in range(neighbours.size):
        other, share = broadcast[neighbours[k]], combination[k]
        for f in range(own.size):
            pull[f] += share * (other[f] - own[f])


@jit
def dual_row(duals, rho, disagreement):
    """gamma <- gamma + rho g."""
    for k in range(duals.size):
        duals[k] += rho * disagreement[k]


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
def quantize_row(innovation, rounding, cells, low, high, quantized):
    """Q(h) of eq. (quantizer), and how many entries lay outside the range; the same lines as ``channel.Quantizer``."""
    real = innovation.dtype.type
    half, last = real(0.5), real(cells - 1)
    if rounding == RISE:
        width = (high - low) / real(cells)
        edge, base, shift = low, low, half
    else:
        width = (high - low) / last
        lowest = real(np.rint(low / width))
        edge, base, shift = (lowest - half) * width, real(0.0), lowest
    outside = 0
    for k in range(innovation.size):
        h = innovation[k]
        outside += (h < low) | (h > high)
        cell = real(np.floor((h - edge) / width))
        cell = cell if cell > real(0.0) else real(0.0)
        cell = cell if cell < last else last
        quantized[k] = base + (cell + shift) * width
    return outside


@jit
def transmit_row(weights, broadcast, threshold, rounding, cells, low, high, innovation, quantized):
    """Send what the censor lets through; returns (sent, entries outside the range, squared error of the replica)."""
    for k in range(weights.size):
        innovation[k] = weights[k] - broadcast[k]
    square = dot_row(innovation, innovation)
    if math.sqrt(square) < threshold:
        return False, 0, square
    if rounding == DENSE:
        broadcast[:] = weights
        return True, 0, square * 0
    if low == high:  # adaptive: the range is that of the message
        peak = abs(innovation[0])
        for k in range(1, innovation.size):
            magnitude = abs(innovation[k])
            peak = magnitude if magnitude > peak else peak
        high = weights.dtype.type(upward_float32(peak))
        low = -high
    if low == high:  # h = 0
        return True, 0, square
    outside = quantize_row(innovation, rounding, cells, low, high, quantized)
    for k in range(weights.size):
        broadcast[k] += quantized[k]
        innovation[k] = weights[k] - broadcast[k]
    return True, outside, dot_row(innovation, innovation)


# --------------------------------------------------------------------------------------------------------------------
# Rounds
# --------------------------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """The scalars of a run. Real ones have the working precision, so that no loop is widened by a stray double."""

    algorithm: int
    loss: int
    rho: float
    shrink: float
    mixing: float
    rounding: int
    cells: int
    low: float
    high: float
    scale: float


class Graph(NamedTuple):
    """Who hears whom: neighbour lists back to back, and the combination weight of each entry."""

    starts: np.ndarray
    neighbours: np.ndarray
    combination: np.ndarray


class Rows(NamedTuple):
    """What the agents hold, a row each; ``pull`` is the disagreement (ADMM) or the mixture (diffusion) last heard.

    Where nothing is censored or quantized, ``broadcast`` may be the very array ``weights``, except for the learner that
    moves its weights after it has spoken (adapt, then combine).
    """

    weights: np.ndarray
    duals: np.ndarray
    broadcast: np.ndarray
    pull: np.ndarray


class Scratch(NamedTuple):
    """Room to work in, so that nothing is allocated in a round."""

    phases: np.ndarray
    phi: np.ndarray
    innovation: np.ndarray
    quantized: np.ndarray


class Record(NamedTuple):
    """What a run writes down: (T, N), then (T,), then (T, N) arrays that are empty unless collective scores are wanted."""

    predictions: np.ndarray
    sent: np.ndarray
    outside: np.ndarray
    consensus: np.ndarray
    energy: np.ndarray
    broadcast_error: np.ndarray
    collective_square: np.ndarray
    collective_loss: np.ndarray


@jit
def spread(weights, mean, scratch):
    """Distance of the agents from their mean (Frobenius), and the sum of their squared norms."""
    n_agents = weights.shape[0]
    mean[:] = 0
    for i in range(n_agents):
        add_row(mean, mean.dtype.type(1.0), weights[i])
    share = mean.dtype.type(1.0 / n_agents)
    for k in range(mean.size):
        mean[k] *= share
    distance = 0.0
    for i in range(n_agents):
        row = weights[i]
        for k in range(mean.size):
            scratch[k] = row[k] - mean[k]
        distance += dot_row(scratch, scratch)
    return math.sqrt(distance), distance + n_agents * dot_row(mean, mean)


@jit
def first_bad_row(samples, start, stop):
    """The first row of ``samples`` in [start, stop) with an entry that is not a finite number; ``stop`` if none."""
    for row in range(start, stop):
        bad = 0
        for k in range(samples.shape[1]):
            bad |= not abs(samples[row, k]) < np.inf
        if bad:
            return row
    return stop


@jit
def map_rows(samples, frequencies, scale, phases, phi):
    """phi(x) for each row of ``samples``, through a small buffer of phases; False if some phase is not finite."""
    n_frequencies = phi.shape[1] // 2
    finite = True
    for start in range(0, samples.shape[0], phases.shape[0]):
        stop = min(start + phases.shape[0], samples.shape[0])
        block = phases[: stop - start]
        project(samples[start:stop], frequencies, block)
        finite &= wave(block, n_frequencies, scale, phi[start:stop])
    return finite


@jit
def score_collectively(phi, labels, weights, loss, squares, losses):
    """Every agent's model on every agent's sample of this round: mean squared error and mean loss for each model."""
    n_agents = labels.size
    for i in range(n_agents):
        square = total = 0.0
        scored = 0
        for j in range(n_agents):
            if not math.isnan(labels[j]):
                margin = dot_row(weights[i], phi[j])
                square += (margin - labels[j]) ** 2
                total += value_of(loss, margin, labels[j])
                scored += 1
        squares[i] = square / scored if scored else np.nan
        losses[i] = total / scored if scored else np.nan


@jit
def learn_row(plan, rows, i, phi, margin, label, rate, degree, scratch):
    """Step 2 of the round for agent ``i``: what its learner does with a new sample."""
    real = rows.weights.dtype.type
    weights, pull = rows.weights[i], rows.pull[i]
    if plan.algorithm == LINEARIZED:
        slope = real(slope_of(plan.loss, margin, label))
        gain = real(1.0) / (rate + real(2.0) * plan.rho * degree)
        linearized_row(weights, rows.duals[i], pull, phi, slope, plan.shrink, plan.rho, gain)
    elif plan.algorithm == PROXIMAL:
        proximal_row(
            weights,
            rows.duals[i],
            pull,
            rows.broadcast[i],
            phi,
            label,
            plan.loss,
            rate,
            plan.rho,
            degree,
            plan.shrink,
            scratch,
        )
    else:
        if plan.algorithm == COMBINE_THEN_ADAPT:
            add_row(weights, plan.mixing, pull)
            margin = dot_row(weights, phi)
        descend_row(weights, phi, real(slope_of(plan.loss, margin, label)), plan.shrink, rate)


@jit
def listen(plan, graph, rows):
    """Step 4: every agent takes from its replicas what its learner will need, its ``pull``."""
    for i in range(rows.weights.shape[0]):
        start, stop = graph.starts[i], graph.starts[i + 1]
        neighbours = graph.neighbours[start:stop]
        if plan.algorithm == LINEARIZED or plan.algorithm == PROXIMAL:
            disagree_row(rows.broadcast, i, neighbours, rows.pull[i])
        else:
            mix_row(rows.broadcast, i, neighbours, graph.combination[start:stop], rows.pull[i])


@jit
def hear_row(plan, rows, i):
    """Step 5 of the round for agent ``i``: what its learner does once the neighbours have spoken."""
    if plan.algorithm == LINEARIZED or plan.algorithm == PROXIMAL:
        dual_row(rows.duals[i], plan.rho, rows.pull[i])
    elif plan.algorithm == ADAPT_THEN_COMBINE:
        add_row(rows.weights[i], plan.mixing, rows.pull[i])


@jit
def advance(plan, graph, rows, scratch, record, samples, mapped, labels, frequencies, rates, thresholds, largest):
    """Run the rounds of one chunk and return (status, row): how it ended, and the row t N + i where it stopped.

    ``samples`` holds a row for each (round, agent): inputs, or their features when ``mapped``. ``thresholds`` is empty when
    nothing is censored. ``largest`` holds the largest label so far, the yardstick of divergence.
    """
    n_rounds, n_agents = labels.shape
    n_rows = n_rounds * n_agents
    weights, broadcast = rows.weights, rows.broadcast
    direct = plan.rounding == DENSE and thresholds.size == 0 and plan.algorithm != ADAPT_THEN_COMBINE
    collective = record.collective_square.size > 0
    block = scratch.phi.shape[0]
    aligned = mapped or block % n_agents == 0
    end = 0
    bad_row = n_rows
    first = 0
    for t in range(n_rounds):
        if not aligned:
            bad_row = first_bad_row(samples, t * n_agents, (t + 1) * n_agents)
        for i in range(n_agents):
            row = t * n_agents + i
            if row >= end and not mapped:
                first, end = row, min(row + block, n_rows)
                phases = scratch.phases[: end - first]
                project(samples[first:end], frequencies, phases)
                if not wave(phases, scratch.phi.shape[1] // 2, plan.scale, scratch.phi[: end - first]):
                    bad_row = min(bad_row, first_bad_row(samples, first, end))
                    if bad_row == end:  # finite inputs, but so large that their phase is not
                        bad_row = first
            if row + n_agents - i > bad_row:
                return BAD_INPUT, bad_row
            phi = samples[row] if mapped else scratch.phi[row - first]
            if collective and i == 0:
                everyone = samples[row : row + n_agents] if mapped else scratch.phi[row - first : row - first + n_agents]
                score_collectively(
                    everyone, labels[t], weights, plan.loss, record.collective_square[t], record.collective_loss[t]
                )
            label = labels[t, i]
            margin = dot_row(weights[i], phi)
            record.predictions[t, i] = margin
            if not abs(margin) <= DIVERGENCE * largest[0]:
                return DIVERGED, row
            if abs(label) > largest[0]:
                largest[0] = abs(label)
            degree = graph.starts[i + 1] - graph.starts[i]
            learn_row(plan, rows, i, phi, margin, label, rates[t], weights.dtype.type(degree), scratch.quantized)

        error = 0.0
        if plan.algorithm != LOCAL:
            for i in range(n_agents):
                connected = graph.starts[i + 1] > graph.starts[i]
                if direct:
                    record.sent[t, i] = connected
                    continue
                threshold = thresholds[t] if thresholds.size else 0.0
                sent, outside, square = transmit_row(
                    weights[i],
                    broadcast[i],
                    threshold,
                    plan.rounding,
                    plan.cells,
                    plan.low,
                    plan.high,
                    scratch.innovation,
                    scratch.quantized,
                )
                record.sent[t, i] = sent and connected
                record.outside[t, i] = outside if connected else 0
                error += square
            listen(plan, graph, rows)
            for i in range(n_agents):
                hear_row(plan, rows, i)
        record.broadcast_error[t] = math.sqrt(error)
        record.consensus[t], record.energy[t] = spread(weights, scratch.innovation, scratch.quantized)
        if not math.isfinite(record.energy[t]):
            return DIVERGED, t * n_agents
    return FINISHED, n_rows
