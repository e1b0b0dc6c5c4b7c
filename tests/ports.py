"""Ports of loopback for servers under test: no two processes of a test run look in the same place."""

import itertools
import os
import random
import socket

# Below those that the system takes for outgoing connections; each worker of pytest-xdist has a range of its own.
_LOWEST, _SHARE, _WORKERS = 20_000, 3_000, 4
_first = _LOWEST + _SHARE * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS)
_order = random.Random(os.getpid()).sample(range(_first, _first + _SHARE), _SHARE)
_ports = itertools.cycle(_order)


def free_port():
    """A port of loopback that nobody uses, and that this process has not been given lately."""
    for port in itertools.islice(_ports, _SHARE):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError("no free port")


def free_ports(n):
    """So many different ones."""
    return [free_port() for _ in range(n)]
