"""The compiled round of one agent, cut into its steps, since others have to be waited for in between.

What a running agent holds, a row each: its model, its dual, what it last heard, room to work in, and what it has said
(its broadcast), behind which lie its neighbours' replicas. The arguments are few because each costs as much as many
frequencies: an array holds the real numbers of the plan, another the whole ones.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.budgeting import N_REMEMBERED, admits, pays
from laconic.engine.cache import entry
from laconic.engine.coding import DENSE, add_code_row, code_row, pack_row, range_row, unpack_row
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED, NORM_LIMIT
from laconic.engine.entropy_coding import add_codes, choose_codes, read_codes, write_codes
from laconic.engine.lifting import lift_rows
from laconic.engine.robust import clip_duals, sum_up, weigh_row
from laconic.engine.rows import copy_row, dot_row, subtract_row
from laconic.engine.sincos import project, wave
from laconic.engine.steps import hear_row, learn_row
from laconic.engine.vectors import jit
from laconic.engine.voting import hear_expert_row, learn_expert_row

OWN, DUAL, PULL, PHI, SPARE, CELLS, SAID = range(7)
N_OWN_ROWS = 7
RHO, SHRINK, SCALE, LARGEST, DEGREE, MIXING, LOW, HIGH, REACH = range(9)
INCOME, BURST, GAIN, COARSENESS, DEAD_ZONE, MEMORY = range(9, 15)
N_NUMBERS = MEMORY + N_REMEMBERED
ALGORITHM, LOSS, N_FREQUENCIES, ROUNDING, BITS, N_FEATURES, UNIT, CENSOR, MESSAGE_BITS = range(9)


@jit
def map_sample(sample, frequencies, rows, phases, numbers, codes):
    """phi(x) into its row; False if some phase is not finite."""
    project(sample, 0, 1, frequencies, phases)
    return wave(phases, 1, codes[N_FREQUENCIES], rows.dtype.type(numbers[SCALE]), rows, PHI) == 1


@entry
def lift_one(front, sample, rows, codes):
    """What a map that scales takes instead of the sample, into ``front.lifted``; and its linear block into its row."""
    lift_rows(front, sample, 0, 1, codes[N_FREQUENCIES], rows, PHI)


@entry
def predict_one(sample, frequencies, rows, phases, numbers, codes):
    """The prediction of an agent for one ``sample`` (1, d), or NaN if the sample is not finite."""
    size = rows.shape[1]
    if not map_sample(sample, frequencies, rows, phases, numbers, codes):
        return rows.dtype.type(np.nan)
    return dot_row(rows, OWN * size, rows, PHI * size, size)


@entry
def learn_one(sample, label, rate, frequencies, rows, panel, phases, numbers, codes):
    """Steps 1 and 2 for one agent, with the bits that ``advance`` gives it. Returns (status, prediction).

    A ``label`` that is NaN is missing; the agent then still shrinks its model and follows its neighbours.
    """
    real = rows.dtype.type
    size = rows.shape[1]
    rho, shrink, mixing = real(numbers[RHO]), real(numbers[SHRINK]), real(numbers[MIXING])
    if not map_sample(sample, frequencies, rows, phases, numbers, codes):
        return BAD_INPUT, real(np.nan)
    weights, label, limit = rows[OWN : OWN + 1], real(label), DIVERGENCE * numbers[LARGEST]
    if panel is not None:
        margin = learn_expert_row(panel, codes[LOSS], limit, 0, weights, rows, PHI * size, label)
    else:
        margin = learn_row(
            codes[ALGORITHM], codes[LOSS], rho, shrink, mixing, codes[UNIT] != 0, real(rate),
            real(numbers[DEGREE]), limit, weights, rows[DUAL : DUAL + 1], rows[SAID : SAID + 1], 0,
            rows[PULL : PULL + 1], rows, PHI * size, label, rows[SPARE : SPARE + 1],
        )  # fmt: skip
    if not abs(margin) <= limit or not math.isfinite(dot_row(weights, 0, weights, 0, size)):
        return DIVERGED, margin
    if abs(label) > numbers[LARGEST]:
        numbers[LARGEST] = abs(label)
    return FINISHED, margin


@jit
def purse_of(numbers, codes):
    """How the censor decides."""
    return codes[CENSOR], numbers[INCOME], numbers[BURST], numbers[GAIN]


@entry
def speak_one(threshold, packed, rows, numbers, codes):
    """Step 3 for one agent: censor, quantize, and write the codes to ``packed``.

    Returns (sent, entries outside the range, scale); the scale is that of an adaptive range, 0 for a message of zeros.
    """
    real = rows.dtype.type
    size, n_features = rows.shape[1], codes[N_FEATURES]
    rounding, bits = codes[ROUNDING], codes[BITS]
    at, said_at = OWN * size, SAID * size
    innovation = rows[SPARE : SPARE + 1]
    subtract_row(rows, at, rows, said_at, innovation, 0, size)
    norm, purse = math.sqrt(dot_row(innovation, 0, innovation, 0, size)), purse_of(numbers, codes)
    if not admits(norm, threshold, purse, numbers, MEMORY):
        return False, 0, np.float32(0)
    if not pays(norm, codes[MESSAGE_BITS], purse, numbers, MEMORY):
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


@entry
def speak_coded(threshold, chosen, written, rows, numbers, codes):
    """Step 3 for one agent with an entropy code; (sent, entries beyond the largest code, bytes of the message)."""
    size, n_features = rows.shape[1], codes[N_FEATURES]
    innovation = rows[SPARE : SPARE + 1]
    subtract_row(rows, OWN * size, rows, SAID * size, innovation, 0, size)
    norm, purse = math.sqrt(dot_row(innovation, 0, innovation, 0, size)), purse_of(numbers, codes)
    if not admits(norm, threshold, purse, numbers, MEMORY):
        return False, 0, 0
    step, outside = choose_codes(innovation, n_features, numbers[COARSENESS], numbers[DEAD_ZONE], chosen)
    length = write_codes(step, chosen, n_features, written)
    if not pays(norm, 8 * length, purse, numbers, MEMORY):
        return False, 0, 0
    add_codes(step, chosen, n_features, rows, SAID)
    return True, outside, length


@jit
def replace_replica(rows, index):
    """Take ``rows[SPARE]`` as the new replica ``index``; False, and nothing is taken, if it is beyond all bounds."""
    size = rows.shape[1]
    if not dot_row(rows, SPARE * size, rows, SPARE * size, size) <= NORM_LIMIT * NORM_LIMIT:
        return False
    copy_row(rows, SPARE * size, rows, (SAID + index) * size, size)
    return True


@entry
def hear_codes(index, packed, scale, rows, numbers, codes):
    """Step 4: add the message of a neighbour to its replica; False, and nothing changes, if the message is no good."""
    real = rows.dtype.type
    size, n_features = rows.shape[1], codes[N_FEATURES]
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
    return replace_replica(rows, index)


@entry
def hear_coded(index, data, chosen, rows, codes):
    """Step 4 where an entropy code came: (whether it is one, whether it leaves the replica within bounds)."""
    size, n_features = rows.shape[1], codes[N_FEATURES]
    if not read_codes(data, n_features, chosen):
        return False, False
    copy_row(rows, (SAID + index) * size, rows, SPARE * size, size)
    add_codes(data[0], chosen, n_features, rows, SPARE)
    return True, replace_replica(rows, index)


@entry
def hear_dense(index, model, rows):
    """Step 4 where a neighbour's model came as it is."""
    rows[SPARE] = 0
    for k in range(model.size):
        rows[SPARE, k] = model[k]
    return replace_replica(rows, index)


