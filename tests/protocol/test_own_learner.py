"""A learner, loss, censor and quantizer of one's own as running agents: what the reference engine computes."""

import numpy as np
import pytest
from agent_kit import carry, make_team
from breadth import each
from coders import Largest
from conftest import CHANNELS, LEARNERS, make_learner, make_stream
from own_learner import Grace, Huber, MomentumDiffusion

import laconic as lc
from laconic.protocol import AgentState
from laconic.transport.faults import Corruption, Crash, Delay, Drop, Duplication, Slow
from laconic.transport.virtual import VirtualNetwork

HARMLESS = {
    "none": (),
    "loss": (Drop(0.5, 8.0, 0.4),),
    "delay": (Delay(0.0, 9.0, 2.0), Slow(1.0, 6.0, "1", 3.0)),
    "duplication": (Duplication(0.0, 20.0, 0.5),),
    "all": (Drop(0.5, 5.0, 0.3), Delay(2.0, 9.0, 1.5), Duplication(1.0, 7.0, 0.5), Corruption(0.0, 9.0, 0.2)),
}


def own_channel(features):
    return {
        **CHANNELS,
        "own censor": lc.Channel(Grace(10, 3.0)),
        "own quantizer": lc.Channel(Grace(10, 3.0), Largest(0.02, features.n_features)),
    }


@pytest.mark.parametrize("faults", HARMLESS)
def test_the_example_under_faults_equals_the_reference(faults, features):
    network = lc.Network.random(5, p=0.5, seed=2)
    X, y = make_stream(60, 5)
    learner = MomentumDiffusion(channel=CHANNELS["both"], loss=Huber())
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    net = VirtualNetwork(learner, features, network, X, y, faults=HARMLESS[faults], seed=3)
    net.run(60)
    np.testing.assert_allclose(net.predictions(), trace.predictions, rtol=0, atol=1e-12)
    for i, host in enumerate(net.hosts.values()):
        host.agent.end_round()
        np.testing.assert_allclose(host.agent.weights, trace.weights[i], rtol=0, atol=1e-12)
        for name in host.agent.neighbours:
            np.testing.assert_array_equal(host.agent.replica(name), net.hosts[name].agent.broadcast)
    assert trace.predictions.any() and not trace.sent.all()


@pytest.mark.parametrize(
    ("channel", "clock"), each([*CHANNELS, "own censor", "own quantizer"], ["lockstep", "slotted"])
)
def test_every_channel(channel, clock, features):
    network = lc.Network.ring(5)
    X, y = make_stream(60, 5)
    y[7, 2] = y[11] = np.nan
    learner = MomentumDiffusion(channel=own_channel(features)[channel])
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    net = VirtualNetwork(learner, features, network, X, y, clock=clock)
    net.run(60)
    np.testing.assert_allclose(net.predictions(), trace.predictions, rtol=0, atol=1e-12)
    spent = [host.agent.counters["bits"] for host in net.hosts.values()]
    assert spent == trace.bits.sum(axis=0).tolist()


def test_after_a_crash_all_parts_of_the_state_are_back(features):
    """With its disk a crashed agent goes on as if nothing had happened, velocity and all."""
    network = lc.Network.ring(4)
    X, y = make_stream(80, 4)
    learner = MomentumDiffusion()
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    crash = (Crash(2.0, 3.0, "1", disk=True),)
    net = VirtualNetwork(learner, features, network, X, y, faults=crash, seed=1, checkpoint_every=1)
    net.run(80)
    assert net.hosts["1"].agent.counters["requests"] > 0
    np.testing.assert_allclose(net.predictions(), trace.predictions, rtol=0, atol=1e-12)


