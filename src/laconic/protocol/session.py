"""One end of an edge: what it remembers of the session, and the two rules by which a new one is decided.

A *session* is a name, its tag, for one record that one process made and two know. All numbers of an edge follow from
the record and from the numbered statements of these two processes. No other process goes on under that tag, so no
position (tag, n) is ever used twice. The share of an edge in the dual, over rho, is

    F_ij(k) = base_ij + sum_{1..k} (hat_i - hat_j),   base_ij = -base_ji

where the base is one number, in the record. F is a state, never an increment: a new record takes the share that one of
the two ends holds, so that nothing is counted twice.

Vectors are not in here but in a ``Book``, which is the agent's ledger; a check of all states uses one of whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, final

from laconic.protocol.messages import Decide, Kind, Offer, Statement

LOGGED = 8  # own statements kept to be said again: lockstep needs two
HELD = 64  # statements that came too early
WITNESSED = 8  # of so many statements one is witnessed by the digest of the share, too
APART = 10  # edge rounds that two ends of a live edge may be apart, on slots
LAGGING = (
    8,
    256,
)  # on slots: late statements in a row after which an end waits for a round; then each time twice as many
SUPERSEDED = 8  # incarnations of a neighbour that others have taken the place of


class Stage(Enum):
    """Where an edge stands: in use; waiting for the other end to agree; or the other end is gone."""

    LIVE = "live"
    OPENING = "opening"
    GONE = "gone"


LIVE, OPENING, GONE = Stage.LIVE, Stage.OPENING, Stage.GONE


class Book(Protocol):
    """Who does the sums. Edges go by number; ``hat`` is the agent's own broadcast."""

    def hat(self) -> Any:
        """A copy of the broadcast."""

    def is_hat(self, hat: Any) -> bool:
        """Whether the broadcast is still what it was when it was copied."""

    def is_blank(self, hat: Any) -> bool:
        """Whether a broadcast is zero, as it is before anything was said."""

    def share(self, index: int) -> Any:
        """A copy of F."""

    def opposite(self, share: Any) -> Any:
        """The share as the other end counts it, -F."""

    def nothing(self) -> Any:
        """A share of zero."""

    def open(self, index: int, replica: Any, share: Any) -> None:
        """Put a replica and a share in the place of what was known."""

    def listen(self, indices: list[int], grown: list[int]) -> None:
        """End a round: hear these edges; of those not in ``grown`` F <- F + hat - replica, and the dual moves."""

    def let_pass(self, index: int, rounds: int) -> None:
        """F <- F + rounds (hat - replica)."""

    def hear(self, index: int, statement: Statement, late: int, digest_of: int) -> str:
        """Change a replica by what was said, and F <- F - late (new - old); otherwise why not, and nothing changes.

        ``digest_of`` is +1 at who leads, -1 at who follows, 0 if the digest is of the broadcast only.
        """

    def digest(self, index: int, digest_of: int) -> Any:
        """The digest that goes with what is said now."""

    def full(self) -> tuple[Kind, Any]:
        """The broadcast, as the body of a statement."""

    def settle(self, indices: list[int]) -> None:
        """The dual, from its definition: rho times the sum of these edges' shares."""


