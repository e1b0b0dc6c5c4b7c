"""Questions over zenoh: what an agent is asked, and how to ask one from another process."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from typing import Any, final

from laconic.transport.zenoh_security import Security

_PROBE = 1.0  # seconds in which a connection to somebody who is there is made
_PLACE = re.compile(r"[a-z0-9]+/(?P<host>.+):(?P<port>[0-9]+)")


class Refused(ValueError):
    """An agent has answered that it does not answer, and why."""


@final
class Asked:
    """What somebody asks, as a ``Question``."""

    __slots__ = ("_error", "_key", "_query", "size")

    def __init__(self, query: Any, key: str, error: type[Exception]) -> None:
        self._query, self._key, self._error = query, key, error
        self.size = 0 if query.payload is None else len(query.payload)

    def payload(self) -> bytes:
        """What came with it."""
        return b"" if self._query.payload is None else bytes(self._query.payload.to_bytes())

    def reply(self, data: bytes) -> None:
        """Answer; nothing happens if nobody is there to hear it."""
        with contextlib.suppress(self._error):
            self._query.reply(self._key, data)
            self._query.drop()  # which tells the other side that this was all

    def refuse(self, why: str) -> None:
        """Say why there is no answer."""
        with contextlib.suppress(self._error):
            self._query.reply_err(why.encode())
            self._query.drop()


def ask(
    zenoh: Any,
    key: str,
    endpoint: str,
    payload: bytes | None = None,
    *,
    security: Security | None = None,
    timeout: float = 5.0,
) -> bytes | None:
    """What the agent at ``endpoint`` answers on ``key``; None if nobody is there, or it does not answer in time.

    Parameters
    ----------
    zenoh : module
        As ``load_zenoh`` gives it.
    key : str
        ``SITE/NAME/predict``, ``SITE/NAME/model`` or ``SITE/NAME/status``.
    endpoint : str
        Where the agent listens.
    payload : bytes, optional
        What is asked.
    security : Security, optional
        The files of whoever asks, where there is mutual TLS.
    timeout : float
        Seconds.

    Raises
    ------
    Refused
        If the agent answers that it does not.
    """
    if not _listens(endpoint, min(_PROBE, timeout)):
        return None
    milliseconds = max(1, round(1000 * timeout))
    settings: dict[str, Any] = {
        "mode": "client",
        "connect": {"endpoints": [endpoint], "timeout_ms": milliseconds, "exit_on_failure": True},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "link": {"protocols": ["tcp" if security is None else "tls"]},
            "shared_memory": {"enabled": False},
        },
    }
    if security is not None:
        settings["transport"]["link"]["tls"] = security.settings()
    try:
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
    except zenoh.ZError:  # it has gone meanwhile, or does not let us in
        return None
    try:
        for reply in session.get(key, payload=payload, timeout=timeout):
            if reply.ok is not None:
                return bytes(reply.ok.payload.to_bytes())
            why = bytes(reply.err.payload.to_bytes()).decode(errors="replace")
            if not why or "timeout" in why.lower():  # zenoh's own words when the time is over
                return None
            raise Refused(" ".join(why.split())[:300])
    finally:
        session.close()
    return None


def _listens(endpoint: str, timeout: float) -> bool:
    """Whether anybody listens there: zenoh would try for as long as it may."""
    place = _PLACE.fullmatch(endpoint)
    if place is None:
        return False
    try:
        socket.create_connection((place["host"].strip("[]"), int(place["port"])), timeout).close()
    except OSError:
        return False
    return True
