"""What a service manager is told: that an agent is ready, that its loop turns, that it stops.

systemd gives a service the address of a datagram socket in ``NOTIFY_SOCKET``; lines of ``NAME=value`` sent there are
news (``READY=1``, ``STATUS=...``, ``STOPPING=1``). With ``WatchdogSec=`` it also says, in ``WATCHDOG_USEC``, how often
it wants to hear ``WATCHDOG=1``, and starts a service again that does not say so. Here it is said by the very loop that
learns: a loop that hangs is silent.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import final

#: Seconds between two signs of life where nobody says how many.
USUAL = 10.0


@final
class Service:
    """A service manager's ear; one that hears nothing where there is no manager.

    Parameters
    ----------
    address : str, optional
        Path of the socket; with @ first, an abstract one.
    every : float
        Seconds between two signs of life.

    Examples
    --------
    >>> Service.of({}).hears
    False
    >>> Service.of({"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "30000000"}).every  # twice in that time
    15.0
    """

    def __init__(self, address: str | None = None, every: float = USUAL) -> None:
        self.every = every
        self._address = None if address is None else "\0" + address[1:] if address.startswith("@") else address
        self.due = 0.0  # when the next sign of life is

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Service:
        """The manager that started this process, if any."""
        address = environment.get("NOTIFY_SOCKET")
        if not address or address[0] not in "/@" or not hasattr(socket, "AF_UNIX"):
            return cls()
        asked, whom = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        if not asked.isdecimal() or int(asked) == 0 or (whom and whom != str(os.getpid())):
            return cls(address)
        return cls(address, int(asked) / 2e6)

    @property
    def hears(self) -> bool:
        """Whether there is anybody to tell."""
        return self._address is not None

    def notify(self, *news: str) -> None:
        """Tell news, lines of ``NAME=value``. Never waits or raises: a manager that is gone is no reason to die."""
        if self._address is None:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto("\n".join(news).encode(), self._address)

    def beat(self, now: float, status: str) -> None:
        """Give a sign of life at ``now``, with what there is to say."""
        self.due = now + self.every
        self.notify("WATCHDOG=1", f"STATUS={' '.join(status.split())}")
