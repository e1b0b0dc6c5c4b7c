"""laconic beside its neighbours, on the same rows and the same features: error, bits and seconds.

    python benchmarks/peers.py                      # all that this interpreter can import
    /elsewhere/bin/python benchmarks/peers.py       # another interpreter, with flwr or disropt, adds its lines
    python benchmarks/peers.py --time               # the seconds anew, on one seed, with what was chosen then
    python benchmarks/peers.py --table              # what has been found so far, as Markdown

Ten agents, a model of 100 numbers over random features. *landscape*: each agent measures one tile of a surface.
*air-quality*: rows sorted by their label, so that each agent sees one band of it; a fifth of them is kept to score on.
Scored is the last model of every agent, on rows of everybody that nobody has learned from.

Streams of seed 0 choose for each method that has a step (the grids are in ``peers_methods.py``) and the ridge
of all that solve least squares; they are not reported. The grids themselves were settled while streams of seeds 1 to 3
were looked at, so that those are not reported either. Bits are those of numbers of 32 bits that an agent sends, once
for all who hear the same, whatever a library wraps around them; what a server sends back is not counted. Libraries that
are not there are left out, with a sentence.

Jobs are files, which an interpreter with laconic writes: the others need it not. Writes ``benchmarks/results/peers/``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from peers_methods import METHODS, Job, Method, centre, error

SETS, RIDGES = ("landscape", "air-quality"), tuple(10.0**-k for k in range(1, 9))


def write_jobs(folder: Path, seeds: Sequence[int]) -> None:
    """The streams as files, so that interpreters without laconic can learn them."""
    import laconic as lc
    from laconic.demo.landscape import NOISE, landscape, measure, neighbourhood

    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        X, y = measure(2000, seed)
        fresh = rng.uniform(size=(2000, 2))
        labels = landscape(fresh) + NOISE * rng.standard_normal(2000)
        features = lc.RandomFeatures.gaussian(2, 50, 0.2, seed=seed)
        save(folder / f"landscape-{seed}.npz", X, y, fresh, labels, features, neighbourhood())

        table = lc.data.load("air-quality", protocol="prepared")
        rows, targets = lc.data.scale(table.X), lc.data.scale(table.y)
        order = rng.permutation(len(targets))
        kept, rest = order[: len(order) // 5], order[len(order) // 5 :]
        X, y = lc.data.partition(rows[rest], targets[rest], 10, "sorted-by-target", seed)
        width = float(np.median(distances(rows[rest][:500])))
        features = lc.RandomFeatures.gaussian(rows.shape[1], 50, width, seed=seed)
        network = lc.Network.random(10, 0.4, seed=seed)
        save(folder / f"air-quality-{seed}.npz", X, y, rows[kept], targets[kept], features, network)


def distances(X: Any) -> Any:
    apart = np.linalg.norm(X[:, None] - X, axis=-1)
    return apart[np.triu_indices(len(X), 1)]


def save(path: Path, X: Any, y: Any, X_new: Any, y_new: Any, features: Any, network: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        X=X,
        y=y,
        X_new=X_new,
        y_new=y_new,
        phi=features(X),
        phi_new=features(X_new),
        frequencies=features.frequencies,
        edges=np.array(network.edges),
    )


def choose(method: Method, name: str, folder: Path) -> Any:
    """What is best of the grid, on seed 0."""
    if len(method.grid) == 1:
        return method.grid[0]
    job = read(folder, name, 0)
    found = [error(job, method.run(job, number).predictions) for number in method.grid]
    return method.grid[int(np.nanargmin(found))]


def read(folder: Path, name: str, seed: int) -> Job:
    job = Job.read(folder / f"{name}-{seed}.npz", seed)
    tried = Job.read(folder / f"{name}-0.npz", 0) if seed else job
    scores = [error(tried, centre(tried, ridge)) for ridge in RIDGES]
    job.ridge = RIDGES[int(np.argmin(scores))]
    return job


def measure_all(folder: Path, seeds: Sequence[int], only: Sequence[str]) -> None:
    for library, methods in METHODS.items():
        if only and library not in only:
            continue
        try:
            version = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            print(f"{library} is not installed in this interpreter: left out.")
            continue
        for name in SETS:
            for method in methods:
                number = choose(method, name, folder)
                runs = [(job := read(folder, name, seed), method.run(job, number)) for seed in seeds]
                errors = [error(job, run.predictions) for job, run in runs]
                row = {
                    "library": library,
                    "version": version,
                    "set": name,
                    "method": method.name,
                    "number": number,
                    "error": float(np.mean(errors)),
                    "spread": float(np.std(errors)),
                    "kbit": float(np.mean([run.bits for _, run in runs])) / 1000,
                    "seconds": float(np.median([run.seconds for _, run in runs])),
                    "seeds": list(seeds),
                }
                print(line(row), flush=True)
                keep(folder / "results.json", row)


def time_again(folder: Path, seeds: Sequence[int], only: Sequence[str]) -> None:
    """The seconds alone, with what was chosen before: for a moment in which the machine does nothing else."""
    for row in json.loads((folder / "results.json").read_text()):
        if row["library"] in only:
            (method,) = (method for method in METHODS[row["library"]] if method.name == row["method"])
            row["seconds"] = method.run(read(folder, row["set"], seeds[0]), row["number"]).seconds
            print(line(row), flush=True)
            keep(folder / "results.json", row)


def keep(path: Path, row: dict[str, Any]) -> None:
    rows = json.loads(path.read_text()) if path.exists() else []
    same = ("library", "set", "method")
    rows = [other for other in rows if any(other[key] != row[key] for key in same)]
    path.write_text(json.dumps([*rows, row], indent=1) + "\n")


def line(row: dict[str, Any]) -> str:
    kbit = f"{row['kbit']:,.0f}" if row["kbit"] else "0"
    return f"| {row['library']} | {row['method']} | {1000 * row['error']:.2f} | {kbit} | {row['seconds']:.2g} |"


def table(path: Path) -> None:
    rows = json.loads(path.read_text())
    for name in SETS:
        print(f"\n{name}\n\n| | | error x 1000 | kbit of an agent | seconds |\n|---|---|---|---|---|")
        for row in sorted((row for row in rows if row["set"] == name), key=lambda row: row["error"]):
            print(line(row))
    print("\n" + ", ".join(sorted({f"{row['library']} {row['version']}" for row in rows})))


def main() -> None:
    parser = argparse.ArgumentParser(description="The same rows, learned by other libraries.")
    parser.add_argument("--only", nargs="+", default=[], help="libraries, by name")
    parser.add_argument("--seeds", type=int, nargs="+", default=[4, 5, 6])
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/peers"))
    parser.add_argument("--table", action="store_true", help="only print what was found")
    parser.add_argument("--time", action="store_true", help="only the seconds anew, of the libraries of --only")
    given = parser.parse_args()
    if given.time:
        time_again(given.folder, given.seeds, given.only)
    elif not given.table:
        jobs = [given.folder / f"{name}-{seed}.npz" for name in SETS for seed in (0, *given.seeds)]
        if not all(job.exists() for job in jobs):
            write_jobs(given.folder, [0, *given.seeds])
        measure_all(given.folder, given.seeds, given.only)
    table(given.folder / "results.json")


if __name__ == "__main__":
    main()
