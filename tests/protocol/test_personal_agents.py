"""Agents with a prediction of their own: what the simulator computes, over messages and after a restart."""

import numpy as np
import pytest
from agent_kit import carry, make_team
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.transport.virtual import VirtualNetwork


@pytest.mark.parametrize("learner", [lc.Personal(), lc.Personal(lc.WaveRLS(forgetting=0.97))], ids=["keeps", "forgets"])
def test_agents_predict_by_stacks_and_share_what_waves_bring(learner, features):
    network = NETWORKS["random"]
    X, y = make_stream(60, network.n_agents)
    y[20, 2] = np.nan
    virtual = VirtualNetwork(learner, features, network, X, y)
    virtual.run(60)
    trace = lc.simulate(learner, features, network, X, y)
    np.testing.assert_array_equal(virtual.predictions(), trace.predictions)
    for host in virtual.hosts.values():
        np.testing.assert_array_equal(host.agent.weights, host.agent.broadcast)
    stacks = [host.agent.state().arrays["wave.stack"] for host in virtual.hosts.values()]
    assert len({tuple(stack) for stack in stacks}) == network.n_agents


@pytest.mark.parametrize("rounds", [3, 15])  # before its guard has limits, and after
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_restart_forgets_nothing(engine, rounds, features):
    learner = lc.Personal()
    X, y = make_stream(30, 1)
    whole, first, second = (lc.Agent("ann", [], features, learner, n_agents=1, engine=engine) for _ in range(3))
    for k in range(rounds):
        whole.learn(X[k, 0], y[k, 0])
        first.learn(X[k, 0], y[k, 0])
    second.restore(lc.AgentState.from_bytes(first.state().to_bytes()))
    for k in range(rounds, 30):
        assert whole.learn(X[k, 0], y[k, 0]).prediction == second.learn(X[k, 0], y[k, 0]).prediction


def test_both_engines_predict_the_same(features):
    X, y = make_stream(40, 1)
    agents = [lc.Agent("ann", [], features, lc.Personal(), n_agents=1, engine=e) for e in ("compiled", "reference")]
    for k in range(40):
        one, other = (agent.learn(X[k, 0], y[k, 0]).prediction for agent in agents)
        assert abs(one - other) < 1e-9
        assert abs(agents[0].predict(X[k, 0]) - agents[1].predict(X[k, 0])) < 1e-9


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_is_left_alone_goes_on_learning_the_model_that_it_gives_away(engine, features):
    """What all share stands still without waves: a model taken away months later would be as old as the last one."""
    agents = make_team(lc.Personal(), features, ["ann-ben"], clock="slotted", engine=engine)
    X, y = make_stream(100, 2)
    for t in range(40):
        for k, agent in enumerate(agents.values()):
            agent.learn(X[t, k], y[t, k])
        carry(agents)
    ann = agents["ann"]
    np.testing.assert_array_equal(ann.weights, ann.broadcast)
    late = ann._ledger.node
    late.forlorn = True  # somebody is there, and no wave comes
    np.testing.assert_array_equal(ann.weights, ann._ledger.waver.own.weights)
    late.forlorn = False
    ann.disconnected("ben")
    for t in range(40, 100):
        ann.learn(X[t, 0], y[t, 0])
    truth = features(X[:, 0])
    error, old = (np.mean((truth @ model - y[:, 0]) ** 2) for model in (ann.model().weights, ann.broadcast))
    assert error < 0.97 * old


def test_waves_that_do_not_come_are_noticed_until_one_does(features):
    agents = make_team(lc.Personal(), features, ["ann-ben"], clock="slotted")
    X, y = make_stream(130, 2)

    def play(t, silent):
        for k, agent in enumerate(agents.values()):
            agent.learn(X[t, k], y[t, k])
        carry(agents)
        if silent:  # of waves nothing comes through, though the two hear each other
            for agent in agents.values():
                agent._ledger.inbox = {}

    for t in range(10):
        play(t, silent=False)
    child = next(agent for agent in agents.values() if agent._ledger.node.place.parent is not None)
    node = child._ledger.node
    for t in range(10, 130):
        play(t, silent=not node.forlorn)
        if node.forlorn:
            break
    assert not np.array_equal(child.weights, child.broadcast)
    for later in range(t + 1, 130):
        play(later, silent=False)
        if not node.forlorn:
            break
    assert np.array_equal(child.weights, child.broadcast)
