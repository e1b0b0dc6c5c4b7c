"""Edges that come, go, and are suspended while agents run: each carries its own share of the dual, and no other."""

import numpy as np
import pytest
from agent_kit import carry, check_invariants, close, deliver, end_round, kind_of, make_team, post, puppet, speak
from breadth import EVERYTHING
from conftest import CHANNELS, make_stream

import laconic as lc

CLOCKS = ["slotted", "lockstep"]
PATH = ["ann-ben", "ben-cid"]
TRIANGLE = [*PATH, "ann-cid"]
THREE_BITS = CHANNELS["adaptive"]


def play(agents, n_rounds, seed=0, away=()):
    """Rounds of puppets whose models wander; ``away`` are agents that neither work nor hear."""
    random = np.random.default_rng(seed)
    n = next(iter(agents.values())).features.n_features
    there = {name: agent for name, agent in agents.items() if name not in away}
    for _ in range(n_rounds):
        for agent in there.values():
            speak(agent, agent.weights + random.standard_normal(n))
        carry(there)
    end_round(there)


def join(agents, one, two):
    agents[one].add(two)
    agents[two].add(one)
    carry(agents)


def cut(agents, one, two):
    agents[one].disconnected(two)
    agents[two].disconnected(one)


def mend(agents, one, two):
    agents[one].connected(two)
    agents[two].connected(one)
    carry(agents)


# --------------------------------------------------------------------------------------------------------------------
# Joining and leaving


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("channel", [lc.Channel(), THREE_BITS, CHANNELS["both"]], ids=["dense", "3 bits", "both"])
def test_a_new_edge_begins_with_nothing(channel, clock, features):
    agents = make_team(puppet(channel), features, PATH, clock=clock)
    play(agents, 20)
    before = {name: agent.duals for name, agent in agents.items()}
    join(agents, "ann", "cid")
    assert agents["ann"].edges == {"ben": "live", "cid": "live"}
    assert agents["cid"].edges == {"ben": "live", "ann": "live"}
    np.testing.assert_array_equal(agents["ann"].replica("cid"), agents["cid"].broadcast)
    for name, agent in agents.items():
        assert close(agent.duals, before[name])
    assert np.abs(agents["ann"].share("cid")).max() <= 1e-10
    start = agents["ann"].share("ben")
    play(agents, 5, seed=1)
    check_invariants(agents)
    assert np.abs(agents["ann"].share("cid")).max() > 1  # but from then on it carries its share
    assert not close(agents["ann"].share("ben"), start)


def test_a_new_edge_counts_from_the_round_it_opens_in(features):
    """Its share is what the two have said from then on, added up by hand."""
    agents = make_team(puppet(), features, PATH)
    play(agents, 7)
    join(agents, "ann", "cid")
    by_hand = np.zeros(features.n_features)
    for t in range(6):
        play(agents, 1, seed=t)
        by_hand += agents["ann"].broadcast - agents["cid"].broadcast
    assert close(agents["ann"].share("cid"), by_hand)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_newcomer(clock, features):
    """An agent that was not there from the start."""
    agents = make_team(puppet(THREE_BITS), features, PATH, clock=clock, n_agents=4)
    play(agents, 12)
    agents["dan"] = lc.Agent("dan", ["cid"], features, agents["ann"].learner, n_agents=4, clock=clock)
    agents["cid"].add("dan")
    agents["dan"].rejoin()
    carry(agents)
    assert agents["dan"].edges == {"cid": "live"}
    play(agents, 5, seed=1)
    assert agents["dan"].round == 17
    check_invariants(agents)


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_share_goes_with_the_edge(clock, features):
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE, clock=clock)
    play(agents, 15)
    ann, ben, cid = agents.values()
    kept = {name: agent.learner.rho * agent.share("ben") for name, agent in (("ann", ann), ("cid", cid))}
    whole = ben.duals
    ann.remove("cid")
    assert close(ann.duals, kept["ann"])
    [(sender, receiver, data)] = post(agents)
    assert (sender, receiver, kind_of(data)) == ("ann", "cid", "farewell")
    cid.receive(data, "ann")
    assert close(cid.duals, kept["cid"])
    np.testing.assert_array_equal(ben.duals, whole)
    assert ann.neighbours == ("ben",)
    assert cid.edges == {"ben": "live", "ann": "gone"}
    assert cid.ready and cid.counters["refusals"] == {}
    play(agents, 5, seed=1)
    check_invariants(agents)
    assert {name for name, agent in agents.items() if agent.counters["refusals"]} <= {"ann"}


