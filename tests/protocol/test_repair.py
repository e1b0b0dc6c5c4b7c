"""Whatever is lost, late, doubled or out of order: replicas are exact again, and the dual is where it would have been.

Puppets say what a script says, whatever they hear, so that a run with losses has the same broadcasts as one without,
and their duals can be compared.
"""

import itertools

import numpy as np
import pytest
from agent_kit import carry, check_invariants, close, deliver, end_round, kind_of, make_team, post, puppet, speak
from breadth import each
from conftest import CHANNELS, NETWORKS, make_learner, make_stream
from hypothesis import given, settings
from hypothesis import strategies as st
from test_agent import make_agents

import laconic as lc

TRIANGLE = ["ann-ben", "ben-cid", "ann-cid"]
PATH = ["ann-ben", "ben-cid"]
LOSSY = {"dense": lc.Channel(), "3 bits": CHANNELS["adaptive"], "both": CHANNELS["both"]}


def make_script(n_rounds, agents, seed=0):
    """Models that wander, (T, N, n)."""
    random = np.random.default_rng(seed)
    n = next(iter(agents.values())).features.n_features
    return np.cumsum(random.standard_normal((n_rounds, len(agents), n)), axis=0)


def play(agents, script, lost=lambda t, letter: False):
    """Rounds in which everybody says what the script says, and letters for which ``lost(t, letter)`` disappear."""
    for t, models in enumerate(script, 1):
        for agent, model in zip(agents.values(), models, strict=True):
            speak(agent, model)
        carry(agents, lambda letter, t=t: lost(t, letter))
    end_round(agents)


def assert_as_without_loss(agents, calm):
    check_invariants(agents)
    for name, agent in agents.items():
        assert agent.round == calm[name].round
        np.testing.assert_array_equal(agent.broadcast, calm[name].broadcast)
        for other in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(other), calm[name].replica(other))
            assert close(agent.share(other), calm[name].share(other))
        assert close(agent.duals, calm[name].duals)


# --------------------------------------------------------------------------------------------------------------------
# Slots


@pytest.mark.parametrize("channel", LOSSY)
def test_any_single_message_may_be_lost(channel, features):
    def team():
        return make_team(puppet(LOSSY[channel]), features, TRIANGLE, heartbeat=2)

    calm = team()
    script = make_script(9, calm)
    play(calm, script)
    repaired = 0
    for round, (sender, receiver) in itertools.product(range(1, 8), itertools.permutations(calm, 2)):
        agents = team()
        play(agents, script, lambda t, letter, at=(round, sender, receiver): (t, *letter[:2]) == at)
        assert_as_without_loss(agents, calm)
        repaired += agents[receiver].counters["requests"] > 0
    assert repaired >= 30


@pytest.mark.parametrize("channel", LOSSY)
def test_the_dual_is_wrong_until_the_repair(channel, features):
    """The comparison above can fail: between loss and repair the dual is off."""
    calm, agents = (make_team(puppet(LOSSY[channel]), features, PATH) for _ in range(2))
    script = make_script(3, agents)
    play(calm, script)
    play(agents, script, lambda t, letter: (t, *letter[:2]) == (3, "ann", "ben"))
    assert not close(agents["ben"].duals, calm["ben"].duals, 1e-3)
    assert not np.array_equal(agents["ben"].replica("ann"), agents["ann"].broadcast)


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(LOSSY)),
    st.integers(0, 2**32 - 1),
    st.floats(0.05, 1.0),
    st.integers(1, 7),
    st.sampled_from(["float64", "float32"]),
)
def test_any_messages_may_be_lost(features, channel, seed, share, n_rounds, dtype):
    """Those of up to seven rounds, requests among them; three rounds of contact, and all is well."""

    def team():
        return make_team(puppet(LOSSY[channel]), features, TRIANGLE, heartbeat=1, dtype=dtype)

    calm, agents = team(), team()
    script = make_script(n_rounds + 3, calm, seed=seed)
    play(calm, script)
    random = np.random.default_rng(seed)
    play(agents, script, lambda t, letter: t <= n_rounds and random.random() < share)
    if dtype == "float64":
        assert_as_without_loss(agents, calm)
    for name, agent in agents.items():
        assert set(agent.edges.values()) == {"live"}
        for other in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(other), calm[name].replica(other))
            assert close(agent.share(other), calm[name].share(other), 1e-10)
        assert close(agent.duals, calm[name].duals, 1e-10 if dtype == "float64" else 1e-5)


