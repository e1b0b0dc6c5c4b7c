"""Hosts, wires and clocks of the virtual network: what a program on a host gets to see, and when."""

import math

import numpy as np
import pytest
from conftest import make_learner, make_stream

import laconic as lc
from laconic.protocol import guard
from laconic.protocol.actions import Terms
from laconic.protocol.messages import Kind
from laconic.protocol.paces import make_pacer
from laconic.transport.faults import (
    Crash,
    Delay,
    Drop,
    Freeze,
    Interrupt,
    Jump,
    OneWay,
    Partition,
    Replay,
    Rollback,
    Skew,
    Slow,
    Twice,
    Unlisted,
)
from laconic.transport.hosts import Host, VirtualLink
from laconic.transport.link import Connected, Disconnected, Received
from laconic.transport.timeline import HostClock, Timeline
from laconic.transport.virtual import PATIENCE, Disk, Learning, VirtualNetwork
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


def test_a_frozen_host_does_nothing_and_what_it_is_sent_waits():
    wires, seen = make_wires([Freeze(2.5, 5.5, "ada")], every=1.0)
    wires.timeline.at(3.0, VirtualLink(wires.hosts["bob"]).send, b"are you there")
    wires.timeline.run(8.2)
    assert [now for now, item in seen["ada"] if item == "tick"] == pytest.approx([1, 2, 5.5, 6.5, 7.5])
    assert [now for now, item in seen["ada"] if isinstance(item, Received)] == [5.5]


def test_a_clock_that_leaps_ahead_lets_everything_be_due_at_once():
    wires, seen = make_wires([Jump(2.5, 2.5, frozenset({"ada"}), by=1e6)], every=1.0)
    wires.timeline.run(4.9)
    ticks = [now for now, item in seen["ada"] if item == "tick"]
    assert ticks == pytest.approx([1, 2, 1e6 + 2.5, 1e6 + 3.5, 1e6 + 4.5])
    assert len([item for _, item in seen["bob"] if item == "tick"]) == 4


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


def test_who_is_back_before_anybody_looks_is_taken_for_the_same_process():
    wires, seen = make_wires([Crash(3.0, 3.5, "bob", disk=True, noticed=False), Crash(9.0, 9.5, "bob", disk=True)])
    wires.timeline.run(6.0)
    assert said(seen["ada"], Connected, Disconnected) == [Connected("bob")]
    assert said(seen["bob"], Connected, Disconnected) == [Connected("ada"), Connected("ada")]
    wires.timeline.run(12.0)
    assert said(seen["ada"], Connected, Disconnected) == [Connected("bob"), Disconnected("bob"), Connected("bob")]


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


def test_a_cut_one_way_is_noticed_on_one_side_or_on_none():
    faults = [OneWay(3.0, 9.0, frozenset({"ada"}), noticed=True), OneWay(12.0, 15.0, frozenset({"ada"}), noticed=False)]
    wires, seen = make_wires(faults)
    for name, other in (("ada", "bob"), ("bob", "ada")):
        for time in (6.0, 13.0):
            wires.timeline.at(time, VirtualLink(wires.hosts[name]).send, f"{name} at {time}".encode(), other)
    wires.timeline.run(20.0)
    assert said(seen["ada"], Connected, Disconnected) == [Connected("bob")]
    assert said(seen["bob"], Connected, Disconnected) == [Connected("ada"), Disconnected("ada"), Connected("ada")]
    assert said(seen["ada"], Received) == [Received("bob", b"bob at 6.0"), Received("bob", b"bob at 13.0")]
    assert said(seen["bob"], Received) == []


def test_what_was_said_long_ago_comes_again_to_whom_it_was_said():
    wires, seen = make_wires([Replay(5.0, 6.0, share=1.0)])
    link = VirtualLink(wires.hosts["ada"])
    wires.timeline.at(2.0, link.send, b"old")
    wires.timeline.at(5.5, link.send, b"new")
    wires.timeline.run(8.0)
    assert sorted(item.data for item in said(seen["bob"], Received)) == [b"new", b"old", b"old"]
    assert wires.in_flight == 0


