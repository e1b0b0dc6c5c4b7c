"""``laconic init`` and ``laconic certs``: a site's settings with data for a first trial, and its certificates."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.cli.options import Commands, describe, whole
from laconic.cli.words import paragraph, plural, table

if TYPE_CHECKING:
    from laconic.deploy.operations.certificates import Outcome
    from laconic.deploy.settings.site import Site

_ABOUT_INIT = """
Write a commented site.toml, and data for a first trial: agents on this machine
that learn one function together. `laconic up` then starts them."""
_EXAMPLES_INIT = """
examples:
  laconic init
  laconic init home --agents 8
  laconic init home --secure"""

_ABOUT_CERTS = """
Make certificates for the agents of a site: an authority of its own, and a
certificate and key for each agent. What is there and good is kept."""
_EXAMPLES_CERTS = """
examples:
  laconic certs site.toml
  laconic certs site.toml --for garden     one agent that was added later
  laconic certs site.toml --force          all anew, the authority included"""


def add(commands: Commands) -> None:
    """Add the commands ``init`` and ``certs``."""
    parser = commands.add_parser(
        "init", help="write a site.toml to start from", **describe(_ABOUT_INIT, _EXAMPLES_INIT)
    )
    what = "file to write, or a folder for site.toml (default: site.toml)"
    parser.add_argument("path", nargs="?", default="site.toml", metavar="PATH", help=what)
    parser.add_argument("--agents", type=whole, default=5, metavar="N", help="number of agents (5)")
    parser.add_argument("--secure", action="store_true", help="with mutual TLS, and certificates for it")
    parser.add_argument("--force", action="store_true", help="overwrite settings and data that are there")
    parser.set_defaults(command=init)
    parser = commands.add_parser(
        "certs", help="make certificates for a site's agents", **describe(_ABOUT_CERTS, _EXAMPLES_CERTS)
    )
    parser.add_argument("site", metavar="SITE", help="a site.toml with a [security] table")
    parser.add_argument("--for", dest="only", metavar="NAME", help="for this agent only, by the authority there is")
    parser.add_argument("--days", type=whole, default=730, metavar="N", help="how long certificates are good (730)")
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.set_defaults(command=certs)


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
        from laconic.deploy.operations.certificates import make_certificates

        _tell(site, make_certificates(site))
    print(paragraph(f"`laconic up {file}` starts them, Ctrl-C stops them."))
    return 0


def certs(arguments: argparse.Namespace) -> int:
    """Make the certificates, and say what was made."""
    from laconic.deploy.operations.certificates import make_certificates
    from laconic.deploy.settings.site import Site

    site = Site.read(Path(arguments.site).expanduser())
    _tell(site, make_certificates(site, only=arguments.only, force=arguments.force, days=arguments.days))
    return 0


def _tell(site: Site, outcomes: tuple[Outcome, ...]) -> None:
    assert site.security is not None  # or there would be no outcomes
    print(table([[outcome.name or "authority", str(outcome.path), outcome.what] for outcome in outcomes], "<<<"))
    ca, secret = site.security.ca, site.security.ca_key
    print(
        paragraph(
            f"A device needs {ca} and its own agent's .crt and .key. {secret} signs certificates: keep it here, "
            "and copy it to no device."
        )
    )


def _need_cryptography() -> None:
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        raise ValueError("certificates need the package cryptography: install laconic[agents].")


def _write(path: Path, content: str) -> None:
    from laconic._files import written_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(content.encode())
