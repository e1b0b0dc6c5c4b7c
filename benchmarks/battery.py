"""The defaults beside those of others: 25 tables by fit and predict, and a dozen streams row by row.

    python benchmarks/battery.py [tables] [streams] [--seeds 60 61 62] [--only iris moons]

``tables``: ``lc.DecentralizedKernelRegressor`` and ``Classifier`` as they come, on raw inputs that five agents share,
beside a linear model (ridge, logistic regression), ``RBFSampler`` and ``SGD``, ``KernelRidge`` or ``SVC``, boosted
trees and the mean, all with the defaults of scikit-learn behind a ``StandardScaler`` (the trees need none; the sampler
has gamma="scale" and as many features as laconic). Seven rows of ten are learned and three scored, by R2 or accuracy.

``streams``: what ``laconic run`` does, rows dealt in turn to five agents, beside river's linear model, nearest
neighbours and adaptive random forest behind river's ``StandardScaler``; each of these is one model that sees every row.
Every row is predicted before it is learned; the first of each agent is not scored.

Prints Markdown, and what must hold. Data are looked for in LACONIC_DATA. Writes ``benchmarks/results/battery.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from battery_sets import STREAMS, TABLES, Array, Set, chosen
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import laconic as lc
from laconic.defaults.untuned import learn_untuned

N_AGENTS, N_FEATURES = 5, 200
FACES = ("laconic", "linear", "sampler + SGD", "kernel", "boosted trees", "mean")
RIVERS = ("laconic", "linear", "nearest neighbours", "random forest")


def faces(classes: bool, seed: int) -> dict[str, Any]:
    """Models as they come, by name; regressors of scikit-learn see labels of mean zero and unit deviation."""
    sampler = RBFSampler(gamma="scale", n_components=N_FEATURES, random_state=seed)
    if classes:
        made = (
            lc.DecentralizedKernelClassifier(random_state=seed),
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            make_pipeline(StandardScaler(), sampler, SGDClassifier(random_state=seed)),
            make_pipeline(StandardScaler(), SVC()),
            HistGradientBoostingClassifier(random_state=seed),
            DummyClassifier(),
        )
    else:
        made = (
            lc.DecentralizedKernelRegressor(random_state=seed),
            centred(make_pipeline(StandardScaler(), Ridge())),
            centred(make_pipeline(StandardScaler(), sampler, SGDRegressor(random_state=seed))),
            centred(make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))),
            HistGradientBoostingRegressor(random_state=seed),
            DummyRegressor(),
        )
    return dict(zip(FACES, made, strict=True))


def centred(model: Any) -> Any:
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def table(one: Set, seed: int) -> dict[str, float]:
    """R2 or accuracy of each model on rows that it has not seen."""
    X, y = one.load(seed)
    parts = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y if one.classes else None)
    found = {}
    for name, model in faces(one.classes, seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = float(model.fit(parts[0], parts[2]).score(parts[1], parts[3]))
    return found


def rivers(classes: bool, seed: int) -> dict[str, Any]:
    from river import forest, linear_model, neighbors, preprocessing

    if classes:
        from river.multiclass import OneVsRestClassifier

        made: tuple[Any, ...] = (
            OneVsRestClassifier(linear_model.LogisticRegression()),
            neighbors.KNNClassifier(),
            forest.ARFClassifier(seed=seed),
        )
    else:
        made = linear_model.LinearRegression(), neighbors.KNNRegressor(), forest.ARFRegressor(seed=seed)
    return {name: preprocessing.StandardScaler() | model for name, model in zip(RIVERS[1:], made, strict=True)}


def stream(one: Set, seed: int) -> dict[str, float]:
    """R2 or accuracy over the whole stream, each row predicted before it is learned."""
    X, y = one.load(seed)
    n_rounds = len(y) // N_AGENTS
    X, y = X[: n_rounds * N_AGENTS], y[: n_rounds * N_AGENTS]
    shape = n_rounds, N_AGENTS
    task = "classes" if one.classes else "numbers"
    run = learn_untuned(X.reshape(*shape, -1), y.reshape(shape), lc.Network.random(N_AGENTS, 0.5, seed), task=task)
    found = {RIVERS[0]: run.scores.accuracy() if one.classes else run.scores.r2()}
    for name, model in rivers(one.classes, seed).items():
        found[name] = score(one.classes, y[N_AGENTS:], one_by_one(model, X, y)[N_AGENTS:])
    return found


def one_by_one(model: Any, X: Array, y: Array) -> list[Any]:
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            sample = dict(enumerate(row))
            said.append(model.predict_one(sample))
            model.learn_one(sample, label)
    return said


def score(classes: bool, y: Array, said: list[Any]) -> float:
    if classes:
        return float(np.mean([one == other for one, other in zip(said, y.tolist(), strict=True)]))
    with np.errstate(over="ignore"):
        return float(1 - np.mean((np.array(said) - y) ** 2) / np.var(y))


def measure(
    sets: tuple[Set, ...],
    names: tuple[str, ...],
    run: Callable[[Set, int], dict[str, float]],
    given: argparse.Namespace,
) -> dict[str, dict[str, float]]:
    """The means over seeds, as a Markdown table that grows line by line."""
    print("| | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|", flush=True)
    found: dict[str, dict[str, float]] = {}
    for one in chosen(sets, given.only):
        parts = [run(one, seed) for seed in given.seeds]
        found[one.name] = {name: float(np.mean([part[name] for part in parts])) for name in names}
        print(line(one.name, found[one.name]), flush=True)
    average = {name: float(np.mean([max(values[name], -1.0) for values in found.values()])) for name in names}
    print(line("mean, each at least -1", average), "\n", flush=True)
    return found


def line(name: str, values: dict[str, float]) -> str:
    return (
        f"| {name} | " + " | ".join(f"{value:.3f}" if value > -99 else "below -99" for value in values.values()) + " |"
    )


def judge(found: dict[str, dict[str, float]]) -> None:
    """What must hold, and by how much it does."""
    short = {name: values["laconic"] - values["linear"] for name, values in found.items()}
    for name, gap in sorted(short.items(), key=lambda pair: pair[1])[:5]:
        allowed = 0.03 if name == "purely linear" else 0.02
        print(f"{name}: {gap:+.3f} of the linear model{'' if gap >= -allowed else ', which is too little'}.")
    for other in set(next(iter(found.values()))) - {"laconic", "linear"}:
        gaps = [max(values["laconic"], -1.0) - max(values[other], -1.0) for values in found.values()]
        print(f"{np.mean(gaps):+.3f} of {other} on average, {min(gaps):+.3f} at worst.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Defaults beside defaults.")
    parser.add_argument("what", nargs="*", default=["tables", "streams"], help="tables, streams")
    parser.add_argument("--seeds", type=int, nargs="+", default=[60, 61, 62])
    parser.add_argument("--only", nargs="+", help="sets whose names contain one of these")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/battery.json"))
    given = parser.parse_args()
    results: dict[str, Any] = {"seeds": given.seeds}
    if "tables" in given.what:
        results["tables"] = measure(TABLES, FACES, table, given)
        judge(results["tables"])
    if "streams" in given.what:
        results["streams"] = measure(STREAMS, RIVERS, stream, given)
        judge(results["streams"])
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
