"""What ``laconic run --out`` leaves behind: the trace, its picture, and every parameter."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from laconic._version import __version__
from laconic.cli.learners import describe_learner
from laconic.cli.results import Result
from laconic.cli.words import keeps_order
from laconic.data.scaling import HOW
from laconic.trace import Trace


def write(folder: Path, result: Result, arguments: argparse.Namespace) -> tuple[str, ...]:
    """The trace, its picture, that of its waves if it has any, and every parameter; returns the names of the files."""
    trace = _told(result)
    trace.save(folder / "trace.npz")
    trace.model().save(folder / "model.npz")
    _draw(result, arguments.seed).savefig(folder / "picture.png", dpi=150)
    (folder / "run.json").write_text(as_json(result, arguments, indent=2) + "\n")
    if not len(result.trace.waves):
        return "trace.npz", "model.npz", "picture.png", "run.json"
    from matplotlib.figure import Figure

    figure = result.trace.plot_waves(Figure(figsize=(8.4, 4.6), layout="constrained"))
    figure.savefig(folder / "waves.png", dpi=150)
    return "trace.npz", "model.npz", "picture.png", "waves.png", "run.json"


def as_json(result: Result, arguments: argparse.Namespace, indent: int | None = None) -> str:
    """Every parameter, and what came of it, as one JSON object."""
    return json.dumps(_about(result, arguments), indent=indent, default=str)


def _told(result: Result) -> Trace:
    """The trace, told what its data were called and how they were scaled: its models take and give what people have.

    Scaled as they came (``running``), data are scaled by the bounds that the last row has left.
    """
    source, trace = result.source, result.trace
    dataset = source.dataset
    data: dict[str, Any] = {"inputs": list(dataset.names), "target": dataset.target}
    if source.binary:
        values = [value.item() for value in np.unique(dataset.y)]
        data["classes"] = list(dataset.classes or (int(v) if v.is_integer() else v for v in values))
    elif dataset.classes is None and source.scale in HOW:
        data |= {"centre": float(dataset.y.min()), "scale": float(np.ptp(dataset.y))}
    map = trace.feature_map
    if map is not None and source.scale in HOW:
        axis = None if source.scale == "matrix" else 0
        map = map.after(dataset.X.min(axis=axis), np.ptp(dataset.X, axis=axis))
    return dataclasses.replace(trace, about={**trace.about, "data": data}, feature_map=map)


def _draw(result: Result, seed: int) -> Any:
    """Error against rounds, messages and bits, with the twin that never speaks as the level to beat."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.7), layout="constrained")
    traces = {result.learner.name: result.trace}
    if result.speaks and not result.alone.diverged:
        traces[result.twin_name] = result.alone
    for name, trace in traces.items():
        if result.source.binary:
            # With 0 and 1 for wrong and right signs, the mean squared error is the error rate.
            labels = np.where(np.isnan(trace.labels), np.nan, trace.labels > 0)
            trace = dataclasses.replace(trace, predictions=(trace.predictions > 0).astype(float), labels=labels)
        trace.plot(name, figure)
    words = f"{result.source.dataset.name}, {describe_learner(result.learner)}, seed {seed}"
    figure.suptitle(words, fontsize=9, color="#6b6b6b")
    if result.source.binary:
        figure.axes[0].set_ylabel("error rate so far")
    return figure


def _about(result: Result, arguments: argparse.Namespace) -> dict[str, Any]:
    source, stream = result.source, result.stream
    parameters = {name: value for name, value in result.learner.parameters().items() if name != "channel"}
    channel = result.learner.channel
    return {
        "laconic": __version__,
        "data": {
            "name": source.dataset.name,
            "given": str(arguments.data),
            "rows": len(source.dataset),
            "inputs": list(source.dataset.names),
            "target": source.dataset.target,
            "classes": source.dataset.classes,
            "protocol": source.dataset.protocol,
            "missing": arguments.missing or "refuse",
            "scale": source.scale,
            "partition": source.partition,
            "order_kept": keeps_order(source.partition),
        },
        "seed": arguments.seed,
        "rounds": len(stream.y),
        "network": {
            "kind": source.network,
            "agents": stream.network.n_agents,
            "names": list(stream.network.names),
            "edges": stream.network.edges.tolist(),
        },
        "features": {
            "kernel": source.kernel,
            "frequencies": source.n_frequencies,
            "bandwidth": source.setting.bandwidth,
            "bandwidth_from": source.bandwidth_from,
        },
        "learner": {"name": result.learner.name, **{name: _plain(value) for name, value in parameters.items()}},
        "channel": None
        if channel is None
        else {"censor": _fields(channel.censor), "quantizer": _fields(channel.quantizer)},
        "result": result.numbers,
    }


def _fields(part: Any) -> dict[str, Any] | None:
    return None if part is None else dataclasses.asdict(part)


def _plain(value: Any) -> Any:
    """Losses by their names, constant schedules by their values, numbers and words as they are."""
    return getattr(value, "name", None) or getattr(value, "value", value)
