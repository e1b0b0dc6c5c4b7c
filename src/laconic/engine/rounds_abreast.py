"""The rounds of ODKLA and QC-ODKLA: ``rounds.advance`` for learners whose rows are learned abreast.

A kernel of its own, since it is what most people wait for first: it needs none of the ladder of ``steps`` and is
compiled in a fraction of the time.
"""

from __future__ import annotations

from laconic.engine.cache import lean_entry
from laconic.engine.coding import DENSE
from laconic.engine.endings import AGAIN, BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED
from laconic.engine.linearized import answer_rows, learn_rows
from laconic.engine.rounds import (
    ALL,
    APPLY,
    CHECK,
    HEAR,
    LARGEST,
    LEARN,
    MEASURE,
    PENDING,
    SCALE,
    average,
    close_round,
    first_bad_row,
    look_ahead,
)
from laconic.engine.rows import clear_row
from laconic.engine.settling import apply_rows, code_rows, settle_rows
from laconic.engine.summing import FOLDED, fold


@lean_entry
def advance_abreast(
    stages, begin, end, first_round, last_round,
    plan, graph, front, rows, scratch, sums, record, samples, mapped, labels, frequencies, rates, thresholds,
):  # fmt: skip
    """What ``rounds.advance`` does, with its arguments but for scores and experts."""
    numbers, errors, ahead = sums.numbers, sums.errors, scratch.phi
    units, tops, totals = scratch.units, scratch.tops, scratch.totals
    n_rounds, n_agents = labels.shape
    n_rows, n_everywhere = n_rounds * n_agents, plan.n_agents
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

        pending = numbers[PENDING] > 0.0
        if stages & LEARN:
            limit, threshold = DIVERGENCE * numbers[LARGEST], (thresholds[t] if thresholds.size else 0.0)
            clear_row(tops, 0, tops.shape[1])
            totals[:] = 0
            block = begin
            while block < end:
                row = t * n_agents + block
                if row >= done or row < first:  # Features come in blocks; of small networks, of many rounds.
                    first, done = row, min(row + ahead.shape[0], n_rows if whole_rounds else row - block + end)
                    bad_row = look_ahead(
                        row, done, front, samples, frequencies, plan.n_frequencies, plan.scale, scratch.phases, ahead
                    )  # fmt: skip
                if (t + 1) * n_agents > bad_row:
                    return BAD_INPUT, bad_row
                stop = min(end, block + done - row, block + FOLDED)
                diverged = learn_rows(
                    block, stop, t, phi, row - first, pending, limit, threshold, rates[t], numbers[SCALE], plan, graph,
                    rows, scratch, errors, record, labels,
                )  # fmt: skip
                if diverged >= 0:
                    return DIVERGED, diverged
                fold(units, stop - block, totals)
                block = stop
        if stages & HEAR and stages != ALL and pending:
            answer_rows(begin, end, plan.rho, graph, rows, scratch)
        if not average(stages, begin, end, n_everywhere, rows.weights, scratch, sums):
            return AGAIN, t * n_agents
        left = stages
        if stages & APPLY:  # MEASURE goes with it
            left &= ~MEASURE
            here = min(end, n_agents)
            settle_rows(begin, here, n_everywhere == 1, plan, rows, scratch, sums.mean, errors, sums.distances)
            if plan.rounding != DENSE:
                apply_rows(max(begin, here), end, plan, rows, scratch)
        ended = close_round(left, begin, end, t, True, n_everywhere, rows.weights, scratch, sums, record, labels)
        if ended != FINISHED:
            return ended, t * n_agents
    return FINISHED, n_rows


@lean_entry
def code_abreast(members, plan, rows, scratch, errors):
    """``code_rows``, called from Python."""
    code_rows(members, plan, rows, scratch, errors)
