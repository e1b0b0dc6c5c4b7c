"""The learners that need no tuning, beside tuned ones: sixteen streams, agents that see different things, and drift.

    python benchmarks/streams.py [streams] [cells] [drift] [--seeds 50 51 52 53 54] [--only air]

``streams``: eight sets, 4000 rows dealt to five agents, shuffled and in the order of the file. ``Experts`` with a
budget of a tenth of the rounds, and ``Personal``, both over ``RandomFeatures.automatic`` of each agent's first eight
rows with their defaults, beside QC-ODKLA and dense diffusion (adapt, then combine) with the best steps and the best
bandwidth in hindsight: the best of a grid on the first seed of each stream. Inputs of these are scaled by their ranges,
which in a stream nobody knows. Labels have unit variance, two classes are -1 and +1.

``cells``: the paper's sets dealt at random, sorted by the label or by an input, and two classes of which each agent
sees one: every agent's MSE on its own samples and of its model on everybody's, beside agents that never speak and
``WaveRLS``. ``drift``: labels that change their sign half way, and turn slowly.

Data are looked for in LACONIC_DATA. Writes ``benchmarks/results/streams.json``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import laconic as lc
from laconic import data
from laconic.experiments.settings import SETTINGS
from laconic.experiments.streams import Stream, make_stream, scaled

Array = np.ndarray[Any, Any]

SETS = (
    "air-quality",
    "energy",
    "toms-hardware",
    "twitter",
    "california-housing",
    "power-plant",
    "electricity",
    "eeg-eye-state",
)
CELLS = ("air-quality", "toms-hardware", "energy", "twitter")
N_AGENTS, N_ROWS, N_PREFIX, N_FREQUENCIES = 5, 4000, 8, 50
ETAS, RHOS, STEPS, WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0), (0.1, 0.5), (0.1, 0.2, 0.4, 0.6, 0.9), (0.25, 0.5, 1.0)
CENSORS = ((4.0, 0.99), (1.0, 0.995))


def seldom() -> lc.Channel:
    """What ``Experts`` speaks through: a tenth of the rounds, entropy coded."""
    return lc.Channel(lc.Budget(0.1), lc.EntropyQuantizer())


def rows_of(name: str, order: str, seed: int) -> tuple[Array, Array]:
    """Inputs (T, N, d) and labels (T, N) of unit variance."""
    dataset = data.load(name, protocol="paper", download=False)
    X, y = np.asarray(dataset.X, dtype=float), np.asarray(dataset.y, dtype=float)
    random = np.random.default_rng(seed)
    if order == "shuffled":
        chosen = random.permutation(len(y))[:N_ROWS]
    else:
        first = random.integers(0, max(1, len(y) - N_ROWS + 1))
        chosen = np.arange(first, min(len(y), first + N_ROWS))
    chosen = chosen[: len(chosen) // N_AGENTS * N_AGENTS]
    X, y = X[chosen], y[chosen]
    if not two_classes(y):
        y = (y - y.mean()) / (y.std() or 1.0)
    return X.reshape(-1, N_AGENTS, X.shape[1]), y.reshape(-1, N_AGENTS)


def two_classes(y: Array) -> bool:
    """Whether labels are classes, which are not far from anything."""
    return set(np.unique(y)) <= {-1.0, 1.0}


def usual_of(labels: Array) -> float:
    """The deviation of the first labels from 0, all agents' together and without the largest."""
    sizes = np.sort(np.abs(labels).ravel())
    return max(1.4826 * float(np.median(sizes)), float(np.sqrt((sizes[:-1] ** 2).mean())), 1e-12)


