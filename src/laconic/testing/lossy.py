"""Waves over a network that loses messages: each with a probability, acknowledgements too.

A round later what was said has arrived, or is lost. A message up is tried three times in its round. Messages down are
repeated each round until they are acknowledged, those of several waves together where several are missing.
"""

from __future__ import annotations

from typing import final

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.network import Network
from laconic.waves import Rule, make_node, places
from laconic.waves.node import Message

_ACKNOWLEDGEMENT = 16  # bits
_TRIES = 3


@final
class LossyWaves:
    """Nodes by NumPy, the messages on their way, and what was predicted.

    Attributes
    ----------
    nodes : list of Node
    t : int
        Rounds that are over.
    predictions : list of list of float
        What each agent predicted in each round.
    bits : float
        All that was sent, 16 an acknowledgement; what goes to several children is sent once.
    """

    def __init__(self, rule: Rule, network: Network, features: RandomFeatures, lost: float, seed: int = 0) -> None:
        self.features = features
        self.nodes = [make_node(rule, place, features.n_features) for place in places(network)]
        self.t, self.bits = 0, 0.0
        self.predictions: list[list[float]] = []
        self._lost, self._random = lost, np.random.default_rng(seed)
        self._mail: list[tuple[int, Message]] = []
        self._owing: list[tuple[int, int, list[bytes]]] = []

    def round(self, x: Array, label: Array) -> None:
        """One round, of a sample of each agent: (N, d) and (N,)."""
        pairs = zip(self.nodes, self.features(x), label, strict=True)
        self.predictions.append([float(node.learn(phi, float(y))) for node, phi, y in pairs])
        self.t += 1
        for sender, message in self._mail:
            if message.to == (self.nodes[sender].place.parent,):
                self._send_up(sender, message)
        for sender, child, entries in self._owing:
            self._send_down(sender, child, entries)
        self._mail = [(i, message) for i, node in enumerate(self.nodes) for message in node.tick(self.t)]
        self._owing = [
            (i, child, owed)
            for i, node in enumerate(self.nodes)
            for child in node.place.children
            if (owed := node.owed(child))
        ]

    def _arrives(self) -> bool:
        return bool(self._random.uniform() >= self._lost)

    def _send_up(self, sender: int, message: Message) -> None:
        for _ in range(_TRIES):
            self.bits += message.bits
            if self._arrives() and self.nodes[message.to[0]].receive(sender, message.data):
                self.bits += _ACKNOWLEDGEMENT
                if self._arrives():
                    self.nodes[sender].acknowledged()
                    return

    def _send_down(self, sender: int, child: int, entries: list[bytes]) -> None:
        self.bits += sum(8 * len(data) for data in entries) / len(self.nodes[sender].place.children)
        if self._arrives() and self.nodes[child].catch_up(entries):
            self.bits += _ACKNOWLEDGEMENT
            if self._arrives():
                self.nodes[sender].confirmed[child] = self.nodes[child].adopted
