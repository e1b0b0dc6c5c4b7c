"""The runs of a reproduction: every method, set, partition and seed, with the steps that tuning found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from laconic.engine import Diverged, simulate, sweep
from laconic.experiments.methods import methods
from laconic.experiments.pieces import Pieces
from laconic.experiments.settings import METHODS, Setting
from laconic.experiments.streams import Stream, make_stream
from laconic.experiments.tuning import Tuning, tune
from laconic.learners import Learner
from laconic.offline import recursive_least_squares
from laconic.trace import Trace

Row = dict[str, Any]

_TIMED_RUNS = 7


@final
@dataclass(frozen=True)
class Scope:
    """What to reproduce.

    Attributes
    ----------
    protocol : "prepared" or "paper"
    seeds : tuple of int
    algorithms : tuple of str
    max_rows : int or None
        Take so many rows of each set at the most (a quick look); None for all.
    data_dir : str or None
    prefix : float
        Share of the rounds that tuning sees.
    """

    protocol: str = "prepared"
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    algorithms: tuple[str, ...] = METHODS
    max_rows: int | None = None
    data_dir: str | None = None
    prefix: float = 1.0

    def key(self, setting: Setting, **more: Any) -> dict[str, Any]:
        """What a piece of this plan is a function of."""
        return {"set": setting.name, "protocol": self.protocol, "max_rows": self.max_rows, **more}

    def stream(self, setting: Setting, seed: int, partition: str = "shuffled") -> Stream:
        """Load and partition the data of one run."""
        return make_stream(
            setting,
            seed,
            protocol=self.protocol,
            partition=partition,
            data_dir=self.data_dir,
            max_rows=self.max_rows,
        )


def tuned(pieces: Pieces, plan: Scope, setting: Setting, tick: Callable[[str], object]) -> dict[str, Tuning]:
    """The best steps of every method on this set."""
    names = tuple(dict.fromkeys((*plan.algorithms, "ODKLA")))  # the tables compare with ODKLA
    key = plan.key(setting, seeds=plan.seeds, methods=names, prefix=plan.prefix)

    def compute() -> dict[str, Any]:
        found = tune(
            methods(setting, names),
            lambda: (plan.stream(setting, seed) for seed in plan.seeds),
            prefix=plan.prefix,
            tick=lambda n: tick(f"{setting.title}: tuning, {n} grid points"),
        )
        return {name: tuning.to_json() for name, tuning in found.items()}

    stored = pieces.value(f"tuning/{setting.name}", key, compute)
    return {name: Tuning.from_json(tuning) for name, tuning in stored.items()}


def run_set(
    pieces: Pieces,
    plan: Scope,
    setting: Setting,
    tunings: Mapping[str, Tuning],
    partition: str,
    tick: Callable[[str], object],
) -> list[Row]:
    """Every method over every seed: its row of the summary, its trace on disk."""
    rows = []
    known = methods(setting, tuple(tunings))
    learners = {name: known[name].make(tuning.steps) for name, tuning in tunings.items()}
    for seed in plan.seeds:
        names = {name: trace_name(setting, partition, name, seed) for name in learners}
        keys = {
            name: plan.key(setting, partition=partition, seed=seed, learner=repr(learners[name])) for name in learners
        }
        missing = [name for name in learners if not pieces.has(names[name], keys[name])]
        made: dict[str, Row] = {}
        if missing:
            stream = plan.stream(setting, seed, partition)
            traces = sweep(
                {name: learners[name] for name in missing},
                stream.features,
                stream.network,
                stream.X,
                stream.y,
                collective=True,
            )
            for name in missing:
                pieces.keep_trace(names[name], traces[name])
                seconds = timed(learners[name], stream, _TIMED_RUNS if partition == "shuffled" else 1)
                made[name] = _row(setting, partition, name, seed, traces[name], seconds, tunings[name].steps, stream)
        for name in learners:
            rows.append(pieces.value(names[name], keys[name], partial(made.get, name)))
        rows += _least_squares(pieces, plan, setting, partition, seed)
        tick(f"{setting.title}: {partition}, seed {seed}")
    return rows


def timed(learner: Learner, stream: Stream, repeats: int) -> float:
    """Seconds of a run end to end, from inputs to trace, features included, one thread: the best of several runs.

    The best, because whatever else the machine does can only add to it.
    """
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        try:
            simulate(learner, stream.features, stream.network, stream.X, stream.y)
        except Diverged:
            return float("nan")
        times.append(time.perf_counter() - start)
    return min(times)


def _row(
    setting: Setting,
    partition: str,
    name: str,
    seed: int,
    trace: Trace,
    seconds: float,
    steps: Mapping[str, float],
    stream: Stream,
) -> Row:
    """A row of summary.csv; a diverged run has no scores."""
    good = not trace.diverged
    return {
        "set": setting.name,
        "partition": partition,
        "agents": setting.n_agents,
        "algorithm": name,
        "seed": seed,
        "mse": float(trace.mse()[-1]) if good else None,
        "global_mse": float(trace.global_mse()[-1]) if good else None,
        "bits": int(trace.bits.sum()),
        "sends": int(trace.sent.sum()),
        "seconds": seconds,
        "parameters": {
            **steps,
            "learner": trace.about["learner"],
            "features": trace.about["features"],
            "rounds": len(stream.y),
            "inputs": stream.X.shape[2],
            "edges": stream.network.edges.tolist(),
        },
    }


def _least_squares(pieces: Pieces, plan: Scope, setting: Setting, partition: str, seed: int) -> Iterable[Row]:
    """The two ends of the scale: recursive least squares by each agent alone, and by one who sees everything."""
    for name, centralised in (("Local RLS", False), ("Centralised RLS", True)):
        key = plan.key(setting, partition=partition, seed=seed, what=name)

        def compute(name: str = name, centralised: bool = centralised) -> Row:
            stream = plan.stream(setting, seed, partition)
            start = time.perf_counter()
            predictions = recursive_least_squares(stream.features, stream.X, stream.y, centralised=centralised)
            mse = float(np.nanmean((predictions - stream.y) ** 2))
            return {
                "set": setting.name,
                "partition": partition,
                "agents": setting.n_agents,
                "algorithm": name,
                "seed": seed,
                "mse": mse,
                "global_mse": mse if centralised else None,
                "bits": 0,
                "sends": 0,
                "seconds": time.perf_counter() - start,
                "parameters": {"features": repr(stream.features), "rounds": len(stream.y)},
            }

        yield pieces.value(trace_name(setting, partition, name, seed), key, compute)


def trace_name(setting: Setting, partition: str, name: str, seed: int) -> str:
    """The name of the file that keeps a run's trace."""
    return f"traces/{setting.name}/{_slug(partition)}/{_slug(name)}-seed{seed}"


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-").replace(":", "-")
