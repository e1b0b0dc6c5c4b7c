"""One agent's rounds of a learner that runs waves in the core: a run of one agent, a round at a time."""

from __future__ import annotations

from typing import final

import numpy as np

from laconic._validate import Array
from laconic.engine.endings import BAD_INPUT, FINISHED, SPOILED
from laconic.engine.one_waving import OneWaver
from laconic.engine.personal import Last, PersonalBlockOwn, make_arms
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.wave_compiled import Block, BlockOwn
from laconic.learners import Learner
from laconic.native.arrays import aligned
from laconic.native.features import RowMap
from laconic.native.waves import predict
from laconic.waves.arms import FIRST
from laconic.waves.rule import Numbers, Rule


class CompiledWaver(OneWaver):
    """A block of one agent and one round at a time; everything is kept ready between calls."""

    def _prepare(self, learner: Learner) -> None:
        rule, features, arithmetic = learner.rule(), self.features, CompiledArithmetic()
        self.arithmetic, self._block = arithmetic, Block(rule, 1, features.n_features)
        self.own = self._rounds = self._make_own(rule, arithmetic)
        self._predictions, self._labels, self._targets = np.empty((3, 1, 1, rule.outputs))
        self._inputs, self._row_map = np.empty((1, features.n_inputs)), RowMap(features)
        block = self._block
        block.begin(aligned(1, features.n_features, np.float64))
        found, nothing = np.empty((1, 3)), np.empty((2, 0, 1))
        block.rounds.record(block.phi, self._labels, self._targets, self._predictions, block.squares, found, nothing)

    def _make_own(self, rule: Rule, arithmetic: CompiledArithmetic) -> BlockOwn:
        return BlockOwn(rule, arithmetic, self._block, 0)

    def _map(self) -> bool:
        """Put the features of the sample into the block; False if they are not finite."""
        self._inputs[:] = self.sample
        return self._row_map(self._inputs, self._block.phi)

    def _models(self) -> Array:
        """The models that predict, a padded row for each output."""
        return self._block.weights

    def predict(self) -> Numbers:
        """What ``learn`` would predict, to the bit; NaN if the sample is not finite."""
        if not self._map():
            return np.nan
        predict(self._block.phi, self._models(), self._predictions)
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
        self._targets[:] = self._labels
        block.rounds.largest = self.largest
        self._begin_round()
        status, _ = block.rounds.advance(0, 1)
        if status in (FINISHED, SPOILED):
            self.largest = block.rounds.largest
            block.now = 1
            self._rounds.finish_block()
            block.now = 0
        return status, self._predicted()

    def _begin_round(self) -> None:
        """What there is to do before a round."""


@final
class CompiledPersonalWaver(CompiledWaver):
    """The same with arms of its own."""

    def _make_own(self, rule: Rule, arithmetic: CompiledArithmetic) -> BlockOwn:
        self._arms = make_arms(rule, 1, self.features.n_features)
        self._arms.put(stacks=np.empty((1, 1, len(FIRST))))
        self._block.rounds.put(arms=self._arms)
        return PersonalBlockOwn(rule, arithmetic, self._block, 0, self._arms, Last())

    def _models(self) -> Array:
        """The mixture of the arms, which a wave may have moved."""
        self._arms.mix(self._block.weights)
        return self._arms.array("models")

    def _begin_round(self) -> None:
        own = self._rounds
        assert isinstance(own, PersonalBlockOwn)
        self._arms.mix(self._block.weights)
        if own.guard is not None:
            self._targets[0, 0, 0] = own.guard(float(self._labels[0, 0, 0]))
