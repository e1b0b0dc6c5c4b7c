"""The two paces: rounds when all are ready, and rounds by the clock."""

from __future__ import annotations

import logging
import math
from typing import final

from laconic.engine import Diverged
from laconic.protocol.actions import Note, Terms
from laconic.protocol.agent import Agent
from laconic.protocol.info import Info
from laconic.protocol.pacer import Pacer
from laconic.protocol.parts import LOCKSTEP

_STUBBORN = 3  # times the patience: who is there may have a bad line
_MOMENT = 1.0  # seconds for which an agent is met again that was given up though it is there
_CALM = 0.3  # seconds of silence after which an agent that is done believes that nobody needs it
_AWAY = 5.0  # seconds missed on slots that are worth a line in the log


def make_pacer(agent: Agent, terms: Terms, slot: float = 1.0) -> Pacer:
    """The pacer that suits the agent's clock; ``slot`` is the length of a round in seconds, if it has slots."""
    return Lockstep(agent, terms) if agent.clock == LOCKSTEP else Slotted(agent, terms, slot)


@final
class Lockstep(Pacer):
    """A round begins when every neighbour has been heard and a sample is there.

    A neighbour may be there and not agree on a session, since it does not know of the edge or means ill; or not answer
    in one, since its process hangs, or is gone and another has its name. It is given up after three times as long as
    one that is gone; from time to time it is met again, for a moment.

    At the end the agent lingers: it hears the others' last round, and stays while somebody still asks for something,
    though never longer than its patience.
    """

    _lingers_until = math.inf  # infinity while there is more to learn

    def __init__(self, agent: Agent, terms: Terms) -> None:
        super().__init__(agent, terms)
        self._silent: dict[str, float] = {}  # until when those are waited for that are there, and do not answer
        self._again: dict[str, tuple[float, float]] = {}  # when to meet whom again, and how long after that

    def received(self, data: bytes, sender: str | None, now: float) -> None:
        """Bytes came in; perhaps they open an edge that was given up, or make the agent jump to the others' round."""
        before = self.agent.round
        super().received(data, sender, now)
        if self._joined and self.agent.round != before:
            self._act(Note(logging.WARNING, "jumped", {"from": before, "to": self.agent.round, "neighbour": sender}))
        if sender in self._again and self.agent.edges.get(sender) == "live":
            self.connected(sender, now)

    def connected(self, name: str, now: float) -> None:
        """A neighbour is there."""
        self._again.pop(name, None)
        self._silent.pop(name, None)
        super().connected(name, now)

    def remove(self, name: str) -> None:
        """Have a neighbour less."""
        super().remove(name)
        self._again.pop(name, None)
        self._silent.pop(name, None)

    def _remind(self, now: float) -> None:
        silent = self.agent.silent  # before it reminds them again
        super()._remind(now)
        self._silent = {
            # Where two have a name, its sign of life may be that of the other one.
            name: min(self._silent.get(name, math.inf), now + (1.0 if doubled else _STUBBORN) * self.terms.patience)
            for name, doubled in silent.items()
            if name in self.here
        }
        for name in [name for name, until in self._silent.items() if now >= until]:
            del self._silent[name]
            after = 2 * self._again[name][1] if name in self._again else self.terms.patience / 2
            self._again[name] = now + after, after
            self._give_up(name)

    @property
    def wants_sample(self) -> bool:
        """Whether all neighbours have been heard, and more samples may come."""
        return self._joined and not self.over and self._lingers_until == math.inf and self.agent.ready

    def no_sample(self, now: float) -> None:
        """Wait for one: the others do, too."""

    def samples_ended(self, now: float) -> None:
        """Hear the last round of the others, and stay while somebody still asks for something."""
        self._heard, self._lingers_until = now, now + self.terms.patience

    def _grace(self) -> float:
        return self.terms.patience

    def _begin(self, now: float) -> None:
        self._round_over(now)

    def _round_over(self, now: float) -> None:
        self._silent.clear()  # all have answered that were waited for
        if self.terms.rounds is not None and self.agent.round >= self.terms.rounds:
            self.samples_ended(now)

    def _next_step(self) -> float:
        return min([self._end(), *(again for again, _ in self._again.values())])

    def _end(self) -> float:
        if self._lingers_until == math.inf or not self.agent.ready:
            return self._lingers_until
        return min(self._lingers_until, self._heard + _CALM)

    def _step(self, now: float) -> None:
        for name in [name for name, (again, _) in self._again.items() if now >= again]:
            self._again[name] = math.inf, self._again[name][1]
            self._silent[name] = now + _MOMENT
            self.agent.connected(name)
        if now >= self._end():
            if self.agent.ready:
                self.agent.end_round()
            self._finish()


@final
class Slotted(Pacer):
    """A round is a tick of the clock: silence is a message, and costs nothing.

    Ticks of all agents begin at whole multiples of the slot by the time of day, as well as their clocks agree. From
    then on they are counted by a clock that nobody sets, so that a wrong date does no harm; which *round* it is the
    agents find out from each other.

    Parameters
    ----------
    agent, terms
        As for ``Pacer``.
    slot : float
        Seconds of a round.
    """

    def __init__(self, agent: Agent, terms: Terms, slot: float) -> None:
        super().__init__(agent, terms)
        self.slot = slot
        self._due = math.inf
        self._rounds = 0
        self._ticked = self._begun = False

    @property
    def wants_sample(self) -> bool:
        """Whether a tick has passed and its round has not."""
        return self._ticked and not self.over and self.agent.ready

    def no_sample(self, now: float) -> Info | None:
        """A round without a sample."""
        try:
            info = self.agent.idle()
        except Diverged as error:
            self._fail(error)
            return None
        return self._count(info, now)

    def samples_ended(self, now: float) -> None:
        """That is all: nobody waits for an agent on slots."""
        self._finish()

    def _grace(self) -> float:
        return 0.0

    def _begin(self, now: float) -> None:
        self._due = now + self.slot - (now + self._offset) % self.slot

    def _round_over(self, now: float) -> None:
        self._ticked = False
        self._rounds += 1
        if self.terms.rounds is not None and self._rounds >= self.terms.rounds:
            self._finish()

    def _next_step(self) -> float:
        return self._due

    def _step(self, now: float) -> None:
        if now < self._due:
            return
        missed = int((now - self._due) / self.slot)
        self._due += (missed + 1) * self.slot
        if missed and self._begun:  # what passes before the first tick is the time it takes to open a source, say
            if missed * self.slot > _AWAY:
                self._act(Note(logging.WARNING, "was away", {"rounds": missed}))
            self.agent.skip_to(self.agent.round + missed)
        self._ticked, self._begun = self.agent.ready, True
