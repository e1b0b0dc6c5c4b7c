"""What a table says of a run: numbers of which less is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laconic import _validate
from laconic._worded import ArgumentError
from laconic.trace import Trace


class Measure(NamedTuple):
    """A column of a table."""

    title: str
    of: Callable[[Trace], float]


def _recent(trace: Trace) -> float:
    last = trace.squared_errors()[-max(1, trace.n_rounds // 5) :]
    return float(np.nanmean(last))


#: Columns by name; all are better when they are less.
MEASURES: dict[str, Measure] = {
    "mse": Measure("MSE", lambda trace: float(trace.mse()[-1])),
    "recent": Measure("MSE, last fifth", _recent),
    "global": Measure("MSE, everybody's data", lambda trace: float(trace.global_mse()[-1])),
    "wrong": Measure("wrong classes", lambda trace: float(trace.error_rate()[-1])),
    "messages": Measure("messages an agent", lambda trace: float(trace.sent.sum() / trace.n_agents)),
    "bits": Measure("kbit an agent", lambda trace: float(trace.bits.sum() / trace.n_agents / 1e3)),
    "seconds": Measure("seconds", lambda trace: trace.seconds),
}


def chosen(measures: object) -> list[Measure]:
    """The columns that are asked for: names, or functions of a trace by their titles."""
    if isinstance(measures, str):
        measures = [measures]
    if isinstance(measures, Mapping) and measures:
        for function in measures.values():
            if not callable(function):
                raise ArgumentError("measures", f"must hold functions of a trace, got {_validate.shown(function)}.")
        return [Measure(str(title), function) for title, function in measures.items()]
    if not isinstance(measures, Sequence) or not measures:
        raise ArgumentError(
            "measures", f"must be names of measures, or a dict of functions of a trace, got {measures}."
        )
    return [MEASURES[_validate.choice("measures", name, MEASURES)] for name in measures]
