"""Losses of a prediction m against a label y: value, slope in m, and the scalar equation of the exact update.

A missing label (NaN) has no value and no slope: nothing is learned from it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TypeVar, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError


class Loss(ABC):
    """A convex loss. Subclasses give ``value`` and ``derivative``; a closed form of ``prox`` is welcome, not needed.

    Attributes
    ----------
    name : str
        What users pass as ``loss=``.
    binary : bool
        Whether labels must be -1 or +1.
    curvature : float
        The largest second derivative in m; 0 also where nobody knows.
    """

    name: str = "custom"
    binary: bool = False
    curvature: float = 0.0
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

    def bend(self, margin: Array, label: Array) -> Array:
        """The second derivative of l in m; by default its bound, ``curvature``."""
        return np.full_like(margin, self.curvature)

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


LOSSES: dict[str, Loss] = {}

L = TypeVar("L", bound=type[Loss])


def register(loss: L) -> L:
    """Let a loss be chosen by its name; to be used as a decorator of its class.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> @lc.losses.register
    ... class LogCosh(lc.losses.Loss):
    ...     name = "log-cosh"
    ...     curvature = 1.0
    ...
    ...     def value(self, margin, label):
    ...         return np.log(np.cosh(margin - label))
    ...
    ...     def derivative(self, margin, label):
    ...         return np.tanh(margin - label)
    >>> lc.ODKLA(loss="log-cosh").loss
    'log-cosh'
    >>> _ = lc.losses.LOSSES.pop("log-cosh")
    """
    if not isinstance(loss, type) or not issubclass(loss, Loss) or inspect.isabstract(loss):
        raise ValueError(f"loss must be a class of losses with value and derivative, got {loss!r}.")
    if "name" not in vars(loss):
        raise ValueError(f"loss must say its name, as in name = 'squared'; {loss.__qualname__} does not.")
    other = LOSSES.get(loss.name)
    # In a notebook a class is defined again and again, and the last one counts.
    if other is not None and (type(other).__module__, type(other).__qualname__) != (loss.__module__, loss.__qualname__):
        raise ValueError(f"loss must have a name of its own, and {loss.name!r} is {type(other).__qualname__}'s.")
    LOSSES[loss.name] = loss()
    return loss


@register
@final
class Squared(Loss):
    """(m - y)^2."""

    name = kernel = "squared"
    curvature = 2.0

    def value(self, margin: Array, label: Array) -> Array:
        """(m - y)^2."""
        return (margin - label) ** 2

    def derivative(self, margin: Array, label: Array) -> Array:
        """2 (m - y)."""
        return 2 * (margin - label)

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """s = 2 (a - c y)/(c + 2)."""
        return np.where(np.isnan(label), 0.0, 2 * (a - c * label) / (c + 2))


@register
@final
class Logistic(Loss):
    """log(1 + e^(-y m)), y in {-1, +1}."""

    name = kernel = "logistic"
    binary = True
    curvature = 0.25

    def value(self, margin: Array, label: Array) -> Array:
        """log(1 + e^(-y m)), without overflow."""
        with np.errstate(invalid="ignore"):  # a missing label
            return np.logaddexp(0.0, -label * margin)

    def derivative(self, margin: Array, label: Array) -> Array:
        """-y / (1 + e^(y m))."""
        return np.asarray(-label * expit(-label * margin))

    def bend(self, margin: Array, label: Array) -> Array:
        """p (1 - p), p = 1/(1 + e^m), whatever the label."""
        p = expit(-margin)
        return np.asarray(p * (1 - p))

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """Newton in u = y m on c u - y a - 1/(1 + e^u) = 0, kept inside the bracket [ya/c, (ya + 1)/c]."""
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


@register
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


@register
@final
class SquaredHinge(Loss):
    """max(0, 1 - y m)^2, y in {-1, +1}: least squares of those that violate the margin."""

    name = kernel = "squared-hinge"
    binary = True
    curvature = 2.0

    def value(self, margin: Array, label: Array) -> Array:
        """max(0, 1 - y m)^2."""
        return np.maximum(0.0, 1 - label * margin) ** 2

    def derivative(self, margin: Array, label: Array) -> Array:
        """-2 y max(0, 1 - y m)."""
        return -2 * label * np.maximum(0.0, 1 - label * margin)

    def bend(self, margin: Array, label: Array) -> Array:
        """2 inside the margin, 0 at and beyond it."""
        return np.where(label * margin < 1, 2.0, 0.0)

    def prox(self, a: Array, c: Array, label: Array) -> Array:
        """y s = -2 max(0, c - y a)/(c + 2)."""
        return np.where(np.isnan(label), 0.0, -2 * label * np.maximum(0.0, c - label * a) / (c + 2))


def expit(x: Array) -> Array:
    """1 / (1 + e^-x), without a warning where that is 0; so accurate as NumPy's exponential is.

    Examples
    --------
    >>> expit(np.array([-800.0, 0.0, 800.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def get(loss: str | Loss) -> Loss:
    """The loss of that name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    names = ", ".join(repr(name) for name in LOSSES)
    raise ArgumentError("loss", f"must be one of {names}, or a laconic.losses.Loss; got {_validate.shown(loss)}.")
