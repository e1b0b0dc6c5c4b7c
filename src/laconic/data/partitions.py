"""Dealing rows to agents: in their order, at random, each its own region, or unevenly."""

from __future__ import annotations

import re

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

_KINDS = "'time', 'shuffled', 'time-stretches', 'sorted-by-feature:k', 'sorted-by-target' or 'uneven'"
_NOBODY = -1


def partition(
    X: object,
    y: object,
    n_agents: int,
    how: str = "time",
    seed: int = 0,
    *,
    concentration: float = 1.0,
) -> tuple[Array, Array]:
    """Deal n rows to N agents: a stream of T rounds with one row for each agent.

    Parameters
    ----------
    X : array (n, d)
    y : array (n,)
    n_agents : int
        N.
    how : str
        - "time": in the order of the rows, dealt in turn: round t holds the rows (t-1) N .. t N - 1. At any round all
          agents live in the same moment, so drift in the data is drift for the whole network. T = floor(n / N), and the
          n - T N rows left over are left out.
        - "shuffled": at random (the paper), as many. Predictions of a stream in time are then no forecasts: later rows
          are learned before earlier ones.
        - "time-stretches": agent i gets the i-th contiguous stretch of T rows, in its order: agents live in different
          moments.
        - "sorted-by-feature:k", "sorted-by-target": rows are sorted by input k (counted from 0) or by the label and cut
          into N blocks of neighbouring quantiles; each agent gets one block, shuffled. Agents see different regions:
          this is where collaboration matters.
        - "uneven": at random, with sizes drawn from a symmetric Dirichlet distribution. All rows are dealt, at least
          one to each agent; T is the largest size. An agent whose rows have run out repeats its last input with the
          label NaN: nothing is learned from it and it is never scored.
    seed : int
        For everything drawn.
    concentration : float
        Of the Dirichlet distribution: small is very uneven, large is nearly even.

    Returns
    -------
    X : array (T, N, d)
    y : array (T, N)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import data
    >>> X, y = np.arange(7.0)[:, None], np.arange(7.0)
    >>> data.partition(X, y, 2)[1].tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    >>> sorted(data.partition(X, y, 2, "sorted-by-target", seed=1)[1][:, 1].tolist())
    [4.0, 5.0, 6.0]
    """
    inputs = _validate.real_array("X", X, "(n, d)", ndim=2)
    labels = _validate.real_array("y", y, "(n,)", ndim=1)
    return _gather(inputs, labels, rows_of(inputs, labels, n_agents, how, seed, concentration))


def rows_of(
    inputs: Array, labels: Array, n_agents: int, how: str = "time", seed: int = 0, concentration: float = 1.0
) -> Array:
    """Which row ``partition`` gives to each agent in each round, (T, N); -1 where there is none."""
    if len(labels) != len(inputs):
        raise ValueError(f"y must have a label for each of the {len(inputs)} rows of X, got {len(labels)}.")
    n_agents = _validate.integer("n_agents", n_agents, least=1)
    if n_agents > len(inputs):
        raise ArgumentError("n_agents", f"must be at most {len(inputs)}, the number of rows of X; got {n_agents}.")
    random = np.random.default_rng(_validate.integer("seed", seed, least=0))
    concentration = _validate.number("concentration", concentration, above=0)
    return _deal(inputs, labels, n_agents, how, random, concentration)


def _deal(X: Array, y: Array, n_agents: int, how: str, random: np.random.Generator, concentration: float) -> Array:
    """Which row each agent gets in each round, (T, N); ``_NOBODY`` where there is none."""
    n, n_rounds = len(X), len(X) // n_agents
    if how == "shuffled":
        return random.permutation(n)[: n_rounds * n_agents].reshape(n_rounds, n_agents)
    if how == "time":
        return np.arange(n_rounds * n_agents).reshape(n_rounds, n_agents)
    if how == "time-stretches":
        return np.arange(n_rounds * n_agents).reshape(n_agents, n_rounds).T
    if how == "uneven":
        sizes = _sizes(n, random.dirichlet(np.full(n_agents, concentration)))
        return _stack(np.split(random.permutation(n), np.cumsum(sizes)[:-1]))
    values = _sort_key(X, y, how)
    shuffled = random.permutation(n)  # equal values are dealt at random, not in the order of the file
    ordered = shuffled[np.argsort(values[shuffled], kind="stable")]
    blocks = [random.permutation(block)[:n_rounds] for block in np.array_split(ordered, n_agents)]
    return np.stack(blocks, axis=1)


def _sort_key(X: Array, y: Array, how: object) -> Array:
    if how == "sorted-by-target":
        return y
    match = re.fullmatch(r"sorted-by-feature:(\d+)", how) if isinstance(how, str) else None
    if match is None:
        raise ArgumentError("how", f"must be {_KINDS}, got {_validate.shown(how)}.")
    column = int(match.group(1))
    if column >= X.shape[1]:
        raise ArgumentError("how", f"must name a feature from 0 to {X.shape[1] - 1}, got {_validate.shown(how)}.")
    return np.asarray(X[:, column])


def _sizes(n: int, shares: Array) -> Array:
    """Whole numbers that add up to ``n``, at least 1 each, as near to the shares as may be."""
    exact = shares * (n - len(shares))
    sizes = np.floor(exact).astype(int)
    largest = np.argsort(sizes - exact, kind="stable")[: n - len(shares) - int(sizes.sum())]
    sizes[largest] += 1
    return np.asarray(sizes + 1)


def _stack(blocks: list[Array]) -> Array:
    rows = np.full((max(len(block) for block in blocks), len(blocks)), _NOBODY)
    for agent, block in enumerate(blocks):
        rows[: len(block), agent] = block
    return rows


def _gather(X: Array, y: Array, rows: Array) -> tuple[Array, Array]:
    present = rows != _NOBODY
    last = rows[present.sum(axis=0) - 1, np.arange(rows.shape[1])]
    filled = np.where(present, rows, last)
    return X[filled], np.where(present, y[filled], np.nan)
