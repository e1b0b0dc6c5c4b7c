"""``simulate`` by several processes: each has the agents of a part of the network."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.engine.chunk import Chunk, first_memory, first_state
from laconic.engine.errors import Diverged
from laconic.engine.exchange import abandon, agreed, all_fail, world
from laconic.engine.log import Log
from laconic.engine.outcome import advice, attach, bad_input, make_trace
from laconic.engine.partition import divide, known_to, make_part
from laconic.engine.partitioned import Partitioned, refuse
from laconic.engine.rowwise import chosen, joined
from laconic.engine.samples import Samples
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network
from laconic.trace import State, Trace

_ROOT = 0
#: Columns with an entry for each agent.
_WIDE = ("predictions", "sent", "outside", "message_sizes", "labels")


@final
class Team:
    """The processes of a job over one network: who has which agents, and the engine of this one.

    Made by all processes at the same time, with equal arguments. ``state`` is asked for the rows of the agents that
    this process keeps, by their numbers; None begins anew.
    """

    name = "mpi"

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        dtype: str = "float64",
        state: Callable[[Array], State] | None = None,
        comm: Any = None,
    ) -> None:
        refuse(learner)
        self.comm = comm = world() if comm is None else comm
        self.learner, self.features, self.network, self.dtype = learner, features, network, dtype
        if comm.size > network.n_agents:
            raise ValueError(
                f"engine 'mpi' needs an agent for each process at least: {comm.size} processes were started for "
                f"{network.n_agents} agents."
            )
        self._agree()
        found = agreed(comm, lambda: divide(network, comm.size) if comm.rank == _ROOT else None)
        self.part = make_part(network, comm.bcast(found, root=_ROOT), comm.rank)
        begin = None if state is None else agreed(comm, lambda: state(known_to(self.part)))
        self.engine = Partitioned(learner, features, network, self.part, comm, dtype, begin)
        self.round, self.energy_before = self.engine.round, self.engine.energy_before

    @property
    def first(self) -> bool:
        """Whether this process is the one that speaks for all."""
        return bool(self.comm.rank == _ROOT)

    def _agree(self) -> None:
        """Refuse to run where processes were given different things to do."""
        told = f"{self.learner!r} {self.features!r} {self.dtype} {self.network.n_agents}".encode()
        digest = hashlib.blake2b(told + self.network.edges.tobytes() + self.features.frequencies.tobytes()).hexdigest()
        if len(set(self.comm.allgather(digest))) > 1:
            raise ValueError("engine 'mpi' needs the same learner, features, network and dtype in every process.")

    def samples(self, X: object, y: object) -> Samples:
        """The stream of the agents here."""
        here = self.learner, self.features, self.network, X, y, self.part.agents, self.comm.size
        return agreed(self.comm, lambda: Samples(*here))

    def pieces(self, pieces: Iterable[tuple[Array, Array]]) -> Iterator[tuple[Array, Array]]:
        """The same, or an error in all processes: where one has no samples, or others of another number of rounds."""
        waiting = iter(pieces)
        while True:
            piece = agreed(self.comm, lambda: next(waiting, None))
            lengths = self.comm.allgather(-1 if piece is None else len(piece[1]))
            if len(set(lengths)) > 1:
                raise ValueError(f"X and y must have as many rounds in every process, got {sorted(set(lengths))}.")
            if piece is None:
                return
            yield piece

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Rounds of the agents here; the columns of what came of it are those of all agents, in every process."""
        if mapped:
            raise ValueError("mapped must be False with engine='mpi': features are computed where they are used.")
        chunk = self.engine.advance(X, y)
        self.round = self.engine.round
        columns = {**chunk.columns, "labels": y[: chunk.n_rounds]}
        wide = {name: column for name, column in columns.items() if name in _WIDE}
        parts = self.comm.allgather((self.part.agents, wide))
        for name, column in wide.items():
            whole = np.empty((len(column), self.network.n_agents), dtype=column.dtype)
            for agents, found in parts:
                whole[:, agents] = found[name]
            columns[name] = whole
        return chunk._replace(columns=columns)

    def abandon(self) -> None:
        """End the whole job if this process, and not every other one, cannot go on: they would wait for it for ever."""
        if self.comm.size > 1 and not all_fail(self.comm):
            abandon(self.comm)

    def entries(self, X: Array, chunk: Chunk) -> Array:
        """The input with which a chunk ended, from the process that has it."""
        here = np.flatnonzero(self.part.agents == chunk.agent)
        found = self.comm.allgather(X[chunk.n_rounds, here[0]] if len(here) else None)
        return np.asarray(next(entries for entries in found if entries is not None))

    def state(self) -> State:
        """Copies of all that the next round needs, of all agents, in every process."""
        return joined(self.comm.allgather((self.part.agents, self.engine.here())))


def simulate_together(
    learner: Learner,
    features: RandomFeatures,
    network: Network,
    X: object,
    y: object,
    dtype: str,
    state: State | None,
    collective: bool,
    every: int,
    show: Callable[[bool, int | None, str], Any],
) -> Trace:
    """``simulate`` as called by every process of a job; each returns the same trace."""
    _validate.choice("dtype", dtype, ("float64", "float32"))
    refuse(learner, collective)
    if not isinstance(network, Network) or (isinstance(state, State) and state.edges):
        raise ValueError(
            "network must not change with engine='mpi': what an edge has added to a dual is known to no process."
        )
    rows = None if state is None else _rows(learner, features, network, dtype, state)
    team = Team(learner, features, network, dtype, rows)
    samples = team.samples(X, y)
    log, started = Log(every, team.round), time.perf_counter()

    def trace() -> Trace:
        return make_trace(team, learner, features, network, log, time.perf_counter() - started, dtype)

    try:
        with show(team.first, samples.n_rounds, learner.name) as bar:
            for X_chunk, y_chunk in team.pieces(samples.chunks()):
                chunk = team.advance(X_chunk, y_chunk)
                log.append(chunk.columns)
                bar(chunk.n_rounds)
                if chunk.ending:
                    break
            else:
                return trace()
    except BaseException:
        team.abandon()
        raise
    kept = trace()
    if chunk.ending == "diverged":
        raise Diverged(team.round + 1, kept, advice(kept, learner))
    error = bad_input(team.round + 1, chunk.agent, team.entries(X_chunk, chunk))
    attach(error, kept)
    raise error


def _rows(
    learner: Learner, features: RandomFeatures, network: Network, dtype: str, state: State
) -> Callable[[Array], State]:
    """What gives rows of a state of all agents, once that is seen to be one of this learner and network."""
    whole = first_state(learner, network, features.n_features, np.dtype(dtype), state)
    memory = first_memory(learner, network.n_agents, state)
    names = learner.channel.memory if learner.channel else ()
    kept = State(whole.round, whole.learner, whole.broadcast, dict(zip(names, memory.T, strict=True)))
    return lambda agents: chosen(kept, agents)
