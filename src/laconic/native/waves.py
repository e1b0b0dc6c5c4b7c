"""Recursive least squares in the core: rounds between waves, with arms or without, and the sums of an agent's data.

A caller keeps the structures: ``Rounds`` and ``ArmArrays`` for all agents, ``OwnSums`` for each of them.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import byref
from typing import Any, ClassVar

import numpy as np

from laconic._validate import Array
from laconic.native.arrays import aligned
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, address, doubles, function
from laconic.native.run import DIVERGED, FINISHED, SPOILED

_BLOCK_ROUNDS = 32  # at most: each brings the matrices of a group from memory once
_GROUP_BYTES = 2**17  # of matrices, where four or more fit: models and samples are then read in longer runs


class _Core:
    """The functions of ``core/rls.c`` and ``core/own_sums.c``."""

    def __init__(self) -> None:
        rounds, none = (POINTER, INTEGER, INTEGER), {"result": None}
        self.finish = function("finish_agent", POINTER, INTEGER, **none)
        self.adopt = function("adopt_wave", POINTER, INTEGER, POINTER, POINTER, INTEGER, POINTER, **none)
        self.replay_arm = function("replay_arm", POINTER, INTEGER, INTEGER, POINTER, **none)
        self.predict = function("predict_sample", POINTER, INTEGER, INTEGER, POINTER, POINTER, **none)
        self.add = function("add_samples", POINTER, POINTER, **none)
        self.watch = function("watch_samples", POINTER, POINTER, **none)
        self.look_back = function("look_back", *[POINTER] * 5, INTEGER, **none)
        self.report = function("report_sums", POINTER, POINTER, POINTER, **none)
        self.copy_whole = function("copy_whole", POINTER, INTEGER, INTEGER, POINTER, **none)
        self.mix_arms = function("mix_arms", POINTER, POINTER, INTEGER, INTEGER, **none)
        self.measure = function("measure_models", POINTER, POINTER, INTEGER, POINTER)
        self.open_block = function("open_block", *rounds, **none)
        self.enter_block = function("enter_block", POINTER, INTEGER, **none)
        self.learn_block = function("learn_block", *rounds, POINTER)
        self.measure_block = function("measure_block", *rounds, POINTER)
        self.measure_again = function("measure_again", POINTER, INTEGER, POINTER)
        self.close_block = function("close_block", *rounds)
        self.settle_arms = function("settle_arms", POINTER, INTEGER, **none)
        self.advance = function("advance_rounds", *rounds, ctypes.c_int, POINTER)


@functools.cache
def core() -> _Core:
    """The functions, looked up once."""
    return _Core()


# --------------------------------------------------------------------------------------------------------------------
# The data of one agent
# --------------------------------------------------------------------------------------------------------------------


class Samples(Structure):
    """``Samples`` of ``core/rls.h``: rows ``first``, ``first + step``, .. before ``stop``."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("first", "step", "stop")),
        *((name, POINTER) for name in ("phi", "squares")),
    ]


class _Report(Structure):
    _fields_: ClassVar[Any] = [
        *((name, POINTER) for name in ("theta", "change", "made", "residual", "seen")),
        ("counted", INTEGER),
    ]


