"""The sessions of one process with all its neighbours: events come in, letters go out, rounds pass.

``table`` says when what is done; here is what is done. There is no byte in here and no vector: letters are named
tuples, and sums are done by a ``Book``. So the very code that runs in an agent is also run through all its states by
the tests, with whole numbers for vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laconic.protocol import messages as m
from laconic.protocol.messages import Call, Confirm, Decide, Farewell, Hello, Kind, Letter, Offer, Request, Statement
from laconic.protocol.session import (
    APART,
    GONE,
    HELD,
    LIVE,
    LOGGED,
    OPENING,
    SUPERSEDED,
    Book,
    Session,
    can_go_on,
    decided_share,
)
from laconic.protocol.table import TABLE, Connected, Disconnected, rows_by_event

FURTHEST = 1 << 20  # rounds that a neighbour alone can make the agent jump
REMINDERS = 3  # after which a decision that nobody confirms is given up
ALLOWANCE = 4  # offers, decisions and repetitions that a neighbour can bring about on one occasion
COUNT_LIMIT = 1 << 47  # no counter of an honest agent gets there


class Conversation:
    """The sessions of one process.

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

    held, logged, apart, allowance = HELD, LOGGED, APART, ALLOWANCE  # smaller where all states are to be seen

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
        self.moment = 0  # counts the occasions on which a neighbour may be asked again
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

    def afford(self, end: Session) -> bool:
        """Whether the neighbour has not yet brought about too much on this occasion."""
        if end.spent_at != self.moment:
            end.spent_at, end.spent = self.moment, 0
        end.spent += 1
        return end.spent <= self.allowance

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def waiting(self) -> list[Session]:
        """Whom lockstep waits for: the table's rows, one after another, until all have been heard."""
        return [
            e
            for e in self.ends.values()
            if e.stage is OPENING or e.pend is not None or (e.stage is LIVE and e.heard < e.spoken)
        ]

    def finish(self) -> None:
        """End the round: the share of every edge that has spoken in it grows, and the dual with it."""
        if self.finished == self.round:
            return
        if self.lockstep:
            ends = [e for e in self.ends.values() if e.stage is LIVE and e.k < e.spoken]
        else:
            ends = [e for e in self.ends.values() if e.stage is LIVE and e.k < e.label]
        self.book.listen([e.index for e in ends])
        for end in ends:
            end.k += 1
        self.finished = self.round

    def begin(self, kind: Kind, data: Any, say: bool = True) -> None:
        """Begin a round with what is said in it; ``say`` is False where silence is not worth a byte."""
        self.round += 1
        self.moment += 1
        dropped = False
        for end in self.ends.values():
            if end.stage is LIVE:
                end.label = end.k + 1
                if say:
                    self.say(end, kind, data)
                end.unheard += 1
            else:
                end.intact = False
                dropped |= end.counted
                end.counted = False
            end.void(always=self.lockstep)
        if dropped:
            self.settle()
        self.look_after()

    def say(self, end: Session, kind: Kind, data: Any) -> None:
        """Say a statement, and keep it in case that it is lost."""
        end.spoken += 1
        label = 0 if self.lockstep else end.label
        digest = self.book.digest(end.index, self.digest_of(end))
        statement = Statement(end.tag, end.spoken, label, self.degree, digest, kind, data)
        end.log = (*end.log, statement)[-self.logged :]
        self.send(end, statement)

    def let_pass(self, rounds: int) -> None:
        """On slots: rounds pass in silence, as after a pause of the device."""
        self.finish()
        for end in self.ends.values():
            if end.stage is LIVE:
                if rounds > self.apart:
                    self.doubt(end)
                    continue
                self.book.let_pass(end.index, rounds - 1)
                end.k += rounds - 1
                end.label = end.k + 1
                end.unheard += rounds
            end.counted &= end.stage is LIVE
            end.void(always=False)
        self.round += rounds
        self.finished = self.round - 1
        self.moment += 1
        self.settle()
        self.look_after()

    def look_after(self) -> None:
        """Use what was held for this round, and ask again where something is open."""
        for end in list(self.ends.values()):
            if end.stage is LIVE and end.held:
                self.hear_held(end)
            if end.stage is LIVE and not self.lockstep:
                if end.unheard > self.heartbeat + self.apart > self.apart:
                    self.doubt(end)  # no share runs far on a replica that may be stale
                elif end.held:
                    self.request(end)
            elif end.stage is OPENING:
                self.seek(end)

    def digest_of(self, end: Session) -> int:
        """The sign that a share has in digests, the leader's; 0 on slots, where shares agree to rounding only."""
        return (1 if end.leads else -1) if self.lockstep else 0

    # ----------------------------------------------------------------------------------------------------------------
    # The handshake: conditions

    def is_the_same_session(self, end: Session, call: Call) -> bool:
        """Whether the leader is steadily in the session that this end is in."""
        end.claim = call.round
        return end.stage is LIVE and call.steady and call.tag == end.tag

    def is_decided_already(self, end: Session, offer: Offer) -> bool:
        """Whether this process has decided on that very offer."""
        return end.pend is not None and end.pend[1].inc == self.inc and _key(end.pend[0]) == _key(offer)

    def echoes_no_call(self, end: Session, offer: Offer) -> bool:
        """Whether the offer does not answer the last call of this process: it may be old."""
        return offer.echo != (self.inc, end.call)

    def echoes_no_offer(self, end: Session, decide: Decide) -> bool:
        """Whether the decision is not on the offer that is outstanding: it may be old."""
        out = end.out
        return out is None or decide.echo != (out.inc, out.ctr) or decide.inc != out.echo[0]

    def is_of_a_superseded(self, end: Session, letter: Offer | Decide) -> bool:
        """Whether a process speaks, and proves to be alive, that another has taken the place of."""
        if letter.inc in end.superseded:
            return True
        if end.inc and letter.inc != end.inc:
            end.superseded = (*end.superseded, end.inc)[-SUPERSEDED:]
        end.inc = letter.inc
        return False

    def is_too_far(self, end: Session, letter: Offer | Decide) -> bool:
        """Whether a neighbour would move the round further than it may alone, or counts beyond all bounds."""
        if isinstance(letter, Offer):
            end.claim, end.degree = letter.round, letter.degree
        if max(letter.g, end.g) + 1 >= COUNT_LIMIT:
            return True
        if not self.lockstep or letter.round <= self.round + FURTHEST:
            return False
        agreed = sum(e.claim >= letter.round - FURTHEST for e in self.ends.values())
        return 2 * agreed <= len(self.ends)

    def is_of_the_decision(self, end: Session, letter: Confirm | Statement) -> bool:
        """Whether it shows that the follower has installed what this process decided."""
        return self.is_pending(end, letter) and end.pend is not None and end.pend[1].inc == self.inc

    def is_of_an_old_decision(self, end: Session, letter: Confirm | Statement) -> bool:
        """Whether it confirms what an earlier process of this name decided."""
        return self.is_pending(end, letter)

    def is_pending(self, end: Session, letter: Confirm | Statement) -> bool:
        """Whether the tag is that of a decision not yet confirmed."""
        return end.pend is not None and letter.tag == self.tag_of(*end.pend)

    # ----------------------------------------------------------------------------------------------------------------
    # The handshake: actions

    def ignore(self, end: Session, letter: Any) -> None:
        """Nothing is to be done."""

    def seek(self, end: Session, letter: Any = None) -> None:
        """Call or greet, once on each occasion."""
        if end.asked != self.moment:
            self.seek_again(end)

    call = seek

    def seek_again(self, end: Session, letter: Any = None) -> None:
        """Call or greet."""
        end.asked = self.moment
        if end.leads:
            steady = end.stage is LIVE and end.pend is None
            self.send(end, Call(self.inc, end.call, self.round, self.degree, end.tag, steady))
        else:
            self.send(end, Hello(self.inc, end.tag))

    def offer(self, end: Session, call: Call) -> None:
        """Tell the leader all there is to know; the same again, if it is the same call and nothing has changed."""
        if not self.afford(end):
            return
        echo = call.inc, call.call
        if end.out is None or end.out.echo != echo:
            self.ctr += 1
            hat, share = self.book.hat(), self.book.share(end.index)
            known = end.tag, end.g, end.k, end.spoken, end.heard, len(end.log), end.intact, end.fresh
            end.out = Offer(echo, self.inc, self.ctr, self.round, self.degree, *known, hat, share)
        self.send(end, end.out)

    def decide(self, end: Session, offer: Offer) -> None:
        """Make the record of a new session."""
        if not self.afford(end):
            return
        pend = end.pend
        if pend is not None and offer.tag != end.tag and self.tag_of(*pend) == offer.tag:
            # The follower has installed it, so it is this end's memory, too.
            record, stage, intact = pend[1], end.stage, end.intact
            self.take(end, *pend)
            end.intact = intact if record.goes_on else record.round == self.round and self.book.is_hat(record.hat)
            end.stage = OPENING if stage is LIVE else stage
            if not record.goes_on:
                self.drop(end)
        self.ctr += 1
        goes_on = can_go_on(end, offer, None if self.lockstep else self.apart)
        echo, g, last = (offer.inc, offer.ctr), max(offer.g, end.g) + 1, max(offer.round, self.round)
        decide = Decide(echo, self.inc, self.ctr, last, self.degree, g, goes_on)
        if not goes_on:
            decide = decide._replace(hat=self.book.hat(), share=decided_share(end, offer, self.book))
        end.pend = offer, decide
        end.call += 1
        end.reminded = 0
        self.must_save = True
        self.send(end, decide)

    def decide_again(self, end: Session, letter: Any = None) -> None:
        """Repeat the decision."""
        if end.pend is not None and self.afford(end):
            self.send(end, end.pend[1])

    def confirm_again(self, end: Session, decide: Decide) -> None:
        """Confirm a session that is installed, though its decision comes once more; ask for another if it is void."""
        if end.stage is LIVE and end.origin == _origin(decide):
            self.send(end, Confirm(end.tag))
        elif decide.echo == (self.inc, self.ctr) or (decide.echo[0] == self.inc and end.stage is LIVE):
            self.seek(end)

    def install_and_confirm(self, end: Session, decide: Decide) -> None:
        """Follower: begin the session."""
        assert end.out is not None
        end.degree = decide.degree
        self.install(end, end.out, decide)

    def install_decision(self, end: Session, letter: Any) -> None:
        """Leader: begin the session."""
        assert end.pend is not None
        self.install(end, *end.pend)

    def install_and_hear(self, end: Session, statement: Statement) -> None:
        """Leader: begin the session, and hear what was said in it."""
        self.install_decision(end, statement)
        self.handle(end, statement)

    def install(self, end: Session, offer: Offer, decide: Decide) -> None:
        """Make a session the one in use."""
        self.take(end, offer, decide)
        end.stage = LIVE
        end.asked = end.requested = -1
        self.must_save = True
        if not end.leads:
            self.send(end, Confirm(end.tag))
        if decide.goes_on:
            for statement in end.log:
                self.send(end, statement)
        else:
            if self.lockstep and self.round < decide.round:
                self.jump(end, decide.round)
            if not self.book.is_hat(decide.hat if end.leads else offer.hat):
                end.label = 1
                self.say(end, *self.book.full())  # the broadcast has moved since
        if not (decide.goes_on and end.counted):
            end.counted = True
            self.settle()

    def take(self, end: Session, offer: Offer, decide: Decide) -> None:
        """Make a record the memory of the edge."""
        end.tag, end.g, end.origin = self.tag_of(offer, decide), decide.g, _origin(decide)
        end.out = end.pend = None
        end.held = []
        end.intact = True
        if decide.goes_on:
            end.log = tuple(statement._replace(tag=end.tag) for statement in end.log)
            return
        end.begin()
        end.fresh = False
        if end.leads:
            self.book.open(end.index, offer.hat, decide.share)
        else:
            self.book.open(end.index, decide.hat, self.book.opposite(decide.share))

    def jump(self, opened: Session, round: int) -> None:
        """Lockstep: be in the round that the others have come to; everything else is negotiated anew."""
        self.round = self.finished = round
        for end in self.ends.values():
            if end is not opened:
                if end.stage is LIVE:
                    end.stage = OPENING
                end.intact = end.counted = False
                end.out = end.pend = None
                if end.stage is OPENING:
                    end.asked = -1  # what was under way is void
                    self.seek(end)

    def fence(self, end: Session, letter: Offer | Decide) -> None:
        """Two processes go by one name: refuse the older."""
        self.news.append(("two of one name", end.name))
        self.send(end, m.Refused(letter.inc))

    def refuse_far(self, end: Session, letter: Any) -> None:
        """Do not take what would go too far."""
        raise m.Refusal("too far ahead")

    # ----------------------------------------------------------------------------------------------------------------
    # Statements: conditions

    def is_of_another_session(self, end: Session, letter: Statement | Request | Farewell) -> bool:
        """Whether the tag is not that of the session in use."""
        return not end.tag or letter.tag != end.tag

    def is_frozen(self, end: Session, statement: Statement) -> bool:
        """Whether it has been decided to go on from here: nothing more is taken under the old tag."""
        return end.pend is not None and end.pend[1].goes_on

    def is_known(self, end: Session, statement: Statement) -> bool:
        """Whether it was heard before."""
        return statement.n <= end.heard

    def leaves_a_gap(self, end: Session, statement: Statement) -> bool:
        """Whether something before it has not been heard."""
        return statement.n > end.heard + 1

    def is_too_early(self, end: Session, statement: Statement) -> bool:
        """Whether, in lockstep, it is of a round that has not begun here."""
        return self.lockstep and statement.n > end.spoken

    def is_out_of_time(self, end: Session, statement: Statement) -> bool:
        """Whether, on slots, it comes from an edge round too far from where this end is."""
        if self.lockstep:
            return False
        return not -self.heartbeat - self.apart <= statement.label - end.k - 1 <= self.apart

    def can_be_answered(self, end: Session, request: Request) -> bool:
        """Whether all that was missed is at hand."""
        return end.spoken - len(end.log) <= request.heard <= end.spoken

    def is_long_answered(self, end: Session, request: Request) -> bool:
        """Whether, in lockstep, it is an old request: who has spoken in a later round has heard what it asked for."""
        return self.lockstep and request.heard < end.heard

    # ----------------------------------------------------------------------------------------------------------------
    # Statements: actions

    def hear(self, end: Session, statement: Statement) -> None:
        """Take in what was said. On slots the edge's clock follows the faster end; what is late is worked in."""
        late = 0 if self.lockstep else end.k + 1 - statement.label
        why = self.book.hear(end.index, statement, late, self.digest_of(end))
        if why == "digest":
            self.news.append(("disagreement", end.name))
            end.intact = False  # to go on would be to disagree again
            self.doubt(end)
            return
        if why:
            raise m.Refusal(why)
        if late < 0:
            self.book.let_pass(end.index, -late)
            end.k = statement.label - 1
            end.label = max(end.label, end.k)
        if late:
            self.settle()
        end.heard, end.unheard, end.degree = statement.n, max(late, 0), statement.degree
        end.refused = 0
        end.void(always=False)
        if end.held:
            self.hear_held(end)

    def hear_held(self, end: Session) -> None:
        """Use what was said too early and no longer is."""
        if end.stage is LIVE and not (self.lockstep and end.heard >= end.spoken):
            statement = end.next_held()
            if statement is not None:
                try:
                    self.handle(end, statement)
                except m.Refusal as refusal:
                    self.complain(end, refusal.reason)

    def hold(self, end: Session, statement: Statement) -> None:
        """Keep it for later."""
        end.degree = statement.degree
        end.hold(statement, self.held)

    def hold_and_request(self, end: Session, statement: Statement) -> None:
        """Keep it, and ask for what is before it."""
        self.hold(end, statement)
        self.request(end)

    def request(self, end: Session, letter: Any = None) -> None:
        """Ask for what was missed, once on each occasion."""
        if end.requested != self.moment:
            end.requested = self.moment
            self.send(end, Request(end.tag, end.heard))

    def repeat(self, end: Session, request: Request) -> None:
        """Say again what was missed."""
        if self.afford(end):
            for statement in end.log:
                if statement.n > request.heard:
                    self.send(end, statement)

    def refuse_replayed(self, end: Session, statement: Statement) -> None:
        """It was heard before."""
        raise m.Refusal("replayed")

    # ----------------------------------------------------------------------------------------------------------------
    # Edges that come and go

    def doubt(self, end: Session, letter: Any = None) -> None:
        """Set the share aside as it stands, and open the edge anew."""
        end.stage = OPENING
        end.held = []
        self.drop(end)
        self.seek(end)

    def suspend(self, end: Session, letter: Any = None) -> None:
        """Set the share aside: the other end is gone."""
        end.stage = GONE
        end.out = end.pend = None
        end.held = []
        self.drop(end)

    def open_again(self, end: Session, letter: Any = None) -> None:
        """The other end is back."""
        end.stage = OPENING
        self.seek_again(end)

    def part(self, end: Session, letter: Any = None) -> None:
        """The other end has taken the edge away."""
        counted = end.counted
        end.forget(GONE, fresh=True)
        self.book.open(end.index, None, self.book.nothing())
        self.must_save = True
        if counted:
            self.settle()

    def is_meant_for_another(self, end: Session, refused: m.Refused) -> bool:
        """Whether another process of this name is refused."""
        return refused.inc != self.inc

    def shut_refused(self, end: Session, letter: Any = None) -> None:
        """A later process goes by this name: be silent on this edge, and tell whoever drives the agent."""
        end.shut = "refused"
        self.suspend(end)
        self.news.append(("another has this name", end.name))

    def drop(self, end: Session) -> None:
        """Take the share out of the dual."""
        if end.counted:
            end.counted = False
            self.settle()

    def settle(self) -> None:
        """The dual, from its definition over the edges that count."""
        self.book.settle([e.index for e in self.ends.values() if e.counted])

    def connected(self, end: Session) -> None:
        """The driver says that the neighbour is there."""
        self.handle(end, Connected())

    def disconnected(self, end: Session) -> None:
        """The driver says that the neighbour is gone."""
        self.handle(end, Disconnected())

    def remind(self) -> None:
        """Ask again wherever something is open."""
        self.moment += 1
        for end in list(self.ends.values()):
            if end.pend is not None and end.pend[1].inc == self.inc:
                end.reminded += 1
                if end.reminded <= REMINDERS:
                    self.decide_again(end)
                    continue
                end.pend = None
            if end.stage is OPENING:
                self.seek(end)
            elif end.stage is LIVE and (end.heard < end.spoken if self.lockstep else end.held):
                self.request(end)


def _origin(decide: Decide) -> tuple[int, ...]:
    return (decide.inc, decide.ctr, *decide.echo)


def _key(offer: Offer) -> tuple[int, int]:
    return offer.inc, offer.ctr
