"""Censoring: an agent speaks only when its model has moved by more than a threshold that shrinks with time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError


@dataclass(frozen=True)
class Censor:
    """Send iff the innovation's norm is at least ``alpha * beta**t`` (eq. censorfuc; t counts from 1, equality sends).

    Another rule is a subclass with its own ``threshold``; it then works in every engine. A threshold that keeps most
    rounds silent for ever makes learners that act on silent replicas diverge: ``Channel`` says which, and which not.

    Parameters
    ----------
    alpha : float
        Threshold before the first round; 0 censors nothing but costs a norm.
    beta : float
        Decay a round, in (0, 1]. 1 keeps the threshold for ever, which the theory does not allow but practice may.

    Examples
    --------
    >>> Censor(4.0, 0.99).threshold(1)
    3.96
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _validate.number("alpha", self.alpha, least=0))
        object.__setattr__(self, "beta", _validate.number("beta", self.beta, above=0))
        if self.beta > 1:
            raise ArgumentError("beta", f"must be at most 1, got {self.beta!r}.")

    def threshold(self, t: int) -> float:
        """The least norm of an innovation that is worth a message in round ``t``."""
        return self.alpha * self.beta ** float(t)

    def thresholds(self, first: int, count: int) -> Array:
        """The thresholds of ``count`` rounds from ``first`` on."""
        return self.alpha * self.beta ** np.arange(first, first + count, dtype=np.float64)
