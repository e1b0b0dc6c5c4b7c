"""``laconic run`` where no learner is named: what is chosen, what came of it, and what else could have been done."""

from __future__ import annotations

import argparse
import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic import data
from laconic._validate import Array
from laconic._version import __version__
from laconic.cli.inputs import ALPHA, BETA, n_agents_of, partition_of
from laconic.cli.learners import usual_learner
from laconic.cli.live import played
from laconic.cli.networks import make_network
from laconic.cli.options import has_header
from laconic.cli.words import (
    count,
    dealt,
    facts,
    keeps_order,
    note,
    number,
    paragraph,
    plural,
    table,
)
from laconic.data.partitions import rows_of
from laconic.data.people import OpenTable, fill_running
from laconic.defaults import PREFIX, recognise
from laconic.defaults.labels import CLASSES
from laconic.defaults.untuned import Scores, Untuned, learn_untuned
from laconic.estimators.dealing import by_owner
from laconic.experiments.settings import SETTINGS, Setting
from laconic.experiments.streams import Stream
from laconic.network import Network

_AGENTS = 5
_LOST = 99  # an R2 below minus that is not worth its digits
_NAMES = {
    "mean": "the mean so far",
    "linear": "a linear model of all rows",
    "local": "agents alone",
    "central": "a centre that has all rows",
}


class Rounds(NamedTuple):
    """A table dealt to agents: ``rows`` (T, N) says which row each learns in each round, -1 where it has none."""

    rows: Array
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
        header=has_header(arguments),
    )
    if arguments.missing is not None:
        read = _without_holes(read, arguments.missing)
    rounds = deal(arguments, read)
    run = learn_untuned(
        rounds.X,
        rounds.y,
        rounds.network,
        task=rounds.task,
        budget=arguments.budget or "usual",
        n_frequencies=arguments.frequencies,
        seed=arguments.seed,
        present=rounds.rows >= 0,
        progress=arguments.progress,
    )
    found = numbers(arguments, read, rounds, run)
    with _live(arguments, found, run):
        print(json.dumps(found) if arguments.json else _screen(read, rounds, run, found))
        if folder is not None:
            from laconic.cli.untuned_files import write

            written = f"written to {folder}: {', '.join(write(folder, read, rounds.rows, run, found))}"
            if arguments.json:
                note(f"{written}.")
            else:
                print(f"\n{written}")
        return 0


def _live(arguments: argparse.Namespace, found: dict[str, Any], run: Untuned) -> AbstractContextManager[None]:
    """With ``--live`` the same run on a page, beside agents that never speak, or whom ``--beside`` names."""
    if not arguments.live:
        return nullcontext()
    learner, truth = run.choice.learner, run.scores.truth
    stream = Stream(run.X, truth if learner.outputs > 1 else truth[..., 0], run.choice.features, run.network)
    beside = learner.alone(len(truth))
    if arguments.beside is not None:
        usual = Setting("", "", run.network.n_agents, 1.0, ALPHA, BETA)
        beside = usual_learner(arguments.beside, arguments, usual, learner.loss.name)
    return played(arguments, found["data"]["name"], learner, beside, stream)


def _without_holes(read: OpenTable, missing: str) -> OpenTable:
    good = np.isfinite(read.X).all(axis=1)
    if good.all():
        return read
    if missing == "refuse":
        bad = plural(int((~good).sum()), "row")
        raise ValueError(f"{bad} with missing inputs: leave out --missing, or add --missing drop.")
    if not good.any():
        raise ValueError("every row has a missing input: leave out --missing drop, and they are filled.")
    owners = None if read.agents is None else read.agents[good]
    notes = tuple(said for said in read.notes if "missing input" not in said)
    notes = (*notes, f"{plural(int((~good).sum()), 'row')} with missing inputs left out")
    return read._replace(X=read.X[good], y=read.y[good], agents=owners, notes=notes)


