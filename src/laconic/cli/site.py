"""``laconic init``: a site's settings, with data for a first trial."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from laconic import _extras
from laconic._files import expanded
from laconic.cli.options import Commands, add_header, add_json, add_quiet, describe, has_header, one_of, whole
from laconic.cli.words import paragraph, plural
from laconic.defaults import TASKS

if TYPE_CHECKING:
    from laconic.deploy.operations.certificates import Outcome
    from laconic.deploy.settings.site import Site

_AGENTS = 5

_ABOUT_INIT = """
Write a commented site.toml, and data for a first trial: agents on this machine
that learn one function together. `laconic up` then starts them. With --data the
rows of a file of your own, dealt to agents; features and learner are chosen by
the first of them, and the reasons stand in the file."""
_EXAMPLES_INIT = """
examples:
  laconic init
  laconic init home --agents 8
  laconic init home --secure
  laconic init clinic --data patients.csv --target days --agent-column hospital"""


def add(commands: Commands) -> None:
    """Add the command ``init``."""
    parser = commands.add_parser(
        "init", help="write a site.toml to start from", **describe(_ABOUT_INIT, _EXAMPLES_INIT)
    )
    what = "file to write, or a folder for site.toml (default: site.toml)"
    parser.add_argument("path", nargs="?", default="site.toml", metavar="PATH", help=what)
    parser.add_argument("--agents", type=whole, metavar="N", help="number of agents (5)")
    parser.add_argument("--data", metavar="FILE", help="rows of your own: .csv, .parquet or .arff, as they are")
    parser.add_argument("--target", metavar="COL", help="of --data: the column to learn, by name or index (the last)")
    add_header(parser)
    parser.add_argument("--agent-column", metavar="COL", help="of --data: whom a row belongs to, an agent a value")
    parser.add_argument(
        "--task", type=one_of(*TASKS), metavar="WHAT", help="of --data: numbers or classes (as labels tell)"
    )
    parser.add_argument("--secure", action="store_true", help="with mutual TLS, and certificates for it")
    parser.add_argument("--force", action="store_true", help="overwrite settings and data that are there")
    add_json(parser, "tell what was written as JSON")
    add_quiet(parser)
    parser.set_defaults(command=init)


def init(arguments: argparse.Namespace) -> int:
    """Write the settings, the data, and, if asked for, the certificates."""
    from laconic.deploy.settings.site import Site

    file = expanded(arguments.path)
    if file.suffix != ".toml":
        file = file / "site.toml"
    text, tables, notes = _content(arguments, file.name)
    data = {file.parent / "data" / f"{name}.csv": rows for name, rows in tables.items()}
    there = [path for path in (file, *data) if path.exists()]
    if there and not arguments.force:
        raise ValueError(f"{there[0]} is there already: --force overwrites it, or choose another place.")
    site = Site.parse(text, file)
    if arguments.secure:
        _extras.need("cryptography", "a certificate")
    for path, content in {**data, file: text}.items():
        _write(path, content)
    if arguments.json:
        made = _certificates(site) if arguments.secure else ()
        files = [str(path) for path in (file, *data, *(outcome.path for outcome in made))]
        print(json.dumps({"site": str(file), "agents": site.names, "files": files, "notes": notes}))
        return 0
    for note in notes:
        print(paragraph(note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}."))
    print(paragraph(f"Wrote {file} and data for {plural(site.n_agents, 'agent')}: {', '.join(site.names)}."))
    if arguments.secure:
        from laconic.cli.certs import tell

        tell(site, _certificates(site))
    print(paragraph(f"`laconic up {file}` starts them, Ctrl-C stops them."))
    return 0


def _certificates(site: Site) -> tuple[Outcome, ...]:
    from laconic.deploy.operations.certificates import make_certificates

    return make_certificates(site)


def _content(arguments: argparse.Namespace, file: str) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The settings, a table for each agent, and what is to be said of them: of a first trial, or of one's own data."""
    from laconic.deploy.operations import starter

    if arguments.data is None:
        stray = next(
            (name for name in ("target", "header", "agent_column", "task") if getattr(arguments, name) is not None),
            None,
        )
        if stray is not None:
            raise ValueError(f"--{stray.replace('_', '-')} is for --data FILE, which is missing.")
        n_agents = _AGENTS if arguments.agents is None else arguments.agents
        return starter.settings(n_agents, file, arguments.secure), starter.samples(n_agents), ()
    from laconic.deploy.operations.own_data import from_file

    own = from_file(
        arguments.data,
        target=arguments.target,
        agent_column=arguments.agent_column,
        header=has_header(arguments),
        task=arguments.task,
        n_agents=arguments.agents,
    )
    text = starter.settings(
        len(own.names),
        file,
        arguments.secure,
        names=own.names,
        model=own.model,
        inputs=own.inputs,
        target=own.target,
    )
    return text, own.tables, own.notes


def _write(path: Path, content: str) -> None:
    from laconic._files import written_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(content.encode())
