"""What an agent knows of one neighbour, and of the edge between them.

An edge carries a share of the dual of either end, rho (S_i - S_j - B_ij) with B_ij = -B_ji, from the moment it opens.
It is *live* while both ends are there. When the other end goes, the edge is suspended: it stops pulling, its share is
set aside, and F_ij = S_i - S_j - B_ij is what it will resume with. When the other end is back, the two exchange
snapshots, and the end with the smaller name *opens* the edge: it chooses B_ij so that the share continues from F_ij,
counts the epoch up, and tells the other in its snapshot. The time in between, when the two could not hear each other,
is in no dual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import final

from laconic._validate import Array
from laconic.protocol.messages import Kind, Position, Statement

_MOST_HELD = 64


class Stage(Enum):
    """Where an edge stands: in use; waiting for the other end to agree; or the other end is gone."""

    LIVE = "live"
    OPENING = "opening"
    GONE = "gone"


@final
@dataclass
class Neighbour:
    """One neighbour.

    Attributes
    ----------
    index : int
        Its row in the ledger.
    leads : bool
        Whether the neighbour, not the agent itself, opens their edge.
    position : Position
        How far it has been heard.
    degree : int
        Its number of neighbours, once it has said so.
    stage, epoch : Stage, int
        The edge: where it stands, how many times it has been opened.
    vector : array or None
        B of a live edge, F of a suspended one; None is zero.
    remembers : bool
        Whether this end knows what share a suspended edge had.
    confirmed : bool
        Whether the other end is known to have heard of the epoch.
    held : list of Statement
        What was said too early to be used.
    answered : bool
        Whether it has told where the agent stands, after a restart.
    asked : int
        When it was last asked for something, on the clock of ``Agent``.
    """

    name: str
    identity: int
    index: int
    leads: bool
    degree: int
    position: Position = field(default_factory=Position)
    stage: Stage = Stage.LIVE
    epoch: int = 0
    vector: Array | None = None
    remembers: bool = True
    confirmed: bool = True
    held: list[Statement] = field(default_factory=list)
    answered: bool = False
    asked: int = -1

    @property
    def live(self) -> bool:
        """Whether the edge is in use."""
        return self.stage is Stage.LIVE

    def share(self, balance: Array) -> Array:
        """The edge's share of the dual, over rho, given S_i - S_j."""
        return balance if self.vector is None else balance - self.vector

    def suspend(self, balance: Array, stage: Stage) -> None:
        """Stop using the edge, and remember its share."""
        if self.live:
            self.vector, self.remembers = self.share(balance).copy(), True
        self.stage = stage

    def open(self, epoch: int, vector: Array | None, confirmed: bool) -> None:
        """Use the edge from now on."""
        self.epoch, self.vector, self.remembers, self.stage = epoch, vector, True, Stage.LIVE
        self.confirmed = confirmed

    def forget(self) -> None:
        """Lose the edge's share: the other end has taken it away, or there is no memory of it."""
        self.vector, self.remembers = None, False

    def hold(self, statement: Statement) -> None:
        """Keep for later what comes too early; of too much, the latest is dropped and will be asked for again."""
        position = statement.header.position
        if all(position != other.header.position for other in self.held):
            self.held.append(statement)
            self.held.sort(key=lambda other: other.header.position)
            del self.held[_MOST_HELD:]

    def heard_through(self) -> int:
        """The last round of which all is known: who says the next thing in a later one was silent in between."""
        if self.held and follows(self.held[0], self.position):
            return max(self.position.round, self.held[0].header.position.round - 1)
        return self.position.round

    def next_held(self, last_round: int | None) -> Statement | None:
        """Take out what can be used now: it follows what is known, and is of ``last_round`` at the latest."""
        while self.held:
            first = self.held[0]
            if is_stale(first, self.position):
                del self.held[0]
            elif follows(first, self.position) and (last_round is None or first.header.position.round <= last_round):
                return self.held.pop(0)
            else:
                return None
        return None

    def holds_all_until(self, position: Position) -> bool:
        """Whether what is held leads from what is known to ``position`` without a gap."""
        reached = self.position
        for statement in self.held:
            if follows(statement, reached):
                reached = statement.header.position
        return reached[:2] >= position[:2]


def follows(statement: Statement, known: Position) -> bool:
    """Whether a statement is the next one after what is known."""
    life, sequence, _ = statement.header.position
    step = 0 if statement.header.kind is Kind.SILENCE else 1
    return life == known.life and sequence == known.sequence + step


def is_stale(statement: Statement, known: Position) -> bool:
    """Whether a statement says nothing new."""
    life, sequence, round = statement.header.position
    if life != known.life:
        return life < known.life
    if statement.header.kind is Kind.SILENCE:
        return sequence < known.sequence or round <= known.round
    return sequence <= known.sequence
