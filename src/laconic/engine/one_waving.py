"""One agent's rounds of a learner that runs waves, between two messages: predict, learn.

In NumPy here; ``one_wave_compiled`` does it by the kernels of the simulator, and with its bits. What waves are made of,
an agent's own sums and the arithmetic that it shares with others, is taken from whichever computes the rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic import _extras, _validate
from laconic._worded import ArgumentError
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED
from laconic.engine.one import ENGINES
from laconic.engine.support import compiles, supports
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.waves import Arithmetic, Own, make_own


class OneWaver:
    """The samples of one agent.

    Attributes
    ----------
    sample : array (1, n_inputs)
        The input: fill it in, then call ``predict`` or ``learn``.
    own, arithmetic
        The agent's own data and model, and how it computes what it shares.
    largest : float
        The yardstick of divergence: the largest label that was seen.
    """

    arithmetic: Arithmetic
    own: Own

    def __init__(self, learner: Learner, features: RandomFeatures, dtype: np.dtype[Any]) -> None:
        self.features, self.dtype, self.largest = features, dtype, 0.0
        self.sample = np.zeros((1, features.n_inputs), dtype=dtype)
        self._prepare(learner)

    def _prepare(self, learner: Learner) -> None:
        self.arithmetic = Arithmetic()
        self.own = make_own(learner.rule(), self.arithmetic, self.features.n_features)

    def predict(self) -> float:
        """w.phi(x), NaN if the sample is not finite. Changes nothing."""
        with np.errstate(invalid="ignore", over="ignore"):
            prediction = (self.own.model * self.features(self.sample.astype(np.float64))[0]).sum()
        return float(self.dtype.type(prediction)) if np.isfinite(self.sample).all() else np.nan

    def learn(self, label: float) -> tuple[int, float]:
        """Predict, then learn, a missing label (NaN) nothing: how it ended, and the prediction."""
        prediction = self.predict()
        if np.isnan(prediction):
            return BAD_INPUT, prediction
        if not abs(prediction) <= DIVERGENCE * self.largest:
            return DIVERGED, prediction
        label = float(self.dtype.type(label))
        self.largest = float(np.nanmax([self.largest, abs(label)]))
        self._learn(label)
        return (FINISHED if np.isfinite(self.own.weights).all() else DIVERGED), prediction

    def _learn(self, label: float) -> None:
        self.own.learn(self.features(self.sample.astype(np.float64))[0], label)


def make_waver(learner: Learner, features: RandomFeatures, dtype: np.dtype[Any], engine: str = "auto") -> OneWaver:
    """The rounds of one agent: by kernels where ``engine`` is "auto" and there are, or "compiled"."""
    _validate.choice("engine", engine, ENGINES)
    rule = learner.rule()
    if rule.outputs != 1:
        raise ArgumentError("learner", f"must have one output to run as an agent, got {rule.outputs} outputs.")
    if engine == "compiled" and (rule.arms is not None or not supports(learner)):
        raise ValueError(f"engine must be 'reference' or 'auto' for {learner!r}, which is not compiled.")
    if engine == "compiled" or (engine == "auto" and rule.arms is None and compiles(learner)):
        compiled = _extras.need("laconic.engine.one_wave_compiled", "a compiled agent")
        waver: OneWaver = compiled.CompiledWaver(learner, features, dtype)
        return waver
    return OneWaver(learner, features, dtype)
