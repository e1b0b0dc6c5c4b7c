"""What can go wrong on a virtual network. Times are in virtual seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong from ``start`` to ``stop``."""

    start: float
    stop: float


@final
@dataclass(frozen=True)
class Drop(Fault):
    """Messages disappear."""

    share: float


@final
@dataclass(frozen=True)
class Delay(Fault):
    """Messages take up to ``most`` seconds longer, each another time: so they overtake each other."""

    most: float


@final
@dataclass(frozen=True)
class Duplication(Fault):
    """Messages arrive twice."""

    share: float


@final
@dataclass(frozen=True)
class Corruption(Fault):
    """Bits flip, and ends are cut off."""

    share: float


@final
@dataclass(frozen=True)
class Partition(Fault):
    """The hosts in ``inside`` and the others do not hear each other."""

    inside: frozenset[str]


@final
@dataclass(frozen=True)
class Crash(Fault):
    """A host dies, and comes back at ``stop`` with its disk or without."""

    host: str
    disk: bool


@final
@dataclass(frozen=True)
class Slow(Fault):
    """A host takes ``factor`` times as long for everything: on slots it misses most of them."""

    host: str
    factor: float


@final
@dataclass(frozen=True)
class Skew(Fault):
    """A host's clock runs ``rate`` times too fast."""

    host: str
    rate: float
