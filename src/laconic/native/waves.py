"""Recursive least squares in the core: rounds between waves, with arms or without, and the sums of an agent's data.

The functions take what the compiled entries of the same names take. A caller with many calls keeps a structure instead,
and calls the core with its address: ``Rounds`` for all agents, ``Rls`` and ``OwnSums`` for each of them.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np

from laconic._validate import Array
from laconic.engine.endings import DIVERGED, FINISHED
from laconic.native.arrays import aligned
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, address, function

_ROOM_ROWS = 5
_BLOCK_ROUNDS = 32


class _Core:
    """The functions of ``core/rls.c`` that are called here."""

    def __init__(self) -> None:
        rounds, none = (POINTER, INTEGER, INTEGER), {"result": None}
        self.finish = function("finish_matrix", POINTER, **none)
        self.replay = function("replay_samples", POINTER, POINTER, **none)
        self.adopt = function("adopt_model", POINTER, POINTER, POINTER, INTEGER, POINTER, POINTER, **none)
        self.predict = function("predict_sample", POINTER, INTEGER, INTEGER, POINTER, POINTER, **none)
        self.add_samples = function("add_samples", POINTER, POINTER, **none)
        self.watch_samples = function("watch_samples", POINTER, POINTER, **none)
        self.look_back = function("look_back", *[POINTER] * 5, INTEGER, **none)
        self.report = function("report_sums", POINTER, POINTER, POINTER, **none)
        self.copy_whole = function("copy_whole", POINTER, INTEGER, INTEGER, POINTER, **none)
        self.mix_arms = function("mix_arms", POINTER, POINTER, INTEGER, INTEGER, **none)
        self.measure = function("measure_models", POINTER, POINTER, INTEGER, POINTER)
        self.open_block = function("open_block", *rounds, **none)
        self.learn_block = function("learn_block", *rounds, INTEGER, INTEGER, POINTER)
        self.measure_block = function("measure_block", *rounds, INTEGER, POINTER)
        self.close_block = function("close_block", *rounds, INTEGER, INTEGER)
        self.advance = function("advance_rounds", *rounds, POINTER)


@functools.cache
def core() -> _Core:
    """The functions, looked up once."""
    return _Core()


# --------------------------------------------------------------------------------------------------------------------
# One agent
# --------------------------------------------------------------------------------------------------------------------


class Rls(Structure):
    """``Rls`` of ``core/rls.h``: one agent's models, its P, and u of P - u u'."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("size", "stride", "n_outputs")),
        ("forgetting", REAL),
        *((name, POINTER) for name in ("spread", "models", "pending", "gain")),
    ]


class Samples(Structure):
    """``Samples`` of ``core/rls.h``: rows ``first``, ``first + step``, .. before ``stop``."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("first", "step", "stop")),
        *((name, POINTER) for name in ("phi", "squares")),
    ]


def predict(phi: Array, weights: Array, predictions: Array) -> None:
    """Predictions of models of one agent, a row each, for the first row of ``phi``: the bits of its rounds."""
    core().predict(address(weights), predictions.size, weights.shape[1], address(phi), address(predictions))


def finish(spread: Array, left: Array, agent: int) -> None:
    """Subtract from an agent's P the product that is pending in its row of ``left``."""
    size = left.shape[1]
    own = spread[agent * size : (agent + 1) * size]
    core().finish(Rls.of(size=size, stride=spread.shape[1], spread=own, pending=left[agent]).address)


def _rls(
    spread: Array, weights: Array, agent: int, squares: Array, forgetting: float, gain: Array, pending: Array
) -> Rls:
    size, outputs = weights.shape[1], squares.shape[1] - 2
    made: Rls = Rls.of(
        size=size,
        stride=spread.shape[1],
        n_outputs=outputs,
        forgetting=forgetting,
        spread=spread[agent * size : (agent + 1) * size],
        models=weights[agent * outputs : (agent + 1) * outputs],
        pending=pending,
        gain=gain,
    )
    return made


def adopt(
    source: Array,
    models: Array,
    spread: Array,
    left: Array,
    weights: Array,
    theta: Array,
    agent: int,
    phi: Array,
    first: int,
    step: int,
    stop: int,
    squares: Array,
    forgetting: float,
    gain: Array,
) -> None:
    """P and w of a wave, a row an output, for an agent, and w is theta; then ``replay``."""
    own = _rls(spread, weights, agent, squares, forgetting, gain, left[agent])
    shared = theta[agent * own.n_outputs : (agent + 1) * own.n_outputs]
    since = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    source, models = np.ascontiguousarray(source), np.ascontiguousarray(models)
    core().adopt(own.address, address(source), address(models), models.shape[1], address(shared), since.address)


def replay(
    spread: Array,
    weights: Array,
    agent: int,
    phi: Array,
    first: int,
    step: int,
    stop: int,
    squares: Array,
    forgetting: float,
    gain: Array,
) -> None:
    """Learn samples again, in their order, from a model that a wave brought."""
    own = _rls(spread, weights, agent, squares, forgetting, gain, np.zeros(weights.shape[1]))
    since = Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares)
    core().replay(own.address, since.address)


