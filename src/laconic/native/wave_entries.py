"""The functions of ``waves`` with the arguments of the compiled entries, until their callers keep structures."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.native.arrays import aligned
from laconic.native.waves import ArmArrays, Model, OwnSums, Rounds, Samples, predict, whole

__all__ = [
    "add_samples",
    "adopt",
    "finish",
    "look_back",
    "measure",
    "mix_arms",
    "personal_rounds",
    "predict",
    "quiet_rounds",
    "replay",
    "report",
    "watch",
    "whole",
]


def measure(weights: Array, outputs: int, theta: Array, mean: Array, found: Array, t: int) -> bool:
    """Distances of models after round ``t`` into its row of ``found``; False if their energy is not finite."""
    n_agents = len(weights) // outputs
    sizes = {"n_agents": n_agents, "n_outputs": outputs, "size": weights.shape[1]}
    return bool(Rounds.of(**sizes, theta=theta, found=found, gain=mean).measure(weights, t))


def finish(spread: Array, left: Array, agent: int) -> None:
    """Subtract from an agent's P the product that is pending in its row of ``left``."""
    size = left.shape[1]
    own = spread[agent * size : (agent + 1) * size]
    Model.within(left[agent : agent + 1], own, left[agent], left[agent], 1.0).finish()


def adopt(
    source: Array, models: Array, spread: Array, left: Array, weights: Array, theta: Array, agent: int,
    phi: Array, first: int, step: int, stop: int, squares: Array, forgetting: float, gain: Array,
) -> None:  # fmt: skip
    """P and w of a wave, a row an output, for an agent, and w is theta; then ``replay``."""
    size, rows = left.shape[1], slice(agent * len(models), (agent + 1) * len(models))
    own = spread[agent * size : (agent + 1) * size]
    model = Model.within(weights[rows], own, left[agent], gain, forgetting)
    since = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    model.adopt(source, models, theta[rows], since)


def replay(
    spread: Array, weights: Array, agent: int,
    phi: Array, first: int, step: int, stop: int, squares: Array, forgetting: float, gain: Array,
) -> None:  # fmt: skip
    """Learn samples ``first``, ``first`` + ``step``, .. again, in their order, from a model that a wave brought."""
    size, n_outputs = weights.shape[1], squares.shape[1] - 2
    own = spread[agent * size : (agent + 1) * size]
    rows = weights[agent * n_outputs : (agent + 1) * n_outputs]
    samples = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    Model.within(rows, own, np.zeros(size), gain, forgetting).replay(samples)


def add_samples(
    information: Array, moments: Array, numbers: Array,
    phi: Array, first: int, step: int, stop: int, squares: Array, forgetting: float, scaled: Array,
) -> None:  # fmt: skip
    """Add samples to A, b, c, m; with f < 1 all that came before shrinks by f each time."""
    samples = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    OwnSums.over(0, information, moments, numbers, scaled, forgetting).add(samples)


def watch(phi: Array, first: int, step: int, stop: int, squares: Array, watched: Array, sums: Array) -> None:
    """Sums of x = s e u.phi, of x^2 and of 1 over samples, a row an output; x is cut to three root mean squares."""
    samples = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    OwnSums.of(size=watched.shape[1], n_outputs=len(sums), watched=watched, sums=sums).watch(samples)


def look_back(
    information: Array, moments: Array, numbers: Array, theta: Array, change: Array, residual: Array, seen: Array
) -> None:
    """b - A theta into ``residual``; c - 2 b.theta + theta'A theta and d'A d, d = ``change``, into rows of ``seen``."""
    n = theta.shape[1]
    sums = OwnSums.over(n, information, moments, numbers, aligned(2, n, np.float64))
    sums.look_back(theta, change, residual, seen)


def report(
    information: Array, moments: Array, numbers: Array,
    phi: Array, added: int, counted: int, step: int, stop: int, squares: Array, forgetting: float, scaled: Array,
    watched: Array, sums: Array, theta: Array, change: Array, made: Array, residual: Array, seen: Array,
) -> float:  # fmt: skip
    """``add_samples`` from ``added`` on, ``watch`` from ``counted`` on, A's lower half, ``look_back``; returns m."""
    own = OwnSums.over(theta.shape[1], information, moments, numbers, scaled, forgetting)
    own.put(watched=watched, sums=sums)
    samples = Samples.of(first=added, step=step, stop=stop, phi=phi, squares=squares)
    return own.report(samples, counted, theta, change, made, residual, seen)


def mix_arms(arms: Any, weights: Array) -> None:
    """The mixtures of all agents."""
    ArmArrays.over(arms).mix(weights)


def quiet_rounds(
    phi: Array, labels: Array, start: int, stop: int, loss: int, forgetting: float,
    weights: Array, spread: Array, theta: Array, gain: Array, largest: Array,
    predictions: Array, squares: Array, found: Array, scores: Array, left: Array,
) -> tuple[int, int]:  # fmt: skip
    """Rounds ``start`` to ``stop`` in which no agent sends: how they ended, and the row at which they did."""
    rounds = Rounds.over(weights, spread, left, theta, loss, forgetting)
    rounds.record(phi, labels, labels, predictions, squares, found, scores)
    return _advance(rounds, start, stop, largest)


def personal_rounds(
    phi: Array, labels: Array, clipped: Array, start: int, stop: int, loss: int, forgetting: float,
    weights: Array, spread: Array, arms: Any, shared: Array, adopted: Array, theta: Array, gain: Array, largest: Array,
    predictions: Array, squares: Array, found: Array, scores: Array, stacks: Array,
) -> tuple[int, int]:  # fmt: skip
    """``quiet_rounds`` where each agent stacks arms of its own, and learns labels as ``clipped``.

    ``shared`` are the models for anybody's data, of agents that ``adopted`` one. ``stacks`` takes the weights that made
    each prediction.
    """
    own = ArmArrays.over(arms)
    own.put(shared=shared, adopted=adopted, stacks=stacks)
    rounds = Rounds.over(weights, spread, np.zeros_like(weights), theta, loss, forgetting, own)
    rounds.record(phi, labels, clipped, predictions, squares, found, scores)
    return _advance(rounds, start, stop, largest)


def _advance(rounds: Rounds, start: int, stop: int, largest: Array) -> tuple[int, int]:
    rounds.largest = float(largest[0])
    ended = rounds.advance(start, stop)
    largest[0] = rounds.largest
    return ended
