"""What crashes, cuts, lost messages, silent children and lies do to waves: they cost a wave, and nothing else."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from agent_kit import carry, make_team

import laconic as lc
from laconic.protocol import AgentState
from laconic.protocol.chart import Chart
from laconic.protocol.messages import Refusal
from laconic.protocol.wave_parts import Begin, Down, Front, Missed, PartCode, Snapshot, Taken, Up
from laconic.testing.faults import check
from laconic.testing.schedules import Schedule
from laconic.testing.wave_aftermath import look_at_waves
from laconic.transport.faults import Crash, Drop, Partition
from laconic.transport.virtual import VirtualNetwork
from laconic.waves.message import FRONT, Said, Term
from laconic.waves.roving import WAIT, Entry, Standing, Whole, link_digest

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=6, bandwidth=0.5, seed=0)
LEARNER = lc.WaveRLS(growth=1.3)


def waves_of(agent):
    return agent._ledger


def stream(n_agents, n_rounds):
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(n_rounds, n_agents, 2))
    return X, np.sin(5 * X[..., 0]) * X[..., 1] + 0.1 * rng.standard_normal((n_rounds, n_agents))


def run(network, faults, n_rounds=130, **options):
    X, y = stream(network.n_agents, n_rounds)
    virtual = VirtualNetwork(LEARNER, FEATURES, network, X, y, faults=faults, **options)
    virtual.run(n_rounds)
    return virtual, {name: host.agent for name, host in virtual.hosts.items()}


def play(agents, n_rounds, seed=0, **how):
    rng = np.random.default_rng(seed)
    for _ in range(n_rounds):
        for agent in agents.values():
            x = rng.uniform(size=2)
            if agent.ready:
                agent.learn(x, float(np.sin(5 * x[0]) * x[1]))
        carry(agents, **how)


# Faults --------------------------------------------------------------------------------------------------------------


def test_messages_that_are_lost_cost_nothing_in_lockstep():
    virtual, agents = run(lc.Network.ring(4), [Drop(0.5, 6.0, 0.4)], n_rounds=80)
    X, y = stream(4, 80)
    assert np.array_equal(virtual.predictions(), lc.simulate(LEARNER, FEATURES, lc.Network.ring(4), X, y).predictions)
    assert virtual.lost > 20 and not list(look_at_waves(agents))


@pytest.mark.parametrize("disk", [True, False])
@pytest.mark.parametrize("host", ["2", "0"], ids=["root", "leaf"])
def test_a_crash_costs_a_wave(host, disk):
    network = lc.Network.path(5)
    _, agents = run(network, [Crash(2.0, 4.0, host, disk)], checkpoint_every=1)
    assert waves_of(agents["2"]).node.place.parent is None
    assert not list(look_at_waves(agents))
    counts = [waves_of(agent).node.own.count for agent in agents.values()]
    lost = counts[int(host)]
    assert all(count == 130 for i, count in enumerate(counts) if i != int(host))
    assert lost == 130 if disk else 60 < lost < 120  # what it had learned before is lost, and counted nowhere


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_part_that_was_cut_off_goes_on_alone_and_takes_the_standing_that_wins(clock):
    network = lc.Network.path(5)
    faults = [Partition(2.0, 30.0, frozenset({"3", "4"}))]
    X, y = stream(5, 200)
    virtual = VirtualNetwork(LEARNER, FEATURES, network, X, y, faults=faults, clock=clock, seed=1)
    virtual.run(10**6, until=29.5)
    parts = [{name: waves_of(virtual.hosts[name].agent) for name in names} for names in ("012", "34")]
    assert [next(iter(part.values())).node.place.n_agents for part in parts] == [3, 2]
    for part in parts:
        assert len({waves.tree for waves in part.values()}) == 1
        assert min(waves.node.wave for waves in part.values()) > 2  # each has had waves of its own
    target = max(virtual.reached(name) for name in virtual.hosts) + 60
    virtual.run(target)
    agents = {name: host.agent for name, host in virtual.hosts.items()}
    assert not list(look_at_waves(agents))
    assert len({waves_of(agent).node.standing for agent in agents.values()}) <= 2


def test_on_slots_a_wave_waits_so_many_slots_for_a_silent_child_and_goes_on_without_it():
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"])
    play(agents, 12)
    root = waves_of(agents["ben"]).node
    assert root.place.parent is None and root.wave > 1
    for waves in map(waves_of, agents.values()):
        waves.node.start = waves.clock + 1  # a wave is due
    wave = root.wave

    def is_lost(letter):  # cid is not heard, though it is there
        return letter[0] == "cid"

    rounds = 0
    while root.wave == wave:
        play(agents, 1, seed=rounds, lost=is_lost)
        rounds += 1
    assert WAIT < rounds <= WAIT + 3
    assert waves_of(agents["ann"]).node.wave >= wave


@pytest.mark.parametrize(("wave", "remembered"), [(1, None), (4, None), (4, 3)])
def test_on_slots_who_starts_again_amid_a_wave_hears_that_it_has_begun(wave, remembered):
    """It was told before it knew what the wave builds on, and never again: the root waited, and left out all below."""
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid", "cid-dan", "dan-eve"])
    root, dan, states = waves_of(agents["cid"]).node, waves_of(agents["dan"]).node, {}
    while dan.wave < wave or not dan.begun:
        states[dan.wave] = agents["dan"].state()
        play(agents, 1)
    assert root.place.parent is None and root.wave == wave
    agents["dan"] = lc.Agent("dan", ["cid", "eve"], FEATURES, LEARNER, n_agents=5, clock="slotted")
    if remembered is not None:
        agents["dan"].restore(states[remembered])
    agents["dan"].rejoin()
    carry(agents)
    rounds = 0
    while root.wave == wave:
        play(agents, 1, seed=rounds)
        rounds += 1
    assert rounds < WAIT * root.below
    play(agents, 2)
    counted = [waves_of(agent).node.counted for agent in agents.values()]
    assert all(counted) and root.n == sum(counted) and not list(look_at_waves(agents))


def test_what_a_child_has_said_anew_is_not_replaced_by_what_it_took_back():
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"])
    play(agents, 12)
    root, child = waves_of(agents["ben"]), waves_of(agents["cid"])
    assert root.node.place.parent is None and root.node.standing == child.node.standing

    def say():
        child.node.marked = child.node.own.count
        base, message = child.node.base(), child.node._up()
        return Up(child.node.wave, child.node.standing.digest, root.tree, base, message.data)

    taken_back = say()
    child.node.unsay()
    child.take(np.full(2, 0.5))
    child.learn(0.1)
    root.early["cid"], root.inbox["cid"] = taken_back, [say()]
    root.turn(["ann", "cid"], 13)
    assert root.node.links[child.node.place.agent].n == child.node.own.count and not root.early


def test_a_tree_that_only_a_parent_stood_in_leaves_no_child_with_an_account_of_its_own():
    """It has forgotten what it knew of the subtree, and says so: otherwise the next wave would come to a halt there."""
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"], clock="lockstep")
    play(agents, 40)
    waves, child = waves_of(agents["ben"]), waves_of(agents["ann"]).node
    assert waves.node.place.parent is None and child.link is not None
    for each in map(waves_of, agents.values()):
        each.node.start = each.clock + 20  # no wave is due meanwhile
    for chart in (Chart("ben", 3), waves.chart):  # alone, and with all others again
        waves.chart._spot = chart._find_spot()
        play(agents, 1)
    play(agents, 1, seed=1)
    assert child.link is None and not list(look_at_waves(agents))
    play(agents, 30, seed=2)
    assert child.link is not None and not list(look_at_waves(agents))


def test_a_newcomer_is_told_what_all_know():
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"], clock="lockstep")
    play(agents, 40)
    known = waves_of(agents["ann"]).node.standing
    agents["cid"] = lc.Agent("cid", ["ben"], FEATURES, LEARNER, n_agents=3, incarnation=7)
    agents["ben"].disconnected("cid")
    agents["ben"].connected("cid")
    agents["cid"].rejoin()
    carry(agents)
    play(agents, 3)
    assert waves_of(agents["cid"]).node.standing == known == waves_of(agents["ben"]).node.standing
    assert waves_of(agents["cid"]).node.own.count == 3


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_memory_is_put_back_as_it_was_at_any_moment_of_a_wave(clock):
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid", "cid-dan"], clock=clock)
    seen = set()
    for t in range(30):
        play(agents, 1, seed=t)
        for name, agent in agents.items():
            node = waves_of(agent).node
            seen.add((node.pending is not None, bool(node.heard), node.spoke, bool(waves_of(agent).inbox)))
            twin = lc.Agent(name, agent.neighbours, FEATURES, LEARNER, n_agents=4, clock=clock)
            twin.restore(AgentState.from_bytes(agent.state().to_bytes()))
            was, put_back = agent.state(), twin.state()
            assert put_back.about["waves"] == was.about["waves"]
            assert {k: v.tobytes() for k, v in put_back.arrays.items()} == {
                k: v.tobytes() for k, v in was.arrays.items()
            }
            assert waves_of(twin).node.standing == node.standing
    assert len(seen) > 4


def test_a_memory_holds_fronts_and_refuses_false_ones():
    names = [f"a{k}" for k in range(21)]
    agents = make_team(LEARNER, FEATURES, [f"{a}-{b}" for a, b in pairwise(names)], clock="lockstep")
    play(agents, 8)
    agent = agents["a7"]
    node = waves_of(agent).node
    assert node.place.height == 10 and len(node.fronts.heard) == len(node.fronts.told) == 2
    state = agent.state()
    twin = lc.Agent("a7", agent.neighbours, FEATURES, LEARNER, n_agents=21, clock="lockstep")
    twin.restore(AgentState.from_bytes(state.to_bytes()))
    assert twin.state().arrays["wave.fronts"].tobytes() == state.arrays["wave.fronts"].tobytes()
    fronts = state.arrays["wave.fronts"]
    for false in (fronts[:-1], np.where(np.arange(len(fronts)) == 1, 2.0, fronts)):
        spoilt = replace(state, arrays={**state.arrays, "wave.fronts": false})
        with pytest.raises(ValueError, match="front"):
            lc.Agent("a7", agent.neighbours, FEATURES, LEARNER, n_agents=21, clock="lockstep").restore(spoilt)


def test_a_front_that_cannot_be_is_refused_and_forgotten():
    names = [f"a{k}" for k in range(21)]
    agents = make_team(LEARNER, FEATURES, [f"{a}-{b}" for a, b in pairwise(names)], clock="lockstep")
    play(agents, 3)
    waves = waves_of(agents["a7"])
    n, one = FEATURES.n_features, waves_of(agents["a6"]).node.place.agent
    said = Said(FRONT, False, 4.0, 1.0, 0.0, [Term(1, 250, np.full(n, 1000))], 100, np.ones(n, dtype=int))
    waves.inbox["a6"] = [Front(waves.tree, waves.node.arithmetic.encode(said)[0])]
    waves.turn(agents["a7"].neighbours, agents["a7"].round)
    assert waves.refused == [("a6", "too large", True)] and one not in waves.node.fronts.heard
    waves.inbox["a6"] = [Front(waves.tree, b"no front")]
    waves.turn(agents["a7"].neighbours, agents["a7"].round)
    assert waves.refused[1:] == [("a6", "malformed", True)]
    before = waves.waver.own.weights.copy()
    for lie in (said._replace(n=1e30, terms=[]), said._replace(terms=[], step=250)):  # too many; a model far away
        waves.inbox["a6"] = [Front(waves.tree, waves.node.arithmetic.encode(lie)[0])]
        waves.turn(agents["a7"].neighbours, agents["a7"].round)
        assert waves.refused.pop() == ("a6", "too large", True) and one not in waves.node.fronts.heard
    assert np.array_equal(before, waves.waver.own.weights)
    waves.inbox["a6"] = [Front(waves.tree + 1, waves.node.arithmetic.encode(said)[0])]
    waves.turn(agents["a7"].neighbours, agents["a7"].round)
    assert len(waves.refused) == 2


@pytest.mark.slow
def test_lost_messages_and_crashes_while_fronts_run_cost_nothing_and_little():
    network = lc.Network.path(22)
    X, y = stream(22, 90)
    whole = lc.simulate(LEARNER, FEATURES, network, X, y)
    virtual, agents = run(network, [Drop(0.2, 3.0, 0.3)], n_rounds=90)
    assert virtual.lost > 50 and np.array_equal(virtual.predictions(), whole.predictions)
    virtual, agents = run(network, [Crash(0.5, 2.0, "4", disk=False)], n_rounds=90, checkpoint_every=1)
    assert not list(look_at_waves(agents))
    errors = [np.nanmean((p - y) ** 2) for p in (virtual.predictions(), whole.predictions)]
    assert errors[0] < 1.05 * errors[1] and np.nanmax(np.abs(virtual.predictions())) < 2


# Thin and compiled ---------------------------------------------------------------------------------------------------


def test_agents_that_compute_differently_share_the_same_bits():
    edges = ["ann-ben", "ben-cid", "cid-dan", "dan-ann"]
    agents = make_team(LEARNER, FEATURES, edges, clock="lockstep", meet=False, engine="compiled")
    thin = make_team(LEARNER, FEATURES, edges, clock="lockstep", meet=False, engine="reference")
    agents |= {name: thin[name] for name in ("ben", "dan")}
    carry(agents)
    for t in range(60):
        play(agents, 1, seed=t)
        assert not list(look_at_waves(agents))
    assert waves_of(agents["ann"]).node.wave > 8
    assert type(waves_of(agents["ann"]).waver) is not type(waves_of(agents["ben"]).waver)


# What is said --------------------------------------------------------------------------------------------------------


def example_parts(size=4):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(size, size))
    entry = Entry(b"down" * 9, 300)
    yield Up(200, 2**64 - 1, 5, 0, b"up")
    yield Taken(3, 77)
    yield Front(9, b"")
    yield Begin(128, 1)
    yield Down(7, 2**63, 2**40, entry)
    yield Standing(0, 2**64 - 1)
    yield Missed(Standing(2, 3), 4, (entry, entry))
    yield Snapshot(5, Whole(6, 7, 8.5, matrix + matrix.T, rng.normal(size=size), rng.normal(size=size), 0.25, 0.5))


def test_parts_are_read_as_they_were_written_and_nothing_else_is_one():
    code, parts = PartCode(4, 40, 10), list(example_parts())
    data = code.encode(parts)
    assert code.encode(code.decode(data)) == data and len(data) <= code.longest
    assert code.decode(data)[:-1] == parts[:-1]
    rng = np.random.default_rng(1)
    for _ in range(500):
        spoiled = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            spoiled[at] ^= 1 << int(rng.integers(8))
        with suppress(Refusal):  # and nothing else
            code.decode(bytes(spoiled[: rng.integers(len(data) + 1)]))


def lies_of(waves):
    """Parts that say what cannot be."""
    node, clock = waves.node, waves.clock
    whole = node.whole()
    later = whole._replace(waves=whole.waves + 5)
    yield Snapshot(clock, later._replace(theta=whole.theta + 1e9))
    yield Snapshot(clock, later._replace(theta=whole.theta + 2e4))  # the agent's own samples are against it
    yield Snapshot(clock, later._replace(information=whole.information + 1e7))
    yield Snapshot(clock, later._replace(start=whole.start + 10**6))
    yield Snapshot(clock + 10**6, later)
    yield Snapshot(clock + 1000, later._replace(start=whole.start + 1000))  # no wave for so many rounds
    yield Down(node.wave, node.standing.digest, clock, Entry(b"\\x00\\x03" + b"\\xff" * 60, node.start + 9))
    yield Up(node.wave, node.standing.digest, waves.tree, 0, b"\\xff" * 90)


def test_what_cannot_be_is_refused_counted_and_in_the_end_not_heard_any_more():
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"], clock="lockstep")
    play(agents, 30)
    ben, before = agents["ben"], waves_of(agents["ben"]).node.standing
    lies = list(lies_of(waves_of(ben)))
    for k, lie in enumerate(lies):
        waves_of(ben).inbox = {"ann": [lie]}
        play(agents, 1, seed=k)
        assert sum(ben.counters["refusals"].get(why, 0) for why in ("too large", "malformed")) == k + 1, lie
        assert waves_of(ben).node.standing.waves <= before.waves + 2
        if ben.edges["ann"] == "gone":
            assert ("quarantined", "ann") in ben.alerts()
            ben.connected("ann")
            carry(agents)
    assert np.abs(ben.weights).max() < 100


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_root_leaves_out_sums_that_lead_where_no_model_can_be(clock):
    """Before, it went there alone: the others refused what it told, and in the end to hear it, though eve had lied."""
    agents = make_team(LEARNER, FEATURES, ["hub-ann", "hub-ben", "hub-eve"], clock=clock)
    play(agents, 40)
    assert waves_of(agents["hub"]).node.place.parent is None
    rng = np.random.default_rng(1)
    for _ in range(100):
        for name, agent in agents.items():
            x = rng.uniform(size=2)
            if agent.ready:
                agent.learn(x, 1e6 if name == "eve" else float(np.sin(5 * x[0]) * x[1]))
        carry(agents)
    hub, honest = agents["hub"], [agents[name] for name in ("ann", "ben", "hub")]
    assert hub.counters["refusals"].get("too large", 0) > 0
    assert hub.edges["ann"] == hub.edges["ben"] == agents["ann"].edges["hub"] == agents["ben"].edges["hub"] == "live"
    assert not any(alert.what == "quarantined" for agent in honest for alert in agent.alerts())
    assert len({waves_of(agent).node.standing for agent in honest}) == 1
    assert not list(look_at_waves(agents))  # nor does eve count on sums that the root has left out
    X = rng.uniform(size=(200, 2))
    errors = [np.mean((FEATURES(X) @ agent.weights - np.sin(5 * X[:, 0]) * X[:, 1]) ** 2) for agent in honest]
    assert max(errors) < 0.05


def test_steps_do_not_grow_where_the_root_was_told_too_little():
    # Six agents on slots, nothing goes wrong: what was left out on the way up made every step 2.3 times too long.
    network = lc.Network.from_edges(6, [(0, 3), (0, 5), (1, 2), (1, 4), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)])
    assert check(Schedule(5063, network, "waverls", "slotted", 1, ())) == []


def test_a_parent_still_knows_what_a_child_builds_on_that_took_back_what_it_said_from_the_common_state():
    agents = make_team(LEARNER, FEATURES, ["ada-bob"], clock="lockstep")
    play(agents, 30)
    nodes = [waves_of(agent).node for agent in agents.values()]
    parent, child = sorted(nodes, key=lambda node: node.place.parent is not None)
    known = child.link
    child.link = None
    message = child._up().data
    child.link = known
    for _ in range(2):  # it may come twice
        said = parent.hear_up(child.place.agent, message, 0, 1e9, 0.0)
        assert said and said != link_digest(known)
    link = parent.links_before[child.place.agent]
    assert link is not None and link_digest(link) == link_digest(known)


def test_a_wave_of_another_root_after_the_same_one_is_not_taken_for_the_last_one_again():
    agents = make_team(LEARNER, FEATURES, ["ann-ben"])
    play(agents, 20)
    waves = waves_of(agents["ann"])
    node, neighbours = waves.node, ["ben"]
    again = Down(node.wave - 1, node.before, waves.clock, node.last_entry())
    other = again._replace(entry=again.entry._replace(start=again.entry.start + 1))
    said = []
    for part in (again, other):
        waves.inbox = {"ben": [part]}
        waves.turn(neighbours, agents["ann"].round)
        said.append(waves._out.get("ben", {}).get(Standing))
    assert said == [None, node.standing]
    node.log = []  # as of one that was told the whole
    waves.inbox = {"ben": [Down(node.wave - 1, 0, waves.clock, again.entry)]}
    node.before = 0
    waves.turn(neighbours, agents["ann"].round)
    assert not waves.refused and waves._out["ben"][Standing] == node.standing


def test_who_comes_to_stand_above_amid_a_wave_is_told_what_the_old_root_said():
    """An edge of the tree turns round while a message down runs towards it: it is passed on against its direction."""
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid"])
    play(agents, 12)
    waves, cid = waves_of(agents["ben"]), waves_of(agents["cid"])
    old, spot = waves.node.standing, cid.chart.spot
    below = waves.chart.spot.place._replace(parent=cid.node.place.agent, children=(), depth=1)
    waves.begun = {cid.node.place.agent}
    waves.chart._spot = spot._replace(place=below, members={below.agent: frozenset({below.agent})}, digest=1)
    said = Down(old.waves + 1, old.digest, waves.clock, Entry(waves.node.log[-1], waves.node.start))
    waves.inbox = {"ann": [said]}
    waves.turn(["ann", "cid"], agents["ben"].round)
    assert not waves.refused and waves.node.standing.waves == old.waves + 1
    assert waves._out["cid"][Standing] == waves.node.standing
    assert not waves.begun  # children of another tree have not heard of this wave yet


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_two_of_one_name_do_not_answer_each_others_entries_for_ever(clock):
    """Before their first round entries are made at once: each of the two would make a later one than the other."""
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid", "ann-cid"], clock=clock, meet=False)
    twin = lc.Agent("ann", ["ben", "cid"], FEATURES, LEARNER, n_agents=3, clock=clock)
    ann = agents.pop("ann")

    def pair(name, data):  # ben hears the one, and cid the other
        return (ann if name == "ben" else twin).receive(data, name)

    for one, other in ((ann, "cid"), (twin, "ben")):
        one.disconnected(other)
    said = 0
    for _ in range(100):
        letters = [(name, m.to, m.data) for name, agent in agents.items() for m in agent.outgoing()]
        letters += [
            ("ann", m.to, m.data) for one, to in ((ann, "ben"), (twin, "cid")) for m in one.outgoing() if m.to == to
        ]
        said += len(letters)
        for sender, to, data in letters:
            if to == "ann":
                pair(sender, data)
            else:
                agents[to].receive(data, sender)
    assert not letters and said < 200
