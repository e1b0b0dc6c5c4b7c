"""What labels that are far off all others cost, by their size: R2 on rows that are as they should be.

    python benchmarks/wild_labels.py [--faces run fit river] [--seeds 710] [--counts 1 3 10]

600 rows of y = 3 sin 2a + b and of Friedman's first function; so many of their labels, at random places, are moved so
many deviations to either side. ``run`` is what ``laconic run`` does, five agents, scored on the second half of the
stream; ``fit`` the estimator, scored on 600 other rows; ``river`` river's face with one agent, as ``run``.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from battery_sets import Array, sine_and_line
from sklearn.datasets import make_friedman1

import laconic as lc
from laconic.defaults.untuned import learn_untuned

N_AGENTS, N_ROWS = 5, 600
SIZES = (0, 5, 10, 20, 30, 37, 50, 60, 100, 1e3, 1e7)
SETS = {
    "sine and line": sine_and_line,
    "Friedman 1": lambda seed: make_friedman1(N_ROWS, noise=1.0, random_state=seed),
}


def spoiled(y: Array, size: float, count: int, seed: int) -> tuple[Array, Array]:
    """The labels with some of them moved, and which."""
    rng = np.random.default_rng(seed + 7)
    at = rng.choice(len(y), count, replace=False)
    moved = y.copy()
    moved[at] = y.mean() + size * y.std() * rng.choice([-1, 1], count)
    return moved, at


def r2(said: Array, y: Array) -> float:
    return float(1 - np.mean((said - y) ** 2) / np.var(y))


def late(said: Array, y: Array, at: Array) -> float:
    """R2 of the second half, without the rows that were moved."""
    scored = np.arange(len(y)) >= len(y) // 2
    scored[at] = False
    return r2(said[scored], y[scored])


def run(X: Array, y: Array, moved: Array, at: Array, seed: int, load: Any) -> float:
    shape = -1, N_AGENTS
    made = learn_untuned(
        X.reshape(*shape, X.shape[1]), moved.reshape(shape), lc.Network.random(N_AGENTS, 0.5, seed), task="numbers"
    )
    return late(made.scores.predictions.ravel() + made.choice.labels.centre, y, at)


def fit(X: Array, y: Array, moved: Array, at: Array, seed: int, load: Any) -> float:
    others, truth = load(seed + 5000)
    return r2(lc.DecentralizedKernelRegressor(random_state=seed).fit(X, moved).predict(others), truth)


def river(X: Array, y: Array, moved: Array, at: Array, seed: int, load: Any) -> float:
    model, said = lc.river.Regressor(), []
    for row, label in zip((X - X.mean(axis=0)) / X.std(axis=0), moved, strict=True):
        record = dict(enumerate(row.tolist()))
        said.append(model.predict_one(record))
        model.learn_one(record, float(label))
    return late(np.array(said), y, at)


def main() -> None:
    faces = {"run": run, "fit": fit, "river": river}
    parser = argparse.ArgumentParser(description="Labels far off all others, by their size.")
    parser.add_argument("--faces", nargs="+", choices=faces, default=list(faces))
    parser.add_argument("--seeds", type=int, nargs="+", default=[710])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 3, 10])
    given = parser.parse_args()
    print("| | " + " | ".join(f"{size:g}" for size in SIZES) + " |\n" + "|---" * (len(SIZES) + 1) + "|")
    for name, load in SETS.items():
        for face in given.faces:
            for count in given.counts:
                found = []
                for size in SIZES:
                    scores = []
                    for seed in given.seeds:
                        X, y = load(seed)
                        moved, at = spoiled(y, size, count if size else 0, seed)
                        scores.append(faces[face](X, y, moved, at, seed, load))
                    found.append(f"{np.mean(scores):.3f}")
                print(f"| {name}, {face}, {count} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
