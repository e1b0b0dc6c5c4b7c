"""One agent's rounds of a learner that runs waves, between two messages: predict, learn.

In NumPy here; ``one_wave_compiled`` does it in the core, with the simulator's bits. What waves are made of,
an agent's own sums and the arithmetic that it shares with others, is taken from whichever computes the rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic import _validate
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED, SPOILED
from laconic.engine.one import ENGINES
from laconic.engine.support import compiles, supports
from laconic.features import OwnFeatures, RandomFeatures
from laconic.learners import Learner
from laconic.waves import Arithmetic, Own, make_own
from laconic.waves.own import number_of
from laconic.waves.rule import Numbers


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

    def predict(self) -> Numbers:
        """w.phi(x), one for each output; NaN if the sample is not finite. Changes nothing."""
        if not np.isfinite(self.sample).all():
            return np.nan
        with np.errstate(invalid="ignore", over="ignore"):
            prediction = (self.own.model * self.features(self.sample.astype(np.float64))[0]).sum(axis=-1)
        return number_of(prediction.astype(self.dtype).astype(np.float64))

    def learn(self, label: Numbers) -> tuple[int, Numbers]:
        """Predict, then learn, a missing label (NaN) nothing: how it ended, and the prediction."""
        prediction = self.predict()
        if np.isnan(prediction).any():
            return BAD_INPUT, prediction
        if not (np.abs(prediction) <= DIVERGENCE * self.largest).all():
            return DIVERGED, prediction
        label = number_of(np.asarray(label, self.dtype).astype(np.float64))
        self.largest = float(np.nanmax([self.largest, *np.abs(np.ravel(label))]))
        self._learn(label)
        return (FINISHED if np.isfinite(self.own.model).all() else SPOILED), prediction

    def _learn(self, label: Numbers) -> None:
        self.own.learn(self.features(self.sample.astype(np.float64))[0], label)


def make_waver(learner: Learner, features: RandomFeatures, dtype: np.dtype[Any], engine: str = "auto") -> OneWaver:
    """The rounds of one agent: by the core where ``engine`` is "auto" and it can, or "compiled"."""
    _validate.choice("engine", engine, ENGINES)
    rule = learner.rule()
    if isinstance(features, OwnFeatures):  # which Python computes anyway
        engine = "reference"
    if engine == "compiled" and not supports(learner):
        raise ValueError(f"engine must be 'reference' or 'auto' for {learner!r}, which is not compiled.")
    if engine == "compiled" or (engine == "auto" and compiles(learner)):
        from laconic.engine.one_wave_compiled import CompiledPersonalWaver, CompiledWaver

        kind = CompiledWaver if rule.arms is None else CompiledPersonalWaver
        return kind(learner, features, dtype)
    return OneWaver(learner, features, dtype)
