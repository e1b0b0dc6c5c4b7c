"""Agents with robust="clip": the simulator's bits, exact shares, duals from what passes, and hostile members."""

import numpy as np
import pytest
from agent_kit import carry, due, end_round, make_team, post
from breadth import crossed, each
from conftest import CHANNELS, NETWORKS, make_stream

import laconic as lc
from laconic._clipping import weigh
from laconic.engine.endings import FINISHED

LEARNERS = {
    "odkla": lambda **options: lc.ODKLA(rho=0.3, eta=1.0, robust="clip", **options),
    "dokl": lambda **options: lc.DOKL(rho=0.3, eta=1.0, robust="clip", **options),
    "combine-then-adapt": lambda **options: lc.RFFDOKL(0.4, robust="clip", **options),
    "adapt-then-combine": lambda **options: lc.RFFDOKL(0.4, "adapt-then-combine", robust="clip", **options),
}


def make_agents(learner, features, network, **options):
    names, starts = [f"a{i}" for i in range(network.n_agents)], network.starts
    around = [[names[j] for j in network.neighbours[starts[i] : starts[i + 1]]] for i in range(network.n_agents)]
    agents = {
        name: lc.Agent(name, others, features, learner, n_agents=network.n_agents, **options)
        for name, others in zip(names, around, strict=True)
    }
    carry(agents)
    return agents


def run(agents, X, y):
    predictions = np.empty(y.shape)
    for t in range(len(y)):
        for i, agent in enumerate(agents.values()):
            predictions[t, i] = agent.learn(X[t, i], y[t, i]).prediction
        carry(agents)
    return predictions


@pytest.mark.parametrize(("kind", "channel", "dtype"), crossed(LEARNERS, ["dense", "both"], ["float64", "float32"]))
def test_lockstep_gives_the_simulators_bits(kind, channel, dtype, features):
    for network in (NETWORKS["random"], NETWORKS["star"]):
        learner = LEARNERS[kind](channel=CHANNELS[channel])
        X, y = make_stream(80, network.n_agents)
        y[20, 2] = y[33, :] = np.nan
        trace = lc.simulate(learner, features, network, X, y, dtype=dtype)
        agents = make_agents(learner, features, network, dtype=dtype)
        np.testing.assert_array_equal(run(agents, X, y), trace.predictions)
        end_round(agents)
        for i, agent in enumerate(agents.values()):
            np.testing.assert_array_equal(agent.weights, trace.state.weights[i])
            if "duals" in trace.state.learner:
                np.testing.assert_array_equal(agent.duals, trace.state.duals[i])
            assert agent.counters["refusals"] == {}


@pytest.mark.parametrize("kind", LEARNERS)
def test_agents_without_a_compiler_agree_to_rounding(kind, features):
    network, learner = NETWORKS["random"], LEARNERS[kind]()
    X, y = make_stream(60, network.n_agents)
    plain, fast = (run(make_agents(learner, features, network, engine=e), X, y) for e in ("reference", "compiled"))
    np.testing.assert_allclose(plain, fast, rtol=1e-12, atol=1e-12)


def check_duals(agents):
    """Shares of two ends cancel, and duals are what passes of the shares; as at the end of a round."""
    for name, agent in agents.items():
        live = [other for other, stage in agent.edges.items() if stage == "live"]
        for other in live:
            np.testing.assert_array_equal(agent.replica(other), agents[other].broadcast)
            apart = due(agents, name, other) + due(agents, other, name)
            assert np.abs(apart).max() <= 1e-10 * (1 + np.abs(agent.share(other)).max())
        if not live:
            assert not agent.duals.any()
            continue
        shares = np.array([agent.share(other) for other in live])
        pulls = np.array([agent.broadcast - agent.replica(other) for other in live])
        total = agent._ledger.row.part("sums")
        _, kept = weigh(pulls, shares, agent.broadcast, total, agent.learner.reach)
        expected = agent.learner.rho * (kept @ shares)
        np.testing.assert_allclose(agent.duals, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(shares).max()))


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_duals_are_what_passes_of_the_shares_whatever_happens_to_edges(engine, features):
    edges = ["ann-ben", "ben-cid", "cid-dan", "dan-ann", "ann-cid"]
    learner = LEARNERS["odkla"](channel=CHANNELS["both"])
    agents = make_team(learner, features, edges, clock="lockstep", engine=engine)
    X, y = make_stream(200, 4)

    def rounds(begin, stop):
        for t in range(begin, stop):
            for i, agent in enumerate(agents.values()):
                agent.learn(X[t, i], y[t, i] + i)  # they see different things, so that shares grow
            carry(agents)
        end_round(agents)
        check_duals(agents)

    rounds(0, 30)
    assert any(np.abs(agent.duals).max() > 0.1 for agent in agents.values())
    agents["ann"].disconnected("cid")
    agents["cid"].disconnected("ann")
    rounds(30, 60)
    agents["ann"].connected("cid")
    agents["cid"].connected("ann")
    carry(agents)
    rounds(60, 90)
    assert agents["ann"].edges["cid"] == "live"
    agents["ann"].remove("cid")
    carry(agents)
    rounds(90, 120)
    again = lc.Agent("ben", ["ann", "cid"], features, learner, n_agents=4, engine=engine)  # it restarts
    again.restore(agents["ben"].state())
    np.testing.assert_array_equal(again.duals, agents["ben"].duals)
    np.testing.assert_array_equal(again._ledger.row.part("sums"), agents["ben"]._ledger.row.part("sums"))
    agents["ben"] = again
    carry(agents)
    rounds(120, 150)
    agents["dan"] = lc.Agent("dan", ["cid", "ann"], features, learner, n_agents=4, engine=engine)  # without a memory
    agents["dan"].rejoin()
    carry(agents)
    for agent in agents.values():
        agent.remind()
    carry(agents)
    rounds(150, 200)


