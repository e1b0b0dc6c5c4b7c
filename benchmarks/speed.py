"""How fast laconic is, each figure a ratio of two things timed in one process: ``make bench``.

The shape is that of the paper's Twitter set: T = 9870 rounds, N = 10 agents, d = 77 inputs, L = 50 frequencies, a
random graph of 18 edges; one thread; the median of 7 runs in which subject and yardstick take turns. Runs are end to
end, from X to trace. Prints one table and writes ``benchmarks/results/speed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy wakes its threads

import numpy as np
from tqdm import tqdm
from yardsticks import NumpyODKLA, one_row_sgd

import laconic as lc

T, N, D, L = 9870, 10, 77, 50
REPEATS = 7


@dataclass
class Row:
    """One line of the table."""

    what: str
    measured: float
    unit: str
    bound: float
    at_most: bool
    note: str = ""

    @property
    def reached(self) -> bool:
        """Whether the measurement is on the right side of the bound."""
        return bool(self.measured <= self.bound if self.at_most else self.measured >= self.bound)


def network_of_18_edges() -> lc.Network:
    for seed in range(1000):
        network = lc.Network.random(N, p=0.4, seed=seed)
        if len(network.edges) == 18:
            return network
    raise RuntimeError("no random network with 18 edges")


def take_turns(*calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, timed in turns so that a noisy moment hits all of them."""
    for call in calls:
        call()
    times = np.empty((REPEATS, len(calls)))
    for repeat in range(REPEATS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[repeat, k] = time.perf_counter() - start
    return [float(t) for t in np.median(times, axis=0)]


def stream(n_rounds: int, n_agents: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rounds, n_agents, D)).astype(dtype)
    return X, (np.sin(3 * X[..., 0]) + X[..., 1]).astype(dtype)


def against_the_product(rows: list[Row], features: lc.RandomFeatures, network: lc.Network) -> None:
    bounds = {"ODKLA": 2.2, "RFF-DOKL": 2.2, "DOKL": 2.5, "QC-ODKLA": 3.0}
    for dtype in ("float64", "float32"):
        X, y = stream(T, N, dtype)
        flat, frequencies = X.reshape(-1, D), features.frequencies.T.astype(dtype)
        for learner in (lc.ODKLA(), lc.RFFDOKL(), lc.DOKL(), lc.QCODKLA()):
            product, run = take_turns(
                lambda flat=flat, frequencies=frequencies: flat @ frequencies,
                lambda learner=learner, X=X, y=y, dtype=dtype: lc.simulate(
                    learner, features, network, X, y, dtype=dtype
                ),
            )
            bound = bounds[learner.name] if dtype == "float64" else 3.0
            note = f"{run * 1e3:.1f} ms against {product * 1e3:.1f} ms"
            rows.append(Row(f"{learner.name} {dtype} / product X W'", run / product, "x", bound, True, note))


def against_others(rows: list[Row], features: lc.RandomFeatures, network: lc.Network) -> None:
    X, y = stream(T, N)
    learner = lc.ODKLA()
    stacked = NumpyODKLA(learner, features, network)
    ours = lc.simulate(learner, features, network, X, y)
    if not np.allclose(stacked.run(X, y), ours.predictions, rtol=1e-9, atol=1e-9):
        raise RuntimeError("the NumPy yardstick computes something else")
    numpy_seconds, seconds = take_turns(
        lambda: stacked.run(X, y), lambda: lc.simulate(learner, features, network, X, y)
    )
    note = f"{numpy_seconds * 1e3:.0f} ms against {seconds * 1e3:.1f} ms"
    rows.append(Row("stacked NumPy / ODKLA", numpy_seconds / seconds, "x", 12, False, note))
    n_rows = 1500
    sgd = one_row_sgd(X.reshape(-1, D)[:n_rows], y.reshape(-1)[:n_rows], L)
    sgd_seconds, seconds = take_turns(sgd, lambda: lc.simulate(learner, features, network, X, y))
    each, own = sgd_seconds / n_rows, seconds / (T * N)
    note = f"{each * 1e6:.0f} us against {own * 1e6:.2f} us a sample"
    rows.append(Row("RBFSampler + SGDRegressor / ODKLA", each / own, "x", 500, False, note))