@pytest.mark.parametrize("before", [True, False])
def test_a_host_dies_over_a_message_and_is_back_soon(before):
    wires, seen = make_wires([Interrupt(3.0, 9.0, "ada", "call", before, disk=True)])
    call, hello = (b"lc" + bytes([0x20 | kind]) + b"..." for kind in (Kind.CALL, Kind.HELLO))
    link = VirtualLink(wires.hosts["ada"])
    for time, data in ((2.0, call), (4.0, hello), (5.0, call), (5.0, hello)):
        wires.timeline.at(time, link.send, data)
    wires.timeline.run(5.3)
    assert not wires.hosts["ada"].alive
    wires.timeline.run(9.0)
    assert wires.hosts["ada"].alive
    assert [item.data for item in said(seen["bob"], Received)] == [call, hello, *([] if before else [call])]


def test_faults_that_overlap_keep_a_host_down_until_the_last_is_over():
    wires, seen = make_wires([Crash(2.0, 5.0, "ada", disk=True), Crash(3.0, 7.0, "ada", disk=True)])
    wires.timeline.run(6.0)
    assert not wires.hosts["ada"].alive
    wires.timeline.run(8.0)
    assert [now for now, item in seen["ada"] if item == "start"] == [0.0, 7.0]


# A network of agents --------------------------------------------------------------------------------------------------


def make_network(*faults, n=3, rounds=400, **options):
    X, y = make_stream(rounds, n)
    features = lc.RandomFeatures.gaussian(3, 4, seed=0)
    learner, options = make_learner("odkla"), {"checkpoint_every": 1, **options}
    return VirtualNetwork(learner, features, lc.Network.path(n), X, y, faults=faults, **options)


def test_an_old_checkpoint_is_put_back():
    net = make_network(Rollback(8.0, 9.0, "1", of=4.0))
    net.run(400, until=4.0)
    then = net.hosts["1"].agent.round
    net.run(400, until=7.9)
    assert net.hosts["1"].agent.round > then + 10
    net.run(400, until=9.0)
    assert net.hosts["1"].agent.round == then  # before the others have told it where they are
    net.run(400, until=12.0)
    assert net.hosts["1"].agent.round > then + 20


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
@pytest.mark.parametrize("first", [True, False])
def test_two_of_one_name_both_hear_and_one_of_them_stays(first, clock):
    net = make_network(Twice(5.0, 9.0, "1", disk=True, first=first), clock=clock)
    net.run(300, until=4.9)
    was = net.hosts["1"]
    net.run(300, until=8.9)
    second = net.wires.seconds["1"]
    assert second.alive and was.alive and second.agent is not was.agent
    assert was.fenced or second.fenced
    net.run(300, until=9.0)
    assert (net.hosts["1"] is was) == first and net.hosts["1"].alive and not net.wires.seconds
    assert was.alive != second.alive
    net.run(10**6, until=60.0)
    assert net.hosts["1"].agent.edges == {"0": "live", "2": "live"}


SERVED = {
    "qc-odkla": lc.QCODKLA(rho=0.4, eta=16.0, alpha=0.3, beta=0.97, bits=4),
    "diffusion": lc.RFFDOKL(step=0.06, order="adapt-then-combine", channel=lc.Channel(lc.Censor(0.3, 0.97))),
    "waverls": lc.WaveRLS(growth=1.2),
    "personal": lc.Personal(lc.WaveRLS(growth=1.2)),
}


