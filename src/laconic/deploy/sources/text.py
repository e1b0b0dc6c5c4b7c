"""Samples as text, a line each: standard input, and files that are replayed."""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, final

from laconic.deploy.sources.base import Reading, Source
from laconic.deploy.sources.reading import BadSample, Reader

_CHUNK = 65_536
_BEHIND = 1.0  # seconds that a replay may lag before it stops trying to catch up


class Lines:
    r"""Cuts chunks of bytes into lines, of which none may be longer than ``limit``.

    >>> lines = Lines(limit=5)
    >>> [list(lines.feed(chunk)) for chunk in (b"ab\ncd", b"e\nfar too long", b"\nf")], list(lines.rest())
    ([[b'ab'], [b'cde'], [None]], [b'f'])
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = b""
        self._overflowed = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that ``chunk`` completes; None for one that was too long."""
        *complete, last = (self._open + chunk).split(b"\n")
        for line in complete:
            yield None if self._overflowed or len(line) > self._limit else line
            self._overflowed = False
        # Of a line without end only a little more than the limit is kept, enough to know that it is too long.
        self._overflowed = self._overflowed or len(last) > self._limit
        self._open = b"" if self._overflowed else last

    def rest(self) -> Iterator[bytes | None]:
        """The last line, if no newline came after it."""
        if self._open or self._overflowed:
            yield None if self._overflowed else self._open
        self._open, self._overflowed = b"", False


class TextSource(Source):
    """Lines of JSON or rows of a table, read on a thread that waits while the buffer is full."""

    def __init__(self, reader: Reader, label: str, buffer: int) -> None:
        super().__init__(reader, label, buffer)
        self._thread: threading.Thread | None = None

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"samples of {self.label}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for sample in self._samples():
                if not self._offer(sample, patient=True):
                    break
        except Exception as error:
            self._fail(error)
        else:
            self._end()

    @abstractmethod
    def _samples(self) -> Iterator[Reading]:
        """All samples, at the time when they are due. Runs on the thread."""

    def _read_line(self, line: bytes | None) -> Reading | None:
        try:
            if line is None:
                raise BadSample(f"a line is longer than a sample can need ({self.reader.limit} bytes)")
            parts = self.reader.row(line)
        except BadSample as error:
            self._drop(error)
            return None
        return None if parts is None else Reading(*parts)

    def _join(self) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


@final
class StdinSource(TextSource):
    """Standard input: JSON lines or CSV, until it ends.

    It is read by its file descriptor and only when there is something to read. A thread that blocked inside Python's
    own buffered ``sys.stdin`` could not be stopped, and would crash the interpreter as it shuts down.
    """

    def __init__(self, reader: Reader, label: str, buffer: int = 256, descriptor: int | None = None) -> None:
        super().__init__(reader, label, buffer)
        self._descriptor = descriptor
        self._bell, self._ringer = -1, -1

    def _open(self, skip: int) -> None:
        if self._descriptor is None:
            try:
                self._descriptor = sys.stdin.fileno()
            except (AttributeError, OSError, ValueError):
                raise ValueError("there is no standard input to read samples from.") from None
        self.reader.new_table()
        self._bell, self._ringer = os.pipe()
        self._begin()

    def _samples(self) -> Iterator[Reading]:
        assert self._descriptor is not None  # set by _open
        lines = Lines(self.reader.limit)
        while True:
            ready, _, _ = select.select([self._descriptor, self._bell], [], [])
            if self._bell in ready:
                return
            chunk = os.read(self._descriptor, _CHUNK)
            for line in lines.feed(chunk) if chunk else lines.rest():
                sample = self._read_line(line)
                if sample is not None:
                    yield sample
            if not chunk:
                return

    def _shut(self) -> None:
        if self._ringer >= 0:
            os.write(self._ringer, b"!")
            self._join()
            os.close(self._bell)
            os.close(self._ringer)


@final
class FileSource(TextSource):
    """A file of JSON lines or CSV, replayed from its beginning.

    Parameters
    ----------
    reader, label, buffer
        As for ``Source``.
    path : Path
    rate : float, optional
        Samples a second. Default: as fast as they are taken.
    loop : bool
        Whether to begin again at the end.
    """

    def __init__(
        self,
        reader: Reader,
        label: str,
        buffer: int = 256,
        *,
        path: Path,
        rate: float | None = None,
        loop: bool = False,
    ) -> None:
        super().__init__(reader, label, buffer)
        self.path, self.rate, self.loop = path, rate, loop
        self._skip = 0
        self._file: BinaryIO | None = None
        self._stop = threading.Event()

    def _open(self, skip: int) -> None:
        self.prepare(skip)
        self._begin()

    def prepare(self, skip: int) -> Iterator[Reading]:
        """Open the file and refuse what is none; all its samples but the first ``skip``, each when it is due."""
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} must be a file to replay; a pipe is read from standard input.")
        self._file = self.path.open("rb")
        try:
            self._check_header(self._file)
        except BaseException:
            self._file.close()
            raise
        self._skip = skip
        if skip:
            self._log(logging.INFO, "passes over samples", path=str(self.path), count=skip)
        return self._samples()

    def _check_header(self, file: BinaryIO) -> None:
        """Refuse at once a table that lacks a column that was asked for."""
        line = next((line for line in iter(lambda: file.readline(self.reader.limit), b"") if line.strip()), b"")
        self.reader.new_table()
        with suppress(BadSample):  # which is counted when it is read in its turn
            self.reader.row(line)
        missing = self.reader.missing_columns()
        if missing:
            raise ValueError(f"{self.path} has no column {missing[0]!r} in its first row, which must name them.")

    def _samples(self) -> Iterator[Reading]:
        due = time.monotonic()
        to_skip = self._skip
        while True:
            found = 0
            for sample in self._pass():
                found += 1
                if to_skip:
                    to_skip -= 1
                    continue
                if self.rate is not None:
                    now = time.monotonic()
                    due = now if now - due > _BEHIND else due
                    if self._stop.wait(max(0.0, due - now)):
                        return
                    due += 1 / self.rate
                yield sample
            if self._stop.is_set():
                return
            if not self.loop:
                if to_skip:
                    self._log(logging.WARNING, "fewer samples than were taken", path=str(self.path), count=found)
                return
            if not found:
                raise OSError(f"{self.path} holds no sample to replay.")
            to_skip %= found

    def _pass(self) -> Iterator[Reading]:
        """All samples of the file, once."""
        assert self._file is not None  # set by _open
        self._file.seek(0)
        self.reader.new_table()
        lines = Lines(self.reader.limit)
        ended = False
        while not ended and not self._stop.is_set():
            chunk = self._file.read(_CHUNK)
            ended = not chunk
            for line in lines.rest() if ended else lines.feed(chunk):
                sample = self._read_line(line)
                if sample is not None:
                    yield sample

    def _shut(self) -> None:
        self._stop.set()
        self._join()
        if self._file is not None:
            self._file.close()
