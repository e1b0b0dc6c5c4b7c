"""Agents, and ways to carry, lose, and forge what they say, that several tests share."""

import struct
import zlib

import numpy as np

import laconic as lc
from laconic.protocol.messages import Kind


def make_team(learner, features, edges, meet=True, **options):
    """Agents by name from edges between names, e.g. ["ann-ben", "ben-cid"]."""
    pairs = [edge.split("-") for edge in edges]
    names = sorted({name for pair in pairs for name in pair})
    around = {name: [other for pair in pairs if name in pair for other in pair if other != name] for name in names}
    options = {"clock": "slotted", "n_agents": len(names), **options}
    agents = {name: lc.Agent(name, around[name], features, learner, **options) for name in names}
    if meet:  # they get to know each other
        carry(agents)
    return agents


def puppet(channel=None):
    """A learner whose steps are too small to change a model, so that a test decides what is said: see ``speak``."""
    return lc.ODKLA(rho=0.3, eta=1e300, regularization=0.0, channel=channel or lc.Channel())


def speak(agent, model):
    """A round of a puppet whose model is now ``model``."""
    agent._ledger.weights = model
    agent._ledger.row.largest = 1e6  # nothing it says counts as divergence
    return agent.idle()


def post(agents):
    """All letters that are ready: (sender, receiver, data), one for each receiver."""
    letters = []
    for sender, agent in agents.items():
        for message in agent.outgoing():
            letters.append((sender, message.to, message.data))
    return letters


def deliver(agents, letters):
    for sender, receiver, data in letters:
        if receiver in agents:
            agents[receiver].receive(data, sender)


def carry(agents, lost=lambda letter: False):
    """Carry letters until nobody has any left, except those that are lost."""
    for _ in range(100):
        letters = post(agents)
        if not letters:
            return
        deliver(agents, [letter for letter in letters if not lost(letter)])
    raise AssertionError("the agents talk for ever")


def end_round(agents):
    """Let all take in what they have heard; on slots their edges may still be a round apart: see ``due``."""
    for agent in agents.values():
        agent.end_round()


def kind_of(data):
    return Kind(data[2] & 15).name.lower()


def seal(body):
    """Bytes with the checksum that belongs to them."""
    return bytes(body) + struct.pack("<I", zlib.crc32(bytes(body)))


def close(a, b, tolerance=1e-10):
    """Whether two vectors agree, relative to the larger one's largest entry."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), np.abs(b).max(), 1e-300)


def due(agents, name, other):
    """An edge's share when both ends have come to the same edge round: on slots one may be behind."""
    agent = agents[name]
    behind = max(agents[other].edge_round(name) - agent.edge_round(other), 0)
    return agent.share(other) + behind * (agent.broadcast - agent.replica(other))


def check_invariants(agents):
    """What must hold at the end of a round in which everybody was heard."""
    total = 0.0
    for name, agent in agents.items():
        for values in agent.state().arrays.values():
            assert np.isfinite(values).all()
        shares, missing = np.zeros(agent.features.n_features), np.zeros(agent.features.n_features)
        for other, stage in agent.edges.items():
            if stage != "live":
                assert not agent.share(other).any()
                continue
            assert agents[other].edges[name] == "live"
            np.testing.assert_array_equal(agent.replica(other), agents[other].broadcast, err_msg=f"{name} of {other}")
            size = 1 + np.abs(agent.share(other)).max()
            assert np.abs(due(agents, name, other) + due(agents, other, name)).max() <= 1e-10 * size, (name, other)
            shares += agent.share(other)
            missing += due(agents, name, other) - agent.share(other)
        rho, size = agent.learner.rho, 1 + np.abs(agent.duals).max()
        assert np.abs(agent.duals - rho * shares).max() <= 1e-10 * size, name
        total = total + agent.duals + rho * missing
    assert np.abs(total).max() <= 1e-10 * (1 + max(np.abs(agent.duals).max() for agent in agents.values()))
