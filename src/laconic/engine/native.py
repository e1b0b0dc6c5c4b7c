"""The compiled engine: translates learner, features and network into the core's arrays and runs chunks of rounds."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine import endings, graphs
from laconic.engine.chunk import COLUMNS, Chunk, first_memory, first_state, make_state
from laconic.engine.support import supports
from laconic.engine.timetable import rates, thresholds
from laconic.engine.workers import COMBINE, Workers, model_scale
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.native.arrays import padded, plain
from laconic.native.features import feature_map
from laconic.native.run import ENTROPY, STEPS, ExpertArrays, Run, Scratch, Stream, add_agents, halved, make_run
from laconic.network import Network
from laconic.trace import State

_BLOCK_ROWS = 128  # features computed ahead of the learner: they stay in the second-level cache
_MOVED_ROWS = 65536  # at a time, when padding is taken out
_NO_ORDER = np.empty(0, dtype=np.int32)
_ENDINGS = {endings.FINISHED: None, endings.BAD_INPUT: "bad input", endings.DIVERGED: "diverged"}
_ROWS = ("weights", "duals", "sums")


def closed_up(rows: Array, length: int, order: Array | None = None) -> Array:
    """``rows[order, :length]`` of padded rows, of which nothing is left: it lies where they did.

    Examples
    --------
    >>> rows = padded(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.float64)
    >>> closed_up(rows, 3, np.array([1, 0]))
    array([[4., 5., 6.],
           [1., 2., 3.]])
    """
    n_rows, size = rows.shape
    if order is not None:
        pieces = rows.view(np.complex128)  # sixteen bytes, of which only the place is changed
        for column in range(pieces.shape[1]):
            pieces[:, column] = pieces[order, column]
    there = rows.reshape(-1)[: n_rows * length].reshape(n_rows, length)
    for start in range(0, n_rows if length < size else 0, _MOVED_ROWS):
        some = slice(start, start + _MOVED_ROWS)
        there[some] = rows[some, :length]  # NumPy copies what overlaps, which is at most these
    return there


def record_of(run: Run, stream: Stream, n_rounds: int) -> dict[str, Array]:
    """The columns of the first ``n_rounds`` rounds."""
    names = ("predictions", "sent", "outside", "consensus", "energy", "replica_error", "squares", "losses")
    found = zip(COLUMNS, names, strict=True)
    columns = {column: stream.array(name)[:n_rounds] for column, name in found if getattr(stream, name)}
    if run.rounding == ENTROPY:
        columns["message_sizes"] = stream.array("message_sizes")[:n_rounds]
    return columns


@final
class Compiled:
    """Runs chunks of rounds, one after the other, from a first or a given state.

    Rows may be in another order than the agents, and shared out among threads: neither shows in any result.
    """

    name = "compiled"

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        dtype: str = "float64",
        state: State | None = None,
        collective: bool = False,
        threads: int = 1,
    ) -> None:
        if not supports(learner):
            raise ValueError(
                f"engine must be 'reference' or 'auto' for {learner!r}: it, its loss or its quantizer has no kernels."
            )
        self.learner, self.features, self.network = learner, features, network
        self.n_agents = network.n_agents
        self.dtype = np.dtype(dtype)
        self._collective, self._threads = collective, threads
        self._n_features = features.n_features
        self._run = make_run(learner, features, self.n_agents, self.dtype)
        # A run of collective scores is small, and every row of it needs every other.
        self._order = _NO_ORDER if collective or network.numbering is None else network.numbering.astype(np.int32)
        self._rank = np.empty_like(self._order)
        self._rank[self._order] = np.arange(len(self._order), dtype=np.int32)
        self._run.put(**graphs.sorted_graph(network, self._order, self._rank, self.dtype, weighted=not self._run.dual))
        self._restore(state)
        self._run.put(**graphs.distant(self._run))
        self._map = feature_map(features, self.dtype)
        self._workers = Workers(self._run, self._make_scratch, threads)

    def _restore(self, state: State | None) -> None:
        first = first_state(self.learner, self.network, self._n_features, self.dtype, state, copy=False)
        memory = first_memory(self.learner, self.n_agents, state)
        self.round, self._parts = first.round, tuple(first.learner)
        run, n, d = self._run, self.n_agents, self._n_features
        half = self._halves and halved(n, d, self.dtype)
        add_agents(run, n, 0, self._threads, self.dtype, clips="sums" in first.learner, half=half)
        run.put(memory=np.ascontiguousarray(self._sorted(memory)).ravel())
        for name, array in first.learner.items():
            if name in _ROWS and (state is not None or np.any(array)):  # zeros are there already, and cost no copy
                run.array(name)[:, :d] = self._sorted(array)
        if state is not None:
            run.array("broadcast")[:, :d] = self._sorted(first.broadcast)
        self._experts = make_experts(self.learner, run, n)
        if self._experts is not None:
            self._experts.restore({name: self._sorted(array) for name, array in first.learner.items()})
        # A model cannot predict beyond its norm, so a resumed run starts from that yardstick of divergence.
        weights, peak = run.array("weights"), 0.0
        self.energy_before = 0.0
        if state is not None:
            if half:  # sums depend on where whole rows begin
                weights = padded(self._sorted(first.learner["weights"]), self.dtype)
            self.energy_before = float(np.einsum("ij,ij->", weights, weights, dtype=np.float64))
            peak = float(np.abs(weights).max())
        run.put(largest=np.sqrt(self.energy_before), scale=model_scale(peak, n, self.dtype.itemsize))

    @property
    def _halves(self) -> bool:
        """Whether rows may end with half a vector: those of ODKLA, which is where memory is waited for."""
        run = self._run
        return (
            run.algorithm == STEPS["linearized"]
            and run.clip == 0.0
            and run.rounding != ENTROPY
            and not self._collective
        )

    def _sorted(self, array: Array) -> Array:
        """Agents' rows in the order of the kernels."""
        return np.asarray(array)[self._order] if self._order.size else array

    def _unsorted(self, rows: Array) -> Array:
        """A copy of the kernels' rows in the order of the agents."""
        return np.asarray(rows[self._rank] if self._order.size else rows.copy())

    def __reduce__(self) -> Any:
        # Aligned rows do not survive a pickle: the copy is made anew from the state, as a resumed run.
        parts = (self.learner, self.features, self.network, self.dtype.name, self.state(), self._collective)
        return Compiled, parts, (self.energy_before, self._run.largest)

    def __setstate__(self, kept: tuple[float, float]) -> None:
        self.energy_before, self._run.largest = kept

    def _make_scratch(self, part: int) -> Scratch:
        whole = max(1, _BLOCK_ROWS // self.n_agents)
        if whole > 4:
            whole -= whole % 4  # whole register tiles
        # Collective scores need a whole round of features at once.
        n_rows = whole * self.n_agents if whole > 1 or self._collective else min(_BLOCK_ROWS, self.n_agents)
        return Scratch.make(self._run, self._map, n_rows, self.dtype, part)

    def state(self) -> State:
        """Copies of all that the next round needs."""
        self._settle()
        n = self._n_features
        kept = {} if self._experts is None else self._experts.parts()
        learner = {
            name: self._unsorted(kept[name] if name in kept else self._run.array(name)[:, :n]) for name in self._parts
        }
        memory = self._unsorted(self._run.array("memory").reshape(self.n_agents, -1))
        broadcast = self._unsorted(self._run.array("broadcast")[:, :n])
        return make_state(self.round, learner, broadcast, self.learner.channel, memory)

    def release(self) -> State:
        """The last state, which takes the engine's memory over as it is: nothing can be learned any more."""
        self._settle()
        n, run = self._n_features, self._run
        rows = {name: run.array(name) for name in (*_ROWS, "broadcast", "memory") if getattr(run, name) is not None}
        kept = {} if self._experts is None else self._experts.parts()
        del run, self._run, self._experts, self._workers  # before more memory is asked for
        learner = {
            name: self._unsorted(kept.pop(name)) if name in kept else self._handed(rows.pop(name), n)
            for name in self._parts
        }
        memory = self._unsorted(rows["memory"].reshape(self.n_agents, -1))
        return make_state(self.round, learner, self._handed(rows.pop("broadcast"), n), self.learner.channel, memory)

    def _handed(self, rows: Array, length: int) -> Array:
        """The kernels' rows in the order of the agents and without their padding, in the memory that they are in."""
        return closed_up(rows, length, self._rank if self._order.size else None)

    def _settle(self) -> None:
        """Let everybody combine what was sent last, which would otherwise wait for the next round."""
        if self._run.pending:
            nothing = np.empty((0, self.n_agents), self.dtype)
            stream = Stream.make(self._run, nothing, rates=np.zeros(1, self.dtype))
            self._workers.everywhere(stream, COMBINE, 0)
            self._run.pending = 0.0

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of ``X`` (T, N, d), or of features (T, N, 2L) if ``mapped``, with labels ``y`` (T, N)."""
        n_rounds, order, run = len(y), self._order, self._run
        if order.size:  # in a loop of its own: amid a round, each of these reads and writes would be waited for
            X, y = X[:, order], y[:, order]
        stream = Stream.make(
            run,
            plain(y, self.dtype),
            collective=self._collective,
            mapped=mapped,
            samples=plain(X, self.dtype),
            rates=rates(self.learner, self.round, n_rounds, self.dtype),
        )
        limits = thresholds(self.learner, self.round, n_rounds)
        if limits.size:
            stream.put(thresholds=limits)
        del X, y
        status, row = self._workers.run(stream, n_rounds)
        finished = n_rounds if status == endings.FINISHED else row // self.n_agents
        self.round += finished
        columns = record_of(run, stream, finished)
        del stream  # before there is a second copy of what was recorded
        agent = row % self.n_agents
        if order.size:
            columns = {name: self._back(column) for name, column in columns.items()}
            agent = int(order[agent])
        return Chunk(columns, finished, _ENDINGS[status], agent)

    def _back(self, column: Array) -> Array:
        """What was recorded of rows, in the order of the agents; often all have sent, and nothing is outside."""
        told = column.dtype in (np.bool_, np.int32)
        alike = column.ndim < 2 or not column.size or (told and column.min() == column.max())
        return column if alike else np.asarray(column[:, self._rank])


def make_experts(learner: Learner, run: Run, n_agents: int) -> ExpertArrays | None:
    """What the learner keeps beside its rows; None if that is nothing."""
    kernel = learner.kernel()
    if kernel is None or kernel.experts is None:
        return None
    experts = ExpertArrays.make(kernel.experts, learner.loss, n_agents, run.n_features, run.size)
    run.put(experts=experts)
    return experts