@pytest.mark.parametrize("clock", CLOCKS)
def test_who_leaves_takes_all_its_shares_along(clock, features):
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE, clock=clock)
    play(agents, 15)
    ben = agents["ben"]
    ben.leave()
    assert ben.neighbours == () and not ben.duals.any()
    carry(agents)
    del agents["ben"]
    check_invariants(agents)
    play(agents, 5, seed=1)
    check_invariants(agents)
    assert all(agent.edges["ben"] == "gone" for agent in agents.values())
    # Alone, it goes on.
    for _ in range(3):
        assert not speak(ben, np.ones(features.n_features)).sent
    assert post({"ben": ben}) == [] and not ben.duals.any()


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("leaver", ["ann", "cid"])
def test_an_edge_that_returns_begins_anew(leaver, clock, features):
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE, clock=clock)
    other = {"ann": "cid", "cid": "ann"}[leaver]
    for turn in range(3):
        play(agents, 8, seed=turn)
        assert np.abs(agents[leaver].share(other)).max() > 1
        agents[leaver].remove(other)
        carry(agents)
        play(agents, 3, seed=turn)
        agents[leaver].add(other)
        agents[other].connected(leaver)
        carry(agents)
        assert agents[leaver].edges[other] == agents[other].edges[leaver] == "live"
        assert np.abs(agents[leaver].share(other)).max() <= 1e-10
        check_invariants(agents)


def test_a_farewell_that_was_lost(features):
    """Removed and added again while the other end knows of nothing: the edge begins anew all the same."""
    for leaver, other in (("ann", "cid"), ("cid", "ann")):
        agents = make_team(puppet(THREE_BITS), features, TRIANGLE)
        play(agents, 8)
        assert agents[other].share(leaver).any()
        agents[leaver].remove(other)
        carry(agents, lambda letter: kind_of(letter[2]) == "farewell")
        agents[leaver].add(other)
        carry(agents)
        assert agents[leaver].edges[other] == agents[other].edges[leaver] == "live"
        assert not agents[leaver].share(other).any() and not agents[other].share(leaver).any()
        play(agents, 3)
        check_invariants(agents)


@pytest.mark.parametrize("leaver", ["ann", "cid"])
def test_an_old_farewell_does_not_close_the_edge_again(leaver, features):
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE)
    other = {"ann": "cid", "cid": "ann"}[leaver]
    play(agents, 8)
    agents[leaver].remove(other)
    [letter] = post(agents)
    deliver(agents, [letter])
    agents[leaver].add(other)
    agents[other].connected(leaver)
    carry(agents)
    play(agents, 2)
    before = agents[other].state()
    deliver(agents, [letter, letter])
    assert agents[other].state() == before
    assert agents[other].counters["refusals"] == {"another session": 2}
    check_invariants(agents)


@pytest.mark.parametrize("leaver", ["ann", "cid"])
def test_a_doubled_farewell_while_the_edge_is_opening(leaver, features):
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE)
    other = {"ann": "cid", "cid": "ann"}[leaver]
    play(agents, 8)
    agents[leaver].remove(other)
    [letter] = post(agents)
    deliver(agents, [letter])
    agents[leaver].add(other)
    agents[other].connected(leaver)
    deliver(agents, [letter])  # a copy that took longer
    carry(agents)
    play(agents, 5)
    assert agents[leaver].edges[other] == agents[other].edges[leaver] == "live"
    check_invariants(agents)


def test_what_was_learned_alone_is_told_to_who_comes(features):
    """ann learns a round without any neighbours, and then has ben again."""
    agents = make_team(puppet(THREE_BITS), features, ["ann-ben"])
    ann, ben = agents.values()
    play(agents, 5)
    ann.remove("ben")
    carry(agents)
    speak(ann, ann.weights + 1.0)
    speak(ben, ben.weights)
    carry(agents)
    ann.add("ben")
    ben.connected("ann")
    carry(agents)
    np.testing.assert_array_equal(ben.replica("ann"), ann.broadcast)
    play(agents, 3)
    check_invariants(agents)


