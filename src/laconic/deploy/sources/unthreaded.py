"""Samples without a thread: a file that is read by whoever asks for the next one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

from laconic.deploy.sources.base import Reading, Source
from laconic.deploy.sources.text import FileSource


@final
class UnthreadedFile(Source):
    """A file that is read when a sample is asked for: for runs in which time is only a number.

    Parameters
    ----------
    file : FileSource
        What to read and how; not started. It must have no ``rate``, which would be one of real time.
    """

    def __init__(self, file: FileSource) -> None:
        if file.rate is not None:
            raise ValueError(f"file must have no rate to be read without a thread, got {file.rate:g} samples a second.")
        super().__init__(file.reader, file.label, buffer=1)
        self.counts = file.counts
        self._file = file
        self._samples: Iterator[Reading] | None = None

    def next(self) -> Reading | None:
        """The next sample of the file; None before it is started, and at its end."""
        if self._samples is None or self._over:
            return None
        try:
            sample = next(self._samples, None)
        except Exception as error:
            self._fail(error)
            return None
        if sample is None:
            self._over = True
        else:
            self.counts["samples"] += 1
            self.counts["unlabelled"] += math.isnan(sample.y)
        return sample

    def _open(self, skip: int) -> None:
        self._samples = self._file.prepare(skip)

    def _shut(self) -> None:
        self._file.close()
