"""The page and its stream: a page with the network in it, and a WebSocket that tells what has changed."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from laconic import _extras
from laconic.dashboard.board import NUMBERS, Board

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from laconic.network import Network

#: Seconds between two updates at least, and agents that may change in a second.
_SHORTEST, _MOST_ROWS = 0.05, 5000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
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
        if origin is not None and urlsplit(origin).netloc != host:
            return False
        if self.token is None:
            return urlsplit(f"//{host}").hostname in _LOOPBACK
        return hmac.compare_digest((token or "").encode(), self.token.encode())


def render(title: str, board: Board, network: Network) -> str:
    """The page, with the network inside; all else comes over its WebSocket."""
    from laconic.plot.networks import layout

    places = layout(network)
    low, high = places.min(axis=0), places.max(axis=0)
    places = (places - low) / max(float((high - low).max()), 1e-9)
    about = {
        "site": title,
        "names": board.names,
        "edges": network.edges.tolist(),
        "places": places.round(4).tolist(),
        "numbers": NUMBERS,
    }
    loader = ChoiceLoader(
        [PackageLoader("laconic.dashboard", "."), PrefixLoader({"demo": PackageLoader("laconic.demo", ".")})]
    )
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    data = json.dumps(about, separators=(",", ":")).replace("<", "\\u003c")
    return environment.get_template("page.html.jinja").render(title=title, data=Markup(data))


def make_app(title: str, board: Board, network: Network, gate: Gate) -> Starlette:
    """An ASGI application: ``/`` is the page, ``/changes`` the stream.

    Parameters
    ----------
    title : str
        What the site is called.
    board : Board
    network : Network
        Who hears whom, agents in the order of ``board.names``.
    gate : Gate
    """
    _extras.need("starlette", "the dashboard")
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute

    page = render(title, board, network)
    every = max(_SHORTEST, len(board.names) / _MOST_ROWS)

    def passes(connection: Any) -> bool:
        headers = connection.headers
        return gate.open(headers.get("host", ""), headers.get("origin"), connection.query_params.get("token"))

    async def show(request: Any) -> Response:
        if not passes(request):
            return PlainTextResponse("This page needs the address that `laconic dashboard` printed.\n", 403)
        return HTMLResponse(page, headers=_HEADERS)

    async def stream(channel: Any) -> None:
        if not passes(channel):
            await channel.close(1008)
            return
        await channel.accept()
        await _serve(channel, board, every)

    return Starlette(routes=[Route("/", show), WebSocketRoute("/changes", stream)])


async def _serve(channel: Any, board: Board, every: float) -> None:
    """Tell the past, then what changes, until the other side has gone."""
    from starlette.websockets import WebSocketDisconnect

    watching: dict[str, str | None] = {"name": None}
    version = 0

    async def listen() -> None:
        while True:
            asked = await channel.receive_text()
            if len(asked) > 1000:
                continue
            with suppress(ValueError):
                said = json.loads(asked)
                name = said.get("watch") if isinstance(said, dict) else None
                watching["name"] = name if isinstance(name, str) else None

    hearing = asyncio.create_task(listen())
    told: str | None = None
    try:
        await channel.send_text(json.dumps({"past": board.past()}))
        while not hearing.done():
            name = watching["name"]
            # Whoever is watched anew is told of at once, whether he has changed or not.
            changes = board.changes(version, name)
            if name is not None and name != told:
                changes["predictions"] = board.changes(0, name).get("predictions", [])
            told = name
            if changes["version"] != version or "predictions" in changes:
                version = changes["version"]
                await channel.send_text(json.dumps({**changes, "watched": name}, separators=(",", ":")))
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
    uvicorn = _extras.need("uvicorn", "the dashboard")
    _extras.need("websockets", "the dashboard")
    config = uvicorn.Config(
        app,
        log_level="critical",
        ws="websockets-sansio",
        ws_max_size=4096,  # of what browsers say
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
