"""Finished pieces of a reproduction: each is kept with what it is a function of, and is not computed twice.

A piece is a file and the key it was made from (data, seed, parameters, version). It is written whole or not at all, so
a run that was killed goes on from the last finished piece, and a piece whose key has changed is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from laconic._files import written_whole
from laconic._version import __version__
from laconic.trace import Trace

Key = Mapping[str, Any]


@final
class Pieces:
    """The folder of a reproduction."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def value(self, name: str, key: Key, compute: Callable[[], Any]) -> Any:
        """Compute a JSON value, or read it if it was computed before."""
        path = self.folder / f"{name}.json"
        kept = _read(path)
        if kept is not None and kept.get("key") == _plain(key):
            return kept["value"]
        value = _plain(compute())
        _write(path, {"key": _plain(key), "value": value})
        return value

    def has(self, name: str, key: Key) -> bool:
        """Whether the piece is there already."""
        kept = _read(self.folder / f"{name}.json")
        return kept is not None and kept.get("key") == _plain(key)

    def trace_path(self, name: str) -> Path:
        """Where the trace of that name lies."""
        return self.folder / f"{name}.npz"

    def trace(self, name: str) -> Trace:
        """Load the trace of that name."""
        return Trace.load(self.trace_path(name))

    def keep_trace(self, name: str, trace: Trace) -> None:
        """Keep a trace; its row is written after it, so that a row always has its trace."""
        path = self.trace_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        trace.save(path)


def _plain(value: Any) -> Any:
    """``value`` as JSON gives it back."""
    return json.loads(json.dumps(value, default=_number))


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return kept if isinstance(kept, dict) and kept.get("version") == __version__ else None


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps({"version": __version__, **content}).encode())
