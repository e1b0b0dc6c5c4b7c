"""Machines on a virtual network: each runs a program by its own clock, and may crash and start again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, final

from laconic.protocol import Agent
from laconic.protocol.pacer import Pacer
from laconic.transport.faults import Freeze, Jump, Skew, Slow
from laconic.transport.link import Connected, Disconnected, Event
from laconic.transport.timeline import HostClock

if TYPE_CHECKING:
    from laconic.transport.wires import Wires


class Program(Protocol):
    """What runs on a host: a shell around a pacer. ``laconic agent`` is one, without its clock and its queue."""

    pacer: Pacer

    def start(self, now: float, offset: float = 0.0) -> None:
        """Start the driver of this host at ``now``."""

    def feed(self, items: list[Event], now: float) -> None:
        """Take in what came."""

    def turn(self, now: float) -> bool:
        """Do what is due, and a round if one may begin; whether there was one."""


@final
class VirtualLink:
    """A host's place on the network, for the program that runs there."""

    session: Any = None

    def __init__(self, host: Host) -> None:
        self._host, self._starts = host, host.starts
        self.published: list[tuple[str, bytes]] = host.published

    def send(self, data: bytes, to: str | None = None) -> None:
        """Put a message on the wires."""
        host = self._host
        for other in host.neighbours if to is None else (to,):
            if self._starts == host.starts:  # it may die over what it says
                host.wires.post(host, other, data)

    def publish(self, suffix: str, payload: bytes) -> None:
        """Keep it for whoever looks."""
        self.published.append((suffix, payload))

    def close(self) -> None:
        """The host says goodbye when its program is over."""


