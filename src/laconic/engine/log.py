"""Columns that grow chunk by chunk: in memory while they are small, in a temporary file when they are not."""

from __future__ import annotations

import tempfile
from typing import IO, Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine.chunk import COLUMNS

_IN_MEMORY = 64 * 2**20


@final
class Log:
    """Appends chunks of columns; ``columns`` gives them whole.

    Streams may be longer than memory. Beyond 64 MB the log is written to nameless temporary files, from which the
    finished columns are mapped: a long run costs disk, not memory.
    """

    def __init__(self) -> None:
        self._size = 0
        self._chunks: list[dict[str, Array]] = []
        self._files: dict[str, IO[bytes]] = {}
        self._rows = 0
        self._forms: dict[str, tuple[Any, tuple[int, ...]]] = {}

    def append(self, columns: dict[str, Array]) -> None:
        """Add the rounds of one chunk; every chunk has the same columns."""
        n_rounds = len(columns["labels"])
        if n_rounds == 0:
            return
        self._rows += n_rounds
        self._forms = {name: (column.dtype, column.shape[1:]) for name, column in columns.items()}
        self._chunks.append(columns)
        self._size += sum(column.nbytes for column in columns.values())
        if self._size > _IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        for name in self._forms:
            if name not in self._files:
                self._files[name] = tempfile.TemporaryFile()  # noqa: SIM115 (closed once it is mapped)
            for chunk in self._chunks:
                self._files[name].write(np.ascontiguousarray(chunk[name]).data)
        self._chunks, self._size = [], 0

    def columns(self, n_agents: int, dtype: str) -> dict[str, Array]:
        """Every column over all rounds; of a run without rounds, empty ones."""
        if self._rows == 0:
            return _no_columns(n_agents, dtype)
        if not self._files:
            return {name: _joined([chunk[name] for chunk in self._chunks]) for name in self._forms}
        self._spill()
        mapped: dict[str, Array] = {}
        for name, (kind, shape) in self._forms.items():
            file = self._files[name]
            file.flush()
            mapped[name] = np.memmap(file, dtype=kind, mode="r", shape=(self._rows, *shape))
            file.close()
        self._files = {}
        return mapped


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _no_columns(n_agents: int, dtype: str) -> dict[str, Array]:
    wide = {"predictions": dtype, "labels": dtype, "sent": "bool", "outside": "int32"}
    empty: dict[str, Array] = {name: np.empty((0, n_agents), dtype=kind) for name, kind in wide.items()}
    return empty | {name: np.empty(0) for name in COLUMNS[3:6]}