@final
@dataclass(slots=True)
class Session:
    """One end of an edge.

    Attributes
    ----------
    name, index : str, int
        The other end, and its number in the book.
    leads : bool
        Whether this end leads.
    stage, tag, g : Stage, int, int
        Where the edge stands; the last session installed, and its generation.
    k : int
        Edge rounds counted in F.
    label : int
        On slots: the edge round that this end has last spoken in, or been silent.
    spoken, heard : int
        Numbers of the last statements.
    log : tuple of Statement
        The last own statements.
    intact : bool
        The session was told all of the broadcast, in every round.
    fresh : bool
        Added anew: the share begins at zero.
    counted : bool
        Whether F is in the dual: while the edge is live, and after a restart until it is decided.
    out, hurried : Offer or None, bool
        Follower: the outstanding offer; and whether one to go on came to nothing since a round began before its answer.
    call, pend : int, (Offer, Decide) or None
        Leader: number of the next call; and what was decided and not confirmed.
    amid, met : bool, int
        Whether one of the two had just started when the session began, and something had been learned: one of their
        broadcasts was not zero. And the other's incarnation in it.
    origin : tuple of int
        Which decision on which offer made the session.
    degree : int
        The other's number of neighbours, once it has said so.
    held : list of Statement
        What was said too early to be used.
    unheard : int
        On slots: edge rounds since the other was heard.
    lagged, lagged_in, lagging : int
        On slots: rounds in a row in which the other was heard, and too late; the last of them; and how many such make
        this end wait for a round.
    claim : int
        The round that the other last said it was in.
    behind : bool
        Lockstep: whether it has shown, by its last offer or decision, that it will not come to the round of this agent.
    inc, superseded : int, tuple of int
        The other's incarnation, and those before it.
    """

    name: str
    index: int
    leads: bool
    degree: int = 1
    stage: Stage = OPENING
    tag: Any = 0
    g: int = 0
    k: int = 0
    label: int = 0
    spoken: int = 0
    heard: int = 0
    log: tuple[Statement, ...] = ()
    intact: bool = True
    fresh: bool = False
    counted: bool = False
    out: Offer | None = None
    hurried: bool = False
    call: int = 0
    pend: tuple[Offer, Decide] | None = None
    amid: bool = False
    met: int = 0
    origin: tuple[int, ...] = ()
    held: list[Statement] = field(default_factory=list)
    unheard: int = 0
    lagged: int = 0
    lagged_in: int = -1
    lagging: int = LAGGING[0]
    claim: int = 0
    behind: bool = False
    inc: int = 0
    superseded: tuple[int, ...] = ()
    # What follows is for whoever drives the agent, and decides nothing.
    shut: str = ""  # why nothing is taken from the other end any more
    shut_until: int = 0
    away: bool = False  # whether the driver has said that the other is gone, and not that it is back
    quarantines: int = 0
    late: float = 0.0  # on slots: how many rounds too late its messages have come lately
    tardy: int = 0  # and for how many rounds in a row they have been too late
    refused: int = 0  # messages of it refused in a row
    asked: int = -1  # the occasion on which it was last called or greeted
    requested: int = -1  # and that on which it was last asked to say something again
    proved: int = 0  # and that on which the process of its session, or of its last offer or decision, was last heard
    doubled: bool = False  # whether an older process of its name was seen alive beside the one that took its place
    fenced: int = 0  # times that it has refused this process, since a later one has its name, in a row
    sought: int = 0  # calls and greetings in a row that came on this edge while it was shut for that
    spent_at: int = 0
    spent: int = 0  # tokens that it has spent on answers, less those that have come back until then
    reminded: int = 0  # reminders since it was last decided
    waited: int = 0  # reminders for which lockstep has waited for a decision though the other was gone
    number: int = 0  # what stands for the other's name in bytes
    imposed: bool = False  # whether its share was set by the other, to far more than was known here

    @property
    def live(self) -> bool:
        """Whether the edge is in use."""
        return self.stage is LIVE

    @property
    def stands(self) -> bool:
        """On slots: whether no edge round is counted yet, since one of the two has not spoken in the session.

        An agent that starts again is silent until it has met all its neighbours, perhaps for many slots, and what is
        known of it is old, or nothing: each slot would bring the whole difference into the share.
        """
        return self.amid and not (self.spoken and self.heard)

    def hold(self, statement: Statement, most: int) -> None:
        """Keep for later what comes too early; of too much, the latest is dropped and will be asked for again."""
        if all(statement.n != other.n for other in self.held):
            self.held.append(statement)
            self.held.sort(key=lambda other: other.n)
            del self.held[most:]

    def next_held(self) -> Statement | None:
        """Take out the statement that comes next, if it is there."""
        while self.held and self.held[0].n <= self.heard:
            del self.held[0]
        return self.held.pop(0) if self.held and self.held[0].n == self.heard + 1 else None

    def void(self, always: bool) -> None:
        """The edge has moved on: what is under way and could continue the old session is no longer true."""
        if self.out is not None and (always or self.out.intact):
            self.out = None
            self.hurried |= not always
        if self.pend is not None and (always or self.pend[1].goes_on):
            self.pend = None

    def forget(self, stage: Stage, fresh: bool) -> None:
        """Lose all memory of the edge but who the other is."""
        self.stage, self.fresh, self.counted = stage, fresh, False
        self.tag = self.g = 0
        self.begin()
        self.out = self.pend = None
        self.intact, self.hurried = True, False

    def restart(self) -> None:
        """Be what a process finds in its memory: after a restart no edge is live."""
        if not (self.stage is GONE and self.fresh):
            self.stage = OPENING
        self.out, self.call = None, 0

    def begin(self) -> None:
        """Count from the start of a session."""
        self.k = self.label = self.spoken = self.heard = self.unheard = self.lagged = 0
        self.lagging = LAGGING[0]
        self.log = ()
        self.held = []


def can_go_on(end: Session, offer: Offer, apart: int | None) -> bool:
    """Whether the session that both ends remember continues: nothing of it is missing that cannot be said again.

    On slots the two must not be more than ``apart`` edge rounds apart.
    """
    return (
        same_session(end, offer)
        and offer.intact
        and end.intact
        and end.heard <= offer.spoken <= end.heard + offer.logged
        and offer.heard <= end.spoken <= offer.heard + len(end.log)
        and (apart is None or abs(end.k - offer.k) <= apart)
    )


def same_session(end: Session, offer: Offer) -> bool:
    """Whether both ends remember the same session."""
    return bool(end.tag) and offer.tag == end.tag and not offer.fresh and not end.fresh


def decided_share(end: Session, offer: Offer, book: Book) -> Any:
    """The leader's share in a new record: zero if the edge is new, else that of the end which has counted further.

    In the same session that is the larger k, otherwise the larger generation; ties are the leader's. An end without
    memory has generation 0, and so gets the share that its neighbour has kept.
    """
    if end.fresh or offer.fresh:
        return book.nothing()
    leaders = end.k >= offer.k if same_session(end, offer) else end.g >= offer.g
    return book.share(end.index) if leaders else book.opposite(offer.share)
