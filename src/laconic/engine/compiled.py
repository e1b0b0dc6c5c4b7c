"""The compiled engine: translates learner, features and network into the kernels' arrays and runs chunks of rounds.

Importing this module imports numba; ``laconic.engine`` does that only when a compiled run is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import longest_message
from laconic.engine import ahead, coding, endings, linearized, moving, rounds, settling, steps, summing
from laconic.engine.ahead import with_distant
from laconic.engine.chunk import COLUMNS, Chunk, first_memory, first_state, make_state
from laconic.engine.lifting import Front
from laconic.engine.planning import goes_abreast, make_plan, run_stages
from laconic.engine.support import kernel_of, supports
from laconic.engine.timetable import rates, thresholds
from laconic.engine.vectors import VECTOR_BYTES
from laconic.engine.voting import Panel
from laconic.engine.workers import Call, Worker, Workers
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.base import Voting
from laconic.losses import Loss
from laconic.network import Network
from laconic.trace import State

_BLOCK_ROWS = 128  # features computed ahead of the learner: they stay in the second-level cache
_CACHE_LINE = 64
_MOST_HALVED = 4  # vectors of a row: of more than these half a one is too little
_MOVED_ROWS = 65536  # at a time, when padding is taken out
_NO_ORDER = np.empty(0, dtype=np.int32)
_NOTHING = np.empty(0)
_ENDINGS = {endings.FINISHED: None, endings.BAD_INPUT: "bad input", endings.DIVERGED: "diverged"}


def padded(rows: Array, dtype: Any) -> Array:
    """A copy of ``rows`` whose length is rounded up to whole vector registers with zeros."""
    n_rows, length = rows.shape
    copy = aligned(n_rows, length, dtype)
    copy[:, :length] = rows
    return copy


def aligned(n_rows: int, length: int, dtype: Any, *, half: bool = False) -> Array:
    """Rows of zeros, padded to whole vectors, that start on a cache line: no vector straddles two of them.

    Or to ``half`` vectors. Then some straddle, and what is behind a row may be read as if it belonged to it.
    """
    width = VECTOR_BYTES // np.dtype(dtype).itemsize // (2 if half else 1)
    shape = (n_rows, -(-length // width) * width)
    n_bytes = n_rows * shape[1] * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + _CACHE_LINE + VECTOR_BYTES, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % _CACHE_LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def halved(n_rows: int, length: int, dtype: Any) -> bool:
    """Whether rows that are learned abreast end with half a vector, where they may.

    They do where they are too many for the cache and an eighth of each or more is saved: then there is less to be
    waited for. Where it counts among the vectors that are summed by fours, the last one has to be whole.

    Examples
    --------
    >>> halved(10**6, 20, np.float32), halved(10**6, 100, np.float32), halved(100, 20, np.float32)
    (True, False, False)
    """
    itemsize = np.dtype(dtype).itemsize
    width = VECTOR_BYTES // itemsize
    n_vectors, spare = -(-length // width), -length % width
    saves = spare >= width // 2 and n_vectors <= _MOST_HALVED and n_vectors % 4 != 0
    return saves and n_rows * n_vectors * VECTOR_BYTES > ahead.CACHED


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


def _plain(array: Array, dtype: Any) -> Array:
    """``array`` as the kernels know it, a copy if need be; for one that is read-only they would be compiled again."""
    return np.require(array, dtype, ["C", "A", "W", "E"])


def map_features(features: RandomFeatures, X: Array, dtype: Any = np.float64) -> Array:
    """phi of each row of ``X`` (n, d), padded to whole vectors: the bits that a simulated or running agent computes."""
    dtype = np.dtype(dtype)
    rows = _plain(X, dtype)
    frequencies = padded(features.frequencies.T, dtype)
    phases = aligned(_BLOCK_ROWS, features.n_frequencies, dtype)
    phi = aligned(len(rows), features.n_features, dtype)
    scale = dtype.type(features.n_frequencies**-0.5)
    front = make_front(features, _BLOCK_ROWS, dtype)
    if not rounds.map_rows(front, rows, frequencies, features.n_frequencies, scale, phases, phi):
        raise ValueError("X holds values too large for the feature map.")
    return phi


def make_front(features: RandomFeatures, n_rows: int, dtype: Any) -> Front:
    """What stands before the product of this map, with room for ``n_rows`` inputs."""
    scaling = features.scaling
    if scaling is None:
        nothing = np.zeros(0)
        return Front(np.zeros(0, dtype=np.int64), nothing, nothing, np.zeros((0, 0), dtype=dtype), 0, False, 0.0, 0.0)
    kept = scaling.columns.astype(np.int64)
    room = np.zeros((n_rows, scaling.n_lifted), dtype=dtype)
    centre, scale = scaling.centre[kept], scaling.scale[kept]
    return Front(kept, centre, scale, room, features.n_direct, features.linear, scaling.share, scaling.reach)


@final
class Experts:
    """What the experts of some agents keep beside their mixture, in the kernels' arrays."""

    def __init__(self, voting: Voting, loss: Loss, n_agents: int, n_features: int, size: int) -> None:
        self._n_agents, self._n_features, self._size = n_agents, n_features, size
        n_experts = len(voting.steps) + len(voting.forgetting)
        self.arrays = Panel(
            aligned(n_agents * n_experts, size, np.float64),
            np.zeros((n_agents, n_experts)),
            aligned(n_agents * len(voting.forgetting) * size, size, np.float64),
            np.zeros((n_agents, 2)),
            np.array(voting.steps, dtype=np.float64),
            np.array(voting.forgetting, dtype=np.float64),
            np.array([voting.ridge, max(1.0, loss.curvature), n_features, loss.curvature > 0]),
            aligned(1, size, np.float64),
            aligned(1, size, np.float64),
            aligned(1, size, np.float64),
            np.zeros((1, n_experts)),
        )

    def for_thread(self) -> Panel:
        """The same arrays, with room of their own to work in."""
        rooms = ("phi", "gain", "column", "margins")
        return self.arrays._replace(**{name: getattr(self.arrays, name).copy() for name in rooms})

    def _places(self) -> dict[str, Array]:
        """Views, by the names of the learner's state; of matrices all tiles, of which those above are not written."""
        n, D, size, arrays = self._n_agents, self._n_features, self._size, self.arrays
        return {
            "models": arrays.models.reshape(n, -1, size)[:, :, :D],
            "votes": arrays.votes,
            "spread": arrays.spread.reshape(n, arrays.forgetting.size, size, size)[:, :, :D, :D],
            "cost": arrays.numbers[:, 0],
            "seen": arrays.numbers[:, 1],
        }

    def part(self, name: str) -> Array:
        """A copy of the part of that name, a row an agent."""
        place = self._places()[name]
        if name != "spread":
            return place.copy()
        lower = np.tril(place)
        return np.asarray(lower + np.tril(lower, -1).swapaxes(2, 3))

    def parts(self) -> dict[str, Array]:
        """Copies of all parts."""
        return {name: self.part(name) for name in self._places()}

    def restore(self, parts: Mapping[str, Array]) -> None:
        """Take over what ``parts`` gave, all or some of it."""
        places = self._places()
        for name in places.keys() & parts.keys():
            places[name][:] = parts[name]


