"""The threads that compute the rounds of many agents: one thread all of them, or several a share of the rows each.

Threads wait for each other between the stages of a round without spinning, and never write to the same row. What they
compute does not depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import final

import numpy as np

from laconic.engine import endings
from laconic.native.binding import INTEGER, POINTER, function
from laconic.native.run import Run, Scratch, Stream

#: The stages of a round, as in ``core/rounds.c``.
CHECK, LEARN, APPLY, COMBINE, MEAN, MEASURE, TOPS, UNITS, FINISH = (1 << k for k in range(9))
ALL = CHECK | LEARN | APPLY | COMBINE | MEAN | MEASURE | TOPS | UNITS | FINISH
RESUM = 1 << 9


def model_scale(peak: float, n_terms: int, itemsize: int) -> float:
    """The power of two by which the entries of models up to ``peak`` are multiplied before they are summed up."""
    bits = 62
    while n_terms > 1:
        n_terms, bits = (n_terms + 1) // 2, bits - 1
    most, least = (22, -100) if itemsize == 4 else (51, -900)
    exponent = math.frexp(peak)[1] if peak > 0.0 else 0
    return math.ldexp(1.0, min(bits, most) - max(exponent, least))


@final
class Workers:
    """Threads, and the room that each of them works in."""

    def __init__(self, run: Run, make_scratch: Callable[[int], Scratch], n_threads: int) -> None:
        self._state, self._n_rows = run, run.n_rows
        self._bounds = np.linspace(0, run.n_rows, n_threads + 1).astype(int).tolist()
        self._rooms = [make_scratch(part) for part in range(n_threads)]
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        precision = 8 * run.array("weights").itemsize
        self._advance = function(f"advance_f{precision}", *[POINTER] * 3, *[INTEGER] * 5)

    def _call(self, room: int, stream: Stream, stages: int, begin: int, end: int, first: int, last: int) -> int:
        run, scratch = self._state.address, self._rooms[room].address
        ended: int = self._advance(run, scratch, stream.address, stages, begin, end, first, last)
        return ended

    def run(self, stream: Stream, n_rounds: int) -> tuple[int, int]:
        """All rounds of a chunk: how they ended, and at which row."""
        if self._pool is None:
            ended = self._call(0, stream, ALL, 0, self._n_rows, 0, n_rounds)
            return ended & 3, ended >> 2
        ending = endings.FINISHED, n_rounds * self._n_rows
        for t in range(n_rounds):
            ending = self._round(stream, t)
            if ending[0] != endings.FINISHED:
                break
        return ending

    def _round(self, stream: Stream, t: int) -> tuple[int, int]:
        for stages in (CHECK, LEARN):
            ended = self.everywhere(stream, stages, t)
            if ended[0] != endings.FINISHED:
                return ended
        last = self._state.combines_last
        if last:
            self.everywhere(stream, APPLY, t)
            self.everywhere(stream, COMBINE, t)
        if self.once(stream, MEAN, t)[0] == endings.AGAIN:
            self.everywhere(stream, RESUM, t)
            self.once(stream, MEAN, t)
        self.everywhere(stream, MEASURE if last else APPLY | MEASURE, t)
        return self.once(stream, TOPS | UNITS | FINISH, t)

    def once(self, stream: Stream, stages: int, t: int, end: int | None = None) -> tuple[int, int]:
        """A stage that is done by one thread for all rows."""
        ended = self._call(0, stream, stages, 0, self._n_rows if end is None else end, t, t + 1)
        return ended & 3, ended >> 2

    def everywhere(self, stream: Stream, stages: int, t: int) -> tuple[int, int]:
        """A stage by all threads, each with its share of the rows; the first of those that did not finish."""
        if self._pool is None:
            return self.once(stream, stages, t)
        waiting = [
            self._pool.submit(self._call, room, stream, stages, begin, end, t, t + 1)
            for room, (begin, end) in enumerate(zip(self._bounds[:-1], self._bounds[1:], strict=True))
        ]
        found = [one.result() for one in waiting]
        ended = [(one & 3, one >> 2) for one in found]
        return min((one for one in ended if one[0] != endings.FINISHED), key=lambda one: one[1], default=ended[-1])