def test_a_checkpoint_holds_every_part(features, tmp_path):
    agents = make_team(MomentumDiffusion(), features, ["ann-ben"])
    random = np.random.default_rng(0)
    for _ in range(10):
        for agent in agents.values():
            agent.learn(random.uniform(size=3), random.normal())
        carry(agents)
    ann = agents["ann"]
    ann.save(tmp_path / "ann")
    twin = lc.Agent("ann", ["ben"], features, ann.learner, n_agents=2, clock="slotted")
    assert twin.load(tmp_path / "ann")
    kept = AgentState.from_bytes(ann.state().to_bytes())
    assert kept.arrays["state.velocity"].any()
    for name, values in twin.state().arrays.items():
        np.testing.assert_array_equal(values, kept.arrays[name], err_msg=name)
    agents["ann"] = twin
    twin.rejoin()
    carry(agents)
    x, label = random.uniform(size=3), random.normal()
    assert twin.learn(x, label) == ann.learn(x, label)
    for name, values in twin.state().arrays.items():
        np.testing.assert_array_equal(values, ann.state().arrays[name], err_msg=name)
    with pytest.raises(AttributeError, match="no duals"):
        _ = twin.duals


def test_edges_come_and_go_without_duals(features):
    """Nothing is settled for a learner without duals; what it keeps beside its model is left alone."""
    agents = make_team(MomentumDiffusion(), features, ["ann-ben", "ben-cid"])
    random = np.random.default_rng(0)
    for t in range(12):
        for agent in agents.values():
            agent.learn(random.uniform(size=3), random.normal())
        carry(agents)
        if t == 4:
            velocity = agents["ben"].state().arrays["state.velocity"]
            agents["ben"].disconnected("cid")
            agents["cid"].disconnected("ben")
            np.testing.assert_array_equal(agents["ben"].state().arrays["state.velocity"], velocity)
        if t == 8:
            agents["ben"].connected("cid")
            agents["cid"].connected("ben")
            carry(agents)
    assert agents["ben"].edges == {"ann": "live", "cid": "live"}
    for name, agent in agents.items():
        for other in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(other), agents[other].broadcast, err_msg=name)


@pytest.mark.parametrize("kind", LEARNERS)
def test_laconics_own_learners_without_kernels(kind, features):
    """By the NumPy path an agent computes what the reference engine does."""
    network = lc.Network.random(5, p=0.5, seed=2)
    X, y = make_stream(60, 5)
    learner = make_learner(kind, channel=CHANNELS["both"])
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    edges = [f"{i}-{j}" for i, j in network.edges]
    agents = make_team(learner, features, edges, clock="lockstep", engine="reference")
    predictions = drive(agents, X, y)
    np.testing.assert_allclose(predictions, trace.predictions, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("channel", "dtype"), each(CHANNELS, ["float64", "float32"]))
def test_compiled_and_plain_neighbours_hold_the_same_bits(channel, dtype, features):
    network = lc.Network.ring(5)
    X, y = make_stream(80, 5)
    learner = make_learner("odkla", channel=CHANNELS[channel])
    edges = [f"{i}-{j}" for i, j in network.edges]
    compiled, plain = (
        make_team(learner, features, edges, meet=False, clock="lockstep", dtype=dtype, engine=engine)
        for engine in ("compiled", "reference")
    )
    agents = {name: (plain if name in "14" else compiled)[name] for name in compiled}
    carry(agents)
    predictions = drive(agents, X, y)
    for agent in agents.values():
        assert agent.counters["refusals"] == {}
        for name in agent.neighbours:
            assert agent.replica(name).tobytes() == agents[name].broadcast.tobytes()
    if dtype == "float64":
        trace = lc.simulate(learner, features, network, X, y)
        np.testing.assert_allclose(predictions, trace.predictions, rtol=0, atol=1e-9)


def drive(agents, X, y):
    predictions = np.empty(y.shape)
    for t in range(len(y)):
        for i, agent in enumerate(agents.values()):
            predictions[t, i] = agent.learn(X[t, i], y[t, i]).prediction
        carry(agents)
    return predictions


def test_divergence_is_noticed(features):
    agents = make_team(MomentumDiffusion(rate=50.0), features, ["ann-ben"])
    X, y = make_stream(100, 2)
    with pytest.raises(lc.Diverged, match="left all bounds"):
        drive(agents, X, y)


def test_samples_that_are_no_good(features):
    agent = lc.Agent("ann", [], features, MomentumDiffusion(), n_agents=1)
    for x in (np.full(3, np.inf), np.full(3, 1e308)):
        with pytest.raises(ValueError, match="x must be finite"):
            agent.learn(x, 1.0)
        with pytest.raises(ValueError, match="x must be finite"):
            agent.predict(x)
    assert agent.round == 0
