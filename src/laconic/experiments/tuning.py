"""Tuning as the paper says: a grid for each method and each set on its own, and never a winner on the grid's edge.

All methods and all points of their grids run over one stream at once, so the features are computed once a seed. A
winner on the edge of its grid extends the grid by one more value on that side, and the new points run too, until the
winner lies inside or the limit is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np

from laconic.engine import sweep
from laconic.experiments.methods import Method, Steps
from laconic.experiments.streams import Stream

Point = tuple[float, ...]

_EXTENSIONS = 8


@final
@dataclass(frozen=True)
class Tuning:
    """The outcome for one method.

    Attributes
    ----------
    method : str
    steps : dict
        The winner.
    score : float
        Its mean final MSE over the seeds.
    table : dict
        Every point that was tried, with its score; infinite where a run diverged.
    axes : dict
        The grid, extensions included.
    extended : int
        How often the grid grew.
    """

    method: str
    steps: Steps
    score: float
    table: dict[Point, float]
    axes: dict[str, list[float]]
    extended: int

    def neighbours(self) -> dict[Point, float]:
        """The points beside the winner: how sharp the optimum is."""
        place = {name: values.index(self.steps[name]) for name, values in self.axes.items()}
        near = {}
        for k, (name, values) in enumerate(self.axes.items()):
            for other in (place[name] - 1, place[name] + 1):
                if 0 <= other < len(values):
                    point = list(self.steps.values())
                    point[k] = values[other]
                    near[tuple(point)] = self.table[tuple(point)]
        return near

    def on_edge(self) -> bool:
        """Whether the winner still lies on the edge of its grid."""
        return any(self.steps[name] in (values[0], values[-1]) for name, values in self.axes.items())

    def to_json(self) -> dict[str, Any]:
        """The tuning as JSON-compatible values."""
        points = [[*point, score if np.isfinite(score) else None] for point, score in self.table.items()]
        return {
            "method": self.method,
            "steps": self.steps,
            "score": self.score,
            "points": points,
            "axes": self.axes,
            "extended": self.extended,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Tuning:
        """Read what ``to_json`` wrote."""
        table = {tuple(p[:-1]): (np.inf if p[-1] is None else float(p[-1])) for p in stored["points"]}
        return cls(stored["method"], stored["steps"], stored["score"], table, stored["axes"], stored["extended"])


def tune(
    methods: Mapping[str, Method],
    streams: Callable[[], Any],
    *,
    prefix: float = 1.0,
    n_jobs: int = -1,
    tick: Callable[[int], object] = lambda n: None,
) -> dict[str, Tuning]:
    """Find the best steps of each method.

    Parameters
    ----------
    methods : dict of Method
    streams : callable
        Returns an iterable of ``Stream``, one for each seed; called once for every extension.
    prefix : float
        Tune on the first so large a share of the rounds only, as one could in the field.
    n_jobs : int
        Threads.
    tick : callable
        Told how many runs were finished, for a progress bar.
    """
    axes = {name: {step: list(values) for step, values in method.grid.items()} for name, method in methods.items()}
    tables: dict[str, dict[Point, float]] = {name: {} for name in methods}
    extended = dict.fromkeys(methods, 0)
    for _ in range(_EXTENSIONS + 1):
        todo = {
            (name, point): method.make(dict(zip(method.grid, point, strict=True)))
            for name, method in methods.items()
            for point in product(*axes[name].values())
            if point not in tables[name]
        }
        if not todo:
            break
        scores: dict[Any, list[float]] = {key: [] for key in todo}
        for stream in streams():
            for key, score in _scores(todo, stream.head(prefix), n_jobs).items():
                scores[key].append(score)
            tick(len(todo))
        for (name, point), values in scores.items():
            tables[name][point] = float(np.mean(values))
        for name in methods:
            extended[name] += _extend(axes[name], tables[name])
    return {name: _best(name, methods[name], axes[name], tables[name], extended[name]) for name in methods}


def _scores(learners: Mapping[Any, Any], stream: Stream, n_jobs: int) -> dict[Any, float]:
    traces = sweep(learners, stream.features, stream.network, stream.X, stream.y, n_jobs=n_jobs)
    return {key: np.inf if trace.diverged else float(trace.mse()[-1]) for key, trace in traces.items()}


def _extend(axes: dict[str, list[float]], table: dict[Point, float]) -> int:
    """Grow the grid on the sides where its winner lies; how many values were added."""
    winner = min(table, key=table.__getitem__)
    added = 0
    if not np.isfinite(table[winner]):
        return 0
    for value, values in zip(winner, axes.values(), strict=True):
        if value == values[0]:
            values.insert(0, values[0] * values[0] / values[1])
            added += 1
        elif value == values[-1]:
            values.append(values[-1] * values[-1] / values[-2])
            added += 1
    return added


def _best(name: str, method: Method, axes: dict[str, list[float]], table: dict[Point, float], extended: int) -> Tuning:
    winner = min(table, key=table.__getitem__)
    # The last extension may have added values that no run has reached.
    tried = [set(column) for column in zip(*table, strict=True)]
    axes = {step: [v for v in values if v in seen] for (step, values), seen in zip(axes.items(), tried, strict=True)}
    steps = dict(zip(method.grid, winner, strict=True))
    return Tuning(name, steps, table[winner], table, axes, extended)
