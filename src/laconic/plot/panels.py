"""What a panel shows: a measure of a run, against what it took to get there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.trace import Trace


class Panel(NamedTuple):
    """Two axes: the words on them, and the numbers of a run, one a round."""

    x: str
    y: str
    cost: Callable[[Trace], Array]
    measure: Callable[[Trace], Array]


def _rounds(trace: Trace) -> Array:
    return np.arange(trace.state.round - trace.n_rounds, trace.state.round) + 1


def _messages(trace: Trace) -> Array:
    return np.asarray(np.cumsum(trace.sent.sum(axis=1)))


def _bits(trace: Trace) -> Array:
    return np.asarray(np.cumsum(trace.bits.sum(axis=1)))


def recent_mse(trace: Trace) -> Array:
    """The mean squared error of the last fifth of the rounds so far."""
    scores = trace.squared_errors()
    counts = np.concatenate([[0], np.cumsum((~np.isnan(scores)).sum(axis=1))])
    totals = np.concatenate([[0.0], np.cumsum(np.nan_to_num(scores).sum(axis=1))])
    ends = np.arange(1, trace.n_rounds + 1)
    starts = np.minimum(ends - 1, (ends * 0.8).astype(int))
    n = counts[ends] - counts[starts]
    means: Array = np.divide(totals[ends] - totals[starts], n, out=np.full(len(ends), np.nan), where=n > 0)
    return means


_TIME, _SO_FAR = "time (rounds)", "mean squared error so far (unit of y)²"

#: The panels by name; those that measure the same share their scale.
PANELS: dict[str, Panel] = {
    "rounds": Panel(_TIME, _SO_FAR, _rounds, Trace.mse),
    "messages": Panel("messages sent (broadcasts)", _SO_FAR, _messages, Trace.mse),
    "bits": Panel("data sent (bits)", _SO_FAR, _bits, Trace.mse),
    "recent": Panel(_TIME, "mean squared error of the last fifth", _rounds, recent_mse),
    "global": Panel(_TIME, "mean squared error on everybody's data", _rounds, Trace.global_mse),
    "global-bits": Panel("data sent (bits)", "mean squared error on everybody's data", _bits, Trace.global_mse),
    "wrong": Panel(_TIME, "share of wrong classes so far", _rounds, Trace.error_rate),
    "consensus": Panel(_TIME, "distance of the models from their mean", _rounds, Trace.consensus),
}
USUAL = ("rounds", "messages", "bits")


def chosen(panels: object) -> tuple[str, ...]:
    """The names of panels, checked."""
    listed = [panels] if isinstance(panels, str) else panels
    if not isinstance(listed, Sequence) or not listed:
        raise ArgumentError("panels", f"must be names of panels, got {_validate.shown(panels)}.")
    names = tuple(_validate.choice("panels", name, PANELS) for name in listed)
    if len(set(names)) < len(names):
        raise ArgumentError("panels", "must not name a panel twice.")
    return names
