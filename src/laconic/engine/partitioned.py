"""The engine of one process of several: the rounds of ``rounds``, stage by stage, with parcels in between.

Agents compute what they compute in one process, to the bit; so do the sums over all of them, which are sums of whole
numbers (``summing``).
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import longest_message
from laconic.engine import endings, graphs
from laconic.engine.chunk import Chunk, snapshot
from laconic.engine.exchange import Exchange
from laconic.engine.native import make_experts, record_of
from laconic.engine.partition import Part, known_to
from laconic.engine.support import supports
from laconic.engine.timetable import rates, thresholds
from laconic.engine.workers import (
    APPLY,
    COMBINE,
    FINISH,
    LEARN,
    MEAN,
    MEASURE,
    RESUM,
    TOPS,
    UNITS,
    Workers,
    model_scale,
)
from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.native.binding import INTEGER, POINTER, function
from laconic.native.features import feature_map
from laconic.native.run import DENSE, ENTROPY, SILENT, Scratch, Stream, add_agents, make_run
from laconic.network import Network
from laconic.trace import State

_BLOCK_ROWS = 128
_ENDINGS = {endings.BAD_INPUT: "bad input", endings.DIVERGED: "diverged"}
_LENGTH_BYTES, _SCALE_BYTES = 2, 4  # before an entropy code, and before codes whose range varies


def refuse(learner: Learner, collective: bool = False) -> None:
    """One sentence about what cannot be shared by processes."""
    if learner.speech is Speech.OWN:
        raise ValueError(f"engine must not be 'mpi' for {learner.name}: its waves go over one tree, in one process.")
    if not supports(learner):
        raise ValueError(f"engine must be 'reference' or 'auto' for {learner!r}: engine 'mpi' needs kernels for it.")
    if collective:
        raise ValueError("collective must be False with engine='mpi': everybody's model is in no one place.")


@final
class Partitioned:
    """Runs chunks of rounds of the agents of one part, in step with the processes that have the others.

    Every method is called by all processes at the same time. ``state`` holds the rows of the agents here and then of
    their neighbours elsewhere, as ``known_to`` lists them; None begins anew.
    """

    name = "mpi"

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        part: Part,
        comm: Any,
        dtype: str = "float64",
        state: State | None = None,
    ) -> None:
        refuse(learner)
        self.learner, self.features, self.part = learner, features, part
        self.dtype = np.dtype(dtype)
        self.n_agents, self._n_features = len(part.agents), features.n_features
        self._n_known = self.n_agents + len(part.elsewhere)
        run = self._run = make_run(learner, features, network.n_agents, self.dtype)
        run.put(
            starts=np.ascontiguousarray(part.starts, dtype=np.int64),
            neighbours=part.neighbours.astype(np.int32),
            combination=(np.empty(0) if run.dual else part.combination).astype(self.dtype),
        )
        self.exchange = Exchange(comm, part, self._longest())
        self._restore(self._first() if state is None else state)
        run.put(**graphs.distant(run))
        # Features of some agents of one round: messages are waited for after each.
        n_rows = max(1, min(_BLOCK_ROWS, self.n_agents))
        front = feature_map(features, self.dtype)
        self._scratch = Scratch.make(run, front, n_rows, self.dtype)
        self._workers = Workers(run, lambda _: self._scratch, 1)
        precision = f"f{8 * self.dtype.itemsize}"
        self._pack = function(f"pack_parcels_{precision}", *[POINTER] * 2, INTEGER, *[POINTER] * 4, result=None)
        self._open = function(f"open_parcels_{precision}", *[POINTER] * 2, INTEGER, *[POINTER] * 3)
        self._tell, self._hear, self._members = (
            np.ascontiguousarray(array, dtype=np.int64) for array in (part.tell, part.hear, part.members)
        )

    def _longest(self) -> int:
        """Bytes of the longest message."""
        if self._run.rounding == DENSE:
            return self._n_features * self.dtype.itemsize
        if self._run.rounding == ENTROPY:
            return longest_message(self._n_features) + _LENGTH_BYTES
        return -(-self._n_features * self._run.bits // 8) + _SCALE_BYTES

    def _first(self) -> State:
        """Before the first round."""
        n, channel = len(known_to(self.part)), self.learner.channel
        memory = channel.begin(n) if channel else np.zeros((n, 0))
        fresh = self.learner.init(n, self._n_features)._asdict()
        return snapshot(0, fresh, np.zeros((n, self._n_features)), channel, memory)

    def _restore(self, state: State) -> None:
        """Take over the rows of the agents here, and the replicas of their neighbours elsewhere."""
        n, d = self.n_agents, self._n_features
        self._check(state)
        self.round, self._parts = state.round, tuple(state.learner)
        run, clips = self._run, "sums" in state.learner
        add_agents(run, n, len(self.part.elsewhere), 1, self.dtype, clips=clips, half=False)
        for name, array in {**state.learner, "broadcast": state.broadcast}.items():
            if name in ("weights", "duals", "sums", "broadcast"):
                place = run.array(name)
                place[:, :d] = array[: len(place)]
        self._experts = make_experts(self.learner, run, n)
        if self._experts is not None:
            self._experts.restore({name: array[:n] for name, array in state.learner.items()})
        names = self.learner.channel.memory if self.learner.channel else ()
        memory = np.stack([state.channel[name][:n] for name in names], axis=1) if names else np.zeros((n, 0))
        run.put(memory=np.ascontiguousarray(memory, dtype=np.float64).ravel())
        # A model cannot predict beyond its norm, so a resumed run starts from that yardstick of divergence.
        weights = run.array("weights")
        energy = np.einsum("ij,ij->", weights, weights, dtype=np.float64)
        self.energy_before = float(self.exchange.total(np.array([energy]))[0])
        peak = self.exchange.largest(np.array([np.abs(weights).max(initial=0.0)], dtype=np.float64))[0]
        run.put(largest=np.sqrt(self.energy_before), scale=model_scale(float(peak), run.n_agents, self.dtype.itemsize))

    def _check(self, state: State) -> None:
        """Refuse rows that another learner, channel or feature map has left."""
        fresh = self.learner.init(1, self._n_features)._asdict()
        names = self.learner.channel.memory if self.learner.channel else ()
        shapes = {name: np.shape(array)[1:] for name, array in fresh.items()}
        found = {name: np.shape(array)[1:] for name, array in state.learner.items()}
        if found != shapes or set(state.channel) != set(names):
            raise ValueError(
                f"state comes from another learner, channel or feature map: it holds {sorted(found.items())} and "
                f"{sorted(state.channel)}, {self.learner!r} keeps {sorted(shapes.items())} and {sorted(names)}."
            )

    def here(self) -> State:
        """Copies of all that the next round needs of the agents here, in the order of ``part.agents``."""
        n, d = self.n_agents, self._n_features
        run = self._run
        if run.pending:  # what was sent last is combined now, and not in the next round
            stream = Stream.make(run, np.empty((0, n), dtype=self.dtype), rates=np.zeros(1, self.dtype))
            self._workers.once(stream, COMBINE, 0)
            run.pending = 0.0
        kept = {} if self._experts is None else self._experts.parts()
        learner = {name: kept[name] if name in kept else run.array(name)[:n, :d] for name in self._parts}
        memory = run.array("memory").reshape(n, -1)
        return snapshot(self.round, learner, run.array("broadcast")[:n, :d], self.learner.channel, memory)

    def advance(self, X: Array, y: Array) -> Chunk:
        """Run the rounds of ``X`` (T, agents here, d) with labels ``y``; norms in the record are those of everybody."""
        run, samples = self._run, np.require(X.reshape(-1, X.shape[2]), self.dtype, ["C", "A"])
        labels = np.require(y, self.dtype, ["C", "A"])
        seen = np.abs(labels).max(axis=1, initial=0.0, where=~np.isnan(labels)).astype(np.float64)
        # No round may begin that cannot end, in whichever process, or the others would have learned of it.
        right = np.isfinite(samples).all(axis=1).reshape(labels.shape)
        whole = int(np.append(right.all(axis=1), False).argmin())
        told = np.maximum.accumulate(np.append(run.largest, seen))
        *seen, last = self.exchange.largest(np.append(told, -float(whole)))
        stream = Stream.make(
            run, labels, samples=samples, rates=rates(self.learner, self.round, len(labels), self.dtype)
        )
        limits = thresholds(self.learner, self.round, len(labels))
        if limits.size:
            stream.put(thresholds=limits)
        ending, agent, finished = None, 0, int(-last)
        for t in range(finished):
            run.largest = seen[t]
            ending, agent = self._round(stream, t)
            if ending:
                finished = t
                break
            run.largest = seen[t + 1]
        else:
            if finished < len(y):
                bad = not right[finished].all()
                status = endings.BAD_INPUT if bad else endings.FINISHED
                ending, agent = self._blame(status, int(right[finished].argmin()))
        self.round += finished
        return Chunk(record_of(run, stream, finished), finished, ending, agent)

    def _round(self, stream: Stream, t: int) -> tuple[str | None, int]:
        """One round: why it ended early if it did, and at which agent of the network."""
        n, run = self.n_agents, self._run
        tops, totals = run.array("tops"), run.array("totals")

        def call(stages: int, end: int) -> tuple[int, int]:
            return self._workers.once(stream, stages, t, end)

        status, row = call(LEARN, n)
        if status != endings.FINISHED:  # and yet the others wait for a parcel
            run.array("spoken")[:n] = SILENT
            tops[:], totals[:] = 0, 0
        if self.learner.channel is not None:
            self._swap()
        last = run.combines_last
        if last and status == endings.FINISHED:
            call(APPLY, self._n_known)
            call(COMBINE, n)
        peak, stopped = self.exchange.largest(
            np.array([tops.max(), float(status != endings.FINISHED)], dtype=np.float64)
        )
        if stopped:
            return self._blame(status, row % max(1, n))
        tops[:] = 0
        tops[0, 0], totals[:] = peak, self.exchange.total(totals.copy())
        if call(MEAN, n)[0] == endings.AGAIN:
            call(RESUM, n)
            totals[:] = self.exchange.total(totals)
            call(MEAN, n)
        call((0 if last else APPLY) | MEASURE | TOPS, self._n_known)
        run.error_top, run.distance_top = self.exchange.largest(np.array([run.error_top, run.distance_top]))
        call(UNITS, n)
        run.error_units, run.distance_units = self.exchange.total(np.array([run.error_units, run.distance_units]))
        status, _ = call(FINISH, n)
        return ("diverged", 0) if status != endings.FINISHED else (None, 0)

    def _swap(self) -> None:
        """Send the parcels of this round, and open those that come."""
        exchange, run, scratch = self.exchange, self._run.address, self._scratch.address
        tell, hear, members = self._tell, self._hear, self._members
        outgoing, counts = exchange.outgoing.ctypes.data, exchange.counts.ctypes.data
        self._pack(run, scratch, len(tell) - 1, tell.ctypes.data, members.ctypes.data, outgoing, counts)
        coming = exchange.swap()
        incoming = exchange.incoming.ctypes.data
        if not self._open(run, scratch, len(hear) - 1, hear.ctypes.data, incoming, coming.ctypes.data):
            raise RuntimeError("what another process sent does not add up.")

    def _blame(self, status: int, agent: int) -> tuple[str, int]:
        """The same ending in all processes: bad input before divergence, and of several agents the first."""
        told = self.exchange.comm.allgather((int(self.part.agents[agent]), status))
        worst = next(code for code in (endings.BAD_INPUT, endings.DIVERGED) if any(code == had for _, had in told))
        return _ENDINGS[worst], min(who for who, had in told if had == worst)
