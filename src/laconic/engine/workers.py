"""Who computes the rounds of many agents: one thread all of them, or several a share of the rows each.

Threads wait for each other between the stages of a round without spinning, and never write to the same row. What they
compute does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, final

import numpy as np

from laconic._validate import Array
from laconic.engine import endings, rounds
from laconic.engine.lifting import Front


class Worker(NamedTuple):
    """What one thread works with."""

    scratch: rounds.Scratch
    front: Front
    panel: Any


Call = Callable[[Worker, int, int, int, int, int], tuple[int, int]]
MakeScratch = Callable[[Array, Array, Array], tuple[rounds.Scratch, Front]]


@final
class Workers:
    """Threads, and the room that each of them works in."""

    def __init__(self, make_scratch: MakeScratch, experts: Any, n_rows: int, n_threads: int, sums: rounds.Sums) -> None:
        self._n_rows = n_rows
        self._bounds = np.linspace(0, n_rows, n_threads + 1).astype(int).tolist()
        whole = np.int32 if sums.tops.itemsize == 4 else np.int64
        self._workers = []
        for k in range(n_threads):
            part = slice(k, k + 1)
            scratch, front = make_scratch(np.zeros(sums.totals[part].shape, whole), sums.tops[part], sums.totals[part])
            self._workers.append(Worker(scratch, front, None if experts is None else experts.for_thread()))
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def run(self, call: Call, n_rounds: int, combines_last: bool) -> tuple[int, int]:
        """All rounds of a chunk: how they ended, and where."""
        if self._pool is None:
            return call(self._workers[0], rounds.ALL, 0, self._n_rows, 0, n_rounds)
        ended = endings.FINISHED, n_rounds * self._n_rows
        for t in range(n_rounds):
            ended = self._round(call, t, combines_last)
            if ended[0] != endings.FINISHED:
                break
        return ended

    def _round(self, call: Call, t: int, combines_last: bool) -> tuple[int, int]:
        for stages in (rounds.CHECK, rounds.LEARN):
            ended = self.everywhere(call, stages, t)
            if ended[0] != endings.FINISHED:
                return ended
        if combines_last:
            self.everywhere(call, rounds.APPLY, t)
            self.everywhere(call, rounds.HEAR, t)
        if self.once(call, rounds.MEAN, t)[0] == endings.AGAIN:
            self.everywhere(call, rounds.RESUM, t)
            self.once(call, rounds.MEAN, t)
        self.everywhere(call, rounds.MEASURE if combines_last else rounds.APPLY | rounds.MEASURE, t)
        return self.once(call, rounds.TOPS | rounds.UNITS | rounds.FINISH, t)

    def once(self, call: Call, stages: int, t: int) -> tuple[int, int]:
        """A stage that is done by one for all."""
        return call(self._workers[0], stages, 0, self._n_rows, t, t + 1)

    def everywhere(self, call: Call, stages: int, t: int) -> tuple[int, int]:
        """A stage by all threads, each with its share of the rows; the first of those that did not finish."""
        if self._pool is None:
            return self.once(call, stages, t)
        waiting = [
            self._pool.submit(call, worker, stages, begin, end, t, t + 1)
            for worker, begin, end in zip(self._workers, self._bounds[:-1], self._bounds[1:], strict=True)
        ]
        ended = [one.result() for one in waiting]
        return min((one for one in ended if one[0] != endings.FINISHED), key=lambda one: one[1], default=ended[-1])
