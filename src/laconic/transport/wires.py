"""What lies between the hosts of a virtual network: it carries messages, lets faults happen, and shows who is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from laconic.transport.faults import Corruption, Crash, Delay, Drop, Duplication, Fault, Partition
from laconic.transport.hosts import Host
from laconic.transport.link import Received
from laconic.transport.timeline import Timeline

LATENCY = (0.01, 0.1)  # of a message on a good day
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
    """

    def __init__(self, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        self.faults = tuple(faults)
        self.timeline = Timeline(seed)
        self.hosts: dict[str, Host] = {}
        self.carried = self.lost = self.in_flight = 0

    def start(self) -> None:
        """Let all hosts start, and faults happen when they are due."""
        for host in self.hosts.values():
            host.start()
        for fault in self.faults:
            if isinstance(fault, Crash):
                self.timeline.at(fault.start, self._crash, fault)
                self.timeline.at(fault.stop, self.hosts[fault.host].come_up)
            elif isinstance(fault, Partition):
                for name in sorted(fault.inside):
                    self.timeline.at(fault.start, self.change, name)
                    self.timeline.at(fault.stop, self.change, name)

    def _crash(self, fault: Crash) -> None:
        host = self.hosts[fault.host]
        host.go_down()
        if not fault.disk:
            host.wipe()

    def change(self, name: str) -> None:
        """Let all that have to do with a host notice, in a while, whether they reach it."""
        host, timeline = self.hosts[name], self.timeline
        for other in (self.hosts[name] for name in host.neighbours):
            timeline.after(timeline.draw(*NOTICED), host.notice, other.name, host.starts)
            timeline.after(timeline.draw(*NOTICED), other.notice, name, other.starts)

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

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
        self.carried += 1
        self.lost += copies == 0
        for copy in range(copies):
            self.in_flight += 1
            self.timeline.after(latency + copy * draw(0, 1), self._deliver, sender, receiver, data)

    def _deliver(self, sender: str, receiver: str, data: bytes) -> None:
        self.in_flight -= 1
        if self.reachable(sender, receiver, dead_senders=True):
            self.hosts[receiver].deliver(Received(sender, data))

    def _corrupt(self, data: bytes) -> bytes:
        draw = self.timeline.draw
        if draw(0, 1) < 0.3 or not data:
            return data[: int(draw(0, len(data)))]
        spoiled = bytearray(data)
        spoiled[int(draw(0, len(data)))] ^= 1 << int(draw(0, 8))
        return bytes(spoiled)

    def reachable(self, one: str, two: str, dead_senders: bool = False) -> bool:
        """Whether ``two`` can hear ``one`` now."""
        if not self.hosts[two].alive or not (dead_senders or self.hosts[one].alive):
            return False
        now = self.timeline.now
        return not any(
            isinstance(fault, Partition)
            and fault.start <= now < fault.stop
            and (one in fault.inside) != (two in fault.inside)
            for fault in self.faults
        )
