"""What engines share that let another one do the learning."""

from __future__ import annotations

from typing import Any


class Around:
    """Has another engine inside, and tells of it what is told of an engine."""

    _inner: Any

    def __setstate__(self, kept: tuple[float, float]) -> None:
        self._inner.__setstate__(kept)

    @property
    def name(self) -> str:
        """The engine that learns."""
        return str(self._inner.name)

    @property
    def round(self) -> int:
        """Rounds finished so far."""
        return int(self._inner.round)

    @property
    def energy_before(self) -> float:
        """Of the models that the run began with."""
        return float(self._inner.energy_before)
