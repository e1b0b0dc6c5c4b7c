"""Files that are written whole or not at all, and paths that begin with a home."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name only when all is written and on disk; else the old one stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
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
