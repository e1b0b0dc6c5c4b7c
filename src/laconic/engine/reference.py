"""The reference engine: NumPy, an equation a line, to be read beside the paper. It runs any learner and any channel."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine.chunk import COLUMNS, Chunk, first_memory, first_state, make_sample, snapshot
from laconic.engine.endings import DIVERGENCE
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.base import SPOKEN, row_dot
from laconic.network import Heard, Network
from laconic.trace import State


@final
class Reference:
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
        self.dtype = np.dtype(dtype)
        self._collective = collective
        fresh = learner.init(network.n_agents, features.n_features)
        start = first_state(learner, network, features.n_features, self.dtype, state)
        self._state = type(fresh)(**start.learner)
        self._broadcast = start.broadcast
        self._memory = first_memory(learner, network.n_agents, state)
        self._reach = learner.clips()
        self._heard = self._listen(self._state)
        self.round = start.round
        self.energy_before = float((start.weights.astype(np.float64) ** 2).sum())
        self._largest = np.sqrt(self.energy_before)

    def __reduce__(self) -> Any:
        parts = (self.learner, self.features, self.network, self.dtype.name, self.state(), self._collective)
        return Reference, parts, (self.energy_before, float(self._largest))

    def __setstate__(self, kept: tuple[float, float]) -> None:
        self.energy_before, self._largest = kept

    def state(self) -> State:
        """Copies of all that the next round needs."""
        return snapshot(self.round, self._state._asdict(), self._broadcast, self.learner.channel, self._memory)

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of ``X`` (T, N, d), or of features (T, N, 2L) if ``mapped``, with labels ``y`` (T, N)."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        ending, agent, finished = None, 0, 0
        # A diverging run may overflow on its last round; that is told by its ending, not by a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            for x, label in zip(X.astype(self.dtype, copy=False), y.astype(self.dtype, copy=False), strict=True):
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
        stacked = {name: np.array(values) for name, values in columns.items() if values}
        return Chunk(stacked, finished, ending, agent)

    def _round(self, phi: Array, label: Array) -> tuple[dict[str, Any] | None, int]:
        """One round of Algorithm 2: what there is to record, or None and the agent whose prediction left all bounds."""
        learner, t = self.learner, self.round + 1
        row: dict[str, Any] = {}

        # 1. Predict, before learning.
        predictions = row_dot(self._state.weights, phi)
        beyond = ~(np.abs(predictions) <= DIVERGENCE * self._largest)
        if beyond.any():
            return None, int(np.argmax(beyond))
        if self._collective:
            row |= self._score_collectively(phi, label)
        self._largest = np.nanmax([self._largest, *np.abs(label)])

        # 2. Learn.
        self._state, info = learner.step(self._state, make_sample(self.features, phi, label, t), self._heard)

        # 3. and 4. Speak, and hear.
        talking = learner.channel is not None
        sent = np.zeros(len(label), dtype=bool)
        outside = np.zeros(len(label), dtype=np.int32)
        sizes, error = None, 0.0
        if learner.channel is not None:
            said = learner.channel.send(self._state.weights, self._broadcast, t, self._memory)
            self._broadcast, sent, outside, sizes, _ = said
            if said.memory is not None:
                self._memory = said.memory
            heeded = self._state._replace(sums=self._state.sums + self._broadcast) if self._reach else self._state
            self._heard = self._listen(heeded, sent)
            error = float(np.linalg.norm(self._state.weights - self._broadcast))

        # 5. Dual, or whatever the learner does with what it heard.
        if talking:
            self._state = learner.hear(self._state, self._heard._replace(t=t))
            if learner.listen == SPOKEN:  # what was said has been heard, and is not heard again
                self._heard = self._heard._replace(mixture=np.zeros_like(self._heard.mixture))
        weights = self._state.weights
        energy = float((weights.astype(np.float64) ** 2).sum())
        if not np.isfinite(energy):
            return None, 0
        self.round = t
        connected = self.network.degrees > 0
        row |= {
            "predictions": predictions,
            "sent": sent & connected,
            "outside": np.where(connected, outside, 0),
            "consensus_error": float(np.linalg.norm(weights - weights.mean(axis=0))),
            "energy": energy,
            "replica_error": error,
        }
        if sizes is not None:
            row["message_sizes"] = np.where(connected, sizes, 0)
        return row | {f"info.{name}": value for name, value in info.items()}, 0

    def _listen(self, state: Any, spoken: Array | None = None) -> Heard:
        """What everybody hears now, when these have ``spoken``; between two rounds nobody has."""
        if self._reach:
            return self.network.listen_with_care(self._broadcast, state.sums, self._reach)
        if self.learner.listen == SPOKEN:
            spoken = np.zeros(self.network.n_agents, dtype=bool) if spoken is None else spoken
            return self.network.listen_to_spoken(self._broadcast, state.weights, spoken)
        return self.network.listen(self._broadcast)

    def _score_collectively(self, phi: Array, label: Array) -> dict[str, Array]:
        """Every agent's model on every agent's sample."""
        margins = self._state.weights @ phi.T
        scored = ~np.isnan(label)
        if not scored.any():
            nothing = np.full(len(label), np.nan)
            return {"collective_square": nothing, "collective_loss": nothing}
        margins, label = margins[:, scored], label[scored]
        return {
            "collective_square": ((margins - label) ** 2).mean(axis=1),
            "collective_loss": self.learner.loss.value(margins, label).mean(axis=1),
        }