# --------------------------------------------------------------------------------------------------------------------
# Suspended edges


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("pair", ["ann-cid", "cid-ann", "ann-ben"])
def test_a_suspended_edge_resumes_with_the_share_it_had(pair, clock, features):
    one, two = pair.split("-")
    agents = make_team(puppet(THREE_BITS), features, TRIANGLE, clock=clock)
    play(agents, 15)
    share = agents[one].share(two)
    assert np.abs(share).max() > 1
    cut(agents, one, two)
    for agent, other in ((agents[one], two), (agents[two], one)):
        assert agent.edges[other] == "gone"
        assert not agent.share(other).any()
        third = next(name for name in agents if name not in (one, two))
        assert close(agent.duals, agent.learner.rho * agent.share(third))
    for k in range(4):
        for agent in agents.values():
            speak(agent, agent.weights + k)
        carry(agents, lambda letter: {letter[0], letter[1]} == {one, two})
        assert all(agent.ready for agent in agents.values())
    end_round(agents)
    check_invariants(agents)
    mend(agents, one, two)
    assert agents[one].edges[two] == agents[two].edges[one] == "live"
    assert close(agents[one].share(two), share)
    assert close(agents[two].share(one), -share)
    play(agents, 3, seed=1)
    check_invariants(agents)


@pytest.mark.parametrize("first", ["ann", "ben"])
@pytest.mark.parametrize("noticed", [True, False])
def test_when_one_end_notices_later(noticed, first, features):
    """Both go on from one share: that of the end which has counted more rounds."""
    agents = make_team(puppet(THREE_BITS), features, ["ann-ben"])
    ann = agents["ann"]
    second = {"ann": "ben", "ben": "ann"}[first]
    play(agents, 10)
    agents[first].disconnected(second)
    for _ in range(4):
        for agent in agents.values():
            speak(agent, agent.weights + 1.0)
        carry(agents, lambda letter: True)
    end_round(agents)
    assert agents[second].edges == {first: "live"}  # and has added to its share what it did not hear
    kept = agents[second].share(first) if second == "ann" else -agents[second].share(first)
    if noticed:
        agents[second].disconnected(first)
    mend(agents, first, second)
    assert close(ann.share("ben"), kept)
    assert close(agents["ben"].share("ann"), -kept)
    play(agents, 2)
    check_invariants(agents)


def run_without_cid(features, suspend):
    """Three agents on a path; cid, who has learned something else, falls silent for good after 60 rounds."""
    agents = make_team(lc.ODKLA(rho=0.5, eta=2.0), features, PATH)
    X, y = make_stream(1000, 3)
    y[:, 2] += 10.0
    for t in range(60):
        for i, agent in enumerate(agents.values()):
            agent.learn(X[t, i], y[t, i])
        carry(agents)
    if suspend:
        agents["ben"].disconnected("cid")
    there = {name: agents[name] for name in ("ann", "ben")}
    for t in range(60, 1000):
        for i, agent in enumerate(there.values()):
            agent.learn(X[t, i], y[t, i])
        carry(there)
    end_round(there)
    # How far they are from the truth, and from what cid last said.
    inputs, labels = (values[:, 0] for values in make_stream(200, 1, seed=9))
    errors = [np.mean((features(inputs) @ agent.weights - labels) ** 2) for agent in there.values()]
    distances = [np.linalg.norm(agent.weights - agents["cid"].broadcast) for agent in there.values()]
    return there, errors, distances


def test_the_living_do_not_follow_the_dead(features):
    there, errors, distances = run_without_cid(features, suspend=True)
    ann, ben = there.values()
    assert max(errors) < 0.3
    assert min(distances) > 7
    assert not ben.share("cid").any()
    assert close(ann.duals, -ben.duals)
    # Without a notice, its silence is one: after a heartbeat and ten rounds more the edge is not used.
    there, errors, distances = run_without_cid(features, suspend=False)
    ann, ben = there.values()
    assert ben.edges["cid"] == "opening"
    assert max(errors) < 0.3
    assert not ben.share("cid").any()
    assert close(ann.duals, -ben.duals)


