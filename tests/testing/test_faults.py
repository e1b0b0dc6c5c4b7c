"""Whatever goes wrong on the network, the agents are whole again when it heals."""

import itertools
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from breadth import crossed
from conftest import CHANNELS, LEARNERS, make_learner, make_stream

import laconic as lc
from laconic.cli import main
from laconic.protocol.accounts import Accounts
from laconic.testing.faults import KINDS, PIECES, RARE, check, draw_schedule, shrink
from laconic.testing.faults import LEARNERS as FAULTY
from laconic.testing.hostile import WAYS
from laconic.transport.faults import Crash, Delay, Drop, Duplication, Fault, Hostile, Interrupt, Jump, Partition, Twice
from laconic.transport.virtual import VirtualNetwork
from laconic.transport.wires import Wires


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=[pytest.mark.slow] if block else [], id=f"part {block}") for block in range(15)],
)
def test_schedules_of_faults(block):
    for seed in range(20 * block, 20 * (block + 1)):
        schedule = draw_schedule(seed)
        violations = check(schedule)
        assert not violations, f"{schedule}\n{violations}"


def test_schedules_cover_everything():
    schedules = [draw_schedule(seed) for seed in range(300)]
    faults = [fault for s in schedules for fault in s.faults]
    assert {type(fault) for fault in faults} == set(Fault.__subclasses__())
    assert {(s.learner, s.clock) for s in schedules} == set(itertools.product(FAULTY, ["lockstep", "slotted"]))
    for kind, parts in ((Crash, {"disk"}), (Interrupt, {"disk", "before"}), (Twice, {"disk", "first"})):
        for part in parts:
            assert {getattr(fault, part) for fault in faults if isinstance(fault, kind)} == {True, False}
    assert {fault.letter for fault in faults if isinstance(fault, Interrupt)} >= {"call", "offer", "decide", "confirm"}
    assert max(fault.by for fault in faults if isinstance(fault, Jump)) > 1 << 20
    assert sum(s.clock == "lockstep" and s.harmless for s in schedules) > 25


def test_wide_schedules_have_rare_learners_single_precision_and_faults_that_meet():
    schedules = [draw_schedule(seed, wide=True) for seed in range(200)]
    assert {(s.learner, s.clock) for s in schedules} == set(
        itertools.product([*(name for name in FAULTY if name not in PIECES), *RARE], ["lockstep", "slotted"])
    )
    assert {(s.dtype, s.checkpoint_every) for s in schedules} >= set(
        itertools.product(["float64", "float32"], [1, 100])
    )
    crashes = [sorted(f.start for f in s.faults if isinstance(f, Crash)) for s in schedules if s.seed % 2 == 0]
    assert any(len(starts) > 1 and starts[-1] - starts[0] < 2.5 for starts in crashes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_asked_for(kind):
    """A seed begins with the kinds in turn; a schedule of one kind has faults of it only."""
    alone = {type(fault) for seed in range(40) for fault in draw_schedule(seed, [kind]).faults}
    first = list(KINDS).index(kind)
    for seed in range(first, 200, len(KINDS)):
        assert {type(fault) for fault in draw_schedule(seed).faults} & alone
    assert draw_schedule(3, [kind]).faults == draw_schedule(3, [kind]).faults != draw_schedule(4, [kind]).faults


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
@pytest.mark.parametrize("way", WAYS)
def test_a_hostile_neighbour_is_heard_and_the_others_stay_exact(way, clock, monkeypatch):
    """What it says gets through to where it is refused or doubted; all that it can do, it does to its own edges."""
    networks = []
    started = Wires.start
    monkeypatch.setattr(Wires, "start", lambda self: (networks.append(self), started(self)))
    until = math.inf if way != "far" else 12.0
    schedule = replace(draw_schedule(7), learner="odkla", clock=clock, faults=(Hostile(2.0, until, "1", way),))
    assert check(schedule) == []
    honest = [host.agent for name, host in networks[0].hosts.items() if name != "1"]
    seen = sum((Counter(agent.counters["refusals"]) for agent in honest), Counter())
    doubts = sum(agent.counters["doubts"] for agent in honest)
    assert set(seen) - {"replayed", "another session"} or doubts or way == "flood"
    if way == "flood":
        requests = networks[0].hosts["1"].agent.counters["messages_in"]
        assert requests < networks[0].carried / 3  # it says much, and is answered little


def test_a_seed_replays_to_the_bit(features):
    X, y = make_stream(80, 4)
    faults = (Drop(1.0, 6.0, 0.4), Delay(3.0, 9.0, 2.0), Crash(4.0, 6.0, "2", disk=False))

    def run():
        net = VirtualNetwork(make_learner("odkla"), features, lc.Network.ring(4), X, y, faults=faults, seed=7)
        net.run(60)
        return net.predictions(), net.now, net.carried, net.lost

    first, second = run(), run()
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1:] == second[1:]
    assert first[3] > 10


@pytest.mark.parametrize(
    ("kind", "channel", "clock"), crossed(LEARNERS[:-1], ["dense", "both"], ["lockstep", "slotted"])
)
def test_without_faults_it_is_the_simulator(kind, channel, clock, features):
    learner, network = make_learner(kind, channel=CHANNELS[channel]), lc.Network.random(5, p=0.5, seed=2)
    X, y = make_stream(60, 5)
    net = VirtualNetwork(learner, features, network, X, y, clock=clock)
    net.run(60)
    np.testing.assert_array_equal(net.predictions(), lc.simulate(learner, features, network, X, y).predictions)