def test_on_slots_what_is_late_or_lost_is_worked_in(features):
    learner = LEARNERS["odkla"](channel=CHANNELS["both"])
    agents = make_team(learner, features, ["ann-ben", "ben-cid", "cid-ann"])
    X, y = make_stream(150, 3)
    lost = np.random.default_rng(0)
    for t in range(120):
        for i, agent in enumerate(agents.values()):
            agent.learn(X[t, i], y[t, i] + i)
        for sender, receiver, data in post(agents):
            if lost.uniform() < 0.7:
                agents[receiver].receive(data, sender)
    for t in range(120, 150):  # and now all is well
        for i, agent in enumerate(agents.values()):
            agent.learn(X[t, i], y[t, i] + i)
        carry(agents)
    end_round(agents)
    assert any(agent.counters["repairs"] or agent.counters["repeats"] for agent in agents.values())
    check_duals(agents)


def test_agents_must_agree_on_what_passes(features):
    unlike = [lc.ODKLA(), lc.ODKLA(robust="clip"), lc.ODKLA(robust="clip", reach=2.0)]
    for one, other in [(0, 1), (1, 2), (2, 0)]:
        ann = lc.Agent("ann", ["ben"], features, unlike[one], n_agents=2)
        ben = lc.Agent("ben", ["ann"], features, unlike[other], n_agents=2)
        for message in ann.outgoing():
            ben.receive(message.data, "ann")
        assert ben.counters["refusals"] == {"fingerprint": 1}


def lie(agent, what):
    """Have an agent say ``what(t)`` instead of what it learns."""

    def learn(label, t):
        agent._ledger.weights = what(t)
        return FINISHED, 0.0

    agent._ledger.learn = learn


def honest_error(learner, features, network, X, y, what=None):
    """The mean square error of all but the first agent, which lies, over the second half; and the agents."""
    agents = make_agents(learner, features, network)
    if what is not None:
        lie(agents["a0"], what)
    predictions = np.full(y.shape, np.nan)
    for t in range(len(y)):
        for i, agent in enumerate(agents.values()):
            if i or agent.ready:  # the first may be shut out
                predictions[t, i] = agent.learn(X[t, i], y[t, i]).prediction
        carry(agents)
        while not all(agent.ready for agent in list(agents.values())[1:]):  # one that is refused is given up in time
            for agent in agents.values():
                agent.remind()
            carry(agents)
    half = len(y) // 2
    return float(((predictions - y)[half:, 1:] ** 2).mean()), agents


ATTACKS = {
    "huge": lambda t, rng: 1e6 * 10 ** (t / 25) * np.ones(22),
    "steady": lambda t, rng: 2.0 * np.ones(22),
    "random": lambda t, rng: 3.0 * rng.standard_normal(22),
    "drifting": lambda t, rng: 0.05 * t * np.ones(22),
}


@pytest.mark.parametrize(("kind", "attack"), each(LEARNERS, ATTACKS))
def test_one_hostile_member_of_six_does_little(kind, attack, features):
    network, (X, y) = lc.Network.complete(6), make_stream(200, 6)
    learner = LEARNERS[kind]()
    plain = learner.set_params(robust=None)
    without, _ = honest_error(plain, features, network, X, y)
    rng = np.random.default_rng(0)
    learner = LEARNERS[kind]()
    error, agents = honest_error(learner, features, network, X, y, lambda t: ATTACKS[attack](t, rng))
    assert error < 1.25 * without
    end_round({name: agent for name, agent in agents.items() if name != "a0"})
    for name, agent in list(agents.items())[1:]:  # the honest go on as ever, and their shares are exact to the bit
        if attack == "huge":  # beyond all that is believed, clipped or not
            assert agent.alerts() == [("quarantined", "a0")]
        else:
            assert agent.counters["refusals"] == {} and agent.alerts() == []
        for other in list(agents)[1:]:
            if other != name:
                assert np.array_equal(agent.share(other), -agents[other].share(name))


def test_without_the_option_the_same_member_ruins_everything(features):
    network, (X, y) = lc.Network.complete(6), make_stream(100, 6)
    learner = lc.ODKLA(rho=0.3, eta=1.0)
    without, _ = honest_error(learner, features, network, X, y)
    error, _ = honest_error(learner, features, network, X, y, lambda t: 30.0 * np.ones(22))
    assert error > 100 * without
