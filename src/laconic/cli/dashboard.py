"""``laconic dashboard``: a running site in a browser."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from laconic.cli.live import add_page_options
from laconic.cli.options import Commands, add_json, add_quiet, describe

if TYPE_CHECKING:
    from laconic.deploy.settings.site import Site

_ABOUT = """
Show a running site in a browser: who speaks, how far off each agent is, what
it cost, and what went wrong, while it happens. It only listens, and asks agents
how they do; agents may come and go. On this machine anybody may look; with
--host, whoever has the address with its token."""

_EXAMPLES = """
examples:
  laconic dashboard home/site.toml --open
  laconic dashboard home/site.toml --host 0.0.0.0 --port 8765
  laconic dashboard home/site.toml --as screen      with a guest's certificate"""


def add(commands: Commands) -> None:
    """Add the command ``dashboard``."""
    parser = commands.add_parser(
        "dashboard",
        help="show a running site in a browser",
        usage="laconic dashboard FILE [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("config", metavar="FILE", help="the site's settings, as `laconic init` writes them")
    add_page_options(parser)
    parser.add_argument("--as", dest="guest", metavar="NAME", help="whose certificate to show, where agents want one")
    add_json(parser, "tell where the page is as JSON")
    add_quiet(parser)
    parser.set_defaults(command=dashboard)


def dashboard(arguments: argparse.Namespace) -> int:
    """Listen to the site and serve the page until Ctrl-C."""
    from laconic.cli import live
    from laconic.deploy.settings.site import Site

    live.check(arguments)
    site = Site.read(arguments.config)

    def say(words: str) -> None:
        print(words, flush=True)

    with watched(arguments, site, arguments.guest, (lambda _: None) if arguments.json else say) as address:
        if arguments.json:
            say(json.dumps({"site": site.name, "page": address}))
        live.wait()
    return 0


@contextmanager
def watched(
    arguments: argparse.Namespace, site: Site, guest: str | None = None, say: Callable[[str], object] | None = None
) -> Iterator[str]:
    """A site that is listened to, and its page, as long as this lasts."""
    from laconic.cli import live
    from laconic.dashboard import Board, Lane
    from laconic.dashboard.watching import Watcher
    from laconic.learners import Speech
    from laconic.waves import Routes

    board, network, learner = Board(site.names), site.network(), site.learner()
    tree = Routes(network).links if learner.speech is Speech.OWN else ()
    hint = f"Start the agents with laconic up {site.file}, or on their devices."
    with live.shown(arguments, site.name, [Lane(learner.name, board, tree)], network, hint=hint, say=say) as where:
        watcher = Watcher(site, board, guest)
        try:
            yield where
        finally:
            watcher.close()
