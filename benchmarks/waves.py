"""WaveRLS beside the best centralised least squares and the figures that its rule was measured to have.

    python benchmarks/waves.py [cells] [sets] [graphs] [loss] [bound] [--seeds 0 1 2] [--only air] [--frequencies 25 50]

Tables: ``cells``, the paper's protocol on four sets, dealt at random (iid), sorted by the label (y) or by the
input of largest variance (x); ``sets``, four more that chose nothing; ``graphs``, deep and large networks of 1000
rounds, rows drawn with replacement, with 25 frequencies, as their figures, and with 50; ``loss``, every message lost
with a probability. Only if asked for (two minutes a line) ``bound``: what agents of those networks would have that pass
on every sample as it is, one hop a round, and solve exactly, over the best centre's and over that of ridge 0.05. An MSE
is that of every agent's model on every agent's sample, x 1e-3 (``loss``: on its own); bits are kbit an agent. Data are
looked for in LACONIC_DATA. Writes ``benchmarks/results/waves.json``.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import networkx as nx
import numpy as np

import laconic as lc
from laconic.experiments.settings import SETTINGS, Setting
from laconic.experiments.streams import Stream, make_stream, scaled
from laconic.testing.lossy import LossyWaves

RIDGES = (0.004, 0.02, 0.05, 0.1)
LEARNERS = {"WaveRLS": lc.WaveRLS(), "frugal": lc.WaveRLS.frugal()}

#: MSE x 1e-3 and kbit an agent that the rule was measured to have: (set, deal) -> WaveRLS, frugal.
CELLS: dict[tuple[str, str], tuple[tuple[float, float], tuple[float, float | None]]] = {
    ("air-quality", "iid"): ((1.63, 23), (1.81, 13)),
    ("air-quality", "y"): ((1.65, 23), (1.74, 14)),
    ("air-quality", "x"): ((1.63, 23), (1.71, None)),
    ("toms-hardware", "iid"): ((0.69, 15), (0.71, 9)),
    ("toms-hardware", "y"): ((0.67, 15), (0.68, None)),
    ("energy", "iid"): ((21.8, 25), (22.9, 13)),
    ("energy", "y"): ((21.8, 26), (23.0, None)),
    ("twitter", "iid"): ((2.69, 30), (2.98, 15)),
    ("twitter", "y"): ((2.67, 30), (2.95, None)),
}
SETS = (
    Setting("power-plant", "Power plant", n_agents=5, bandwidth=0.5),
    Setting("california-housing", "Housing", n_agents=5, bandwidth=0.5),
    SETTINGS["conductivity"],
    SETTINGS["blood"],
)
#: The frequencies of these figures: with 25 the rule as it was first written has their bits to 2%, with 50 twice these.
DEEP_FREQUENCIES = 25
#: Ratio to the best centralised, kbit an agent, kbit of the busiest.
GRAPHS: dict[tuple[str, str, str], tuple[float | None, float | None, float | None]] = {
    ("ring 100", "air-quality", "iid"): (1.20, 29, 32),
    ("ring 100", "air-quality", "y"): (1.87, 27, 30),
    ("ring 100", "twitter", "y"): (1.56, 28, 53),
    ("path 50", "air-quality", "y"): (1.51, 27, 32),
    ("grid 10x10", "air-quality", "y"): (1.23, 20, 32),
    ("random 20", "air-quality", "y"): (1.15, None, None),  # with 50, too
    ("random 100", "air-quality", "y"): (1.15, None, None),
    ("tree 200", "power-plant", "iid"): (None, None, None),  # inputs scaled as a whole, so that all but one are tiny
    ("geometric 200", "power-plant", "iid"): (None, None, None),
    ("geometric 200", "air-quality", "y"): (None, None, None),
}


def network_of(name: str, seed: int) -> lc.Network:
    kind, size = name.split()
    if kind == "grid":
        return lc.Network.from_networkx(nx.grid_2d_graph(10, 10))
    if kind == "random":
        return lc.Network.random(int(size), p=0.5, seed=seed)
    if kind == "tree":
        return lc.Network.from_edges(int(size), [(i, (i - 1) // 2) for i in range(1, int(size))])
    if kind == "geometric":
        return lc.Network.geometric(int(size), float(np.sqrt(8 / (np.pi * int(size)))), seed=seed, connect=True)
    return {"ring": lc.Network.ring, "path": lc.Network.path}[kind](int(size))


def dealt(setting: Setting, deal: str, seed: int, protocol: str = "prepared") -> Stream:
    X, _ = scaled(setting.name, protocol, None, None)
    widest = int(np.argmax(X.var(axis=0)))
    how = {"iid": "shuffled", "y": "sorted-by-target", "x": f"sorted-by-feature:{widest}"}[deal]
    return make_stream(setting, seed, protocol=protocol, partition=how)


def drawn(name: str, deal: str, network: lc.Network, seed: int, size: int = 50, n_rounds: int = 1000) -> Stream:
    """Rows with replacement: of all of the set, or of an agent's own band of labels."""
    X, y = scaled(name, "prepared", None, None)
    random, n = np.random.default_rng(seed), network.n_agents
    rows = random.integers(len(y), size=(n_rounds, n))
    if deal == "y":
        bands = np.array_split(np.argsort(y, kind="stable"), n)
        rows = np.stack([random.choice(band, n_rounds) for band in bands], axis=1)
    features = lc.RandomFeatures.gaussian(X.shape[1], size, bandwidth=0.5, seed=seed)
    return Stream(X[rows], y[rows], features, network)


