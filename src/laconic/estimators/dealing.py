"""From a table of rows to rounds of agents: row r belongs to agent r mod N, and stays there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from laconic._validate import Array


def deal(X: Array, labels: Array, n_agents: int, first: int = 0) -> tuple[Array, Array]:
    """Rounds ``(T, n_agents, d)`` and ``(T, n_agents)`` of rows dealt out in their order, to agent ``first`` first.

    Where the first or the last round has no row for an agent its label is missing (NaN).

    >>> import numpy as np
    >>> deal(np.zeros((4, 1)), np.arange(4.0), n_agents=3, first=1)[1]
    array([[nan,  0.,  1.],
           [ 2.,  3., nan]])
    """
    n_rows, n_inputs = X.shape
    if n_agents == 1:
        return X.reshape(n_rows, 1, n_inputs), labels.reshape(n_rows, 1)
    n_rounds = -(-(first + n_rows) // n_agents)
    samples = np.zeros((n_rounds * n_agents, n_inputs))
    padded = np.full(n_rounds * n_agents, np.nan)
    samples[first : first + n_rows] = X
    padded[first : first + n_rows] = labels
    return samples.reshape(n_rounds, n_agents, n_inputs), padded.reshape(n_rounds, n_agents)


def passes(
    X: Array, labels: Array, n_agents: int, n_passes: int, random: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """The same rows ``n_passes`` times. In each pass every agent goes through its own rows in a new order."""
    samples, dealt = deal(X, labels, n_agents)
    agents = np.arange(n_agents)
    for _ in range(n_passes):
        rounds = np.tile(np.arange(len(dealt))[:, None], n_agents)
        order = random.permuted(rounds, axis=0)
        yield samples[order, agents], dealt[order, agents]
