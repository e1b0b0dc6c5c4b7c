"""One process at a time for a site, and for each agent, on one machine: locks that end with whoever holds them.

A lock is a file with the holder's process id, locked by the system, which lets go when the process ends, however it
ends; the file stays. Where there are no such locks, or no place to write, there is none: a port that is taken still is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from laconic.deploy.settings.site import Site

_fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none


@final
class Taken(ValueError):
    """Somebody else is at it already."""


def lock_path(site: Site, name: str | None = None) -> Path:
    """The lock of an agent, beside its checkpoint if it has one; or, without a name, that of ``laconic up``."""
    if name is not None and site.checkpoint is not None:
        return site.checkpoint / f".{name}.lock"
    parts = [site.file.name, *(() if name is None else (name,)), "lock"]
    return site.file.parent / f".{'.'.join(parts)}"


@contextmanager
def only_one(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at ``path`` meanwhile.

    Raises
    ------
    Taken
        If another process holds it: "``what`` already, as process 1234: stop that one first."
    """
    file = _lock(path, what)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def _lock(path: Path, what: str) -> int | None:
    """A descriptor that holds the lock; None where there cannot be one."""
    if _fcntl is None:
        return None
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # a folder that cannot be written to
            return None
        try:
            _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode("ascii", "replace").strip()
            os.close(file)
            who = f", as process {holder}" if holder.isdigit() else ""
            raise Taken(f"{what} already{who}: stop that one first.") from None
        except OSError:  # a file system without locks
            os.close(file)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
                return file
        os.close(file)  # removed while we waited for it: what we hold is nobody's lock
