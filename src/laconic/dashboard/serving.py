"""The page and its stream: a page with the network in it, and a WebSocket that tells what has changed."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from laconic import _extras
from laconic._reports import parse_object
from laconic.dashboard.board import NUMBERS, Board

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from laconic.network import Network

#: Seconds between two updates at least, and agents that may change in a second.
_SHORTEST, _MOST_ROWS = 0.05, 5000
#: A header that does not look like this is refused unparsed: whatever a stranger sends, it raises nothing.
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@final
@dataclass(frozen=True)
class Gate:
    """Who may look: on this machine anybody, from elsewhere whoever has the token.

    A page of somebody else's that makes a browser of this machine ask is turned away by the name it asks for
    (``host``), and by where it says that it comes from (``origin``).

    Examples
    --------
    >>> Gate().open("localhost:8765", None, None), Gate().open("evil.example:8765", None, None)
    (True, False)
    >>> gate = Gate(token="s3cret")
    >>> gate.open("10.0.0.5:8765", None, "s3cret"), gate.open("10.0.0.5:8765", None, "guess")
    (True, False)
    """

    token: str | None = None

    def open(self, host: str, origin: str | None, token: str | None) -> bool:
        """Whether a request with these headers and this token may pass."""
        if origin is not None and origin.partition("://")[2] != host:
            return False
        if self.token is None:
            return _LOOPBACK.fullmatch(host) is not None
        return hmac.compare_digest((token or "").encode(), self.token.encode())


@final
@dataclass(frozen=True, eq=False)
class Lane:
    """One learner, or one site, on the page; up to two of them stand side by side.

    Attributes
    ----------
    name : str
    board : Board
    tree : sequence of (child, parent)
        The tree that its messages run over, if they do.
    """

    name: str
    board: Board
    tree: Sequence[tuple[int, int]] = ()


def render(title: str, lanes: Sequence[Lane], network: Network, hint: str = "", n_rounds: int | None = None) -> str:
    """The page, with the network inside; all else comes over its WebSocket.

    ``hint`` says what to do where nobody is there yet; ``n_rounds`` is known of a run that will end.
    """
    from laconic.plot.networks import layout

    places = layout(network)
    low, high = places.min(axis=0), places.max(axis=0)
    places = (places - low) / max(float((high - low).max()), 1e-9)
    about = {
        "site": title,
        "names": lanes[0].board.names,
        "edges": network.edges.tolist(),
        "places": places.round(4).tolist(),
        "numbers": NUMBERS,
        "lanes": [{"name": lane.name, "tree": [list(link) for link in lane.tree]} for lane in lanes],
        "rounds": n_rounds,
    }
    loader = ChoiceLoader(
        [PackageLoader("laconic.dashboard", "."), PrefixLoader({"demo": PackageLoader("laconic.demo", ".")})]
    )
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    data = json.dumps(about, separators=(",", ":")).replace("<", "\\u003c")
    names = [lane.name for lane in lanes]
    return environment.get_template("page.html.jinja").render(title=title, data=Markup(data), lanes=names, hint=hint)


def make_app(
    title: str,
    lanes: Sequence[Lane],
    network: Network,
    gate: Gate,
    *,
    hint: str = "",
    n_rounds: int | None = None,
    seen: Callable[[], object] = lambda: None,
) -> Starlette:
    """An ASGI application: ``/`` is the page, ``/changes`` the stream.

    Parameters
    ----------
    title : str
        What is shown.
    lanes : sequence of Lane
        One, or two of the same agents.
    network : Network
        Who hears whom, agents in the order of ``board.names``.
    gate : Gate
    hint, n_rounds
        As in ``render``.
    seen : callable
        Called whenever a page connects.
    """
    _extras.need("starlette", "the live page")
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute

    page = render(title, lanes, network, hint, n_rounds)
    every = max(_SHORTEST, len(lanes) * network.n_agents / _MOST_ROWS)

    def passes(connection: Any) -> bool:
        headers = connection.headers
        return gate.open(headers.get("host", ""), headers.get("origin"), connection.query_params.get("token"))

    async def show(request: Any) -> Response:
        if not passes(request):
            return PlainTextResponse("This page needs the address that `laconic` printed, with its token.\n", 403)
        return HTMLResponse(page, headers=_HEADERS)

    async def stream(channel: Any) -> None:
        if not passes(channel):
            await channel.close(1008)
            return
        await channel.accept()
        seen()
        await _serve(channel, [lane.board for lane in lanes], every)

    return Starlette(routes=[Route("/", show), WebSocketRoute("/changes", stream)])


async def _serve(channel: Any, boards: Sequence[Board], every: float) -> None:
    """Tell all there is, then what changes, until the other side has gone."""
    from starlette.websockets import WebSocketDisconnect

    watching: dict[str, str | None] = {"name": None}

    async def listen() -> None:
        while True:
            asked = await channel.receive_text()
            if len(asked) > 1000:
                continue
            said = parse_object(asked)
            if said is not None:
                name = said.get("watch")
                watching["name"] = name if isinstance(name, str) else None

    hearing = asyncio.create_task(listen())
    versions, told = [0] * len(boards), None
    first = True
    try:
        while not hearing.done():
            name = watching["name"]
            changes = [board.changes(since, name) for board, since in zip(boards, versions, strict=True)]
            if name is not None and name != told:  # who is watched anew is told of at once, changed or not
                for board, one in zip(boards, changes, strict=True):
                    one["predictions"] = board.changes(0, name).get("predictions", [])
            now = [one["version"] for one in changes]
            if first or now != versions or (name is not None and name != told):
                await channel.send_text(json.dumps({"lanes": changes, "watched": name}, separators=(",", ":")))
            versions, told, first = now, name, False
            await asyncio.sleep(every)
        await hearing
    except (WebSocketDisconnect, RuntimeError):  # gone, before or amid a message
        pass
    finally:
        hearing.cancel()
        with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await hearing


def listen_on(host: str, port: int) -> socket.socket:
    """A socket that listens there, with the port that was free if 0 was asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0].lower()
        raise OSError(f"the page cannot be served on {host}:{port}: {why}.") from None


def server_of(app: Starlette) -> Any:
    """A uvicorn server: ``run(sockets=[...])`` serves until a signal, or ``should_exit``, ends it."""
    uvicorn = _extras.need("uvicorn", "the live page")
    _extras.need("websockets", "the live page")
    config = uvicorn.Config(
        app,
        log_level="critical",
        ws="websockets-sansio",
        ws_max_size=4096,  # of what browsers say
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