@entry
def listen_one(bounds, live, combination, rows, shares, sums, numbers, codes):
    """Steps 4 and 5 for one agent: what its ``live`` neighbours pull at, its dual, and the shares that make it up."""
    real = rows.dtype.type
    size, said = rows.shape[1], rows[SAID:]
    if numbers[REACH] > 0.0:
        for row in range(sums.shape[0]):
            sum_up(sums, said, row)
    hear_row(
        True, codes[ALGORITHM], real(numbers[RHO]), real(numbers[MIXING]), numbers[REACH], False,
        rows[OWN : OWN + 1], rows[DUAL : DUAL + 1], said, sums, live, 0, live, combination, bounds[0], bounds[1],
        rows[PULL : PULL + 1],
    )  # fmt: skip
    add_to_shares(live, said, shares, size)


@jit
def add_to_shares(live, said, shares, size):
    """F <- F + theta-hat_i - theta-hat_j, of each live neighbour."""
    for n in range(live.size):
        row = live[n]
        for k in range(size):
            shares[row, k] += np.float64(said[0, k]) - np.float64(said[row, k])


@entry
def listen_to_spoken(bounds, live, combination, spoken, rows, panel, shares, numbers, codes):
    """As ``listen_one``, for a learner that mixes only with those who have just ``spoken``."""
    real = rows.dtype.type
    size, said = rows.shape[1], rows[SAID:]
    own, pull, mixing = rows[OWN : OWN + 1], rows[PULL : PULL + 1], real(numbers[MIXING])
    if panel is not None:
        hear_expert_row(panel, mixing, 0, own, said, spoken, live, combination, bounds[0], bounds[1], pull)
    else:
        hear_row(
            True, codes[ALGORITHM], real(numbers[RHO]), mixing, 0.0, True, own, rows[DUAL : DUAL + 1], said, shares,
            spoken, 0, live, combination, bounds[0], bounds[1], pull,
        )  # fmt: skip
    add_to_shares(live, said, shares, size)


@entry
def settle_one(live, rows, sums, numbers):
    """The dual of an agent whose pulls are clipped, from its sums and those of its ``live`` neighbours."""
    size = rows.shape[1]
    _, kept = weigh_row(numbers[REACH], rows[SAID:], sums, 0, live, 0, live.size, size)
    clip_duals(kept, rows.dtype.type(numbers[RHO]), sums, 0, live, 0, live.size, rows, DUAL * size, size)
