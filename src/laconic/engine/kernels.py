"""The compiled rounds: what the simulator calls, made of the kernels over single rows in ``rows``.

numba does not notice when a function that it has on disk calls one that changed in *another* file. So only the
functions of this file are kept on disk, and ``STAMP`` changes this file whenever one of the others that are compiled
does; a test holds them together. No fast-math flag is set anywhere: see ``vectors`` for why.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from laconic.engine.rows import (
    DENSE,
    HINGE,
    LOGISTIC,
    RISE,
    SQUARED,
    TREAD,
    add_code_row,
    add_row,
    clear_row,
    code_row,
    combine_descend_row,
    copy_row,
    descend_row,
    disagree_row,
    distance_row,
    dot_row,
    linearized_row,
    mix_row,
    pack_row,
    proximal_row,
    range_row,
    slope_of,
    subtract_row,
    transmit_row,
    unpack_row,
    value_of,
)
from laconic.engine.sincos import prefetch_row, project, wave
from laconic.engine.vectors import jit, load, splat, store, vector_fma, width_of

STAMP = "4e4ff3815cb77c58"

__all__ = ["DENSE", "HINGE", "LOGISTIC", "RISE", "SQUARED", "TREAD"]

# How a learner moves, and how a chunk ends; ``engine.compiled`` translates.
LINEARIZED, PROXIMAL, COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE, LOCAL = range(5)
FINISHED, BAD_INPUT, DIVERGED = range(3)

# A prediction this many times larger than any label seen so far can only come from a run that diverges.
DIVERGENCE = 1e3

entry = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)


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
    n_features: int


class Graph(NamedTuple):
    """Who hears whom: neighbour lists back to back, and the combination weight of each entry."""

    starts: np.ndarray
    neighbours: np.ndarray
    combination: np.ndarray


class Rows(NamedTuple):
    """What the agents hold, a row each, padded with zeros to whole vectors; ``pull`` is the disagreement (ADMM) or
    the mixture (diffusion) last heard.

    Where nothing is censored or spare, ``broadcast`` may be the very array ``weights``, except for the learner that
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
    spare: np.ndarray


class Columns(NamedTuple):
    """What a run writes down: (T, N), then (T,)."""

    predictions: np.ndarray
    sent: np.ndarray
    outside: np.ndarray
    consensus: np.ndarray
    energy: np.ndarray
    broadcast_error: np.ndarray


@jit
def spread(weights, size, mean):
    """Distance of the agents from their mean (Frobenius), and the sum of their squared norms."""
    n_agents = weights.shape[0]
    clear_row(mean, 0, size)
    share = mean.dtype.type(1.0 / n_agents)
    for i in range(n_agents):
        add_row(mean, 0, share, weights, i * size, size)
    distance = 0.0
    for i in range(n_agents):
        distance += distance_row(weights, i * size, mean, 0, size)
    return math.sqrt(distance), distance + n_agents * dot_row(mean, 0, mean, 0, size)


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


@entry
def map_rows(samples, frequencies, n_frequencies, scale, phases, phi):
    """phi(x) for each row of ``samples``, through a small buffer of phases; False if some phase is not finite."""
    finite = True
    for start in range(0, samples.shape[0], phases.shape[0]):
        stop = min(start + phases.shape[0], samples.shape[0])
        project(samples, start, stop, frequencies, phases)
        finite &= wave(phases, stop - start, n_frequencies, scale, phi, start) == stop - start
    return finite


@jit
def score_collectively(phi, phi_at, labels, t, weights, size, loss, squares, losses):
    """Every agent's model on every agent's sample of round t: mean squared error and mean loss for each model."""
    n_agents = labels.shape[1]
    for i in range(n_agents):
        square = total = 0.0
        scored = 0
        for j in range(n_agents):
            label = labels[t, j]
            if not math.isnan(label):
                margin = dot_row(weights, i * size, phi, phi_at + j * size, size)
                square += (margin - label) ** 2
                total += value_of(loss, margin, label)
                scored += 1
        squares[t, i] = square / scored if scored else np.nan
        losses[t, i] = total / scored if scored else np.nan


