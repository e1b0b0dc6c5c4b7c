"""The conversation of an agent that runs waves: sessions as of any other, and a chart of who hears whom.

A neighbour belongs on the chart from the moment that a session with it is installed until it is gone. On slots, where
edges are doubted and opened anew while everybody goes on, it stays there for ten rounds without a session. In lockstep
an agent makes its first entry when it has found out about all its neighbours, and does not begin its first round before
it knows of everybody whom somebody hears: so all have the same tree in the first wave already.

What is new on the chart is told at once to all neighbours, who answer with the digest of theirs. Where digests differ
at the next round or reminder, the whole chart is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from laconic.protocol.chart import Record
from laconic.protocol.dialogue import BRIEFLY, Dialogue
from laconic.protocol.messages import Decide, Kind, Letter, Offer, Refusal, Survey
from laconic.protocol.session import APART, GONE, LIVE, OPENING, Session
from laconic.protocol.waving import Waves
from laconic.protocol.wire import Wire

_ECHOES = 3  # on slots: rounds for which something is said after a wave's message, so that its loss is noticed
_DAMPED = 10.0  # of a root's trust, beyond which somebody should look
_ANSWERS = 4  # entries before the first round, between two reminders, that answer another of the same name
STRIKES = 3  # messages that cannot be after which a neighbour is quarantined


@final
class WaveDialogue(Dialogue):
    """One agent's conversation."""

    def __init__(self, name: str, lockstep: bool, waves: Waves, wire: Wire, inc: int, heartbeat: int) -> None:
        super().__init__(name, lockstep, waves, wire, inc, heartbeat)
        self.waves = waves
        waves.ends = self.by_index
        self._away: dict[str, int] = {}  # who is on the chart, and for how many rounds there has been no session
        self._theirs: dict[str, int] = {}  # digests of the neighbours' charts, as far as they said
        self._echoes: dict[str, int] = {}
        self._strikes: dict[str, int] = {}
        self._answers = 0
        self._damped = False

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def ride(self, due: bool) -> tuple[int, int]:
        """Begin a round with what waves have to say in it, after its sample; (messages, bits)."""
        waves = self.waves
        self.tell_whole = False  # there is nothing to be told whole
        waves.clock += 1
        for name in self._away:
            self._away[name] += 1
        self._enter()
        said = waves.turn(self.ends, self._lived())
        if waves.node.overdue and waves.node.place.n_agents > 1:
            self._enter(waves.chart.term + 1)
        for name, why, blamed in waves.refused:
            if blamed:
                self._strike(name, why)
            else:  # perhaps it is this agent that is late; and who lies so does as much by saying nothing
                self.refuse(why, self.ends.get(name), name)
        waves.refused = []
        for end in [end for end in self.ends.values() if end.number in waves.node.left_out]:
            self.refuse("too large", end, end.name)  # no strike: perhaps it is honest, and hears who is not
        self._report()
        self.begin(Kind.SILENCE, b"", say=due)
        waves.drop_unsaid()
        self._compare_charts()
        return said

    def _lived(self) -> int:
        """How many rounds there have been: this one's number, or on slots what half of the others have come to.

        Who starts late, or with an old memory, is behind them for good, and would take what they know for a lie about
        time. Who has just started itself knows nothing of that.
        """
        claims = [end.claim for end in self.ends.values() if end.stage is LIVE and end.claim > APART]
        if self.lockstep or not claims:
            return self.round + 1
        return max(self.round + 1, sorted(claims)[(len(claims) - 1) // 2])

    def _report(self) -> None:
        """Count the waves; and tell if the root has to damp its steps, as where what it was told does not fit."""
        node = self.waves.node
        damped = node.place.parent is None and bool(np.max(node.trust) > _DAMPED)
        if damped and not self._damped:
            self.news.append(("waves are damped", ""))
        self._damped, self.counters["waves"] = damped, node.adopted

    def has_words(self, end: Session) -> bool:
        """Whether a wave has something to say to it, or has had just now."""
        if self.waves.has_words(end.name):
            self._echoes[end.name] = _ECHOES + 1
        left = self._echoes.get(end.name, 0)
        self._echoes[end.name] = max(0, left - 1)
        return left > 0

    def say(self, end: Session, kind: Kind, data: bytes) -> None:
        """Say what a wave has to say to this neighbour, if it has."""
        words = self.waves.words(end.name)
        super().say(end, *((Kind.WAVE, words) if words else (kind, data)))

    def _strike(self, name: str, why: str) -> None:
        """Count what cannot be; who says such things again and again is not heard any more."""
        end = self.ends.get(name)
        self.refuse(why, end, name)
        if end is None or end.shut:
            return
        self._strikes[name] = self._strikes.get(name, 0) + 1
        if self._strikes[name] >= STRIKES:
            self._strikes[name] = 0
            if not self.waves.taught:
                self.quarantine(end)
            elif self.is_outvoted([end]):
                self.waves.begin_anew()
            else:
                self.quarantine(end, BRIEFLY)

    # ----------------------------------------------------------------------------------------------------------------
    # The chart

    def missing(self) -> tuple[str, ...]:
        """Whom a first round in lockstep waits for: those of whom it is only known that they are there."""
        if not self.lockstep or self.round or not self.ends:
            return ()
        known = {end.number: end.name for end in self.ends.values()}
        return tuple(known.get(number, f"#{number:08x}") for number in self.waves.chart.missing())

    def _enter(self, term: int | None = None) -> None:
        """Write down who is heard, if that has changed, and tell."""
        ends = self.ends.values()
        if self.lockstep and not self.round and any(e.stage is OPENING or e.pend is not None for e in ends):
            return
        for end in ends:
            if end.stage is LIVE:
                self._away[end.name] = 0
        on_chart = [e for e in ends if e.name in self._away and (self.lockstep or self._away[e.name] <= APART)]
        record = self.waves.chart.enter([e.number for e in on_chart if e.stage is not GONE], term)
        if record is not None:
            self._spread([record])

    def _spread(self, records: Iterable[Record], to: Session | None = None, but: Session | None = None) -> None:
        """Tell some entries to one neighbour, or to all but one."""
        data = self.waves.chart.encode(records)
        for end in self.ends.values() if to is None else (to,):
            if end.stage is LIVE and end is not but:
                self.send(end, Survey(end.tag, data))

    def _compare_charts(self) -> None:
        """Tell all to those who are not known to have the same chart."""
        chart = self.waves.chart
        for end in self.ends.values():
            if end.stage is LIVE and self._theirs.get(end.name) != chart.digest and self.afford(end):
                self._spread(chart.records.values(), to=end)

    def handle(self, end: Session, event: object) -> None:
        """A survey has no place in the table: it is about others, and changes nothing in a session."""
        if isinstance(event, Survey):
            self._hear_survey(end, event)
        else:
            super().handle(end, event)
        if not self.round and self._may_answer():
            self._enter()

    def _may_answer(self) -> bool:
        """Whether to write of oneself at once: of two processes of one name each would answer the other for ever."""
        self._answers += self.waves.chart.contested
        return not self.waves.chart.contested or self._answers <= _ANSWERS

    def _hear_survey(self, end: Session, survey: Survey) -> None:
        chart = self.waves.chart
        digest, records = chart.decode(survey.data)
        if end.stage is not LIVE or survey.tag != end.tag:
            raise Refusal("another session")
        changed = chart.merge(records)
        self._theirs[end.name] = digest
        if changed:
            self._spread(changed, but=end)
        if records:
            self._spread((), to=end)

    def remember(self) -> None:
        """A memory was put back: who was on the chart is there until the opposite is known."""
        super().remember()
        mine = self.waves.chart.records.get(self.waves.chart.me)
        self._away = {end.name: 0 for end in self.ends.values() if mine is not None and end.number in mine.hears}

    def remind(self) -> None:
        """Ask again wherever something is open."""
        super().remind()
        self._answers = 0
        self._enter()
        self._compare_charts()

    # ----------------------------------------------------------------------------------------------------------------
    # Edges that come and go

    def install(self, end: Session, offer: Offer, decide: Decide) -> None:
        """Make a session the one in use, and find out what the other end knows."""
        super().install(end, offer, decide)
        self._theirs.pop(end.name, None)
        if self.round:
            self._enter()
        chart = self.waves.chart
        if chart.records:
            self._spread(chart.records.values(), to=end)
        if not (self.lockstep and decide.goes_on):  # otherwise all has been said that there was to say
            self.waves.meet(end.name)

    def disconnected(self, end: Session) -> None:
        """The driver says that the neighbour is gone."""
        super().disconnected(end)
        self._forget(end)

    def part(self, end: Session, letter: Letter | None = None) -> None:
        """The other end has taken the edge away."""
        super().part(end, letter)
        self._forget(end)

    def remove(self, end: Session) -> None:
        """Take an edge away."""
        super().remove(end)
        self.waves.forget(end.name)
        self._forget(end)

    def _forget(self, end: Session) -> None:
        self._away.pop(end.name, None)
        self._theirs.pop(end.name, None)
        self._enter()
