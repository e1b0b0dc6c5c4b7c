"""``laconic run --choose``: what is chosen, what came of it, and what else could have been done."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic import data
from laconic._validate import Array
from laconic.cli.inputs import n_agents_of
from laconic.cli.networks import make_network
from laconic.cli.words import count, facts, note, note_of_compiling, number, paragraph, plural, table
from laconic.data.people import OpenTable, fill_running
from laconic.defaults import PREFIX, recognise
from laconic.defaults.labels import CLASSES, Labels
from laconic.defaults.untuned import Scores, Untuned, learn_untuned
from laconic.estimators.dealing import by_owner
from laconic.network import Network

_AGENTS = 5
_NAMES = {
    "mean": "the mean so far",
    "linear": "a linear model of all rows",
    "local": "agents alone",
    "central": "a centre that has all rows",
}


class Rounds(NamedTuple):
    """A table dealt to agents."""

    X: Array
    y: Array
    network: Network
    task: str
    notes: tuple[str, ...]


def run_untuned(arguments: argparse.Namespace, folder: Path | None) -> int:
    """Choose, learn, and print it all, in words or as JSON."""
    read = data.load_open(
        arguments.data,
        protocol=arguments.protocol,
        data_dir=arguments.data_dir,
        target=arguments.target,
        n_rows=arguments.rows,
        encode=arguments.encode != "off",
        agent_column=arguments.agent_column,
    )
    if arguments.missing is not None:
        read = _without_holes(read, arguments.missing)
    rounds = deal(arguments, read)
    with note_of_compiling():
        run = learn_untuned(
            rounds.X,
            rounds.y,
            rounds.network,
            task=rounds.task,
            budget=arguments.budget,
            n_frequencies=arguments.frequencies,
            seed=arguments.seed,
        )
        found = numbers(read, run)
    name = Path(str(arguments.data)).name
    found = {"data": {"name": name, "rows": len(read.y), "inputs": list(read.names), "target": read.target}, **found}
    if arguments.json:
        print(json.dumps(found))
    else:
        print(_screen(name, read, rounds, run, found))
    if folder is not None:
        run.traces[0].save(folder / "trace.npz")
        (folder / "run.json").write_text(json.dumps(found, indent=2) + "\n")
        note(f"written to {folder}: trace.npz, run.json.")
    return 0


def _without_holes(read: OpenTable, missing: str) -> OpenTable:
    good = np.isfinite(read.X).all(axis=1)
    if good.all():
        return read
    if missing == "refuse":
        bad = plural(int((~good).sum()), "row")
        raise ValueError(f"{bad} with missing inputs: leave out --missing, or add --missing drop.")
    owners = None if read.agents is None else read.agents[good]
    return read._replace(X=read.X[good], y=read.y[good], agents=owners)


def deal(arguments: argparse.Namespace, read: OpenTable) -> Rounds:
    """Rows to agents: as a column says, or as ``--partition`` does; labels as they are, inputs without holes."""
    task, said = _task(arguments.task, read)
    index = np.arange(len(read.y))
    if read.agents is not None:
        names, owners = np.unique(read.agents, return_inverse=True)
        if arguments.agents not in (None, len(names)):
            raise ValueError(f"--agents {arguments.agents} contradicts --agent-column, which names {len(names)}.")
        rows = by_owner(owners, len(names)).rows
        n_agents = len(names)
        said = (*said, f"{plural(n_agents, 'agent')} ({', '.join(map(str, names[:6]))}{', ...' * (n_agents > 6)})")
    else:
        n_agents = n_agents_of(arguments, min(_AGENTS, len(index)))
        key = read.y
        if key.dtype.kind != "f":
            key = np.unique(key.astype(str), return_inverse=True)[1].astype(np.float64)
        stamped = np.column_stack([np.nan_to_num(read.X), index])
        # The rows' own numbers travel as one more input; where an agent has no row left, the label is missing.
        X, y = data.partition(stamped, np.nan_to_num(key), n_agents, arguments.partition, arguments.seed)
        rows = np.where(np.isnan(y), -1, X[..., -1]).astype(int)
    taken = np.maximum(rows, 0)
    X = fill_running(read.X[taken], PREFIX)
    y = read.y[taken].copy()
    y[rows < 0] = np.nan if y.dtype.kind == "f" else None
    network = make_network(arguments.network, n_agents, arguments.seed)
    return Rounds(X, y, network, task, (*read.notes, *said))


def _task(given: str | None, read: OpenTable) -> tuple[str, tuple[str, ...]]:
    """What labels are, and a word on it where it was not plain."""
    if given is not None:
        if given != CLASSES and read.y.dtype.kind != "f":
            raise ValueError(f"--task numbers needs a target of numbers, and {read.target!r} holds words.")
        return given, ()
    task = recognise(read.y)
    if task == CLASSES:
        found = Labels.measure(read.y, CLASSES).classes
        if read.y.dtype.kind == "f":
            return task, (f"{read.target!r} takes {len(found)} whole values and is taken for classes (--task numbers)",)
    elif len(np.unique(read.y[np.isfinite(read.y)])) < 2:
        raise ValueError(f"the target {read.target!r} is the same in every row: there is nothing to learn.")
    return task, ()


def numbers(read: OpenTable, run: Untuned) -> dict[str, Any]:
    """The result as plain numbers."""
    return {
        "chosen": list(run.choice.why),
        **run.scores.summary(),
        "global_mse": run.global_mse,
        "bits": run.bits,
        "messages": run.messages,
        "seconds": run.seconds,
        "baselines": {name: scores.summary() for name, scores in run.baselines.items()},
    }


def _screen(name: str, read: OpenTable, rounds: Rounds, run: Untuned, found: dict[str, Any]) -> str:
    network = rounds.network
    who = f"{plural(network.n_agents, 'agent')}, {plural(len(network.edges), 'link')}; {plural(len(rounds.y), 'round')}"
    about = [
        ("data", f"{name}: {plural(len(read.y), 'row')}, {plural(len(read.names), 'input')}, target {read.target}"),
        ("agents", who),
        *((("made of it", "; ".join(rounds.notes) + "."),) if rounds.notes else ()),
        *(("chosen" if not k else "", line) for k, line in enumerate(run.choice.why)),
    ]
    classes = run.scores.classes
    head = ["", "accuracy", "last tenth"] if classes else ["", "R2", "last tenth", "mse"]
    lines = [head, _line("each agent's own predictions", run.scores, classes)]
    lines += [_line(_NAMES[key], scores, classes) for key, scores in run.baselines.items()]
    ending = [
        f"Every model on everybody's rows: mse {number(found['global_mse'])}.",
        f"{plural(found['messages'], 'message')}, {count(found['bits'])} bits in all, "
        f"{count(found['bits'] / network.n_agents)} an agent. It took {found['seconds']:.3g} seconds.",
        "Every prediction was made before its label was seen; the first round, in which nobody knows anything, is not "
        "scored.",
    ]
    parts = facts(about), table(lines, "<" + ">" * (len(head) - 1)), "\n".join(paragraph(line) for line in ending)
    return "\n\n".join(parts)


def _line(name: str, scores: Scores, classes: bool) -> list[str]:
    if classes:
        return [name, f"{scores.accuracy():.3f}", f"{scores.accuracy(True):.3f}"]
    return [name, f"{scores.r2():.3f}", f"{scores.r2(True):.3f}", number(scores.mse())]
