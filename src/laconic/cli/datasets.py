"""``laconic data``: which sets there are, what is in them, and where their files lie."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.cli.options import (
    Commands,
    add_data_dir,
    add_file_options,
    add_json,
    add_protocol,
    add_quiet,
    describe,
    has_header,
)
from laconic.cli.screens import print_table
from laconic.cli.words import count, facts, number, paragraph

if TYPE_CHECKING:
    from laconic.data import Dataset, Entry

_ABOUT = "\nThe data sets that laconic knows, and their files."
_EXAMPLES = """
examples:
  laconic data list
  laconic data info energy
  laconic data info my.csv --target price
  laconic data fetch air-quality"""

_ABSENT = "not at hand"


def add(commands: Commands) -> None:
    """Add the command and its three parts."""
    parser = commands.add_parser("data", help="list, describe and fetch data sets", **describe(_ABOUT, _EXAMPLES))
    parser.set_defaults(command=parser.help)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND")
    what = "Every known set: its size, its target, and whether its file is at hand."
    part = parts.add_parser("list", help="all known sets", **describe(what, "example:\n  laconic data list"))
    add_data_dir(part)
    add_json(part)
    add_quiet(part)
    part.set_defaults(command=show_list)
    what = "What a set or a file of your own holds: rows, inputs, target, source."
    example = "examples:\n  laconic data info energy\n  laconic data info my.csv --target price"
    part = parts.add_parser("info", help="one set, or a file of your own", **describe(what, example))
    part.add_argument("name", metavar="NAME", help="a name from `laconic data list`, or a file")
    add_file_options(part)
    add_protocol(part)
    add_data_dir(part)
    add_json(part)
    add_quiet(part)
    part.set_defaults(command=show_info)
    what = "Download the raw file of a set, unless it is at hand."
    example = "example:\n  laconic data fetch air-quality --data-dir raw"
    part = parts.add_parser("fetch", help="download the file of a set", **describe(what, example))
    part.add_argument("name", metavar="NAME", help="a name from `laconic data list`")
    add_data_dir(part)
    add_json(part, "tell where the file is as JSON")
    add_quiet(part)
    part.set_defaults(command=fetch)


def show_list(arguments: argparse.Namespace) -> int:
    """List the data sets, a line each."""
    from laconic import data
    from laconic.data import files

    folder = files.folder(arguments.data_dir)
    if arguments.json:
        print(json.dumps([_told(data.info(name), arguments.data_dir) for name in data.names()]))
        return 0
    rows = [["NAME", "ROWS", "INPUTS", "TARGET", "FILE"]]
    for name in data.names():
        entry = data.info(name)
        size = count(entry.paper_rows) if entry.paper_rows else "?" if entry.files else "any"
        rows.append([name, size, str(entry.n_inputs), entry.target, _where(entry, folder, arguments.data_dir)])
    at_hand = sum(not row[-1].startswith(_ABSENT) for row in rows[1:])
    room = shutil.get_terminal_size().columns - sum(max(len(row[k]) for row in rows) + 2 for k in range(4))
    print_table(rows[0], [[*row[:-1], _clipped(row[-1], room)] for row in rows[1:]], "<>><<")
    print(f"\n{at_hand} of {len(rows) - 1} at hand in {_short(folder)}. ROWS are as many as the paper takes.")
    print("`laconic data info NAME` says more, `laconic data fetch NAME` downloads.")
    return 0


def show_info(arguments: argparse.Namespace) -> int:
    """All that is known of a set; of a file of one's own, what is in it."""
    from laconic import data
    from laconic.data import files

    if arguments.name not in data.names():
        dataset = data.load(
            arguments.name,
            data_dir=arguments.data_dir,
            target=arguments.target,
            missing=arguments.missing or "refuse",
            header=has_header(arguments),
        )
        print(json.dumps(dict(_contents(dataset))) if arguments.json else facts(_contents(dataset)))
        return 0
    entry = data.info(arguments.name)
    if arguments.json:
        print(json.dumps(_told(entry, arguments.data_dir)))
        return 0
    path = files.find(entry.files, arguments.data_dir, prefer=entry.name) if entry.files else None
    print(f"{entry.title} ({entry.name})\n\n{paragraph(entry.description)}\n")
    if path is None and entry.files:
        known = [("target", entry.target)]
    else:
        known = _contents(
            data.load(
                entry.name,
                protocol=arguments.protocol,
                data_dir=arguments.data_dir,
                target=arguments.target,
                header=has_header(arguments),
            )
        )
    if entry.files:
        place = _short(path) if path else f"not at hand: {' or '.join(entry.files)}, {entry.size} to fetch"
        known += [("file", place), ("source", entry.url)]
    print(facts([*known, ("cite", entry.citation)]))
    return 0


def fetch(arguments: argparse.Namespace) -> int:
    """Download, unless it is there."""
    from laconic import data

    path = data.fetch(arguments.name, data_dir=arguments.data_dir, progress=not arguments.hush)
    if arguments.json:
        print(json.dumps({"name": arguments.name, "file": None if path is None else str(path)}))
    elif path is None:
        print(f"{arguments.name} is drawn when it is asked for; there is nothing to fetch.")
    else:
        print(path)
    return 0


def _contents(dataset: Dataset) -> list[tuple[str, str]]:
    """Describe a data set that was loaded."""
    y = dataset.y
    if dataset.classes:
        share = float((y > 0).mean())
        target = (
            f"{dataset.target}: {dataset.classes[0]} (-1, {1 - share:.0%}) or {dataset.classes[1]} (+1, {share:.0%})"
        )
    else:
        target = f"{dataset.target}, from {number(y.min())} to {number(y.max())}, mean {number(y.mean())}"
    names = ", ".join(dataset.names if len(dataset.names) <= 30 else (*dataset.names[:12], "...", dataset.names[-1]))
    rows = count(len(dataset)) + (f" (protocol {dataset.protocol!r})" if dataset.protocol else "")
    return [("rows", rows), ("inputs", f"{dataset.n_inputs}: {names}"), ("target", target)]


def _told(entry: Entry, data_dir: str | None) -> dict[str, Any]:
    """A set for programs; ``file`` is null where it is not at hand."""
    from laconic.data import files

    path = files.find(entry.files, data_dir, prefer=entry.name) if entry.files else None
    names = ("name", "title", "description", "target", "n_inputs", "paper_rows", "url", "citation")
    about = {name: getattr(entry, name) for name in names}
    return {**about, "drawn": not entry.files, "file": None if path is None else str(path)}


def _where(entry: Entry, folder: Path, data_dir: str | None) -> str:
    """The file of a set, as seen from the folder meant."""
    from laconic.data import files

    if not entry.files:
        return "drawn when asked for"
    path = files.find(entry.files, data_dir, prefer=entry.name)
    if path is None:
        return f"{_ABSENT} ({entry.size})"
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else _short(path)


def _clipped(text: str, room: int) -> str:
    """A path, or only the name of the file if there is no room for all of it, or only the ends of that."""
    room = max(room, 16)
    text = text if len(text) <= room else Path(text).name
    return text if len(text) <= room else f"{text[: room // 2 - 2]}...{text[-(room - room // 2 - 1) :]}"


def _short(path: Path) -> str:
    """A path as one would write it."""
    for start, sign in ((Path.cwd(), "."), (Path.home(), "~")):
        if path.is_absolute() and path.is_relative_to(start):
            return str(Path(sign) / path.relative_to(start))
    return str(path)