# --------------------------------------------------------------------------------------------------------------------
# The sums of its data
# --------------------------------------------------------------------------------------------------------------------


class OwnSums(Structure):
    """``OwnSums`` of ``core/rls.h``: A, b, c and m of one agent, and sums over fresh samples."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("size", "n_features", "n_outputs", "n_scaled")),
        ("forgetting", REAL),
        *((name, POINTER) for name in ("information", "moments", "numbers", "watched", "sums", "scaled")),
    ]


class Report(Structure):
    """``Report`` of ``core/rls.h``: arguments and results of ``report``."""

    _fields_: ClassVar[Any] = [
        *((name, POINTER) for name in ("theta", "change", "made", "residual", "seen")),
        ("counted", INTEGER),
    ]


def add_samples(
    information: Array,
    moments: Array,
    numbers: Array,
    phi: Array,
    first: int,
    step: int,
    stop: int,
    squares: Array,
    forgetting: float,
    scaled: Array,
) -> None:
    """Add samples to A, b, c, m; with f < 1 all that came before shrinks by f each time."""
    sums = OwnSums.of(
        size=information.shape[1],
        n_outputs=len(moments),
        n_scaled=len(scaled),
        forgetting=forgetting,
        information=information,
        moments=moments,
        numbers=numbers,
        scaled=scaled,
    )
    core().add_samples(sums.address, Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares).address)


def watch(phi: Array, first: int, step: int, stop: int, squares: Array, watched: Array, sums: Array) -> None:
    """Sums of x = s e u.phi, of x^2 and of 1 over samples, a row an output; x is cut to three root mean squares."""
    own = OwnSums.of(size=watched.shape[1], n_outputs=len(sums), watched=watched, sums=sums)
    core().watch_samples(own.address, Samples.of(first=first, step=step, stop=stop, phi=phi, squares=squares).address)


def look_back(
    information: Array, moments: Array, numbers: Array, theta: Array, change: Array, residual: Array, seen: Array
) -> None:
    """b - A theta into ``residual``; c - 2 b.theta + theta'A theta and d'A d, d = ``change``, into rows of ``seen``."""
    outputs, n = theta.shape
    sums = OwnSums.of(
        size=information.shape[1],
        n_features=n,
        n_outputs=outputs,
        information=information,
        moments=moments,
        numbers=numbers,
        scaled=aligned(2, n, np.float64),
    )
    core().look_back(sums.address, *map(address, (theta, change, residual, seen)), seen.shape[1])


def report(
    information: Array,
    moments: Array,
    numbers: Array,
    phi: Array,
    added: int,
    counted: int,
    step: int,
    stop: int,
    squares: Array,
    forgetting: float,
    scaled: Array,
    watched: Array,
    sums: Array,
    theta: Array,
    change: Array,
    made: Array,
    residual: Array,
    seen: Array,
) -> float:
    """``add_samples`` from row ``added`` on, ``watch`` from ``counted`` on, then A's lower half and ``look_back``.

    A row of ``seen`` is c, then the two numbers of ``look_back``, then the first two of ``sums``. Returns m.
    """
    own = OwnSums.of(
        size=information.shape[1],
        n_features=theta.shape[1],
        n_outputs=len(moments),
        n_scaled=len(scaled),
        forgetting=forgetting,
        information=information,
        moments=moments,
        numbers=numbers,
        watched=watched,
        sums=sums,
        scaled=scaled,
    )
    samples = Samples.of(first=added, step=step, stop=stop, phi=phi, squares=squares)
    to = Report.of(theta=theta, change=change, made=made, residual=residual, seen=seen, counted=counted)
    core().report(own.address, samples.address, to.address)
    return float(numbers[0])


def whole(information: Array, made: Array) -> None:
    """All of a symmetric matrix from its tiles on and below the diagonal."""
    core().copy_whole(address(information), information.shape[1], len(made), address(made))


# --------------------------------------------------------------------------------------------------------------------
# Rounds between waves
# --------------------------------------------------------------------------------------------------------------------


class Arms(Structure):
    """``Arms`` of ``core/rls.h``: what the arms of all agents keep."""

    _fields_: ClassVar[Any] = [
        ("n_features", INTEGER),
        *((name, REAL) for name in ("forgetting", "ridge", "step")),
        *((name, POINTER) for name in ("models", "pair", "pair_spread", "recent", "recent_spread", "quick")),
        *((name, POINTER) for name in ("stack", "errors", "turns", "first", "shared", "adopted", "stacks")),
    ]


def make_arms(arms: Any) -> Arms:
    """The structure of the arrays that ``engine.personal.make_arms`` makes."""
    forgetting, ridge, step, n_features = arms.settings
    names = ("models", "pair", "pair_spread", "recent", "recent_spread", "quick", "stack", "errors", "turns", "first")
    made: Arms = Arms.of(
        n_features=int(n_features),
        forgetting=forgetting,
        ridge=ridge,
        step=step,
        **{name: getattr(arms, name) for name in names},
    )
    return made


class Rounds(Structure):
    """``Rounds`` of ``core/rls.h``: rounds in which no agent sends."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("n_agents", "n_outputs", "size", "stride", "n_rounds", "loss", "block")),
        ("forgetting", REAL),
        *((name, POINTER) for name in ("phi", "labels", "targets", "weights", "spread", "pending", "theta")),
        *((name, POINTER) for name in ("largest", "predictions", "squares", "found", "scores")),
        *((name, POINTER) for name in ("history", "scored", "limits", "arms")),
    ]

    @classmethod
    def over(
        cls, weights: Array, spread: Array, left: Array, theta: Array, loss: int, forgetting: float, arms: Any = None
    ) -> Rounds:
        """Rounds over the models and matrices of all agents, with room for a block of rounds."""
        n_agents, size = left.shape
        outputs = len(weights) // n_agents
        made: Rounds = cls.of(
            n_agents=n_agents,
            n_outputs=outputs,
            size=size,
            stride=spread.shape[1],
            loss=loss,
            block=_BLOCK_ROUNDS,
            forgetting=forgetting,
            weights=weights,
            spread=spread,
            pending=left,
            theta=theta,
            history=np.empty(((_BLOCK_ROUNDS + 1) * len(weights), size)),
            limits=np.empty(_BLOCK_ROUNDS + 1),
        )
        made.put(scored=made.array("history"))
        made._room = aligned(_ROOM_ROWS, size, np.float64)
        if arms is not None:
            made.put(arms=arms)
        return made

    def take(
        self, phi: Array, labels: Array, targets: Array, predictions: Array, squares: Array, found: Array, scores: Array
    ) -> None:
        """The samples of a chunk, and where to record what is found of them."""
        self.put(phi=phi, labels=labels, targets=targets, predictions=predictions, squares=squares, found=found)
        self.n_rounds = len(labels)
        if not scores.size:
            self.scores = None
            return
        self.put(scores=scores)
        if self.arms and self.array("scored") is self.array("history"):
            self.put(scored=np.empty((self.block * self.n_agents, self.size)))

    def advance(self, start: int, stop: int, largest: Array) -> tuple[int, int]:
        """Rounds ``start`` to ``stop``: how they ended, and the row at which they did."""
        self.put(largest=largest)
        row = core().advance(self.address, start, stop, address(self._room))
        return FINISHED if row == stop * self.n_agents else DIVERGED, row