def centralised(stream: Stream, ridge: float) -> float:
    run = lc.offline.recursive_least_squares(
        stream.features, stream.X, stream.y, centralised=True, regularization=ridge
    )
    return float(np.mean((run - stream.y) ** 2))


def best_centralised(stream: Stream) -> float:
    return min(centralised(stream, ridge) for ridge in RIDGES)


def measured(learner: lc.Learner, streams: list[Stream], engine: str) -> dict[str, Any]:
    """Means over the seeds."""
    rows = []
    for stream in streams:
        trace = lc.simulate(
            learner, stream.features, stream.network, stream.X, stream.y, collective=True, engine=engine
        )
        bits, best = trace.bits.sum(axis=0) / 1e3, best_centralised(stream)
        mse = float(trace.global_mse()[-1])
        dense = 32 * stream.features.n_features * len(stream.y) / 1e3
        rows.append([mse * 1e3, best * 1e3, mse / best, bits.mean(), bits.max(), trace.sent.mean(axis=1).sum(), dense])
    names = ("mse", "best", "ratio", "kbit", "busiest", "messages", "odkla_kbit")
    means = dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
    return {**means, "ratios": [row[2] for row in rows]}


def lossy(streams: list[Stream], lost: float) -> tuple[list[float], float]:
    """Own error over the best centralised's, a seed each, and kbit an agent, where messages are lost."""
    ratios, kbit = [], []
    for seed, stream in enumerate(streams):
        run = LossyWaves(lc.WaveRLS().rule(), stream.network, stream.features, lost, seed)
        for x, y in zip(stream.X, stream.y, strict=True):
            run.round(x, y)
        ratios.append(float(np.mean((np.array(run.predictions) - stream.y) ** 2)) / best_centralised(stream))
        kbit.append(run.bits / stream.network.n_agents / 1e3)
    return ratios, float(np.mean(kbit))


def hop_bound(stream: Stream, ridge: float = 0.05) -> float:
    """The error of agents that know every sample exactly, d rounds late if it was seen d hops away."""
    from scipy.linalg import cho_factor, cho_solve

    n_rounds, n = stream.y.shape
    phi = stream.features(stream.X.reshape(n_rounds * n, -1)).reshape(n_rounds, n, -1)
    hops = dict(nx.all_pairs_shortest_path_length(stream.network.to_networkx()))
    errors = np.zeros(n_rounds)
    for agent in range(n):
        late = np.array([hops[agent][other] for other in range(n)])
        matrix, vector = ridge * np.eye(phi.shape[2]), np.zeros(phi.shape[2])
        model = vector
        for t in range(n_rounds):
            if t > 0:
                others = np.flatnonzero(late < t)
                new = t - 1 - late[others], others
                matrix += phi[new].T @ phi[new]
                vector += phi[new].T @ stream.y[new]
                model = cho_solve(cho_factor(matrix, lower=True, check_finite=False), vector, check_finite=False)
            errors[t] += np.mean((phi[t] @ model - stream.y[t]) ** 2) / n
    return float(errors.mean())


