"""What one agent of a site did, as a file: a trace of one agent, to be read by ``lc.Trace.load``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic import _tracefile
from laconic._validate import Array
from laconic.engine.outcome import features_about
from laconic.model import FeatureMap
from laconic.protocol import Agent, Info


@final
class Record:
    """Gathers the rounds of an agent and writes them, with the state it ended in, to an ``.npz`` file.

    ``lc.Trace.load`` reads it as a trace of one agent, to be compared with ``lc.simulate``. An agent alone agrees with
    itself, so ``consensus_error`` is zero; ``energy`` and ``replica_error`` are known of the last round only, and NaN
    before. In ``trace.info``: ``rounds``, since on slots an agent may sleep through some; ``bits``; and for the
    neighbours in the order of ``neighbours``: ``replicas``, a row each; ``position``, how far the agent has spoken to
    each as (session, statement); and ``heard``, how far each was heard, likewise.

    For those who read the file by ``np.load``: all of that has its name in there, without the axis of agents, and so
    have ``weights``, ``broadcast`` and, if the learner has them, ``duals``.
    """

    def __init__(
        self,
        path: Path,
        inputs: Sequence[str] | None = None,
        target: str | None = None,
        classes: Sequence[str | int] = (),
    ) -> None:
        self.path = path
        self._data: dict[str, Any] = {"inputs": None if inputs is None else list(inputs), "target": target}
        if classes:
            self._data["classes"] = list(classes)
        self._infos: list[Info] = []
        self._started = time.perf_counter()
        if not path.parent.is_dir():
            raise ValueError(f"--trace must name a file in a folder that exists, got {str(path)!r}.")

    def add(self, info: Info) -> None:
        """Keep what a round was; it is over."""
        self._infos.append(info)

    def write(self, agent: Agent) -> None:
        """Write the file, whole or not at all."""
        infos = self._infos
        columns = {
            "predictions": _outputs([info.prediction for info in infos], agent.learner.outputs),
            "labels": _outputs([info.label for info in infos], agent.learner.outputs),
            "sent": np.array([[info.sent] for info in infos], dtype=bool).reshape(-1, 1),
            "saturated": np.array([[info.saturated] for info in infos], dtype=float).reshape(-1, 1),
            "consensus_error": np.zeros(len(infos)),
            "energy": _known_at_the_end(len(infos), _square(agent.weights)),
            "replica_error": _known_at_the_end(len(infos), _square(agent.weights - agent.broadcast) ** 0.5),
            "degrees": np.array([len(agent.neighbours)], dtype=np.int64),
        }
        known = {
            "rounds": np.array([info.round for info in infos], dtype=np.int64),
            "bits": np.array([info.bits for info in infos], dtype=np.int64),
            "neighbours": np.array(agent.neighbours, dtype=str),
            "replicas": np.array([agent.replica(name) for name in agent.neighbours]),
            "heard": np.array([agent.heard(name) for name in agent.neighbours], dtype=np.int64),
            "position": np.array([agent.position(name) for name in agent.neighbours], dtype=np.int64),
        }
        learner, features = agent.learner, agent.features
        message_bits = learner.channel.message_bits(features.n_features) if learner.channel else 0
        if message_bits is None:  # they vary
            columns["message_sizes"] = known["bits"][:, None]
        state = {"weights": agent.weights[None]}
        with suppress(AttributeError):  # not every learner has them
            state["duals"] = agent.duals[None]
        about = {
            "name": learner.name,
            "learner": repr(learner),
            "loss": learner.loss.name,
            "regularization": learner.regularization,
            "features": repr(features),
            **features_about(features),
            "network": repr(agent),
            "message_bits": message_bits,
            "energy_before": 0.0 if infos and infos[0].round == 1 else float("nan"),
            "engine": "agent",
            "dtype": agent.weights.dtype.name,
            "seconds": time.perf_counter() - self._started,
            "agent": agent.name,
            "clock": agent.clock,
            "rounds": len(infos),
            "data": self._data,
        }
        map = FeatureMap.of(features)
        described = None if map is None else map.pack()
        content = _tracefile.Content(columns, known, about, agent.round, state, agent.broadcast[None], described)
        _tracefile.write(self.path, content, agent=True)


def _outputs(values: list[Any], outputs: int) -> Array:
    """(T, 1), or (T, 1, K) of K outputs; a round without a sample has one NaN for all of them."""
    shape = () if outputs == 1 else (outputs,)
    rows = [np.broadcast_to(value, shape) for value in values]
    return np.array(rows, dtype=float).reshape(-1, 1, *shape)


def _square(row: Array) -> float:
    return float((row.astype(np.float64) ** 2).sum())


def _known_at_the_end(n_rounds: int, last: float) -> Array:
    column = np.full(n_rounds, np.nan)
    column[-1:] = last
    return column
