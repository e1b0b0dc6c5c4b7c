"""Agents with a prediction of their own: what the simulator computes, over messages and after a restart."""

import numpy as np
import pytest
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
