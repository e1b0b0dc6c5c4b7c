"""What changes from round to round, known beforehand: the learner's step and the censor's threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.channel import Budget, Censor
from laconic.engine.support import kernel_of
from laconic.learners import Learner
from laconic.learners.schedules import Constant

_NONE = np.empty(0)


def rates(learner: Learner, after: int, n_rounds: int, dtype: Any) -> Array:
    """The step of each of the ``n_rounds`` rounds after round ``after``."""
    rate = kernel_of(learner).rate
    if isinstance(rate, Constant):
        return np.full(n_rounds, rate.value, dtype=dtype)
    return np.array([rate(t) for t in range(after + 1, after + 1 + n_rounds)], dtype=dtype)


def thresholds(learner: Learner, after: int, n_rounds: int) -> Array:
    """The threshold of each of those rounds; empty where nothing is censored, or by a budget."""
    censor = learner.channel.censor if learner.channel else None
    if censor is None or isinstance(censor, Budget):
        return _NONE
    if type(censor) is Censor:
        return censor.thresholds(after + 1, n_rounds)
    # A rule of one's own, which need not understand arrays.
    return np.array([censor.threshold(t) for t in range(after + 1, after + 1 + n_rounds)], dtype=np.float64)