def ranged(X: Array) -> Array:
    """Each input between 0 and 1."""
    low, high = X.min(axis=(0, 1)), X.max(axis=(0, 1))
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def tuned(X: Array, y: Array, network: lc.Network, seed: int) -> dict[str, tuple[float, Callable[[], lc.Learner]]]:
    """Of QC-ODKLA and dense diffusion, the width and the learner that are best on this stream."""
    grids: dict[str, dict[Any, Callable[[], lc.Learner]]] = {
        "QC-ODKLA": {
            (rho, eta, censor): lambda rho=rho, eta=eta, censor=censor: lc.QCODKLA(rho, eta, *censor, bits=3)
            for rho in RHOS
            for eta in ETAS
            for censor in CENSORS
        },
        "diffusion": {step: lambda step=step: lc.RFFDOKL(step, "adapt-then-combine") for step in STEPS},
    }
    best = {name: (np.inf, 0.0, next(iter(grid.values()))) for name, grid in grids.items()}
    for width in WIDTHS:
        features = lc.RandomFeatures.gaussian(X.shape[2], N_FREQUENCIES, bandwidth=width, seed=seed)
        for name, grid in grids.items():
            traces = lc.sweep({key: make() for key, make in grid.items()}, features, network, X, y, n_jobs=1)
            for key, trace in traces.items():
                if not trace.diverged and trace.mse()[-1] < best[name][0]:
                    best[name] = (float(trace.mse()[-1]), width, grid[key])
    return {name: (width, make) for name, (_, width, make) in best.items()}


def streams(seeds: list[int], only: str) -> dict[str, Any]:
    """MSE and kbit an agent of every method on every stream."""
    table: dict[str, Any] = {}
    for name in (one for one in SETS if only in one):
        for order in ("shuffled", "in order"):
            chosen: dict[str, tuple[float, Callable[[], lc.Learner]]] = {}
            found: dict[str, list[tuple[float, float]]] = {}
            for seed in seeds:
                X, y = rows_of(name, order, seed)
                network = lc.Network.random(N_AGENTS, p=0.5, seed=seed)
                unit = ranged(X)
                chosen = chosen or tuned(unit, y, network, seed)
                for method, (width, make) in chosen.items():
                    features = lc.RandomFeatures.gaussian(X.shape[2], N_FREQUENCIES, bandwidth=width, seed=seed)
                    keep(found, method, make(), features, network, unit, y)
                automatic = lc.RandomFeatures.automatic(X[:N_PREFIX], N_FREQUENCIES, seed=seed)
                centred = y - np.median(y[:N_PREFIX])
                keep(found, "Experts", lc.Experts(channel=seldom()), automatic, network, X, centred)
                guard = {"deviations": None} if two_classes(y) else {"usual": usual_of(centred[:N_PREFIX])}
                personal = lc.Personal(lc.WaveRLS(first=N_PREFIX), **guard)
                keep(found, "Personal", personal, automatic, network, X, centred)
            table[f"{name}, {order}"] = {method: np.mean(rows, axis=0).tolist() for method, rows in found.items()}
            show(f"{name}, {order}", table[f"{name}, {order}"])
    for method in ("Experts", "Personal"):
        for rival in ("QC-ODKLA", "diffusion"):
            ratios = {key: row[method][0] / row[rival][0] for key, row in table.items()}
            bits = np.mean([row[method][1] for row in table.values()]) / np.mean([r[rival][1] for r in table.values()])
            mean, worst = np.exp(np.mean(np.log(list(ratios.values())))), max(ratios, key=lambda key: ratios[key])
            print(f"{method} / {rival}: MSE {mean:.3f}, worst {ratios[worst]:.2f} ({worst}), bits {bits:.3f}")
    return table


def keep(
    found: dict[str, list[tuple[float, float]]],
    method: str,
    learner: lc.Learner,
    features: lc.RandomFeatures,
    network: lc.Network,
    X: Array,
    y: Array,
) -> None:
    """Run a learner and keep its MSE and kbit an agent."""
    trace = lc.sweep([learner], features, network, X, y, n_jobs=1)[0]
    error = np.nan if trace.diverged else float(trace.mse()[-1])
    found.setdefault(method, []).append((error, trace.bits.sum() / network.n_agents / 1000))


