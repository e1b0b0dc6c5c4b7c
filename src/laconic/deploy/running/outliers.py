"""Samples beyond the limits of a site: held to them before an agent learns, counted, and told of."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import final

from laconic import _files
from laconic._validate import Array
from laconic.deploy.running.metrics import Tally
from laconic.guard import Beyond, Guard
from laconic.protocol.actions import Action, Alert, Note

#: What log lines and alerts call it.
EVENT = "sample beyond limits"

_QUIET = 3600.0  # seconds after which even a rare outlier is told of again

_log = logging.getLogger(__name__)


@final
class Sentry:
    """Holds an agent's samples to its guard's limits, and says so the first, second, fourth, eighth ... time.

    What comes again after an hour without a word is told of as well.

    Parameters
    ----------
    guard : Guard
    tally : Tally
        Its ``beyond`` counts samples by ("label" or "input", what was done with it).
    inputs : sequence of str, optional
        Names of the inputs, for people who read alerts.
    file : Path, optional
        Where to keep what was learned of the stream over a restart.
    """

    def __init__(
        self, guard: Guard, tally: Tally, inputs: Sequence[str] | None = None, file: Path | None = None
    ) -> None:
        self.guard, self.tally = guard, tally
        self._inputs, self._file = inputs, file
        self._told: dict[tuple[str, str], float] = {}

    def look(self, x: Array, y: float, round: int, now: float) -> tuple[Array, float, list[Action]]:
        """The sample (x, y) of a round as it is to be learned from, and what is to be said about it."""
        seen = self.guard(x, y)
        actions: list[Action] = []
        if seen.beyond:
            first = {("label" if one.what == "label" else "input", one.outcome): one for one in reversed(seen.beyond)}
            for kind, one in first.items():
                actions += self._count(kind, one, round, now)
        return seen.x, seen.y, actions

    def _count(self, kind: tuple[str, str], one: Beyond, round: int, now: float) -> list[Action]:
        self.tally.beyond[kind] += 1
        n = self.tally.beyond[kind]
        if n & (n - 1) and now < self._told[kind] + _QUIET:
            return []
        self._told[kind] = now
        fields = {
            "round": round,
            "what": self._name(one.what),
            "value": one.value,
            "limits": [one.low, one.high],
            "outcome": one.outcome,
            "count": n,
        }
        return [Alert(EVENT, fields), Note(logging.WARNING, EVENT, fields)]

    def _name(self, what: str | int) -> str:
        if isinstance(what, str):
            return what
        return f"input {what if self._inputs is None else self._inputs[what]}"

    # Memory ---------------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write what was learned of the stream to its file, whole or not at all; OSError if that is not possible."""
        if self._file is not None:
            with _files.written_whole(self._file) as file:
                file.write(self.guard.to_bytes())

    def restore(self, agent: str) -> None:
        """Know what was learned before a restart; if there is nothing to be read, it is learned anew."""
        try:
            if self._file is not None:
                self.guard.restore(self._file.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            _log.warning("limits learned anew", extra={"agent": agent, "path": str(self._file), "why": str(error)})
