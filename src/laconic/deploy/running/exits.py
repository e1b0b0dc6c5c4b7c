"""How a process of a site ends: the codes it exits with, and the signals that ask it to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Exit codes after which an agent is not started again: its data ended, its settings make no sense, it diverged.
ENDED, NONSENSE, DIVERGED = 0, 2, 3

#: Signals that stop a site.
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def heard(put: Callable[[int], None]) -> Iterator[None]:
    """Hand the numbers of signals to stop to ``put`` meanwhile; in the main thread, which is the one that hears them.

    ``put`` may interrupt anything, itself and whoever waits for it included; a SimpleQueue's may.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda number, _: put(int(number))) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
