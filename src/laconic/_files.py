"""Files that are written whole or not at all, and paths that begin with a home."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_USUAL_MODE = 0o666  # less the umask


@contextmanager
def written_whole(path: Path, mode: int = _USUAL_MODE) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name only when all is written and on disk; else the old one stays.

    It has the permissions ``mode``, less the umask, from the moment that it exists. What processes left that were
    killed while they wrote ``path`` is removed.
    """
    _remove_left(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # left by an earlier process of this number
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with ``~`` or ``~user`` at its beginning replaced by that home.

    >>> expanded("~no-such-user/samples.csv")
    Traceback (most recent call last):
    ValueError: '~no-such-user/samples.csv' begins with the home of a user that is not known here.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{str(path)!r} begins with the home of a user that is not known here.") from None


def _remove_left(path: Path) -> None:
    """Remove temporary files of ``path`` whose processes are gone."""
    temporary = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+)\.tmp")
    with suppress(OSError):  # they do no harm but take room
        for other in path.parent.iterdir():
            found = temporary.fullmatch(other.name)
            if found and not _is_alive(int(found[1])):
                other.unlink(missing_ok=True)


def _is_alive(number: int) -> bool:
    """Whether there is a process of that number; where it cannot be asked without harm, as on Windows, there is."""
    try:
        if os.name == "posix":
            os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
