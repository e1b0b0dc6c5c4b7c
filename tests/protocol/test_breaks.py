"""What once broke the agents, a test each: restarts from old memories, forged and far messages, the same name twice."""

import logging

import numpy as np
import pytest
from agent_kit import carry, check_invariants, close, deliver, end_round, kind_of, make_team, post, puppet, speak
from conftest import CHANNELS, make_stream

import laconic as lc
from laconic.protocol import AgentState
from laconic.protocol.handshake import FURTHEST, ROUND_LIMIT
from laconic.protocol.messages import Call, Decide, Kind, Offer, Request, Statement
from laconic.protocol.session import WITNESSED
from laconic.transport.faults import Crash
from laconic.transport.virtual import VirtualNetwork

TRIANGLE = ["ann-ben", "ben-cid", "ann-cid"]
CLOCKS = ["slotted", "lockstep"]


def play(agents, n_rounds, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(n_rounds):
        for agent in agents.values():
            if agent.ready:
                speak(agent, agent.weights + random.standard_normal(agent.features.n_features))
        carry(agents)
        for agent in agents.values():
            if not agent.ready:
                agent.remind()
        carry(agents)


def start(agents, name, state=None):
    """A new process of that name, with a memory or without."""
    old = agents[name]
    options = {"n_agents": old._test_size if hasattr(old, "_test_size") else len(agents), "clock": old.clock}
    agents[name] = new = lc.Agent(name, old.neighbours, old.features, old.learner, **options)
    if state is not None:
        new.restore(AgentState.from_bytes(state))
    new.rejoin()
    return new


def settle(agents):
    """Reminders until all are together."""
    carry(agents)
    for _ in range(6):
        for agent in agents.values():
            agent.remind()
        carry(agents)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ["ann", "ben"])
