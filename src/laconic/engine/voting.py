"""The compiled step of experts: who is believed, what each of them learns, and how all follow who has just spoken.

Models, votes and matrices are in double precision whatever the precision of a run; features are widened on their way
in, and the mixture narrowed on its way out. Matrices are kept as by ``wave_rounds``: rows of which only the tiles on
and below the diagonal are read and written.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.engine.rows import add_row, dot_row, mix_spoken_row
from laconic.engine.steps import LOGISTIC, SQUARED, SQUARED_HINGE, slope_of, value_of
from laconic.engine.vectors import ladder, lean, load, splat, store, vector_fma
from laconic.engine.wave_rounds import gain_row

_TILE = 4  # doubles of a vector
_WINDOW, _FLOOR, _WORST, _FLATTEST = 100.0, 0.01, 50.0, 0.05  # as in ``learners.experts``
_FADED = 1e-3  # as in ``waves.forgetting``
COST, COUNT = range(2)
RIDGE, SCALE, N_FEATURES, CURVED = range(4)


class Panel(NamedTuple):
    """What experts keep, back to back for all agents, their numbers, and room to work in.

    ``models`` has K rows an agent, ``spread`` a matrix of padded rows for each agent and expert of least squares;
    ``numbers`` are v and the count of labels; ``settings`` the ridge, max(1, c) of the loss, D, and whether c > 0.
    """

    models: np.ndarray
    votes: np.ndarray
    spread: np.ndarray
    numbers: np.ndarray
    steps: np.ndarray
    forgetting: np.ndarray
    settings: np.ndarray
    phi: np.ndarray
    gain: np.ndarray
    column: np.ndarray
    margins: np.ndarray


@lean
def bend_of(loss, margin, label):
    """The second derivative of the loss, 0 where it has none."""
    if loss == SQUARED:
        return 2.0
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + math.exp(margin))
        return p * (1.0 - p)
    if loss == SQUARED_HINGE:
        return 2.0 if label * margin < 1.0 else 0.0
    return 0.0


@lean
def forget_spread(spread, at, size, raised, u, v):
    """P <- raised P - u u' - v v'."""
    raised = splat(raised)
    for j in range(size):
        u_j, v_j, row = splat(-u[0, j]), splat(-v[0, j]), at + j * size
        for k in range(0, j + 1, _TILE):
            kept = vector_fma(u_j, load(u, k), raised * load(spread, row + k))
            store(spread, row + k, vector_fma(v_j, load(v, k), kept))


@lean
def least_squares_row(
    models, model, spread, at, size, n_features, phi, row, error, bend, forgetting, ridge, turn, gain, column
):
    """One more sample for the expert in row ``model``, whose matrix starts at ``at``; ``turn`` is whose ridge leaks."""
    gain_row(spread, at, phi, row, size, gain)
    scale = forgetting + bend * dot_row(gain, 0, phi, row * size, size)
    add_row(models, model * size, -error / scale, gain, 0, size)
    root = splat(math.sqrt(bend / (scale * forgetting)))
    for k in range(0, size, _TILE):
        store(gain, k, root * load(gain, k))
    # The column that leaks, as it will be: below its tile the matrix is read along it, up to there along its row.
    raised, first = 1.0 / forgetting, turn // _TILE * _TILE
    for k in range(first + _TILE):
        column[0, k] = raised * spread[at // size + turn, k] - gain[0, k] * gain[0, turn]
    for k in range(first + _TILE, size):
        column[0, k] = raised * spread[at // size + k, turn] - gain[0, k] * gain[0, turn]
    leak = n_features * (1.0 - forgetting) * ridge
    root = splat(math.sqrt(leak / (1.0 + leak * column[0, turn])))
    if forgetting**n_features < _FADED:
        share = leak / (1.0 + leak * column[0, turn])
        add_row(models, model * size, -(share * models[model, turn]), column, 0, size)
    for k in range(0, size, _TILE):
        store(column, k, root * load(column, k))
    forget_spread(spread, at, size, raised, gain, column)


@lean
def mix_experts(panel, agent, weights):
    """The agent's weights <- sum_k w_k theta_k."""
    models, votes = panel.models, panel.votes
    n_experts = votes.shape[1]
    for d in range(weights.shape[1]):
        total = 0.0
        for k in range(n_experts):
            total += votes[agent, k] * models[agent * n_experts + k, d]
        weights[agent, d] = total