def show(what: str, row: dict[str, Any], expected: str) -> None:
    ratios = " ".join(f"{ratio:.3f}" for ratio in row["ratios"])
    print(
        f"{what:<40}{row['mse']:8.3f} /{row['kbit']:6.1f} kbit (busiest {row['busiest']:.0f}, {row['messages']:.0f} "
        f"messages)  of the centre's {row['best']:.3f}: {ratios}   expected {expected}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", default=["cells", "sets", "graphs", "loss"], help="which tables to make: all but bound"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--frequencies", type=int, nargs="+", default=[DEEP_FREQUENCIES, 50], help="of graphs; of bound the first one"
    )
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "waves.json")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def line(what: str, learner: lc.Learner, streams: list[Stream], expected: str, **more: Any) -> None:
        row = {"what": what, **more, **measured(learner, streams, given.engine)}
        rows.append(row)
        show(what, row, expected)

    if "cells" in given.parts:
        for (name, deal), figures in CELLS.items():
            if given.only not in f"{name} {deal}":
                continue
            streams = [dealt(SETTINGS[name], deal, seed) for seed in given.seeds]
            for (kind, learner), (mse, kbit) in zip(LEARNERS.items(), figures, strict=True):
                line(f"{name} {deal} {kind}", learner, streams, f"{mse} / {kbit or '-'}", rule=(mse, kbit))
    if "sets" in given.parts:
        for setting in SETS:
            for deal in ("iid", "y"):
                if given.only not in f"{setting.name} {deal}":
                    continue
                streams = [dealt(setting, deal, seed, "paper") for seed in given.seeds]
                line(f"{setting.name} {deal}", lc.WaveRLS(), streams, "ratio <= 1.15, kbit <= ODKLA / 75")
                print(f"    ODKLA's bits over these: {rows[-1]['odkla_kbit'] / rows[-1]['kbit']:.0f}")
    if "graphs" in given.parts:
        for (graph, name, deal), (ratio, kbit, busiest) in GRAPHS.items():
            if given.only not in f"{graph} {name} {deal}":
                continue
            for size in given.frequencies:
                streams = [drawn(name, deal, network_of(graph, seed), seed, size) for seed in given.seeds]
                figures = (
                    f"ratio {ratio}, {kbit or '-'} / {busiest or '-'}" if ratio and size == DEEP_FREQUENCIES else "-"
                )
                line(f"{graph} {name} {deal}, L = {size}", lc.WaveRLS(), streams, figures)
    if "loss" in given.parts:
        for name in ("air-quality", "twitter"):
            streams = [drawn(name, "iid", network_of("random 5", seed), seed) for seed in given.seeds]
            for lost in (0.0, 0.05, 0.2):
                ratios, kbit = lossy(streams, lost)
                rows.append({"what": f"{name}, {lost:.0%} lost", "ratios": ratios, "kbit": kbit})
                shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
                print(f"{name} iid, {lost:4.0%} lost   {kbit:6.1f} kbit   of the centre's: {shown}", flush=True)
    if "bound" in given.parts:
        for graph, name, deal in GRAPHS:
            if given.only not in f"{graph} {name} {deal}":
                continue
            stream = drawn(name, deal, network_of(graph, given.seeds[0]), given.seeds[0], given.frequencies[0])
            error, best, usual = hop_bound(stream), best_centralised(stream), centralised(stream, 0.05)
            rows.append({"what": f"bound, {graph} {name} {deal}", "ratios": [error / best, error / usual]})
            print(f"bound, {graph} {name} {deal}: {error / best:.3f}, of ridge 0.05's {error / usual:.3f}", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
