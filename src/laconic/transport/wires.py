"""What lies between the hosts of a virtual network: it carries messages, lets faults happen, and shows who is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from laconic.protocol.messages import Kind
from laconic.transport.faults import (
    Corruption,
    Delay,
    Drop,
    Duplication,
    Fault,
    Hostile,
    Interrupt,
    OneWay,
    Partition,
    Replay,
)
from laconic.transport.hosts import Host
from laconic.transport.incidents import arrange, come_up
from laconic.transport.link import Received
from laconic.transport.timeline import Timeline

LATENCY = (0.01, 0.1)  # of a message on a good day
INTERRUPTED = 0.6  # how long a host is away that died over a message
NOTICED = (0.2, 1.5)  # how long it takes to notice that a neighbour is gone, or back


@final
class Wires:
    """Carries messages between hosts.

    Parameters
    ----------
    faults : iterable of Fault
    seed : int
        All chance is drawn from it.

    Attributes
    ----------
    carried, lost, in_flight : int
        Messages that were sent, those that a fault took, and those under way.
    hosts, seconds : dict
        The process of each name; and another of the same name, where there is one.
    lie : callable
        What a hostile host says to somebody in the place of a message.
    second : callable
        Makes a host for a second process of a name, with a copy of the disk or without, and does not start it.
    """

    def __init__(self, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        self.faults = tuple(faults)
        self.timeline = Timeline(seed)
        self.hosts: dict[str, Host] = {}
        self.seconds: dict[str, Host] = {}
        self.second: Callable[[str, bool], Host]
        self.carried = self.lost = self.in_flight = 0
        self._old: list[tuple[str, str, bytes]] | None = None  # all that was said, if it is to be said again
        if any(isinstance(fault, Replay) for fault in self.faults):
            self._old = []
        self.lie: Callable[[Hostile, Host, str, bytes], list[bytes]]
        self._hostile = [fault for fault in self.faults if isinstance(fault, Hostile)]
        self._interrupts = [fault for fault in self.faults if isinstance(fault, Interrupt)]
        self._cuts = [fault for fault in self.faults if isinstance(fault, (Partition, OneWay))]

    def start(self) -> None:
        """Let all hosts start, and faults happen when they are due."""
        for host in self.hosts.values():
            host.start()
        for fault in self.faults:
            arrange(fault, self)

    def processes(self, name: str) -> list[Host]:
        """All that go by a name."""
        return [self.hosts[name], self.seconds[name]] if name in self.seconds else [self.hosts[name]]

    def change(self, name: str) -> None:
        """Let all that have to do with a host notice, in a while, whether they reach it."""
        timeline = self.timeline
        for host in self.processes(name):
            for other in host.neighbours:
                timeline.after(timeline.draw(*NOTICED), host.notice, other, host.starts)
                for process in self.processes(other):
                    timeline.after(timeline.draw(*NOTICED), process.notice, name, process.starts)

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

    def post(self, host: Host, receiver: str, data: bytes) -> None:
        """Take a message from a host, which may be hostile, or die over it."""
        for fault in self._hostile:
            if fault.host == host.name and fault.start <= self.timeline.now < fault.stop:
                for lie in self.lie(fault, host, receiver, data):
                    self.carry(host.name, receiver, lie)
                return
        letter = Kind(data[2] & 15).name.lower() if self._interrupts else ""
        last = next((fault for fault in self._interrupts if self._is_hit(fault, host, letter)), None)
        if last is None or not last.before:
            self.carry(host.name, receiver, data)
        if last is not None:
            self._interrupts.remove(last)
            host.go_down()
            if not last.disk:
                host.wipe()
            self.timeline.at(min(self.timeline.now + INTERRUPTED, last.stop), come_up, self, host.name)

    def _is_hit(self, fault: Interrupt, host: Host, letter: str) -> bool:
        of_it = host is self.hosts.get(fault.host) and letter == fault.letter
        return of_it and fault.start <= self.timeline.now < fault.stop

    def carry(self, sender: str, receiver: str, data: bytes) -> None:
        """Take a message under way, if the faults of the moment let it."""
        draw, now = self.timeline.draw, self.timeline.now
        copies = 1
        latency = draw(*LATENCY)
        for fault in self.faults:
            if not fault.start <= now < fault.stop:
                continue
            if isinstance(fault, Drop) and draw(0, 1) < fault.share:
                copies = 0
            elif isinstance(fault, Delay):
                latency += draw(0, fault.most)
            elif isinstance(fault, Duplication) and draw(0, 1) < fault.share:
                copies *= 2
            elif isinstance(fault, Corruption) and draw(0, 1) < fault.share:
                data = self._corrupt(data)
            elif isinstance(fault, Replay) and self._old and draw(0, 1) < fault.share:
                self._take(draw(*LATENCY), *self._old[int(draw(0, len(self._old)))])
        if self._old is not None:
            self._old.append((sender, receiver, data))
        self.carried += 1
        self.lost += copies == 0
        for copy in range(copies):
            self._take(latency + copy * draw(0, 1), sender, receiver, data)

    def _take(self, latency: float, sender: str, receiver: str, data: bytes) -> None:
        self.in_flight += 1
        self.timeline.after(latency, self._deliver, sender, receiver, data)

    def _deliver(self, sender: str, receiver: str, data: bytes) -> None:
        self.in_flight -= 1
        if self.reachable(sender, receiver, message=True):
            for host in self.processes(receiver):
                host.deliver(Received(sender, data))

    def _corrupt(self, data: bytes) -> bytes:
        draw = self.timeline.draw
        if draw(0, 1) < 0.3 or not data:
            return data[: int(draw(0, len(data)))]
        spoiled = bytearray(data)
        spoiled[int(draw(0, len(data)))] ^= 1 << int(draw(0, 8))
        return bytes(spoiled)

    def reachable(self, one: str, two: str, message: bool = False) -> bool:
        """Whether ``two`` sees that ``one`` is there now; or whether it gets what ``one`` has said, dead or alive."""
        if not self._is_there(two) or not (message or self._is_there(one)):
            return False
        now = self.timeline.now
        return not any(fault.start <= now < fault.stop and _cuts(fault, one, two, message) for fault in self._cuts)

    def _is_there(self, name: str) -> bool:
        return any(host.alive for host in self.processes(name))


def _cuts(fault: Partition | OneWay, one: str, two: str, message: bool) -> bool:
    if isinstance(fault, Partition):
        return (one in fault.inside) != (two in fault.inside)
    return one in fault.inside and two not in fault.inside and (message or fault.noticed)
