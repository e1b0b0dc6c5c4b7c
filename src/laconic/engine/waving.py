"""The reference engine of learners that run waves: a node of ``laconic.waves`` for each agent, one hop a round.

In round t every node predicts and learns its sample. When t rounds are over, what was sent when t-1 were arrives, and
every node is asked what it has to say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.engine import room
from laconic.engine.blas import one_thread
from laconic.engine.chunk import Chunk
from laconic.engine.endings import DIVERGENCE
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network
from laconic.trace import State
from laconic.waves import Message, Node, make_node, places, records, saving
from laconic.waves.checking import check_rows
from laconic.waves.rule import DEEP

_log = logging.getLogger("laconic.engine")


class Waving:
    """Runs chunks of rounds, one after the other, from a first or a given state."""

    name = "reference"

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        dtype: str = "float64",
        state: State | None = None,
        collective: bool = False,
    ) -> None:
        self.learner, self.features, self.network = learner, features, network
        self.dtype, self._collective = np.dtype(dtype), collective
        self.places = places(network)
        room.check(learner.name, network.n_agents, features.n_features, self._matrices())
        self.nodes = self.make_nodes()
        self._mail: list[tuple[int, Message]] = []
        self.round = 0
        if state is not None:
            self.round, self._mail = state.round, saving.restore_tree(self.nodes, self._checked(state))
        self.energy_before = float((self._weights() ** 2).sum())
        self._largest = float(np.sqrt(max(self.energy_before, self._squares())))

    def _matrices(self) -> int:
        """How many an agent takes at most, as was measured: in a run, and in the state that it leaves.

        P, A, those of links, and packed copies; in a deep tree four fronts an edge; and those of arms.
        """
        rule = self.learner.rule()
        return 7 + 7 * (self.places[0].height >= DEEP) + 5 * (rule.arms is not None)

    def make_nodes(self) -> list[Node]:
        """A node for each place; each of them knows only what it has heard."""
        rule = self.learner.rule()
        return [make_node(rule, place, self.features.n_features) for place in self.places]

    def _checked(self, state: State) -> Mapping[str, Array]:
        """The arrays of a state, if they can be those of this learner, network and feature map."""
        if not isinstance(state, State):
            raise ArgumentError("state", f"must be the state of a trace, got {type(state).__name__}.")
        if not isinstance(state.round, (int, np.integer)) or state.round < 0:
            raise ArgumentError("state", f"must have a whole number of rounds, got {state.round!r:.60}.")
        return check_rows(self.nodes, state.learner, saving.tree_rows(self.nodes, []))

    def __reduce__(self) -> Any:
        parts = (self.learner, self.features, self.network, self.dtype.name, self.state(), self._collective)
        return type(self), parts, (self.energy_before, self._largest)

    def __setstate__(self, kept: tuple[float, float]) -> None:
        self.energy_before, self._largest = kept

    def state(self) -> State:
        """Copies of all that the next round needs; what everybody is told is the model theta that all share."""
        rows = saving.tree_rows(self.nodes, self._mail)
        return State(self.round, rows, rows["theta"].copy())

    def _squares(self) -> float:
        """The largest sum of squared labels that an agent has seen: a model may be short where features are long."""
        return max(float(np.max(node.own.square)) for node in self.nodes)

    def _weights(self) -> Array:
        return np.array([node.weights for node in self.nodes])

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of ``X`` (T, N, d), or of features (T, N, 2L) if ``mapped``, with labels ``y`` (T, N[, K])."""
        with one_thread():
            return self._advance(X, y, mapped)

    def _advance(self, X: Array, y: Array, mapped: bool) -> Chunk:
        columns: dict[str, list[Any]] = {}
        ending, agent, finished = None, 0, 0
        samples, labels = (array.astype(self.dtype, copy=False).astype(np.float64) for array in (X, y))
        # A diverging run may overflow on its last round; that is told by its ending, not by a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            for x, label in zip(samples, labels, strict=True):
                if not np.isfinite(x).all():
                    ending, agent = "bad input", int(np.argmax(~np.isfinite(x).all(axis=1)))
                    break
                phi = x[:, : self.features.n_features] if mapped else self.features(x)
                row, agent = self._round(phi, label)
                if row is None:
                    ending = "diverged"
                    break
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
                finished += 1
        stacked = {name: np.array(values) for name, values in columns.items()}
        if finished:
            stacked["predictions"] = stacked["predictions"].astype(self.dtype)
        return Chunk(stacked, finished, ending, agent)

    def _round(self, phi: Array, label: Array) -> tuple[dict[str, Any] | None, int]:
        """One round: what there is to record, or None and the agent whose prediction left all bounds."""
        predictions, beyond = self._predict(phi)
        rebuilt = self._rebuild(beyond)
        if rebuilt.any():
            predictions, beyond = self._predict(phi)
        if beyond.any():
            return None, int(np.argmax(beyond))
        row: dict[str, Any] = {}
        if self.nodes[0].rule.arms is not None:
            row["info.stack"] = np.array([node.own.trust for node in self.nodes])
        self._largest = float(np.nanmax([self._largest, *np.abs(label).ravel()]))
        if self._collective:
            shared = np.array([node.own.shared for node in self.nodes])
            row |= score_collectively(self.learner, shared, phi, label)
        for node, features, y in zip(self.nodes, phi, label, strict=True):
            node.learn(features, y if y.ndim else float(y))
        self.round += 1
        if not self.talk(self.round):
            self.round -= 1
            return None, 0
        said = records.said(self._mail, self.nodes)
        spoken = records.columns(1, len(self.nodes), {} if said is None else {0: said})
        row |= {name: column[0] for name, column in spoken.items()}
        rebuilt |= self._rebuild(np.array([not np.isfinite(node.weights).all() for node in self.nodes]))
        weights = self._weights()
        energy = float((weights**2).sum())
        if not np.isfinite(energy):
            self.round -= 1
            return None, 0
        return row | {
            "predictions": predictions,
            "outside": np.zeros(len(label), dtype=np.int32),
            "consensus_error": float(np.linalg.norm(weights - weights.mean(axis=0))),
            "energy": energy,
            "replica_error": float(np.linalg.norm(weights - [node.common.theta for node in self.nodes])),
            "info.rebuilt": rebuilt,
        }, 0

    def _predict(self, phi: Array) -> tuple[Array, Array]:
        """What the models predict, and of which agents that is beyond all bounds."""
        weights = self._weights()
        predictions = (weights * (phi if weights.ndim == 2 else phi[:, None])).sum(axis=-1)
        beyond = ~(np.abs(predictions) <= DIVERGENCE * self._largest).reshape(len(phi), -1).all(axis=1)
        return predictions, beyond

    def _rebuild(self, lost: Array) -> Array:
        """Make the models of agents anew that are ``lost``; of which agents that was possible."""
        rebuilt = np.zeros(len(self.nodes), dtype=bool)
        for agent in np.flatnonzero(lost).tolist():
            rebuilt[agent] = self.nodes[agent].rebuild()
            if rebuilt[agent]:
                _log.warning("the model of agent %d was lost and is rebuilt from its own sums", agent)
        return rebuilt

    def talk(self, t: int) -> bool:
        """What happens when ``t`` rounds are over: what was sent arrives, and more is sent; False if that cannot be."""
        try:
            for sender, message in self._mail:
                for receiver in message.to:
                    self.nodes[receiver].receive(sender, message.data)
                if message.to == (self.places[sender].parent,):
                    self.nodes[sender].acknowledged()
            self._mail = [(agent, message) for agent, node in enumerate(self.nodes) for message in node.tick(t)]
        except np.linalg.LinAlgError:  # of a matrix that is not finite: nobody can go on from there
            return False
        return True


def score_collectively(learner: Learner, weights: Array, phi: Array, label: Array) -> dict[str, Array]:
    """Every agent's model on every agent's sample."""
    scored = ~np.isnan(label)
    if not scored.any():
        nothing = np.full(len(label), np.nan)
        return {"collective_square": nothing, "collective_loss": nothing}
    margins = np.moveaxis(weights @ phi.T, -1, 1)[:, scored]
    return {
        "collective_square": ((margins - label[scored]) ** 2).mean(axis=1),
        "collective_loss": learner.loss.value(margins, label[scored]).mean(axis=1),
    }
