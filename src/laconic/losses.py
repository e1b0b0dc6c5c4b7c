"""Losses of a prediction m against a label y: value, slope in m, and the scalar equation of the exact update.

A missing label (NaN) has no value and no slope: nothing is learned from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from laconic._validate import Array


class Loss(ABC):
    """A convex loss. Subclasses give ``value`` and ``derivative``; a closed form of ``prox`` is welcome, not needed.

    Attributes
    ----------
    name : str
        What users pass as ``loss=``.
    binary : bool
        Whether labels must be -1 or +1.
    """

    name: str = "custom"
    binary: bool = False
    #: Its rung in ``engine.steps``; None if it has none.
    kernel: str | None = None

    def __init_subclass__(cls, **options: object) -> None:
        """A loss of one's own is not what the kernel of its base computes."""
        super().__init_subclass__(**options)
        if "kernel" not in vars(cls):
            cls.kernel = None

    @abstractmethod
    def value(self, margin: Array, label: Array) -> Array:
        """The loss l(m, y)."""

    @abstractmethod
    def derivative(self, margin: Array, label: Array) -> Array:
        """dl/dm."""

    def slope(self, margin: Array, label: Array) -> Array:
        """dl/dm, zero where the label is missing."""
        return np.where(np.isnan(label), 0.0, self.derivative(margin, label)).astype(margin.dtype)

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """The slope s = l'(m, y) at the solution m = (a - s)/c, zero where the label is missing.

        c m + l'(m) = a is increasing in m, and m lies between a/c and a/c - l'(a/c)/c: bisection until the floats end.
        """
        label = np.asarray(label, dtype=float)
        start = np.asarray(a / c, dtype=float)
        pulled = start - self.slope(start, label) / c
        low, high = np.minimum(start, pulled), np.maximum(start, pulled)
        for _ in range(100):
            middle = 0.5 * (low + high)
            beyond = c * middle + self.slope(middle, label) > a
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return np.where(np.isnan(label), 0.0, a - c * 0.5 * (low + high))

    def __repr__(self) -> str:
        return repr(self.name)


@final
class Squared(Loss):
    """(m - y)^2."""

    name = kernel = "squared"

    def value(self, margin: Array, label: Array) -> Array:
        """(m - y)^2."""
        return (margin - label) ** 2

    def derivative(self, margin: Array, label: Array) -> Array:
        """2 (m - y)."""
        return 2 * (margin - label)

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """s = 2 (a - c y)/(c + 2)."""
        return np.where(np.isnan(label), 0.0, 2 * (a - c * label) / (c + 2))


@final
class Logistic(Loss):
    """log(1 + e^(-y m)), y in {-1, +1}."""

    name = kernel = "logistic"
    binary = True

    def value(self, margin: Array, label: Array) -> Array:
        """log(1 + e^(-y m)), without overflow."""
        with np.errstate(invalid="ignore"):  # a missing label
            return np.logaddexp(0.0, -label * margin)

    def derivative(self, margin: Array, label: Array) -> Array:
        """-y / (1 + e^(y m))."""
        from scipy.special import expit

        return np.asarray(-label * expit(-label * margin))

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """Newton in u = y m on c u - y a - 1/(1 + e^u) = 0, kept inside the bracket [ya/c, (ya + 1)/c]."""
        from scipy.special import expit

        y = np.where(np.isnan(label), 1.0, label)
        target = y * a
        low, high = target / c, (target + 1) / c
        u = 0.5 * (low + high)
        for _ in range(100):
            p = expit(-u)
            residual = c * u - target - p
            low, high = np.where(residual > 0, low, u), np.where(residual > 0, u, high)
            newton = u - residual / (c + p * (1 - p))
            following = np.where((low <= newton) & (newton <= high), newton, 0.5 * (low + high))
            settled = np.abs(following - u) <= 2e-16 * np.abs(u)
            u = following
            if settled.all():
                break
        return np.where(np.isnan(label), 0.0, -y * expit(-u))


@final
class Hinge(Loss):
    """max(0, 1 - y m), y in {-1, +1}; slope 0 at and beyond the margin."""

    name = kernel = "hinge"
    binary = True

    def value(self, margin: Array, label: Array) -> Array:
        """max(0, 1 - y m)."""
        return np.maximum(0.0, 1 - label * margin)

    def derivative(self, margin: Array, label: Array) -> Array:
        """-y inside the margin, 0 at and beyond it."""
        return np.where(label * margin < 1, -label, 0.0)

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """y s = clip(y a - c, -1, 0)."""
        return np.where(np.isnan(label), 0.0, label * np.clip(label * a - c, -1.0, 0.0))


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Squared(), Logistic(), Hinge())}


def get(loss: str | Loss) -> Loss:
    """The loss of that name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    names = ", ".join(repr(name) for name in LOSSES)
    raise ValueError(f"loss must be one of {names}, or a laconic.losses.Loss; got {loss!r}.")
