"""A learner of one's own as agents on real links, and waves: what the engines compute."""

import queue
import threading

import numpy as np
import pytest
from coders import Largest
from conftest import make_stream
from own_learner import Huber, MomentumDiffusion
from zenoh_places import WAIT, Places

import laconic as lc
from laconic.transport import Connected, Disconnected, Received

pytestmark = pytest.mark.sockets


def run_agent(agent, place, X, y, predictions, done, finished):
    """Rounds of lockstep over a link, until everybody has heard everything."""
    while not (agent.round == len(y) and agent.ready and done.is_set()):
        if agent.ready and agent.round < len(y):
            t = agent.round
            predictions[t] = agent.learn(X[t], y[t]).prediction
        if agent.round == len(y) and agent.ready:
            finished(agent.name)
        for message in agent.outgoing():
            place.send(message.data, message.to)
        try:
            event = place.news.get(timeout=0.5 if not agent.ready or agent.round == len(y) else 0)
        except queue.Empty:
            if not agent.ready:
                agent.remind()
            continue
        if isinstance(event, Received):
            agent.receive(event.data, event.sender)
        elif isinstance(event, Connected):
            agent.connected(event.name)
        else:
            assert isinstance(event, Disconnected)


def run_on_links(learner, features, network, X, y):
    """The agents of a network after so many rounds over zenoh, and their predictions."""
    predictions, finished, done = np.full(y.shape, np.nan), set(), threading.Event()
    lock = threading.Lock()

    def finish(name):
        with lock:
            finished.add(name)
            if len(finished) == network.n_agents:
                done.set()

    names = network.names
    edges = [(names[i], names[j]) for i, j in network.edges]
    agents, threads = {}, []
    with Places() as places:
        for i, name in enumerate(names):
            others = [other for edge in edges if name in edge for other in edge if other != name]
            agents[name] = lc.Agent(name, others, features, learner, n_agents=network.n_agents)
            words = (agents[name], places(name, edges), X[:, i], y[:, i], predictions[:, i], done, finish)
            threads.append(threading.Thread(target=run_agent, args=words, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        assert done.is_set() and not any(thread.is_alive() for thread in threads)
    return agents, predictions


@pytest.mark.parametrize("learner", [lc.WaveRLS(), lc.WaveRLS(outputs=2), lc.Personal()], ids=["one", "two", "own"])
def test_waves_over_zenoh_equal_the_simulator(learner, features):
    network = lc.Network.path(4)
    X, y = make_stream(40, 4)
    y = y if learner.outputs == 1 else np.stack([y, -y], axis=-1)
    trace = lc.simulate(learner, features, network, X, y)
    agents, predictions = run_on_links(learner, features, network, X, y)
    assert np.array_equal(predictions, trace.predictions)
    for i, agent in enumerate(agents.values()):
        assert np.array_equal(agent.weights, trace.weights[i])
        assert np.array_equal(agent.broadcast, trace.state.learner["theta"][i])
        assert agent.counters["bits"] == trace.bits[:, i].sum()


@pytest.mark.parametrize("budget", [lc.Budget(0.4, burst=2), lc.Budget(bits_per_round=25.0, burst=150)], ids=repr)
def test_budgets_and_the_entropy_code_over_zenoh_equal_the_simulator(budget, features):
    network = lc.Network.path(3)
    X, y = make_stream(40, 3)
    channel = lc.Channel(budget, lc.EntropyQuantizer())
    learner = lc.RFFDOKL(0.4, "adapt-then-combine", listen="spoken", channel=channel)
    trace = lc.simulate(learner, features, network, X, y)
    agents, predictions = run_on_links(learner, features, network, X, y)
    assert np.array_equal(predictions, trace.predictions) and 0 < trace.sent.mean() < 0.7
    for i, agent in enumerate(agents.values()):
        agent.end_round()
        assert np.array_equal(agent.weights, trace.weights[i])
        assert np.array_equal(agent.broadcast, trace.state.broadcast[i])
        assert np.array_equal(agent.state().arrays["memory"], [trace.state.channel[n][i] for n in budget.memory])
        assert agent.counters["bits"] == trace.bits[:, i].sum()


def test_experts_of_raw_inputs_over_zenoh_equal_the_simulator():
    network = lc.Network.path(3)
    X, y = make_stream(30, 3)
    X = 1000.0 * X - 200.0
    features = lc.RandomFeatures.automatic(X[:5], 8)
    learner = lc.Experts(channel=lc.Channel(lc.Budget(0.5), lc.EntropyQuantizer()))
    trace = lc.simulate(learner, features, network, X, y)
    agents, predictions = run_on_links(learner, features, network, X, y)
    assert np.array_equal(predictions, trace.predictions)
    for i, agent in enumerate(agents.values()):
        agent.end_round()
        assert np.array_equal(agent.weights, trace.weights[i])
        assert agent.counters["bits"] == trace.bits[:, i].sum()


def test_the_example_over_zenoh_equals_the_reference(features):
    network = lc.Network.ring(4)
    X, y = make_stream(60, 4)
    quantizer = Largest(0.02, features.n_features)
    learner = MomentumDiffusion(channel=lc.Channel(lc.Censor(0.3, 0.95), quantizer), loss=Huber())
    trace = lc.simulate(learner, features, network, X, y, engine="reference")
    agents, predictions = run_on_links(learner, features, network, X, y)
    np.testing.assert_allclose(predictions, trace.predictions, rtol=0, atol=1e-12)
    for i, (name, agent) in enumerate(agents.items()):
        agent.end_round()
        np.testing.assert_allclose(agent.weights, trace.weights[i], rtol=0, atol=1e-12)
        assert agent.counters["bits"] == trace.bits[:, i].sum()
        for other in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(other), agents[other].broadcast, err_msg=name)
    assert len(np.unique(trace.bits)) > 3
