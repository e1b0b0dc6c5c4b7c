"""Samples and results between the order of agents and that of the kernels' rows."""

from __future__ import annotations

import numpy as np

from laconic._validate import Array
from laconic.engine.cache import entry
from laconic.engine.vectors import load, store, width_of

_NUMBERS = {4: np.float32, 8: np.float64}


@entry
def _take_rows(source, order, n_rounds, length, target):
    """Rows of so many numbers, of each round in this order. Reads are anywhere, but none has to wait for another.

    They are copied in whole vectors: what comes with a row from behind it is written over by the next one.
    """
    n_agents, width = len(order), width_of(source)
    behind = source.size - (length + width)
    for t in range(n_rounds):
        for i in range(n_agents):
            here, there = (t * n_agents + order[i]) * length, (t * n_agents + i) * length
            if length > 1 and here < behind and there < behind:
                for k in range(0, length, width):
                    store(target, there + k, load(source, here + k))
            else:
                for k in range(length):
                    target[there + k] = source[here + k]


@entry
def _take_bytes(source, order, n_rounds, target):
    """The same for single bytes."""
    n_agents = len(order)
    for t in range(n_rounds):
        for i in range(n_agents):
            target[t * n_agents + i] = source[t * n_agents + order[i]]


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
