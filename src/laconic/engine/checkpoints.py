"""States on disk, in as many files as there were processes; to be read by as many as there are then."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from laconic._files import written_whole
from laconic._npz import Archive
from laconic._validate import Array
from laconic.engine.rowwise import chosen, joined
from laconic.trace import State

_INDEX = "checkpoint.json"
_LEARNER, _CHANNEL = "learner.", "channel."


def prepare(folder: Path) -> None:
    """Make the folder, and see that it can be written to: before the run, and not hours later."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def save_part(folder: Path, part: int, agents: Array, state: State) -> None:
    """Write the rows of some agents; they count when ``seal`` has been called."""
    where = _folder(folder, state.round)
    where.mkdir(parents=True, exist_ok=True)
    arrays = {f"{_LEARNER}{name}": np.asarray(array) for name, array in state.learner.items()}
    arrays |= {f"{_CHANNEL}{name}": np.asarray(array) for name, array in state.channel.items()}
    with written_whole(where / f"{part}.npz") as file:
        np.savez(file, agents=agents, broadcast=np.asarray(state.broadcast), **arrays)  # type: ignore[arg-type]


def seal(folder: Path, round: int, n_parts: int, about: dict[str, Any]) -> None:
    """Once all parts of a round are written: let them be the checkpoint, and remove the one before."""
    try:
        before = read_index(folder)
    except ValueError:  # of an earlier run, which nobody goes on from
        before = None
    with written_whole(folder / _INDEX) as file:
        file.write(json.dumps({"round": round, "parts": n_parts, **about}).encode())
    if before is not None and before["round"] != round:
        shutil.rmtree(_folder(folder, before["round"]), ignore_errors=True)


def read_index(folder: Path) -> dict[str, Any] | None:
    """What was said when the last checkpoint was sealed; None if there is none."""
    try:
        found = json.loads((folder / _INDEX).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / _INDEX} is not readable: {error}.") from None
    least = {"round": 0, "parts": 1}
    if not isinstance(found, dict) or not all(
        type(found.get(name)) is int and found[name] >= n for name, n in least.items()
    ):
        raise ValueError(f"{folder / _INDEX} is not the index of a checkpoint.")
    return found


def check_origin(folder: Path, index: Mapping[str, Any], origin: Mapping[str, str]) -> None:
    """Refuse to go on from the checkpoint of another run: ``origin`` says, by name, what this one is made of."""
    before = index.get("origin", {})
    other = [name for name in origin if not isinstance(before, dict) or before.get(name) != origin[name]]
    if other:
        was = "was" if len(other) == 1 else "were"
        raise ValueError(
            f"{folder} holds the checkpoint of another run: its {' and '.join(other)} {was} not what is asked for now."
        )


def spare(folder: Path, n_rounds: int) -> None:
    """Refuse to begin anew where an unfinished run has left its checkpoint: the first new one would remove it."""
    try:
        before = read_index(folder)
    except ValueError:  # nobody can go on from that
        return
    if before is not None and before["round"] < n_rounds:
        raise ValueError(
            f"{folder} holds the checkpoint of a run that got as far as round {before['round']}: "
            "go on from it with --resume, or remove the folder to begin anew."
        )


def rows_in(folder: Path, index: dict[str, Any]) -> Callable[[Array], State]:
    """What gives the rows of some agents out of a checkpoint, whichever processes wrote them."""

    def rows(agents: Array) -> State:
        where, round = _folder(folder, index["round"]), index["round"]
        found = [_read(where / f"{part}.npz", round, agents) for part in range(index["parts"])]
        numbers = np.concatenate([numbers for numbers, _ in found])
        if not np.isin(agents, numbers).all():
            raise ValueError(f"{folder} holds the checkpoint of another run: some agents are not in it.")
        whole = joined([part for part in found if len(part[0])])
        return chosen(whole, np.searchsorted(np.sort(numbers), agents))

    return rows


def _read(path: Path, round: int, agents: Array) -> tuple[Array, State]:
    """Those of ``agents`` whose rows are in a file, and these."""
    try:
        with path.open("rb") as file, Archive(file) as archive:
            arrays = {name: archive.read(name) for name in archive.forms}
        numbers, broadcast = arrays.pop("agents"), arrays.pop("broadcast")
        if any(len(array) != len(numbers) for array in (broadcast, *arrays.values())):
            raise ValueError("it does not have a row for each agent")
    except Exception as error:
        raise ValueError(f"{path} is not a readable part of a checkpoint: {error}.") from None
    wanted = np.flatnonzero(np.isin(numbers, agents))
    learner = {name.removeprefix(_LEARNER): array for name, array in arrays.items() if name.startswith(_LEARNER)}
    channel = {name.removeprefix(_CHANNEL): array for name, array in arrays.items() if name.startswith(_CHANNEL)}
    return numbers[wanted], chosen(State(round, learner, broadcast, channel), wanted)


def _folder(folder: Path, round: int) -> Path:
    return folder / f"round-{round}"