def test_two_restarts_from_a_checkpoint_written_while_the_neighbour_was_gone(name, clock, features):
    """(C1) What is said after the first is never taken for what is said after the second."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, ["ann-ben"], clock=clock)
    other = {"ann": "ben", "ben": "ann"}[name]
    play(agents, 5)
    for one, two in ((name, other), (other, name)):
        agents[one].disconnected(two)
    play(agents, 2, seed=1)
    state = agents[name].state().to_bytes()
    said = {}
    for turn in range(2):
        start(agents, name, state)
        agents[other].connected(name)
        settle(agents)
        assert agents[name].edges == {other: "live"} and agents[other].edges == {name: "live"}
        random = np.random.default_rng(turn)
        for _ in range(3):
            for agent in agents.values():
                speak(agent, random.standard_normal(features.n_features))
            for sender, _, data in post_and_deliver(agents):
                if kind_of(data) == "difference":
                    assert said.setdefault((sender, data[3:13]), data) == data  # one content for each (tag, n)
        settle(agents)
        end_round(agents)
        check_invariants(agents)


def post_and_deliver(agents):
    letters = post(agents)
    deliver(agents, letters)
    return letters


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [2, 4])
def test_two_crashes_within_a_slot_of_an_agent_with_an_old_checkpoint(n, seed, features):
    """(C2) Killed fifteen rounds after its checkpoint, and again one to three slots after its restart."""
    learner = [lc.ODKLA(rho=0.3, eta=4.0), lc.QCODKLA(rho=0.3, eta=4.0, alpha=0.3, beta=0.95, bits=4)][seed % 2]
    network = lc.Network.path(2) if n == 2 else lc.Network.ring(4)
    X, y = make_stream(90, n, seed=seed)
    faults = (Crash(36.2, 37.0, "1", disk=True), Crash(38.1 + 0.4 * seed, 39.0 + 0.4 * seed, "1", disk=True))
    options = {"clock": "slotted", "faults": faults, "seed": seed, "checkpoint_every": 20, "heartbeat": 6}
    net = VirtualNetwork(learner, features, network, X, y, **options)
    net.run(70)
    agents = {name: host.agent for name, host in net.hosts.items()}
    end_round(agents)
    check_invariants(agents)
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_site_that_lost_its_memory_hears_an_old_message(clock, features):
    """(C3) Whatever was said before all of them forgot means nothing afterwards."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE, clock=clock)
    old = []
    for turn in range(8):
        for agent in agents.values():
            speak(agent, agent.weights + turn)
        old += post_and_deliver(agents)
    states = {name: agent.state().to_bytes() for name, agent in agents.items()}
    for name in list(agents):
        start(agents, name)
    old += post(agents)
    deliver(agents, old)
    settle(agents)
    deliver(agents, old[::-1])
    settle(agents)
    assert all(set(agent.edges.values()) == {"live"} and agent.ready for agent in agents.values())
    play(agents, 3)
    end_round(agents)
    check_invariants(agents)
    start(agents, "ben", states["ben"])  # and an old checkpoint turns up
    settle(agents)
    deliver(agents, old)
    settle(agents)
    play(agents, 4)
    end_round(agents)
    check_invariants(agents)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_forged_account_of_the_victim_does_not_touch_it(clock, features):
    """(H2) A neighbour can set its replica and their common share; never the victim's model, broadcast or round."""
    agents = make_team(puppet(), features, TRIANGLE, clock=clock)
    play(agents, 6)
    victim, liar = agents["ben"], agents["ann"]  # ann leads
    mine = victim.weights, victim.broadcast, victim.round, victim.share("cid"), victim.replica("cid")
    victim.disconnected("ann")
    liar.disconnected("ben")
    victim.connected("ann")
    liar.connected("ben")
    deliver(agents, [letter for letter in post(agents) if letter[:2] == ("ann", "ben")])  # her call
    [(_, _, offer)] = [letter for letter in post(agents) if kind_of(letter[2]) == "offer"]
    offer = liar._wire.decode(offer).letter
    large, far = np.full(features.n_features, 1e11), victim._dialogue.ends["ann"].g + FURTHEST
    forged = Decide((offer.inc, offer.ctr), end_inc(liar), 77, victim.round, 2, far, False, large, large)
    beyond = [
        {"g": far + 1},
        {"g": (1 << 47) - 2},
        {"hat": 1e3 * large},
        {"share": 1e3 * large},
        {"share": 1e18 * large},
    ]
    for lie in [*beyond, {"round": ROUND_LIMIT + 1}]:
        victim.receive(liar._wire.encode(forged._replace(**lie), victim._wire.sender, False), "ann")
        assert victim.edges["ann"] == "opening"
    victim.receive(liar._wire.encode(forged, victim._wire.sender, False), "ann")
    assert victim.edges["ann"] == "live"  # it is well-formed, within reach, and her right
    for before, after in zip(
        mine,
        (victim.weights, victim.broadcast, victim.round, victim.share("cid"), victim.replica("cid")),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)
    # The others hear the victim as before, also after a restart from what it saves now.
    state = victim.state().to_bytes()
    liar = agents.pop("ann")
    agents["cid"].disconnected("ann")
    for agent in agents.values():
        agent._test_size = 3
    victim = start(agents, "ben", state)
    victim.disconnected("ann")
    settle(agents)
    assert victim.edges["cid"] == "live"
    for agent in agents.values():
        speak(agent, agent.weights + 1.0)
    carry(agents)
    np.testing.assert_array_equal(agents["cid"].replica("ben"), victim.broadcast)


def end_inc(agent):
    return agent._dialogue.inc


