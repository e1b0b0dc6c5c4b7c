"""The conversation of one agent in bytes: who is meant, what is refused, and who is not heard any more."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.protocol.accounts import Accounts
from laconic.protocol.conversation import Conversation
from laconic.protocol.handshake import FENCED, FURTHEST
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Letter,
    Offer,
    Refusal,
    Request,
    Statement,
    Survey,
)
from laconic.protocol.session import GONE, LIVE, OPENING, Session
from laconic.protocol.waving import Waves
from laconic.protocol.wire import VERSION, Envelope, Wire, identity

log = logging.getLogger("laconic.protocol")

ON_TIME = 1.5  # slots by which messages may be late without a step being shortened
ENOUGH = 32  # refusals, or doubts, in a row after which a neighbour is quarantined
LATEST = 10  # slots beyond which it does not matter how late a message is; edges hardly live with later ones
TARDY = 64  # rounds for which a neighbour is late before it is reported
QUARANTINE = 256  # occasions that it lasts for, at first
BRIEFLY = 16  # the same where neighbours were judged by each other
TOLD = 256  # occasions after which the same is told again of the same neighbour
SOUGHT = 3  # calls in a row, and nothing else, after which a process answers a neighbour that has refused it
_JOINING = 3  # reminders that an agent on slots waits for at its start
_HARMLESS = ("replayed", "another session", "shut")  # part of every repair
_WHY = {  # what can only be mended by a person, in a sentence
    "version": f"it speaks another version of the wire format, this agent speaks {VERSION}: update the older.",
    "fingerprint": "its features, learner, channel, clock, precision or number of agents are not this agent's.",
}
_ADVICE = {  # what to do about what is told, in a sentence
    "another has this name": "two processes have its name, and the later one is served until it is gone: stop one.",
    "two of one name": "two processes have its name, and the later one is served until it is gone: stop one.",
    "other settings": "nobody waits for it until it is started anew: compare its settings and its version.",
}
_DELIBERATE = ("version", "fingerprint", "kind", "malformed", "dimension", "not finite", "too far ahead", "too large")


class Message(NamedTuple):
    """Bytes to be carried to the neighbour ``to``."""

    to: str
    data: bytes


class Alert(NamedTuple):
    """Something that somebody should look at, about a neighbour, or about the agent itself if that is empty."""

    what: str
    neighbour: str


class Dialogue(Conversation):
    """One agent's conversation: see ``Conversation`` for what is said, and when."""

    def __init__(self, name: str, lockstep: bool, ledger: Ledger | Waves, wire: Wire, inc: int, heartbeat: int) -> None:
        self.ledger, self.wire = ledger, wire
        self.accounts = ledger if isinstance(ledger, Waves) else Accounts(ledger, wire, self._weigh)
        super().__init__(name, lockstep, self.accounts, inc, wire.tag_of, heartbeat)
        self.by_identity: dict[int, Session] = {}
        self.by_index: list[Session] = []
        self.former: dict[int, Session] = {}  # who was a neighbour once
        self.joining = False
        self.started = False  # whether there was a round, or a memory of one
        self.remembered = 0  # the round of that memory
        self._then: dict[str, Array] = {}  # what neighbours were believed to know then
        self.tell_whole = False  # whether the broadcast has to be told in full in the next round
        self.told: dict[tuple[str, str], int] = {}  # what was told of whom, and when
        self.vouched = False  # whether the transport knows who sent what is being heard
        self.counters: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def _weigh(self, indices: tuple[int, ...]) -> tuple[float, ...]:
        """Metropolis weights."""
        return tuple([1.0 / (1.0 + max(self.degree, self.by_index[i - 1].degree)) for i in indices])

    def register(self, end: Session) -> None:
        """Know a neighbour."""
        end.number = identity(end.name)
        self.ends[end.name] = self.by_identity[end.number] = end
        self.by_index.append(end)

    @property
    def lateness(self) -> float:
        """Slots by which messages come late, as far as steps have to be shortened for that; at most ``LATEST``.

        A learner without duals needs no shorter steps. Where pulls are clipped, more than half the neighbours have to
        be late. Otherwise the latest counts: one late edge among others makes duals swing without bounds.
        """
        if self.lockstep or isinstance(self.ledger, Waves) or not self.ledger.has_duals:
            return 0.0
        late = sorted(end.late for end in self.ends.values() if end.stage is LIVE)
        if not late:
            return 0.0
        return min(late[(len(late) - 1) // 2] if self.ledger.clips else late[-1], float(LATEST))

    def begin(self, kind: Kind, data: Any, say: bool = True) -> None:
        """Begin a round, and report neighbours that have been late for long."""
        super().begin(kind, data, say)
        for end in self.ends.values() if not self.lockstep else ():
            end.tardy = end.tardy + 1 if end.late > ON_TIME else 0
            if end.tardy >= TARDY:
                self.tell(end, "neighbour is late")

    def who_is_waited_for(self) -> list[Session]:
        """Who has to be heard before the next round may begin."""
        if self.lockstep:
            # Whose place another process has taken everywhere must not run ahead alone: whatever round it came to, the
            # others would have to follow when it is started again.
            fenced = bool(self.ends) and all(end.fenced for end in self.ends.values())
            return list(self.ends.values()) if fenced else self.waiting()
        return [e for e in self.ends.values() if e.stage is OPENING] if self.joining else []

    def missing(self) -> tuple[str, ...]:
        """Of whom more has to be known before the first round may begin."""
        return ()

    def remember(self) -> None:
        """A memory was put back."""
        self.started, self.remembered = True, self.round
        if isinstance(self.ledger, Ledger):
            self._then = {end.name: self.ledger.said(end.index).copy() for end in self.ends.values()}

    # ----------------------------------------------------------------------------------------------------------------
    # Starting

    def rejoin(self) -> None:
        """Find out where the others are."""
        self.joining = True
        if self.moment:  # otherwise that is in the queue already
            self.moment += 1
        self.reminders = 0
        for end in self.ends.values():
            if end.stage is OPENING:
                self.seek(end)

    def warm_start(self) -> None:
        """Without memory among others that have one: begin with the median of their models, and in their round.

        Of an even number the two models in the middle are not averaged: either may be a lie, and the smaller does less.
        With an old memory, on slots, the own model is one more in that median: it would draw everybody back to where it
        was, and what it had learned since the others know. In lockstep, where the old memory has all neighbours at one
        round, it goes with them: by the median of how far each has gone since, itself not at all. So what it has that
        neighbours have not said, since they were silent, stays.
        """
        known = [e for e in self.ends.values() if e.stage is LIVE]
        if known and not self.begun:
            others = sorted(e.claim for e in known)[(len(known) - 1) // 2]
            # In lockstep the round has been set by the sessions; on slots a few rounds are not worth it.
            late = not self.lockstep and others > self.round + self.apart
            if self.started:
                if isinstance(self.ledger, Ledger) and len(known) > 1:
                    if late and others <= self.round + FURTHEST:
                        self._begin_with(_median([*self._models(known), self.ledger.weights]), known)
                        self.round = self.finished = others
                    elif self.lockstep and self.round > self.remembered + self.apart:
                        gone = [self.ledger.said(e.index) - self._then[e.name] for e in known if e.name in self._then]
                        own = self.ledger.weights
                        self._begin_with(own + _median([*gone, np.zeros_like(own)]), known)
            elif late or self.round > 0:
                self._begin_with(_median(self._models(known)), known)
                if late:
                    self.round = self.finished = others
                    for end in known:  # what was believed of each alone, now that there is something to compare it with
                        if self.accounts.is_too_large(end.index):
                            self.quarantine(end)
        self.started, self.joining = True, False

    def _models(self, known: list[Session]) -> list[Array]:
        return [self.ledger.said(e.index) for e in known]

    def _begin_with(self, model: Array, known: list[Session]) -> None:
        self.ledger.begin_with(model, len(known) > 1)
        self.tell_whole = True
        self.counters["recoveries"] += 1

    def is_outvoted(self, away: Sequence[Session]) -> bool:
        """Whether most neighbours are, or were lately, far from what an agent without labels takes for usual."""
        against = {end.name for end in away} | {end.name for end in self.ends.values() if end.shut == "quarantined"}
        return bool(away) and 2 * len(against) > len(self.ends)

    def follow(self) -> None:
        """Without labels: be where the neighbours are that are left, if they have said anything."""
        assert isinstance(self.ledger, Ledger)
        models = [model for model in self._models([e for e in self.ends.values() if e.stage is LIVE]) if model.any()]
        if models:
            self.ledger.weights = _median(models)

    def begin_anew(self) -> None:
        """Forget a model that neighbours have told, and what was said of it, which others refuse to hear.

        Without labels the agent loses nothing by that. Its edges open as after a restart without a memory.
        """
        assert isinstance(self.ledger, Ledger)
        self.ledger.begin_anew()
        for end in self.ends.values():
            if end.stage is not GONE:
                end.forget(OPENING, fresh=False)
        self.must_save = True
        self.settle()

    def remind(self) -> None:
        """Ask again wherever something is open; on slots nobody is waited for longer than for a few reminders."""
        super().remind()
        self.reminders += 1
        if self.reminders >= _JOINING:
            self.joining = False
        self.look_at_the_shut()

    reminders = 0

    def look_after(self) -> None:
        """Use what was held, ask again where something is open, and let those come back that were quarantined."""
        super().look_after()
        self.look_at_the_shut()

    def look_at_the_shut(self) -> None:
        """End a quarantine whose time is over, and ask where this process was refused: the later one may be gone.

        Who has left meanwhile is not waited for.
        """
        for end in self.ends.values():
            if self.moment < end.shut_until:
                continue
            if end.shut == "quarantined":
                if end.away:
                    end.shut, end.refused = "", 0
                else:
                    self.admit(end)
            elif end.fenced and not end.away:
                end.shut, end.shut_until = "", self.moment + FENCED
                self.seek_again(end)

    def admit(self, end: Session) -> None:
        """Hear a neighbour again that was quarantined."""
        end.shut, end.refused = "", 0
        self.connected(end)

    def connected(self, end: Session) -> None:
        """A neighbour is there."""
        end.away = False
        super().connected(end)

    def lose(self, end: Session) -> None:
        """The driver says that a neighbour is gone."""
        end.away = True
        self.disconnected(end)

    # ----------------------------------------------------------------------------------------------------------------
    # Hearing

    def receive(self, data: bytes, sender: str | None) -> None:
        """Take a message in, or refuse it: then it is counted, and nothing else changes."""
        end = self.ends.get(sender) if sender is not None else None
        self.vouched = end is not None
        try:
            envelope = self.wire.decode(data)
            end = self._who(envelope, sender)
            if end.shut and not self._is_sought(end, envelope.letter):
                self._turn_away(end, envelope.letter)
                raise Refusal("shut")
            self.handle(end, envelope.letter)
        except Refusal as refusal:
            self.refuse(refusal.reason, end, sender)

    def _who(self, envelope: Envelope, sender: str | None) -> Session:
        """Whose message it is."""
        letter = envelope.letter
        if envelope.sender is not None:
            if envelope.to != self.wire.sender:
                raise Refusal("misaddressed")
            end = self.by_identity.get(envelope.sender)
            if end is None:
                self._dismiss(envelope)
                raise Refusal("stranger")
            if sender is not None and sender != end.name:
                raise Refusal("spoofed")
            vectors = (letter.hat, letter.share) if isinstance(letter, Offer | Decide) else (None, None)
            if vectors[0] is not None and self.ledger.is_too_large(*vectors):
                raise Refusal("too large")
            return end
        assert isinstance(letter, Confirm | Statement | Request | Farewell | Survey)
        known = self.ends.get(sender) if sender is not None else None
        if sender is not None and known is None:
            raise Refusal("stranger")
        if known is None or letter.tag != known.tag:
            owner = next((e for e in self.ends.values() if self._knows(e, letter.tag)), known)
            if owner is None:
                raise Refusal("stranger")
            if known is not None and owner is not known:
                raise Refusal("spoofed")
            known = owner
            if not self._knows(known, letter.tag):
                self.refuse("another session", known, sender)
        if envelope.follows != known.leads:
            raise Refusal("reflected")
        if letter.tag == known.tag:
            known.proved = self.moment
        return known

    def _knows(self, end: Session, tag: int) -> bool:
        return tag == end.tag or (end.pend is not None and tag == self.tag_of(*end.pend))

    def _dismiss(self, envelope: Envelope) -> None:
        """Tell a former neighbour, which still asks, that it is none: the farewell it was told must have been lost."""
        former, letter = self.former.get(envelope.sender or 0), envelope.letter
        if former is not None and isinstance(letter, Hello | Call | Offer) and letter.tag and self.afford(former):
            self.send(former, Farewell(letter.tag))

    def _is_sought(self, end: Session, letter: Letter) -> bool:
        """Whether a neighbour that refused this process seeks one of its name again: then the other seems to be gone.

        Both hear what is sent to their name. A live one answers, and what it is told next shows it.
        """
        if end.shut != "refused":
            return False
        end.sought = end.sought + 1 if isinstance(letter, Hello | Call) else 0
        if end.sought < SOUGHT:
            return False
        end.shut = ""
        return True

    def _turn_away(self, end: Session, letter: Letter) -> None:
        """Tell a neighbour that is quarantined, and asks, that it is not heard: in lockstep others may wait for it."""
        if end.shut == "quarantined" and isinstance(letter, Request) and letter.tag and self.afford(end):
            super().send(end, Farewell(letter.tag))

    def complain(self, end: Session, reason: str) -> None:
        """A statement that was held back turns out to be no good."""
        self.refuse(reason, end, end.name)

    def refuse(self, reason: str, end: Session | None, sender: str | None) -> None:
        """Count a message that was not taken; log the first, the second, the fourth and so on of each kind."""
        self.refusals[reason] += 1
        count = self.refusals[reason]
        if count & (count - 1) == 0:
            # Repetitions are part of every repair; the rest should make somebody look.
            level = logging.DEBUG if reason in _HARMLESS else logging.WARNING
            why = {"why": _WHY[reason]} if reason in _WHY else {}
            log.log(level, "refused: %s", reason, extra={"agent": self.name, "sender": sender, "count": count, **why})
        # Noise on the line is not its fault, nor is what others say in its name.
        if end is not None and sender == end.name and reason in _DELIBERATE and not end.shut:
            if reason in _WHY and end.stage is not LIVE:
                self.do_without(end)
            else:
                self.blame(end)

    def do_without(self, end: Session) -> None:
        """Take a neighbour with other settings for absent: it has to be started anew before a session can begin."""
        self.tell(end, "other settings")
        if end.stage is OPENING:
            self.seek_again(end)  # it may not have been there when it was asked before, and has to find out, too
            self.disconnected(end)

    def blame(self, end: Session) -> None:
        """Count what a neighbour has to answer for, until something good is heard of it again."""
        end.refused += 1
        if end.refused >= ENOUGH:
            self.quarantine(end)

    def tell(self, end: Session, what: str, *, new: bool = False) -> None:
        """Have somebody know of something about a neighbour, and log it; the same again later, or if it is ``new``."""
        last = self.told.get((what, end.name))
        if new or last is None or self.moment >= last + TOLD:
            self.told[what, end.name] = self.moment
            super().tell(end, what)
            why = {"why": _ADVICE[what]} if what in _ADVICE else {}
            log.warning(what, extra={"agent": self.name, "neighbour": end.name, **why})

    def quarantine(self, end: Session, lasts: int = QUARANTINE) -> None:
        """Go on without a neighbour that says nothing but what is refused; it may come back, each time later."""
        end.shut, end.shut_until = "quarantined", self.moment + (lasts << min(end.quarantines, 20))
        end.quarantines += 1
        self.disconnected(end)
        self.tell(end, "quarantined", new=True)

    # ----------------------------------------------------------------------------------------------------------------
    # Speaking

    def outgoing(self) -> list[Message]:
        """What is to be carried now, encoded."""
        letters, self.letters = self.letters, []
        messages, size = [], 0
        for end, letter in letters:
            data = self.wire.encode(letter, end.number, not end.leads)
            messages.append(Message(end.name, data))
            size += len(data)
        self.counters["bytes_out"] += size
        self.counters["messages_out"] += len(messages)
        return messages

    def send(self, end: Session, letter: Letter) -> None:
        """Put a letter into the queue, and count it."""
        if end.shut:
            return
        super().send(end, letter)
        if isinstance(letter, Hello | Call | Request):
            self.counters["requests"] += 1
        elif isinstance(letter, Offer | Decide):
            self.counters["snapshots"] += 1

    def repeat(self, end: Session, request: Request) -> None:
        """Say again what was missed, and count it."""
        before = len(self.letters)
        super().repeat(end, request)
        self.counters["repeats"] += len(self.letters) - before

    def install(self, end: Session, offer: Offer, decide: Decide) -> None:
        """Make a session the one in use, and count it."""
        if end.tag and not decide.goes_on:
            self.counters["repairs"] += 1
        self.counters["sessions"] += 1
        end.claim = max(decide.round, end.claim) if not end.leads else min(offer.round, decide.round)
        known = self.ledger.size_of(end.index)
        super().install(end, offer, decide)
        if not decide.goes_on:
            end.imposed = self.ledger.size_of(end.index) > 10 * known
        self.ledger.strained = True  # perhaps: the next step will be looked at

    def doubt(self, end: Session, letter: object = None) -> None:
        """Set the share aside, open the edge anew, and count it."""
        self.counters["doubts"] += 1
        if isinstance(letter, Statement) and not self.lockstep:  # perhaps since it is so late
            end.late = max(end.late, float(min(end.k + 1 - letter.label, LATEST)))
        super().doubt(end, letter)
        if self.vouched and letter is not None:
            self.blame(end)

    def say_silence(self) -> None:
        """On slots: give a sign of life to all that hear."""
        for end in self.ends.values():
            if end.stage is LIVE:
                self.say(end, Kind.SILENCE, b"")

    def remove(self, end: Session) -> None:
        """Take an edge away."""
        if end.tag:
            self.send(end, Farewell(end.tag))
        del self.ends[end.name], self.by_identity[end.number]
        self.by_index.remove(end)
        end.stage = GONE
        self.former[end.number] = end
        self._renumber([e.index for e in self.by_index])

    def add(self, end: Session) -> None:
        """Have an edge more, which begins with nothing."""
        self.former.pop(identity(end.name), None)
        self._renumber([*(e.index for e in self.by_index), 0], end)
        self.seek(end)

    def _renumber(self, kept: list[int], new: Session | None = None) -> None:
        self.accounts.resize(kept)
        if new is not None:
            self.register(new)
        for index, end in enumerate(self.by_index, 1):
            end.index = index
        self.must_save = True
        self.settle()


def _median(models: Sequence[Array]) -> Array:
    """Entry by entry; of two in the middle the smaller."""
    ordered = np.sort(models, axis=0)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return np.where(np.abs(low) <= np.abs(high), low, high)
