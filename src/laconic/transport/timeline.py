"""Virtual time: a clock that is only a number, what is to happen by it, and the chance that one seed decides."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np


@final
class Timeline:
    """Lets things happen in the order of virtual time; what is due at the same moment, in the order it was arranged.

    Examples
    --------
    >>> timeline, said = Timeline(seed=0), []
    >>> timeline.at(2.0, said.append, "second")
    >>> timeline.at(1.0, said.append, "first")
    >>> timeline.run(until=1.5)
    >>> timeline.now, said
    (1.5, ['first'])
    """

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self._random = np.random.default_rng(seed)
        self._numbers: list[float] = []
        self._queue: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: float, action: Callable[..., object], *arguments: Any) -> None:
        """Let something happen."""
        self._count += 1
        heapq.heappush(self._queue, (time, self._count, action, arguments))

    def after(self, delay: float, action: Callable[..., object], *arguments: Any) -> None:
        """Let something happen in a while."""
        self.at(self.now + delay, action, *arguments)

    def draw(self, low: float, high: float) -> float:
        """A random number."""
        if not self._numbers:
            self._numbers = self._random.random(256).tolist()
        return low + (high - low) * self._numbers.pop()

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until that moment, or until ``done``."""
        while self._queue and self._queue[0][0] <= until:
            if done():
                return
            self.now, _, action, arguments = heapq.heappop(self._queue)
            action(*arguments)
        self.now = max(self.now, until)


@final
class HostClock:
    """A clock of a host: it agrees with virtual time except while somebody makes it run faster, slower, or leap ahead.

    Parameters
    ----------
    rates : iterable of (start, stop, rate)
        From when until when it runs ``rate`` times as fast; of those that overlap, the one farthest from 1 holds.
    leaps : iterable of (time, seconds)
        When it leaps ahead, and how far.

    Examples
    --------
    >>> clock = HostClock([(1.0, 2.0, 3.0)], leaps=[(5.0, 100.0)])
    >>> clock.local(0.5), clock.local(1.5), clock.local(4.0), clock.local(5.0)
    (0.5, 2.5, 6.0, 107.0)
    >>> clock.virtual(2.5), clock.virtual(50.0)
    (1.5, 5.0)
    """

    def __init__(self, rates: Iterable[tuple[float, float, float]], leaps: Iterable[tuple[float, float]] = ()) -> None:
        rates, leaps = tuple(rates), tuple(leaps)
        times = {0.0, *(time for start, stop, _ in rates for time in (start, stop)), *(time for time, _ in leaps)}
        self._virtual = sorted(times)
        self._rates = []
        for t in self._virtual:
            holding = [1.0, *(rate for start, stop, rate in rates if start <= t < stop)]
            self._rates.append(max(holding, key=lambda rate: abs(math.log(rate))))
        self._local = [0.0]
        for k in range(1, len(self._virtual)):
            passed = (self._virtual[k] - self._virtual[k - 1]) * self._rates[k - 1]
            leapt = sum(seconds for time, seconds in leaps if time == self._virtual[k])
            self._local.append(self._local[-1] + passed + leapt)

    def local(self, virtual: float) -> float:
        """What the clock shows."""
        k = bisect_right(self._virtual, virtual) - 1
        return self._local[k] + (virtual - self._virtual[k]) * self._rates[k]

    def virtual(self, local: float) -> float:
        """When the clock will show it, or more."""
        k = bisect_right(self._local, local) - 1
        time = self._virtual[k] + (local - self._local[k]) / self._rates[k]
        return min([time, *self._virtual[k + 1 : k + 2]])
