"""Hosts, wires and clocks of the virtual network: what a program on a host gets to see, and when."""

import math

import numpy as np
import pytest

from laconic.transport.faults import Crash, Delay, Drop, Partition, Skew, Slow
from laconic.transport.hosts import Host, VirtualLink
from laconic.transport.link import Connected, Disconnected, Received
from laconic.transport.timeline import HostClock, Timeline
from laconic.transport.wires import LATENCY, NOTICED, Wires


class Watcher:
    """A program, and the pacer that it pretends to have: it notes what comes, and ticks."""

    over = wants_sample = False
    agent = None

    def __init__(self, seen, every=math.inf, works=False):
        self.pacer, self.seen, self.every, self.works = self, seen, every, works

    def start(self, now, offset=0.0):
        self.deadline = now + self.every
        self.seen.append((now, "start"))

    def feed(self, items, now):
        self.seen += [(now, item) for item in items]

    def turn(self, now):
        if now < self.deadline:
            return False
        self.deadline = now + self.every
        self.seen.append((now, "tick"))
        return self.works


def make_wires(faults=(), seed=0, every=math.inf, works=False, work=0.0):
    wires, seen = Wires(faults, seed), {"ada": [], "bob": []}
    for name, other in (("ada", "bob"), ("bob", "ada")):
        boot = lambda host: Watcher(seen[host.name], every, works)  # noqa: E731
        wires.hosts[name] = Host(wires, name, (other,), boot, work=work)
    wires.start()
    return wires, seen


def said(seen, *kinds):
    return [item for _, item in seen if isinstance(item, kinds)]


# Time ----------------------------------------------------------------------------------------------------------------


def test_what_is_due_at_the_same_moment_happens_in_the_order_it_was_arranged():
    timeline, order = Timeline(0), []
    for k in range(5):
        timeline.at(1.0, order.append, k)
    timeline.run(2.0, done=lambda: len(order) == 3)
    assert order == [0, 1, 2] and timeline.now == 1.0
    timeline.run(2.0)
    assert order == [0, 1, 2, 3, 4] and timeline.now == 2.0


def test_chance_is_the_seeds():
    one, two, other = Timeline(1), Timeline(1), Timeline(2)
    numbers = [[timeline.draw(2.0, 5.0) for _ in range(600)] for timeline in (one, two, other)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert 2.0 <= min(numbers[0]) < 2.1 and 4.9 < max(numbers[0]) < 5.0


def test_a_hosts_clock_can_be_read_backwards():
    clock = HostClock([(1.0, 4.0, 2.0), (3.0, 6.0, 1.5)])
    for virtual, local in ((0.5, 0.5), (2.0, 3.0), (3.5, 6.0), (5.0, 8.5), (7.0, 11.0)):
        assert clock.local(virtual) == pytest.approx(local)
        assert clock.virtual(local) == pytest.approx(virtual)
    shown = [clock.local(t) for t in np.linspace(0, 10, 500)]
    assert (np.diff(shown) > 0).all()
    assert clock.virtual(math.inf) == math.inf


def test_alarms_ring_by_the_hosts_own_clock():
    wires, seen = make_wires([Skew(2.0, 4.0, "ada", rate=3.0)], every=1.0)
    wires.timeline.run(6.5)
    ticks = {name: [now for now, item in news if item == "tick"] for name, news in seen.items()}
    assert ticks["bob"] == pytest.approx([1, 2, 3, 4, 5, 6])
    assert ticks["ada"] == pytest.approx(range(1, 11))  # by its own clock all is as it should be


def test_a_slow_host_is_late_until_it_is_slow_no_more():
    wires, seen = make_wires([Slow(1.5, 6.5, "ada", factor=10.0)], every=1.0, works=True, work=0.3)
    wires.timeline.run(10.5)
    ticks = {name: [now for now, item in news if item == "tick"] for name, news in seen.items()}
    assert len(ticks["bob"]) == 10
    # Its work of second 5 is half done when it is fast again: then the other half takes as long as ever.
    assert ticks["ada"] == pytest.approx([1.0, 2.0, 5.0, 6.65, 7.65, 8.65, 9.65])


# Who is there --------------------------------------------------------------------------------------------------------


def test_hosts_notice_each_other_after_a_while():
    wires, seen = make_wires()
    wires.timeline.run(5.0)
    for name, other in (("ada", "bob"), ("bob", "ada")):
        ((now, event),) = seen[name][1:]
        assert event == Connected(other) and NOTICED[0] <= now <= NOTICED[1]


@pytest.mark.parametrize("seed", range(5))
def test_who_crashed_and_came_back_before_it_was_noticed_is_another_process(seed):
    wires, seen = make_wires([Crash(3.0, 3.1, "bob", disk=True)], seed)
    wires.timeline.run(9.0)
    assert said(seen["ada"], Connected, Disconnected) == [Connected("bob"), Disconnected("bob"), Connected("bob")]
    assert said(seen["bob"], Connected, Disconnected) == [Connected("ada"), Connected("ada")]
    assert sum(item == "start" for _, item in seen["bob"]) == 2


def test_a_cut_is_noticed_on_both_sides_unless_it_is_short():
    wires, seen = make_wires([Partition(3.0, 3.1, frozenset({"ada"})), Partition(10.0, 15.0, frozenset({"bob"}))])
    wires.timeline.run(20.0)
    for name, other in (("ada", "bob"), ("bob", "ada")):
        events = [(now, item) for now, item in seen[name] if isinstance(item, (Connected, Disconnected))]
        assert [item for _, item in events] == [Connected(other), Disconnected(other), Connected(other)]
        assert 10.0 < events[1][0] < 11.6 and 15.0 < events[2][0] < 16.6


# Messages ------------------------------------------------------------------------------------------------------------


def test_messages_take_their_time_and_may_be_late():
    wires, seen = make_wires([Delay(5.0, 6.0, most=4.0)])
    link = VirtualLink(wires.hosts["ada"])
    wires.timeline.at(2.0, link.send, b"soon")
    wires.timeline.at(5.5, link.send, b"later", "bob")
    wires.timeline.run(12.0)
    (soon, first), (later, second) = [(now, item) for now, item in seen["bob"] if isinstance(item, Received)]
    assert (first, second) == (Received("ada", b"soon"), Received("ada", b"later"))
    assert 2.0 + LATENCY[0] <= soon <= 2.0 + LATENCY[1]
    assert 5.6 < later < 9.7
    assert wires.carried == 2 and wires.in_flight == 0


def test_lost_is_lost_and_a_process_that_is_gone_says_nothing():
    wires, seen = make_wires([Drop(2.0, 3.0, share=1.0), Crash(4.0, 5.0, "ada", disk=True)])
    link = VirtualLink(wires.hosts["ada"])
    wires.timeline.at(2.5, link.send, b"lost")
    wires.timeline.at(4.5, link.send, b"from the grave")
    wires.timeline.at(5.5, link.send, b"from before the crash")
    wires.timeline.run(8.0)
    assert said(seen["bob"], Received) == []
    assert wires.lost == wires.carried == 1
