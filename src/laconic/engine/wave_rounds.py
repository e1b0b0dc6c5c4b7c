"""The compiled rounds of WaveRLS between two waves.

Every entry of a matrix P is a chain of fused operations in the order of the samples (``wave_lowering``), so it has the
same bits however samples are cut into blocks.

Models of N agents with K outputs are N K rows, those of agent i from row i K on. Of every sample there is a row of
squares: its weight, whether it has a label, and a target for each output.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry, lean_entry
from laconic.engine.endings import DIVERGED, DIVERGENCE, FINISHED, SPOILED
from laconic.engine.rows import add_row, clear_row, distance_row, dot_row
from laconic.engine.steps import SQUARED, SQUARED_HINGE, value_of
from laconic.engine.vectors import lean, load, splat, store
from laconic.engine.wave_lowering import gain_row, lower_and_gain, lower_spread

_TILE = 4  # doubles of a vector
_FLATTEST, _FARTHEST = 0.05, 8.0


@lean
def learn_row(spread, weights, agent, phi, row, squares, forgetting, gain):
    """P / f; then g = P phi, n = 1 + s g.phi, w + s g (z - w.phi)/n, P - s g g'/n; nothing more where s = 0."""
    size = weights.shape[1]
    stride, weight = spread.shape[1], squares[row, 0]
    at = agent * size * stride
    if forgetting < 1.0:
        raised = splat(1.0 / forgetting)
        for j in range(size):
            for k in range(0, j + 1, _TILE):
                place = at + j * stride + k
                store(spread, place, raised * load(spread, place))
    if weight == 0.0:
        return
    gain_row(spread, at, phi, row, size, gain)
    move_row(weights, agent, phi, row, squares, gain, gain, 0)
    lower_spread(spread, at, size, gain, 0)


@lean
def move_row(weights, agent, phi, row, squares, gain, gains, own):
    """w + s g (z - w.phi)/n; into a row of ``gains`` goes u, s g g'/n = u u'."""
    size, outputs, weight = weights.shape[1], squares.shape[1] - 2, squares[row, 0]
    scale = weight / (1.0 + weight * dot_row(gain, 0, phi, row * size, size))
    for k in range(outputs):
        model = (agent * outputs + k) * size
        error = squares[row, 2 + k] - dot_row(weights, model, phi, row * size, size)
        add_row(weights, model, scale * error, gain, 0, size)
    root = splat(math.sqrt(scale))
    for k in range(0, size, _TILE):
        store(gains, own * size + k, root * load(gain, k))


@lean
def learn_later(spread, weights, agent, phi, row, squares, forgetting, gain, left):
    """``learn_row``, but for u: it waits in a row of ``left`` for the next sample, and the one that waited is due."""
    size = weights.shape[1]
    if forgetting < 1.0:
        learn_row(spread, weights, agent, phi, row, squares, forgetting, gain)
    elif squares[row, 0] != 0.0:
        lower_and_gain(spread, agent * size * spread.shape[1], phi, row, size, left, agent, gain)
        move_row(weights, agent, phi, row, squares, gain, left, agent)


@lean
def square_row(loss, prediction, label):
    """Weight s and target z of the square that stands for the loss; s = 0 where there is no label."""
    if math.isnan(label):
        return 0.0, 0.0
    if loss == SQUARED:
        return 1.0, label
    if loss == SQUARED_HINGE:
        return (1.0, label) if label * prediction < 1.0 else (0.0, label)
    near = min(_FARTHEST, max(-_FARTHEST, prediction))
    p = 1.0 / (1.0 + math.exp(near))
    weight = max(p * (1.0 - p), _FLATTEST)
    return weight, near + label / (1.0 + math.exp(label * near)) / weight


@lean
def label_row(loss, predictions, labels, t, i, squares, row):
    """A sample's row of squares; one of several outputs without a label leaves it without any."""
    outputs = labels.shape[2]
    if outputs == 1:
        label = labels[t, i, 0]
        weight, target = square_row(loss, predictions[t, i, 0], label)
        squares[row, 0], squares[row, 1], squares[row, 2] = weight, 0.0 if math.isnan(label) else 1.0, target
        return
    whole = 1.0
    for k in range(outputs):
        if math.isnan(labels[t, i, k]):
            whole = 0.0
    squares[row, 0] = squares[row, 1] = whole
    for k in range(outputs):
        squares[row, 2 + k] = labels[t, i, k] if whole == 1.0 else 0.0


