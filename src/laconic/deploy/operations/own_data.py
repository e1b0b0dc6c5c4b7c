"""A site from a person's own file: rows dealt to agents, inputs as numbers, and what is chosen by the first of them."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.data import load_open
from laconic.data.people import OpenTable, fill_running
from laconic.defaults import PREFIX, Choice, choose, recognise
from laconic.defaults.labels import CLASSES
from laconic.deploy.operations.starter import agent_names
from laconic.estimators.dealing import by_owner, in_turn
from laconic.learners import Personal, written

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
    task: str | None = None,
    n_agents: int | None = None,
    seed: int = 1,
) -> OwnData:
    """Read a file as it is, deal its rows to agents in their order, and let ``defaults.choose`` choose."""
    read = load_open(path, target=target, agent_column=agent_column)
    task = task or recognise(read.y)
    names, rows, said = _deal(read, n_agents)
    X = fill_running(np.where(rows[..., None] >= 0, read.X[np.maximum(rows, 0)], np.nan), PREFIX)
    labels, told = _labels(read, task)
    first = rows[:PREFIX] >= 0
    choice = choose(X[:PREFIX][first], labels[rows[:PREFIX][first]], task="numbers", seed=seed)
    tables = {}
    for k, name in enumerate(names):
        mine = rows[:, k] >= 0
        tables[name] = _table(read, X[mine, k], labels[rows[mine, k]])
    notes = (*read.notes, *said, *told, *choice.why[1:])
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


def _labels(read: OpenTable, task: str) -> tuple[Array, tuple[str, ...]]:
    """Labels as numbers: two classes are -1 and +1."""
    if task != CLASSES:
        if read.y.dtype.kind != "f":
            raise ValueError(f"--task numbers needs a target of numbers, and {read.target!r} holds words.")
        return read.y, ()
    there = np.array([one is not None and one == one for one in read.y], dtype=bool)
    classes, index = np.unique(read.y[there], return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"a site learns numbers or two classes, and {read.target!r} has {len(classes)} classes.")
    signs = np.full(len(read.y), np.nan)
    signs[there] = 2.0 * index - 1.0
    return signs, (f"{read.target!r}: {classes[0]} is -1 and {classes[1]} is +1",)


def _table(read: OpenTable, X: Array, labels: Array) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*read.names, read.target])
    for x, y in zip(X.tolist(), labels.tolist(), strict=True):
        writer.writerow([*(f"{value:.10g}" for value in x), "" if np.isnan(y) else f"{y:.10g}"])
    return text.getvalue()


def _model(choice: Choice, notes: tuple[str, ...], seed: int) -> str:
    """Settings of what was chosen, with the reasons as remarks."""
    scaling = choice.features.scaling
    assert scaling is not None  # it is automatic
    said = "\n".join(textwrap.fill(one, _WIDTH, initial_indent="# ", subsequent_indent="#   ") for one in notes)
    centre, scale = (", ".join(repr(value) for value in row.tolist()) for row in (scaling.centre, scaling.scale))
    learner = choice.learner
    guard = ""
    if isinstance(learner, Personal) and learner.deviations is not None:
        guard = (
            f"deviations = {learner.deviations:g}            # labels farther from what an agent has seen are clipped\n"
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

[learner]
algorithm = "{written(type(learner))}"
{guard}"""
