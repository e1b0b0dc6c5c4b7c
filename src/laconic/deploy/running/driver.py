"""What drives an agent: one loop on one queue of news, from its neighbours, its samples and the system.

The agent does no I/O and knows no time. The loop brings both: it hands over what comes in, sends what comes out, and
decides when a round begins. *Lockstep*: when all neighbours have been heard and a sample is there. *Slotted*: at each
tick of the wall clock, with a sample or without.
"""

from __future__ import annotations

import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from laconic.deploy.running.inbox import Inbox
from laconic.deploy.running.metrics import Tally
from laconic.deploy.sources.base import Reading, Source
from laconic.engine import Diverged
from laconic.protocol import Agent, Info
from laconic.transport.link import Connected, Disconnected, Link, Received

#: News that samples have come, or that none will come any more.
SAMPLES = object()

_BEAT = 0.1  # seconds between two looks at the clock for what is due
_REMIND, _REMIND_LATER = 0.25, 2.0  # seconds without a round after which neighbours are asked again, and at most
_CALM = 0.3  # seconds of silence after which an agent that is done believes that nobody needs it
_AWAY = 5.0  # seconds missed after which an agent on slots asks where everybody is

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Keeps what happened, for somebody who asked."""

    def add(self, info: Info) -> None:
        """A round is over."""


@dataclass(frozen=True)
class Terms:
    """How long, how often, how much.

    Attributes
    ----------
    patience : float
        Seconds after which a neighbour that vanished is given up in lockstep, or one that never came.
    rounds : int, optional
        Stop after so many.
    checkpoint : Path, optional
    checkpoint_every : int
        Rounds between two checkpoints.
    predictions : float
        At most so many are published a second; 0 for none.
    progress : float
        Seconds between two lines that tell how far it is.
    """

    patience: float = 10.0
    rounds: int | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 100
    predictions: float = 10.0
    progress: float = 10.0


class Driver(ABC):
    """Drives an agent until it is stopped or its samples end.

    Parameters
    ----------
    agent : Agent
    link : Link
    source : Source
        Not yet started: that has to wait until the agent knows which samples it has learned from.
    news : Inbox
        Of the link's events, ``SAMPLES``, and numbers of signals to stop for.
    publish : callable
        Takes "prediction" or "alert", and the bytes to publish under that key.
    tally : Tally
    terms : Terms
    recorder : Recorder, optional
    """

    def __init__(
        self,
        agent: Agent,
        link: Link,
        source: Source,
        news: Inbox,
        publish: Callable[[str, bytes], None],
        tally: Tally,
        terms: Terms,
        recorder: Recorder | None = None,
    ) -> None:
        self.agent, self.link, self.source = agent, link, source
        self.news, self.tally, self.terms = news, tally, terms
        self._publish, self._recorder = publish, recorder
        self._stopped: int | None = None
        self._here: set[str] = set()  # neighbours that the link sees
        self._given_up: set[str] = set()
        now = time.monotonic()
        self._lost = dict.fromkeys(agent.neighbours, now + terms.patience)  # when to give up those that it does not see
        self._moved = self._heard = now  # when the last round was over; when anything last came in
        self._remind_after = _REMIND
        self._beat = now + _BEAT
        self._next_progress = now + terms.progress
        self._next_prediction = now if terms.predictions else math.inf
        self._next_checkpoint = math.inf

    def run(self) -> int | None:
        """Run the agent; the number of the signal that stopped it, or None if the samples ended.

        Raises
        ------
        Diverged
        """
        try:
            if self._join():
                self._next_checkpoint = self.agent.round + self.terms.checkpoint_every
                self.source.start(lambda: self.news.put(SAMPLES), self._skip())
                self._drive()
        except Diverged as error:
            self._alert("diverged", round=error.round, advice=error.advice)
            self._note(logging.ERROR, "diverged", round=error.round, advice=error.advice)
            raise
        self._checkpoint()
        return self._stopped

    @abstractmethod
    def _drive(self) -> None:
        """Round after round."""

    @abstractmethod
    def _skip(self) -> int:
        """Samples of a file that have been learned from before."""

    # ----------------------------------------------------------------------------------------------------------------
    # News

    def _join(self) -> bool:
        """Find out where the others are; False if stopped meanwhile."""
        self.agent.rejoin()
        self._send()
        while not self.agent.ready and self._stopped is None:
            self._wait(_BEAT)
        if self._stopped is not None:
            return False
        self._moved = time.monotonic()
        self._note(logging.INFO, "joined", round=self.agent.round, neighbours=sorted(self._here))
        return True

    def _wait(self, seconds: float, enough: int = 1) -> None:
        """Take in what comes, at once or after so many seconds at most; and do what is due."""
        news = self.news.take(seconds, enough)
        if news:
            receive = self.agent.receive
            for item in news:
                if type(item) is Received:
                    receive(item.data, item.sender)
                elif type(item) is int:
                    self._stopped = item
                elif item is not SAMPLES:
                    self._meet(item)
            self._send()
        now = time.monotonic()
        if news:
            self._heard = now
        if now >= self._beat:
            self._chores(now)

    def _send(self) -> None:
        send = self.link.send
        for message in self.agent.outgoing():
            send(message.data, message.to)

    def _meet(self, item: Connected | Disconnected) -> None:
        """A neighbour came or went."""
        name = item.name
        if name not in self.agent.neighbours:
            return
        if isinstance(item, Connected):
            self._here.add(name)
            self._lost.pop(name, None)
            if name in self._given_up:
                self._given_up.discard(name)
                self._alert("neighbour is back", neighbour=name)
            self._note(logging.INFO, "connected", neighbour=name)
            self.agent.connected(name)
        else:
            self._here.discard(name)
            self._lost.setdefault(name, time.monotonic() + self._grace())
            self._note(logging.WARNING, "disconnected", neighbour=name)
        self._count()

    @abstractmethod
    def _grace(self) -> float:
        """Seconds until a neighbour that went is given up."""

    def _chores(self, now: float) -> None:
        """What is due by the clock."""
        self._beat = now + _BEAT
        for name in [name for name, deadline in self._lost.items() if now >= deadline]:
            del self._lost[name]
            self._given_up.add(name)
            self._alert("neighbour is silent", neighbour=name)
            self._note(logging.WARNING, "given up", neighbour=name)
            self.agent.disconnected(name)
        if not self.agent.ready and now - self._moved >= self._remind_after:
            self._moved, self._remind_after = now, min(2 * self._remind_after, _REMIND_LATER)
            self.agent.remind()
        self._send()
        self._count()
        if now >= self._next_progress:
            self._next_progress = now + self.terms.progress
            self._progress()

    def _count(self) -> None:
        self.tally.connected, self.tally.suspended = len(self._here), len(self._given_up)
        self.tally.dropped = self.source.counts["dropped"] + self.source.counts["lost"]

    def _progress(self) -> None:
        agent, counters = self.agent, self.agent.counters
        fields: dict[str, Any] = {"round": agent.round, "mean_square_error": self.tally.mean_square_error}
        fields |= {name: counters[name] for name in ("sends", "censored", "bits", "repairs")}
        if not agent.ready:
            fields["waiting"] = list(agent.waiting)
        self._note(logging.INFO, "progress", **fields)

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def _round(self, sample: Reading | None) -> None:
        """One round, with a sample or without."""
        agent = self.agent
        if sample is None:
            info = agent.idle()
        else:
            try:
                info = agent.learn(sample.x, sample.y)
            except ValueError as error:  # too large for the feature map, say: no reason to die
                self.source.counts["dropped"] += 1
                self._note(logging.WARNING, "sample refused", why=str(error))
                return
        self._send()
        now = time.monotonic()
        tally = self.tally
        tally.round = info.round
        tally.took(now - self._moved)
        self._moved, self._remind_after = now, _REMIND
        if sample is not None:
            if sample.y == sample.y:  # not NaN
                tally.learned(info.loss, info.prediction - sample.y)
            if now >= self._next_prediction:
                self._next_prediction = now + 1 / self.terms.predictions
                self._predicted(info, sample)
        if self._recorder is not None:
            self._recorder.add(info)
        if info.round >= self._next_checkpoint:
            self._checkpoint()

    def _predicted(self, info: Info, sample: Reading) -> None:
        said: dict[str, Any] = {"round": info.round, "prediction": info.prediction}
        if sample.time is not None:
            said["time"] = sample.time
        self._publish("prediction", json.dumps(said).encode())

    def _alert(self, event: str, **fields: object) -> None:
        said = {"agent": self.agent.name, "event": event, "time": time.time(), **fields}
        self._publish("alert", json.dumps(said).encode())

    def _note(self, level: int, event: str, **fields: object) -> None:
        _log.log(level, event, extra={"agent": self.agent.name, **fields})

    def _checkpoint(self) -> None:
        if self.terms.checkpoint is None:
            return
        self._next_checkpoint = self.agent.round + self.terms.checkpoint_every
        try:
            self.agent.save(self.terms.checkpoint)
        except OSError as error:  # a full disk: the neighbours are the backup
            self._note(logging.ERROR, "checkpoint failed", path=str(self.terms.checkpoint), why=str(error))


class Lockstep(Driver):
    """A round begins when every neighbour has been heard and a sample is there."""

    def _skip(self) -> int:
        return self.agent.round  # a sample a round, so these have been learned from

    def _grace(self) -> float:
        return self.terms.patience

    def _drive(self) -> None:
        agent, news, take, wait = self.agent, self.news, self.source.next, self._wait
        last = math.inf if self.terms.rounds is None else self.terms.rounds
        while self._stopped is None and agent.round < last:
            if news:
                wait(0)
            missing = len(agent.waiting)
            if missing:
                wait(_BEAT, missing)
                continue
            sample = take()
            if sample is not None:
                self._round(sample)
            elif self.source.ended:
                break
            else:
                wait(_BEAT)
        self._linger()

    def _linger(self) -> None:
        """Hear the others' last round, and stay while somebody still asks for something."""
        done = self._heard = time.monotonic()
        while self._stopped is None and time.monotonic() - done < self.terms.patience:
            self._wait(_BEAT)
            if self.agent.ready and time.monotonic() - self._heard >= _CALM:
                self.agent.end_round()
                break


class Slotted(Driver):
    """A round is a tick of the clock: silence is a message, and costs nothing.

    Ticks of all agents begin at whole multiples of the slot by the wall clock, as well as their clocks agree. From then
    on they are counted by a clock that nobody sets, so that a wrong date does no harm; which *round* it is the agents
    find out from each other.

    Parameters
    ----------
    slot : float
        Seconds of a round.
    """

    def __init__(self, *arguments: Any, slot: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._slot = slot

    def _skip(self) -> int:
        return 0  # slots are not samples: how many were learned from is not known

    def _grace(self) -> float:
        return 0.0

    def _drive(self) -> None:
        agent, slot = self.agent, self._slot
        ticks, due = 0, time.monotonic() + slot - time.time() % slot
        while self._stopped is None and (self.terms.rounds is None or ticks < self.terms.rounds):
            now = time.monotonic()
            if now < due:
                self._wait(min(due - now, _BEAT))
                continue
            missed = int((now - due) / slot)
            due += (missed + 1) * slot
            if missed * slot > _AWAY:
                self._note(logging.WARNING, "was away", rounds=missed)
            agent.skip_to(agent.round + missed)
            if agent.ready:
                if self.source.ended:
                    break
                self._round(self.source.next())
                ticks += 1
            self._send()