@settings(max_examples=25)
@given(st.sampled_from(sorted(LOSSY)), st.integers(0, 2**32 - 1))
def test_late_doubled_and_out_of_order(features, channel, seed):
    """Letters take up to four rounds, in any order, some twice; no request is needed for what comes in the end."""

    def team():
        return make_team(puppet(LOSSY[channel]), features, TRIANGLE, heartbeat=1)

    calm, agents = team(), team()
    script = make_script(14, calm, seed=seed)
    play(calm, script)
    random = np.random.default_rng(seed)
    under_way = []
    for t, models in enumerate(script):
        for agent, model in zip(agents.values(), models, strict=True):
            speak(agent, model)
        if t >= 10:
            deliver(agents, [letter for _, letter in under_way])
            under_way = []
            carry(agents)
            continue
        for letter in post(agents):
            under_way += [(t + int(random.integers(0, 4)), letter) for _ in range(1 + (random.random() < 0.3))]
        random.shuffle(under_way)
        deliver(agents, [letter for due, letter in under_way if due <= t])
        under_way = [(due, letter) for due, letter in under_way if due > t]
    end_round(agents)
    assert_as_without_loss(agents, calm)


def test_a_doubled_message_counts_once(features):
    agents = make_team(puppet(LOSSY["3 bits"]), features, PATH)
    script = make_script(4, agents)
    for models in script:
        for agent, model in zip(agents.values(), models, strict=True):
            speak(agent, model)
        letters = post(agents)
        deliver(agents, letters)
        deliver(agents, letters)
        assert post(agents) == []
    end_round(agents)
    check_invariants(agents)
    assert agents["ben"].counters["refusals"] == {"replayed": 8}


def test_out_of_order_within_a_round_needs_one_request(features):
    agents = make_team(puppet(LOSSY["3 bits"]), features, ["ann-ben"])
    ann, ben = agents.values()
    script = make_script(3, agents)
    first, second, third = (speak(ann, model[0]) and ann.outgoing()[0].data for model in script)
    for model in script:
        speak(ben, model[1])
    ben.outgoing()
    for data in (third, second, first):
        ben.receive(data, "ann")
    assert [kind_of(message.data) for message in ben.outgoing()] == ["request"]
    assert ben.heard("ann") == ann.position("ben")
    np.testing.assert_array_equal(ben.replica("ann"), ann.broadcast)


def test_what_is_recent_is_said_again_and_for_more_the_edge_begins_anew(features):
    """Up to eight messages are repeated as they were; for more there is a new session."""
    for missed, again in ((1, True), (7, True), (8, False), (9, False)):
        agents = make_team(puppet(LOSSY["3 bits"]), features, ["ann-ben"])
        script = make_script(12, agents)
        play(agents, script[: missed + 1], lambda t, letter, m=missed: t <= m and letter[0] == "ann")
        counters = agents["ann"].counters
        assert (counters["repeats"] > 0, counters["doubts"] > 0) == (again, not again), missed
        np.testing.assert_array_equal(agents["ben"].replica("ann"), agents["ann"].broadcast)
        check_invariants(agents)


@pytest.mark.parametrize("channel", LOSSY)
def test_a_long_silence_of_the_network(channel, features):
    """Beyond ten rounds apart an edge is reopened: then only the time without contact is missing from the dual."""
    agents = make_team(puppet(LOSSY[channel]), features, TRIANGLE, heartbeat=1)
    script = make_script(60, agents)
    play(agents, script, lambda t, letter: 10 < t <= 50 and letter[0] == "ann")
    check_invariants(agents)
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())


