"""What zenoh leaves undone with its sockets.

When zenoh closes a connection, it has the system wait until the other side has got all that was sent, for up to 10
seconds; and over TLS it first waits without end until all can be sent. Where the other side is cut off, neither comes.
Until then zenoh does not tell that a neighbour is gone, and its receiving thread may hear nobody else.

And when zenoh closes a session, it leaves open what it was just accepting: a neighbour that connects at that moment
gets a connection to a session that is no more. On it come signs of life, but no word, and the neighbour never tries
again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from typing import final

_ZENOH = (1, 10)  # zenoh has the system wait for 10 seconds when it closes a connection
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # of Linux
_NETWORKS, _ANYWHERE = (socket.AF_INET, socket.AF_INET6), ("0.0.0.0", "::")
_Pair = ctypes.c_int * 2


def give_up_after(seconds: float) -> None:
    """Have the system not wait, and give up connections on which nothing was acknowledged for so many seconds.

    Zenoh's connections are known by the very setting that is undone. Systems that do not list the files of a process
    keep it.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for number in _files():
            linger, size = (number, socket.SOL_SOCKET, socket.SO_LINGER), ctypes.c_uint(ctypes.sizeof(_Pair))
            value = _Pair()
            # What is no socket, or not open any more, answers with an error.
            if library.getsockopt(*linger, value, ctypes.byref(size)) == 0 and tuple(value) == _ZENOH:
                library.setsockopt(*linger, _Pair(0, 0), size)
                if _USER_TIMEOUT is not None:
                    limit = ctypes.c_int(max(1, round(1000 * seconds)))
                    after = (number, socket.IPPROTO_TCP, _USER_TIMEOUT)
                    library.setsockopt(*after, ctypes.byref(limit), ctypes.sizeof(limit))


def hang_up(port: int) -> None:
    """Cut the connections that this process accepted on a port, if it does not listen there any more.

    Others may listen on the same port of another address: their connections stay.
    """
    with contextlib.suppress(OSError):
        listening = {host for _, host, listens in _bound(port) if listens}
        for one, host, _ in _bound(port):
            if listening.isdisjoint((host, *_ANYWHERE)):
                with contextlib.suppress(OSError):  # it is over already
                    one.shutdown(socket.SHUT_RDWR)


def _bound(port: int) -> Iterator[tuple[socket.socket, str, bool]]:
    """Sockets of this process with a port of their own, their addresses, and whether they listen."""
    for number in _files():
        with contextlib.suppress(OSError):  # what is no socket, or not open any more
            one = socket.socket(fileno=number)
            try:
                if one.family in _NETWORKS and one.type == socket.SOCK_STREAM and one.getsockname()[1] == port:
                    yield one, one.getsockname()[0], bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            finally:
                one.detach()  # it is not this one's to close


def _files() -> list[int]:
    """Numbers of the open files of this process, where the system lists them."""
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"  # noqa: PTH112
    return [int(entry) for entry in os.listdir(folder)]  # noqa: PTH208


@final
class Caretaker:
    """Keeps ``give_up_after`` done while connections come: when told so, and every so many seconds for all others.

    In a thread of its own: zenoh could tell of its connections, but from threads that it does not wait for when a
    session is closed, and that would bring down a Python which is about to end.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="takes care of zenoh's sockets", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Note that there is a new connection to adjust."""
        self._wake.set()

    def close(self) -> None:
        """Stop the thread."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._seconds)
            self._wake.clear()
            give_up_after(self._seconds)