def waves_against_least_squares(rows: list[Row]) -> None:
    """WaveRLS, waves included, against least squares of each agent alone, on the shape of the paper's Air quality."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1464, 5, 13))
    y = np.sin(3 * X[..., 0]) + X[..., 1] + 0.1 * rng.standard_normal(X.shape[:2])
    features, network = lc.RandomFeatures.gaussian(13, L, bandwidth=1.0, seed=0), lc.Network.random(5, p=0.5, seed=1)
    alone, waves = take_turns(
        lambda: lc.offline.recursive_least_squares(features, X, y, centralised=False),
        lambda: lc.simulate(lc.WaveRLS(), features, network, X, y),
    )
    note = f"{waves / y.size * 1e6:.1f} us against {alone / y.size * 1e6:.1f} us a sample"
    rows.append(Row("WaveRLS / local recursive least squares", waves / alone, "x", 2.2, True, note))


def scaling(rows: list[Row], features: lc.RandomFeatures, network: lc.Network) -> None:
    lengths = (1_000, 10_000, 100_000)
    X, y = stream(lengths[-1], N)
    # Each length takes the same number of samples in all, so that a slow moment of the machine weighs on all alike.
    calls = [
        lambda n=n: [
            lc.simulate(lc.ODKLA(), features, network, X[k : k + n], y[k : k + n]) for k in range(0, len(X), n)
        ]
        for n in lengths
    ]
    each = np.array(take_turns(*calls)) / len(X) / N
    note = ", ".join(f"{ns:.0f}" for ns in each * 1e9) + " ns a sample at T = 1e3, 1e4, 1e5"
    rows.append(Row("cost a sample, largest / smallest over T", each.max() / each.min(), "x", 1.10, True, note))

    sizes = (10, 100, 1_000)
    data = [stream(60_000 // n, n) for n in sizes]
    rings = [lc.Network.ring(n) for n in sizes]
    calls = [
        lambda d=d, ring=ring: lc.simulate(lc.ODKLA(), features, ring, *d) for d, ring in zip(data, rings, strict=True)
    ]
    each = np.array(take_turns(*calls)) / 60_000
    note = ", ".join(f"{ns:.0f}" for ns in each * 1e9) + " ns a sample on rings of 10, 100, 1000"
    rows.append(Row("cost a sample, largest / smallest over N", each.max() / each.min(), "x", 1.25, True, note))

    degrees = np.array([2, 4, 8, 16, 32])
    X, y = stream(600, 100)
    graphs = [lc.Network.small_world(100, int(k), 0.0) for k in degrees]
    calls = [lambda graph=graph: lc.simulate(lc.ODKLA(), features, graph, X, y) for graph in graphs]
    each = np.array(take_turns(*calls)) / y.size
    slope, start = np.polyfit(degrees, each, 1)
    off = np.abs(slope * degrees + start - each).max() / each.mean()
    note = f"{start * 1e9:.0f} ns a sample and {slope * 1e9:.1f} ns a neighbour"
    rows.append(Row("cost against edges, largest deviation from a line", off, "", 0.1, True, note))


def one_sample(rows: list[Row]) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, D))
    y = np.sin(3 * X[:, 0])
    model = lc.DecentralizedKernelRegressor(n_agents=1, n_frequencies=L, learner=lc.ODKLA()).fit(X[:100], y[:100])
    singles = [(X[k : k + 1], y[k : k + 1]) for k in range(len(X))]

    def partial_fits() -> None:
        for x, label in singles:
            model.partial_fit(x, label)

    rows.append(Row("partial_fit of one row, ODKLA", take_turns(partial_fits)[0] / len(X) * 1e6, "us", 15, True))
    try:
        online = lc.river.Regressor(n_frequencies=L)
    except ImportError:
        return
    dictionaries = [dict(zip([f"x{k}" for k in range(D)], row.tolist(), strict=True)) for row in X]

    def learn_ones() -> None:
        for x, label in zip(dictionaries, y.tolist(), strict=True):
            online.learn_one(x, label)

    rows.append(Row("learn_one", take_turns(learn_ones)[0] / len(X) * 1e6, "us", 15, True))


FRESH = """
import time
start = time.perf_counter()
import laconic as lc
imported = time.perf_counter() - start
import numpy as np
X = np.random.default_rng(0).uniform(size=(100, 10, 77))
lc.simulate(lc.QCODKLA(), lc.RandomFeatures.gaussian(77, 50), lc.Network.ring(10), X, X[..., 0])
print(imported, time.perf_counter() - start)
"""


def starting(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}

        def process() -> tuple[float, float]:
            done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, env=env, check=True)
            imported, total = map(float, done.stdout.split())
            return imported, total

        first = process()
        later = np.median([process() for _ in range(REPEATS)], axis=0)
    rows.append(Row("import laconic", float(later[0]), "s", 0.5, True))
    rows.append(Row("first simulate of a fresh cache, import included", first[1], "s", 10, True))
    rows.append(Row("a later process: import and simulate", float(later[1]), "s", 1, True))


def table(rows: list[Row]) -> str:
    lines = [f"{'':<52}{'measured':>12}{'bound':>12}", "-" * 76]
    for row in rows:
        sign = "<=" if row.at_most else ">="
        mark = "" if row.reached else "  not reached"
        lines.append(f"{row.what:<52}{row.measured:>9.3g} {row.unit:<2}{sign:>6} {row.bound:<5g}{mark}")
        if row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "speed.json")
    out = parser.parse_args().out
    features = lc.RandomFeatures.gaussian(D, L, bandwidth=1.0, seed=0)
    network = network_of_18_edges()
    rows: list[Row] = []
    stages: list[tuple[str, Callable[[], None]]] = [
        ("against the matrix product", lambda: against_the_product(rows, features, network)),
        ("against NumPy and scikit-learn", lambda: against_others(rows, features, network)),
        ("waves", lambda: waves_against_least_squares(rows)),
        ("scaling", lambda: scaling(rows, features, network)),
        ("one sample at a time", lambda: one_sample(rows)),
        ("starting", lambda: starting(rows)),
    ]
    with tqdm(stages, leave=False) as bar:
        for name, stage in bar:
            bar.set_description(name)
            stage()
    print(table(rows))
    out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
    out.write_text(json.dumps({**machine, "rows": [{**asdict(row), "reached": row.reached} for row in rows]}, indent=1))
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    main()