@pytest.mark.parametrize("graph", ["ring", "star"])
@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
@pytest.mark.parametrize("name", SERVED)
def test_a_second_process_that_is_gone_stops_nobody_and_the_first_is_served_again(name, clock, graph):
    """Nobody starts the first one again; before, a whole site in lockstep stood still for ever."""
    network, twin = (lc.Network.ring(5), "2") if graph == "ring" else (lc.Network.star(5), "0")
    X, y = make_stream(400, 5)
    features = lc.RandomFeatures.gaussian(3, 4, seed=0)
    gone = 7.0
    twice = Twice(4.0, gone, twin, disk=graph == "ring", first=True)
    net = VirtualNetwork(SERVED[name], features, network, X, y, clock=clock, faults=[twice], heartbeat=6)
    net.run(10**6, until=gone)
    others = [other for other in net.hosts if other != twin]
    first = net.hosts[twin]
    assert first.fenced or graph == "star"  # whose centre has no time to be met
    net.run(10**6, until=gone + 1.0)
    before = {other: net.hosts[other].agent.round for other in others}
    net.run(10**6, until=gone + PATIENCE + 4.0)  # reminders are two seconds apart
    assert all(net.hosts[other].agent.round > before[other] + 5 for other in others)
    net.run(10**6, until=gone + 50.0)
    assert net.hosts[twin] is first and first.starts == 1
    for host in net.hosts.values():
        assert set(host.agent.edges.values()) == {"live"}
    rounds = [host.agent.round for host in net.hosts.values()]
    assert max(rounds) - min(rounds) <= (4 if clock == "lockstep" else 20)
    assert min(rounds) > (200 if clock == "lockstep" else 45)


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
@pytest.mark.parametrize("graph", ["path", "ring"])
def test_two_processes_of_one_name_do_not_fight_for_it(graph, clock):
    """Who has come to be served stays so as long as both are there; and neither holds the others up."""
    X, y = make_stream(400, 4)
    features = lc.RandomFeatures.gaussian(3, 4, seed=0)
    network, twice = getattr(lc.Network, graph)(4), Twice(5.0, 150.0, "1", disk=True, first=True)
    net = VirtualNetwork(make_learner("odkla"), features, network, X, y, clock=clock, faults=[twice])
    net.run(10**6, until=60.0)
    processes = [*net.hosts.values(), net.wires.seconds["1"]]
    before = [(host.agent.round, host.agent.counters["sessions"]) for host in processes]
    net.run(10**6, until=149.0)
    after = [(host.agent.round, host.agent.counters["sessions"]) for host in processes]
    assert all(then[1] == now[1] for then, now in zip(before, after, strict=True))
    served = [k for k, host in enumerate(processes) if "live" in host.agent.edges.values()]
    assert all(after[k][0] > before[k][0] + (300 if clock == "lockstep" else 80) for k in served)


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_two_neighbours_that_refuse_each_other_meet_again(clock):
    """Each had a second process for a while, so each was refused by the other, and neither asks of itself."""
    for seed in range(3):
        twice = [Twice(5.0, 9.0 + seed, name, disk=True, first=True) for name in ("1", "2")]
        net = make_network(*twice, clock=clock, seed=seed)
        net.run(10**6, until=120.0)
        for host in net.hosts.values():
            assert set(host.agent.edges.values()) == {"live"}


# Other settings -------------------------------------------------------------------------------------------------------


def strange(net, name, other):
    """What a host runs first: an agent that was set up otherwise."""
    usual, host = net.hosts[name].boot, net.hosts[name]
    features = lc.RandomFeatures.gaussian(3, 4, seed=1 if other == "seed" else 0)
    clock = "lockstep" if (other == "clock") == net.slotted else "slotted"
    options = {"n_agents": len(net.hosts) + (other == "n_agents"), "clock": clock}

    def boot(host):
        if host.starts > 1:
            return usual(host)
        agent = lc.Agent(name, host.neighbours, features, make_learner("odkla"), **options)
        return Learning(net, int(name), make_pacer(agent, Terms(PATIENCE, predictions=0.0)), VirtualLink(host), Disk())

    host.boot = boot


@pytest.mark.parametrize("other", ["seed", "n_agents", "clock"])
@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_neighbour_with_other_settings_is_absent(clock, other, caplog):
    """Before, lockstep stood still for 45 seconds, again and again, until each quarantine had begun."""
    restarted = 60.0
    net = make_network(Crash(restarted, restarted + 1.0, "1", disk=True), n=3, clock=clock)
    net.hosts["0"].neighbours, net.hosts["2"].neighbours = ("1", "2"), ("0", "1")  # a triangle
    strange(net, "1", other)
    rounds = []
    for k in range(2 * int(restarted)):
        net.run(10**6, until=0.5 * (k + 1))
        rounds.append(min(net.hosts[name].agent.round for name in ("0", "2")))
    gaps = np.diff(rounds[12:])  # six seconds on, the first has its patience behind it at the latest
    assert gaps.min() >= (2 if clock == "lockstep" else 0) and rounds[-1] > (400 if clock == "lockstep" else 50)
    for name in ("0", "2"):
        agent = net.hosts[name].agent
        assert agent.edges["1"] == "gone" and agent.edges["2" if name == "0" else "0"] == "live"
        assert 0 < agent.counters["refusals"]["fingerprint"] < 20
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "other settings" in told and "quarantined" not in told
    net.run(10**6, until=restarted + 20.0)
    for host in net.hosts.values():  # with the right settings it is taken
        assert set(host.agent.edges.values()) == {"live"}