def test_one_difference_of_a_huge_scale_is_refused_and_its_author_quarantined(features, caplog):
    """(H3) In lockstep the others go on without it; it may come back."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE, clock="lockstep")
    play(agents, 5)
    ben, cid, ann = agents["ben"], agents["cid"], agents["ann"]
    packed = np.full(ann._wire.packed_size, 0xFF, dtype=np.uint8)
    packed[-1] = 0x03
    for scale in (3e38, 1e15):
        said = ann._wire.difference(packed, scale)
        for name in ("ben", "cid"):
            to = ann._dialogue.ends[name]
            forged = Statement(to.tag, to.spoken + 1, 0, 2, 0, Kind.DIFFERENCE, said)
            for _ in range(20):
                agents[name].receive(ann._wire.encode(forged, 0, False), "ann")
    for agent in (ben, cid):
        assert np.abs(agent.replica("ann")).max() < 1e3
    for agent in (ben, cid):
        speak(agent, agent.weights)
    with caplog.at_level(logging.WARNING, "laconic.protocol"):
        for name in ("ben", "cid"):
            to = ann._dialogue.ends[name]
            forged = Statement(to.tag, to.spoken + 1, 0, 2, 0, Kind.DIFFERENCE, ann._wire.difference(packed, 3e38))
            for _ in range(40):
                agents[name].receive(ann._wire.encode(forged, 0, False), "ann")
    assert [alert for alert in ben.alerts() if alert.what == "quarantined"] == [("quarantined", "ann")]
    assert ben.edges["ann"] == "gone" and ben.alerts() == []
    there = {"ben": ben, "cid": cid}
    carry(there)
    for _ in range(5):
        for agent in there.values():
            speak(agent, agent.weights + 1.0)
        carry(there)
    assert close(ben.duals, -cid.duals)
    for name, agent in there.items():
        agent.connected("ann")
        ann.connected(name)
    settle(agents)
    play(agents, 3)
    end_round(agents)
    assert ben.edges["ann"] == "live"
    check_invariants(agents)


def test_a_far_round_needs_a_majority(features):
    """(H4) Also while rejoining: one neighbour moves the round by a bounded amount, and most together by any."""
    far = FURTHEST + 1000
    for liars, jumps in ((["ann"], False), (["ann", "cid"], True)):
        agents = make_team(puppet(), features, ["ann-ben", "ben-cid", "ben-dan"], clock="lockstep", meet=False)
        for name in liars:
            agents[name]._dialogue.round = agents[name]._dialogue.finished = far
            agents[name]._dialogue.is_alone_ahead = lambda *_: False  # who is honest would come back
        agents["ben"].rejoin()
        settle(agents)
        assert (agents["ben"].round >= far) == jumps
        if not jumps:
            assert agents["ben"].edges == {"ann": "opening", "cid": "live", "dan": "live"}
            assert agents["ben"].counters["refusals"]["too far ahead"] > 0
    near = make_team(puppet(), features, ["ann-ben"], clock="lockstep", meet=False)
    near["ann"]._dialogue.round = near["ann"]._dialogue.finished = 5000
    settle(near)
    assert near["ben"].round == 5000


def test_after_a_sleep_of_many_slots_edges_begin_anew(features):
    """(H6) Suspended for more than 2^20 slots: neither does the sleeper refuse the others, nor do their duals grow."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE)
    play(agents, 10)
    before = {name: np.abs(agent.duals).max() for name, agent in agents.items()}
    agents["ben"].skip_to(agents["ben"].round + (1 << 20) + 5)
    assert set(agents["ben"].edges.values()) == {"opening"}
    settle(agents)
    play(agents, 3)
    end_round(agents)
    check_invariants(agents)
    for name, agent in agents.items():
        assert set(agent.edges.values()) == {"live"}
        assert np.abs(agent.duals).max() < 5 * before[name] + 50
        assert "too far ahead" not in agent.counters["refusals"]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("twice", ["ann", "ben"])