@final
class Host:
    """The machine that one agent runs on.

    Parameters
    ----------
    wires : Wires
    name : str
    neighbours : tuple of str
    boot : callable
        Takes the host and returns the program to run: at the first start, and after each crash.
    wipe : callable
        Empties the disk, when a crash takes that, too.
    roll_back : callable
        Puts back on the disk what was on it at a given time.
    work : float
        Seconds that a round takes. Meanwhile what comes in waits, as does what is due.
    """

    def __init__(
        self,
        wires: Wires,
        name: str,
        neighbours: tuple[str, ...],
        boot: Callable[[Host], Program],
        wipe: Callable[[], object] = lambda: None,
        work: float = 0.0,
        roll_back: Callable[[float], object] = lambda time: None,
    ) -> None:
        self.wires, self.name, self.neighbours = wires, name, neighbours
        self.boot, self.wipe, self.work, self.roll_back = boot, wipe, work, roll_back
        faults = wires.faults
        self.clock = HostClock(
            [(f.start, f.stop, f.rate) for f in faults if isinstance(f, Skew) and f.host == name],
            [(f.start, f.by) for f in faults if isinstance(f, Jump) and name in f.hosts],
        )
        self._freezes = sorted((f.start, f.stop) for f in faults if isinstance(f, Freeze) and f.host == name)
        # By this one work is measured: what takes a second takes longer while the host is slow.
        self._labour = HostClock(
            (f.start, f.stop, 1 / f.factor) for f in faults if isinstance(f, Slow) and f.host == name
        )
        self.alive, self.starts = False, 0
        self.seen_as = 0  # the process that others take it for: another after each crash that they notice
        self._down = 0  # faults that hold it down
        self.unlisted: set[str] = set()  # neighbours that its settings do not know, for the time being
        self.news: list[Event] = []
        self.published: list[tuple[str, bytes]] = []
        self._seen: dict[str, int] = {}  # neighbours that are noticed to be there, and as which process
        self._now = 0.0
        self._busy_until = 0.0
        self._next = math.inf  # when the next turn is
        self._alarm = math.inf, math.inf  # when the program's deadline is, by virtual time and by its own clock

    @property
    def agent(self) -> Agent:
        """The agent that runs here, or that ran here last."""
        return self.program.pacer.agent

    @property
    def fenced(self) -> bool:
        """Whether the process was told that another has its name."""
        return bool(getattr(self.program, "fenced", False))

    def start(self) -> None:
        """Begin, or begin again after a crash."""
        self.alive = True
        self.starts += 1
        self.news, self._seen = [], {}
        self._next, self._busy_until = math.inf, 0.0
        starts = self.starts
        self.program = self.boot(self)
        self.program.start(self._read_clock())
        if starts == self.starts:
            self.wires.change(self.name)
            self._arrange(False)

    def crash(self, noticed: bool = True) -> None:
        """Lose everything but the disk."""
        self.alive = False
        self.starts += 1
        if noticed:
            self.seen_as += 1
            self.wires.change(self.name)

    def go_down(self, noticed: bool = True) -> None:
        """Crash, and stay down until whoever asked for it has it ``come_up``; who is down already stays so."""
        self._down += 1
        if self.alive:
            self.crash(noticed)

    def take_over(self, other: Host) -> None:
        """Be the only process of a name, in the place of one that is stopped for good."""
        self._down += other._down
        if other.alive:
            other.crash()
        if self._down and self.alive:
            self.crash()

    def come_up(self) -> None:
        """Start again, unless somebody else holds it down."""
        self._down -= 1
        if not self._down:
            self.start()

    def deliver(self, item: Event) -> None:
        """Something came in: take it in as soon as there is time."""
        if self.alive:
            self.news.append(item)
            self.wake()

    def wake(self) -> None:
        """Have a turn as soon as there is time."""
        self._wake_at(max(self.wires.timeline.now, self._busy_until))

    def unlist(self, other: str) -> None:
        """Have a neighbour less in the settings, and in the agent that runs."""
        self.unlisted.add(other)
        if self.alive and other in self.agent.neighbours:
            self.program.pacer.remove(other)
            self.wake()

    def enlist(self, other: str) -> None:
        """Have it again."""
        self.unlisted.discard(other)
        if self.alive and other not in self.agent.neighbours:
            self.program.pacer.add(other, self._read_clock())
            if other in self._seen:
                self.news.append(Connected(other))
            self.wake()

    def notice(self, other: str, starts: int) -> None:
        """See whether a neighbour is there, and whether it is still the same process."""
        if starts != self.starts or not self.alive:
            return
        before, there = self._seen.get(other), self.wires.reachable(other, self.name)
        now = self.wires.hosts[other].seen_as if there else None
        if before is not None and before != now:
            del self._seen[other]
            self.deliver(Disconnected(other))
        if now is not None and before != now:
            self._seen[other] = now
            self.deliver(Connected(other))

    def _read_clock(self) -> float:
        now = self.wires.timeline.now
        shown = self.clock.local(now)
        if now >= self._alarm[0]:  # rounding must not make an alarm come too early
            shown = max(shown, self._alarm[1])
        self._now = max(self._now, shown)
        return self._now

    def _wake_at(self, time: float) -> None:
        for start, stop in self._freezes:
            if start <= time < stop:
                time = stop
        if time < self._next:
            self._next = time
            self.wires.timeline.at(time, self._turn, time, self.starts)

    def _turn(self, time: float, starts: int) -> None:
        if starts != self.starts or time != self._next:
            return  # another turn has taken its place
        self._next = math.inf
        now, items, self.news = self._read_clock(), self.news, []
        if items:
            self.program.feed(items, now)
        had_round = self.program.turn(now)
        if starts != self.starts:
            return  # it died over it
        if had_round:
            self._busy_until = self._labour.virtual(self._labour.local(time) + self.work)
        self._arrange(had_round)

    def _arrange(self, had_round: bool) -> None:
        """When the next turn is due, should nothing come in."""
        pacer = self.program.pacer
        if pacer.over:
            self.crash()  # to others it looks the same
            return
        if had_round and pacer.wants_sample:
            self._wake_at(self._busy_until)
        deadline = pacer.deadline
        self._alarm = self.clock.virtual(deadline), deadline
        self._wake_at(max(self._alarm[0], self._busy_until, self.wires.timeline.now))
