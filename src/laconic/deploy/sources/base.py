"""What a source of samples is: a small buffer between whatever brings samples and the agent that learns from them.

A driver has one loop and must not block in a source. So a source gathers samples on a thread of its own, or in the
callback of a library, and only *wakes* the driver, which takes them one by one when its agent is ready for them:

    source.start(wake=lambda: events.put(SAMPLES))
    ...
    sample = source.next()      # None: nothing now; `wake` is called as soon as that changes

After ``next`` has returned None there is always a call of ``wake`` when a sample comes or the source ends; before that
there may be none. Sources that can wait (a file, a pipe) stop reading while the buffer is full, so nothing is lost and
an agent in lockstep takes samples as fast as it learns. Sources that cannot (a sensor) push out the oldest sample.
"""

from __future__ import annotations

import logging
import math
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from laconic._validate import Array
from laconic.deploy.sources.reading import BadSample, Reader

log = logging.getLogger("laconic.deploy.source")


class Reading(NamedTuple):
    """What an agent learns from in one round.

    Attributes
    ----------
    x : array (n_inputs,)
    y : float
        NaN if there is no label: then the agent predicts and does not learn from it. Where labels are classes, the
        place of one among them.
    time : float, optional
        When it was measured, in whatever unit the sender uses, if the sender said so.
    """

    x: Array
    y: float
    time: float | None = None


class Source(ABC):
    """Base of all sources. Subclasses fill in ``_open`` and ``_shut``, and call ``_take`` and ``_end``.

    Parameters
    ----------
    reader : Reader
        Turns bytes into samples, and refuses what is none.
    label : str
        What log lines call this source: the agent's name.
    buffer : int
        How many samples may wait.

    Attributes
    ----------
    counts : Counter
        "samples" taken in, those "unlabelled" among them, "dropped" since they made no sense, and "lost" because they
        came faster than they were learned from.
    failure : str or None
        Why no more samples can be read, if the source has ended for another reason than that there are no more.
    """

    def __init__(self, reader: Reader, label: str, buffer: int) -> None:
        self.reader, self.label = reader, label
        self.counts: Counter[str] = Counter(samples=0, unlabelled=0, dropped=0, lost=0)
        self._capacity = buffer
        self._waiting: deque[Reading] = deque()
        self._room = threading.Condition()
        self._wake: Callable[[], None] = lambda: None
        self._over = self._closed = False
        self.failure: str | None = None

    def start(self, wake: Callable[[], None], skip: int = 0) -> None:
        """Begin to gather samples.

        Parameters
        ----------
        wake : callable
            Called from any thread when ``next`` or ``ended`` have news; it must be quick and must not raise.
        skip : int
            Samples to pass over: an agent that comes back has taken so many. Only a file can heed it; elsewhere what
            was said before one listened is gone.

        Raises
        ------
        ValueError, OSError
            If there is nothing to read from. What goes wrong later is logged, and ends the source with a ``failure``.
        """
        self._wake = wake
        self._open(skip)

    def next(self) -> Reading | None:
        """The sample that has waited longest, or None if none waits. Never blocks."""
        with self._room:
            sample = self._waiting.popleft() if self._waiting else None
            if len(self._waiting) <= self._capacity // 2:
                self._room.notify()
        return sample

    @property
    def ended(self) -> bool:
        """Whether no sample waits and none will ever come."""
        with self._room:
            return self._over and not self._waiting

    def close(self) -> None:
        """Stop gathering and free all resources; may be called twice."""
        with self._room:
            first, self._closed, self._over = not self._closed, True, True
            self._room.notify_all()
        if first:
            self._shut()

    @abstractmethod
    def _open(self, skip: int) -> None:
        """Begin; called once, by ``start``."""

    @abstractmethod
    def _shut(self) -> None:
        """Stop and free; called once, by ``close``."""

    def _log(self, level: int, event: str, **fields: object) -> None:
        """A few fixed words, and what varies as fields."""
        log.log(level, event, extra={"agent": self.label, **fields})

    def _drop(self, why: object) -> None:
        """Count a bad sample, and say so the first, second, fourth, eighth ... time: a log must not drown in them."""
        with self._room:
            self.counts["dropped"] += 1
            n = self.counts["dropped"]
        if n & (n - 1) == 0:
            self._log(logging.WARNING, "bad sample dropped", count=n, why=str(why))

    def _read(self, data: bytes) -> Reading | None:
        """The sample that ``data`` holds; None, counted and logged, if it holds none."""
        try:
            x, y, time = self.reader(data)
        except BadSample as error:
            self._drop(error)
            return None
        return Reading(x, y, time)

    def _offer(self, sample: Reading, patient: bool) -> bool:
        """Put ``sample`` into the buffer: wait for room, or make some. False if the source was closed meanwhile."""
        with self._room:
            if patient and len(self._waiting) >= self._capacity:
                # Half of the buffer at a time: a switch of threads for every single sample would cost more than it.
                self._room.wait_for(lambda: self._over or len(self._waiting) <= self._capacity // 2)
            if self._over:
                return False
            news = not self._waiting
            if len(self._waiting) >= self._capacity:
                self._waiting.popleft()
                self._lose()
            self._waiting.append(sample)
            self.counts["samples"] += 1
            self.counts["unlabelled"] += math.isnan(sample.y)
        if news:
            self._wake()
        return True

    def _take(self, data: bytes) -> None:
        """Read ``data`` that was pushed here and keep its sample. Never raises: callbacks of libraries call it."""
        try:
            sample = self._read(data)
            if sample is not None:
                self._offer(sample, patient=False)
        except Exception as error:
            with suppress(Exception):  # the library's thread is not ours to end
                self._fail(error)

    def _lose(self) -> None:
        self.counts["lost"] += 1
        n = self.counts["lost"]
        if n & (n - 1) == 0:
            self._log(logging.WARNING, "sample lost", count=n, why="they come faster than they are learned from")

    def _fail(self, error: Exception) -> None:
        """End the source because of an error, which may be the system's or a mistake of ours."""
        known = isinstance(error, OSError)
        self.failure = str(error) if known else f"{type(error).__name__}: {error}"
        about = {"agent": self.label, "why": self.failure}
        log.error("samples cannot be read", exc_info=None if known else error, extra=about)
        self._end()

    def _end(self) -> None:
        """End the source: no sample comes any more."""
        with self._room:
            self._over = True
        self._wake()