def cells(seeds: list[int], only: str) -> dict[str, Any]:
    """Own and global MSE of agents that see the same things, or different ones."""
    table: dict[str, Any] = {}
    for name in (one for one in CELLS if only in one):
        X, _ = scaled(name, "prepared", None, None)
        deals = {"iid": "shuffled", "y": "sorted-by-target", "x": f"sorted-by-feature:{int(np.argmax(X.var(axis=0)))}"}
        for deal, how in deals.items():
            table[f"{name}, {deal}"] = compared([make_stream(SETTINGS[name], seed, partition=how) for seed in seeds])
            show(f"{name}, {deal}", table[f"{name}, {deal}"])
    for name in (one for one in ("electricity", "eeg-eye-state") if only in one):
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in seeds:
            X, y = rows_of(name, "shuffled", seed)
            sorted_rows = np.argsort(y.ravel(), kind="stable").reshape(N_AGENTS, -1).T
            X, y = X.reshape(-1, X.shape[2])[sorted_rows], y.ravel()[sorted_rows]
            features = lc.RandomFeatures.automatic(X[:N_PREFIX], N_FREQUENCIES, seed=seed)
            judged(found, X, y, features, lc.Network.random(N_AGENTS, p=0.5, seed=seed), None)
        table[f"{name}, one class"] = {method: np.mean(rows, axis=0).tolist() for method, rows in found.items()}
        show(f"{name}, one class", table[f"{name}, one class"])
    ratios = {key: row["Personal"][0] / min(row["alone"][0], row["WaveRLS"][0]) for key, row in table.items()}
    mean, worst = np.exp(np.mean(np.log(list(ratios.values())))), max(ratios, key=lambda key: ratios[key])
    print(f"Personal, own MSE over the better of alone and WaveRLS: {mean:.3f}, worst {ratios[worst]:.3f} ({worst})")
    return table


def compared(streams: list[Stream]) -> dict[str, Any]:
    """Means over streams of own and global MSE."""
    found: dict[str, list[tuple[float, float]]] = {}
    for stream in streams:
        judged(found, stream.X, stream.y, stream.features, stream.network, 20.0)
    return {method: np.mean(rows, axis=0).tolist() for method, rows in found.items()}


def judged(
    found: dict[str, list[tuple[float, float]]],
    X: Array,
    y: Array,
    features: lc.RandomFeatures,
    network: lc.Network,
    deviations: float | None,
) -> None:
    """Own and global MSE of each method on one stream."""
    learners = {
        "alone": lc.WaveRLS().alone(len(y)),
        "WaveRLS": lc.WaveRLS(),
        "Personal": lc.Personal(deviations=deviations),
        "Experts": lc.Experts(channel=seldom()),
    }
    for method, learner in learners.items():
        trace = lc.simulate(learner, features, network, X, y, collective=True)
        found.setdefault(method, []).append((float(trace.mse()[-1]), float(trace.global_mse()[-1])))


def drift(seeds: list[int], only: str) -> dict[str, Any]:
    """Own MSE where the world turns, beside the best forgetting of waves in hindsight."""
    table: dict[str, Any] = {}
    for name in (one for one in CELLS if only in one):
        for kind in ("flip", "turn"):
            found: dict[str, list[float]] = {}
            for seed in seeds:
                stream = make_stream(SETTINGS[name], seed)
                t = np.linspace(0, 1, len(stream.y))[:, None]
                factor = np.where(t < 0.5, 1.0, -1.0) if kind == "flip" else np.cos(2 * np.pi * t)
                y = factor * (stream.y - np.median(stream.y[:N_PREFIX]))
                learners: dict[str, lc.Learner] = {
                    **{f"f = {f}": lc.WaveRLS(forgetting=f) for f in (1.0, 0.99, 0.98, 0.95)},
                    "Personal": lc.Personal(),
                    "Experts, drift": lc.Experts(drift=True, channel=seldom()),
                }
                for method, learner in learners.items():
                    trace = lc.simulate(learner, stream.features, stream.network, stream.X, y)
                    found.setdefault(method, []).append(float(trace.mse()[-1]))
            row = {method: float(np.mean(errors)) for method, errors in found.items()}
            best = min(value for method, value in row.items() if method.startswith("f ="))
            table[f"{name}, {kind}"] = {method: (value, value / best) for method, value in row.items()}
            show(f"{name}, {kind}", table[f"{name}, {kind}"])
    return table


def show(what: str, row: dict[str, Any]) -> None:
    """A line: of each method its two numbers."""
    print(
        f"{what:30}" + "".join(f"  {method} {one:.4g} / {other:.4g}" for method, (one, other) in row.items()),
        flush=True,
    )


def main() -> None:
    """Run what was asked for, and keep it."""
    tables: dict[str, Callable[[list[int], str], dict[str, Any]]] = {"streams": streams, "cells": cells, "drift": drift}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*tables, []], default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[50, 51, 52, 53, 54])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    results = {name: tables[name](arguments.seeds, arguments.only) for name in arguments.tables or tables}
    path = Path(__file__).parent / "results" / "streams.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"seeds": arguments.seeds, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
