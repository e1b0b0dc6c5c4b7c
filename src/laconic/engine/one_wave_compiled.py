"""One agent's rounds of a learner that runs waves, by the simulator's kernels. Importing this imports numba."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine import personal_rounds, wave_rounds
from laconic.engine.endings import BAD_INPUT, FINISHED, SPOILED
from laconic.engine.one_waving import OneWaver
from laconic.engine.personal import Last, PersonalBlockOwn, make_arms
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.wave_compiled import Block, BlockOwn
from laconic.learners import Learner
from laconic.native.arrays import aligned
from laconic.native.features import RowMap
from laconic.native.run import LOSSES
from laconic.waves.arms import FIRST
from laconic.waves.rule import ArmNumbers, Numbers


class CompiledWaver(OneWaver):
    """A block of one agent and one round at a time; everything is kept ready between calls."""

    def _prepare(self, learner: Learner) -> None:
        rule, features = learner.rule(), self.features
        self._forgetting, self._loss = rule.forgetting, LOSSES[str(learner.loss.kernel)]
        self.arithmetic = CompiledArithmetic()
        self._block = Block(1, features.n_features, rule.outputs)
        self.own = self._rounds = self._make_own(learner)
        self._found, self._predictions = np.empty((1, 3)), np.empty((1, 1, rule.outputs))
        self._labels, self._largest = np.empty((1, 1, rule.outputs)), np.zeros(1)
        self._inputs, self._scores = np.empty((1, features.n_inputs)), np.empty((2, 0, 1))
        self._row_map = RowMap(features)

    def _make_own(self, learner: Learner) -> BlockOwn:
        return BlockOwn(learner.rule(), self.arithmetic, self._block, 0)  # type: ignore[arg-type]

    def _map(self) -> bool:
        """Put the features of the sample into the block; False if they are not finite."""
        self._inputs[:] = self.sample
        phi = aligned(1, self.features.n_features, np.float64)
        if not self._row_map(self._inputs, phi):
            return False
        self._block.phi, self._block.squares = phi, np.empty((1, 2 + self._block.outputs))
        return True

    @property
    def _models(self) -> Array:
        """The models that predict, a padded row for each output."""
        return self._block.weights

    def predict(self) -> Numbers:
        """What ``learn`` would predict, to the bit; NaN if the sample is not finite."""
        if not self._map():
            return np.nan
        wave_rounds.predict(self._block.phi, self._models, self._predictions)
        return self._predicted()

    def _predicted(self) -> Numbers:
        """The prediction in working precision: a number, or an array where there are several outputs."""
        prediction = self._predictions[0, 0].astype(self.dtype).astype(np.float64)
        return float(prediction[0]) if self._block.outputs == 1 else prediction

    def learn(self, label: Numbers) -> tuple[int, Numbers]:
        """Predict, then learn."""
        if not self._map():
            return BAD_INPUT, np.nan
        block = self._block
        self._labels[:] = self.dtype.type(label) if block.outputs == 1 else np.asarray(label, self.dtype)
        self._largest[0] = self.largest
        status = self._quiet()
        if status in (FINISHED, SPOILED):
            self.largest = float(self._largest[0])
            block.now = 1
            self._rounds.finish_block()
            block.now = 0
        return status, self._predicted()

    def _quiet(self) -> int:
        """The round of the simulator's kernel: how it ended."""
        block = self._block
        status, _ = wave_rounds.quiet_rounds(
            block.phi,
            self._labels,
            0,
            1,
            self._loss,
            self._forgetting,
            block.weights,
            block.spread,
            block.theta,
            block.gain,
            self._largest,
            self._predictions,
            block.squares,
            self._found,
            self._scores,
            block.left,
        )
        return int(status)


@final
class CompiledPersonalWaver(CompiledWaver):
    """The same with arms of its own."""

    def _make_own(self, learner: Learner) -> BlockOwn:
        rule, n, arithmetic = learner.rule(), self.features.n_features, self.arithmetic
        self._arms = make_arms(rule, rule.arms or ArmNumbers(), 1, n)
        self._stack, self._shared = np.empty((1, 1, len(FIRST))), aligned(1, n, np.float64)
        return PersonalBlockOwn(rule, arithmetic, self._block, 0, self._arms, Last())  # type: ignore[arg-type]

    @property
    def _models(self) -> Array:
        """The mixture of the arms, which a wave may have moved."""
        personal_rounds.mix_arms(self._arms, self._block.weights)
        return self._arms.models

    def _quiet(self) -> int:
        block, own = self._block, self._rounds
        assert isinstance(own, PersonalBlockOwn)
        personal_rounds.mix_arms(self._arms, block.weights)
        clipped: Array = self._labels
        if own.guard is not None:
            clipped = np.array([[[own.guard(float(self._labels[0, 0, 0]))]]])
        adopted: Any = np.array([own.following])
        status, _ = personal_rounds.personal_rounds(
            block.phi,
            self._labels,
            clipped,
            0,
            1,
            self._loss,
            self._forgetting,
            block.weights,
            block.spread,
            self._arms,
            self._shared,
            adopted,
            block.theta,
            block.gain,
            self._largest,
            self._predictions,
            block.squares,
            self._found,
            self._scores,
            self._stack,
        )
        return int(status)