def deal(arguments: argparse.Namespace, read: OpenTable) -> Rounds:
    """Rows to agents: as a column says, or as ``--partition`` does; labels as they are, inputs without holes."""
    task, y, said = _labels(arguments.task, read)
    how = partition_of(arguments)
    if keeps_order(how) and _in_blocks(y):
        said = (*said, f"rows are sorted by {read.target!r}: add --shuffle, unless they came in this order")
    if read.agents is not None:
        names, owners = np.unique(read.agents, return_inverse=True)
        n_agents = len(names)
        if arguments.agents not in (None, n_agents):
            raise ValueError(f"--agents {arguments.agents} contradicts --agent-column, which names {n_agents}.")
        network = make_network(arguments.network, n_agents, arguments.seed)
        if set(network.names) == set(names):  # a graph whose agents have these very names
            owners = np.array([network.names.index(name) for name in names])[owners]
        else:
            network = Network(n_agents, network.edges, names.tolist())
        if how not in ("time", "shuffled"):
            raise ValueError(f"--partition {how} contradicts --agent-column, by which rows are dealt.")
        order = np.arange(len(owners))
        if how == "shuffled":
            order = np.random.default_rng(arguments.seed).permutation(order)
        turns = by_owner(owners[order], n_agents).rows
        rows = np.where(turns >= 0, order[turns], -1)
        said = (*said, f"{plural(n_agents, 'agent')} ({', '.join(map(str, names[:6]))}{', ...' * (n_agents > 6)})")
    else:
        usual = SETTINGS[arguments.data].n_agents if arguments.data in SETTINGS else _AGENTS
        # Each is to have rows enough to choose by.
        n_agents = n_agents_of(arguments, max(1, min(usual, len(y) // PREFIX)))
        network = make_network(arguments.network, n_agents, arguments.seed)
        key = y if y.dtype.kind == "f" else np.unique([str(one) for one in y], return_inverse=True)[1].astype(float)
        rows = rows_of(np.nan_to_num(read.X), np.nan_to_num(key), n_agents, how, arguments.seed)
    taken = np.maximum(rows, 0)
    X, y = read.X[taken], y[taken].copy()
    X[rows < 0] = np.nan
    y[rows < 0] = np.nan if y.dtype.kind == "f" else None
    if not _labelled(y)[1:].any():
        raise ValueError(
            f"there are too few rows: {plural(n_agents, 'agent')} with one row each, or no label but in the first, "
            "leave nothing to predict."
        )
    return Rounds(rows, fill_running(X, PREFIX), y, network, task, (*read.notes, *said))


def _labels(given: str | None, read: OpenTable) -> tuple[str, Array, tuple[str, ...]]:
    """What labels are, the labels, and a word on them where it was not plain."""
    y, target = read.y, read.target
    words = y.dtype.kind != "f"
    if given not in (None, CLASSES) and words:
        raise ValueError(f"--task numbers needs a target of numbers, and {target!r} holds words.")
    known = y[_labelled(y)]
    found = len(np.unique(known))
    if found < 2:
        same = known[0] if words else f"{known[0]:g}"
        raise ValueError(f"the target {target!r} is {same} in every row: there is nothing to learn.")
    task = given or recognise(y)
    if task != CLASSES:
        return task, y, ()
    if found > max(2, len(known) // 2):
        raise ValueError(f"the target {target!r} takes {found} values in {plural(len(known), 'row')}: no classes.")
    if words:
        return task, y, ()
    whole = [None if np.isnan(one) else int(one) if one.is_integer() else one for one in y.tolist()]
    said = () if given else (f"{target!r} takes {found} whole values and is taken for classes (else --task numbers)",)
    return task, np.array(whole, dtype=object), said


def _in_blocks(y: Array) -> bool:
    """Whether labels never fall or never rise, or classes come one after the other: such rows are sorted by them."""
    known = y[_labelled(y)]
    if known.dtype.kind == "f":
        steps = np.diff(known)
        return bool((steps >= 0).all() or (steps <= 0).all())
    return int((known[1:] != known[:-1]).sum()) + 1 == len(np.unique(known)) < len(known) / 2


def _labelled(y: Array) -> Array:
    if y.dtype.kind == "f":
        return np.asarray(~np.isnan(y))
    return np.array([one is not None for one in y.ravel()], dtype=bool).reshape(y.shape)


def numbers(arguments: argparse.Namespace, read: OpenTable, rounds: Rounds, run: Untuned) -> dict[str, Any]:
    """The result as plain numbers: what ``--json`` prints."""
    choice, network = run.choice, rounds.network
    return {
        "laconic": __version__,
        "data": {
            "name": Path(str(arguments.data)).name,
            "rows": len(read.y),
            "inputs": list(read.names),
            "target": read.target,
            "made_of_it": list(rounds.notes),
        },
        "agents": network.n_agents,
        "rounds": len(rounds.rows),
        "network": Path(arguments.network).name,
        "edges": network.edges.tolist(),
        "partition": "agent-column" if read.agents is not None else partition_of(arguments),
        "order_kept": keeps_order(partition_of(arguments)),
        "seed": arguments.seed,
        "chosen": {
            "task": choice.task,
            "learner": choice.learner.name,
            "features": choice.features.n_features,
            "why": list(choice.why),
        },
        **run.scores.summary(),
        "global_mse": run.global_mse,
        "labels_clipped": run.held[0],
        "labels_left_out": run.held[1],
        "bits": run.bits,
        "messages": run.messages,
        "seconds": run.seconds,
        "baselines": {name: scores.summary() for name, scores in run.baselines.items()},
    }


def _screen(read: OpenTable, rounds: Rounds, run: Untuned, found: dict[str, Any]) -> str:
    network, name = rounds.network, found["data"]["name"]
    who = f"{plural(network.n_agents, 'agent')}, {plural(len(network.edges), 'link')} ({found['network']})"
    about = [
        ("data", f"{name}: {plural(len(read.y), 'row')}, {plural(len(read.names), 'input')}, target {read.target}"),
        ("agents", f"{who}; {plural(len(rounds.y), 'round')}"),
        ("rows", _rows_in_words(found)),
        *(("made of it" if not k else "", f"{said}.") for k, said in enumerate(rounds.notes)),
        *(("chosen" if not k else "", line) for k, line in enumerate(run.choice.why)),
    ]
    classes = run.scores.classes
    head = ["", "accuracy", "last tenth"] if classes else ["", "R2", "last tenth", "mse"]
    lines = [head, _line("each agent's own predictions", run.scores, classes)]
    lines += [_line(_NAMES[key], scores, classes) for key, scores in run.baselines.items()]
    scored = "mse of scores that are to be 1 for a row's class and -1 for others," if classes else "mse"
    ending = [
        *_held(*run.held),
        f"Every agent's model on everybody's rows: {scored} {number(found['global_mse'])}.",
        f"{plural(found['messages'], 'message')}, {count(found['bits'])} bits in all, "
        f"{count(found['bits'] / network.n_agents)} an agent. It took {found['seconds']:.3g} seconds.",
        "Every prediction was made before its label was seen; the first round, in which nobody knows anything, is not "
        "scored.",
        *([] if found["order_kept"] else ["Rows that come later in the data were learned before earlier ones."]),
    ]
    parts = (
        facts(about),
        table(lines, "<" + ">" * (len(head) - 1), best=1),
        "\n".join(paragraph(line) for line in ending),
    )
    return "\n\n".join(parts)


def _rows_in_words(found: dict[str, Any]) -> str:
    partition, kept = found["partition"], found["order_kept"]
    if partition == "agent-column":
        return "each agent's own, in their order" if kept else "each agent's own, shuffled"
    return dealt(partition)


def _held(n_clipped: int, n_left: int) -> list[str]:
    """A sentence on labels that were not learned as they are."""
    said = [f"{plural(n_clipped, 'label')} far beyond all before clipped"] if n_clipped else []
    said += [f"{plural(n_left, 'label')} that cannot be true left out"] if n_left else []
    return [f"Of what was learned: {', '.join(said)}."] if said else []


def _line(name: str, scores: Scores, classes: bool) -> list[str]:
    if classes:
        return [name, f"{scores.accuracy():.3f}", f"{scores.accuracy(True):.3f}"]
    shown = (f"{r2:.3f}" if r2 > -_LOST else f"below -{_LOST}" for r2 in (scores.r2(), scores.r2(True)))
    return [name, *shown, number(scores.mse())]
