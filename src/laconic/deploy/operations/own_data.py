"""A site from a person's own file: rows dealt to agents, inputs as numbers, and what is chosen by the first of them."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from typing import Any, NamedTuple

import numpy as np

from laconic._validate import Array
from laconic._worded import printable
from laconic.data import load_open
from laconic.data.people import OpenTable, fill_running
from laconic.defaults import PREFIX, Choice, choose, recognise
from laconic.defaults.labels import CLASSES, NUMBERS
from laconic.deploy.operations.starter import agent_names
from laconic.estimators.dealing import by_owner, in_turn
from laconic.learners import Personal, WaveRLS, written

_AGENTS = 5
_WIDTH = 116


class OwnData(NamedTuple):
    """What ``starter.settings`` needs to know of somebody's data.

    Attributes
    ----------
    names : tuple of str
        The agents.
    inputs, target : tuple of str, str
        Columns of the tables.
    tables : dict
        CSV text for each agent.
    model : str
        The tables [model], [learner] and [channel] of the settings.
    notes : tuple of str
        What was made of the file, and what was chosen and why.
    """

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    target: str
    tables: dict[str, str]
    model: str
    notes: tuple[str, ...]


def from_file(
    path: str,
    *,
    target: str | None = None,
    agent_column: str | None = None,
    header: bool | None = None,
    task: str | None = None,
    n_agents: int | None = None,
    seed: int = 1,
) -> OwnData:
    """Read a file as it is, deal its rows to agents in their order, and let ``defaults.choose`` choose."""
    read = load_open(path, target=target, agent_column=agent_column, header=header)
    task = task or recognise(read.y)
    names, rows, said = _deal(read, n_agents)
    X = fill_running(np.where(rows[..., None] >= 0, read.X[np.maximum(rows, 0)], np.nan), PREFIX)
    labels, classes, told = _labels(read, task)
    first = rows[:PREFIX] >= 0
    known: dict[str, Any] = {"task": CLASSES, "classes": classes} if classes else {"task": NUMBERS}
    choice = choose(X[:PREFIX][first], None if classes else labels[rows[:PREFIX][first]], seed=seed, **known)
    tables = {}
    for k, name in enumerate(names):
        mine = rows[:, k] >= 0
        tables[name] = _table(read, X[mine, k], labels[rows[mine, k]])
    notes = (*read.notes, *said, *told, *choice.why[0 if classes else 1 :])
    return OwnData(names, read.names, read.target, tables, _model(choice, notes, seed), notes)


def _deal(read: OpenTable, n_agents: int | None) -> tuple[tuple[str, ...], Array, tuple[str, ...]]:
    """The agents' names, and the rows (T, N) of each, -1 where it has no more."""
    if read.agents is None:
        n = max(1, min(_AGENTS, len(read.y) // PREFIX)) if n_agents is None else n_agents
        rows = in_turn(len(read.y), n).rows
        return agent_names(n), rows, (f"rows are dealt in turn to {n} agents",)
    found, owners, counts = np.unique(read.agents, return_inverse=True, return_counts=True)
    if n_agents not in (None, len(found)):
        raise ValueError(f"--agents {n_agents} contradicts --agent-column, which names {len(found)}.")
    rows = by_owner(owners, len(found)).rows
    return _names(found.tolist()), rows, (f"{len(found)} agents, with {min(counts)} to {max(counts)} rows",)


def _names(found: list[object]) -> tuple[str, ...]:
    """Names that can be part of an address, each once."""
    made: list[str] = []
    for one in found:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", str(one)).strip("-") or "agent"
        made.append(name if name not in made else f"{name}-{len(made) + 1}")
    return tuple(made)


def _labels(read: OpenTable, task: str) -> tuple[Array, tuple[str | int, ...], tuple[str, ...]]:
    """Labels as they stand in tables, and the classes that they name: two are written as -1 and +1, more by name."""
    if task != CLASSES:
        if read.y.dtype.kind != "f":
            raise ValueError(f"--task numbers needs a target of numbers, and {read.target!r} holds words.")
        return read.y, (), ()
    there = np.array([one is not None and one == one for one in read.y], dtype=bool)
    classes, index = np.unique(read.y[there], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{read.target!r} must hold two classes or more to be learned, and has {len(classes)}.")
    if len(classes) > 2:
        return read.y, _named(classes, read.target), ()
    signs = np.full(len(read.y), np.nan)
    signs[there] = 2.0 * index - 1.0
    return signs, (), (f"{read.target!r}: {classes[0]} is -1 and {classes[1]} is +1",)


def _named(classes: Array, target: str) -> tuple[str | int, ...]:
    """Classes as settings can name them: words, or whole numbers."""
    if classes.dtype.kind != "f":
        return tuple(str(one) for one in classes)
    if (classes != np.rint(classes)).any():
        raise ValueError(f"classes of a site are words or whole numbers, and {target!r} holds other numbers.")
    return tuple(int(one) for one in classes)


def _table(read: OpenTable, X: Array, labels: Array) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*read.names, read.target])
    for x, y in zip(X.tolist(), labels.tolist(), strict=True):
        label = "" if y is None or y != y else f"{y:.10g}" if isinstance(y, float) else str(y)
        writer.writerow([*(f"{value:.10g}" for value in x), label])
    return text.getvalue()


def _model(choice: Choice, notes: tuple[str, ...], seed: int) -> str:
    """Settings of what was chosen, with the reasons as remarks."""
    scaling = choice.features.scaling
    assert scaling is not None  # it is automatic
    said = "\n".join(
        textwrap.fill(printable(one), _WIDTH, initial_indent="# ", subsequent_indent="#   ") for one in notes
    )
    centre, scale = (", ".join(repr(value) for value in row.tolist()) for row in (scaling.centre, scaling.scale))
    learner = choice.learner
    guard = ""
    if isinstance(learner, Personal) and learner.deviations is not None:
        guard = (
            f"deviations = {learner.deviations:g}            # labels farther from what an agent has seen are clipped\n"
        )
    classes = ""
    if choice.labels.n_models > 1:
        names = json.dumps(choice.labels.classes, ensure_ascii=False)
        classes = f"classes = {names}   # what labels name; the learner has an output for each\n"
        assert isinstance(learner, WaveRLS)  # what has several outputs
        guard = f"first = {learner.first}                  # the round after which the first wave starts\n"
        guard += (
            "# Personal, the choice for numbers and two classes, has one output: agents have the shared model alone.\n"
        )
    return f"""\
# What was made of the data, and what was chosen:
{said}

[model]                    # a map for raw inputs, the same for all agents
kernel = "automatic"
n_inputs = {scaling.n_inputs}
n_frequencies = {choice.features.n_frequencies}
seed = {seed}
centre = [{centre}]
scale = [{scale}]
{classes}
[learner]
algorithm = "{written(type(learner))}"
{guard}"""
