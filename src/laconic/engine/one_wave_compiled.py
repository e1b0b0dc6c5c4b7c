"""One agent's rounds of a learner that runs waves, by the simulator's kernels. Importing this imports numba."""

from __future__ import annotations

from typing import final

import numpy as np

from laconic.engine import steps, wave_rounds
from laconic.engine.compiled import map_features
from laconic.engine.endings import BAD_INPUT, FINISHED
from laconic.engine.one_waving import OneWaver
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.wave_compiled import Block, BlockOwn
from laconic.learners import Learner


@final
class CompiledWaver(OneWaver):
    """A block of one agent and one round at a time."""

    def _prepare(self, learner: Learner) -> None:
        rule, n_features = learner.rule(), self.features.n_features
        self._forgetting, self._loss = rule.forgetting, steps.LOSSES[str(learner.loss.kernel)]
        self.arithmetic = CompiledArithmetic()
        self._block = Block(1, n_features)
        self._rounds = BlockOwn(rule, self.arithmetic, self._block, 0)
        self.own = self._rounds
        self._found, self._predictions = np.empty((1, 3)), np.empty((1, 1, 1))

    def learn(self, label: float) -> tuple[int, float]:
        """Predict, then learn."""
        block = self._block
        if not np.isfinite(self.sample).all():
            return BAD_INPUT, np.nan
        phi = map_features(self.features, self.sample.astype(np.float64))
        if not np.isfinite(phi[0, : block.n_features]).all():
            return BAD_INPUT, np.nan
        block.phi, block.squares = phi, np.empty((1, 3))
        label, largest = float(self.dtype.type(label)), np.array([self.largest])
        status, _ = wave_rounds.quiet_rounds(
            block.phi,
            np.array([[[label]]]),
            0,
            1,
            self._loss,
            self._forgetting,
            block.weights,
            block.spread,
            block.theta,
            block.gain,
            largest,
            self._predictions,
            block.squares,
            self._found,
            None,
        )
        prediction = float(self.dtype.type(self._predictions[0, 0, 0]))
        if status == FINISHED:
            self.largest = float(largest[0])
            block.now = 1
            self._rounds.finish_block()
            block.now = 0
        return status, prediction