@lean
def learn_experts(panel, loss, agent, weights, phi, row, label):
    """Vote on the experts of one agent, then let each of them learn; nothing of that without a label."""
    if math.isnan(label):
        return
    models, votes, spread, numbers, steps, forgetting, settings, wide, gain, column, margins = panel
    size, n_steps, n_experts = weights.shape[1], steps.size, votes.shape[1]
    scale, first = settings[SCALE], agent * n_experts
    mixed = square = 0.0
    for d in range(size):
        wide[0, d] = phi[row, d]
        square += wide[0, d] * wide[0, d]
    for k in range(n_experts):
        margins[0, k] = dot_row(models, (first + k) * size, wide, 0, size)
        mixed += votes[agent, k] * margins[0, k]

    # What it cost, and whom to believe.
    turn = int(numbers[agent, COUNT]) % int(settings[N_FEATURES])
    numbers[agent, COUNT] += 1.0
    cost = 2.0 * value_of(loss, mixed, label) / scale
    numbers[agent, COST] += (cost - numbers[agent, COST]) / min(numbers[agent, COUNT], _WINDOW)
    usual, total = numbers[agent, COST], 0.0
    for k in range(n_experts):
        cost = min(2.0 * value_of(loss, margins[0, k], label) / scale, 2.0 * _WORST * usual)
        votes[agent, k] *= math.exp(-cost / (2.0 * usual if usual > 0.0 else 1.0))
        total += votes[agent, k]
    for k in range(n_experts):
        votes[agent, k] = (1.0 - _FLOOR) * (votes[agent, k] / total) + _FLOOR / n_experts

    # What each expert learns of it.
    for k in range(n_experts):
        error = slope_of(loss, margins[0, k], label) / scale
        if k < n_steps:
            add_row(models, (first + k) * size, -2.0 * (steps[k] / max(1.0, square)) * error, wide, 0, size)
        else:
            r = k - n_steps
            bend = max(bend_of(loss, margins[0, k], label) / scale, _FLATTEST) if settings[CURVED] else 1.0
            at = (agent * forgetting.size + r) * size * size
            least_squares_row(
                models, first + k, spread, at, size, settings[N_FEATURES], wide, 0,
                error, bend, forgetting[r], settings[RIDGE], turn, gain, column,
            )  # fmt: skip
    mix_experts(panel, agent, weights)


@lean
def draw_experts(panel, agent, mixing, pull, weights):
    """All experts of an agent follow what pulls at their mixture."""
    models, n_experts = panel.models, panel.votes.shape[1]
    for k in range(n_experts):
        row = agent * n_experts + k
        for d in range(weights.shape[1]):
            models[row, d] += mixing * pull[0, d]
    mix_experts(panel, agent, weights)


@ladder
def learn_expert_row(panel, loss, limit, agent, weights, phi, phi_at, label):
    """What ``steps.learn_row`` does, for an agent that mixes experts."""
    size = weights.shape[1]
    margin = dot_row(weights, agent * size, phi, phi_at, size)
    if abs(margin) <= limit:
        learn_experts(panel, loss, agent, weights, phi, phi_at // size, label)
    return margin


@ladder
def hear_expert_row(panel, mixing, agent, weights, broadcast, spoken, neighbours, combination, start, stop, pull):
    """What ``steps.hear_row`` does, for an agent that mixes experts: those are heard who have just ``spoken``."""
    size = pull.shape[1]
    mix_spoken_row(weights, broadcast, agent * size, neighbours, combination, start, stop, spoken, pull, size)
    draw_experts(panel, agent, mixing, pull, weights)
