"""What agents say to each other, apart from its bytes: ``wire`` encodes it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from laconic._validate import Array


class Kind(IntEnum):
    """What a message is."""

    DIFFERENCE = 1
    DENSE = 2
    SILENCE = 3
    REQUEST = 4
    SNAPSHOT = 5
    FAREWELL = 6


class Refusal(Exception):
    """A message that will not be taken; ``reason`` is what it is counted under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Position(NamedTuple):
    """How far an agent has come: tuples compare in the order in which its statements were made."""

    life: int = 0
    sequence: int = 0
    round: int = 0


class Header(NamedTuple):
    """Who speaks, and from where in its history."""

    kind: Kind
    sender: int
    position: Position
    degree: int


class Statement(NamedTuple):
    """A difference, a dense model, or silence: what a round brings."""

    header: Header
    body: Array | None = None
    scale: float = 0.0


class Request(NamedTuple):
    """The sender asks for what it lacks; ``held`` is what it has of the addressee.

    ``whole`` asks for a snapshot in any case, ``confirm`` for a word on the edge's epoch.
    """

    header: Header
    to: int
    held: Position
    epoch: int
    whole: bool
    confirm: bool


class Edge(NamedTuple):
    """One end's account of an edge: see ``laconic.protocol.edge``."""

    epoch: int
    live: bool
    remembers: bool
    vector: Array | None


class Snapshot(NamedTuple):
    """Where the sender stands, where it believes the addressee stands, and their edge.

    Sums run through the sender's round. ``asked`` is what the addressee held when it asked; ``repeated`` says that what
    it had missed has been said again, so that it need not skip to the sender's round.
    """

    header: Header
    to: int
    rejoining: bool
    repeated: bool
    broadcast: Array
    total: Array
    held: Position
    asked: Position
    replica: Array | None
    replica_total: Array | None
    edge: Edge


class Farewell(NamedTuple):
    """The sender takes its edge to the addressee away."""

    header: Header
    to: int
    epoch: int
