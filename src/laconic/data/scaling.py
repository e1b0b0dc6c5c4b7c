"""Scaling to [0, 1]: by column, by the whole matrix, or by what has been seen so far.

The paper says that "all values are between 0 and 1". ``column`` is the usual reading; the prepared sets were scaled by
``matrix``, one minimum and one maximum for all columns together, which leaves small columns small. Both look at the
whole set first, which nobody can who learns from a stream: ``running`` does not.
"""

from __future__ import annotations

from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array

HOW = ("column", "matrix", "running")


def scale(X: object, how: str = "column") -> Array:
    """``X`` scaled to [0, 1]; the labels are scaled on their own by the same function.

    Parameters
    ----------
    X : array (n,), (n, d) or (T, n_agents, d)
        Labels, inputs, or inputs already dealt to agents (the last axis holds the columns). NaN, a label that is not
        there, stays NaN.
    how : "column", "matrix" or "running"
        By the minimum and maximum of each column; of the whole matrix; or of each column up to and including the row
        (or round), as ``RunningScaler`` does.

    Returns
    -------
    array of the shape of ``X``, float64
        A column that is constant becomes 0.

    Examples
    --------
    >>> from laconic import data
    >>> X = [[0.0, 10.0], [1.0, 30.0], [2.0, 50.0]]
    >>> data.scale(X, "column").tolist()
    [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    >>> data.scale(X, "matrix").tolist()
    [[0.0, 0.2], [0.02, 0.6], [0.04, 1.0]]
    >>> data.scale([3.0, 1.0, 2.0, 5.0], "running").tolist()
    [0.0, 0.0, 0.5, 1.0]
    """
    how = _validate.choice("how", how, HOW)
    array = _real("X", X)
    if array.ndim not in (1, 2, 3):
        raise ValueError(f"X must have shape (n,), (n, d) or (T, n_agents, d), got {array.shape}.")
    if array.size == 0:
        return array.copy()
    if how == "running":
        rounds = array if array.ndim == 3 else array[:, None]
        return RunningScaler().rounds(rounds).reshape(array.shape)
    axes = tuple(range(array.ndim - 1)) if how == "column" and array.ndim > 1 else None
    return _unit(array, np.fmin.reduce(array, axis=axes), np.fmax.reduce(array, axis=axes))


@final
class RunningScaler:
    """Scaling without peeking: each round by the minima and maxima seen up to and including it, clipped to [0, 1].

    A round is an array (n_agents, d) of inputs, or (n_agents,) of labels; inputs and labels take a scaler each.

    Parameters
    ----------
    shared : bool
        True: one minimum and maximum for all agents, so that all of them mean the same by the same number, as a common
        model needs. The bounds change seldom and are cheap to spread, but they are spread. False: each agent keeps its
        own and says nothing.

    Attributes
    ----------
    low, high : array or None
        The bounds so far, of shape (d,) or () if shared, else of the shape of a round; None before the first round.
        They are all the state there is.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import data
    >>> scaler = data.RunningScaler()
    >>> scaler(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    >>> scaler(np.array([[2.0, 9.0], [5.0, 7.0]])).tolist()
    [[0.25, 1.0], [1.0, 0.5]]
    """

    def __init__(self, *, shared: bool = True) -> None:
        self.shared = bool(shared)
        self.low: Array | None = None
        self.high: Array | None = None
        self._shape: tuple[int, ...] | None = None

    def __call__(self, values: object) -> Array:
        """Take note of one round and return it scaled."""
        return self.rounds(_real("values", values)[None])[0]

    def rounds(self, block: object) -> Array:
        """Take note of a block of T rounds, an array (T, ...), and return it scaled: as T calls, only faster."""
        array = _real("block", block)
        if array.ndim not in (2, 3):
            raise ValueError(f"block must have shape (T, n_agents, d) or (T, n_agents), got {array.shape}.")
        self._check("block", array.shape[1:])
        if array.shape[0] == 0:
            return array.copy()
        lows = highs = array
        if self.shared:
            lows, highs = np.fmin.reduce(array, axis=1), np.fmax.reduce(array, axis=1)
        if self.low is not None and self.high is not None:
            lows = np.concatenate([self.low[None], lows])
            highs = np.concatenate([self.high[None], highs])
        lows = np.fmin.accumulate(lows, axis=0)[-len(array) :]
        highs = np.fmax.accumulate(highs, axis=0)[-len(array) :]
        self.low, self.high = lows[-1].copy(), highs[-1].copy()
        self._shape = array.shape[1:]
        if self.shared:
            lows, highs = lows[:, None], highs[:, None]
        return _unit(array, lows, highs)

    def transform(self, values: object) -> Array:
        """One round scaled by the bounds so far, without taking note of it; what lies outside is clipped."""
        low, high = self._bounds()
        array = _real("values", values)
        self._check("values", array.shape)
        return _unit(array, low, high)

    def inverse(self, scaled: object) -> Array:
        """Numbers in [0, 1], predictions for instance, brought back to the units of the data."""
        low, high = self._bounds()
        array = _real("scaled", scaled)
        return np.asarray(low + array * (high - low))

    def _bounds(self) -> tuple[Array, Array]:
        if self.low is None or self.high is None:
            raise ValueError("values cannot be scaled before the first round was seen.")
        return self.low, self.high

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        if self._shape is None:
            return
        # Agents may come and go where they share the bounds; columns may not.
        kept = slice(1, None) if self.shared else slice(None)
        if len(shape) != len(self._shape) or shape[kept] != self._shape[kept]:
            raise ValueError(f"{name} must have rounds of the shape {self._shape} seen first, got {shape}.")


def _real(name: str, value: object) -> Array:
    array = _validate.real_array(name, value, "(n, d)").astype(np.float64, copy=False)
    if np.isinf(array).any():
        raise ValueError(f"{name} must not hold infinite numbers.")
    return array


def _unit(array: Array, low: Array, high: Array) -> Array:
    """(x - low) / (high - low), 0 where there is no span, NaN where x is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        wide = np.isinf(span)  # numbers of opposite sign near the largest: half of each still has a finite difference
        if wide.any():
            array, low = np.where(wide, array / 2, array), np.where(wide, low / 2, low)
            span = np.where(wide, high / 2 - low, span)
        inside = span > 0
        scaled = np.where(inside, (array - low) / np.where(inside, span, 1.0), 0.0)
    scaled = np.clip(scaled, 0.0, 1.0)
    scaled[np.isnan(array)] = np.nan
    return scaled