@lean
def measure_row(weights, outputs, theta, mean, found, t):
    """Distance of the models from their mean, their energy, and their distance from what everybody knows."""
    n_rows, size = weights.shape
    apart = energy = off = 0.0
    for k in range(outputs):
        clear_row(mean, 0, size)
        for i in range(k, n_rows, outputs):
            add_row(mean, 0, 1.0 / (n_rows // outputs), weights, i * size, size)
        for i in range(k, n_rows, outputs):
            apart += distance_row(weights, i * size, mean, 0, size)
            energy += dot_row(weights, i * size, weights, i * size, size)
            off += distance_row(weights, i * size, theta, i * size, size)
    found[t, 0], found[t, 1], found[t, 2] = math.sqrt(apart), energy, math.sqrt(off)
    return math.isfinite(energy)


@entry
def predict(phi, weights, predictions):
    """What models of one agent, a row each, make of the first row of ``phi``, with the bits of its rounds."""
    size = weights.shape[1]
    for k in range(predictions.size):
        predictions[0, 0, k] = dot_row(weights, k * size, phi, 0, size)


@entry
def measure(weights, outputs, theta, mean, found, t):
    """``measure_row`` for Python to call."""
    return measure_row(weights, outputs, theta, mean, found, t)


@lean_entry
def quiet_rounds(
    phi,
    labels,
    start,
    stop,
    loss,
    forgetting,
    weights,
    spread,
    theta,
    gain,
    largest,
    predictions,
    squares,
    found,
    scores,
    left,
):
    """Rounds ``start`` to ``stop`` in which nobody speaks; returns how they ended and the row at which they did.

    Row t N + i of ``phi`` and ``squares`` belongs to agent i in round t; ``labels`` and ``predictions`` are (T, N, K).
    ``found`` takes the three distances of every round; ``scores`` the collective ones, unless it is empty. ``left`` has
    a row for each agent, what is still to be subtracted from its P.
    """
    size, (_, n_agents, outputs) = weights.shape[1], labels.shape
    for t in range(start, stop):
        for i in range(n_agents):
            row = t * n_agents + i
            for k in range(outputs):
                predictions[t, i, k] = dot_row(weights, (i * outputs + k) * size, phi, row * size, size)
                if not abs(predictions[t, i, k]) <= DIVERGENCE * largest[0]:
                    return DIVERGED, row
        for i in range(n_agents):
            for k in range(outputs):
                if not math.isnan(labels[t, i, k]):
                    largest[0] = max(largest[0], abs(labels[t, i, k]))
        if scores.size:
            score_round(phi, labels, t, loss, weights, scores)
        for i in range(n_agents):
            row = t * n_agents + i
            label_row(loss, predictions, labels, t, i, squares, row)
            learn_later(spread, weights, i, phi, row, squares, forgetting, gain, left)
        if not measure_row(weights, outputs, theta, gain, found, t):
            return SPOILED, t * n_agents
    return FINISHED, stop * n_agents


@lean
def score_round(phi, labels, t, loss, weights, scores):
    """Every agent's model on every agent's sample of round t: mean squared error and mean loss for each model."""
    size, (_, n_agents, outputs) = weights.shape[1], labels.shape
    for i in range(n_agents):
        square = total = 0.0
        scored = 0
        for j in range(n_agents):
            for k in range(outputs):
                label = labels[t, j, k]
                if not math.isnan(label):
                    margin = dot_row(weights, (i * outputs + k) * size, phi, (t * n_agents + j) * size, size)
                    square += (margin - label) ** 2
                    total += value_of(loss, margin, label)
                    scored += 1
        scores[0, t, i] = square / scored if scored else np.nan
        scores[1, t, i] = total / scored if scored else np.nan


@entry
def finish(spread, left, agent):
    """Subtract from an agent's P what is left to be."""
    size = left.shape[1]
    lower_spread(spread, agent * size * spread.shape[1], size, left, agent)
    left[agent] = 0.0


@entry
def adopt(source, models, spread, left, weights, theta, agent, phi, first, step, stop, squares, forgetting, gain):
    """P and w of a wave, a matrix and a row an output, for an agent, and w is theta; then ``replay``."""
    size, (outputs, n) = weights.shape[1], models.shape
    left[agent] = 0.0
    for i in range(n):
        for k in range(min(n, (i + _TILE) // _TILE * _TILE)):
            spread[agent * size + i, k] = source[i, k]
    for output in range(outputs):
        for k in range(n):
            weights[agent * outputs + output, k] = theta[agent * outputs + output, k] = models[output, k]
    for row in range(first, stop, step):
        learn_row(spread, weights, agent, phi, row, squares, forgetting, gain)


@entry
def replay(spread, weights, agent, phi, first, step, stop, squares, forgetting, gain):
    """Learn samples ``first``, ``first`` + ``step``, .. again, in their order, from a model that a wave brought."""
    for row in range(first, stop, step):
        learn_row(spread, weights, agent, phi, row, squares, forgetting, gain)
