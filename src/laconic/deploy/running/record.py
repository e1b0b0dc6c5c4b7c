"""What one agent of a site did, as a file to compare a run with ``lc.simulate``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import final

import numpy as np

from laconic._files import written_whole
from laconic.protocol import Agent, Info


@final
class Record:
    """Gathers the rounds of an agent and writes them, with the state it ended in, to an ``.npz`` file.

    The file holds ``rounds``, ``predictions``, ``sent`` and ``bits``, an entry a round; ``weights``, ``broadcast`` and,
    if the learner has them, ``duals``; and for the neighbours in the order of ``neighbours``: ``replicas``, a row each,
    and ``heard``, how far each was heard as (life, sequence, round).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rounds: list[int] = []
        self._predictions: list[float] = []
        self._sent: list[bool] = []
        self._bits: list[int] = []
        if not path.parent.is_dir():
            raise ValueError(f"--trace must name a file in a folder that exists, got {str(path)!r}.")

    def add(self, info: Info) -> None:
        """A round is over."""
        self._rounds.append(info.round)
        self._predictions.append(info.prediction)
        self._sent.append(info.sent)
        self._bits.append(info.bits)

    def write(self, agent: Agent) -> None:
        """Write the file, whole or not at all."""
        arrays = {
            "rounds": np.array(self._rounds, dtype=np.int64),
            "predictions": np.array(self._predictions),
            "sent": np.array(self._sent, dtype=bool),
            "bits": np.array(self._bits, dtype=np.int64),
            "weights": agent.weights,
            "broadcast": agent.broadcast,
            "neighbours": np.array(agent.neighbours, dtype=str),
            "replicas": np.array([agent.replica(name) for name in agent.neighbours]),
            "heard": np.array([agent.heard(name) for name in agent.neighbours], dtype=np.int64),
            "spoken": np.array([agent.position(name) for name in agent.neighbours], dtype=np.int64),
        }
        with suppress(AttributeError):  # not every learner has them
            arrays["duals"] = agent.duals
        with written_whole(self.path) as file:
            np.savez(file, allow_pickle=False, **arrays)