class OwnSums(Structure):
    """``OwnSums`` of ``core/rls.h``: A, b, c and m of one agent, and sums over fresh samples."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("size", "n_features", "n_outputs", "n_scaled")),
        ("forgetting", REAL),
        *((name, POINTER) for name in ("information", "moments", "numbers", "watched", "sums", "scaled")),
    ]

    @classmethod
    def over(
        cls, n_features: int, information: Array, moments: Array, numbers: Array, scaled: Array, forgetting: float = 1.0
    ) -> OwnSums:
        """The structure over an agent's arrays; ``scaled`` is room for two rows or more."""
        arrays = {"information": information, "moments": moments, "numbers": numbers, "scaled": scaled}
        sizes = {"size": information.shape[1], "n_features": n_features, "n_outputs": len(moments)}
        made: OwnSums = cls.of(**sizes, n_scaled=len(scaled), forgetting=forgetting, **arrays)
        return made

    def add(self, samples: Samples) -> None:
        """Add samples to A, b, c, m; with f < 1 all that came before shrinks by f each time."""
        core().add(byref(self), byref(samples))

    def watch(self, samples: Samples) -> None:
        """Add x = s e u.phi of fresh samples, x^2 and 1 to ``sums``; x is cut to three root mean squares."""
        core().watch(byref(self), byref(samples))

    def look_back(self, theta: Array, change: Array, residual: Array, seen: Array) -> None:
        """b - A theta into ``residual``; c - 2 b.theta + theta'A theta, and d'A d of d = ``change``, into ``seen``."""
        theta, change = np.ascontiguousarray(theta), np.ascontiguousarray(change)
        arrays = (address(array) for array in (theta, change, residual, seen))
        core().look_back(byref(self), *arrays, seen.shape[1])

    def report(
        self, samples: Samples, counted: int, theta: Array, change: Array, made: Array, residual: Array, seen: Array
    ) -> float:
        """``add`` samples, ``watch`` those from row ``counted`` on, copy A's lower half, ``look_back``; returns m.

        A row of ``seen`` is c, then the two numbers of ``look_back``, then the first two of ``sums``.
        """
        outputs, n = theta.shape
        theta, change = np.ascontiguousarray(theta), np.ascontiguousarray(change)
        arrays = [doubles(array, outputs, n) for array in (theta, change, residual)]
        to = _Report(*arrays[:2], doubles(made, n, n), arrays[2], doubles(seen, outputs, 5), counted)
        core().report(byref(self), byref(samples), byref(to))
        return float(self.array("numbers")[0])


# --------------------------------------------------------------------------------------------------------------------
# Rounds between waves
# --------------------------------------------------------------------------------------------------------------------


class ArmArrays(Structure):
    """``Arms`` of ``core/rls.h``: what the arms of all agents keep."""

    _fields_: ClassVar[Any] = [
        ("n_features", INTEGER),
        *((name, REAL) for name in ("forgetting", "ridge", "step")),
        *((name, POINTER) for name in ("models", "pair", "pair_spread", "recent", "recent_spread", "quick")),
        *((name, POINTER) for name in ("stack", "errors", "turns", "first", "pending", "raised")),
        *((name, POINTER) for name in ("shared", "adopted", "stacks")),
    ]

    def mix(self, weights: Array) -> None:
        """The mixtures of all agents."""
        core().mix_arms(byref(self), address(weights), *weights.shape)


