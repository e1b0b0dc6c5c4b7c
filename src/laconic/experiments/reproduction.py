"""The whole experimental section in one call, piece by piece, into one folder."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from laconic import _validate, data
from laconic._worded import ArgumentError
from laconic.experiments import figures, tables, theory
from laconic.experiments.batch import batch
from laconic.experiments.methods import methods, untuned
from laconic.experiments.pieces import Pieces
from laconic.experiments.report import write_report, write_summary
from laconic.experiments.runs import Row, Scope, run_set, trace_name, tuned
from laconic.experiments.settings import BEST_CENTRE, DEFAULT, LOCAL_RLS, METHODS, SETTINGS, WAVES, Setting
from laconic.experiments.streams import SCALING
from laconic.experiments.tuning import Tuning
from laconic.offline import coke_experiment
from laconic.trace import Trace

#: Agents that see different regions, where collaboration is what matters.
HETEROGENEOUS = ("sorted-by-target", "sorted-by-feature:0")

_QUICK_ROWS, _QUICK_SEEDS = 6_000, 2
_RANGES = (0.002, 0.02, 0.2, 2.0)  # of a quantizer that saturates, and of one that does not

Tick = Callable[..., object]  # what is going on, and how many steps of the whole it is: one if not told


def reproduce(
    out: str | Path = "reproduction",
    *,
    protocol: str = "prepared",
    data_dir: str | None = None,
    sets: tuple[str, ...] | None = None,
    algorithms: tuple[str, ...] | None = None,
    seeds: int = 5,
    first_seed: int = 0,
    quick: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Run the paper's experiments and leave report, figures, traces and summary in ``out``.

    Parameters
    ----------
    out : path
        The folder. What is finished in it is not computed again; a run that was killed goes on.
    protocol : "prepared" or "paper"
        The rows, columns and scaling of the prepared sets that the paper's counts come from, or the paper's own words.
    data_dir : path, optional
        Folder with the raw files.
    sets, algorithms : tuple of str, optional
        Some of ``SETTINGS`` and of ``METHODS`` and ``WAVES``; all by default.
    seeds, first_seed : int
        So many seeds, from this one on: each decides the shuffle, the frequencies and the graph.
    quick : bool
        At most 6000 rows of each set and two seeds: a look in under a minute.
    progress : bool
        Show a progress bar with the time left.

    Returns
    -------
    dict
        All numbers of the report, as also written to ``results.json``.
    """
    started = time.perf_counter()
    first = _validate.integer("first_seed", first_seed, least=0)
    n_seeds = min(_validate.integer("seeds", seeds, least=1), _QUICK_SEEDS if quick else seeds)
    plan = Scope(
        protocol=_validate.choice("protocol", protocol, tuple(SCALING)),
        seeds=tuple(range(first, first + n_seeds)),
        algorithms=algorithms or (*METHODS, *WAVES),
        max_rows=_QUICK_ROWS if quick else None,
        data_dir=data_dir,
    )
    chosen = [_setting(name) for name in (sets or tuple(SETTINGS))]
    folder = Path(out)
    pieces = Pieces(folder)
    rows: list[Row] = []
    results: dict[str, Any] = {"about": _about(plan, quick), "sets": {}, "rows": rows, "figures": {}}
    with _bar(progress, len(chosen) * (len(plan.seeds) * (2 + len(HETEROGENEOUS)) + 3)) as tick:
        for setting in chosen:
            _one_set(pieces, plan, setting, results, tick)
    results["times"] = tables.running_times(rows)
    results["about"]["seconds"] = time.perf_counter() - started
    results["coke"] = pieces.value("theory/coke-synthetic", {"quick": quick}, lambda: _coke(quick))
    drawn = {
        "heterogeneous": figures.draw_heterogeneous(rows, folder / "figures" / "heterogeneous"),
        "coke-synthetic": figures.draw_batch(
            "COKE's synthetic data: batch learning, 20 agents",
            {name: results["coke"][name] for name in ("DKLA", "COKE")},
            folder / "figures" / "coke-synthetic",
        ),
    }
    results["figures"] |= _relative(drawn, folder)
    write_summary(rows, folder)
    (folder / "results.json").write_text(json.dumps(results))
    write_report(results, folder)
    return results


def _one_set(pieces: Pieces, plan: Scope, setting: Setting, results: dict[str, Any], tick: Tick) -> None:
    folder = pieces.folder
    tunings = tuned(pieces, plan, setting, lambda what: tick(what, 0))
    tick(f"{setting.title}: tuned", len(plan.seeds))  # at once: how often grids are extended nobody knows before
    rows = run_set(pieces, plan, setting, tunings, "shuffled", tick)
    for partition in HETEROGENEOUS:
        rows += run_set(pieces, plan, setting, tunings, partition, tick)
    results["rows"] += rows
    traces = {
        name: [pieces.trace(trace_name(setting, "shuffled", name, seed)) for seed in plan.seeds]
        for name in (*tunings, *untuned(plan.algorithms), LOCAL_RLS, BEST_CENTRE, DEFAULT)
    }
    traces = {name: runs for name, runs in traces.items() if not any(trace.diverged for trace in runs)}
    tick(f"{setting.title}: theory")
    outcome = _theory(pieces, plan, setting, tunings)
    tick(f"{setting.title}: batch")
    batch_outcome = pieces.value(
        f"theory/{setting.name}-batch",
        plan.key(setting, what="batch"),
        lambda: batch(plan.stream(setting, plan.seeds[0])),
    )
    tick(f"{setting.title}: figures")
    drawn = _draw(folder / "figures", setting, plan, traces, tunings, outcome)
    results["figures"] |= _relative(drawn, folder)
    stream = plan.stream(setting, plan.seeds[0])
    entry = data.info(setting.name)
    results["sets"][setting.name] = {
        "title": setting.title,
        "n_agents": setting.n_agents,
        "bandwidth": setting.bandwidth,
        "alpha": setting.alpha,
        "beta": setting.beta,
        "rows": int(stream.y.size),
        "inputs": int(stream.X.shape[2]),
        "rounds": len(stream.y),
        "edges": {str(seed): plan.stream(setting, seed).network.edges.tolist() for seed in plan.seeds},
        "description": entry.description,
        "citation": entry.citation,
        "tuning": {name: tuning.to_json() for name, tuning in tunings.items()},
        "communication": tables.communication(traces) if "ODKLA" in traces else [],
        "censoring": {
            name: tables.censored_rounds(traces[name][0]) for name in ("QC-ODKLA", "C-ODKLA") if name in traces
        },
        "batch": batch_outcome,
        "theory": outcome,
    }


