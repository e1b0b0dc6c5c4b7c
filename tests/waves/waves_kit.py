"""Nodes in a loop that hands every message on a round later, written apart from the engine's."""

import numpy as np

from laconic.waves import make_node, places


def make_stream(n_rounds, n_agents, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rounds, n_agents, 3))
    return X, np.sin(4 * X[..., 0]) + X[..., -1] - 0.7 + 0.1 * rng.standard_normal((n_rounds, n_agents))


class Run:
    """A tree of nodes, the messages on their way, and what was predicted."""

    def __init__(self, rule, network, features):
        self.features = features
        self.nodes = [make_node(rule, place, features.n_features) for place in places(network)]
        self.t, self.mail, self.predictions = 0, [], []

    def round(self, x, label):
        """One round; returns what was said when it was over."""
        pairs = zip(self.nodes, self.features(x), label, strict=True)
        self.predictions.append([node.learn(phi, float(y)) for node, phi, y in pairs])
        self.t += 1
        for sender, message in self.mail:
            assert all(self.nodes[i].receive(sender, message.data) for i in message.to)
            if message.to == (self.nodes[sender].place.parent,):
                self.nodes[sender].acknowledged()
        self.mail = [(i, message) for i, node in enumerate(self.nodes) for message in node.tick(self.t)]
        return self.mail
