"""``laconic run big.toml``: a run that is described in a file, by one process or, with ``--engine mpi``, by several."""

from __future__ import annotations

import argparse
import csv
import io
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

from laconic._files import written_whole
from laconic.cli.runfile import RunFile, read_run
from laconic.cli.words import count, facts, number, plural
from laconic.engine.crew import Crew, Summary
from laconic.engine.exchange import agreed, world
from laconic.engine.run import progress_bar
from laconic.network import Network

_COLUMNS = ("round", "mse", "messages", "bits", "consensus_error")
_SHARE = 20  # first and last errors are means over a twentieth of the rounds


def run_file(path: Path, arguments: argparse.Namespace, out: Path | None) -> int:
    """Run it, and tell what that brought; of several processes the first tells."""
    comm, made = world() if arguments.engine == "mpi" else None, time.perf_counter()
    run, network = agreed(comm, lambda: _read(path, arguments.resume))
    crew = Crew(
        run.learner,
        run.features(),
        network,
        run.stream,
        engine=arguments.engine or "auto",
        dtype=run.model.dtype,
        folder=run.checkpoint,
        resume=arguments.resume,
        about={"stream": run.about},
    )
    began = time.perf_counter()
    kept = agreed(comm, lambda: _rounds_before(run, crew))
    with progress_bar(arguments.progress and crew.first, run.stream.n_rounds, path.name) as bar:
        bar(len(kept))
        for summary in crew.rounds(run.checkpoint_every if run.checkpoint else None):
            kept.append(summary)
            bar(1)
            # Before the checkpoint, so that whoever goes on from that finds all rounds.
            if run.checkpoint and (summary.round % run.checkpoint_every == 0 or summary.round == run.stream.n_rounds):
                crew.together(partial(_write_rounds, run.checkpoint, kept) if crew.first else None)
    ended = time.perf_counter()
    sent = crew.sent_bytes
    crew.together(partial(_write_rounds, out, kept) if out and crew.first else None)
    if not crew.first:
        return 0
    folders = [folder for folder in (run.checkpoint, out) if folder]
    share = max(1, len(kept) // _SHARE)
    first, last = (sum(summary.mse for summary in part) / len(part) for part in (kept[:share], kept[-share:]))
    told = {
        "agents": network.n_agents,
        "edges": len(network.edges),
        "processes": crew.n_processes,
        "rounds": len(kept),
        "first_mse": first,
        "last_mse": last,
        "messages": sum(summary.messages for summary in kept),
        "bits": sum(summary.bits for summary in kept),
        "bytes_between_processes": sent,
        "start_seconds": began - made,
        "seconds": ended - began,
    }
    print(json.dumps(told) if arguments.json else _worded(run, told, folders))
    return 0


def _read(path: Path, resume: bool) -> tuple[RunFile, Network]:
    """What the file asks for."""
    run = read_run(path)
    if resume and run.checkpoint is None:
        raise ValueError(f'--resume needs a checkpoint, and {path} names none: [run] checkpoint = "FOLDER".')
    return run, run.network()


def _worded(run: RunFile, told: dict[str, Any], folders: list[Path]) -> str:
    rounds = max(1, told["rounds"])
    speakers = told["messages"] / rounds / told["agents"]
    several = told["processes"] > 1
    between = f"{count(told['bytes_between_processes'] / rounds)} bytes a round between processes"
    who = f"{plural(told['agents'], 'agent')}, {plural(told['edges'], 'edge')}, {count(told['processes'])} process"
    return facts(
        [
            ("run", f"{run.file}: {run.learner.name}, {count(told['rounds'])} rounds, {run.model.dtype}"),
            ("network", f"{who}{'es' * several}"),
            ("error", f"{number(told['first_mse'])} at first, {number(told['last_mse'])} at last (mean squared)"),
            ("messages", f"{speakers:.1%} speak in a round; {count(told['bits'] / told['agents'])} bits an agent"),
            *([("between", between)] if several else []),
            ("time", f"{told['seconds']:.1f} s, and {told['start_seconds']:.1f} s to begin"),
            *(("written", f"every round, to {folder / 'rounds.csv'}") for folder in folders),
        ]
    )


def _write_rounds(folder: Path, kept: list[Summary]) -> None:
    """``rounds.csv``, a line a round."""
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([(s.round, repr(s.mse), s.messages, s.bits, repr(s.consensus_error)) for s in kept])
    with written_whole(folder / "rounds.csv") as file:
        file.write(text.getvalue().encode())


def _rounds_before(run: RunFile, crew: Crew) -> list[Summary]:
    """What ``rounds.csv`` tells of the rounds before the checkpoint that is gone on from."""
    if crew.index is None or run.checkpoint is None:
        return []
    path, n_rounds = run.checkpoint / "rounds.csv", crew.index["round"]
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))[:n_rounds]
        kept = [
            Summary(int(r["round"]), float(r["mse"]), int(r["messages"]), int(r["bits"]), float(r["consensus_error"]))
            for r in rows
        ]
    except (KeyError, ValueError, TypeError, csv.Error):
        raise ValueError(f"{path} is not what a run leaves.") from None
    if [summary.round for summary in kept] != list(range(1, n_rounds + 1)):
        raise ValueError(f"{path} does not tell of each of the {n_rounds} rounds before the checkpoint.")
    return kept
