"""What labels are: numbers around a centre, or classes, each against all others; and the way back from scores.

Numbers are learned as y - c, c the median of the first labels: away from the data a model returns to zero, and the
median is a better guess than zero. What agents say has steps within limits, so labels far smaller or larger than 1
are measured in a power of two, which changes no digit. Of K classes each has a model of its own over the same features,
with +1 where a row belongs to it and -1 where it does not; of two classes one model is enough. The squared loss makes
of such labels an estimate of 2 P(class | x) - 1, whence probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic._wild import deviation
from laconic._worded import ArgumentError

NUMBERS, CLASSES = "numbers", "classes"
TASKS = (NUMBERS, CLASSES)
_MOST_CLASSES = 10  # whole numbers that take so few values, each of them often, are taken for classes
_ROWS_A_CLASS = 5
_SMALL, _LARGE = 2.0**-10, 2.0**20  # deviations between which labels are learned in their own unit


def recognise(y: object) -> str:
    """Tell "numbers" from "classes": words and truth values are classes, and so are whole numbers that take few values.

    >>> recognise(["ham", "spam"]), recognise([0.5, 1.5, 2.0]), recognise([0, 1, 2] * 20)
    ('classes', 'numbers', 'classes')
    """
    array = np.asarray(y)
    if array.dtype.kind not in "fiu":
        return CLASSES
    values = array[np.isfinite(array)]
    if not len(values) or (values != np.rint(values)).any():
        return NUMBERS
    found = len(np.unique(values))
    return CLASSES if 2 <= found <= _MOST_CLASSES and len(values) >= _ROWS_A_CLASS * found else NUMBERS


@final
@dataclass(frozen=True)
class Labels:
    """How labels become what a learner learns, and how what it predicts becomes a label.

    Attributes
    ----------
    task : "numbers" or "classes"
    centre : float
        c, of numbers; 0 of classes.
    deviation : float or None
        A deviation of y - c that one wild label cannot move; None where it is not known, and of classes.
    classes : tuple
        The classes, sorted; empty of numbers.
    unit : float
        A power of two by which y - c is divided; 1 but for very small or large numbers.

    Examples
    --------
    >>> Labels.measure([1.0, 2.0, 3.0, 900.0], "numbers")
    Labels(task='numbers', centre=2.5, deviation=1.482..., classes=(), unit=1.0)
    >>> colours = Labels.measure(["red", "blue", "green"], "classes")
    >>> colours.encode(["green", "blue"])
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    >>> colours.decode([[0.2, 0.1, -0.9]])
    array(['blue'], dtype='<U5')
    """

    task: str
    centre: float = 0.0
    deviation: float | None = None
    classes: tuple[Any, ...] = ()
    unit: float = 1.0

    @classmethod
    def measure(cls, y_first: object, task: str, classes: object = None) -> Labels:
        """What the first labels tell; ``classes`` are all that may ever come, if that is known."""
        array = np.asarray(y_first)
        if task == CLASSES:
            found = np.unique(_present(array) if classes is None else np.asarray(classes))
            if len(found) < 2:
                raise ArgumentError("y", f"must hold two classes or more, got only one class: {found.tolist()}.")
            return cls(CLASSES, classes=tuple(found.tolist()))
        numbers = _present(array.astype(np.float64))
        if not len(numbers):
            return cls(NUMBERS)
        centre = float(np.median(numbers))
        usual = deviation(np.abs(numbers - centre))
        if not 0 < usual < np.inf:
            return cls(NUMBERS, centre)
        unit = 1.0 if _SMALL <= usual <= _LARGE else 2.0 ** math.floor(math.log2(usual))
        return cls(NUMBERS, centre, usual, unit=unit)

    @property
    def n_models(self) -> int:
        """How many models there are: one, or of more than two classes one each."""
        return len(self.classes) if len(self.classes) > 2 else 1

    def encode(self, y: object) -> Array:
        """What is learned, of the shape of ``y`` and, of more than two classes, with an axis of classes behind."""
        array = np.asarray(y)
        if self.task == NUMBERS:
            centred: Array = (array.astype(np.float64) - self.centre) / self.unit
            return centred
        known = np.array(self.classes)
        hit = array[..., None] == known
        missing = ~hit.any(axis=-1)
        if (missing & ~_absent(array)).any():
            strange = np.unique(array[missing & ~_absent(array)]).tolist()
            raise ArgumentError("y", f"must hold only the classes {list(self.classes)}, got {strange}.")
        signs = np.where(missing[..., None], np.nan, np.where(hit, 1.0, -1.0))
        return signs[..., 1] if self.n_models == 1 else signs

    def decode(self, scores: object) -> Array:
        """Labels for scores: numbers around the centre, or the class of the largest score."""
        array = np.asarray(scores, dtype=np.float64)
        if self.task == NUMBERS:
            return array * self.unit + self.centre
        index = (array > 0).astype(int) if self.n_models == 1 else array.argmax(axis=-1)
        found: Array = np.array(self.classes)[index]
        return found

    def probabilities(self, scores: object) -> Array:
        """(..., K): (1 + score)/2 within [0, 1], made to add up to one."""
        array = np.asarray(scores, dtype=np.float64)
        array = np.stack([-array, array], axis=-1) if self.n_models == 1 else array
        shares = np.clip((1 + array) / 2, 0, 1)
        total = shares.sum(axis=-1, keepdims=True)
        even: Array = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / array.shape[-1])
        return even


def _absent(array: Array) -> Array:
    """Where a label is missing: NaN, or None."""
    if array.dtype.kind == "f":
        return np.isnan(array)
    if array.dtype.kind == "O":
        return np.array([one is None or one != one for one in array.ravel()], dtype=bool).reshape(array.shape)
    return np.zeros(array.shape, dtype=bool)


def _present(array: Array) -> Array:
    found: Array = array[~_absent(array)]
    return found
