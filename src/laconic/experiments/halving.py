"""Successive halving: many candidates on a short prefix of the stream, the better half of them on twice as much.

With n candidates and the whole stream at the end this costs about log2(n) whole runs instead of n (Jamieson and
Talwalkar, 2016); what is slow to start and good in the end may be lost, so the first prefix should not be too short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from laconic._worded import ArgumentError

Candidate = TypeVar("Candidate")

SHORTEST = 1 / 8


@final
@dataclass(frozen=True)
class Halved(Generic[Candidate]):
    """What is left.

    Attributes
    ----------
    best : candidate
    score : float
        Its score on ``share`` of the stream.
    share : float
        1, unless time was over before.
    tried : list of (candidate, share, score)
        All that was computed, in its order.
    """

    best: Candidate
    score: float
    share: float
    tried: list[tuple[Candidate, float, float]]


def halve(
    candidates: Iterable[Candidate],
    score: Callable[[Candidate, float], float],
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Halved[Candidate]:
    """Find the candidate of the least ``score(candidate, share)``, with shares of the stream that double up to 1.

    Where ``seconds`` are over, nothing new is begun: the best on the largest share that was begun is returned. The
    first share is at most 1/8, and short enough that one candidate is left when it has doubled to 1.

    Examples
    --------
    >>> halve([0.1, 1.0, 10.0], lambda width, share: abs(width - 2) / share).best
    1.0
    """
    left = list(candidates)
    if not left:
        raise ArgumentError("candidates", "must not be empty.")
    started, share = clock(), 1.0
    while len(left) > 1 and (share > SHORTEST or len(left) * share > 1):
        share /= 2
    tried: list[tuple[Candidate, float, float]] = []
    while True:
        scores: list[tuple[float, Any]] = []
        for place, candidate in enumerate(left):
            if seconds is not None and tried and clock() - started >= seconds:
                break
            scores.append((score(candidate, share), place))
            tried.append((candidate, share, scores[-1][0]))
        over = len(scores) < len(left)
        if over and len(scores) < 2:  # one alone on a larger share says nothing of the others
            share, (best, value) = _before(tried, share)
            return Halved(best, value, share, tried)
        value, place = min(scores)
        if over or share >= 1:
            return Halved(left[place], value, share, tried)
        left = [left[k] for _, k in sorted(scores)[: max(1, (len(left) + 1) // 2)]]
        share = 1.0 if len(left) == 1 else min(1.0, 2 * share)


def _before(tried: list[tuple[Candidate, float, float]], share: float) -> tuple[float, tuple[Candidate, float]]:
    """The best on the share before this one, and which that was; on this one if it was the first."""
    earlier = [one for one in tried if one[1] < share] or tried
    last = max(one[1] for one in earlier)
    best = min((one for one in earlier if one[1] == last), key=lambda one: one[2])
    return last, (best[0], best[2])
