"""What the faces choose when they are told nothing: the learner, its steps, and the width of the kernel."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import final

import numpy as np

from laconic import _validate
from laconic._worded import ArgumentError
from laconic.learners import QCODKLA, Learner

#: Starting value and growth of eta, and rho, for each loss. Steps of a squared loss must stay below 1, those of a
#: logistic one below 8; both shrink slowly, which on real sets was worth a point or two of R^2 against constant ones.
_STEPS = {"squared": (2.0, 0.1, 0.2), "logistic": (0.2, 0.01, 0.05)}
#: Keeps a model from wandering off in directions that the data never visit.
RIDGE = 1e-5


@final
@dataclass(frozen=True)
class Cooling:
    """``first + growth * sqrt(t)``: an eta that starts where learning is quick and grows as the regret bound asks.

    >>> Cooling(2.0, 0.1)(100)
    3.0
    """

    first: float
    growth: float

    def __call__(self, t: int) -> float:
        """The value in round ``t``."""
        return float(self.first + self.growth * t**0.5)


def default_learner(loss: str) -> Learner:
    """QC-ODKLA for labels of unit variance (squared loss) or of -1 and +1 (logistic), and inputs on the kernel's scale.

    Three bits an entry cost next to nothing here: the errors of the quantizer cancel in the mean of the agents.
    """
    first, growth, rho = _STEPS[loss]
    return QCODKLA(rho=rho, eta=Cooling(first, growth), bits=3, regularization=RIDGE, loss=loss)


def checked_learner(learner: object, loss: str, *, binary: bool) -> Learner:
    """``learner``, or the default one; ``binary`` says whether labels are -1 and +1."""
    if learner is None:
        return default_learner(loss)
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be a laconic learner such as lc.ODKLA(), or None; got {learner!r}.")
    if learner.loss.binary and not binary:
        raise ValueError(f"learner must have a loss for real labels, such as 'squared'; got {learner!r}.")
    return copy.copy(learner)  # what was fitted stays what it was when ``set_params`` changes the learner


def checked_bandwidth(bandwidth: object, n_inputs: int, variance: float) -> float:
    """``bandwidth`` as a number; "scale" is sigma^2 = n_inputs * variance / 2, the gamma="scale" of SVC.

    >>> checked_bandwidth("scale", 8, 1.0)
    2.0
    """
    if isinstance(bandwidth, str) and bandwidth == "scale":
        # Inputs that do not vary say nothing about their scale.
        return float(np.sqrt(n_inputs * (variance if variance > 0 else 1.0) / 2))
    if isinstance(bandwidth, str):
        raise ArgumentError("bandwidth", f"must be 'scale' or a positive number, got {_validate.shown(bandwidth)}.")
    return _validate.number("bandwidth", bandwidth, above=0)