@pytest.mark.parametrize("kind", LEARNERS[:-1])
def test_lockstep_keeps_the_simulators_bits_through_loss_and_a_crash_with_a_fresh_disk(kind, features):
    learner, network = make_learner(kind, channel=CHANNELS["both"]), lc.Network.ring(5)
    X, y = make_stream(80, 5)
    faults = (
        Drop(0.0, 15.0, 0.3),
        Duplication(0.0, 15.0, 0.5),
        Crash(3.0, 4.0, "1", disk=True),
        Crash(6.0, 9.0, "3", disk=True),
        Partition(10.0, 12.0, frozenset({"0", "1"})),
    )
    net = VirtualNetwork(learner, features, network, X, y, faults=faults, checkpoint_every=1)
    net.run(80)
    np.testing.assert_array_equal(net.predictions(), lc.simulate(learner, features, network, X, y).predictions)


@pytest.mark.parametrize("piece", PIECES)
def test_lockstep_keeps_them_with_every_piece(piece):
    """A schedule that takes nothing away has to end in the simulator's bits: see ``check``."""
    faults = Drop(1.0, 8.0, 0.3), Crash(3.0, 4.0, "1", disk=True), Partition(5.0, 7.0, frozenset({"0", "1"}))
    schedule = replace(draw_schedule(11), learner=piece, clock="lockstep", checkpoint_every=1, faults=faults)
    schedule = replace(schedule, sensors=False)
    assert schedule.harmless and check(schedule) == []


def test_a_bug_is_found_and_its_schedule_shrunk(monkeypatch, capsys):
    """Without the correction of shares for lateness, they no longer cancel; loss and delay alone must show it."""
    hear = Accounts.hear

    def careless(self, index, statement, late, digest_of):
        return hear(self, index, statement, 0, digest_of)

    monkeypatch.setattr(Accounts, "hear", careless)
    seed = next(s for s in range(100) if draw_schedule(s).clock == "slotted" and check(draw_schedule(s)))
    kept = []
    monkeypatch.setattr("laconic.testing.faults.shrink", lambda schedule: kept.append(shrink(schedule)) or kept[0])
    assert main(["faults", "--seed", str(seed)]) == 1
    (smallest,), schedule = kept, draw_schedule(seed)
    assert check(smallest)
    assert len(smallest.faults) == 1
    assert sum(f.stop - f.start for f in smallest.faults) < sum(f.stop - f.start for f in schedule.faults)
    said = capsys.readouterr().out
    assert f"seed {seed} violates" in said and "do not cancel" in said and "the least of it" in said


def test_what_lasts_for_ever_is_not_halved_for_ever():
    schedule = replace(draw_schedule(3), faults=(Hostile(2.0, math.inf, "1", "huge"), Drop(1.0, 9.0, 0.3)))
    tried = []
    least = shrink(schedule, lambda s: tried.append(s) or any(isinstance(f, Hostile) for f in s.faults))
    assert least.faults == schedule.faults[:1] and len(tried) < 10


def test_crews_are_mixed_and_a_seed_that_has_none_is_what_it_was():
    schedules = [draw_schedule(seed) for seed in range(300)]
    thin = [s for s in schedules if s.thin]
    assert 70 < len(thin) < 130 and all(set(s.thin) <= set(s.network.names) for s in thin)
    assert {len(s.thin) == s.network.n_agents for s in thin} == {True, False}
    assert {s.learner for s in thin} == set(FAULTY)
    assert f"thin {' '.join(thin[0].thin)})" in str(thin[0])


@pytest.mark.parametrize("learner", ["qc-odkla", "waverls", "personal"])
def test_thin_agents_among_compiled_ones_end_as_exact(learner):
    faults = Drop(1.0, 8.0, 0.3), Crash(3.0, 4.0, "1", disk=True), Partition(5.0, 7.0, frozenset({"0", "1"}))
    schedule = replace(draw_schedule(11), learner=learner, clock="lockstep", checkpoint_every=1, faults=faults)
    schedule = replace(schedule, sensors=False, thin=("0", "2"))
    assert schedule.harmless and check(schedule) == []


def test_what_an_agent_raises_is_told_of_its_schedule_and_the_others_run(monkeypatch, capsys):
    def broken(self, *_):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("laconic.protocol.ends.Ends.say", broken)
    assert main(["faults", "--seeds", "2", "--first", "1", "--learner", "odkla", "--jobs", "1", "--json"]) == 1
    violated = json.loads(capsys.readouterr().out.splitlines()[-1])["violated"]
    assert list(violated) == ["1", "2"] and "ZeroDivisionError was raised, by nothing" in violated["1"][0]


def test_a_schedule_without_faults_is_well(monkeypatch):
    for seed in range(4):
        assert check(replace(draw_schedule(seed), faults=())) == []


def test_the_command(capsys):
    assert main(["faults", "--seeds", "3", "--no-progress"]) == 0
    assert "3 schedules (seeds 0 to 2)" in capsys.readouterr().out
    assert main(["faults", "--seed", "5"]) == 0
    assert "all is well" in capsys.readouterr().out
    assert main(["faults", "--kinds", "list"]) == 0
    told = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [kind for kind, _ in told] == list(KINDS) and all(what for _, what in told)
    assert main(["faults", "--seed", "1", "--kinds", "wipe,twice"]) == 0
    assert "twice: host" in capsys.readouterr().out
    assert main(["faults", "--kinds", "wipes"]) == 2
    assert "--kinds must be some of drop, " in capsys.readouterr().err
    assert main(["faults", "--seeds", "0"]) == 2
    assert main(["faults", "--jobs", "0"]) == 2
    assert main(["faults", "--seed", "-1"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