def test_learning_agents_agree_after_losses(features):
    """Real learners, whose models depend on what was lost: the definition of the dual holds all the same."""
    learner = lc.QCODKLA(rho=0.3, eta=2.0, alpha=0.5, beta=0.95, bits=4)
    for seed in range(5):
        agents = make_team(learner, features, TRIANGLE, heartbeat=2)
        X, y = make_stream(40, 3, seed=seed)
        random = np.random.default_rng(seed)
        for t in range(40):
            for i, agent in enumerate(agents.values()):
                agent.learn(X[t, i], y[t, i])
            carry(agents, lambda letter, t=t, random=random: t < 36 and random.random() < 0.4)
        end_round(agents)
        check_invariants(agents)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_shares_are_kept_in_double_precision(dtype, features):
    agents = make_team(puppet(), features, ["ann-ben"], dtype=dtype)
    ann, ben = agents.values()
    random = np.random.default_rng(0)
    exact = np.zeros((2, features.n_features))
    single = np.zeros((2, features.n_features), dtype=np.float32)
    for _ in range(1500):
        models = random.uniform(0.5, 1.5, size=(2, features.n_features)).astype(dtype)
        for k, agent in enumerate((ann, ben)):
            speak(agent, models[k])
        exact += models
        single += models.astype(np.float32)
        carry(agents)
    end_round(agents)
    assert ben.share("ann").dtype == np.float64
    np.testing.assert_array_equal(ben.share("ann"), -ann.share("ben"))
    assert np.abs(single / exact - 1).max() > 3e-7  # as sums of that many numbers in single precision are
    assert close(ben.share("ann"), exact[1] - exact[0], 1e-9)


# --------------------------------------------------------------------------------------------------------------------
# Lockstep


def run_under_loss(agents, X, y, share, seed):
    """Everybody works when it may; who waits for long asks again. Letters get lost, doubled and mixed up."""
    random = np.random.default_rng(seed)
    predictions = np.empty(y.shape)
    for _ in range(200 * len(y)):
        moved = False
        for i, agent in enumerate(agents.values()):
            if agent.ready and agent.round < len(y):
                t = agent.round
                predictions[t, i] = agent.learn(X[t, i], y[t, i]).prediction
                moved = True
        copies = [0, 1, 2], [share, 0.9 - share, 0.1]
        letters = [letter for letter in post(agents) for _ in range(random.choice(copies[0], p=copies[1]))]
        random.shuffle(letters)
        deliver(agents, letters)
        if all(agent.round == len(y) and agent.ready for agent in agents.values()):
            return predictions
        if not moved and not letters:
            for agent in agents.values():
                agent.remind()
    raise AssertionError("somebody is stuck")


@pytest.mark.parametrize(
    ("channel", "kind"), each(["dense", "adaptive", "fixed", "both"], ["odkla", "dokl", "adapt-then-combine"])
)
def test_lockstep_under_loss_gives_the_simulators_bits(kind, channel, features):
    network = NETWORKS["random"]
    learner = make_learner(kind, channel=CHANNELS[channel])
    X, y = make_stream(30, network.n_agents)
    trace = lc.simulate(learner, features, network, X, y)
    agents = make_agents(learner, features, network)
    predictions = run_under_loss(agents, X, y, share=0.3, seed=1)
    np.testing.assert_array_equal(predictions, trace.predictions)
    for i, agent in enumerate(agents.values()):
        agent.end_round()
        np.testing.assert_array_equal(agent.weights, trace.state.weights[i])
        if kind != "adapt-then-combine":
            np.testing.assert_array_equal(agent.duals, trace.state.duals[i])
    assert sum(agent.counters["requests"] for agent in agents.values()) > 20


