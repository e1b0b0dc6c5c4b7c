"""The engine of one process of several: the rounds of ``rounds``, stage by stage, with parcels in between.

Agents compute what they compute in one process, to the bit; so do the sums over all of them, which are sums of whole
numbers (``summing``).
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Quantizer
from laconic.engine import coding, endings, parcels, rounds, rounds_abreast, steps, summing
from laconic.engine.ahead import with_distant
from laconic.engine.chunk import COLUMNS, Chunk, snapshot
from laconic.engine.compiled import make_front, make_panel, make_rows, make_scratch, make_sums, padded
from laconic.engine.exchange import Exchange
from laconic.engine.partition import Part, known_to
from laconic.engine.planning import goes_abreast, make_plan, run_stages
from laconic.engine.support import supports
from laconic.engine.timetable import rates, thresholds
from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.network import Network
from laconic.trace import State

_BLOCK_ROWS = 128
_ENDINGS = {endings.BAD_INPUT: "bad input", endings.DIVERGED: "diverged"}
_PEAK, _STOPPED = range(2)


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
        self._plan = make_plan(learner, features, network.n_agents, self.dtype.type)
        self._frequencies = padded(features.frequencies.T, self.dtype)
        dual = self._plan.algorithm in (steps.LINEARIZED, steps.PROXIMAL)
        self._graph = rounds.Graph(
            part.starts,
            part.neighbours.astype(np.int32),
            (np.empty(0) if dual else part.combination).astype(self.dtype),
        )
        quantizer = learner.channel.quantizer if learner.channel else None
        self._bits = quantizer.bits if isinstance(quantizer, Quantizer) else 0
        self._sums = make_sums(self._plan, self.n_agents, 1, self.dtype)
        self._scratch = self._make_scratch()
        self._front = make_front(features, len(self._scratch.phases), self.dtype)
        self.exchange = Exchange(comm, part, self._longest())
        self._restore(self._first() if state is None else state)
        self._graph = with_distant(self._graph, self._rows)

    def _make_scratch(self) -> rounds.Scratch:
        """Room for the features of some agents of one round: messages are waited for after each."""
        n_rows, sums = min(_BLOCK_ROWS, self.n_agents), self._sums
        units = np.zeros(sums.totals.shape, dtype=np.int32 if self.dtype.itemsize == 4 else np.int64)
        return make_scratch(self._plan, self.features, n_rows, self.dtype, units, sums.tops, sums.totals)

    def _longest(self) -> int:
        """Bytes of the longest message."""
        if self._plan.rounding == coding.DENSE:
            return self._n_features * self.dtype.itemsize
        if self._plan.rounding == coding.ENTROPY:
            return self._scratch.written.size + parcels.LENGTH_BYTES
        return -(-self._n_features * self._bits // 8) + parcels.SCALE_BYTES

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
        self._panel = make_panel(self.learner, n, d, self.dtype)
        elsewhere, clips = len(self.part.elsewhere), "sums" in state.learner
        rows = make_rows(self._plan, n, elsewhere, self.dtype, clips=clips, keeps=True)
        places = {"weights": rows.weights, "duals": rows.duals, "sums": rows.sums, "broadcast": rows.broadcast}
        for name, array in {**state.learner, "broadcast": state.broadcast}.items():
            if name in places:
                places[name][:, :d] = array[: len(places[name])]
        if self._panel is not None:
            self._panel.restore({name: array[:n] for name, array in state.learner.items()})
        names = self.learner.channel.memory if self.learner.channel else ()
        memory = np.stack([state.channel[name][:n] for name in names], axis=1) if names else np.zeros((n, 0))
        self._rows = rows._replace(memory=np.ascontiguousarray(memory, dtype=np.float64).ravel())
        # A model cannot predict beyond its norm, so a resumed run starts from that yardstick of divergence.
        weights, numbers = rows.weights, self._sums.numbers
        energy = np.einsum("ij,ij->", weights, weights, dtype=np.float64)
        self.energy_before = float(self.exchange.total(np.array([energy]))[0])
        peak = self.exchange.largest(np.array([np.abs(weights).max(initial=0.0)], dtype=np.float64))[0]
        numbers[rounds.LARGEST] = np.sqrt(self.energy_before)
        numbers[rounds.SCALE] = summing.scale_of(float(peak), self._plan.n_agents, self.dtype.itemsize)

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
        if self._sums.numbers[rounds.PENDING]:  # what was said last is heard now, and not in the next round
            nothing = np.empty((0, n), dtype=self.dtype)
            self._call(np.empty((0, self.features.n_inputs), dtype=self.dtype), nothing)(rounds.HEAR, 0, n)
            self._sums.numbers[rounds.PENDING] = 0.0
        kept = {} if self._panel is None else self._panel.parts()
        learner = {name: kept[name] if name in kept else getattr(self._rows, name)[:n, :d] for name in self._parts}
        memory = self._rows.memory.reshape(n, -1)
        return snapshot(self.round, learner, self._rows.broadcast[:n, :d], self.learner.channel, memory)

    def _record(self, n_rounds: int) -> rounds.Columns:
        shape = (n_rounds, self.n_agents)
        return rounds.Columns(
            np.empty(shape, dtype=self.dtype),
            np.zeros(shape, dtype=np.bool_),
            np.zeros(shape, dtype=np.int32),
            np.empty(n_rounds),
            np.empty(n_rounds),
            np.empty(n_rounds),
            np.zeros(shape if self._plan.rounding == coding.ENTROPY else (0, self.n_agents), dtype=np.int64),
        )

    def _call(self, samples: Array, labels: Array, record: rounds.Columns | None = None) -> Any:
        """The kernel with all its arguments but the stages, the round, and how many rows."""
        found = self._record(len(labels)) if record is None else record
        step = rates(self.learner, self.round, len(labels), self.dtype)
        limits = thresholds(self.learner, self.round, len(labels))
        panel = None if self._panel is None else self._panel.arrays
        about = self._plan, self._graph, self._front, self._rows
        stream = samples, False, labels, self._frequencies, step, limits
        abreast, kept = goes_abreast(self._plan), (self._scratch, self._sums, found)
        nobody = np.empty((len(labels), 0))

        def call(stages: int, t: int, n_rows: int) -> tuple[int, int]:
            where = stages, 0, n_rows, t, t + 1
            return run_stages(abreast, where, about, panel, kept, (nobody, nobody), stream)

        return call

    def advance(self, X: Array, y: Array) -> Chunk:
        """Run the rounds of ``X`` (T, agents here, d) with labels ``y``; norms in the record are those of everybody."""
        samples = np.require(X.reshape(-1, X.shape[2]), self.dtype, ["C", "A", "W", "E"])
        labels = np.require(y, self.dtype, ["C", "A", "W", "E"])
        seen = np.abs(labels).max(axis=1, initial=0.0, where=~np.isnan(labels)).astype(np.float64)
        # No round may begin that cannot end, in whichever process, or the others would have learned of it.
        right = np.isfinite(samples).all(axis=1).reshape(labels.shape)
        whole = int(np.append(right.all(axis=1), False).argmin())
        told = np.maximum.accumulate(np.append(self._sums.numbers[rounds.LARGEST], seen))
        *seen, last = self.exchange.largest(np.append(told, -float(whole)))
        record = self._record(len(y))
        call = self._call(samples, labels, record)
        ending, agent, finished = None, 0, int(-last)
        for t in range(finished):
            self._sums.numbers[rounds.LARGEST] = seen[t]
            ending, agent = self._round(call, t)
            if ending:
                finished = t
                break
            self._sums.numbers[rounds.LARGEST] = seen[t + 1]
        else:
            if finished < len(y):
                bad = not right[finished].all()
                status = endings.BAD_INPUT if bad else endings.FINISHED
                ending, agent = self._blame(status, int(right[finished].argmin()))
        self.round += finished
        columns = {name: column[:finished] for name, column in zip(COLUMNS, record[:-1], strict=False)}
        if self._plan.rounding == coding.ENTROPY:
            columns["message_sizes"] = record.bits[:finished]
        return Chunk(columns, finished, ending, agent)

    def _round(self, call: Any, t: int) -> tuple[str | None, int]:
        """One round: why it ended early if it did, and at which agent of the network."""
        n, sums = self.n_agents, self._sums
        status, row = call(rounds.LEARN, t, n)
        if status != endings.FINISHED:  # and yet the others wait for a parcel
            self._rows.spoken[:n] = coding.SILENT
            sums.tops[:], sums.totals[:] = 0, 0
        if self.learner.channel is not None:
            self._swap()
        last = self._panel is not None or self._plan.algorithm == steps.ADAPT_THEN_COMBINE
        if last and status == endings.FINISHED:
            call(rounds.APPLY, t, self._n_known)
            call(rounds.HEAR, t, n)
        tops = np.array([sums.tops.max(), float(status != endings.FINISHED)], dtype=np.float64)
        peak, stopped = self.exchange.largest(tops)
        if stopped:
            return self._blame(status, row % max(1, n))
        local = sums.totals.copy()
        sums.tops[:] = 0
        sums.tops[0, 0], sums.totals[:] = peak, self.exchange.total(local)
        if call(rounds.MEAN, t, n)[0] == endings.AGAIN:
            call(rounds.RESUM, t, n)
            sums.totals[:] = self.exchange.total(sums.totals)
            call(rounds.MEAN, t, n)
        call((0 if last else rounds.APPLY) | rounds.MEASURE | rounds.TOPS, t, self._n_known)
        tops = sums.numbers[[rounds.ERROR_TOP, rounds.DISTANCE_TOP]]
        sums.numbers[[rounds.ERROR_TOP, rounds.DISTANCE_TOP]] = self.exchange.largest(tops)
        call(rounds.UNITS, t, n)
        sums.whole[:] = self.exchange.total(sums.whole)
        status, _ = call(rounds.FINISH, t, n)
        return ("diverged", 0) if status != endings.FINISHED else (None, 0)

    def _swap(self) -> None:
        """Send the parcels of this round, and open those that come."""
        rows, part, exchange, scratch = self._rows, self.part, self.exchange, self._scratch
        size, scale_bytes = rows.weights.shape[1], rows.scales.view(np.uint8)
        about = (self._plan, self._bits, size)
        models, replicas = rows.weights.view(np.uint8), rows.broadcast.view(np.uint8)
        if goes_abreast(self._plan) and self._plan.rounding != coding.DENSE:
            rounds_abreast.code_abreast(part.members, self._plan, rows, scratch, self._sums.errors)
        parcels.pack_parcels(
            *about, models, scale_bytes, rows, part.tell, part.members, scratch.chosen, scratch.written,
            exchange.outgoing, exchange.counts,
        )  # fmt: skip
        coming = exchange.swap()
        if not parcels.open_parcels(
            *about, replicas, scale_bytes, rows, part.hear, self.n_agents, scratch.chosen, exchange.incoming, coming
        ):
            raise RuntimeError("what another process sent does not add up.")

    def _blame(self, status: int, agent: int) -> tuple[str, int]:
        """The same ending in all processes: bad input before divergence, and of several agents the first."""
        told = self.exchange.comm.allgather((int(self.part.agents[agent]), status))
        worst = next(code for code in (endings.BAD_INPUT, endings.DIVERGED) if any(code == had for _, had in told))
        return _ENDINGS[worst], min(who for who, had in told if had == worst)