def _theory(pieces: Pieces, plan: Scope, setting: Setting, tunings: Mapping[str, Tuning]) -> dict[str, Any]:
    known = methods(setting, tuple(tunings))
    learners = {
        name: known[name].make(tunings[name].steps) for name in tunings if name in ("ODKLA", "QC-ODKLA", "Local")
    }
    learners |= untuned(tuple(name for name in plan.algorithms if name == WAVES[0]))
    steps = tunings["ODKLA"].steps
    key = plan.key(setting, learners=[repr(learner) for learner in learners.values()], steps=steps)

    def compute() -> dict[str, Any]:
        stream = plan.stream(setting, plan.seeds[0])
        return {
            "printed": theory.theorem_steps(stream, printed=True),
            "growing": theory.theorem_steps(stream, printed=False),
            "regret": theory.regret(stream, learners),
            "lemma": theory.lemma(stream, setting, steps),
            "saturation": theory.saturation(stream, setting, steps, _RANGES),
            "ridge": theory.ridge(stream),
        }

    outcome: dict[str, Any] = pieces.value(f"theory/{setting.name}", key, compute)
    return outcome


def _draw(
    folder: Path,
    setting: Setting,
    plan: Scope,
    traces: dict[str, list[Trace]],
    tunings: Mapping[str, Tuning],
    outcome: Mapping[str, Any],
) -> dict[str, list[Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    caption = (
        f"N = {setting.n_agents}, L = 50, sigma = {setting.bandwidth:g}, "
        f"alpha = {setting.alpha:g}, beta = {setting.beta:g}, {len(plan.seeds)} seeds, {plan.protocol} protocol"
    )
    drawn = {setting.name: figures.draw_set(setting.title, traces, folder / setting.name, caption=caption)}
    regret = outcome["regret"]
    curves = {name: {**curve, "rounds": regret["rounds"]} for name, curve in regret.items() if isinstance(curve, dict)}
    drawn[f"{setting.name}-regret"] = figures.draw_regret(setting.title, curves, folder / f"{setting.name}-regret")
    lemma = outcome["lemma"]
    drawn[f"{setting.name}-lemma"] = figures.draw_lemma(
        setting.title,
        lemma["rounds"],
        lemma["measured"],
        lemma["bound"],
        folder / f"{setting.name}-lemma",
        printed=lemma["printed_bound"],
    )
    drawn[f"{setting.name}-tuning"] = figures.draw_tuning(tunings["ODKLA"], folder / f"{setting.name}-tuning")
    return drawn


def _coke(quick: bool) -> dict[str, Any]:
    """COKE's synthetic experiment, at a tenth of its size for a quick look."""
    outcome = coke_experiment(n_samples=(400, 600) if quick else (4000, 6000))
    curves = {
        name: {"mse": run.test_mse, "sends": run.sends.cumsum()}
        for name, run in (("DKLA", outcome.dkla), ("COKE", outcome.coke))
    }
    plain = {
        name: {key: [float(value) for value in values] for key, values in curve.items() if values is not None}
        for name, curve in curves.items()
    }
    return {**plain, "centralised_mse": outcome.centralised_mse, "noise": outcome.noise}


def _setting(name: str) -> Setting:
    if name not in SETTINGS:
        raise ArgumentError("set", f"must be one of {', '.join(SETTINGS)}, got {name!r}.")
    return SETTINGS[name]


def _relative(drawn: Mapping[str, list[Path]], folder: Path) -> dict[str, str]:
    """The PNG of each figure, as a path inside the folder."""
    return {
        name: str(next(path for path in paths if path.suffix == ".png").relative_to(folder))
        for name, paths in drawn.items()
    }


def _processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _about(plan: Scope, quick: bool) -> dict[str, Any]:
    return {
        "version": version("laconic"),
        "protocol": plan.protocol,
        "seeds": list(plan.seeds),
        "algorithms": list(plan.algorithms),
        "quick": quick,
        "max_rows": plan.max_rows,
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@contextmanager
def _bar(show: bool, total: int) -> Iterator[Tick]:
    if not show:
        yield lambda what, steps=1: None
        return
    from tqdm import tqdm

    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
    with tqdm(total=total, bar_format=form) as bar:

        def tick(what: str, steps: int = 1) -> None:
            bar.set_description_str(f"{what[:46]:<46}")
            bar.update(steps)

        yield tick
