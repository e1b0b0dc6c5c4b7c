"""The compiled rounds of many agents: what the simulator calls, made of functions over single rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.engine.budgeting import BY_ROUND, Purse
from laconic.engine.cache import entry
from laconic.engine.coding import DENSE, transmit_row
from laconic.engine.endings import BAD_INPUT, DIVERGED, FINISHED
from laconic.engine.robust import sum_up
from laconic.engine.rows import add_row, clear_row, distance_row, dot_row
from laconic.engine.sincos import map_block, prefetch_row
from laconic.engine.steps import ADAPT_THEN_COMBINE, LOCAL, hear_rows, learn_rows, value_of
from laconic.engine.vectors import jit
from laconic.engine.voting import hear_expert_rows, learn_expert_rows


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


class Graph(NamedTuple):
    """Who hears whom: neighbour lists back to back, the combination weight of each entry, and how long each list is."""

    starts: np.ndarray
    neighbours: np.ndarray
    combination: np.ndarray
    degrees: np.ndarray


class Rows(NamedTuple):
    """What the agents hold, a row each, padded with zeros to whole vectors; ``pull`` is the disagreement (ADMM) or
    the mixture (diffusion) last heard.

    Where nothing is censored or spare, ``broadcast`` may be the very array ``weights``, except for the learner that
    moves its weights after it has spoken (adapt, then combine). ``sums`` are running sums of ``broadcast`` in double
    precision, where pulls are clipped; otherwise it has no rows. ``spoken`` says who has spoken in this round;
    ``memory`` is what a budget remembers, three numbers an agent, or empty.
    """

    weights: np.ndarray
    duals: np.ndarray
    broadcast: np.ndarray
    pull: np.ndarray
    sums: np.ndarray
    spoken: np.ndarray
    memory: np.ndarray


class Scratch(NamedTuple):
    """Room to work in, so that nothing is allocated in a round."""

    phases: np.ndarray
    phi: np.ndarray
    innovation: np.ndarray
    spare: np.ndarray
    chosen: np.ndarray
    written: np.ndarray


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
def map_rows(front, samples, frequencies, n_frequencies, scale, phases, phi):
    """phi(x) for each row of ``samples``, through a small buffer of phases; False if some phase is not finite."""
    finite = True
    for start in range(0, samples.shape[0], phases.shape[0]):
        stop = min(start + phases.shape[0], samples.shape[0])
        good = map_block(front, samples, start, stop, frequencies, n_frequencies, scale, phases, phi, start)
        finite &= good == stop - start
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


@entry
def listen(plan, graph, rows):
    """Step 4 for everybody: what a resumed run starts from."""
    weights, duals, broadcast, pull, sums, spoken, _ = rows
    starts, neighbours, combination, _ = graph
    hear_rows(
        False, plan.algorithm, plan.rho, plan.mixing, plan.reach, plan.heeds,
        weights, duals, broadcast, sums, spoken, starts, neighbours, combination, pull,
    )  # fmt: skip


@entry
def advance(
    plan,
    graph,
    front,
    rows,
    panel,
    scratch,
    record,
    scores,
    samples,
    mapped,
    labels,
    frequencies,
    rates,
    thresholds,
    largest,
):
    """Run the rounds of one chunk and return (status, row): how it ended, and the row t N + i where it stopped.

    ``samples`` holds a row for each (round, agent): inputs, or their features when ``mapped``. ``thresholds`` is empty
    when nothing is censored. ``largest`` holds the largest label so far, the yardstick of divergence. ``panel`` is
    what experts keep, ``scores`` two (T, N) arrays for the collective squared error and loss; either may be None, and
    then costs no compilation either.
    """
    algorithm, loss, rho, shrink, mixing, rounding, cells, low, high, scale, n_features, _, unit, reach = plan[:14]
    heeds, message_bits, purse = plan.heeds, plan.message_bits, plan.purse
    starts, neighbours, combination, degrees = graph
    weights, duals, broadcast, pull, sums, spoken, memory = rows
    phases, ahead, innovation, spare, chosen, written = scratch
    n_rounds, n_agents = labels.shape
    n_rows, size = n_rounds * n_agents, weights.shape[1]
    direct = rounding == DENSE and thresholds.size == 0 and purse.kind == BY_ROUND
    direct = direct and algorithm != ADAPT_THEN_COMBINE and panel is None
    phi = samples if mapped else ahead
    first, end = 0, (n_rows if mapped else 0)
    whole_rounds = mapped or ahead.shape[0] % n_agents == 0
    bad_row = n_rows

    for t in range(n_rounds):
        if not whole_rounds:  # no round may begin that cannot end
            bad_row = first_bad_row(samples, t * n_agents, (t + 1) * n_agents)
            bad_row = n_rows if bad_row == (t + 1) * n_agents else bad_row

        # 1. and 2.: predict, then learn. Features are computed in blocks of rounds; a large round takes several.
        i = 0
        while i < n_agents:
            row = t * n_agents + i
            if row >= end:
                first, end = row, min(row + ahead.shape[0], n_rows)
                good = map_block(front, samples, first, end, frequencies, plan.n_frequencies, scale, phases, ahead, 0)
                if good < end - first:
                    bad_row = first + good
            if (t + 1) * n_agents > bad_row:
                return BAD_INPUT, bad_row
            stop, phi_at = min(n_agents, i + end - row), (row - first) * size
            for k in range(row, row + stop - i):
                prefetch_row(samples, k + (1 if mapped else ahead.shape[0]))
            if scores is not None and i == 0:
                score_collectively(phi, phi_at, labels, t, weights, size, loss, scores[0], scores[1])
            if panel is not None:
                i = learn_expert_rows(
                    panel, loss, i, stop, weights, phi, phi_at, labels, t, record.predictions, largest
                )  # fmt: skip
            else:
                i = learn_rows(
                    algorithm, loss, rho, shrink, mixing, unit, rates[t], degrees, i, stop,
                    weights, duals, pull, broadcast, phi, phi_at, labels, t, record.predictions, largest, spare,
                )  # fmt: skip
            if i < stop:
                return DIVERGED, t * n_agents + i

        # 3.: speak. Where nothing is lost, ``broadcast`` is ``weights``.
        error = 0.0
        if direct and algorithm != LOCAL:
            for i in range(n_agents):
                record.sent[t, i] = starts[i + 1] > starts[i]
        elif algorithm != LOCAL:
            threshold = thresholds[t] if thresholds.size else 0.0
            for i in range(n_agents):
                sent, bits, outside, square = transmit_row(
                    weights,
                    broadcast,
                    i * size,
                    n_features,
                    size,
                    threshold,
                    purse,
                    memory,
                    message_bits,
                    rounding,
                    cells,
                    low,
                    high,
                    plan.coarseness,
                    plan.dead_zone,
                    innovation,
                    chosen,
                    written,
                )
                connected = starts[i + 1] > starts[i]
                spoken[i] = sent
                record.sent[t, i] = sent and connected
                record.outside[t, i] = outside if connected else 0
                if record.bits.size:
                    record.bits[t, i] = bits if connected else 0
                error += square

        # 4. and 5.: hear, and let the learner answer.
        if panel is not None:
            hear_expert_rows(panel, mixing, weights, broadcast, spoken, starts, neighbours, combination, pull)
        elif algorithm != LOCAL:
            if reach > 0.0:
                sum_up(sums, broadcast)
            hear_rows(
                True, algorithm, rho, mixing, reach, heeds,
                weights, duals, broadcast, sums, spoken, starts, neighbours, combination, pull,
            )  # fmt: skip

        record.broadcast_error[t] = math.sqrt(error)
        record.consensus[t], record.energy[t] = spread(weights, size, innovation)
        if not math.isfinite(record.energy[t]):
            return DIVERGED, t * n_agents
    return FINISHED, n_rows
