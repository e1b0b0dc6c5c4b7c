"""Agents with a prediction of their own: what the simulator computes, over messages and after a restart."""

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.transport.virtual import VirtualNetwork


def test_agents_predict_by_stacks_and_share_what_waves_bring(features):
    learner, network = lc.Personal(), NETWORKS["random"]
    X, y = make_stream(60, network.n_agents)
    y[20, 2] = np.nan
    virtual = VirtualNetwork(learner, features, network, X, y)
    virtual.run(60)
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    np.testing.assert_allclose(virtual.predictions(), trace.predictions, rtol=0, atol=1e-9)
    for host in virtual.hosts.values():
        np.testing.assert_array_equal(host.agent.weights, host.agent.broadcast)
    stacks = [host.agent.state().arrays["wave.stack"] for host in virtual.hosts.values()]
    assert len({tuple(stack) for stack in stacks}) == network.n_agents


def test_a_restart_forgets_nothing(features):
    learner = lc.Personal()
    X, y = make_stream(30, 1)
    whole, first = (lc.Agent("ann", [], features, learner, n_agents=1) for _ in range(2))
    for k in range(15):
        whole.learn(X[k, 0], y[k, 0])
        first.learn(X[k, 0], y[k, 0])
    second = lc.Agent("ann", [], features, learner, n_agents=1)
    second.restore(first.state())
    for k in range(15, 30):
        assert whole.learn(X[k, 0], y[k, 0]).prediction == second.learn(X[k, 0], y[k, 0]).prediction


def test_rounds_are_numpy(features):
    with pytest.raises(ValueError, match="engine must be 'reference' or 'auto'"):
        lc.Agent("ann", [], features, lc.Personal(), n_agents=1, engine="compiled")
