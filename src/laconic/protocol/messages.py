"""What agents say to each other, apart from its bytes: ``wire`` encodes it, ``conversation`` says and hears it.

Of the two ends of an edge the one with the smaller name *leads*, the other *follows*. Five messages open a session,
(HELLO ->) CALL -> OFFER -> DECIDE -> CONFIRM, each with a number that the other end has just drawn; statements fill it.
Vectors are arrays in an agent, and plain numbers where the protocol is checked exhaustively.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple


class Kind(IntEnum):
    """What a message is."""

    DIFFERENCE = 1
    DENSE = 2
    SILENCE = 3
    FULL = 4
    HELLO = 5
    CALL = 6
    OFFER = 7
    DECIDE = 8
    CONFIRM = 9
    REQUEST = 10
    FAREWELL = 11
    REFUSED = 12
    WAVE = 13
    SURVEY = 14


class Refusal(Exception):
    """A message that will not be taken; ``reason`` is what it is counted under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Position(NamedTuple):
    """How far somebody has spoken, or has been heard, on an edge: a session, and the number of a statement in it."""

    session: int = 0
    statement: int = 0


class Hello(NamedTuple):
    """Follower to leader: call me. ``tag`` is the session it remembers, 0 for none."""

    inc: int
    tag: int


class Call(NamedTuple):
    """Leader to follower: make an offer that echoes (inc, call). It remembers ``tag``, and may be ``steady`` in it."""

    inc: int
    call: int
    round: int
    degree: int
    tag: int
    steady: bool


class Offer(NamedTuple):
    """Follower to leader: all that the follower knows of itself and of the edge.

    Attributes
    ----------
    echo : (int, int)
        Incarnation of the leader and number of its call.
    inc, ctr : int
        Incarnation of the follower, and number of this offer.
    round, degree : int
    tag, g, k, spoken, heard, logged : int
        The session remembered, its generation, the edge rounds in the share, statements said, heard, and at hand.
    intact : bool
        Whether the session was told all of the broadcast, so that it can go on.
    fresh : bool
        Whether the edge was added anew, so that its share is zero.
    hat, share : vector
        The follower's broadcast, and F as it knows it.
    """

    echo: tuple[int, int]
    inc: int
    ctr: int
    round: int
    degree: int
    tag: int
    g: int
    k: int
    spoken: int
    heard: int
    logged: int
    intact: bool
    fresh: bool
    hat: Any
    share: Any


class Decide(NamedTuple):
    """Leader to follower: the record of a session; with the offer that it echoes, all that there is to know of it.

    ``goes_on``: the session that both remember continues under a new tag. Otherwise ``hat`` is the leader's broadcast,
    ``share`` its F, and edge rounds count from ``round`` on.
    """

    echo: tuple[int, int]
    inc: int
    ctr: int
    round: int
    degree: int
    g: int
    goes_on: bool
    hat: Any = None
    share: Any = None


class Confirm(NamedTuple):
    """The session ``tag`` is in use here: what a follower says when it begins, and who is asked and has said all."""

    tag: int


class Statement(NamedTuple):
    """What a round brings: a difference, a dense model, silence, a broadcast told in full, or what a wave brings.

    Attributes
    ----------
    tag, n : int
        The session, and the number of the statement in it, from 1.
    label : int
        The sender's edge round, on slots; 0 in lockstep, where it is ``n``.
    degree : int
        The sender's number of neighbours.
    digest : int
        Of the sender's broadcast, and in lockstep of the share: see ``Book.digest``.
    kind : Kind
    data : bytes
        The body as it travels.
    content : tuple
        The body as it was read: (scale, codes) or (0.0, model); the parts of what a wave brings.
    """

    tag: Any
    n: int
    label: int
    degree: int
    digest: Any
    kind: Kind
    data: Any
    content: Any = None


class Request(NamedTuple):
    """Say again what comes after statement ``heard``."""

    tag: int
    heard: int


class Survey(NamedTuple):
    """Where waves run: what the sender knows of who hears whom, or some of it."""

    tag: int
    data: bytes


class Farewell(NamedTuple):
    """The sender takes the edge away."""

    tag: int


class Refused(NamedTuple):
    """Two processes go by the same name: the one that drew ``inc`` is the older."""

    inc: int


Handshake = Hello | Call | Offer | Decide | Refused
Tagged = Confirm | Statement | Request | Farewell | Survey
Letter = Hello | Call | Offer | Decide | Refused | Confirm | Statement | Request | Farewell | Survey
