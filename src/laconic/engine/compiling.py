"""Noticing that kernels are being compiled, which takes seconds and happens once for each installation.

numba keeps what it has compiled on disk. Whether a call finds it there is not to be told by how long it takes, which
depends on the machine and on whatever else that does; but numba announces when it begins to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def when_compiling(say: Callable[[], object]) -> Iterator[None]:
    """Call ``say``, once, as soon as something is compiled meanwhile; never if all of it is loaded from disk."""
    try:
        from numba.core import event
    except ImportError:  # nothing will be compiled
        yield
        return
    told = False

    class Listener(event.Listener):  # type: ignore[misc]
        """Hears of every compilation from its beginning."""

        def on_start(self, event: Any) -> None:
            nonlocal told
            if not told:
                told = True
                say()

        def on_end(self, event: Any) -> None:
            """Nothing is said when it is over."""

    with event.install_listener("numba:compile", Listener()):
        yield
