"""How a process of a site ends: the codes it exits with, and the signals that ask it to."""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Exit codes after which an agent is not started again: its data ended, its settings make no sense, it diverged.
ENDED, NONSENSE, DIVERGED = 0, 2, 3
#: That of an agent whose source of samples has failed: it is started again.
FAILED = 4

#: Signals that stop a site.
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def heard(put: Callable[[int], None]) -> Iterator[None]:
    """Hand the numbers of signals to stop to ``put`` meanwhile; in the main thread, which is the one that hears them.

    ``put`` may interrupt anything, itself and whoever waits for it included; a SimpleQueue's may. Another thread calls
    it, too: a signal that comes just as the main thread begins to wait for a queue does not wake it, and Python's
    handler would be called after the wait, an hour later perhaps. The number, though, is written to a socket at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    turn = threading.RLock()  # whoever finds nothing has waited until the other has put it; a handler interrupts itself

    def tell(*_: object) -> bool:
        """Hand on what has come; whether more may come."""
        with turn:
            try:
                numbers = ours.recv(4096)
            except BlockingIOError:
                return True
            for number in numbers:
                if number in STOPS:
                    put(number)
        return bool(numbers)

    def watch() -> None:
        while select.select([ours], [], []) and tell():
            pass

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    before = {number: signal.signal(number, tell) for number in STOPS}
    woken = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        theirs.close()
        watcher.join()
        ours.close()
