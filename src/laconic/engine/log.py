"""Columns that grow chunk by chunk: in memory while they are small, in a temporary file when they are not."""

from __future__ import annotations

import tempfile
from typing import IO, Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine.chunk import COLUMNS

_IN_MEMORY = 64 * 2**20
_COUNTED = {"sent", "outside", "message_sizes"}  # columns that are summed over rounds that are not kept


@final
class Log:
    """Appends chunks of columns; ``columns`` gives them whole.

    Streams may be longer than memory. Beyond 64 MB the log is written to nameless temporary files, from which the
    finished columns are mapped: a long run costs disk, not memory.
    """

    def __init__(self, every: int = 1, first: int = 0) -> None:
        self._every, self._round = every, first
        self._counted: dict[str, Array | None] = {}
        self._since, self._last = 0, dict[str, Array]()  # rounds since one was kept, and what is kept of the last one
        self._size = 0
        self._chunks: list[dict[str, Array]] = []
        self._files: dict[str, IO[bytes]] = {}
        self._rows = 0
        self._forms: dict[str, tuple[Any, tuple[int, ...]]] = {}

    def append(self, columns: dict[str, Array]) -> None:
        """Add the rounds of one chunk; every chunk has the same columns."""
        if self._every > 1 and len(columns["labels"]):
            columns = self._thinned(columns)
        self._keep(columns)

    def _keep(self, columns: dict[str, Array]) -> None:
        n_rounds = len(columns["labels"])
        if n_rounds == 0:
            return
        outside = columns["outside"]
        if outside.size and not outside.any():  # as mostly: one zero stands for all
            columns = {**columns, "outside": np.broadcast_to(outside[:1, :1].copy(), outside.shape)}
        self._rows += n_rounds
        self._forms = {name: (column.dtype, column.shape[1:]) for name, column in columns.items()}
        self._chunks.append(columns)
        self._size += sum(column.nbytes for column in columns.values())
        if self._size > _IN_MEMORY:
            self._spill()

    def _thinned(self, columns: dict[str, Array]) -> dict[str, Array]:
        """Every so many rounds the columns of that round, and what was sent since one was kept before."""
        n_rounds, every = len(columns["labels"]), self._every
        kept = np.arange(every - 1 - self._round % every, n_rounds, every)
        thin = {name: column[kept] for name, column in columns.items() if name not in _COUNTED}
        for name in _COUNTED & columns.keys():
            since, rows = self._counted.get(name), []
            for start, stop in zip([0, *(kept + 1)], [*(kept + 1), n_rounds], strict=True):
                rows.append(_added(since, columns[name][start:stop], np.uint32 if name == "sent" else np.int64))
                since = None
            self._counted[name] = rows.pop()
            shape = (len(kept), *columns[name].shape[1:])
            if all(row is None for row in rows):
                thin[name] = np.broadcast_to(np.zeros((), dtype=np.int64), shape)
            else:
                thin[name] = np.zeros(shape, dtype=np.int64)
                for place, row in zip(thin[name], rows, strict=True):
                    place[:] = 0 if row is None else row
        spans = np.diff(kept, prepend=-1 - self._since)
        thin["outside"] = thin["outside"] / spans[:, None].astype(np.float32)
        thin["info.rounds"] = self._round + 1 + kept
        self._round += n_rounds
        self._since = n_rounds - 1 - int(kept[-1]) if len(kept) else self._since + n_rounds
        if self._since:  # copies, so that nobody has to keep the chunk
            self._last = {name: column[-1:].copy() for name, column in columns.items() if name not in _COUNTED}
        return thin

    def _keep_last(self) -> None:
        """The last round is kept, too, with what was sent since the one before: all is counted then."""
        if not self._since:
            return
        last = dict(self._last)
        for name, row in self._counted.items():
            shape = last["labels"].shape[:2]
            last[name] = np.zeros(shape, dtype=np.int64) if row is None else row[None].astype(np.int64)
        last["outside"] = last["outside"] / np.float32(self._since)
        last["info.rounds"] = np.array([self._round])
        self._since, self._counted = 0, {}
        self._keep(last)

    def _spill(self) -> None:
        for name in self._forms:
            if name not in self._files:
                self._files[name] = tempfile.TemporaryFile()  # noqa: SIM115 (closed once it is mapped)
            for chunk in self._chunks:
                self._files[name].write(np.ascontiguousarray(chunk[name]).data)
        self._chunks, self._size = [], 0

    def columns(self, n_agents: int, dtype: str) -> dict[str, Array]:
        """Every column over all rounds; of a run without rounds, empty ones."""
        self._keep_last()
        if self._rows == 0:
            return _no_columns(n_agents, dtype)
        if not self._files:
            chunks, self._chunks = self._chunks, []
            return {name: _joined([chunk.pop(name) for chunk in chunks]) for name in self._forms}
        self._spill()
        mapped: dict[str, Array] = {}
        for name, (kind, shape) in self._forms.items():
            file = self._files[name]
            file.flush()
            mapped[name] = np.memmap(file, dtype=kind, mode="r", shape=(self._rows, *shape))
            file.close()
        self._files = {}
        return mapped


def _added(since: Array | None, rounds: Array, kind: Any) -> Array | None:
    """The sum over some rounds and those ``since``, which is written over; None as long as nothing is to be counted.

    Round by round, since what NumPy needs for it all at once is twice as large.
    """
    if not rounds.any():
        return since
    total = np.zeros(rounds.shape[1:], dtype=kind) if since is None else since
    for row in rounds:
        total += row
    return total


def _joined(parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    if all(part.ndim == 2 and part.strides == (0, 0) for part in parts):
        return np.broadcast_to(parts[0][:1], (sum(map(len, parts)), parts[0].shape[1]))
    return np.concatenate(parts)


def _no_columns(n_agents: int, dtype: str) -> dict[str, Array]:
    wide = {"predictions": dtype, "labels": dtype, "sent": "bool", "outside": "int32"}
    empty: dict[str, Array] = {name: np.empty((0, n_agents), dtype=kind) for name, kind in wide.items()}
    return empty | {name: np.empty(0) for name in COLUMNS[3:6]}