def test_the_same_name_twice_is_fenced(twice, clock, features):
    """(M1) The newer one goes on; the older is told so, and nothing is corrupted."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, ["ann-ben"], clock=clock)
    other = {"ann": "ben", "ben": "ann"}[twice]
    play(agents, 5)
    older = agents[twice]
    newer = start(agents, twice, older.state().to_bytes())
    carry(agents)
    assert newer.edges == {other: "live"}
    fenced = []
    for _ in range(30):  # the older one does not give up: both hear what is sent to their name
        older.remind() if not older.ready else speak(older, older.weights + 1.0)
        newer.remind() if not newer.ready else speak(newer, newer.weights + 1.0)
        if agents[other].ready:
            speak(agents[other], agents[other].weights + 1.0)
        agents[other].remind()
        for _ in range(6):
            for sender in (older, newer):
                for message in sender.outgoing():
                    agents[other].receive(message.data, twice)
            for message in agents[other].outgoing():
                older.receive(message.data, other)
                newer.receive(message.data, other)
        fenced += [alert.what for alert in older.alerts()] + [alert.what for alert in newer.alerts()]
    assert "another has this name" in fenced
    assert "two of one name" in [alert.what for alert in agents[other].alerts()]
    survivor, fenced_one = (newer, older) if newer.edges[other] == "live" else (older, newer)
    if clock == "lockstep":  # nor does it run ahead, to where the others would have to follow
        assert fenced_one.waiting == (other,) and fenced_one.round <= survivor.round
    agents[twice] = survivor
    settle(agents)
    play(agents, 4)
    end_round(agents)
    check_invariants(agents)


@pytest.mark.parametrize("ahead", [11, 10_000])
def test_a_neighbour_far_ahead_on_a_live_edge_moves_no_share(ahead, features):
    """(M2) The share is set aside before anything is applied."""
    agents = make_team(puppet(), features, ["ann-ben"])
    play(agents, 6)
    end_round(agents)
    ann, ben = agents.values()
    share = ben.share("ann")
    end = ann._dialogue.ends["ben"]
    digest = ann._dialogue.book.digest(end.index, 0)
    data = ann._wire.model(ann._ledger.said(0))
    forged = Statement(end.tag, end.spoken + 1, ben.edge_round("ann") + 1 + ahead, 1, digest, Kind.DENSE, data)
    ben.receive(ann._wire.encode(forged, 0, False), "ann")
    assert ben.edges["ann"] == "opening" and not ben.share("ann").any()
    settle(agents)
    assert ben.edges["ann"] == "live"
    assert close(ben.share("ann"), share)
    play(agents, 2)
    end_round(agents)
    check_invariants(agents)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ["ann", "cid"])
def test_removed_and_added_on_a_living_link(name, clock, features):
    """(M3) Between two messages, with the farewell heard or lost: the edge is live at both ends, and begins at zero."""
    other = {"ann": "cid", "cid": "ann"}[name]
    for lost in (True, False):
        agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE, clock=clock)
        play(agents, 6)
        agents[name].remove(other)
        agents[name].add(other)
        carry(agents, lambda letter, lost=lost: lost and kind_of(letter[2]) == "farewell")
        settle(agents)
        assert agents[name].edges[other] == agents[other].edges[name] == "live"
        assert not agents[name].share(other).any() and not agents[other].share(name).any()
        play(agents, 3)
        end_round(agents)
        check_invariants(agents)


@pytest.mark.parametrize(
    ("slots", "order"), [(1, "as sent"), (1, "last first"), (1, "any"), (2, "as sent"), (3, "as sent")]
)
@pytest.mark.parametrize("name", ["ann", "ben"])
def test_on_slots_an_edge_opens_though_every_message_takes_longer_than_a_slot(slots, order, name, features):
    """One end has closed it and the other has not noticed. What either says is outdated when it arrives.

    Within limits: what is lost is repaired from a log of eight statements, so question and answer have to fit in there.
    """
    other, random = {"ann": "ben", "ben": "ann"}[name], np.random.default_rng(0)
    agents = make_team(puppet(CHANNELS["adaptive"]), features, ["ann-ben"], heartbeat=100)
    play(agents, 5)
    agents[name].disconnected(other)
    agents[name].connected(other)
    under_way = [post(agents)] + [[]] * slots
    for turn in range(20 + 10 * slots):
        for agent in agents.values():
            speak(agent, agent.weights + turn)
        under_way.append(post(agents))
        letters = under_way.pop(0)
        letters = letters[::-1] if order == "last first" else letters
        deliver(agents, [letters[k] for k in random.permutation(len(letters))] if order == "any" else letters)
    for letters in under_way:
        deliver(agents, letters)
    assert agents[name].edges[other] == agents[other].edges[name] == "live"
    assert agents[name].position(other).session == agents[other].position(name).session
    settle(agents)
    end_round(agents)
    check_invariants(agents)


def damaged_states(state):
    """(what, state): a good one, and one thing in it changed."""
    for key in state.about:
        yield f"without {key}", {k: v for k, v in state.about.items() if k != key}, state.arrays
    for key, value in (("version", 1), ("version", None), ("round", -1), ("round", "7"), ("largest", float("nan"))):
        yield f"{key} {value}", {**state.about, key: value}, state.arrays
    for value in (0.0, [-1.0, True], [float("inf"), True], ["1", True], [1.0, 1], [1.0]):
        yield f"borrowed {value}", {**state.about, "borrowed": value}, state.arrays
    for key in state.arrays:
        yield f"without {key}", state.about, {k: v for k, v in state.arrays.items() if k != key}
        for bad in (np.nan, np.inf):
            spoiled = state.arrays[key].copy()
            spoiled.flat[0] = bad
            yield f"{key} {bad}", state.about, {**state.arrays, key: spoiled}
        yield f"{key} cut", state.about, {**state.arrays, key: state.arrays[key][..., :-1]}
        yield f"{key} whole numbers", state.about, {**state.arrays, key: state.arrays[key].astype(int)}
    name = next(iter(state.about["neighbours"]))
    for key, value in (
        ("log", 7),
        ("log", [[1]]),
        ("stage", "odd"),
        ("tag", -2),
        ("g", 1 << 60),
        ("pend", ["00", "00"]),
    ):
        kept = {**state.about["neighbours"][name], key: value}
        yield f"{key} {value}", {**state.about, "neighbours": {**state.about["neighbours"], name: kept}}, state.arrays


def test_a_checkpoint_of_another_version_or_with_nonsense_in_it(tmp_path, features, caplog):
    """(M4) It is refused whole, before anything is changed; the one before is used; and a line says so."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE)
    play(agents, 5)
    good = agents["ben"].state()
    play(agents, 2)
    new = lc.Agent("ben", ["ann", "cid"], features, agents["ben"].learner, n_agents=3, clock="slotted")
    before = new.state()
    path = tmp_path / "ben.state"
    (tmp_path / "ben.state.previous").write_bytes(good.to_bytes())
    count = 0
    for what, about, arrays in damaged_states(agents["ben"].state()):
        bad = AgentState(about, arrays)
        with pytest.raises(ValueError, match="state"):
            new.restore(bad)
        assert new.state() == before, what
        path.write_bytes(bad.to_bytes())
        caplog.clear()
        other = lc.Agent("ben", ["ann", "cid"], features, agents["ben"].learner, n_agents=3, clock="slotted")
        assert other.load(path), what
        assert other.round == 5
        assert any(record.getMessage().startswith("checkpoint refused: ") for record in caplog.records), what
        count += 1
    assert count > 25


