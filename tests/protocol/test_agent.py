"""Agents that exchange bytes compute what the simulator computes, to the bit."""

import numpy as np
import pytest
from breadth import crossed, each
from conftest import CHANNELS, LEARNERS, NETWORKS, make_learner, make_stream

import laconic as lc


def make_agents(learner, features, network, **options):
    names = network.names
    return {
        names[i]: lc.Agent(
            names[i],
            [names[j] for j in network.neighbours[network.starts[i] : network.starts[i + 1]]],
            features,
            learner,
            n_agents=network.n_agents,
            **options,
        )
        for i in range(network.n_agents)
    }


def carry(agents, order=None):
    """Carry every message to where it belongs, until nobody has anything left to send."""
    while True:
        letters = [(sender, message) for sender in agents for message in agents[sender].outgoing()]
        if not letters:
            return
        if order is not None:
            order.shuffle(letters)
        for sender, message in letters:
            for name in [message.to] if message.to else agents[sender].neighbours:
                agents[name].receive(message.data, sender)


def run(agents, X, y, order=None):
    """Rounds of lockstep: predictions and sends, (T, N)."""
    predictions, sent = np.empty(y.shape), np.empty(y.shape, dtype=bool)
    carry(agents, order)
    for t in range(len(y)):
        for i, agent in enumerate(agents.values()):
            info = agent.learn(X[t, i], y[t, i])
            predictions[t, i], sent[t, i] = info.prediction, info.sent
        carry(agents, order)
    return predictions, sent


@pytest.mark.parametrize(
    ("kind", "channel", "dtype"),
    [
        *crossed(LEARNERS[:-1], CHANNELS, ["float64", "float32"]),
        ("local", "dense", "float64"),
        ("local", "dense", "float32"),
    ],
)
def test_lockstep_gives_the_simulators_bits(kind, channel, dtype, features):
    network = NETWORKS["random"]
    learner = make_learner(kind, channel=CHANNELS[channel])
    X, y = make_stream(150, network.n_agents)
    y[20, 2] = y[33, :] = np.nan
    trace = lc.simulate(learner, features, network, X, y, dtype=dtype)
    agents = make_agents(learner, features, network, dtype=dtype)
    predictions, sent = run(agents, X, y, order=np.random.default_rng(0))
    np.testing.assert_array_equal(predictions, trace.predictions)
    np.testing.assert_array_equal(sent, trace.sent)
    for i, agent in enumerate(agents.values()):
        agent.end_round()
        if kind in ("odkla", "dokl"):
            np.testing.assert_array_equal(agent.duals, trace.state.duals[i])
        np.testing.assert_array_equal(agent.weights, trace.state.weights[i])
        if kind != "local":
            np.testing.assert_array_equal(agent.broadcast, trace.state.broadcast[i])
        for name in agent.neighbours if kind != "local" else ():
            np.testing.assert_array_equal(agent.replica(name), agents[name].broadcast)
        assert agent.counters["refusals"] == {}
        assert agent.counters["bits"] == trace.bits[:, i].sum()


@pytest.mark.parametrize(
    ("network", "loss"), each([n for n in NETWORKS if n != "random"], ["squared", "logistic", "hinge"])
)
def test_every_network_and_loss(network, loss, features):
    network = NETWORKS[network]
    learner = lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.95, loss=loss)
    X, y = make_stream(80, network.n_agents, binary=loss != "squared")
    trace = lc.simulate(learner, features, network, X, y)
    agents = make_agents(learner, features, network)
    predictions, sent = run(agents, X, y)
    np.testing.assert_array_equal(predictions, trace.predictions)
    np.testing.assert_array_equal(sent, trace.sent)


@pytest.mark.parametrize("label", [1.1e12, -1e17, 1e300])
def test_a_label_of_which_no_model_could_be_said_begins_no_round(label, features):
    agent = lc.Agent("ann", [], features, lc.QCODKLA(rho=0.3, eta=1.0), n_agents=1)
    agent.learn(np.zeros(features.n_inputs), 1.0)
    before = agent.weights.copy()
    with pytest.raises(ValueError, match="y must be at most 1e\\+12 in size"):
        agent.learn(np.zeros(features.n_inputs), label)
    assert agent.round == 1
    np.testing.assert_array_equal(agent.weights, before)
    assert agent.learn(np.zeros(features.n_inputs), 1.0).round == 2


def test_numbers_beyond_any_float_get_one_sentence(features):
    ann = lc.Agent("ann", ["ben"], features, lc.ODKLA(), n_agents=2, clock="slotted")
    with pytest.raises(ValueError, match="y must be finite"):
        ann.learn(np.zeros(features.n_inputs), 10**400)
    assert ann.round == 0 and np.isnan(ann.learn(np.zeros(features.n_inputs), np.ma.masked).label)
    with pytest.raises(ValueError, match="n_agents must be from 2 to"):
        lc.Agent("ann", ["ben"], features, lc.ODKLA(), n_agents=10**400)
    with pytest.raises(ValueError, match="neighbours must be a list of names"):
        lc.Agent("ann", np.ma.masked, features, lc.ODKLA(), n_agents=2)
