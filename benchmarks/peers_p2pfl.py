"""A least squares model for p2pfl, in NumPy: ten nodes in memory that average their models by gossip."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from p2pfl.settings import Settings

Settings.general.LOG_DIR = tempfile.mkdtemp()
Settings.general.DISABLE_RAY = True  # which is looked at when the rest is imported: ten agents in one process

from p2pfl.communication.protocols.protobuff.memory import MemoryCommunicationProtocol
from p2pfl.learning.frameworks.learner import Learner
from p2pfl.learning.frameworks.p2pfl_model import P2PFLModel
from p2pfl.node import Node
from p2pfl.utils.topologies import TopologyFactory
from p2pfl.utils.utils import set_standalone_settings, wait_convergence, wait_to_finish
from peers_methods import descend

COUNTED: Counter[str] = Counter()


class Weights(P2PFLModel):
    """One array; counts how often it is wrapped up to be sent."""

    def get_parameters(self) -> list[Any]:
        """The weights."""
        return [self.model["weights"]]

    def set_parameters(self, params: Any) -> None:
        """Take over weights, from here or from a message."""
        if isinstance(params, bytes):
            params, self.additional_info = self.decode_parameters(params)
        self.model["weights"] = params[0]

    def encode_parameters(self, params: Any = None) -> bytes:
        """What is sent."""
        COUNTED["messages"] += 1
        return super().encode_parameters(params)

    def get_framework(self) -> str:
        """Nothing but NumPy."""
        return "numpy"


class Descent(Learner):
    """Some steps down an agent's parabola."""

    def __init__(self, curved: Any, towards: Any, step: float, n_rows: int) -> None:
        super().__init__()
        self.parabola, self.step, self.n_rows = (curved, towards), step, n_rows

    def fit(self) -> P2PFLModel:
        """One round's share of learning."""
        model = self.get_model()
        model.set_parameters([descend(*self.parabola, model.get_parameters()[0], self.step)])
        model.set_contribution([self.addr], self.n_rows)
        return model

    def interrupt_fit(self) -> None:
        """A round's share is soon over."""

    def evaluate(self) -> dict[str, float]:
        """Scored is afterwards."""
        return {}

    def get_framework(self) -> str:
        """Nothing but NumPy."""
        return "numpy"


def learn(curved: Any, towards: Any, joined: Any, rounds: int, step: float, n_rows: int) -> tuple[Any, int, float]:
    """Weights of each node, models sent by all of them, seconds."""
    set_standalone_settings()
    n = len(curved)
    COUNTED.clear()
    nothing = SimpleNamespace(dataset_name="parabolas", batch_size=n_rows)
    nodes = [
        Node(
            Weights({"weights": np.zeros_like(towards[agent])}),
            nothing,
            addr=f"node-{agent}-{time.time_ns()}",
            learner=Descent(curved[agent], towards[agent], step, n_rows),
            protocol=MemoryCommunicationProtocol(),
        )
        for agent in range(n)
    ]
    try:
        for node in nodes:
            node.start()
        TopologyFactory.connect_nodes(joined, nodes)
        wait_convergence(nodes, n - 1, wait=60)
        begin = time.perf_counter()
        nodes[0].set_start_learning(rounds=rounds, epochs=1, trainset_size=n)
        wait_to_finish(nodes, timeout=600)
        seconds = time.perf_counter() - begin
        said = np.stack([node.get_model().get_parameters()[0][:, 0] for node in nodes])
    finally:
        for node in nodes:
            node.stop()
    return said, COUNTED["messages"], seconds
