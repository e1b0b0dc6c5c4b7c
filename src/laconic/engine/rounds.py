"""The compiled rounds of many agents: what the simulator calls, made of functions over single rows.

A round is cut into stages, so that its rows can be shared out: each stage is done for a range of rows, and between two
of them all rows must be through. A thread that is alone calls all stages of many rounds at once.

    CHECK    are the inputs numbers?                                              a range of rows
    LEARN    hear what was said last, predict, learn, decide and encode           a range of rows
    APPLY    who has spoken moves its replica; abreast, after MEAN                a range of rows, ghosts too
    HEAR     learners that combine last do so; duals, before a state is taken     a range of rows
    MEAN     the mean of all models, from the sums that LEARN or HEAR has left    once
    MEASURE  how far each model is from it                                        a range of rows
    TOPS, UNITS, FINISH  sums over agents, and what is written down of them       once

Replicas are read in LEARN and HEAR only and written in APPLY only. Hearing is put off until the next round's LEARN,
where the row is at hand anyway; so a round goes over models, duals and replicas once, and over the replicas of those
who have spoken a second time. Sums over agents have the same bits in any order (``summing``), everything else is one
row's own: results do not depend on how rows are numbered or shared out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.engine.ahead import CACHED, prefetch_ahead, prefetch_distant
from laconic.engine.budgeting import BY_ROUND, Purse
from laconic.engine.cache import entry
from laconic.engine.coding import DENSE, RISE, SAID, SILENT, TREAD, apply_row, encode_row
from laconic.engine.endings import AGAIN, BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED
from laconic.engine.robust import sum_up
from laconic.engine.rows import clear_row, dot_row
from laconic.engine.settling import apply_rows, measure_rows
from laconic.engine.sincos import map_block
from laconic.engine.steps import ADAPT_THEN_COMBINE, LINEARIZED, LOCAL, PROXIMAL, hear_row, learn_row, value_of
from laconic.engine.summing import FOLDED, fits, fold, scale_of, tally_row, top_of, total_of
from laconic.engine.vectors import (
    all_less,
    jit,
    largest_of,
    lean,
    load,
    prefetch_row,
    splat,
    vector_abs,
    vector_larger,
    width_of,
)
from laconic.engine.voting import hear_expert_row, learn_expert_row

CHECK, LEARN, APPLY, HEAR, MEAN, MEASURE, TOPS, UNITS, FINISH = (1 << k for k in range(9))
ALL = CHECK | LEARN | APPLY | HEAR | MEAN | MEASURE | TOPS | UNITS | FINISH
#: Instead of MEAN's sums, those of the models as they are: when LEARN's had the wrong scale.
RESUM = 1 << 9

# Numbers of a run that change from round to round.
LARGEST, SCALE, PEAK, PENDING, ERROR_TOP, DISTANCE_TOP, N_NUMBERS = range(7)
ERROR, DISTANCE, N_WHOLE = range(3)


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
    n_frequencies: int
    unit: bool
    reach: float
    heeds: bool
    message_bits: int
    purse: Purse
    coarseness: float
    dead_zone: float
    n_agents: int


class Graph(NamedTuple):
    """Who hears whom: neighbour lists back to back, and the combination weight of each entry.

    ``distant`` are those of the neighbours that are not near in the order of the rows, ``distant_starts`` where those
    begin that are heard by the next few rows (``ahead``).
    """

    starts: np.ndarray
    neighbours: np.ndarray
    combination: np.ndarray
    distant_starts: np.ndarray = np.empty(0, dtype=np.int64)
    distant: np.ndarray = np.empty(0, dtype=np.int32)


class Rows(NamedTuple):
    """What the agents hold, a row each, padded with zeros to whole vectors.

    Rows that are learned abreast, and are too many for the cache, may end with half a vector instead: ``weights``,
    ``duals`` and ``broadcast``, while what there is to work in has whole ones.
    ``broadcast``, ``spoken``, ``codes`` and ``scales`` may have more rows than ``weights``: replicas of agents that
    learn elsewhere, their messages, and behind that nothing. ``duals``, ``codes``, ``scales`` and ``sums`` have no rows
    where there is no need of them. ``sums`` are running sums of ``broadcast`` in double precision, where pulls are
    clipped. ``spoken`` says what each row has said in this round (``coding.SAID``); ``memory`` is what a budget
    remembers, three numbers an agent, or empty.
    """

    weights: np.ndarray
    duals: np.ndarray
    broadcast: np.ndarray
    sums: np.ndarray
    spoken: np.ndarray
    codes: np.ndarray
    scales: np.ndarray
    memory: np.ndarray


class Scratch(NamedTuple):
    """Room to work in, so that nothing is allocated in a round: one for each thread.

    ``pull`` and ``innovation`` have as many rows as a vector has lanes, ``parts``, ``peaks`` and ``found`` are for sums
    over so many rows; the bits of ``mask`` are set but in the padding. ``units``, ``tops`` and ``totals`` are its part
    of the sum of all models.
    """

    phases: np.ndarray
    phi: np.ndarray
    pull: np.ndarray
    innovation: np.ndarray
    spare: np.ndarray
    mask: np.ndarray
    parts: np.ndarray
    peaks: np.ndarray
    found: np.ndarray
    chosen: np.ndarray
    written: np.ndarray
    units: np.ndarray
    tops: np.ndarray
    totals: np.ndarray


class Sums(NamedTuple):
    """What is summed over agents: their parts, and what comes of it.

    ``tops`` and ``totals`` are those of all threads, a row each; ``errors`` and ``distances`` have an entry an agent,
    ``numbers`` and ``whole`` are few and named above.
    """

    tops: np.ndarray
    totals: np.ndarray
    mean: np.ndarray
    errors: np.ndarray
    distances: np.ndarray
    numbers: np.ndarray
    whole: np.ndarray


class Columns(NamedTuple):
    """What a run writes down: (T, N), then (T,); and bits (T, N), or (0, N) where all messages have the same."""

    predictions: np.ndarray
    sent: np.ndarray
    outside: np.ndarray
    consensus: np.ndarray
    energy: np.ndarray
    broadcast_error: np.ndarray
    bits: np.ndarray


@jit
def mean_of(sums, n_agents):
    """The mean of all models from the sums of their multiples; False if these had the wrong scale."""
    tops, totals, mean, _, _, numbers, _ = sums
    peak = 0.0
    for part in range(tops.shape[0]):
        for k in range(width_of(tops)):  # behind that there is nothing: see ``tally_row``
            peak = max(peak, np.float64(tops[part, k]))
    numbers[PEAK] = peak
    if not peak < np.inf:  # the run has diverged, which its energy will tell
        return True
    if not fits(peak, numbers[SCALE], n_agents, mean.itemsize):
        numbers[SCALE] = scale_of(peak, n_agents, mean.itemsize)
        return False
    for part in range(1, totals.shape[0]):
        for k in range(totals.shape[1]):
            totals[0, k] += totals[part, k]
    divisor = numbers[SCALE] * n_agents
    for k in range(mean.shape[1]):
        mean[0, k] = totals[0, k] / divisor
    return True


@jit
def sum_again(weights, begin, end, scale, units, tops, totals):
    """The multiples of some models, from the beginning."""
    size = weights.shape[1]
    totals[:] = 0
    n_rows = 0
    for i in range(begin, end):
        tally_row(weights, i * size, size, scale, units, tops)
        n_rows += 1
        if n_rows == FOLDED or i + 1 == end:
            fold(units, n_rows, totals)
            n_rows = 0


@jit
def largest_label(labels, t, largest):
    """The largest magnitude of a label so far; those that are missing (NaN) are larger than nothing."""
    n_agents, width = labels.shape[1], width_of(labels)
    tops, whole = splat(labels.dtype.type(0)), n_agents - n_agents % width
    for i in range(0, whole, width):
        tops = vector_larger(vector_abs(load(labels, t * n_agents + i)), tops)
    largest = max(largest, np.float64(largest_of(tops)))
    for i in range(whole, n_agents):
        if abs(labels[t, i]) > largest:
            largest = np.float64(abs(labels[t, i]))
    return largest


@lean
def first_bad_row(samples, start, stop):
    """The first row of ``samples`` in [start, stop) with an entry that is not a finite number; ``stop`` if none."""
    length, width = samples.shape[1], width_of(samples)
    limits, finite = splat(samples.dtype.type(np.inf)), True
    end = stop * length
    rest = end - (end - start * length) % width
    for k in range(start * length, rest, width):
        finite &= all_less(vector_abs(load(samples, k)), limits)
    for k in range(rest, end):
        finite &= abs(samples[k // length, k % length]) < np.inf
    if not finite:
        for row in range(start, stop):
            for k in range(length):
                if not abs(samples[row, k]) < np.inf:
                    return row
    return stop


@entry
def map_rows(front, samples, frequencies, n_frequencies, scale, phases, phi):
    """phi(x) for each row of ``samples``, through a small buffer of phases; False if some phase is not finite."""
    finite = True
    for start in range(0, samples.shape[0], phases.shape[0]):
        stop = min(start + phases.shape[0], samples.shape[0])
        good = map_block(front, samples, start, stop, frequencies, n_frequencies, scale, phases, phi, start)
        finite &= good == stop - start
    return finite


@jit
def look_ahead(row, stop, front, samples, frequencies, n_frequencies, scale, phases, ahead):
    """Features of the rows up to ``stop``; the first of which they are not finite, or the number of all rows."""
    good = map_block(front, samples, row, stop, frequencies, n_frequencies, scale, phases, ahead, 0)
    n_rows, length = min(stop - row, samples.shape[0] - stop), samples.shape[1]
    prefetch_row(samples, stop * length, n_rows * length)
    return row + good if good < stop - row else samples.shape[0]


@jit
def average(stages, begin, end, n_everywhere, weights, scratch, sums):
    """MEAN: False if it is to be made again, by all threads."""
    misfits = stages & MEAN != 0 and not mean_of(sums, n_everywhere)
    if misfits and stages != ALL:
        return False
    if misfits or stages & RESUM:
        sum_again(weights, begin, end, sums.numbers[SCALE], scratch.units, scratch.tops, scratch.totals)
    if misfits:
        mean_of(sums, n_everywhere)
    return True


@jit
def close_round(stages, begin, end, t, dual, n_everywhere, weights, scratch, sums, record, labels):
    """MEASURE to FINISH: what is measured of all models together; returns how the round ends."""
    _, _, mean, errors, distances, numbers, whole = sums
    n_agents = labels.shape[1]
    if stages & MEASURE and n_everywhere > 1:
        measure_rows(begin, min(end, n_agents), weights, mean, scratch, distances)
    if stages & TOPS:
        numbers[ERROR_TOP] = top_of(errors, n_agents)
        numbers[DISTANCE_TOP] = top_of(distances, n_agents)
    if stages & UNITS:
        whole[ERROR] = total_of(errors, n_agents, scale_of(numbers[ERROR_TOP], n_everywhere, 0))
        whole[DISTANCE] = total_of(distances, n_agents, scale_of(numbers[DISTANCE_TOP], n_everywhere, 0))
    if stages & FINISH:
        error = whole[ERROR] / scale_of(numbers[ERROR_TOP], n_everywhere, 0)
        distance = whole[DISTANCE] / scale_of(numbers[DISTANCE_TOP], n_everywhere, 0)
        energy = distance + n_everywhere * dot_row(mean, 0, mean, 0, mean.shape[1])
        if not (numbers[PEAK] < np.inf and numbers[DISTANCE_TOP] < np.inf and energy < np.inf):
            energy = np.inf
        record.broadcast_error[t] = math.sqrt(error)
        record.consensus[t], record.energy[t] = math.sqrt(distance), energy
        numbers[LARGEST] = largest_label(labels, t, numbers[LARGEST])
        numbers[SCALE] = scale_of(numbers[PEAK], n_everywhere, mean.itemsize)
        numbers[PENDING] = 1.0 if dual else 0.0
        if not energy < np.inf:
            return DIVERGED
    return FINISHED


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


@entry
def advance(
    stages, begin, end, first_round, last_round,
    plan, graph, front, rows, climbs, panel, scratch, sums, record, scores, samples, mapped, labels, frequencies,
    rates, thresholds,
):  # fmt: skip
    """Some stages of some rounds of a chunk, for the rows from ``begin`` to ``end``; returns (status, row).

    The row t N + i is where it stopped, or behind the last one. ``samples`` holds a row for each (round, agent):
    inputs, or their features when ``mapped``.
    ``thresholds`` is empty when nothing is censored, ``scores``, two (T, N) arrays for the collective squared
    error and loss, when they are not wanted. ``panel`` is what experts keep; ``climbs`` is True for other learners, who
    climb the ladder of ``steps``. One of the two is None: what it stands for is not even compiled.
    """
    algorithm, loss, rho, shrink, mixing, rounding, cells, low, high, scale, n_features, _, unit, reach = plan[:14]
    heeds, message_bits, purse, n_everywhere = plan.heeds, plan.message_bits, plan.purse, plan.n_agents
    starts, neighbours, combination, distant_starts, distant = graph
    weights, duals, broadcast, run_sums, spoken, codes, scales, memory = rows
    phases, ahead, pull, innovation, spare, _, _, _, _, chosen, written, units, tops, totals = scratch
    # Taken apart here, since to ask a tuple for an array counts references, which in a loop costs more than the work.
    predictions, sent, outside, _, _, _, sizes = record
    errors, numbers = sums.errors, sums.numbers
    squares, losses = scores
    n_rounds, n_agents = labels.shape
    n_rows, size, real = n_rounds * n_agents, weights.shape[1], weights.dtype.type
    direct = rounding == DENSE and thresholds.size == 0 and purse.kind == BY_ROUND
    last = algorithm == ADAPT_THEN_COMBINE or panel is not None  # combines when all have spoken
    talks = algorithm != LOCAL
    dual = algorithm == LINEARIZED or algorithm == PROXIMAL
    even = rounding == RISE or rounding == TREAD
    far = weights.size * weights.itemsize > CACHED
    phi = samples if mapped else ahead
    first, done = 0, (n_rows if mapped else 0)
    whole_rounds = mapped or ahead.shape[0] % n_agents == 0
    bad_row = n_rows

    for t in range(first_round, last_round):
        row = t * n_agents
        if stages & CHECK and not whole_rounds:  # no round may begin that cannot end
            bad_row = first_bad_row(samples, row + begin, row + end)
            if bad_row < row + end:
                return BAD_INPUT, bad_row
            bad_row = n_rows

        limit, threshold = DIVERGENCE * numbers[LARGEST], (thresholds[t] if thresholds.size else 0.0)
        for turn in range(2):
            learning = turn == 0 and stages & LEARN != 0
            hearing = (
                (learning and talks and not last) if turn == 0 else (stages & HEAR != 0 and (last or stages != ALL))
            )
            tallying = hearing if last else learning
            if tallying:
                clear_row(tops, 0, size)
                totals[:] = 0
            n_tallied = 0
            block = begin
            while block < (end if learning or hearing else begin):
                stop = end
                if learning:
                    row = t * n_agents + block
                    if row >= done or row < first:  # Features come in blocks; of small networks, of many rounds.
                        first, done = row, min(row + ahead.shape[0], n_rows if whole_rounds else row - block + end)
                        bad_row = look_ahead(
                            row, done, front, samples, frequencies, plan.n_frequencies, scale, phases, ahead
                        )  # fmt: skip
                    if (t + 1) * n_agents > bad_row:
                        return BAD_INPUT, bad_row
                    stop = min(end, block + done - row, block + FOLDED)
                    if squares.size and block == 0:
                        phi_at = (row - first) * size
                        score_collectively(phi, phi_at, labels, t, weights, size, loss, squares, losses)
                for i in range(block, stop):
                    at = i * size
                    if far:
                        prefetch_ahead(weights, duals, broadcast, i)
                        if hearing:
                            prefetch_distant(broadcast, distant_starts, distant, i, 1)
                    # 4. and 5.: hear, and let the learner answer; of the round before, unless it combines last.
                    if panel is not None and hearing:
                        hear_expert_row(
                            panel, mixing, i, weights, broadcast, spoken, neighbours, combination, starts[i],
                            starts[i + 1], pull,
                        )  # fmt: skip
                    if climbs is not None and hearing:
                        hear_row(
                            last or numbers[PENDING] > 0.0, algorithm, rho, mixing, reach, heeds, weights, duals,
                            broadcast, run_sums, spoken, at, neighbours, combination, starts[i], starts[i + 1], pull,
                        )  # fmt: skip
                    if learning:
                        label = labels[t, i]
                        phi_at = (t * n_agents + i - first) * size

                        # 1. and 2.: predict, then learn.
                        margin = real(0.0)
                        if panel is not None:
                            margin = learn_expert_row(panel, loss, limit, i, weights, phi, phi_at, label)
                        if climbs is not None:
                            margin = learn_row(
                                algorithm, loss, rho, shrink, mixing, unit, rates[t],
                                real(starts[i + 1] - starts[i]), limit, weights, duals, broadcast, at, pull, phi,
                                phi_at, label, spare,
                            )  # fmt: skip
                        predictions[t, i] = margin
                        if not abs(margin) <= limit:
                            return DIVERGED, t * n_agents + i

                        # 3.: speak.
                        if direct and talks:
                            spoken[i] = SAID
                            sent[t, i] = starts[i + 1] > starts[i]
                        elif talks:
                            said, bits, beyond, square = encode_row(
                                weights, broadcast, at, n_features, size, threshold, purse, memory, message_bits,
                                rounding, cells, low, high, plan.coarseness, plan.dead_zone, innovation, chosen,
                                written, codes, scales,
                            )  # fmt: skip
                            connected = starts[i + 1] > starts[i]
                            spoken[i] = said
                            errors[i] = square
                            sent[t, i] = said != SILENT and connected
                            if beyond and connected:  # else it stays zero
                                outside[t, i] = beyond
                            if sizes.size:
                                sizes[t, i] = bits if connected else 0
                    if tallying:
                        tally_row(weights, at, size, numbers[SCALE], units, tops)
                        n_tallied += 1
                        if n_tallied == FOLDED or i + 1 == end:
                            fold(units, n_tallied, totals)
                            n_tallied = 0
                block = stop
            if turn == 0 and stages & APPLY and talks:
                if even and reach == 0.0:
                    apply_rows(begin, end, plan, rows, scratch)
                for i in range(begin, begin if even and reach == 0.0 else end):
                    if spoken[i] == SAID:
                        apply_row(weights, broadcast, i, n_features, size, rounding, cells, low, high, codes, scales)
                    if reach > 0.0:
                        sum_up(run_sums, broadcast, i)

        if not average(stages, begin, end, n_everywhere, weights, scratch, sums):
            return AGAIN, t * n_agents
        ended = close_round(stages, begin, end, t, dual, n_everywhere, weights, scratch, sums, record, labels)
        if ended != FINISHED:
            return ended, t * n_agents
    return FINISHED, n_rows
