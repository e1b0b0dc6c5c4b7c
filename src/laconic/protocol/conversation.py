"""The sessions of one process with all its neighbours: events come in, letters go out, rounds pass.

``table`` says when what is done; ``handshake`` is how sessions begin and end, and here is what happens in them. There
is no byte in here and no vector: letters are named
tuples, and sums are done by a ``Book``. So the very code that runs in an agent is also run through all its states by
the tests, with whole numbers for vectors.
"""

from __future__ import annotations

from typing import Any

from laconic.protocol import messages as m
from laconic.protocol.handshake import REMINDERS, Handshake
from laconic.protocol.messages import Farewell, Kind, Request, Statement
from laconic.protocol.session import GONE, LAGGING, LIVE, OPENING, Session
from laconic.protocol.table import Connected, Disconnected

LATER = 0.95  # of how late messages were, what is expected of the next, each round that none is later
_AGAIN = 8  # rounds after which a decision in vain may be waited for a reminder longer


class Conversation(Handshake):
    """The sessions of one process: see ``Ends`` for what it is made of."""

    def handle(self, end: Session, event: Any) -> None:
        """Do what the table says; the one row that ordinary rounds come to is looked up without those above it."""
        if (
            type(event) is Statement
            and end.stage is LIVE
            and event.tag == end.tag
            and event.n == end.heard + 1
            and end.pend is None
            and self.lockstep
            and event.n <= end.spoken
        ):
            self.hear(end, event)
        else:
            super().handle(end, event)

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def waiting(self) -> list[Session]:
        """Whom lockstep waits for: the table's rows, one after another, until all have been heard."""
        return [
            e
            for e in self.ends.values()
            if e.stage is OPENING or (e.stage is LIVE and (e.pend is not None or e.heard < e.spoken)) or self.awaits(e)
        ]

    def silent(self) -> list[Session]:
        """Those of them with whom there is no session, or who have not answered the last reminder."""
        return [e for e in self.waiting() if e.stage is OPENING or (e.stage is LIVE and e.proved < self.moment)]

    def awaits(self, end: Session) -> bool:
        """Whether a neighbour that was gone has called, and a decision is on its way, for a few reminders.

        A round takes offers and decisions back. Who runs alone, faster than an answer comes, would take back every one.
        """
        return end.stage is GONE and (end.out or end.pend) is not None and end.waited < REMINDERS

    def finish(self) -> None:
        """End the round: the share of every edge that has spoken in it grows, and the dual with it."""
        if self.finished == self.round:
            return
        grown: list[int] = []
        if self.lockstep:
            due = [e for e in self.ends.values() if e.stage is LIVE and e.k < e.spoken]
            heard = [e.index for e in due]
        else:
            ends = [e for e in self.ends.values() if e.stage is LIVE and not e.stands]
            due = [e for e in ends if e.k < e.label and not self.is_ahead(e)]
            heard = [e.index for e in ends]
            # Who has spoken of a later round before this one was over is heard like the others; its share has grown.
            if len(due) < len(ends):
                grown = sorted({*heard} - {e.index for e in due})
        self.book.listen(heard, grown)
        for end in due:
            end.k += 1
        self.finished = self.round

    def is_ahead(self, end: Session) -> bool:
        """On slots: whether this end has been a round ahead of the other for long, and so lets one pass uncounted.

        Of two that open an edge, a tick may come between: one has counted a round that the other has not. Whoever hears
        a later one catches up, but only until the other's next tick: so it would stay, and what is said by the one
        behind would be a round late for ever. Where messages do take so long it is of no use, so it is seldom tried.
        """
        if end.lagged < end.lagging:
            return False
        end.lagged, end.lagging = 0, min(2 * end.lagging, LAGGING[1])
        return True

    def begin(self, kind: Kind, data: Any, say: bool = True) -> None:
        """Begin a round with what is said in it; ``say`` is False where silence is not worth a byte."""
        self.round += 1
        self.moment += 1
        self.begun, dropped = True, False
        for end in self.ends.values():
            if end.stage is LIVE:
                end.label = end.k + 1
                if say or (end.amid and not end.spoken) or self.has_words(end):
                    self.say(end, kind, data)
                end.unheard += 1
                end.late = LATER * end.late if end.late > 0.5 else 0.0
            else:
                end.intact = False
                dropped |= end.counted
                end.counted = False
            end.void(always=self.lockstep)
            end.waited -= end.waited > 0 and self.round % _AGAIN == 0
        if dropped:
            self.settle()
        self.look_after()

    def has_words(self, end: Session) -> bool:
        """Whether there is something to say to this neighbour alone."""
        return False

    def let_pass(self, rounds: int) -> None:
        """On slots: rounds pass in silence, as after a pause of the device."""
        self.finish()
        for end in self.ends.values():
            if end.stage is LIVE:
                if rounds > self.apart:
                    self.doubt(end)
                    continue
                if not end.stands:
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

    def has_missed_nothing(self, end: Session, request: Request) -> bool:
        """Whether, in lockstep, there is nothing to say again: the next round has not begun here."""
        return self.lockstep and request.heard == end.spoken

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
        why = self.book.hear(end.index, statement, late, self.digest_of(end, statement.n))
        if why == "digest":
            self.tell(end, "disagreement")
            end.intact = False  # to go on would be to disagree again
            self.doubt(end, statement)
            return
        if why:
            raise m.Refusal(why)
        end.late = max(end.late, float(late))
        if late <= 0:
            end.lagged = 0
        elif end.lagged_in != self.round:
            end.lagged, end.lagged_in = end.lagged + 1, self.round
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

    def confirm(self, end: Session, request: Request) -> None:
        """Show that this process is alive, and has only nothing to say: a silent one would be given up."""
        if self.afford(end, 1):
            self.send(end, m.Confirm(end.tag))

    def repeat(self, end: Session, request: Request) -> None:
        """Say again what was missed."""
        missed = [statement for statement in end.log if statement.n > request.heard]
        if self.afford(end, len(missed)):
            for statement in missed:
                self.send(end, statement)

    def refuse_replayed(self, end: Session, statement: Statement) -> None:
        """It was heard before."""
        raise m.Refusal("replayed")

    def connected(self, end: Session) -> None:
        """The driver says that the neighbour is there."""
        self.handle(end, Connected())

    def disconnected(self, end: Session) -> None:
        """The driver says that the neighbour is gone."""
        self.handle(end, Disconnected())

    def remind(self) -> None:
        """Ask again wherever something is open."""
        self.moment += 1
        self.credit += self.allowance  # time has passed
        for end in list(self.ends.values()):
            end.waited += self.awaits(end)
            if self.insists(end):
                continue
            if end.stage is OPENING:
                self.seek(end)
            elif end.stage is LIVE and (end.heard < end.spoken if self.lockstep else end.held):
                self.request(end)
