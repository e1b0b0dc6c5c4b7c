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
class OneWay(Fault):
    """The others do not hear the hosts in ``inside``, which hear them; whether or not it is ``noticed``."""

    inside: frozenset[str]
    noticed: bool


@final
@dataclass(frozen=True)
class Replay(Fault):
    """With a message there comes another that was sent long ago, by anybody to anybody."""

    share: float


@final
@dataclass(frozen=True)
class Crash(Fault):
    """A host dies, and comes back at ``stop`` with its disk or without; it may be so quick that nobody notices."""

    host: str
    disk: bool
    noticed: bool = True


@final
@dataclass(frozen=True)
class Interrupt(Fault):
    """A host dies over the first ``letter`` that it sends: ``before`` it has left, or right after. It is back soon."""

    host: str
    letter: str
    before: bool
    disk: bool


@final
@dataclass(frozen=True)
class Rollback(Fault):
    """A host dies, and comes back with what was on its disk at the time ``of``."""

    host: str
    of: float


@final
@dataclass(frozen=True)
class Twice(Fault):
    """A second process of the same name, with a copy of the disk or without; then somebody stops one of the two.

    ``first``: that one stays. Nobody starts it again, though it was fenced meanwhile: it has to come back by itself.
    """

    host: str
    disk: bool
    first: bool


@final
@dataclass(frozen=True)
class Unlisted(Fault):
    """A host does not have that neighbour in its list, which is there all the same."""

    host: str
    neighbour: str


@final
@dataclass(frozen=True)
class Freeze(Fault):
    """A host does nothing, as if suspended; what it is sent waits."""

    host: str


@final
@dataclass(frozen=True)
class Jump(Fault):
    """Clocks leap ahead by so many seconds."""

    hosts: frozenset[str]
    by: float


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


@final
@dataclass(frozen=True)
class Hostile(Fault):
    """A host that belongs to the network says hostile things; ``way`` names them. Afterwards it is set up anew.

    If it stops never, what holds of the others is all that holds.
    """

    host: str
    way: str
