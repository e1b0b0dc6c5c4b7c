"""What drives an agent: a thin shell around a pacer, which has all the rules, and an outlet, which does what it says.

``run`` is where the clock and the queue of news are. Without it a driver is driven by ``start``, ``feed`` and ``turn``
with whatever ``now`` there is: that is how a whole site runs on a virtual network.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, final

from laconic.deploy.running.classes import Classes
from laconic.deploy.running.desk import Desk, Snapshot
from laconic.deploy.running.inbox import Inbox
from laconic.deploy.running.outlet import Outlet
from laconic.deploy.running.outliers import Sentry
from laconic.deploy.running.service import Service
from laconic.deploy.running.trial import Trial
from laconic.protocol import Info
from laconic.protocol.actions import Alert
from laconic.protocol.pacer import Pacer
from laconic.transport.link import Connected, Disconnected, Noticed, Received

#: News that samples have come, or that none will come any more.
SAMPLES = object()
#: News that somebody asks how the agent is.
ASKED = object()

_LONGEST_SLEEP = 60.0
_PROVED = 2  # rounds that have begun: the first one is over


class Recorder(Protocol):
    """Keeps what happened, for somebody who asked."""

    def add(self, info: Info) -> None:
        """A round is over."""


@final
class Driver:
    """Drives an agent until it is stopped or its samples end.

    Parameters
    ----------
    pacer : Pacer
    outlet : Outlet
    recorder : Recorder, optional
    sentry : Sentry, optional
        Holds samples to limits before the agent learns from them.
    desk : Desk, optional
        Answers questions; given a snapshot whenever it asks for one.
    service : Service, optional
        The service manager that is told that all is well.
    classes : Classes, optional
        What labels are, if they are no numbers.
    trial : Trial, optional
        Ended when the first round is over.

    Attributes
    ----------
    stopped : int or None
        The number of the signal that stopped it.
    failed : bool
        Whether it has ended since its source of samples failed.
    """

    def __init__(
        self,
        pacer: Pacer,
        outlet: Outlet,
        recorder: Recorder | None = None,
        sentry: Sentry | None = None,
        desk: Desk | None = None,
        service: Service | None = None,
        classes: Classes | None = None,
        trial: Trial | None = None,
    ) -> None:
        self.pacer, self.outlet, self._trial, self._rounds = pacer, outlet, trial, 0
        self.stopped: int | None = None
        self.failed = False
        self._source, self._tally, self._recorder = outlet.source, outlet.tally, recorder
        self._sentry, self._desk, self._classes = sentry, desk, classes
        self._service = service or Service()

    def run(
        self, news: Inbox, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> int | None:
        """Drive until it is over; the number of the signal that stopped it, or None if its samples ended or failed.

        Raises
        ------
        Diverged
        """
        now = clock()
        self.start(now, wall() - now)
        self._service.notify("READY=1")
        self.drive(news, lambda: self.pacer.over, clock)
        self._service.notify("STOPPING=1")
        if self.pacer.failure is not None:
            raise self.pacer.failure
        return self.stopped

    def drive(self, news: Inbox, done: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        """Take in news and do what is due until ``done``."""
        pacer, agent, turn, feed, take = self.pacer, self.pacer.agent, self.turn, self.feed, news.take
        service = self._service if self._service.hears else None
        longest = _LONGEST_SLEEP if service is None else min(_LONGEST_SLEEP, service.every / 2)
        now = clock()
        while not done():
            again = turn(now)
            if service is not None and now >= service.due:
                service.beat(now, f"round {agent.round}, mean square error {self._tally.mean_square_error:.4g}")
            if done():
                break
            missing = len(agent.waiting)
            # A message of each neighbour that is waited for is worth waking up for, not every single one.
            sleep = 0.0 if again and not missing else min(pacer.deadline - clock(), longest)
            items = take(sleep, missing or 1)
            now = clock()
            if items:
                feed(items, now)
        self.outlet.do(pacer.actions())

    def start(self, now: float, offset: float = 0.0) -> None:
        """Begin; see ``Pacer.start``."""
        self.pacer.start(now, offset)
        self.outlet.do(self.pacer.actions())

    def feed(self, items: Iterable[Any], now: float) -> None:
        """Take in events of the link, ``SAMPLES``, and numbers of signals to stop for."""
        pacer = self.pacer
        receive = pacer.received
        for item in items:
            kind = type(item)
            if kind is Received:
                receive(item.data, item.sender, now)
            elif kind is Connected or kind is Disconnected:
                (pacer.connected if kind is Connected else pacer.disconnected)(item.name, now)
                self._look_around()
            elif kind is Noticed:
                self._tally.alert(item.event, json.loads(item.said))
            elif kind is int:
                self.stopped = item
                pacer.stop(now)
            elif item is ASKED and self._desk is not None:
                self._desk.refresh(self.snapshot())

    def snapshot(self) -> Snapshot:
        """The agent as it is now, for those who ask."""
        agent, tally, pacer, counters = self.pacer.agent, self._tally, self.pacer, self.pacer.agent.counters
        status: dict[str, Any] = {
            "agent": agent.name,
            "time": self.outlet.wall(),
            "round": agent.round,
            "samples": tally.samples,
            "mean_square_error": tally.mean_square_error,
            **({} if tally.error_rate is None else {"error_rate": tally.error_rate}),
            **{name: counters[name] for name in ("bits", "sends", "censored", "repairs", "waves") if name in counters},
            "neighbours": {
                name: "connected" if name in pacer.here else "suspended" if name in pacer.given_up else "awaited"
                for name in agent.neighbours
            },
            "alerts": tally.alerts.total(),
            "last_alert": tally.last_alert,
        }
        return Snapshot(agent.weights, status, None if self._classes or agent.learner.loss.binary else tally.radius())

    def turn(self, now: float) -> bool:
        """Do what is due, have a round if one may begin, and send; whether there was one, and another may follow."""
        pacer, had_round = self.pacer, False
        if now >= pacer.deadline:
            pacer.handle_timer(now)
            self._look_around()
        if pacer.wants_sample:
            had_round = self._round(now)
        self.outlet.do(pacer.actions())
        return had_round

    def _round(self, now: float) -> bool:
        pacer, source, tally = self.pacer, self._source, self._tally
        sample = source.next()
        if sample is None:
            if source.ended:
                if source.failure is None:
                    pacer.samples_ended(now)
                else:
                    self.failed = True
                    self.outlet.do([Alert("source failed", {"why": source.failure})])
                    pacer.stop(now)
                return False
            info = pacer.no_sample(now)
        else:
            x, y = sample.x, sample.y
            if self._sentry is not None:
                x, y, actions = self._sentry.look(x, y, pacer.agent.round + 1, now)
                if actions:
                    self.outlet.do(actions)
            label = y if self._classes is None else self._classes.learned(y)
            info = pacer.learn(x, label, now, sample.time)
            if info is None and not pacer.over:
                source.counts["dropped"] += 1
                self._look_around()
        if info is not None:
            self._rounds += 1
            if self._rounds == _PROVED and self._trial is not None:
                self._trial.end()
            tally.round = info.round
            tally.took(pacer.took)
            if self._classes is not None:
                self._classes.count(info, tally)
            elif info.label == info.label:  # not NaN
                tally.learned(info.loss, info.prediction - info.label)
            if self._recorder is not None:
                self._recorder.add(info)
        return info is not None or sample is not None

    def _look_around(self) -> None:
        tally, counts = self._tally, self._source.counts
        tally.connected, tally.suspended = len(self.pacer.here), len(self.pacer.given_up)
        tally.dropped = counts["dropped"] + counts["lost"]
