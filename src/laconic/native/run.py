"""A run in the core: its numbers, its graph, what its agents hold, and room to work in.

The structures are those of ``core/run.h``. The simulator has one ``Run`` for all agents. A running agent is a ``Run``
of one agent and the replicas of its neighbours; a process of an MPI job has its agents and the replicas of others.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Budget, EntropyQuantizer, Quantizer, longest_message
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.base import SPOKEN, Voting
from laconic.losses import Loss
from laconic.native.arrays import VECTOR_BYTES, aligned
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, library
from laconic.native.features import FeatureMap


def _numbered(function_name: str) -> dict[str, int]:
    """The names of an enumeration of the core, numbered as there."""
    core = library()
    if core is None:
        return {}
    names = core[function_name]
    names.restype = ctypes.c_char_p
    return {name: k for k, name in enumerate(names().decode().split())}


LOSSES, STEPS = _numbered("loss_names"), _numbered("learner_names")
_DUAL = {STEPS.get(name) for name in ("linearized", "proximal")}
_COMBINE_LAST = {STEPS.get(name) for name in ("adapt-then-combine", "experts")}

# Enumerations of core/run.h.
DENSE, RISE, TREAD, ENTROPY = range(4)
_ROUNDINGS = {"rise": RISE, "tread": TREAD}
BY_ROUND, BY_MESSAGE, BY_BIT = range(3)
SILENT, SENT, SAME = range(3)
FINISHED, BAD_INPUT, DIVERGED, AGAIN, SPOILED = range(5)

_CACHED = 1 << 21  # bytes of models, as in core/rounds.c
_MOST_HALVED = 4  # vectors of a row: of more than these half a one is too little


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


@final
class ExpertArrays(Structure):
    """``Experts``: the models of all experts of some agents."""

    _fields_: ClassVar[Any] = [
        *_fields(INTEGER, "n_steps n_forgetting"),
        *_fields(REAL, "ridge scale"),
        *_fields(INTEGER, "curved"),
        *_fields(POINTER, "steps forgetting models votes spread numbers"),
    ]

    @classmethod
    def make(cls, voting: Voting, loss: Loss, n_agents: int, n_features: int, size: int) -> ExpertArrays:
        """Experts that know nothing yet."""
        n_experts = len(voting.steps) + len(voting.forgetting)
        made: ExpertArrays = cls.of(
            n_steps=len(voting.steps),
            n_forgetting=len(voting.forgetting),
            ridge=voting.ridge,
            scale=max(1.0, loss.curvature),
            curved=loss.curvature > 0,
            steps=np.array(voting.steps, dtype=np.float64),
            forgetting=np.array(voting.forgetting, dtype=np.float64),
            models=aligned(n_agents * n_experts, size, np.float64),
            votes=np.zeros((n_agents, n_experts)),
            spread=aligned(n_agents * len(voting.forgetting) * size, size, np.float64),
            numbers=np.zeros((n_agents, 2)),
        )
        made.shape = n_agents, n_features, size
        return made

    shape: tuple[int, int, int]

    def _places(self) -> dict[str, Array]:
        """Views, by the names of the learner's state; of matrices all tiles, of which those above are not written."""
        n, D, size = self.shape
        return {
            "models": self.array("models").reshape(n, -1, size)[:, :, :D],
            "votes": self.array("votes"),
            "spread": self.array("spread").reshape(n, self.n_forgetting, size, size)[:, :, :D, :D],
            "cost": self.array("numbers")[:, 0],
            "seen": self.array("numbers")[:, 1],
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


@final
class Run(Structure):
    """``Run``: the numbers of a learner and its channel, its graph, and the state of its agents."""

    _fields_: ClassVar[Any] = [
        *_fields(INTEGER, "algorithm loss unit n_features size n_agents n_rows n_replicas senders_only"),
        *_fields(INTEGER, "rounding cells bits message_bits budget"),
        *_fields(REAL, "rho shrink mixing clip low high coarseness dead_zone income burst gain"),
        *_fields(POINTER, "starts neighbours combination distant_starts distant"),
        *_fields(INTEGER, "n_groups"),
        *_fields(POINTER, "weights duals broadcast mask sums"),
        *_fields(INTEGER, "sums_size"),
        *_fields(POINTER, "spoken memory experts tops mean errors distances totals"),
        *_fields(INTEGER, "n_parts"),
        *_fields(REAL, "largest scale peak pending error_top distance_top"),
        *_fields(INTEGER, "error_units distance_units"),
    ]

    @property
    def dual(self) -> bool:
        """Whether agents have duals."""
        return self.algorithm in _DUAL

    @property
    def combines_last(self) -> bool:
        """Whether agents combine when all have sent; else at the beginning of the next round."""
        return self.algorithm in _COMBINE_LAST


def make_run(learner: Learner, features: RandomFeatures, n_agents: int, dtype: Any) -> Run:
    """A run with the learner's numbers, rounded to the working precision, and without agents."""
    kernel, loss, channel = learner.kernel(), learner.loss.kernel, learner.channel
    assert kernel is not None and loss is not None  # ``supports`` has been asked
    quantizer = channel.quantizer if channel else None

    def real(value: float) -> float:
        return float(np.dtype(dtype).type(value))

    run: Run = Run.of(
        algorithm=STEPS[kernel.step],
        loss=LOSSES[loss],
        unit=features.unit,
        n_features=features.n_features,
        n_agents=n_agents,
        senders_only=learner.listen == SPOKEN,
        message_bits=(channel.message_bits(features.n_features) or 0) if channel else 0,
        rho=real(kernel.rho),
        shrink=real(learner.shrink(n_agents)),
        mixing=real(kernel.mixing),
        clip=float(kernel.reach),
    )
    if isinstance(quantizer, Quantizer):
        low, high = (0.0, 0.0) if isinstance(quantizer.range, str) else quantizer.range
        run.put(rounding=_ROUNDINGS[quantizer.rounding], cells=quantizer.cells, bits=quantizer.bits)
        run.put(low=real(low), high=real(high))
    if isinstance(quantizer, EntropyQuantizer):
        run.put(rounding=ENTROPY, coarseness=quantizer.coarseness, dead_zone=quantizer.dead_zone)
    censor = channel.censor if channel else None
    if isinstance(censor, Budget):
        run.put(budget=BY_BIT if censor.in_bits else BY_MESSAGE)
        run.put(income=censor.income, burst=censor.most, gain=censor.gain)
    return run


def halved(n_rows: int, length: int, dtype: Any) -> bool:
    """Whether rows of ODKLA end with half a vector, where they may.

    They do where they are too many for the cache and an eighth of each or more is saved: then there is less to be
    waited for. Where it counts among the vectors that are summed by fours, the last one has to be whole.

    Examples
    --------
    >>> halved(10**6, 20, np.float32), halved(10**6, 100, np.float32), halved(100, 20, np.float32)
    (True, False, False)
    """
    width = VECTOR_BYTES // np.dtype(dtype).itemsize
    n_vectors, spare = -(-length // width), -length % width
    saves = spare >= width // 2 and n_vectors <= _MOST_HALVED and n_vectors % 4 != 0
    return saves and n_rows * n_vectors * VECTOR_BYTES > _CACHED


def add_agents(run: Run, n_rows: int, n_elsewhere: int, n_parts: int, dtype: Any, *, clips: bool, half: bool) -> None:
    """Rows of zeros for agents that learn here, and for replicas of those elsewhere; and sums in some parts."""
    d, everywhere = run.n_features, n_rows + n_elsewhere
    weights, broadcast = aligned(n_rows, d, dtype, half=half), aligned(everywhere, d, dtype, half=half)
    size, mask = weights.shape[1], aligned(1, d, dtype)
    mask[:, :d].view(np.uint8)[:] = 255
    tops = aligned(n_parts, d, dtype)
    run.put(size=size, n_rows=n_rows, n_replicas=everywhere, weights=weights, broadcast=broadcast, mask=mask)
    if run.dual:
        run.put(duals=aligned(n_rows, d, dtype, half=half))
    if clips:
        run.put(sums=aligned(everywhere, size, np.float64), sums_size=size)
    run.put(spoken=np.zeros(everywhere, dtype=np.uint8), n_parts=n_parts, tops=tops)
    run.put(totals=np.zeros(tops.shape, dtype=np.int64), mean=aligned(1, d, dtype))
    run.put(errors=np.zeros(n_rows, dtype=dtype), distances=np.zeros(n_rows, dtype=dtype))


@final
class Scratch(Structure):
    """``Scratch``: room to work in, so that nothing is allocated in a round; one for each thread."""

    _fields_: ClassVar[Any] = [
        *_fields(POINTER, "features"),
        *_fields(INTEGER, "n_rows"),
        *_fields(POINTER, "phases lifted phi pull innovation spare lengths expert codes written units tops totals"),
    ]

    @classmethod
    def make(cls, run: Run, features: FeatureMap, n_rows: int, dtype: Any, part: int = 0) -> Scratch:
        """Room for the features of ``n_rows`` rows, and for one part of the sums."""
        dtype, d = np.dtype(dtype), run.n_features
        tops, totals = run.array("tops"), run.array("totals")
        size = tops.shape[1]
        starts = run.array("starts")
        degree = int(np.diff(starts).max(initial=1)) if run.clip else 0
        made: Scratch = cls.of(
            features=features,
            n_rows=n_rows,
            phases=aligned(n_rows, features.n_frequencies, dtype),
            lifted=aligned(n_rows if features.scaled else 0, features.n_lifted, dtype, padded=False),
            phi=aligned(n_rows, d, dtype),
            pull=aligned(1, d, dtype),
            innovation=aligned(1, d, dtype),
            spare=aligned(1, d, dtype),
            lengths=np.zeros(3 * degree),
            units=np.zeros(size, dtype=np.int32 if dtype.itemsize == 4 else np.int64),
            tops=tops[part],
            totals=totals[part],
        )
        if run.rounding == ENTROPY:
            made.put(codes=np.zeros(d, dtype=np.int64), written=np.zeros(longest_message(d), dtype=np.uint8))
        if run.experts:
            experts = run.structure("experts")
            made.put(expert=aligned(1, 3 * size + experts.n_steps + experts.n_forgetting, np.float64))
        return made


@final
class Stream(Structure):
    """``Stream``: the samples of a chunk of rounds, and what is recorded of them."""

    _fields_: ClassVar[Any] = [
        *_fields(INTEGER, "n_rounds mapped"),
        *_fields(POINTER, "samples labels rates thresholds predictions sent outside"),
        *_fields(POINTER, "consensus energy replica_error message_sizes squares losses"),
    ]

    @classmethod
    def make(cls, run: Run, labels: Array, *, collective: bool = False, **given: Any) -> Stream:
        """A chunk of as many rounds as there are rows of labels, with room for its record."""
        shape, dtype = labels.shape, labels.dtype
        made: Stream = cls.of(
            n_rounds=len(labels),
            labels=labels,
            predictions=np.empty(shape, dtype=dtype),
            sent=np.zeros(shape, dtype=np.bool_),
            outside=np.zeros(shape, dtype=np.int32),
            consensus=np.empty(len(labels)),
            energy=np.empty(len(labels)),
            replica_error=np.empty(len(labels)),
            **given,
        )
        if run.rounding == ENTROPY:
            made.put(message_sizes=np.zeros(shape, dtype=np.int64))
        if collective:
            made.put(squares=np.empty(shape), losses=np.empty(shape))
        return made