def test_the_sensor_of_a_second_process_goes_on_too():
    """It said the same sample over and over, which weighed on whoever kept what that process had learned."""
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(300, 3, 2))
    y = np.sin(5 * X[..., 0])
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=6, bandwidth=0.5, seed=0)
    twice = Twice(1.0, 6.0, "2", disk=True, first=False)
    options = {"faults": [twice], "checkpoint_every": 1, "sensors": True}
    net = VirtualNetwork(lc.WaveRLS(growth=1.3), features, lc.Network.path(3), X, y, **options)
    net.run(300, until=9.0)
    own, learned = net.hosts["2"].agent._ledger.node.own, net.taken["2"]
    assert own.count == learned > 80
    np.testing.assert_allclose(own.moments, y[:learned, 2] @ features(X[:learned, 2]))


def test_a_neighbour_that_is_not_in_the_list_is_none_also_after_a_restart():
    net = make_network(Unlisted(3.0, 9.0, "1", "2"), Crash(5.0, 6.0, "1", disk=True))
    net.run(400, until=4.0)
    assert net.hosts["1"].agent.neighbours == ("0",)
    net.run(400, until=8.0)
    assert net.hosts["1"].agent.neighbours == ("0",)
    net.run(400, until=12.0)
    assert net.hosts["1"].agent.edges == net.hosts["1"].agent.edges | {"2": "live"}
    assert net.hosts["2"].agent.edges == {"1": "live"}


def test_a_sensor_does_not_say_again_what_a_file_does():
    """All are put back to where they were: from files they learn the same once more, from sensors they go on."""
    for sensors in (False, True):
        net = make_network(*(Rollback(6.0, 6.5, str(k), of=3.0) for k in range(3)), sensors=sensors)
        net.run(400, until=5.9)
        before = net.taken["1"]
        net.run(400, until=8.0)
        assert (net.taken["1"] < before) == (not sensors)
        assert (net.taken["1"] == net.learned["1"]) == sensors


def test_what_all_have_lost_counts_no_more():
    for clock in ("lockstep", "slotted"):
        crashes = [Crash(5.0 + 0.1 * k, 6.0, str(k), disk=False) for k in range(3)]
        net = make_network(*crashes, clock=clock)
        net.run(300, until=5.15)
        assert set(net.since.values()) == {0}
        net.run(300, until=5.5)
        assert (min(net.since.values()) > 0) == (clock == "slotted")  # in lockstep rounds begin at zero again
        net.run(300, until=7.5)
        assert all(net.reached(name) < 30 for name in net.hosts)


@pytest.mark.slow
def test_messages_that_are_late_for_long_slow_learning_down_and_do_not_make_it_diverge(monkeypatch):
    learner = lc.ODKLA(rho=0.5, eta=4.0)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 8, 2))
    y = np.sin(5 * X[..., 0]) * X[..., 1]
    features = lc.RandomFeatures.gaussian(2, 10, 0.5, seed=0)
    errors, usual = {}, guard.ON_TIME
    for on_time in (usual, np.inf):  # as it is, and without
        monkeypatch.setattr(guard, "ON_TIME", on_time)
        faults = [Delay(5.0, 1e9, most=8.0)]
        network = lc.Network.random(8, p=0.4, seed=1)
        virtual = VirtualNetwork(learner, features, network, X, y, clock="slotted", faults=faults, heartbeat=6)
        virtual.run(300)
        errors[on_time] = np.nanmean((virtual.predictions()[-100:] - y[-100:]) ** 2)
    assert errors[usual] < 0.1, errors
    assert errors[np.inf] > 1, errors
