"""Samples and results between the order of agents and that of the kernels' rows."""

from __future__ import annotations

import numpy as np

from laconic._validate import Array
from laconic.engine.cache import entry
from laconic.engine.vectors import load, prefetch, prefetch_row, store, width_of

_NUMBERS = {4: np.float32, 8: np.float64}
_AHEAD = 64  # rows


@entry
def _take_rows(source, order, n_rounds, length, target):
    """Rows of so many numbers, of each round in this order. Reads are anywhere, but none has to wait for another.

    They are copied in whole vectors: what comes with a row from behind it is written over by the next one. How many are
    under way at once is a matter of how few instructions a row takes, so the loops ask no questions: what a vector
    would read or write beyond the end is copied afterwards.
    """
    n_agents, width = len(order), width_of(source)
    n_safe = (source.size - (length + width - 1) // width * width) // length + 1  # rows that may be copied in vectors
    for t in range(n_rounds):
        first = t * n_agents
        stop = max(0, min(n_agents, n_safe - first))
        if length == 1:
            prefetch_row(source, first, n_agents)  # so few that they stay in the cache until they are read
            for i in range(n_agents):
                target[first + i] = source[first + order[i]]
        elif length <= width:
            for i in range(stop):
                soon = (first + order[min(i + _AHEAD, n_agents - 1)]) * length
                prefetch(source, soon)
                prefetch(source, soon + length - 1)
                store(target, (first + i) * length, load(source, min(first + order[i], n_safe - 1) * length))
        else:
            for i in range(stop):
                here, there = min(first + order[i], n_safe - 1) * length, (first + i) * length
                for k in range(0, length, width):
                    store(target, there + k, load(source, here + k))
        if length > 1 and first + n_agents > n_safe:
            for i in range(n_agents):
                if i >= stop or first + order[i] >= n_safe:
                    for k in range(length):
                        target[(first + i) * length + k] = source[(first + order[i]) * length + k]


@entry
def _take_bytes(source, order, n_rounds, target):
    """The same for single bytes."""
    n_agents = len(order)
    for t in range(n_rounds):
        for i in range(n_agents):
            target[t * n_agents + i] = source[t * n_agents + order[i]]


@entry
def _take_lists(neighbours, starts, order, rank, moved, target):
    """The rows of the neighbours of each row."""
    for i in range(len(order)):
        begin, there = starts[order[i]], moved[i]
        for k in range(moved[i + 1] - there):
            target[there + k] = rank[neighbours[begin + k]]


def listed(starts: Array, neighbours: Array, order: Array, rank: Array) -> tuple[Array, Array]:
    """Neighbour lists back to back, of rows that are agents in this ``order``, and where each of them begins.

    Each list stays in the order that it has. In a loop, since what NumPy needs for it is three times as large.

    Examples
    --------
    >>> order = np.array([2, 0, 1], dtype=np.int32)  # of a path, whose ends are the agents 0 and 2
    >>> listed(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), order, np.argsort(order).astype(np.int32))
    (array([0, 1, 2, 4]), array([2, 2, 1, 0], dtype=int32))
    """
    moved = np.zeros(len(starts), dtype=np.int64)
    np.cumsum(np.diff(starts)[order], out=moved[1:])
    target = np.empty(len(neighbours), dtype=np.int32)
    known = (np.require(array, np.int64, ["C", "A", "W", "E"]) for array in (neighbours, starts))
    _take_lists(*known, order, rank, moved, target)
    return moved, target


def taken(array: Array, order: Array) -> Array:
    """``np.take(array, order, axis=1)`` of numbers (T, N, ...), several times faster.

    Examples
    --------
    >>> taken(np.array([[1.0, 2.0, 3.0]]), np.array([2, 0, 1], dtype=np.int32))
    array([[3., 1., 2.]])
    """
    n_rounds, n_agents = array.shape[:2]
    known = array.dtype.itemsize in _NUMBERS or (array.dtype.itemsize == 1 and array.ndim == 2)
    if not known or n_agents != len(order) or not array.size:
        return np.take(array, order, axis=1)
    source = np.require(array, None, ["C", "A", "W"])
    target = np.empty_like(source)
    if source.itemsize == 1:
        _take_bytes(source.reshape(-1).view(np.uint8), order, n_rounds, target.reshape(-1).view(np.uint8))
    else:
        real = _NUMBERS[source.itemsize]
        flat, length = source.reshape(-1).view(real), source.size // (n_rounds * n_agents)
        _take_rows(flat, order, n_rounds, length, target.reshape(-1).view(real))
    return target
