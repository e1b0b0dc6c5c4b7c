"""``laconic dashboard``: a running site in a browser."""

from __future__ import annotations

import argparse

from laconic import _validate
from laconic.cli.options import Commands, describe, whole

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

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add(commands: Commands) -> None:
    """Add the command ``dashboard``."""
    parser = commands.add_parser(
        "dashboard",
        help="show a running site in a browser",
        usage="laconic dashboard FILE [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("config", metavar="FILE", help="the site's settings, as `laconic init` writes them")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="serve there (127.0.0.1: this machine)")
    parser.add_argument("--port", type=whole, default=8765, metavar="P", help="and on this port; 0 for any (8765)")
    parser.add_argument("--token", metavar="WORD", help="who looks must know it (default: drawn, if --host is given)")
    parser.add_argument("--as", dest="guest", metavar="NAME", help="whose certificate to show, where agents want one")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.set_defaults(command=dashboard)


def dashboard(arguments: argparse.Namespace) -> int:
    """Listen to the site and serve the page until Ctrl-C."""
    import secrets

    from laconic._extras import need
    from laconic.deploy.settings.site import Site

    _validate.integer("--port", arguments.port, least=0, most=65535)
    site = Site.read(arguments.config)
    need("starlette", "the dashboard")
    from laconic.dashboard.board import Board
    from laconic.dashboard.serving import Gate, listen_on, make_app, server_of
    from laconic.dashboard.watching import Watcher

    token = arguments.token
    if token is None and arguments.host not in _LOOPBACK:
        token = secrets.token_urlsafe(16)
    board = Board(site.names)
    app = make_app(site.name, board, site.network(), Gate(token))
    with listen_on(arguments.host, arguments.port) as listener:
        watcher = Watcher(site, board, arguments.guest)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{listener.getsockname()[1]}/{f'?token={token}' if token else ''}"
        print(f"{site.name} is shown at {address} (Ctrl-C ends it)", flush=True)
        if arguments.open:
            import webbrowser

            webbrowser.open(address)
        try:
            server_of(app).run(sockets=[listener])
        finally:
            watcher.close()
    return 0