@pytest.mark.parametrize("degrees", ["told", "unknown"])
def test_the_degree_of_who_was_silent_at_first(degrees, features):
    """The second says nothing in the first round, and that gets lost; its degree is known from the handshake."""
    network = lc.Network.path(3)
    learner = make_learner("adapt-then-combine", channel=lc.Channel(lc.Censor(0.5, 0.95)))
    X, _ = make_stream(4, 3)
    y = np.array([[3.0, 0.0, 0.0], [3.0, 3.0, 0.0], [3.0, 3.0, 0.0], [3.0, 3.0, 0.0]])
    trace = lc.simulate(learner, features, network, X, y)
    assert trace.sent[:2, :2].tolist() == [[True, False], [True, True]]
    neighbours = {"0": {"1": 2}, "1": {"0": 1, "2": 1}, "2": {"1": 2}}
    agents = {
        name: lc.Agent(name, others if degrees == "told" else list(others), features, learner, n_agents=3)
        for name, others in neighbours.items()
    }
    carry(agents)
    predictions = np.empty((4, 3))
    lost = [("1", "0", 1)]
    for _ in range(10):
        for i, agent in enumerate(agents.values()):
            if agent.ready and agent.round < 4:
                t = agent.round
                predictions[t, i] = agent.learn(X[t, i], y[t, i]).prediction
        carry(agents, lambda letter: (*letter[:2], agents["1"].round) in lost)
        for agent in agents.values():
            if not agent.ready:
                agent.remind()
        carry(agents)
    assert [agent.round for agent in agents.values()] == [4, 4, 4]
    np.testing.assert_array_equal(predictions, trace.predictions)


def test_lockstep_waits(features):
    agents = make_team(puppet(), features, PATH, clock="lockstep")
    ann, ben, cid = agents.values()
    for agent in agents.values():
        speak(agent, np.ones(features.n_features))
    letters = post(agents)
    deliver(agents, [letter for letter in letters if letter[0] != "cid"])
    assert (ann.ready, ben.ready, cid.ready) == (True, False, True)
    assert ben.waiting == ("cid",)
    with pytest.raises(lc.protocol.NotReady, match="'ben' waits for cid"):
        ben.idle()
    before = ben.state()
    ben.remind()
    [(_, to, data)] = post({"ben": ben})
    assert (to, kind_of(data)) == ("cid", "request")
    assert ben.state() == before
    deliver(agents, [("ben", "cid", data)])
    carry(agents)
    assert ben.ready


def test_a_neighbour_that_is_a_round_ahead_waits_its_turn(features):
    agents = make_team(puppet(), features, ["ann-ben"], clock="lockstep")
    ann, ben = agents.values()
    one, two = np.ones(features.n_features), np.full(features.n_features, 2.0)
    speak(ann, one)
    speak(ben, one)
    carry(agents)
    speak(ann, two)
    carry(agents)
    np.testing.assert_array_equal(ben.replica("ann"), one)
    speak(ben, two)
    np.testing.assert_array_equal(ben.replica("ann"), two)


# --------------------------------------------------------------------------------------------------------------------
# Neighbours keep what somebody without memory needs


@pytest.mark.parametrize("clock", ["slotted", "lockstep"])
@pytest.mark.parametrize("channel", LOSSY)
def test_who_lost_everything_gets_its_dual_back(channel, clock, features):
    """The shares are what the neighbours kept; the model is the median of theirs, and told in full."""
    agents = make_team(puppet(LOSSY[channel]), features, TRIANGLE, clock=clock)
    script = make_script(25, agents)
    play(agents, script[:20])
    old = agents["ben"]
    agents["ben"] = new = lc.Agent("ben", old.neighbours, features, old.learner, n_agents=3, clock=clock)
    new.rejoin()
    assert not new.ready
    assert set(new.waiting) == {"ann", "cid"}
    carry(agents)
    assert new.ready
    for other in ("ann", "cid"):
        np.testing.assert_array_equal(new.replica(other), agents[other].broadcast)
        np.testing.assert_array_equal(new.share(other), old.share(other))
        assert new.edges[other] == "live"
    assert close(new.duals, old.duals)
    check_invariants(agents)
    two = agents["ann"].broadcast, agents["cid"].broadcast
    middle = np.where(np.abs(two[0]) < np.abs(two[1]), *two)  # of an even number, the smaller in the middle
    for name, agent in agents.items():
        speak(agent, script[20][0]) if name != "ben" else agent.idle()
    np.testing.assert_allclose(new.broadcast, middle, rtol=1e-12)
    assert new.round == old.round + 1
    carry(agents)
    assert new.counters["recoveries"] == 1
    np.testing.assert_array_equal(agents["ann"].replica("ben"), new.broadcast)
    play(agents, script[21:])
    check_invariants(agents)


