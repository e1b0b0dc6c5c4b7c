"""From a table of rows to rounds of agents: whose a row is, and in what order each agent sees its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

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
    dealt = in_turn(n_rows, n_agents, first)
    return dealt.take(X), dealt.take(labels, np.nan)


@final
class Dealt(NamedTuple):
    """Which row each agent sees in each round, (T, n_agents); -1 where it sees none."""

    rows: Array

    def take(self, values: Array, nothing: float | None = None) -> Array:
        """``values`` (n, ...) dealt out; where there is no row ``nothing``, or, if that is None, zeros."""
        taken = values[np.maximum(self.rows, 0)]
        filled = (self.rows >= 0).reshape(*self.rows.shape, *(1,) * (values.ndim - 1))
        return np.where(filled, taken, 0.0 if nothing is None else nothing)

    def passes(self, n_passes: int, random: np.random.Generator) -> Iterator[Dealt]:
        """The same rows ``n_passes`` times; in each pass every agent goes through its own in a new order."""
        agents = np.arange(self.rows.shape[1])
        for _ in range(n_passes):
            rounds = np.tile(np.arange(len(self.rows))[:, None], len(agents))
            yield Dealt(self.rows[random.permuted(rounds, axis=0), agents])


def in_turn(n_rows: int, n_agents: int, first: int = 0) -> Dealt:
    """Row r to agent (first + r) mod N."""
    n_rounds = -(-(first + n_rows) // n_agents)
    rows = np.full(n_rounds * n_agents, -1)
    rows[first : first + n_rows] = np.arange(n_rows)
    return Dealt(rows.reshape(n_rounds, n_agents))


def by_owner(owners: Array, n_agents: int) -> Dealt:
    """Row r to agent ``owners[r]``, each its own in their order; streams end when they end.

    >>> import numpy as np
    >>> by_owner(np.array([1, 0, 1, 1]), n_agents=2).rows
    array([[ 1,  0],
           [-1,  2],
           [-1,  3]])
    """
    own = [np.flatnonzero(owners == agent) for agent in range(n_agents)]
    rows = np.full((max(map(len, own)), n_agents), -1)
    for agent, mine in enumerate(own):
        rows[: len(mine), agent] = mine
    return Dealt(rows)


class Rows(NamedTuple):
    """Distinct rows in an order that does not depend on the table's, and how often each counts.

    A table in which a row stands three times and one in which it has the weight 3 are thus the same table.
    """

    X: Array
    labels: Array
    owners: Array
    weights: Array


def merge(X: Array, labels: Array, owners: Array | None, weights: Array | None) -> Rows:
    """The distinct rows of a table, weights of equal ones added up, those of weight 0 left out; all sorted."""
    owners = np.zeros(len(X), dtype=np.int64) if owners is None else owners
    weights = np.ones(len(X)) if weights is None else weights
    kept = weights > 0
    X, labels, owners, weights = X[kept], labels[kept], owners[kept], weights[kept]
    keys = np.column_stack([owners, labels, X])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    total = np.add.reduceat(weights[order], np.flatnonzero(fresh)) if len(keys) else weights
    chosen = order[fresh]
    return Rows(X[chosen], labels[chosen], owners[chosen], total)
