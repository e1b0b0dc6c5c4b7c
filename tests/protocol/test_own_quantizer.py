"""A quantizer of one's own on the wire: messages of varying length, and whatever strangers make of them."""

import struct

import numpy as np
import pytest
from agent_kit import carry, make_team, post, puppet, seal, speak
from coders import Largest, Sign
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.channel import longest_message


def lockstep(learner, features, network, X, y, **options):
    """Agents that were driven through the stream, and their predictions and bits."""
    edges = [f"{network.names[i]}-{network.names[j]}" for i, j in network.edges]
    agents = make_team(learner, features, edges, clock="lockstep", **options)
    predictions, bits = np.empty(y.shape), np.empty(y.shape)
    for t in range(len(y)):
        for i, agent in enumerate(agents.values()):
            info = agent.learn(X[t, i], y[t, i])
            predictions[t, i], bits[t, i] = info.prediction, info.bits
        carry(agents)
    return agents, predictions, bits


@pytest.mark.parametrize("make", [lambda n: Largest(0.02, n), Sign], ids=["varying", "known"])
def test_agents_say_what_the_simulator_counts(make, features):
    network = NETWORKS["random"]
    X, y = make_stream(60, network.n_agents)
    learner = lc.RFFDOKL(step=0.4, channel=lc.Channel(lc.Censor(0.3, 0.95), make(features.n_features)))
    trace = lc.simulate(learner, features, network, X, y)
    agents, predictions, bits = lockstep(learner, features, network, X, y)
    np.testing.assert_allclose(predictions, trace.predictions, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(bits, trace.bits)
    assert len(np.unique(bits)) > 1
    for i, agent in enumerate(agents.values()):
        np.testing.assert_allclose(agent.broadcast, trace.state.broadcast[i], rtol=0, atol=1e-12)
        for name in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(name), agents[name].broadcast)
        assert agent.counters["refusals"] == {} and agent.counters["bits"] == trace.bits[:, i].sum()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_message_is_a_zero_and_the_quantizers_bytes(dtype, features):
    n = features.n_features
    agents = make_team(puppet(lc.Channel(quantizer=Largest(0.5, n))), features, ["ann-ben"], dtype=dtype)
    model = np.zeros(n)
    model[[3, 7]] = -1.25, 2.5
    info = speak(agents["ann"], model)
    assert info.bits == 96
    [(_, _, data)] = post(agents)
    assert data[2] == 0x21  # version 2, a difference
    assert data[18:-4] == b"\0" + struct.pack("<2H2f", 3, 7, -1.25, 2.5)
    agents["ben"].receive(data, "ann")
    assert agents["ben"].replica("ann").tolist() == agents["ann"].broadcast.tolist() == model.tolist()
    assert agents["ben"].replica("ann").dtype == dtype


def test_nothing_to_say_is_a_message_without_bytes(features):
    agents = make_team(puppet(lc.Channel(quantizer=Largest(0.5, features.n_features))), features, ["ann-ben"])
    info = speak(agents["ann"], np.full(features.n_features, 0.1))
    assert info.sent and info.bits == 0
    carry(agents)
    assert not agents["ben"].replica("ann").any() and agents["ben"].counters["refusals"] == {}


class Naive(Largest):
    """Says everything, and believes whatever it reads."""

    def encode(self, h):
        return h.tobytes()

    def decode(self, data):
        if data == b"loop":
            return self.decode(data)
        return np.frombuffer(data, dtype="<f8")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\0" + bytes(8 * 21), "undecodable"),  # one entry too few
        (b"\0" + bytes(8 * 22 + 1), "undecodable"),
        (b"\0" + b"loop", "undecodable"),  # a RecursionError
        (b"\0" + struct.pack("<22d", *[np.nan] * 22), "undecodable"),
        (b"\0" + struct.pack("<22d", *[1e200] * 22), "not finite"),  # its norm is not
        (b"\0" + bytes(longest_message(22) + 1), "oversized"),
        (b"\x03" + bytes(9), "dimension"),  # three bits of laconic's own
        (b"", "dimension"),
    ],
)
def test_what_cannot_be_decoded_is_refused_and_changes_nothing(body, reason, features):
    learner = puppet(lc.Channel(quantizer=Naive(0.5, features.n_features)))
    agents = make_team(learner, features, ["ann-ben"])
    speak(agents["ann"], np.zeros(features.n_features))
    [(_, _, data)] = post(agents)
    ben = agents["ben"]
    before = ben.state()
    ben.receive(seal(data[:18] + body), "ann")
    assert ben.counters["refusals"] == {reason: 1}
    assert ben.state() == before and ben.outgoing() == []


def test_a_model_as_it_is_and_a_difference_exclude_each_other(features):
    own = make_team(puppet(lc.Channel(quantizer=Largest(0.5, features.n_features))), features, ["ann-ben"])
    dense = make_team(puppet(), features, ["ann-ben"])
    model = np.ones(features.n_features)
    for speaker, hearer in ((own, dense), (dense, own)):
        speak(speaker["ann"], model)
        [(_, _, data)] = post(speaker)
        mark = hearer["ben"].state().about["fingerprint"].to_bytes(4, "little")
        forged = seal(data[:3] + mark + data[7:-4])
        hearer["ben"].receive(forged, "ann")
        assert hearer["ben"].counters["refusals"] == {"dimension": 1}


def test_lost_messages_of_varying_length_are_repaired(features):
    agents = make_team(
        lc.ODKLA(rho=0.3, eta=2.0, channel=lc.Channel(quantizer=Largest(0.02, features.n_features))),
        features,
        ["ann-ben", "ben-cid"],
    )
    random = np.random.default_rng(0)
    for share in [0.3] * 35 + [0.0] * 5:
        for agent in agents.values():
            agent.learn(random.uniform(size=3), random.normal())
        carry(agents, lost=lambda letter, share=share: random.uniform() < share)
    for agent in agents.values():
        for name in agent.neighbours:
            np.testing.assert_array_equal(agent.replica(name), agents[name].broadcast)


def test_a_quantizer_for_the_simulator_only_is_refused(features):
    class OnRows:
        def __call__(self, innovation):
            return innovation

        def message_bits(self, n_features):
            return 64 * n_features

    with pytest.raises(ValueError, match=r"must have a quantizer with encode\(h\) and decode\(data\)"):
        lc.Agent("ann", [], features, lc.ODKLA(channel=lc.Channel(quantizer=OnRows())), n_agents=2)