def measure(weights: Array, outputs: int, theta: Array, mean: Array, found: Array, t: int) -> bool:
    """Distances of models after round ``t`` into its row of ``found``; False if their energy is not finite."""
    n_agents = len(weights) // outputs
    rounds = Rounds.of(n_agents=n_agents, n_outputs=outputs, size=weights.shape[1], theta=theta, found=found)
    return bool(core().measure(rounds.address, address(weights), t, address(mean)))


def quiet_rounds(
    phi: Array,
    labels: Array,
    start: int,
    stop: int,
    loss: int,
    forgetting: float,
    weights: Array,
    spread: Array,
    theta: Array,
    gain: Array,
    largest: Array,
    predictions: Array,
    squares: Array,
    found: Array,
    scores: Array,
    left: Array,
) -> tuple[int, int]:
    """Rounds ``start`` to ``stop`` in which no agent sends: how they ended, and the row at which they did.

    Row t N + i of ``phi`` and ``squares`` belongs to agent i in round t; ``labels`` and ``predictions`` are (T, N, K).
    ``found`` takes the three distances of every round, ``scores`` the collective ones, unless it is empty. ``left`` has
    a row for each agent: P of agent i is ``spread`` - u u', u its row.
    """
    rounds = Rounds.over(weights, spread, left, theta, loss, forgetting)
    rounds.take(phi, labels, labels, predictions, squares, found, scores)
    return rounds.advance(start, stop, largest)


def mix_arms(arms: Any, weights: Array) -> None:
    """The mixtures of all agents."""
    core().mix_arms(make_arms(arms).address, address(weights), *weights.shape)


def personal_rounds(
    phi: Array,
    labels: Array,
    clipped: Array,
    start: int,
    stop: int,
    loss: int,
    forgetting: float,
    weights: Array,
    spread: Array,
    arms: Any,
    shared: Array,
    adopted: Array,
    theta: Array,
    gain: Array,
    largest: Array,
    predictions: Array,
    squares: Array,
    found: Array,
    scores: Array,
    stacks: Array,
) -> tuple[int, int]:
    """``quiet_rounds`` where each agent stacks arms of its own.

    ``clipped`` are the labels as they are learned from. ``shared`` are the models for anybody's data, of agents that
    ``adopted`` one. ``stacks`` takes the weights with which each prediction was made.
    """
    own = make_arms(arms)
    own.put(shared=shared, adopted=adopted, stacks=stacks)
    rounds = Rounds.over(weights, spread, np.zeros_like(weights), theta, loss, forgetting, own)
    rounds.take(phi, labels, clipped, predictions, squares, found, scores)
    return rounds.advance(start, stop, largest)
