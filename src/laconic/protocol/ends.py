"""One process with its ends of edges: what the rules of a conversation work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laconic.protocol.messages import Decide, Kind, Letter, Offer, Statement
from laconic.protocol.session import APART, HELD, LOGGED, WITNESSED, Book, Session
from laconic.protocol.table import TABLE, rows_by_event

# What a neighbour can make this end send is paid for from a bucket of tokens: a statement said again costs one, an
# offer or a decision four. A round brings four tokens back, a reminder fills the bucket.
ALLOWANCE, WHOLE = 16, 4


class Ends:
    """One process, and its ends of edges.

    Parameters
    ----------
    name : str
    lockstep : bool
    book : Book
    inc : int
        64 random bits, drawn at every start and never stored: this process and no other.
    tag_of : callable
        The tag of a session, from its offer and its decision.
    heartbeat : int
        On slots, rounds after which everybody says something.
    """

    # Smaller where all states are to be seen.
    held, logged, apart, allowance, witnessed = HELD, LOGGED, APART, ALLOWANCE, WITNESSED

    def __init__(
        self, name: str, lockstep: bool, book: Book, inc: int, tag_of: Callable[[Offer, Decide], Any], heartbeat: int
    ) -> None:
        self.name, self.lockstep, self.book, self.inc = name, lockstep, book, inc
        self.tag_of, self.heartbeat = tag_of, heartbeat
        self.ctr = 0
        self.round = self.finished = 0  # the last round begun, and the last one listened in
        self.ends: dict[str, Session] = {}
        self.letters: list[tuple[Session, Letter]] = []
        self.must_save = False
        self.begun = False  # whether this process has had a round
        self.moment = 0  # counts the occasions on which a neighbour may be asked again
        self.credit = 0  # counts the tokens that each neighbour has been given
        self.lent = self.lent_at = 0  # rounds that few neighbours have made it jump, and when
        self.news: list[tuple[str, str]] = []  # (what, neighbour): what somebody should know of
        self.rows = rows_by_event(TABLE)

    @property
    def degree(self) -> int:
        """Number of neighbours, there or not."""
        return len(self.ends)

    def handle(self, end: Session, event: Any) -> None:
        """Do what the table says."""
        for condition, action in self.rows.get((type(event), end.leads, end.stage), ()):
            if not condition or getattr(self, condition)(end, event):
                getattr(self, action)(end, event)
                return

    def complain(self, end: Session, reason: str) -> None:
        """A statement that was held back turns out to be no good."""

    def send(self, end: Session, letter: Letter) -> None:
        """Put a letter into the queue."""
        self.letters.append((end, letter))

    def tell(self, end: Session, what: str, *, new: bool = False) -> None:
        """Have somebody know of something about a neighbour; ``new`` where that was told before and is told again."""
        self.news.append((what, end.name))

    def afford(self, end: Session, cost: int = WHOLE) -> bool:
        """Whether the neighbour has tokens left for what it asks for; then they are spent."""
        credit = self.credit + WHOLE * self.moment
        spent = max(0, end.spent - (credit - end.spent_at)) + cost
        if spent > self.allowance:
            return False
        end.spent, end.spent_at = spent, credit
        return True

    def say(self, end: Session, kind: Kind, data: Any) -> None:
        """Say a statement, and keep it in case that it is lost."""
        end.spoken += 1
        label = 0 if self.lockstep else end.label
        digest = self.book.digest(end.index, self.digest_of(end, end.spoken))
        statement = Statement(end.tag, end.spoken, label, self.degree, digest, kind, data)
        end.log = (*end.log, statement)[-self.logged :]
        self.send(end, statement)

    def digest_of(self, end: Session, n: int) -> int:
        """The sign that the share has in the digest of statement ``n``, the leader's; 0 if it has no part in it.

        One statement in a few is enough to find out. On slots it is none, since shares agree to rounding only.
        """
        if n % self.witnessed or not self.lockstep:
            return 0
        return 1 if end.leads else -1

    def drop(self, end: Session) -> None:
        """Take the share out of the dual."""
        if end.counted:
            end.counted = False
            self.settle()

    def settle(self) -> None:
        """The dual, from its definition over the edges that count."""
        self.book.settle([e.index for e in self.ends.values() if e.counted])
