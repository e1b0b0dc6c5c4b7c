"""The runs of a reproduction: every method, set, partition and seed, with the steps that tuning found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from laconic.engine import Diverged, simulate, sweep
from laconic.experiments.ends import centres, default, local_rls, slim
from laconic.experiments.methods import methods, untuned
from laconic.experiments.pieces import Pieces
from laconic.experiments.settings import DEFAULT, ENDS, LOCAL_RLS, METHODS, WAVES, Setting
from laconic.experiments.streams import Stream, make_stream
from laconic.experiments.tuning import Tuning, tune
from laconic.learners import Learner
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
    algorithms: tuple[str, ...] = (*METHODS, *WAVES)
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
    # The tables compare with ODKLA; what has nothing to tune is not run here.
    names = tuple(name for name in dict.fromkeys((*plan.algorithms, "ODKLA")) if name not in WAVES)
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
    learners |= untuned(plan.algorithms)
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
                pieces.keep_trace(names[name], slim(traces[name]) if name in WAVES else traces[name])
                repeats = _TIMED_RUNS if partition == "shuffled" and name not in WAVES else 1
                seconds = timed(learners[name], stream, repeats)
                steps = tunings[name].steps if name in tunings else {}
                made[name] = _row(setting, partition, name, seed, traces[name], seconds, steps, stream)
        for name in learners:
            rows.append(pieces.value(names[name], keys[name], partial(made.get, name)))
        rows += _beside(pieces, plan, setting, partition, seed)
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


def _beside(pieces: Pieces, plan: Scope, setting: Setting, partition: str, seed: int) -> Iterable[Row]:
    """The default, and the ends of the scale: least squares by each agent alone, and by one who is sent everything."""
    shown = (*ENDS, DEFAULT)
    keys = {name: plan.key(setting, partition=partition, seed=seed, what=name) for name in shown}
    names = {name: trace_name(setting, partition, name, seed) for name in shown}
    made: dict[str, Row] = {}
    if not all(pieces.has(names[name], keys[name]) for name in shown):
        stream = plan.stream(setting, seed, partition)
        traces = {LOCAL_RLS: local_rls(stream), **centres(stream), DEFAULT: default(stream, seed)}
        for name, trace in traces.items():
            pieces.keep_trace(names[name], trace)
            made[name] = _row(setting, partition, name, seed, trace, trace.seconds, {}, stream)
    return [pieces.value(names[name], keys[name], partial(made.get, name)) for name in shown]


def trace_name(setting: Setting, partition: str, name: str, seed: int) -> str:
    """The name of the file that keeps a run's trace."""
    return f"traces/{setting.name}/{_slug(partition)}/{_slug(name)}-seed{seed}"


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-").replace(":", "-")
