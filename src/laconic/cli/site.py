"""``laconic init``: a site's settings, with data for a first trial."""

from __future__ import annotations

import argparse
from pathlib import Path

from laconic.cli.options import Commands, describe, whole
from laconic.cli.words import paragraph, plural

_ABOUT_INIT = """
Write a commented site.toml, and data for a first trial: agents on this machine
that learn one function together. `laconic up` then starts them."""
_EXAMPLES_INIT = """
examples:
  laconic init
  laconic init home --agents 8
  laconic init home --secure"""


def add(commands: Commands) -> None:
    """Add the command ``init``."""
    parser = commands.add_parser(
        "init", help="write a site.toml to start from", **describe(_ABOUT_INIT, _EXAMPLES_INIT)
    )
    what = "file to write, or a folder for site.toml (default: site.toml)"
    parser.add_argument("path", nargs="?", default="site.toml", metavar="PATH", help=what)
    parser.add_argument("--agents", type=whole, default=5, metavar="N", help="number of agents (5)")
    parser.add_argument("--secure", action="store_true", help="with mutual TLS, and certificates for it")
    parser.add_argument("--force", action="store_true", help="overwrite settings and data that are there")
    parser.set_defaults(command=init)


def init(arguments: argparse.Namespace) -> int:
    """Write the settings, the data, and, if asked for, the certificates."""
    from laconic.deploy.operations import starter
    from laconic.deploy.settings.site import Site

    file = Path(arguments.path).expanduser()
    if file.suffix != ".toml":
        file = file / "site.toml"
    text = starter.settings(arguments.agents, file.name, arguments.secure)
    data = {file.parent / "data" / f"{name}.csv": rows for name, rows in starter.samples(arguments.agents).items()}
    there = [path for path in (file, *data) if path.exists()]
    if there and not arguments.force:
        raise ValueError(f"{there[0]} is there already: --force overwrites it, or choose another place.")
    site = Site.parse(text, file)
    if arguments.secure:
        _need_cryptography()
    for path, content in {**data, file: text}.items():
        _write(path, content)
    print(paragraph(f"Wrote {file} and data for {plural(site.n_agents, 'agent')}: {', '.join(site.names)}."))
    if arguments.secure:
        from laconic.cli.certs import tell
        from laconic.deploy.operations.certificates import make_certificates

        tell(site, make_certificates(site))
    print(paragraph(f"`laconic up {file}` starts them, Ctrl-C stops them."))
    return 0


def _need_cryptography() -> None:
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        raise ValueError("certificates need the package cryptography: install laconic[agents].")


def _write(path: Path, content: str) -> None:
    from laconic._files import written_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(content.encode())