@jit
def listen_row(algorithm, broadcast, i, starts, neighbours, combination, pull, size):
    """Step 4: agent ``i`` takes from its replicas what its learner will need."""
    if algorithm == LINEARIZED or algorithm == PROXIMAL:
        disagree_row(broadcast, i * size, neighbours, starts[i], starts[i + 1], pull, size)
    else:
        mix_row(broadcast, i * size, neighbours, combination, starts[i], starts[i + 1], pull, size)


@entry
def listen(algorithm, broadcast, starts, neighbours, combination, pull):
    """Step 4 for everybody: what a resumed run starts from."""
    for i in range(broadcast.shape[0]):
        listen_row(algorithm, broadcast, i, starts, neighbours, combination, pull, broadcast.shape[1])


@entry
def advance(
    plan, graph, rows, scratch, record, scores, samples, mapped, labels, frequencies, rates, thresholds, largest
):
    """Run the rounds of one chunk and return (status, row): how it ended, and the row t N + i where it stopped.

    ``samples`` holds a row for each (round, agent): inputs, or their features when ``mapped``. ``thresholds`` is empty
    when nothing is censored. ``largest`` holds the largest label so far, the yardstick of divergence. ``scores`` is
    None, and then costs no compilation either, or two (T, N) arrays for the collective squared error and loss.
    """
    algorithm, loss, rho, shrink, mixing, rounding, cells, low, high, scale, n_features = plan
    starts, neighbours, combination = graph
    weights, duals, broadcast, pull = rows
    phases, ahead, innovation, spare = scratch
    real = weights.dtype.type
    n_rounds, n_agents = labels.shape
    n_rows, size = n_rounds * n_agents, weights.shape[1]
    direct = rounding == DENSE and thresholds.size == 0 and algorithm != ADAPT_THEN_COMBINE
    phi = samples if mapped else ahead
    first, end = 0, (n_rows if mapped else 0)
    whole_rounds = mapped or ahead.shape[0] % n_agents == 0
    bad_row = n_rows

    for t in range(n_rounds):
        if not whole_rounds:  # no round may begin that cannot end
            bad_row = first_bad_row(samples, t * n_agents, (t + 1) * n_agents)
            bad_row = n_rows if bad_row == (t + 1) * n_agents else bad_row

        # 1. and 2.: predict, then learn.
        for i in range(n_agents):
            row, at = t * n_agents + i, i * size
            if row >= end:
                first, end = row, min(row + ahead.shape[0], n_rows)
                project(samples, first, end, frequencies, phases)
                good = wave(phases, end - first, n_features // 2, scale, ahead, 0)
                if good < end - first:
                    bad_row = first + good
            if (t + 1) * n_agents > bad_row:
                return BAD_INPUT, bad_row
            prefetch_row(samples, row + (1 if mapped else ahead.shape[0]))
            phi_at = (row - first) * size
            if scores is not None and i == 0:
                score_collectively(phi, phi_at, labels, t, weights, size, loss, scores[0], scores[1])
            label = labels[t, i]
            margin = dot_row(weights, at, phi, phi_at, size)
            record.predictions[t, i] = margin
            if not abs(margin) <= DIVERGENCE * largest[0]:
                return DIVERGED, row
            if abs(label) > largest[0]:
                largest[0] = abs(label)
            degree = real(starts[i + 1] - starts[i])
            if algorithm == LINEARIZED:
                slope = real(slope_of(loss, margin, label))
                gain = real(1.0) / (rates[t] + real(2.0) * rho * degree)
                linearized_row(weights, duals, pull, at, phi, phi_at, size, slope, shrink, rho, gain)
            elif algorithm == PROXIMAL:
                proximal_row(
                    weights,
                    duals,
                    pull,
                    broadcast,
                    at,
                    phi,
                    phi_at,
                    size,
                    label,
                    loss,
                    rates[t],
                    rho,
                    degree,
                    shrink,
                    spare,
                )
            elif algorithm == COMBINE_THEN_ADAPT:
                combined = margin + mixing * dot_row(pull, at, phi, phi_at, size)
                slope = real(slope_of(loss, combined, label))
                combine_descend_row(weights, at, mixing, pull, phi, phi_at, size, slope, shrink, rates[t])
            else:
                slope = real(slope_of(loss, margin, label))
                descend_row(weights, at, phi, phi_at, size, slope, shrink, rates[t])

        # 3.: speak. Where nothing is lost, ``broadcast`` is ``weights``.
        error = 0.0
        if direct and algorithm != LOCAL:
            for i in range(n_agents):
                record.sent[t, i] = starts[i + 1] > starts[i]
        elif algorithm != LOCAL:
            threshold = thresholds[t] if thresholds.size else 0.0
            for i in range(n_agents):
                sent, outside, square = transmit_row(
                    weights,
                    broadcast,
                    i * size,
                    n_features,
                    size,
                    threshold,
                    rounding,
                    cells,
                    low,
                    high,
                    innovation,
                )
                connected = starts[i + 1] > starts[i]
                record.sent[t, i] = sent and connected
                record.outside[t, i] = outside if connected else 0
                error += square

        # 4. and 5.: hear, and let the learner answer.
        if algorithm != LOCAL:
            for i in range(n_agents):
                listen_row(algorithm, broadcast, i, starts, neighbours, combination, pull, size)
                if algorithm == LINEARIZED or algorithm == PROXIMAL:
                    add_row(duals, i * size, rho, pull, i * size, size)
                elif algorithm == ADAPT_THEN_COMBINE:
                    add_row(weights, i * size, mixing, pull, i * size, size)

        record.broadcast_error[t] = math.sqrt(error)
        record.consensus[t], record.energy[t] = spread(weights, size, innovation)
        if not math.isfinite(record.energy[t]):
            return DIVERGED, t * n_agents
    return FINISHED, n_rows


# --------------------------------------------------------------------------------------------------------------------
# One agent, one sample at a time: a round cut into its steps, since others have to be waited for in between
# --------------------------------------------------------------------------------------------------------------------

# What a running agent holds, a row each: its model, its dual, what it last heard, room to work in, and what it has said
# (its broadcast), behind which lie its neighbours' replicas. The arguments are few because each costs as much as many
# frequencies: an array holds the real numbers of the plan, another the whole ones.
OWN, DUAL, PULL, PHI, SPARE, CELLS, SAID = range(7)
N_OWN_ROWS = 7
RHO, SHRINK, SCALE, LARGEST, DEGREE, MIXING, LOW, HIGH = range(8)
ALGORITHM, LOSS, N_FREQUENCIES, ROUNDING, BITS = range(5)


@jit
def predict_row(sample, frequencies, scale, n_frequencies, rows, phases):
    """phi(x) into its row, and the prediction theta.phi; (False, NaN) if some phase is not finite."""
    size = rows.shape[1]
    project(sample, 0, 1, frequencies, phases)
    if not wave(phases, 1, n_frequencies, scale, rows, PHI):
        return False, rows.dtype.type(np.nan)
    return True, dot_row(rows, OWN * size, rows, PHI * size, size)


@entry
def predict_one(sample, frequencies, rows, phases, numbers, codes):
    """The prediction of an agent for one ``sample`` (1, d), or NaN if the sample is not finite."""
    scale = rows.dtype.type(numbers[SCALE])
    return predict_row(sample, frequencies, scale, codes[N_FREQUENCIES], rows, phases)[1]


@entry
def learn_one(sample, label, rate, frequencies, rows, phases, numbers, codes):
    """Steps 1 and 2 for one agent, with the bits that ``advance`` gives it. Returns (status, prediction).

    A ``label`` that is NaN is missing; the agent then still shrinks its model and follows its neighbours.
    """
    real = rows.dtype.type
    rho, shrink, scale = real(numbers[RHO]), real(numbers[SHRINK]), real(numbers[SCALE])
    degree, mixing = real(numbers[DEGREE]), real(numbers[MIXING])
    algorithm, loss = codes[ALGORITHM], codes[LOSS]
    label, rate = real(label), real(rate)
    size = rows.shape[1]
    weights, duals, pull, spare = rows[OWN], rows[DUAL], rows[PULL], rows[SPARE]
    phi_at = PHI * size
    finite, margin = predict_row(sample, frequencies, scale, codes[N_FREQUENCIES], rows, phases)
    if not finite:
        return BAD_INPUT, margin
    if not abs(margin) <= DIVERGENCE * numbers[LARGEST]:
        return DIVERGED, margin
    if abs(label) > numbers[LARGEST]:
        numbers[LARGEST] = abs(label)
    if algorithm == LINEARIZED:
        slope = real(slope_of(loss, margin, label))
        gain = real(1.0) / (rate + real(2.0) * rho * degree)
        linearized_row(weights, duals, pull, 0, rows, phi_at, size, slope, shrink, rho, gain)
    elif algorithm == PROXIMAL:
        said = rows[SAID]
        proximal_row(weights, duals, pull, said, 0, rows, phi_at, size, label, loss, rate, rho, degree, shrink, spare)
    elif algorithm == COMBINE_THEN_ADAPT:
        combined = margin + mixing * dot_row(pull, 0, rows, phi_at, size)
        slope = real(slope_of(loss, combined, label))
        combine_descend_row(weights, 0, mixing, pull, rows, phi_at, size, slope, shrink, rate)
    else:
        slope = real(slope_of(loss, margin, label))
        descend_row(weights, 0, rows, phi_at, size, slope, shrink, rate)
    if not math.isfinite(dot_row(weights, 0, weights, 0, size)):
        return DIVERGED, margin
    return FINISHED, margin


@entry
def speak_one(threshold, packed, rows, numbers, codes):
    """Step 3 for one agent: censor, quantize, and write the codes to ``packed``.

    Returns (sent, entries outside the range, scale); the scale is that of an adaptive range, 0 for a message of zeros.
    """
    real = rows.dtype.type
    size, n_features = rows.shape[1], 2 * codes[N_FREQUENCIES]
    rounding, bits = codes[ROUNDING], codes[BITS]
    at, said_at = OWN * size, SAID * size
    innovation = rows[SPARE : SPARE + 1]
    subtract_row(rows, at, rows, said_at, innovation, 0, size)
    if math.sqrt(dot_row(innovation, 0, innovation, 0, size)) < threshold:
        return False, 0, np.float32(0)
    if rounding == DENSE:
        copy_row(rows, at, rows, said_at, size)
        return True, 0, np.float32(0)
    low, high, outside = range_row(innovation, n_features, size, real(numbers[LOW]), real(numbers[HIGH]))
    if low == high:
        packed[:] = 0
        return True, 0, np.float32(0)
    code_row(innovation, 0, size, rounding, 1 << bits, low, high, rows, CELLS * size)
    add_code_row(rows, CELLS * size, n_features, size, rounding, 1 << bits, low, high, rows, said_at)
    pack_row(rows, CELLS, n_features, bits, packed, 0)
    return True, outside, np.float32(high)


@jit
def replace_replica(rows, sums, index, late):
    """Take ``rows[SPARE]`` as the new replica ``index`` and correct its running sum for ``late`` rounds.

    False, and nothing is taken, if it is not finite.
    """
    size = rows.shape[1]
    if not math.isfinite(dot_row(rows, SPARE * size, rows, SPARE * size, size)):
        return False
    if late != 0.0:
        for k in range(size):
            sums[index, k] += late * (np.float64(rows[SPARE, k]) - np.float64(rows[SAID + index, k]))
    copy_row(rows, SPARE * size, rows, (SAID + index) * size, size)
    return True


@entry
def hear_codes(index, packed, scale, late, rows, sums, numbers, codes):
    """Step 4: add the message of a neighbour to its replica; False, and nothing changes, if the message is no good.

    ``late`` is for how many rounds too many the old replica has been added to the running sum.
    """
    real = rows.dtype.type
    size, n_features = rows.shape[1], 2 * codes[N_FREQUENCIES]
    rounding, bits = codes[ROUNDING], codes[BITS]
    if not unpack_row(packed, 0, n_features, bits, rows, CELLS):
        return False
    low, high = real(numbers[LOW]), real(numbers[HIGH])
    if low == high:
        if scale == 0:
            return True
        high = real(scale)
        low = -high
    copy_row(rows, (SAID + index) * size, rows, SPARE * size, size)
    add_code_row(rows, CELLS * size, n_features, size, rounding, 1 << bits, low, high, rows, SPARE * size)
    return replace_replica(rows, sums, index, late)


@entry
def hear_dense(index, model, late, rows, sums):
    """Step 4 where a neighbour's model came as it is."""
    rows[SPARE] = 0
    for k in range(model.size):
        rows[SPARE, k] = model[k]
    return replace_replica(rows, sums, index, late)


@entry
def listen_one(live, combination, rows, sums, numbers, codes):
    """Steps 4 and 5 for one agent: what its ``live`` neighbours pull at, its dual, and everybody's running sum."""
    real = rows.dtype.type
    algorithm, size = codes[ALGORITHM], rows.shape[1]
    said, pull = rows[SAID:], rows[PULL : PULL + 1]
    if algorithm == LINEARIZED or algorithm == PROXIMAL:
        disagree_row(said, 0, live, 0, live.size, pull, size)
        add_row(rows, DUAL * size, real(numbers[RHO]), rows, PULL * size, size)
    elif algorithm != LOCAL:
        mix_row(said, 0, live, combination, 0, live.size, pull, size)
        if algorithm == ADAPT_THEN_COMBINE:
            add_row(rows, OWN * size, real(numbers[MIXING]), rows, PULL * size, size)
    for row in range(sums.shape[0]):
        for k in range(size):
            sums[row, k] += said[row, k]


@entry
def recursive_rounds(phi, labels, weights, factors, spreads, gain, forgetting, predictions):
    """Recursive least squares over the rounds of ``labels`` (T, N); returns the first row that overflows, or T N.

    ``weights`` and ``spreads`` have a row for each model: N of them, or one that learns from everybody. The covariance
    of model m is never formed: it is U D U^T with U unit upper triangular, D = ``spreads[m]`` > 0, and column j of U in
    row m n + j of ``factors``, zero from the diagonal on (Bierman). Positive factors stay positive, whatever rounding
    does, where a covariance that is subtracted from may cease to be one. ``gain`` is room to work in. Row t N + i of
    ``phi`` belongs to agent i in round t; all of a round is predicted before any of it is learned.
    """
    n_models, size = weights.shape
    n_features = factors.shape[0] // n_models
    n_rounds, n_agents = labels.shape
    width = width_of(weights)
    for t in range(n_rounds):
        for i in range(n_agents):
            row, model = t * n_agents + i, i if n_models > 1 else 0
            predictions[t, i] = dot_row(weights, model * size, phi, row * size, size)
            if not math.isfinite(predictions[t, i]):
                return row
        if forgetting < 1.0:
            for model in range(n_models):
                for j in range(n_features):
                    spreads[model, j] /= forgetting
        for i in range(n_agents):
            label = labels[t, i]
            if math.isnan(label):
                continue
            row, model = t * n_agents + i, i if n_models > 1 else 0
            at, phi_at = model * size, row * size
            error = label - dot_row(weights, at, phi, phi_at, size)
            clear_row(gain, 0, size)
            before = 1.0
            for j in range(n_features):
                column = (model * n_features + j) * size
                length = (j + width - 1) // width * width
                share = phi[row, j] + dot_row(factors, column, phi, phi_at, length)
                scaled = spreads[model, j] * share
                after = before + scaled * share
                spreads[model, j] *= before / after
                step, add = splat(-share / before), splat(scaled)
                for k in range(0, length, width):
                    old, so_far = load(factors, column + k), load(gain, k)
                    store(factors, column + k, vector_fma(step, so_far, old))
                    store(gain, k, vector_fma(add, old, so_far))
                gain[0, j] = scaled
                before = after
            add_row(weights, at, error / before, gain, 0, size)
    return n_rounds * n_agents
