"""Agents whose samples have several labels: what the simulator computes, over messages and after crashes."""

import numpy as np
import pytest
from conftest import make_stream

import laconic as lc
from laconic.deploy.settings.site import Site
from laconic.testing.wave_aftermath import look_at_waves
from laconic.transport.faults import Crash, Drop
from laconic.transport.virtual import VirtualNetwork

LEARNER = lc.WaveRLS(outputs=3)


def stream(n_rounds, n_agents):
    X, y = make_stream(n_rounds, n_agents)
    y[7, 1] = np.nan
    return X, np.stack([y, -y, y**2], axis=-1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lockstep_is_the_simulator_to_the_bit(dtype, features):
    network, (X, y) = lc.Network.random(5, p=0.5, seed=3), stream(60, 5)
    faults = Drop(0.0, 3.0, 0.3), Crash(1.0, 2.0, "1", disk=True)
    virtual = VirtualNetwork(LEARNER, features, network, X, y, faults=faults, checkpoint_every=1, dtype=dtype)
    virtual.run(60)
    trace = lc.simulate(LEARNER, features, network, X, y, dtype=dtype)
    np.testing.assert_array_equal(virtual.predictions(), trace.predictions)
    for i, host in enumerate(virtual.hosts.values()):
        np.testing.assert_array_equal(host.agent.broadcast, trace.state.learner["theta"][i])
        assert host.agent.model().weights.shape == (features.n_features, 3)


def test_without_a_disk_the_whole_is_told(features):
    """More waves than a message down can bring back: who has forgotten them is told all that everybody knows."""
    network, (X, y) = lc.Network.ring(4), stream(80, 4)
    virtual = VirtualNetwork(LEARNER, features, network, X, y, faults=[Crash(5.0, 6.0, "2", disk=False)])
    virtual.run(80)
    agents = {name: host.agent for name, host in virtual.hosts.items()}
    for agent in agents.values():
        agent.end_round()
    assert list(look_at_waves(agents)) == []
    assert all(len(agent.weights) == 3 for agent in agents.values())


def test_rounds_and_labels(features):
    agent = lc.Agent("ann", [], features, LEARNER, n_agents=1)
    info = agent.learn(np.zeros(features.n_inputs), [1.0, -1.0, 2.0])
    assert info.prediction.shape == (3,) and info.loss == pytest.approx(2.0)
    assert np.isnan(agent.learn(np.zeros(features.n_inputs), None).loss)
    assert np.isnan(agent.idle().prediction)
    assert agent.predict(np.zeros(features.n_inputs)) == pytest.approx([1.0, -1.0, 2.0], abs=0.2)
    for wrong, why in ((1.0, r"y must have shape \(3,\)"), ([1.0, 2.0], r"y must have shape \(3,\)")):
        with pytest.raises(ValueError, match=why):
            agent.learn(np.zeros(features.n_inputs), wrong)
    with pytest.raises(ValueError, match="y must be at most"):
        agent.learn(np.zeros(features.n_inputs), [0.0, 1e13, 0.0])
    with pytest.raises(ValueError, match="x must be finite"):
        agent.learn(np.full(features.n_inputs, np.inf), [0.0, 0.0, 0.0])


def test_a_trace_of_several_outputs_is_read_as_it_was_written(tmp_path):
    random = np.random.default_rng(3)
    features, X = lc.RandomFeatures.gaussian(2, 5, seed=0), random.normal(size=(30, 4, 2))
    trace = lc.simulate(lc.WaveRLS(outputs=3), features, lc.Network.ring(4), X, random.normal(size=(30, 4, 3)))
    trace.save(tmp_path / "trace.npz")
    again = lc.Trace.load(tmp_path / "trace.npz")
    for column in ("predictions", "labels", "sent", "weights", "bits"):
        assert np.array_equal(getattr(again, column), getattr(trace, column)), column
    assert np.array_equal(again.model().predict(X), trace.model().predict(X))
    with np.load(tmp_path / "trace.npz") as file:
        arrays = dict(file)
    told = arrays["predictions"]
    for wrong in (told[..., :0], told[..., :1], told[..., :2], told[:, :2], told[..., None], told[0, 0]):
        np.savez(tmp_path / "wrong.npz", **(arrays | {"predictions": wrong}))
        with pytest.raises(ValueError, match="instead of .rounds, agents.|expected|broadcast has shape"):
            lc.Trace.load(tmp_path / "wrong.npz")


def test_a_site_has_one_label(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text("[model]\nn_inputs = 2\n[learner]\nalgorithm = 'waverls'\noutputs = 3\n[agents.ann]\n")
    with pytest.raises(ValueError, match="outputs must be 1, since a site's samples have one label"):
        Site.read(path)
