"""A small HTTP server for scrapes that nobody can tie down: one thread, bounded connections, a time limit for each.

A server with a thread for each connection is held by anybody who opens connections and says nothing. This one reads
what there is from all of them in one thread. When there are too many, the one that has taken longest goes: an honest
scrape says all it has to say at once and is answered at once, however many others dawdle.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, final
from urllib.parse import unquote

#: Seconds that a connection may take from beginning to end; connections at a time; bytes of a request.
SECONDS, MOST, LONGEST = 5.0, 64, 16_384

_BACKLOG = 128
_CHUNK = 65_536
_LINGER = 0.1  # seconds until the next attempt when the system has no connection to give

_log = logging.getLogger(__name__)


class _Connection:
    """One connection: what it has said, and what is still to be said to it."""

    __slots__ = ("asked", "deadline", "left", "socket")

    def __init__(self, socket: socket.socket, deadline: float) -> None:
        self.socket, self.deadline = socket, deadline
        self.asked, self.left = b"", memoryview(b"")


@final
class ScrapeServer:
    """Serves a WSGI application over HTTP, a request for each connection, from one thread until it is closed.

    Parameters
    ----------
    application : callable
        By WSGI; only method, path, query and headers are handed on.
    address : str
    port : int
        0 for any that is free; ``port`` then tells which.
    seconds : float
        That a connection may take from beginning to end.
    most : int
        Connections at a time; when one more comes, the oldest goes.

    Raises
    ------
    OSError
        If it cannot listen there.
    """

    def __init__(
        self,
        application: Callable[[dict[str, Any], Any], Iterable[bytes]],
        address: str,
        port: int,
        *,
        seconds: float = SECONDS,
        most: int = MOST,
    ) -> None:
        self._application, self._seconds, self._most = application, seconds, most
        self._listener = socket.create_server((address, port), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._open: dict[socket.socket, _Connection] = {}  # the oldest first
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="serves metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections and free the port."""
        self._closed = True
        with suppress(OSError):  # a deadline may have woken the thread in between, and it is gone with its sockets
            self._waker.send(b"x")
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, _ in self._selector.select(self._pause()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.data, _Connection):
                        self._serve(key.data)
                now = time.monotonic()
                for late in [one for one in self._open.values() if one.deadline <= now]:
                    self._drop(late)
        finally:
            for one in [*self._open.values()]:
                self._drop(one)
            self._selector.close()
            for end in (self._listener, self._waker, self._woken):
                end.close()

    def _pause(self) -> float | None:
        """Seconds until the oldest connection is late; None if there is none."""
        first = next(iter(self._open.values()), None)
        return None if first is None else max(0.0, first.deadline - time.monotonic())

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # gone already; or there are no files left, and one of ours makes room
            if self._open:
                self._drop(next(iter(self._open.values())))
            else:
                time.sleep(_LINGER)
            return
        sock.setblocking(False)
        if len(self._open) >= self._most:
            self._drop(next(iter(self._open.values())))
        one = self._open[sock] = _Connection(sock, time.monotonic() + self._seconds)
        self._selector.register(sock, selectors.EVENT_READ, one)
        self._serve(one)  # mostly the request is there already

    def _serve(self, one: _Connection) -> None:
        """Read or write as much as can be done at once."""
        if one.left:
            self._write(one)
            return
        try:
            data = one.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(one)
            return
        one.asked += data
        if b"\r\n\r\n" in one.asked or b"\n\n" in one.asked:
            self._answer(one, self._respond(one.asked))
        elif len(one.asked) > LONGEST:
            self._answer(one, _response("431 Request Header Fields Too Large", [], b""))
        elif not data:
            self._drop(one)

    def _answer(self, one: _Connection, response: bytes) -> None:
        one.left = memoryview(response)
        self._selector.modify(one.socket, selectors.EVENT_WRITE, one)
        self._write(one)

    def _write(self, one: _Connection) -> None:
        try:
            one.left = one.left[one.socket.send(one.left) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(one)
            return
        if not one.left:
            with suppress(OSError):
                one.socket.shutdown(socket.SHUT_WR)
            self._drop(one)

    def _drop(self, one: _Connection) -> None:
        if self._open.pop(one.socket, None) is not None:
            self._selector.unregister(one.socket)
            one.socket.close()

    def _respond(self, asked: bytes) -> bytes:
        environ = _environ(asked)
        if environ is None:
            return _response("400 Bad Request", [], b"")
        told: list[Any] = []
        try:
            body = b"".join(self._application(environ, lambda status, headers, *_: told.extend((status, headers))))
        except Exception:
            _log.exception("metrics failed")
            return _response("500 Internal Server Error", [], b"")
        return _response(told[0], told[1], body)


def _environ(asked: bytes) -> dict[str, Any] | None:
    """What WSGI calls an environment, of a request's method, path and headers; None if that is no request."""
    head = asked.replace(b"\r\n", b"\n").partition(b"\n\n")[0].decode("latin-1")
    first, *rest = head.split("\n")
    words = first.split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    path, _, query = words[1].partition("?")
    environ: dict[str, Any] = {"REQUEST_METHOD": words[0], "PATH_INFO": unquote(path), "QUERY_STRING": query}
    for line in rest:
        name, _, value = line.partition(":")
        environ[f"HTTP_{name.strip().upper().replace('-', '_')}"] = value.strip()
    return environ


def _response(status: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
