"""Agents that run waves: in lockstep what the simulator does, to the bit; and what they make of a tree that changes."""

import numpy as np
import pytest

import laconic as lc
from laconic.transport.virtual import VirtualNetwork
from laconic.waves.roving import link_digest
from laconic.waves.saving import packed

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=6, bandwidth=0.5, seed=0)
GRAPHS = {
    "two": lc.Network.path(2),
    "path": lc.Network.path(5),
    "star": lc.Network.star(5),
    "random": lc.Network.random(7, p=0.4, seed=3),
    "named": lc.Network.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)], ["z", "b10", "b9", "a"]),
}


def stream(n_agents, n_rounds=60, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rounds, n_agents, 2))
    y = np.sin(5 * X[..., 0]) * X[..., 1] + 0.1 * rng.standard_normal((n_rounds, n_agents))
    y[rng.uniform(size=y.shape) < 0.1] = np.nan
    return X, y


def node(host):
    return host.agent._ledger.node


def run(network, learner=None, n_rounds=60, **options):
    learner = learner or lc.WaveRLS()
    X, y = stream(network.n_agents, n_rounds)
    virtual = VirtualNetwork(learner, FEATURES, network, X, y, **options)
    virtual.run(n_rounds)
    return virtual, lc.simulate(learner, FEATURES, network, X, y)


def assert_same(virtual, trace):
    assert np.array_equal(virtual.predictions(), trace.predictions)
    bits = [host.agent.counters["bits"] for host in virtual.hosts.values()]
    assert bits == trace.bits.sum(axis=0).tolist()
    kept = trace.state.learner
    for i, host in enumerate(virtual.hosts.values()):
        own = node(host)
        assert np.array_equal(own.common.theta, kept["theta"][i])
        assert np.array_equal(packed(own.common.information), kept["information"][i])
        if own.link is not None:
            parent = next(
                node(other) for other in virtual.hosts.values() if node(other).place.agent == own.place.parent
            )
            known = [parent.links[own.place.agent], parent.links_before.get(own.place.agent)]  # or it is on its way
            assert link_digest(own.link) in [link_digest(link) for link in known if link is not None]
    assert any(node(host).links for host in virtual.hosts.values())


@pytest.mark.parametrize("graph", GRAPHS)
def test_lockstep_is_the_simulator_to_the_bit(graph):
    assert_same(*run(GRAPHS[graph]))


@pytest.mark.parametrize(
    "learner", [lc.WaveRLS.frugal(), lc.WaveRLS(forgetting=0.95, first=5)], ids=["frugal", "forgets"]
)
def test_variants(learner):
    assert_same(*run(GRAPHS["star"], learner))


def test_who_forgets_and_hears_no_wave_is_the_simulator_to_the_bit():
    learner = lc.WaveRLS(forgetting=0.7, first=1000)
    virtual, trace = run(lc.Network.path(2), learner, n_rounds=200)
    assert np.array_equal(virtual.predictions(), trace.predictions)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [lc.WaveRLS(), lc.Personal()], ids=["waves", "personal"])
def test_what_is_predicted_beforehand_has_the_bits_of_learning(learner):
    agent, (X, y) = lc.Agent("a", [], FEATURES, learner, n_agents=1), stream(1, 40)
    for x, label in zip(X[:, 0], y[:, 0], strict=True):
        before = agent.predict(x)
        assert before == agent.predict(x) == agent.learn(x, label).prediction


@pytest.mark.parametrize("label", [np.nan, 0.0])
@pytest.mark.parametrize("graph", [lc.Network.path(5), lc.Network.path(21)], ids=["path", "deep"])
def test_who_has_seen_no_label_learns_from_what_comes_before_the_first_wave(graph, label):
    """There is nothing to measure that by: it was taken for a model that had left all bounds, and the agent ended."""
    learner, (X, y) = lc.WaveRLS(first=3), stream(graph.n_agents, 40)
    y[:, 1] = label
    virtual = VirtualNetwork(learner, FEATURES, graph, X, y)
    virtual.run(40)
    assert_same(virtual, lc.simulate(learner, FEATURES, graph, X, y))


def test_fronts_before_the_first_wave():
    virtual, trace = run(lc.Network.ring(20), n_rounds=45)
    assert trace.waves["depth"][0] == 10
    assert_same(virtual, trace)