def test_who_is_taken_for_gone_and_is_not(features):
    """It is heard, and so the edge opens again."""
    agents = make_team(puppet(THREE_BITS), features, PATH)
    play(agents, 5)
    agents["ben"].disconnected("cid")
    assert not agents["ben"].share("cid").any()
    for agent in agents.values():
        speak(agent, agent.weights + 1.0)
    carry(agents)
    assert agents["ben"].edges["cid"] == agents["cid"].edges["ben"] == "live"
    play(agents, 3)
    check_invariants(agents)


def test_connected_and_disconnected_may_be_repeated(features):
    agents = make_team(puppet(THREE_BITS), features, PATH)
    play(agents, 10)
    share = agents["ben"].share("cid")
    for _ in range(3):
        cut(agents, "ben", "cid")
    for _ in range(3):
        mend(agents, "ben", "cid")
    assert close(agents["ben"].share("cid"), share)
    before = agents["ben"].duals
    for _ in range(3):
        mend(agents, "ben", "cid")
    np.testing.assert_array_equal(agents["ben"].duals, before)
    check_invariants(agents)


def test_lockstep_does_not_wait_for_who_is_gone(features):
    agents = make_team(puppet(), features, PATH, clock="lockstep")
    play(agents, 3)
    for name in ("ann", "ben"):
        speak(agents[name], np.ones(features.n_features))
    carry({name: agents[name] for name in ("ann", "ben")})
    assert agents["ben"].waiting == ("cid",)
    agents["ben"].disconnected("cid")
    assert agents["ben"].ready
    play(agents, 3, away=("cid",))
    assert agents["ben"].round == 7


# --------------------------------------------------------------------------------------------------------------------
# Any sequence of changes


@pytest.mark.parametrize("seed", range(15 if EVERYTHING else 6))
@pytest.mark.parametrize("clock", CLOCKS)
def test_any_sequence_of_changes(clock, seed, features):
    """Edges come, go, are cut and mended, memories are lost; after each, shares cancel and the duals add up to zero."""
    random = np.random.default_rng(seed)
    channel = (lc.Channel(), THREE_BITS, CHANNELS["both"])[seed % 3]
    agents = make_team(puppet(channel), features, [*TRIANGLE, "cid-dan"], clock=clock, n_agents=4, heartbeat=2)
    names = list(agents)
    absent = set()
    for _ in range(12):
        one, two = (names[k] for k in random.choice(4, size=2, replace=False))
        linked = two in agents[one].neighbours and one in agents[two].neighbours
        action = str(random.choice(["join", "part", "cut", "mend", "forget"]))
        edge = frozenset((one, two))
        if action == "join" and not linked:
            for name, other in ((one, two), (two, one)):
                if other in agents[name].neighbours:
                    agents[name].connected(other)
                else:
                    agents[name].add(other)
        elif action == "part" and linked and edge not in absent and min(map(degree_of(agents), (one, two))) > 1:
            agents[one].remove(two)
            carry(agents, lambda letter: frozenset(letter[:2]) in absent)
            agents[two].remove(one)
        elif action == "cut" and linked:
            cut(agents, one, two)
            absent.add(edge)
        elif action == "mend" and edge in absent:
            absent.discard(edge)
            agents[one].connected(two)
            agents[two].connected(one)
        elif action == "forget":
            old = agents[one]
            options = {"n_agents": 4, "clock": clock, "heartbeat": 2}
            agents[one] = lc.Agent(one, old.neighbours, features, old.learner, **options)
            for name in old.neighbours:
                if frozenset((one, name)) in absent:
                    agents[one].disconnected(name)
            agents[one].rejoin()
        carry(agents, lambda letter: frozenset(letter[:2]) in absent)
        last = max(agent.round for agent in agents.values())
        work_until(agents, last + int(random.integers(1, 6)), random, absent)
        check_invariants(agents)
    for edge in sorted(absent, key=sorted):
        one, two = sorted(edge)
        mend(agents, one, two)
    work_until(agents, max(agent.round for agent in agents.values()) + 3, random)
    assert all(set(agent.edges.values()) <= {"live"} for agent in agents.values())
    check_invariants(agents)


