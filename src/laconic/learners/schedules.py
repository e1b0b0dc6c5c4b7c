"""Numbers that may change with the round: ``eta`` and ``step`` take a number, one of these, or any function of t."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from laconic import _validate

Schedule = Callable[[int], float]
NumberOrSchedule = float | Schedule


@final
@dataclass(frozen=True)
class Constant:
    """The same value in every round.

    >>> Constant(2.0)(10)
    2.0
    """

    value: float

    def __call__(self, t: int) -> float:
        """The value in round ``t``."""
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:g}"


@final
@dataclass(frozen=True)
class SqrtGrowth:
    """``scale * sqrt(t)``: what the regret bound asks of eta. (The theorem prints its inverse; see the errata.)

    >>> SqrtGrowth(0.5)(16)
    2.0
    """

    scale: float

    def __post_init__(self) -> None:
        _validate.number("scale", self.scale, above=0)

    def __call__(self, t: int) -> float:
        """The value in round ``t``."""
        return float(self.scale * t**0.5)


@final
@dataclass(frozen=True)
class SqrtDecay:
    """``scale / sqrt(t)``: the usual decay of a gradient step.

    >>> SqrtDecay(1.0)(4)
    0.5
    """

    scale: float

    def __post_init__(self) -> None:
        _validate.number("scale", self.scale, above=0)

    def __call__(self, t: int) -> float:
        """The value in round ``t``."""
        return float(self.scale / t**0.5)


def get(name: str, value: NumberOrSchedule) -> Schedule:
    """``value`` as a schedule; ``name`` is the argument it came by."""
    if callable(value):
        return value
    return Constant(_validate.number(name, value, above=0))