def make_panel(learner: Learner, n_agents: int, n_features: int, dtype: Any) -> Experts | None:
    """What the learner keeps beside its rows; None if that is nothing."""
    voting = kernel_of(learner).experts
    if voting is None:
        return None
    size = aligned(1, n_features, dtype).shape[1]
    return Experts(voting, learner.loss, n_agents, n_features, size)


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
        self._plan = make_plan(learner, features, network.n_agents, self.dtype.type)
        self._frequencies = padded(features.frequencies.T, self.dtype)
        self._n_features = features.n_features
        self._dual = self._plan.algorithm in (steps.LINEARIZED, steps.PROXIMAL)
        self._abreast = goes_abreast(self._plan, collective)
        # A run of collective scores is small, and every row of it needs every other.
        self._order = _NO_ORDER if collective or network.numbering is None else network.numbering.astype(np.int32)
        self._rank = np.empty_like(self._order)
        self._rank[self._order] = np.arange(len(self._order), dtype=np.int32)
        self._graph = make_graph(network, self._order, self._rank, self.dtype, weighted=not self._dual)
        self._restore(state)
        self._graph = with_distant(self._graph, self._rows)
        self._workers = Workers(self._make_scratch, self._panel, self.n_agents, threads, self._sums)

    def _restore(self, state: State | None) -> None:
        first = first_state(self.learner, self.network, self._n_features, self.dtype, state, copy=False)
        memory = first_memory(self.learner, self.n_agents, state)
        self.round, self._parts = first.round, tuple(first.learner)
        n, d = self.n_agents, self._n_features
        self._panel = make_panel(self.learner, n, d, self.dtype)
        half = self._abreast and halved(n, d, self.dtype)
        clips = "sums" in first.learner
        rows = make_rows(self._plan, n, 0, self.dtype, clips=clips, keeps=not self._abreast, half=half)
        self._rows: Any = rows._replace(memory=np.ascontiguousarray(self._sorted(memory)).ravel())
        places = {"weights": self._rows.weights, "duals": self._rows.duals, "sums": self._rows.sums}
        for name, array in first.learner.items():
            if name in places and (state is not None or np.any(array)):  # zeros are there already, and cost no copy
                places[name][:, :d] = self._sorted(array)
        if state is not None:
            self._rows.broadcast[:, :d] = self._sorted(first.broadcast)
        if self._panel is not None:
            self._panel.restore({name: self._sorted(array) for name, array in first.learner.items()})
        # A model cannot predict beyond its norm, so a resumed run starts from that yardstick of divergence.
        weights, peak = self._rows.weights, 0.0
        self.energy_before = 0.0
        if state is not None:
            if half:  # sums depend on where whole rows begin
                weights = padded(self._sorted(first.learner["weights"]), self.dtype)
            self.energy_before = float(np.einsum("ij,ij->", weights, weights, dtype=np.float64))
            peak = float(np.abs(weights).max())
        self._sums = make_sums(self._plan, n, self._threads, self.dtype)
        self._sums.numbers[rounds.LARGEST] = np.sqrt(self.energy_before)
        self._sums.numbers[rounds.SCALE] = summing.scale_of(peak, n, self.dtype.itemsize)

    def _sorted(self, array: Array) -> Array:
        """Agents' rows in the order of the kernels."""
        return np.asarray(array)[self._order] if self._order.size else array

    def _unsorted(self, rows: Array) -> Array:
        """A copy of the kernels' rows in the order of the agents."""
        return np.asarray(rows[self._rank] if self._order.size else rows.copy())

    def __reduce__(self) -> Any:
        # Aligned rows do not survive a pickle: the copy is made anew from the state, as a resumed run.
        parts = (self.learner, self.features, self.network, self.dtype.name, self.state(), self._collective)
        return Compiled, parts, (self.energy_before, float(self._sums.numbers[rounds.LARGEST]))

    def __setstate__(self, kept: tuple[float, float]) -> None:
        self.energy_before, self._sums.numbers[rounds.LARGEST] = kept

    def _make_scratch(self, units: Array, tops: Array, totals: Array) -> tuple[rounds.Scratch, Front]:
        whole = max(1, _BLOCK_ROWS // self.n_agents)
        if whole > 4:
            whole -= whole % 4  # whole register tiles
        # Collective scores need a whole round of features at once.
        n_rows = whole * self.n_agents if whole > 1 or self._collective else min(_BLOCK_ROWS, self.n_agents)
        scratch = make_scratch(self._plan, self.features, n_rows, self.dtype, units, tops, totals)
        return scratch, make_front(self.features, n_rows, self.dtype)

    def state(self) -> State:
        """Copies of all that the next round needs."""
        self._settle()
        n = self._n_features
        kept = {} if self._panel is None else self._panel.parts()
        learner = {
            name: self._unsorted(kept[name] if name in kept else getattr(self._rows, name)[:, :n])
            for name in self._parts
        }
        memory = self._unsorted(self._rows.memory.reshape(self.n_agents, -1))
        broadcast = self._unsorted(self._rows.broadcast[:, :n])
        return make_state(self.round, learner, broadcast, self.learner.channel, memory)

    def release(self) -> State:
        """The last state, which takes the engine's memory over as it is: nothing can be learned any more."""
        self._settle()
        n, rows = self._n_features, self._rows._replace(codes=_NOTHING, scales=_NOTHING)
        kept = {} if self._panel is None else self._panel.parts()
        del self._rows, self._panel, self._workers, self._graph, self._sums  # before more memory is asked for
        learner = {
            name: self._unsorted(kept.pop(name)) if name in kept else self._handed(getattr(rows, name), n)
            for name in self._parts
        }
        memory = self._unsorted(rows.memory.reshape(self.n_agents, -1))
        return make_state(self.round, learner, self._handed(rows.broadcast, n), self.learner.channel, memory)

    def _handed(self, rows: Array, length: int) -> Array:
        """The kernels' rows in the order of the agents and without their padding, in the memory that they are in."""
        return closed_up(rows, length, self._rank if self._order.size else None)

    def _settle(self) -> None:
        """Let everybody hear what was said last, which would otherwise wait for the next round."""
        if self._sums.numbers[rounds.PENDING]:
            samples, labels = (
                np.empty((0, self.features.n_inputs), self.dtype),
                np.empty((0, self.n_agents), self.dtype),
            )
            call = self._call(samples, labels, False, self._record(0), self._scores(0))
            self._workers.everywhere(call, rounds.HEAR, 0)
            self._sums.numbers[rounds.PENDING] = 0.0

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

    def _scores(self, n_rounds: int) -> tuple[Array, Array]:
        shape = (n_rounds, self.n_agents if self._collective else 0)
        return np.empty(shape), np.empty(shape)

    def _call(
        self, samples: Array, labels: Array, mapped: bool, record: rounds.Columns, scores: tuple[Array, Array]
    ) -> Call:
        """The kernel with all its arguments but those that differ from thread to thread and from stage to stage."""
        n_rounds = len(labels)
        step = rates(self.learner, self.round, n_rounds, self.dtype)
        limits = thresholds(self.learner, self.round, n_rounds)
        stream = samples, mapped, labels, self._frequencies, step, limits

        def call(worker: Worker, stages: int, begin: int, end: int, first: int, last: int) -> tuple[int, int]:
            where = stages, begin, end, first, last
            about = self._plan, self._graph, worker.front, self._rows
            kept = worker.scratch, self._sums, record
            return run_stages(self._abreast, where, about, worker.panel, kept, scores, stream)

        return call

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of ``X`` (T, N, d), or of features (T, N, 2L) if ``mapped``, with labels ``y`` (T, N)."""
        n_rounds, order = len(y), self._order
        if order.size:  # in a loop of its own: amid a round, each of these reads and writes would be waited for
            X, y = moving.taken(X, order), moving.taken(y, order)
        samples = _plain(X.reshape(n_rounds * self.n_agents, X.shape[2]), self.dtype)
        labels = _plain(y, self.dtype)
        record, scores = self._record(n_rounds), self._scores(n_rounds)
        status, row = self._workers.run(self._call(samples, labels, mapped, record, scores), n_rounds, self._last)
        del X, y, samples, labels  # before there is a second copy of what was recorded
        finished = n_rounds if status == endings.FINISHED else row // self.n_agents
        self.round += finished
        found = zip(COLUMNS, (*record[:-1], *(scores if self._collective else ())), strict=False)
        columns = {name: column[:finished] for name, column in found}
        if self._plan.rounding == coding.ENTROPY:
            columns["message_sizes"] = record.bits[:finished]
        agent = row % self.n_agents
        if order.size:
            columns = {name: self._back(column) for name, column in columns.items()}
            agent = int(order[agent])
        return Chunk(columns, finished, _ENDINGS[status], agent)

    def _back(self, column: Array) -> Array:
        """What was recorded of rows, in the order of the agents; often all have spoken, and nothing is outside."""
        told = column.dtype in (np.bool_, np.int32)
        alike = column.ndim < 2 or not column.size or (told and column.min() == column.max())
        return column if alike else moving.taken(column, self._rank)

    @property
    def _last(self) -> bool:
        """Whether it combines when all have spoken."""
        return self._panel is not None or self._plan.algorithm == steps.ADAPT_THEN_COMBINE


def make_graph(network: Network, order: Array, rank: Array, dtype: Any, *, weighted: bool) -> rounds.Graph:
    """The graph of rows that are agents in this ``order``; each list of neighbours stays in the order that it has."""
    starts, neighbours = network.starts, network.neighbours
    combination = network.combination if weighted else np.empty(0)
    if order.size:
        starts, neighbours = moving.listed(network.starts, network.neighbours, order, rank)
        if weighted:
            entries = np.repeat(network.starts[order] - starts[:-1], np.diff(starts)) + np.arange(len(neighbours))
            combination = combination[entries]
    return rounds.Graph(starts, neighbours.astype(np.int32, copy=False), combination.astype(dtype))


def make_rows(
    plan: rounds.Plan, n_rows: int, n_ghosts: int, dtype: Any, *, clips: bool, keeps: bool, half: bool = False
) -> rounds.Rows:
    """Rows of zeros for agents that learn here, and replicas of those that learn elsewhere.

    Who does not ``keep`` codes finds them again (``settling``), or has nobody elsewhere to tell them. ``half``: see
    ``halved``.
    """
    d, everywhere = plan.n_features, n_rows + n_ghosts
    dual = plan.algorithm in (steps.LINEARIZED, steps.PROXIMAL)
    weights, broadcast = aligned(n_rows, d, dtype, half=half), aligned(everywhere, d, dtype, half=half)
    size = weights.shape[1]
    planes = 0 if plan.rounding == coding.DENSE else 1 + (plan.cells > 256 or plan.rounding == coding.ENTROPY)
    return rounds.Rows(
        weights,
        aligned(n_rows if dual else 0, d, dtype, half=half),
        broadcast,
        aligned(everywhere if clips else 0, size, np.float64),
        np.zeros(everywhere, dtype=np.uint8),
        np.zeros((everywhere if planes and keeps else 0, planes * size), dtype=np.uint8),
        np.zeros(everywhere if planes and keeps else 0, dtype=np.float32),
        np.zeros(0),
    )


def make_scratch(
    plan: rounds.Plan,
    features: RandomFeatures,
    n_rows: int,
    dtype: Any,
    units: Array,
    tops: Array,
    totals: Array,
) -> rounds.Scratch:
    """Room for the features of ``n_rows`` rows, and for what is done with some of them."""
    width, d = VECTOR_BYTES // np.dtype(dtype).itemsize, features.n_features
    mask = aligned(1, d, dtype)
    mask[:, :d].view(np.uint8)[:] = 255
    return rounds.Scratch(
        aligned(n_rows, features.n_frequencies, dtype),
        aligned(n_rows, d, dtype),
        aligned(width, d, dtype),
        aligned(width, d, dtype),
        aligned(1, d, dtype),
        mask,
        aligned(width, width, dtype),
        aligned(width, width, dtype),
        aligned(max(linearized.N_LEARNED, settling.N_SETTLED), width, dtype),
        *room_for_codes(plan.rounding, d),
        units,
        tops,
        totals,
    )


def make_sums(plan: rounds.Plan, n_rows: int, n_parts: int, dtype: Any) -> rounds.Sums:
    """Room for the sums over agents, in as many parts as there are threads."""
    tops = aligned(n_parts, plan.n_features, dtype)
    size = tops.shape[1]
    return rounds.Sums(
        tops,
        np.zeros((n_parts, size), dtype=np.int64),
        aligned(1, plan.n_features, dtype),
        np.zeros(n_rows, dtype=dtype),
        np.zeros(n_rows, dtype=dtype),
        np.zeros(rounds.N_NUMBERS),
        np.zeros(rounds.N_WHOLE, dtype=np.int64),
    )


def room_for_codes(rounding: int, n_features: int) -> tuple[Array, Array]:
    """Room for the codes and the bytes of a message, where these are an entropy code."""
    coded = rounding == coding.ENTROPY
    chosen = np.zeros(n_features if coded else 0, dtype=np.int64)
    return chosen, np.zeros(longest_message(n_features) if coded else 0, dtype=np.uint8)
