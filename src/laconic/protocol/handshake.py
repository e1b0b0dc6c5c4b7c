"""How sessions begin and end: (HELLO ->) CALL -> OFFER -> DECIDE -> CONFIRM, and what makes an end give one up.

Each message answers a number that the other end has just drawn, so that a replay settles nothing. ``table`` says when
what is done.
"""

from __future__ import annotations

from typing import Any

from laconic.protocol import messages as m
from laconic.protocol.ends import Ends
from laconic.protocol.messages import Call, Confirm, Decide, Hello, Offer, Statement
from laconic.protocol.session import GONE, LIVE, OPENING, SUPERSEDED, Session, can_go_on, decided_share

REMINDERS = 3  # after which a decision that nobody confirms is given up
FENCED = 16  # occasions after which a process that was refused asks again, at first; then each time twice as many
FURTHEST = 1 << 18  # rounds that few neighbours can make the agent jump; one more with every round that it lives
ROUND_LIMIT = 1 << 46  # that most of them can make it jump to, so that there is room for as many more
COUNT_LIMIT = 1 << 47  # no counter of an honest agent gets there


class Handshake(Ends):
    """How sessions begin and end."""

    # ----------------------------------------------------------------------------------------------------------------
    # The handshake: conditions

    def is_the_same_session(self, end: Session, call: Call) -> bool:
        """Whether the leader is steadily in the session that this end is in."""
        end.claim = min(call.round, ROUND_LIMIT)
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
        """Whether a process speaks, and proves to be alive, whose place another has taken that is not silent.

        A process that nobody has heard for long may be gone; then the earlier one takes its place again.
        """
        silent = end.stage is not LIVE and self.moment > end.proved + self.heartbeat + self.apart
        if letter.inc in end.superseded and not silent:
            return True
        if end.inc not in (0, letter.inc):
            earlier = (inc for inc in (*end.superseded, end.inc) if inc != letter.inc)
            end.superseded, end.doubled = tuple(earlier)[-SUPERSEDED:], False
        end.inc, end.proved = letter.inc, self.moment
        return False

    def is_too_far(self, end: Session, letter: Offer | Decide) -> bool:
        """Whether a neighbour would move the round further than it may alone, or counts beyond all bounds."""
        if letter.round > ROUND_LIMIT or max(letter.g, end.g) + 1 >= COUNT_LIMIT:
            return True
        if end.g and letter.g > end.g + FURTHEST:
            return True
        end.claim = letter.round
        if isinstance(letter, Offer):
            end.degree = letter.degree
        return isinstance(letter, Decide) and self.is_far_ahead(end, letter)

    def is_far_ahead(self, end: Session, letter: Offer | Decide) -> bool:
        """Whether, in lockstep, a neighbour is in a round that it may not move this agent to alone."""
        if not self.lockstep or letter.round <= self.round:
            return False
        return self.beyond_most(end, letter.round) > FURTHEST - self.lent_rounds()

    def is_alone_ahead(self, end: Session, letter: Offer | Decide) -> bool:
        """Whether, in lockstep, this agent is where a neighbour may not come to, and most have shown that they are not.

        Who follows one liar, since it has no other neighbour, gets there; nobody would ever be in a session with it. A
        neighbour that has no other one itself comes along.
        """
        most = FURTHEST if isinstance(letter, Offer) else 0  # a leader that decides so has been asked to follow
        end.behind = self.lockstep and letter.degree > 1 and self.round - letter.round > most
        return end.behind and 2 * sum(e.behind for e in self.ends.values()) > len(self.ends)

    def is_far_behind(self, end: Session, decide: Decide) -> bool:
        """Whether the leader asks this agent to go back, and most neighbours have not shown that they are there."""
        return end.behind

    def beyond_most(self, end: Session, round: int) -> int:
        """By how much a round is beyond what more than half of the neighbours have come to.

        An agent with a memory counts all of them, by what each last said. One without has to believe those who are
        there.
        """
        heard = [e.claim for e in self.ends.values() if self.round or e is end or e.stage is not GONE]
        return round - max(self.round, sorted(heard, reverse=True)[len(heard) // 2])

    def lent_rounds(self) -> int:
        """Rounds that few neighbours have made the agent jump, less those that it has lived since."""
        return max(0, self.lent - (self.moment - self.lent_at))

    def is_of_the_decision(self, end: Session, letter: Confirm | Offer | Statement) -> bool:
        """Whether it shows that the follower has installed what this process decided."""
        return self.is_pending(end, letter) and end.pend is not None and end.pend[1].inc == self.inc

    def is_of_an_old_decision(self, end: Session, letter: Confirm | Statement) -> bool:
        """Whether it confirms what an earlier process of this name decided."""
        return self.is_pending(end, letter)

    def is_pending(self, end: Session, letter: Confirm | Offer | Statement) -> bool:
        """Whether the tag is that of a decision not yet confirmed."""
        return end.pend is not None and letter.tag == self.tag_of(*end.pend)

    # ----------------------------------------------------------------------------------------------------------------
    # The handshake: actions

    def ignore(self, end: Session, letter: Any) -> None:
        """Nothing is to be done."""

    def seek(self, end: Session, letter: Any = None) -> None:
        """Call or greet, once on each occasion; on slots, say a decision again first that may be under way."""
        if end.asked != self.moment:
            if not self.lockstep and self.insists(end, letter):
                end.asked = self.moment
            else:
                self.seek_again(end)

    call = seek

    def insists(self, end: Session, letter: Any = None) -> bool:
        """Say a decision again that nobody has confirmed, a few times: to call instead would be to take it back.

        Unless the letter shows that the follower cannot install it: it is another process, or has offered anew.
        """
        if end.pend is None or end.pend[1].inc != self.inc:
            return False
        made = end.pend[0]
        void = isinstance(letter, Hello | Offer) and letter.inc != made.inc
        void |= isinstance(letter, Offer) and letter.ctr > made.ctr
        end.reminded += 1
        if void or end.reminded > REMINDERS:
            if void or self.lockstep:  # on slots an answer may take many rounds, and keeps nobody waiting
                end.pend = None
            return False
        self.decide_again(end)
        return True

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
            # On slots nobody waits: where an answer takes longer than a round, no offer to go on would ever hold.
            intact = end.intact and (self.lockstep or not end.hurried)
            known = end.tag, end.g, end.k, end.spoken, end.heard, len(end.log), intact, end.fresh
            end.out = Offer(echo, self.inc, self.ctr, self.round, self.degree, *known, hat, share)
        self.send(end, end.out)

    def go_back(self, end: Session, letter: Offer | Decide) -> None:
        """Lockstep: be in the round that most neighbours are in, and look at the letter once more."""
        self.jump(end, max(e.claim for e in self.ends.values() if e.behind))
        for other in self.ends.values():
            other.behind = False
        self.handle(end, letter)

    def call_back(self, end: Session, offer: Offer) -> None:
        """Do not follow, and propose the own round: perhaps the other is there alone."""
        self.decide(end, offer)
        raise m.Refusal("too far ahead")

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
        echo, g = (offer.inc, offer.ctr), max(offer.g, end.g) + 1
        last = self.round if self.is_far_ahead(end, offer) else max(offer.round, self.round)
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
            if self.afford(end, 1):
                self.send(end, Confirm(end.tag))
        elif decide.echo[0] == self.inc:
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
        end.proved = self.moment
        if end.fenced:  # the later process of this name may be gone: ask the others soon, too
            for other in self.ends.values():
                if other.fenced and other is not end:
                    other.fenced, other.shut_until = 1, min(other.shut_until, self.moment + FENCED)
        end.fenced = 0
        if end.leads and not self.lockstep:
            end.call += 1  # what answers a call from before the session is not about it
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
        end.intact, end.hurried, end.waited = True, False, 0
        if decide.goes_on:
            end.log = tuple(statement._replace(tag=end.tag) for statement in end.log)
            return
        end.begin()
        end.fresh = False
        other = offer.inc if end.leads else decide.inc
        starts = not self.begun or other != end.met
        end.amid = starts and not (self.book.is_blank(offer.hat) and self.book.is_blank(decide.hat))
        end.met = other
        if end.leads:
            self.book.open(end.index, offer.hat, decide.share)
        else:
            self.book.open(end.index, decide.hat, self.book.opposite(decide.share))

    def jump(self, opened: Session, round: int) -> None:
        """Lockstep: be in the round that the others have come to; everything else is negotiated anew."""
        self.lent = self.lent_rounds() + max(0, self.beyond_most(opened, round))
        self.lent_at = self.moment
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
        end.doubled = True
        self.tell(end, "two of one name")
        if self.afford(end, 1):
            self.send(end, m.Refused(letter.inc))

    def refuse_far(self, end: Session, letter: Any) -> None:
        """Do not take what would go too far."""
        raise m.Refusal("too far ahead")

    def refuse_to_go_back(self, end: Session, letter: Any) -> None:
        """Do not take what would go back too far."""
        raise m.Refusal("too far behind")

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
        end.shut, end.sought, end.shut_until = "refused", 0, self.moment + (FENCED << min(end.fenced, 20))
        self.suspend(end)
        # It may have been told before of an earlier process. This one is worse: it takes the agent's place.
        self.tell(end, "another has this name", new=not end.fenced)
        end.fenced += 1

    def report_another(self, end: Session, letter: Any = None) -> None:
        """An earlier process goes by this name, and is alive: it is refused there, and somebody should stop it."""
        self.tell(end, "another has this name")


def _origin(decide: Decide) -> tuple[int, ...]:
    return (decide.inc, decide.ctr, *decide.echo)


def _key(offer: Offer) -> tuple[int, int]:
    return offer.inc, offer.ctr
