"""``--live``: what runs, in a browser, while it runs; the page is served by the same process."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from laconic import _validate
from laconic.cli.options import number, whole
from laconic.learners import Learner, Speech

if TYPE_CHECKING:
    from laconic.dashboard import Lane, Play
    from laconic.experiments.streams import Stream
    from laconic.network import Network

LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: Seconds that a simulation waits for somebody to look, before it starts without.
_PATIENCE = 15.0


def add_page_options(parser: Any, opens: bool = True) -> None:
    """Where the page is served, and who may look."""
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="serve there (127.0.0.1: this machine)")
    parser.add_argument("--port", type=whole, default=8765, metavar="P", help="and on this port; 0 for any (8765)")
    parser.add_argument("--token", metavar="WORD", help="who looks must know it (default: drawn, if --host is given)")
    if opens:
        parser.add_argument("--open", action="store_true", help="open the page in a browser")


def add_live_options(parser: argparse.ArgumentParser, opens: bool = True, plays: bool = True) -> None:
    """``--live`` and what goes with it; ``plays`` where it is a simulation that is shown."""
    group = parser.add_argument_group("live")
    group.add_argument("--live", action="store_true", help="show it in a browser while it runs, until Ctrl-C")
    if plays:
        group.add_argument(
            "--beside",
            metavar="NAME",
            help="the learner beside it on the same stream, or 'nobody' (default: agents that never speak; of the demo "
            "QC-ODKLA)",
        )
        group.add_argument("--pace", type=number, metavar="R", help="rounds a second (default: slow, then quick)")
    add_page_options(group, opens)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what makes no sense before anything runs; without ``--live``, whatever is only for it."""
    _validate.integer("--port", arguments.port, least=0, most=65535)
    if getattr(arguments, "pace", None) is not None:
        _validate.number("--pace", arguments.pace, above=0)
    if not getattr(arguments, "live", True):
        for name in ("beside", "pace", "token"):
            if getattr(arguments, name, None) is not None:
                raise ValueError(f"--{name} makes no sense without --live.")
        return
    from laconic._extras import need

    need("starlette", "the live page")
    need("uvicorn", "the live page")
    need("websockets", "the live page")


@contextmanager
def shown(
    arguments: argparse.Namespace,
    title: str,
    lanes: Sequence[Lane],
    network: Network,
    *,
    hint: str = "",
    n_rounds: int | None = None,
    seen: Callable[[], object] = lambda: None,
    say: Callable[[str], object] | None = None,
) -> Iterator[str]:
    """A page that is served as long as this lasts; ``say`` is told where, and so is whoever looks at stderr."""
    import secrets

    from laconic.dashboard import Gate, make_app
    from laconic.dashboard.serving import listen_on, server_of

    token = arguments.token
    if token is None and arguments.host not in LOOPBACK:
        token = secrets.token_urlsafe(16)
    server = server_of(make_app(title, lanes, network, Gate(token), hint=hint, n_rounds=n_rounds, seen=seen))
    with listen_on(arguments.host, arguments.port) as listener:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{listener.getsockname()[1]}/{f'?token={token}' if token else ''}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="serves the page")
        thread.start()
        try:
            words = f"{title} is shown at {address} (Ctrl-C ends it)"
            if say is None:
                print(words, file=sys.stderr, flush=True)
            else:
                say(words)
            if getattr(arguments, "open", False):
                open_page(address)
            yield address
        finally:
            server.should_exit = True
            thread.join()


def open_page(address: str) -> None:
    """Open a page, if there is anything to open it with; who asked for it is told if there is not."""
    import webbrowser

    if not webbrowser.open(address):
        print("laconic: there is no browser here; open the page yourself.", file=sys.stderr)


@contextmanager
def played(
    arguments: argparse.Namespace, title: str, learner: Learner, beside: Learner | None, stream: Stream
) -> Iterator[None]:
    """A learner, perhaps beside another, on a page until all rounds are over; then what is to be done; then Ctrl-C."""
    from laconic.dashboard import Lane, play

    plays = side_by_side(learner, beside, stream)
    somebody = threading.Event()
    lanes = [Lane(one.name, one.board, one.tree) for one in plays]
    hint = "The first round begins as soon as somebody looks."
    rounds = len(stream.y)
    with shown(arguments, title, lanes, stream.network, hint=hint, n_rounds=rounds, seen=somebody.set):
        somebody.wait(_PATIENCE)
        play(plays, pace=arguments.pace)
        yield
        sys.stdout.flush()
        wait("All rounds are over; the page stays until Ctrl-C.")


def side_by_side(learner: Learner, beside: Learner | None, stream: Stream) -> list[Play]:
    """Both, ready to run through the same stream."""
    from laconic.dashboard import Board, Play

    if beside is not None and beside.outputs != learner.outputs:
        raise ValueError(f"--beside must name a learner that learns {learner.outputs} outputs, as {learner.name} does.")
    both = [learner] if beside is None else [learner, beside]
    X, y, features, network = stream.X, stream.y, stream.features, stream.network
    names = [str(name) for name in network.names]
    for one in both:  # on a board that nobody sees: a few rounds, a wave among them
        Play(Board(names), one, features, network, X[:4], y[:4]).advance(4, 0.0)
    called = [f"{one.name}, alone" if k and one.speech is Speech.OWN else one.name for k, one in enumerate(both)]
    return [Play(Board(names), one, features, network, X, y, name) for one, name in zip(both, called, strict=True)]


def wait(words: str = "") -> None:
    """Until Ctrl-C, which is how one leaves a page: no error; with ``words`` for who may not know what to wait for."""
    try:
        if words:
            print(words, file=sys.stderr, flush=True)
        while not threading.Event().wait(0.5):  # a signal that comes before the waiting would not end it
            pass
    except KeyboardInterrupt:
        print(file=sys.stderr)
