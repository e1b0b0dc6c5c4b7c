"""Long runs whose record would fit nowhere: round by round a few numbers are kept, and states on disk.

One process with an engine of its own, or one of several with ``mpi``: the same face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from laconic import _extras
from laconic._validate import Array
from laconic.engine import checkpoints
from laconic.engine.chunk import Chunk
from laconic.engine.drawn import Drawn
from laconic.engine.errors import Diverged
from laconic.engine.exchange import agreed, world
from laconic.engine.origin import digest_of, origin_of
from laconic.engine.outcome import bad_input, message_bits
from laconic.engine.run import make_engine
from laconic.engine.samples import Samples
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network

_BITS = 62  # of a sum of whole numbers


class Summary(NamedTuple):
    """What is kept of a round: the mean squared error of predictions, who spoke, and what that took."""

    round: int
    mse: float
    messages: int
    bits: int
    consensus_error: float


@final
class Crew:
    """One run by one process or several, that goes on from its last checkpoint if it is told to.

    Parameters
    ----------
    learner, features, network
        As for ``simulate``; the same in every process.
    stream : Drawn
        Of which each process draws or reads what its own agents see.
    engine : "auto", "compiled", "reference" or "mpi"
    dtype : "float64" or "float32"
    folder : Path, optional
        Where checkpoints are.
    resume : bool
        Go on from the last of them, with the bits of an uninterrupted run, whatever the number of processes.
    about : mapping, optional
        What else a run is made of, by name: who resumes must have the same.

    Examples
    --------
    >>> import laconic as lc
    >>> def draw(agents, first, last):
    ...     X = lc.uniforms(0, agents, first, last, 1)
    ...     return X, X[..., 0]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5, bandwidth=0.5)
    >>> crew = Crew(lc.Local(0.5), features, lc.Network.ring(4), lc.Drawn(draw, 50))
    >>> summaries = list(crew.rounds())
    >>> len(summaries), summaries[-1].mse < 0.1 * summaries[0].mse
    (50, True)
    """

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        stream: Drawn,
        *,
        engine: str = "auto",
        dtype: str = "float64",
        folder: Path | None = None,
        resume: bool = False,
        about: Mapping[str, str] | None = None,
    ) -> None:
        self.learner, self.features, self.network, self.stream = learner, features, network, stream
        self._comm = world() if engine == "mpi" else None
        self._folder = folder
        self._origin = {
            "network": digest_of(network.starts, network.neighbours),
            "feature map": origin_of(learner, features, network).split("/")[0],
            "learner": f"{learner!r} {learner.loss.name} {learner.regularization!r}",
            "dtype": dtype,
            **(about or {}),
        }
        self.index = agreed(self._comm, lambda: self._opened(resume))
        rows = None if self.index is None or folder is None else checkpoints.rows_in(folder, self.index)
        self._team: Any = None
        self.engine: Any
        if engine == "mpi":
            team = _extras.need("laconic.engine.mpi", "engine='mpi'").Team
            self._team = team(learner, features, network, dtype, rows)
            self.engine, self.agents = self._team.engine, self._team.part.agents
        else:
            everybody = np.arange(network.n_agents)
            state = None if rows is None else rows(everybody)
            self.engine = make_engine(learner, features, network, engine, dtype, state)
            self.agents = everybody

    def _opened(self, resume: bool) -> dict[str, Any] | None:
        """The folder made ready, and what the checkpoint in it says that is gone on from."""
        index = None
        if resume:
            index = None if self._folder is None else checkpoints.read_index(self._folder)
            if index is None or self._folder is None:
                raise ValueError(f"resume needs a checkpoint, and there is none in {self._folder}.")
            checkpoints.check_origin(self._folder, index, self._origin)
            if index["round"] > self.stream.n_rounds:
                raise ValueError(
                    f"rounds must be at least {index['round']}, which is where the checkpoint in {self._folder} "
                    f"stands, got {self.stream.n_rounds}."
                )
        if self._folder is not None:
            checkpoints.prepare(self._folder)
            if not resume:
                checkpoints.spare(self._folder, self.stream.n_rounds)
        return index

    @property
    def first(self) -> bool:
        """Whether this process speaks for all."""
        return self._team is None or bool(self._team.first)

    @property
    def n_processes(self) -> int:
        """How many processes share the network."""
        return 1 if self._team is None else int(self._team.comm.size)

    @property
    def sent_bytes(self) -> int:
        """What all processes have sent each other for their agents so far."""
        return 0 if self._team is None else int(self._total(np.array([self.engine.exchange.sent_bytes]))[0])

    def _total(self, numbers: Array) -> Array:
        return numbers if self._team is None else np.asarray(self.engine.exchange.total(numbers))

    def _largest(self, numbers: Array) -> Array:
        return numbers if self._team is None else np.asarray(self.engine.exchange.largest(numbers))

    def rounds(self, every: int | None = None) -> Iterator[Summary]:
        """Run to the end of the stream; a checkpoint after every so many rounds, and at the end."""
        begin = self.engine.round
        rest = Drawn(
            lambda agents, first, last: self.stream.draw(agents, begin + first, begin + last),
            max(0, self.stream.n_rounds - begin),
        )
        samples = Samples(self.learner, self.features, self.network, rest, None, self.agents, self.n_processes, every)
        pieces = _cut(samples, begin, every)
        for X, y in pieces if self._team is None else self._team.pieces(pieces):
            chunk = self.engine.advance(X, y)
            yield from self._summaries(chunk, y[: chunk.n_rounds])
            if chunk.ending == "diverged":
                raise Diverged(self.engine.round + 1, None, self.learner.advice())
            if chunk.ending:
                raise bad_input(self.engine.round + 1, chunk.agent, np.array([np.nan]))
            if every and (self.engine.round % every == 0 or self.engine.round == self.stream.n_rounds):
                self.save()

    def _summaries(self, chunk: Chunk, y: Array) -> Iterator[Summary]:
        squares = (chunk.columns["predictions"].astype(np.float64) - y) ** 2
        scored = ~np.isnan(squares)
        # Multiples of a power of two, summed as whole numbers: the same in however many processes.
        peak = self._largest(np.where(scored, squares, 0.0).max(axis=1, initial=0.0))
        room = _BITS - int(self.network.n_agents).bit_length()
        scale = np.ldexp(1.0, room - np.frexp(np.where(peak > 0, peak, 1.0))[1])
        units = np.rint(np.where(scored, squares, 0.0) * scale[:, None]).astype(np.int64).sum(axis=1)
        sent, bits = chunk.columns["sent"], chunk.columns.get("message_sizes")
        each = message_bits(self.learner, self.features.n_features) or 0
        said = sent.sum(axis=1)
        spent = said * each if bits is None else bits.sum(axis=1)
        counted = self._total(np.stack([units, scored.sum(axis=1), said, spent]).astype(np.int64))
        after = self.engine.round - chunk.n_rounds
        for t in range(chunk.n_rounds):
            total, count, messages, spent_bits = (int(n) for n in counted[:, t])
            mse = total / float(scale[t]) / count if count else float("nan")
            yield Summary(after + t + 1, mse, messages, spent_bits, float(chunk.columns["consensus_error"][t]))

    def save(self) -> None:
        """Write a checkpoint, which counts once all processes have written their part of it."""
        if self._folder is None:
            return
        folder, part = self._folder, 0 if self._team is None else int(self._team.comm.rank)
        state = self.engine.state() if self._team is None else self.engine.here()
        self.together(lambda: checkpoints.save_part(folder, part, self.agents, state))
        about = {"origin": self._origin}
        seal = partial(checkpoints.seal, folder, self.engine.round, self.n_processes, about)
        self.together(seal if self.first else None)

    def together(self, do: Callable[[], object] | None) -> None:
        """Do something that may fail in this process alone; all of them fail then."""
        agreed(self._comm, do or (lambda: None))


def _cut(samples: Samples, begin: int, every: int | None) -> Iterator[tuple[Array, Array]]:
    """Chunks that end where a checkpoint is due."""
    done = begin
    for X, y in samples.chunks():
        while len(y):
            n = len(y) if not every else min(len(y), every - done % every)
            yield X[:n], y[:n]
            X, y, done = X[n:], y[n:], done + n
