"""What is known of a running site: the last that each agent said, how it went so far, and what happened, in words.

Whoever hears agents puts it here, on any thread; whoever shows it asks what has changed since he last asked. So a slow
reader misses moments, never the state, and nothing piles up for him.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, final

from laconic._reports import count, measurement
from laconic.dashboard.wording import sentence

#: Numbers that are told of each agent, in this order.
NUMBERS = ("round", "error", "bits", "sends", "censored", "repairs", "alerts", "waves")
_RECENT = 120  # predictions that are kept of each agent
_EVENTS = 200  # events that are kept
_LINKS = 4000  # messages that are kept, with their ways
_MOST_POINTS, _MOST_NUMBERS = 600, 60_000  # of the past: points, and numbers in all of them


@final
class Board:
    """The state of a site, for those who look at it.

    Parameters
    ----------
    names : sequence of str
        The agents.
    patience : float
        Seconds after which an agent that says nothing counts as gone.

    Examples
    --------
    >>> board = Board(["hall", "study"])
    >>> board.status("hall", {"round": 8, "mean_square_error": 0.5, "bits": 900, "sends": 3}, now=1.0)
    >>> told = board.changes()
    >>> told["agents"]
    [[0, 1, 8, 0.5, 900, 3, 0, 0, 0, 0]]
    >>> board.changes(told["version"])["agents"]
    []
    """

    def __init__(self, names: Sequence[str], patience: float = 5.0) -> None:
        self.names, self.patience = tuple(names), patience
        self._index = {name: k for k, name in enumerate(self.names)}
        self._numbers: list[list[float | None]] = [[0, None, *[0] * 6] for _ in self.names]
        self._heard = [-math.inf] * len(self.names)
        self._here = [False] * len(self.names)
        self._changed = [0] * len(self.names)
        self._told: list[deque[tuple[float, float, float | None]]] = [deque(maxlen=_RECENT) for _ in self.names]
        self._events: deque[tuple[int, float, str, str, str]] = deque(maxlen=_EVENTS)
        self._links: deque[tuple[int, int, int]] = deque(maxlen=_LINKS)
        self._disagreement: float | None = None
        self._points: list[tuple[int, dict[str, Any]]] = []
        self._most = max(60, min(_MOST_POINTS, _MOST_NUMBERS // max(1, len(self.names))))
        self._stride, self._skipped = 1, 0
        self._version = 0
        self._lock = threading.Condition()

    # What is heard --------------------------------------------------------------------------------------------------

    def status(self, name: str, said: Mapping[str, Any], now: float) -> None:
        """An agent has told how it does."""
        k = self._index.get(name)
        if k is None:
            return
        error = measurement(said.get("mean_square_error"))
        numbers = [error if field == "error" else count(said.get(field)) or 0 for field in NUMBERS]
        with self._lock:
            before = self._numbers[k]
            repaired = int((numbers[5] or 0) - (before[5] or 0))
            self._present(k, now)
            if repaired > 0 and before[0]:
                some = "a neighbour" if repaired == 1 else f"{repaired} neighbours"
                self._event(now, name, "repair", f"{name} restored {some} from a snapshot")
            if numbers != before:
                self._numbers[k] = numbers
                self._touch(k)

    def prediction(self, name: str, said: Mapping[str, Any], now: float) -> None:
        """An agent has published a prediction."""
        k, guess = self._index.get(name), measurement(said.get("prediction"))
        if k is None or guess is None:
            return
        with self._lock:
            self._told[k].append((count(said.get("round")) or 0, guess, measurement(said.get("label"))))
            self._present(k, now)
            self._touch(k)

    def alert(self, name: str, said: Mapping[str, Any], now: float) -> None:
        """An agent has published an alert."""
        if name not in self._index:
            return
        kind, words = sentence(name, said)
        with self._lock:
            self._event(now, name, kind, words)

    def happened(self, kind: str, words: str, now: float, name: str = "") -> None:
        """Something is worth a line, of one agent or of all."""
        with self._lock:
            self._event(now, name, kind, words)

    def spoken(self, links: Sequence[tuple[int, int]]) -> None:
        """Messages went from one agent to another, by their numbers: where that is known, and not only who spoke."""
        if not links:
            return
        with self._lock:
            self._advance()
            self._links.extend((self._version, sender, receiver) for sender, receiver in links)

    def agree(self, disagreement: float | None) -> None:
        """How far models are from their mean, as a share of their length."""
        with self._lock:
            self._disagreement = measurement(disagreement)

    def look(self, now: float) -> None:
        """Notice who has gone, and keep a point of the past; to be called about once a second."""
        with self._lock:
            for k, name in enumerate(self.names):
                if self._here[k] and now - self._heard[k] > self.patience:
                    self._here[k] = False
                    self._event(now, name, "gone", f"{name} does not answer")
                    self._touch(k)
            self._skipped += 1
            if self._skipped >= self._stride and any(self._here):
                self._skipped = 0
                self._advance()
                self._points.append((self._version, self._point(now)))
                if len(self._points) > self._most:  # the past becomes coarser, not shorter
                    self._points = self._points[::2]
                    self._stride *= 2

    def _present(self, k: int, now: float) -> None:
        if not self._here[k]:
            self._here[k] = True
            if self._heard[k] > -math.inf:
                self._event(now, self.names[k], "here", f"{self.names[k]} is back")
            self._touch(k)
        self._heard[k] = now

    def _event(self, now: float, name: str, kind: str, words: str) -> None:
        self._advance()
        self._events.append((self._version, now, name, kind, words))

    def _touch(self, k: int) -> None:
        self._advance()
        self._changed[k] = self._version

    def _advance(self) -> None:
        self._version += 1
        self._lock.notify_all()

    # What is shown --------------------------------------------------------------------------------------------------

    def changes(self, since: int = 0, watched: str | None = None) -> dict[str, Any]:
        """What has changed since a version: rows [agent, here, *NUMBERS], events, links, points of the past.

        Predictions are told of who is watched. Who asks for the first time is told the whole past.
        """
        with self._lock:
            told: dict[str, Any] = {
                "version": self._version,
                "agents": [
                    [k, int(self._here[k]), *(_short(value) for value in self._numbers[k])]
                    for k, when in enumerate(self._changed)
                    if when > since
                ],
                "events": [list(event[1:]) for event in self._events if event[0] > since],
            }
            if since:
                told["points"] = [point for version, point in _after(self._points, since)]
                told["links"] = [list(link[1:]) for link in _after(self._links, since)]
            else:
                told["past"] = [point for _, point in self._points]
            k = self._index.get(watched or "")
            if k is not None and (self._changed[k] > since):
                told["predictions"] = [list(map(_short, one)) for one in self._told[k]]
            return told

    def wait(self, since: int, timeout: float) -> bool:
        """Wait until something has changed since a version; whether it has."""
        with self._lock:
            return self._lock.wait_for(lambda: self._version > since, timeout)

    def past(self) -> list[dict[str, Any]]:
        """Points of the past: of the whole time, round, error, bits and messages; of each agent its error and sends."""
        with self._lock:
            return [point for _, point in self._points]

    def _point(self, now: float) -> dict[str, Any]:
        rows = [numbers for numbers, here in zip(self._numbers, self._here, strict=True) if here]
        errors = [row[1] for row in rows if row[1] is not None]
        return {
            "time": now,
            "round": min((row[0] or 0 for row in rows), default=0),
            "error": _short(sum(errors) / len(errors)) if errors else None,
            "bits": sum(row[2] or 0 for row in self._numbers),
            "sends": sum(row[3] or 0 for row in self._numbers),
            "censored": sum(row[4] or 0 for row in self._numbers),
            "disagreement": _short(self._disagreement),
            "errors": [_short(row[1]) for row in self._numbers],
            "spoken": [row[3] for row in self._numbers],
        }


def _after(kept: Sequence[Any], since: int) -> list[Any]:
    """Those that came after a version, of some that came one after the other: found from the end."""
    found = []
    for one in reversed(kept):
        if one[0] <= since:
            break
        found.append(one)
    return found[::-1]


def _short(value: float | None) -> float | None:
    """Four digits that count of a fraction; whole numbers as they are."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