class Rounds(Structure):
    """``Rounds`` of ``core/rls.h``: rounds in which no agent sends."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("n_agents", "n_outputs", "size", "stride", "n_rounds", "loss")),
        *((name, INTEGER) for name in ("block", "group", "opened", "until", "spoiled")),
        ("learned", POINTER),
        *((name, REAL) for name in ("forgetting", "largest")),
        *((name, POINTER) for name in ("phi", "labels", "targets", "weights", "spread", "pending", "theta")),
        *((name, POINTER) for name in ("predictions", "squares", "found", "scores")),
        *((name, POINTER) for name in ("history", "scored", "limits", "gain", "arms")),
    ]

    @classmethod
    def over(
        cls,
        weights: Array,
        spread: Array,
        pending: Array,
        theta: Array,
        loss: int,
        forgetting: float,
    ) -> Rounds:
        """Rounds over the models (N K, size) and matrices of all agents, with room for a block of rounds."""
        n_agents, size = pending.shape
        n_outputs = len(weights) // n_agents
        for rows, array in ((n_agents * n_outputs, weights), (n_agents * n_outputs, theta), (n_agents, pending)):
            doubles(array, rows, size)
        doubles(spread, n_agents * size, spread.shape[1])
        block = min(_BLOCK_ROUNDS, max(1, size // (2 * n_outputs)))  # models of a block: at most half the matrices
        fitting = _GROUP_BYTES // (4 * size * size)
        history = np.empty(((block + 1) * len(weights), size))
        made: Rounds = cls.of(
            n_agents=n_agents,
            n_outputs=n_outputs,
            size=size,
            stride=spread.shape[1],
            loss=loss,
            block=block,
            group=fitting if fitting >= 4 else 1,
            forgetting=forgetting,
            weights=weights,
            spread=spread,
            pending=pending,
            theta=theta,
            history=history,
            scored=history,
            limits=np.empty(block + 1),
            learned=np.zeros(n_agents, dtype=np.int64),
            gain=aligned(1, size, np.float64),
        )
        return made

    def record(
        self, phi: Array, labels: Array, targets: Array, predictions: Array, squares: Array, found: Array, scores: Array
    ) -> None:
        """The samples of a chunk of rounds, and where to record what is found of them.

        Row t N + i of ``phi`` and ``squares`` belongs to agent i in round t. ``labels``, ``targets`` (labels as learned
        from) and ``predictions`` are (T, N, K). ``found`` takes three distances a round, ``scores`` (2, T, N) the
        collective ones, unless it is empty.
        """
        n_rounds, n_agents, n_outputs = shape = labels.shape
        assert (n_agents, n_outputs) == (self.n_agents, self.n_outputs)
        for array in (labels, targets, predictions):
            doubles(array, *shape)
        doubles(phi, n_rounds * n_agents, self.size)
        doubles(squares, n_rounds * n_agents, 2 + n_outputs)
        doubles(found, n_rounds, 3)
        self.put(phi=phi, labels=labels, targets=targets, predictions=predictions, squares=squares, found=found)
        self.n_rounds, self.scores = n_rounds, None
        if scores.size:
            doubles(scores, 2, n_rounds, n_agents)
            self.put(scores=scores)
        if scores.size and self.arms:
            self.put(scored=np.empty((self.block * self.n_agents, self.size)))

    def advance(self, start: int, stop: int, *, resumes: bool = False) -> tuple[int, int]:
        """Rounds ``start`` to ``stop``: how they ended, and the row at which they did.

        Where the prediction of an agent diverges, or a round is SPOILED since it left a model that is not finite, the
        models that predict are all as they were then. Matrices of other agents may have learned up to a block of rounds
        more. A caller that gives another model to agents that stopped there (``learned``) ``resumes`` at that round, or
        behind the one that is spoiled; the others go on from where they are.
        """
        row = core().advance(byref(self), start, stop, resumes, self.gain)
        if row == stop * self.n_agents:
            return FINISHED, row
        return SPOILED if self.spoiled else DIVERGED, row

    def finish(self, agent: int) -> None:
        """Subtract from an agent's P the product that is pending."""
        core().finish(byref(self), agent)

    def settle(self, agent: int) -> None:
        """The same for the matrices of an agent's own arms."""
        core().settle_arms(byref(self), agent)

    def adopt(self, agent: int, spread: Array, models: Array, since: Samples) -> None:
        """P (D, D) and models (K, D) of a wave, which theta is too; then the agent learns the samples since."""
        n_outputs, n = models.shape
        assert n_outputs == self.n_outputs and n <= self.size
        spread, models = np.ascontiguousarray(spread), np.ascontiguousarray(models)
        core().adopt(byref(self), agent, doubles(spread, n, n), address(models), n, byref(since))

    def replay_arm(self, agent: int, arm: int, since: Samples) -> None:
        """The shrunk arm, 0, or the personal one, 1, learns the samples since."""
        core().replay_arm(byref(self), agent, arm, byref(since))

    def measure_again(self, t: int) -> bool:
        """Distances after round ``t``, which left a model that was not finite and has been replaced."""
        return bool(core().measure_again(byref(self), t, self.gain))

    def measure(self, models: Array, t: int) -> bool:
        """Distances of models after round ``t`` into its row of ``found``; False if their energy is not finite."""
        return bool(core().measure(byref(self), address(models), t, self.gain))


def predict(phi: Array, weights: Array, predictions: Array) -> None:
    """Predictions of models of one agent, a row each, for the first row of ``phi``: the bits of its rounds."""
    core().predict(address(weights), predictions.size, weights.shape[1], address(phi), address(predictions))


def whole(rows: Array, made: Array) -> None:
    """All of a symmetric matrix from its tiles on and below the diagonal."""
    core().copy_whole(address(rows), rows.shape[1], len(made), address(made))
