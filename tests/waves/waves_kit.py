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


class Lossy(Run):
    """The same, and every message is lost with a probability, acknowledgements too; what is due is said again.

    An up message is tried three times in its round. Messages down are repeated each round until they are acknowledged,
    those of several waves together where several are missing. ``bits`` counts all that is sent, 16 an acknowledgement.
    """

    def __init__(self, rule, network, features, lost, seed=0):
        super().__init__(rule, network, features)
        self.lost, self.random, self.bits = lost, np.random.default_rng(seed), 0

    def arrives(self):
        return self.random.uniform() >= self.lost

    def round(self, x, label):
        pairs = zip(self.nodes, self.features(x), label, strict=True)
        self.predictions.append([node.learn(phi, float(y)) for node, phi, y in pairs])
        self.t += 1
        for sender, message in self.mail:
            if message.to == (self.nodes[sender].place.parent,):
                self.send_up(sender, message)
        for sender, child, entries in self.owing:
            self.bits += sum(8 * len(data) for data in entries) / len(self.nodes[sender].place.children)
            done = self.arrives() and self.nodes[child].catch_up(entries)
            if done:
                self.bits += 16
                if self.arrives():
                    self.nodes[sender].confirmed[child] = self.nodes[child].adopted
        self.mail = [(i, message) for i, node in enumerate(self.nodes) for message in node.tick(self.t)]
        self.owing = [
            (i, c, e) for i, node in enumerate(self.nodes) for c in node.place.children if (e := node.owed(c))
        ]
        return self.mail

    owing = ()

    def send_up(self, sender, message):
        for _ in range(3):
            self.bits += message.bits
            if self.arrives() and self.nodes[message.to[0]].receive(sender, message.data):
                self.bits += 16
                if self.arrives():
                    self.nodes[sender].acknowledged()
                    return