def test_a_message_of_an_earlier_process_is_not_taken(features):
    agents = make_team(puppet(), features, ["ann-ben"])
    play(agents, make_script(3, agents))
    ann, old = agents.values()
    speak(old, np.full(features.n_features, 7.0))
    late = old.outgoing()[0].data
    agents["ben"] = new = lc.Agent("ben", ["ann"], features, old.learner, n_agents=2, clock="slotted")
    new.rejoin()
    carry(agents)
    play(agents, make_script(3, agents))
    before = ann.state()
    ann.receive(late, "ben")
    assert ann.state() == before
    assert ann.counters["refusals"] == {"another session": 1}
    carry(agents)
    check_invariants(agents)


def test_everybody_may_lose_everything_in_turn(features):
    agents = make_team(puppet(LOSSY["both"]), features, TRIANGLE, heartbeat=2)
    sessions = set()
    for name in ("ann", "ben", "cid", "ben", "ben"):
        play(agents, make_script(6, agents))
        old = agents[name]
        options = {"n_agents": 3, "clock": "slotted", "heartbeat": 2}
        agents[name] = lc.Agent(name, old.neighbours, features, old.learner, **options)
        agents[name].rejoin()
        carry(agents)
        assert close(agents[name].duals, old.duals)
        check_invariants(agents)
        sessions |= {agents[name].position(other).session for other in old.neighbours}
    assert len(sessions) == 10


@pytest.mark.parametrize("first", ["ann", "ben", "cid"])
def test_neighbours_partitioned_in_turn(first, features):
    """Each is cut off for a while, longer than an edge stays open, and comes back; noticed by both sides or by one."""
    agents = make_team(puppet(LOSSY["3 bits"]), features, TRIANGLE, heartbeat=2)
    names = sorted(agents, key=lambda name: (name != first, name))
    for k, away in enumerate(names):
        others = [name for name in agents if name != away]
        for other in others:
            agents[other].disconnected(away)
            if k != 1:
                agents[away].disconnected(other)
        for models in make_script(15, agents, seed=k):
            for agent, model in zip(agents.values(), models, strict=True):
                speak(agent, model)
            carry(agents, lambda letter, away=away: away in letter[:2])
        for other in others:
            agents[other].connected(away)
            agents[away].connected(other)
        carry(agents)
        play(agents, make_script(3, agents, seed=k))
        assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
        check_invariants(agents)


def test_who_runs_alone_in_lockstep_waits_for_the_answer_to_its_offer(features):
    """Rounds may be shorter than an answer takes: it would take back each offer, and stay alone for ever."""
    agents = make_team(puppet(), features, ["ann-ben"], clock="lockstep")
    ann, ben = agents.values()
    for agent in agents.values():
        speak(agent, agent.weights)
    carry(agents)
    ann.remove("ben")
    ann.add("ben")
    farewell, call = (message.data for message in ann.outgoing())
    ben.receive(farewell, "ann")
    assert ben.edges == {"ann": "gone"} and ben.ready
    ben.receive(call, "ann")
    assert ben.waiting == ("ann",)
    for _ in range(3):  # but not for long: perhaps that was an old call
        ben.remind()
    assert ben.ready
    for _ in range(8):
        speak(ben, ben.weights)
    ben.outgoing()
    ann.remind()
    deliver(agents, post(agents))
    assert ben.waiting == ("ann",)  # and later again
    carry(agents)
    assert ben.edges == {"ann": "live"} and ann.edges == {"ben": "live"}


def test_a_decision_on_an_offer_that_was_made_anew_is_answered(features):
    """A call that overtakes a farewell is answered twice: the leader has decided on an offer that holds no more."""
    agents = make_team(puppet(), features, ["ann-ben"], clock="lockstep")
    ann, ben = agents.values()
    for agent in agents.values():
        speak(agent, agent.weights)
    carry(agents)
    ann.remove("ben")
    ann.add("ben")
    farewell, call = (message.data for message in ann.outgoing())
    for data in (call, farewell, call):
        ben.receive(data, "ann")
    carry(agents)
    ben.remind()
    ann.remind()
    carry(agents)
    assert ben.edges == {"ann": "live"} and ann.edges == {"ben": "live"}
