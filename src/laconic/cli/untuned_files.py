"""What ``laconic run --out`` leaves behind where features and learner were chosen."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.data.people import OpenTable
from laconic.defaults.labels import CLASSES
from laconic.defaults.untuned import Untuned
from laconic.model.making import make_model
from laconic.trace import Trace


def write(folder: Path, read: OpenTable, rows: Array, run: Untuned, found: dict[str, Any]) -> tuple[str, ...]:
    """The trace, the model for everybody, every row's prediction, the picture, and what was found; returns names."""
    labels = run.choice.labels
    about: dict[str, Any] = {"inputs": list(read.names), "target": read.target}
    about |= (
        {"classes": list(labels.classes)} if labels.task == CLASSES else {"centre": labels.centre, "scale": labels.unit}
    )
    trace = dataclasses.replace(run.traces[0], about={**run.traces[0].about, "data": about})
    trace.save(folder / "trace.npz")
    _save_model(folder / "model.npz", run, trace, about)
    _write_predictions(folder / "predictions.csv", rows, run)
    (folder / "run.json").write_text(json.dumps(found, indent=2) + "\n")
    names = ["trace.npz", "model.npz", "predictions.csv", "run.json"]
    from matplotlib.figure import Figure

    trace.plot(run.choice.learner.name, Figure(figsize=(10.5, 3.7), layout="constrained")).savefig(
        folder / "picture.png", dpi=150
    )
    names.append("picture.png")
    if len(trace.waves):
        figure = trace.plot_waves(Figure(figsize=(8.4, 4.6), layout="constrained"))
        figure.savefig(folder / "waves.png", dpi=150)
        names.append("waves.png")
    return tuple(names)


def _save_model(path: Path, run: Untuned, trace: Trace, about: dict[str, Any]) -> None:
    """One model for everybody: as the learner blends its agents', or their mean."""
    learner = run.choice.learner
    blend = getattr(learner, "blend", None)
    weights = trace.weights.mean(axis=0) if blend is None else blend(trace.state.learner)
    names = (about.pop("inputs"), about.pop("target"))
    make_model(run.choice.features, learner, weights, names, agents=run.network.n_agents, **about).save(path)


def _write_predictions(path: Path, rows: Array, run: Untuned) -> None:
    """A line for each row that an agent had, in the order of the file: also where there was no label to learn from."""
    labels, scores = run.choice.labels, run.scores.predictions
    said = labels.decode(scores[..., 0] if labels.n_models == 1 else scores)
    rounds, agents = np.nonzero(rows >= 0)
    order = np.argsort(rows[rounds, agents])
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "round", "agent", "prediction"])
        for t, i in zip(rounds[order].tolist(), agents[order].tolist(), strict=True):
            writer.writerow([int(rows[t, i]) + 1, t + 1, run.network.names[i], said[t, i]])
