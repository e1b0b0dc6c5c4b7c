"""How zenoh is set up for agents: who connects to whom, and how fast a loss is noticed and mended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ENDPOINT = re.compile(r"(?P<protocol>[a-z0-9]+)/(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[^/*$?#@\s][^/*$?#\s]*")  # zenoh keeps these letters of a key for itself
_MOST_PORT = 65_535
_LARGEST = 64 << 20  # bytes of a message; zenoh would put together 1 GiB for anybody

#: Zenoh's threads. Of two that receive, one would wait for Python with the other's timer running: an agent that
#: computes for longer than the lease without letting go of the interpreter would take its neighbours for dead. That the
#: sender is a thread of its own keeps the neighbours from taking such an agent for dead.
THREADS = "(rx: (worker_threads: 1))"


def check_part(what: str, value: object) -> str:
    """``value`` if it can be one part of a key.

    >>> check_part("name", "rooms/*")
    Traceback (most recent call last):
    ValueError: name must be a word without spaces and / * $ ? # @, got 'rooms/*'.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{what} must be a word without spaces and / * $ ? # @, got {value!r}.")
    return value


def check_endpoint(what: str, value: object, protocol: str) -> str:
    """``value`` if it is ``tcp/HOST:PORT``, or ``tls/HOST:PORT`` where TLS is needed.

    >>> check_endpoint("listen", "tcp/127.0.0.1:7447", "tls")
    Traceback (most recent call last):
    ValueError: listen must begin with 'tls/' since there is security, got 'tcp/127.0.0.1:7447'.
    """
    found = _ENDPOINT.fullmatch(value) if isinstance(value, str) else None
    if not found or not 1 <= int(found["port"]) <= _MOST_PORT:
        raise ValueError(f"{what} must be '{protocol}/HOST:PORT' with a port from 1 to {_MOST_PORT}, got {value!r}.")
    if found["protocol"] != protocol:
        why = "security" if protocol == "tls" else "no security"
        raise ValueError(f"{what} must begin with '{protocol}/' since there is {why}, got {value!r}.")
    return found[0]


def endpoints_to_connect(name: str, listen: str | None, neighbours: Mapping[str, str | None]) -> list[str]:
    """Where ``name`` has to connect to: one link for each edge, made by the later name if both listen.

    The other one waits, and whichever of the two restarts, the link is back at once: who connects tries at its start,
    and again and again while the other is away. Were both to connect, zenoh would refuse one of the two links for ever.

    >>> neighbours = {"attic": "tcp/10.0.0.1:7447", "kitchen": "tcp/10.0.0.3:7447"}
    >>> endpoints_to_connect("hall", "tcp/10.0.0.2:7447", neighbours)
    ['tcp/10.0.0.1:7447']
    """
    for other, endpoint in neighbours.items():
        if endpoint is None and listen is None:
            raise ValueError(f"{name} and {other} cannot meet: neither has an endpoint to listen on.")
    return [at for other, at in neighbours.items() if at is not None and (listen is None or name > other)]


def session_settings(
    listen: str | None, connect: list[str], lease: float, tls: dict[str, Any] | None, access: dict[str, Any] | None
) -> dict[str, Any]:
    """Zenoh's settings for one agent."""
    milliseconds = max(1, round(1000 * lease))
    settings: dict[str, Any] = {
        "mode": "peer",
        "listen": {"endpoints": [] if listen is None else [listen], "timeout_ms": 0, "exit_on_failure": True},
        "connect": {
            "endpoints": connect,
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 100, "period_max_ms": 250, "period_increase_factor": 2},
        },
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        # Gossip and multicast would connect agents beyond the graph.
        "scouting": {"delay": 0, "multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "unicast": {
                # When a network is cut, packets vanish without an answer, and the system asks again ever more seldom:
                # after 1, 3, 7 seconds. A fresh attempt asks at once.
                "open_timeout": 2000,
                "accept_timeout": 2000,
            },
            "link": {
                "protocols": ["tcp" if tls is None else "tls"],
                "tx": {
                    "lease": milliseconds,
                    "keep_alive": 4,
                    # While somebody waits to send to a neighbour that does not read, nobody else is heard: that must
                    # end before these are taken for gone.
                    "queue": {"congestion_control": {"block": {"wait_before_close": 500 * milliseconds}}},
                },
                "rx": {"max_message_size": _LARGEST},
            },
            "shared_memory": {"enabled": False},
        },
    }
    if tls is not None:
        settings["transport"]["link"]["tls"] = tls
    if access is not None:
        settings["access_control"] = access
    return settings