def test_a_silent_disagreement_becomes_a_doubt_an_alert_and_a_new_session(features):
    """Whatever its cause: here a bit flips in memory."""
    for clock in CLOCKS:
        agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE, clock=clock)
        play(agents, 5)
        ben = agents["ben"]
        replica = ben._ledger.said(ben._dialogue.ends["ann"].index)
        replica[3] = np.nextafter(replica[3], np.inf)
        play(agents, 4)
        assert ("disagreement", "ann") in ben.alerts()
        end_round(agents)
        check_invariants(agents)
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE, clock="lockstep")
    play(agents, 5)
    agents["ben"]._ledger.shares[1, 0] += 1e-12  # in lockstep a share that is wrong is seen, too
    play(agents, WITNESSED + 1)
    assert any(alert.what == "disagreement" for agent in agents.values() for alert in agent.alerts())
    end_round(agents)
    check_invariants(agents)


def test_a_flood_of_calls_and_requests_is_answered_a_few_times(features):
    """(H5) What a neighbour can bring about between two rounds is bounded, whatever it asks for."""
    agents = make_team(puppet(), features, ["ann-ben"])
    play(agents, 4)
    ann, ben = agents.values()
    end = ann._dialogue.ends["ben"]
    flood = ann._wire.encode(Request(end.tag, 0), 0, False)
    answered = 0
    for k in range(500):
        call = Call(ann._dialogue.inc, k, ann.round, 1, 2, False)
        data = ann._wire.encode(call, ben._wire.sender, False)
        ben.receive(data, "ann")
        ben.receive(flood, "ann")
        answered += sum(len(message.data) for message in ben.outgoing())
    assert answered < 4 * 8 * 250  # four answers, of eight statements at most
    assert len(ben._dialogue.letters) == 0


def test_an_offer_of_nobody_is_not_decided_on(features):
    """A replay settles nothing: the leader decides on offers that echo its last call."""
    agents = make_team(puppet(), features, ["ann-ben"])
    play(agents, 3)
    ann, ben = agents.values()
    state = ann.state()
    n = np.zeros(features.n_features)
    for inc in (0, ann._dialogue.inc):
        offer = Offer((inc, 99), 5, 1, 3, 1, 0, 0, 0, 0, 0, 0, True, False, n, n)
        ann.receive(ben._wire.encode(offer, ann._wire.sender, True), "ben")
        assert ann.state() == state
