"""The compiled rounds of agents that stack arms of their own beside the wave's model, between two waves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.endings import DIVERGED, DIVERGENCE, FINISHED, SPOILED
from laconic.engine.rows import add_row, copy_row, dot_row
from laconic.engine.vectors import jit
from laconic.engine.voting import least_squares_row
from laconic.engine.wave_rounds import label_row, learn_row, measure_row, score_round

_MEMORY, _BACK, _STEEPEST = 0.99, 0.003, 5.0  # as in ``waves.arms``
FORGETTING, RIDGE, STEP, N_FEATURES = range(4)


class Arms(NamedTuple):
    """What the arms of all agents keep, and room to work in.

    ``pair`` has two rows an agent, the shrunk and the personal arm, and ``pair_spread`` two matrices; ``recent``,
    ``quick`` and ``models``, the mixture that predicts, one row. ``stack`` has the weights of an agent's arms,
    ``errors`` the sums of products of their errors, five rows an agent. ``settings`` are forgetting, ridge and step.
    """

    models: np.ndarray
    pair: np.ndarray
    pair_spread: np.ndarray
    recent: np.ndarray
    recent_spread: np.ndarray
    quick: np.ndarray
    stack: np.ndarray
    errors: np.ndarray
    turns: np.ndarray
    first: np.ndarray
    settings: np.ndarray
    column: np.ndarray
    margins: np.ndarray
    slopes: np.ndarray


@jit
def mix_row_of(arms, agent, weights):
    """The mixture of an agent's arms, as one model."""
    models, stack, size, at = arms.models, arms.stack, weights.shape[1], agent * weights.shape[1]
    copy_row(weights, at, models, at, size)
    for d in range(size):
        models[agent, d] *= stack[agent, 0]
    add_row(models, at, stack[agent, 1], arms.pair, 2 * at, size)
    add_row(models, at, stack[agent, 2], arms.pair, 2 * at + size, size)
    add_row(models, at, stack[agent, 3], arms.recent, at, size)
    add_row(models, at, stack[agent, 4], arms.quick, at, size)


@entry
def mix_arms(arms, weights):
    """The mixtures of all agents."""
    for agent in range(weights.shape[0]):
        mix_row_of(arms, agent, weights)


@jit
def stack_row(arms, agent):
    """The weights of an agent's arms after the errors in ``margins``: see ``waves.arms.Stack``."""
    stack, errors, margins, slopes, first = arms.stack, arms.errors, arms.margins, arms.slopes, arms.first
    n_arms = stack.shape[1]
    mean = total = 0.0
    for k in range(n_arms):
        slope = 0.0
        for m in range(n_arms):
            errors[agent * n_arms + k, m] = _MEMORY * errors[agent * n_arms + k, m] + margins[k] * margins[m]
            slope += errors[agent * n_arms + k, m] * stack[agent, m]
        slopes[k] = slope
        mean += stack[agent, k] * slope
    if not mean > 0.0:
        return
    for k in range(n_arms):
        steep = min(_STEEPEST, max(-_STEEPEST, (mean - slopes[k]) / mean))
        stack[agent, k] *= math.exp(steep)
        total += stack[agent, k]
    for k in range(n_arms):
        stack[agent, k] = (1.0 - _BACK) * (stack[agent, k] / total) + _BACK * first[k]


@jit
def learn_arms(arms, agent, weights, spread, phi, row, squares, forgetting, gain):
    """The stack of an agent, and each of its arms, the wave's too, after one more sample."""
    size = weights.shape[1]
    at, phi_at, margins, label = agent * size, row * size, arms.margins, squares[row, 2]
    margins[0] = dot_row(weights, at, phi, phi_at, size) - label
    margins[1] = dot_row(arms.pair, 2 * at, phi, phi_at, size) - label
    margins[2] = dot_row(arms.pair, 2 * at + size, phi, phi_at, size) - label
    margins[3] = dot_row(arms.recent, at, phi, phi_at, size) - label
    margins[4] = dot_row(arms.quick, at, phi, phi_at, size) - label
    learn_row(spread, weights, agent, phi, row, squares, forgetting, gain)
    learn_row(arms.pair_spread, arms.pair, 2 * agent, phi, row, squares, forgetting, gain)
    learn_row(arms.pair_spread, arms.pair, 2 * agent + 1, phi, row, squares, forgetting, gain)
    if squares[row, 0] > 0.0:
        stack_row(arms, agent)
        settings, turns = arms.settings, arms.turns
        n_features = int(settings[N_FEATURES])
        least_squares_row(
            arms.recent, agent, arms.recent_spread, at * size, size, n_features, phi, row, margins[3], 1.0,
            settings[FORGETTING], settings[RIDGE], turns[agent], gain, arms.column,
        )  # fmt: skip
        turns[agent] = (turns[agent] + 1) % n_features
        square = dot_row(phi, phi_at, phi, phi_at, size)
        if square > 0.0:
            add_row(arms.quick, at, -(settings[STEP] * margins[4] / square), phi, phi_at, size)
    mix_row_of(arms, agent, weights)


@entry
def personal_rounds(
    phi,
    labels,
    clipped,
    start,
    stop,
    loss,
    forgetting,
    weights,
    spread,
    arms,
    shared,
    adopted,
    theta,
    gain,
    largest,
    predictions,
    squares,
    found,
    scores,
    stacks,
):
    """What ``wave_rounds.quiet_rounds`` does, where each agent stacks arms of its own.

    ``clipped`` are the labels as they are learned from, ``shared`` the models for anybody's data: those of the wave's
    arm where none was ``adopted`` yet. ``stacks`` takes the weights with which each prediction was made.
    """
    n_agents, size = weights.shape
    for t in range(start, stop):
        for i in range(n_agents):
            row = t * n_agents + i
            predictions[t, i, 0] = dot_row(arms.models, i * size, phi, row * size, size)
            if not abs(predictions[t, i, 0]) <= DIVERGENCE * largest[0]:
                return DIVERGED, row
        for i in range(n_agents):
            if not math.isnan(labels[t, i, 0]):
                largest[0] = max(largest[0], abs(labels[t, i, 0]))
        if scores.size:
            for i in range(n_agents):
                if not adopted[i]:
                    copy_row(weights, i * size, shared, i * size, size)
            score_round(phi, labels, t, loss, shared, scores)
        for i in range(n_agents):
            for k in range(stacks.shape[2]):
                stacks[t, i, k] = arms.stack[i, k]
            row = t * n_agents + i
            label_row(loss, predictions, clipped, t, i, squares, row)
            learn_arms(arms, i, weights, spread, phi, row, squares, forgetting, gain)
        if not measure_row(arms.models, 1, theta, gain, found, t):
            return SPOILED, t * n_agents
    return FINISHED, stop * n_agents