def work_until(agents, round, random, absent=frozenset()):
    """Who may work does; who may not asks again: until all have come to ``round`` and ended it."""
    for _ in range(200):
        for agent in agents.values():
            if not agent.ready:
                agent.remind()
            elif agent.round < round:
                speak(agent, agent.weights + random.standard_normal(agent.features.n_features))
        carry(agents, lambda letter: frozenset(letter[:2]) in absent)
        if all(agent.ready and agent.round == round for agent in agents.values()):
            break
    end_round(agents)


def degree_of(agents):
    return lambda name: len(agents[name].neighbours)


# --------------------------------------------------------------------------------------------------------------------
# Bad names


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda a: a.add("ben"), "'ben' is a neighbour already."),
        (lambda a: a.add("ann"), "neighbours must be others than 'ann' itself, got 'ann'."),
        (lambda a: a.add(""), "neighbours must be given as text of 1 to 200 characters, got ''."),
        (lambda a: a.add(7), "neighbours must be given as text of 1 to 200 characters, got 7."),
        (lambda a: a.add(None), "neighbours must be given as text of 1 to 200 characters, got None."),
        (lambda a: a.remove("dan"), "'dan' is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.connected("dan"), "'dan' is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.disconnected(""), "'' is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.disconnected(None), "None is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.replica("dan"), "'dan' is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.share("ann"), "'ann' is no neighbour of 'ann', which hears 'ben', 'cid'."),
        (lambda a: a.heard("dan"), "'dan' is no neighbour of 'ann', which hears 'ben', 'cid'."),
    ],
)
def test_bad_names_get_one_sentence(act, sentence, features):
    agents = make_team(puppet(), features, TRIANGLE)
    play(agents, 3)
    agent = agents["ann"]
    before, neighbours = agent.state(), agent.neighbours
    with pytest.raises(ValueError) as caught:
        act(agent)
    assert str(caught.value) == sentence
    assert (agent.state(), agent.neighbours, agent.outgoing()) == (before, neighbours, [])
    play(agents, 3)
    check_invariants(agents)


@pytest.mark.parametrize(
    "act",
    [
        lambda make: make(neighbours=None),
        lambda make: make(neighbours=7),
        lambda make: make(neighbours=[["ben"]]),
        lambda make: make(name="\ud800"),
        lambda make: make().add([]),
        lambda make: make().add("cid", degree="two"),
        lambda make: make().add("cid", degree=-3),
        lambda make: make().connected([]),
        lambda make: make().skip_to(2**48),  # beyond what a message can say
    ],
    ids=["None", "a number", "a list", "no text", "add a list", "a word", "negative", "connected", "too far"],
)
def test_other_bad_arguments_get_one_sentence(act, features):
    settings = {"name": "ann", "neighbours": ["ben"], "n_agents": 3, "clock": "slotted"}
    with pytest.raises(ValueError, match=r"^[^\n]*(name|neighbour|degree|round)[^\n]*\.$"):
        act(lambda **options: lc.Agent(features=features, learner=puppet(), **{**settings, **options}))


def test_who_hears_nobody_is_told_so(features):
    agent = lc.Agent("ann", [], features, puppet(), n_agents=1)
    with pytest.raises(ValueError, match="'ben' is no neighbour of 'ann', which hears nobody."):
        agent.remove("ben")
    agent.leave()
    agent.rejoin()
    agent.remind()
    assert agent.ready


def test_names_with_the_same_number_are_refused(features):
    """Two names that hash to one number would be one neighbour."""
    one, two = "n64481", "n159558"
    assert lc.protocol.wire.identity(one) == lc.protocol.wire.identity(two)
    agent = lc.Agent("ann", [one], features, puppet(), n_agents=3)
    with pytest.raises(ValueError, match=f"neighbours '{one}' and '{two}' share a number: rename one."):
        agent.add(two)
    assert agent.neighbours == (one,)
