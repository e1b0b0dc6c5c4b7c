"""Labels that cannot be, for a learner that holds its own: clipped to what one agent's stream has shown."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from laconic import _wild
from laconic._validate import Array

_FIRST = 8  # labels after which limits are known
_JUDGES = 4  # labels by which a wild one among the first is told
_WINDOW = 500  # labels that the running mean and deviation remember
_EARLY = 40  # labels after which limits from eight of them are hardly wider than they will be
_FAR = 0.75  # times the limits, 15 deviations: what lies beyond may be no measurement
_STRANGE = 1.25  # the same among the first labels, of which little is known
_ABOVE = 8.0  # and times the largest label so far, so that rare large ones of a heavy tail are not taken for wild
_ABOVE_ALL = 6.0  # the same of a guard that sees all labels of a stream, and so more of their tail
_FLOOR = 10.0  # deviations that are believed of a table in any case
_COUNTED = 5.0  # deviations that a wild label counts as
_SPARED = 8  # wild labels in a row after which the stream has moved
_GAP = 4.0  # times the distance of the next smaller one: what is beyond does not belong to a table's other labels
_RARE = 25  # labels of which one may be beyond the gap; where more are they are no accident
_ROUNDED = 1 + 1e-6  # by how much rounding, also of labels in single precision, may exceed what should be
_MOST_LABELS = 2.0**53  # up to here each whole number is one
_NO_LABEL = 1e29  # in the place of a label where there was none: what is kept on disk has to be finite


@final
class LabelGuard:
    """Clips each label to the running mean of the clipped labels +- so many of their running deviations.

    They begin with the first eight labels: the mean with their median, the deviation with the larger of 1.4826 times
    the median absolute deviation and the root mean square around the median without the largest. From the ninth on,
    m <- m + (y - m)/n and s^2 <- s^2 + ((y - m)(y - m') - s^2)/n with n the number of labels, at most 500, m' the new
    mean and y the clipped label. While all labels are the same, nothing is clipped: there is no deviation to judge
    another one by. Eight labels of a heavy tail say little of it, so limits are wider at first, by 1 + 40/n: on
    Tom's hardware and Twitter that costs nothing to 2% against no guard at all, and without it 5 to 7% (seeds 60, 61).

    A label 15 deviations away, three quarters of the limits, and eight times as far as the farthest that was learned,
    is *wild*: a heavy tail has labels in between. It becomes NaN, which nobody learns from, and counts as five
    deviations of one label in 500. After eight of them in a row the stream has moved, and they are clipped and
    followed. Of the first eight labels it is the wild ones after the fourth that are known to be such; a deviation
    known beforehand tells them from the first label on.

    What that costs where tails are heavy, and saves where labels are wrong: ``laconic run`` on 1500 rows of Tom's
    hardware has an R2 of 0.692 (with 25 deviations instead of 15, and none believed beyond five times the farthest,
    0.705; without a guard 0.71), of Twitter 0.832 either way; with ten of 600 labels 20 deviations off 0.8 and 0.5
    instead of 0.4 and 0.3 (seeds 0 to 3 and 0 to 2, which chose it; a sine with a line, and Friedman's first function).

    From the ninth on a label that repeats the one before is not counted: of rain, which is zero on most days, it is the
    rest that says how far labels scatter.

    It is what ``Guard`` does to labels, without what a device needs beside that (inputs, reports): small enough to be
    part of a learner, and of its state.

    Parameters
    ----------
    deviations : float
    usual : float, optional
        The deviation of labels from 0, where it is known beforehand; then the first eight are held to it, too, and no
        limits are wider than they have to be.
    whole : bool
        Whether it sees all labels of a stream, not one agent's of many: no limits are wider at first, and six times
        the farthest is enough to be wild.

    Examples
    --------
    >>> guard = LabelGuard(20.0, usual=1.0)
    >>> [guard(float(y)) for y in (1, 2, 3, 1, 2, 3, 1, 2, 14, 1e6)]
    [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 14.0, nan]
    """

    def __init__(self, deviations: float, usual: float | None = None, *, whole: bool = False) -> None:
        self.deviations, self._early = deviations, _EARLY if usual is None and not whole else 0
        self._above = _ABOVE_ALL if whole else _ABOVE
        self._count, self._usual = 0 if usual is None else _FIRST, usual or 0.0
        self._mean, self._square = 0.0, 0.0 if usual is None else usual * usual
        self._row, self._farthest = 0, 0.0 if usual is None else usual
        self._last, self._first = _NO_LABEL, np.zeros(_FIRST)

    def __call__(self, label: float) -> float:
        """The label as it is to be learned from: NaN if it is wild; NaN, a missing one, stays so."""
        if math.isnan(label):
            return label
        if self._count >= _FIRST:
            return self._judged(label)
        if self._count >= _JUDGES and self._strange(label):
            return math.nan
        self._first[self._count] = label
        self._count += 1
        if self._count == _FIRST:
            self._begin()
        return label

    def _judged(self, label: float) -> float:
        if self._square > 0:
            deviation = math.sqrt(self._square)
            width = self.deviations * deviation * (1 + self._early / self._count)
            apart = abs(label - self._mean)
            wild = apart > _FAR * width and apart > self._above * self._farthest
            self._row = self._row + 1 if wild else 0
            if wild and self._row <= _SPARED:
                self._move(self._mean + math.copysign(_COUNTED * deviation, label - self._mean), _WINDOW)
                return math.nan
            label = min(self._mean + width, max(self._mean - width, label))
        self._farthest = max(self._farthest, abs(label - self._mean))
        if label != self._last:
            self._count += 1
            self._move(label, min(self._count, _WINDOW))
            self._last = label
        return label

    def _move(self, label: float, n: int) -> None:
        apart = label - self._mean
        self._mean += apart / n
        self._square += (apart * (label - self._mean) - self._square) / n

    def _strange(self, label: float) -> bool:
        """Whether one of the first labels is wild by those before it, which are four or more and not all the same."""
        known = self._first[: self._count]
        middle = float(np.median(known))
        usual = float(np.abs(known - middle).max())
        strange = usual > 0 and abs(label - middle) > _STRANGE * self.deviations * usual
        self._row = self._row + 1 if strange else 0
        return strange and self._row <= _SPARED

    def _begin(self) -> None:
        self._mean = float(np.median(self._first))
        apart = np.abs(self._first - self._mean)
        self._square = _wild.deviation(apart) ** 2
        tame = np.sort(apart)[: _wild.n_tame(np.sort(apart))]
        self._row, self._farthest = 0, float(tame[-1])

    def numbers(self) -> Array:
        """All that it has learned."""
        return np.array([self._count, self._mean, self._square, self._row, self._farthest, self._last, *self._first])

    def check(self, numbers: Array, largest: float = math.inf) -> None:
        """ValueError unless labels of at most that size can have taught it these ``numbers``."""
        count, mean, square, row, farthest, last, *first = numbers.tolist()
        most = _ROUNDED * max(largest, self._usual)
        counts = all(0 <= n <= _MOST_LABELS and n == int(n) for n in (count, row))
        sizes = abs(mean) <= most and 0 <= square <= 4 * most * most and 0 <= farthest <= 2 * most
        labels = max(map(abs, first)) <= most and (abs(last) <= most or last == _NO_LABEL)
        if not (counts and sizes and labels):
            raise ValueError("state has limits of labels that no labels can have set.")

    def restore(self, numbers: Array) -> None:
        """Take over what ``numbers`` gave."""
        self._count, self._mean, self._square = int(numbers[0]), float(numbers[1]), float(numbers[2])
        self._row, self._farthest, self._last = int(numbers[3]), float(numbers[4]), float(numbers[5])
        self._first = numbers[6:].copy()


def believed(labels: Array) -> Array:
    """All labels of a table, those that cannot be as NaN; what is left is as it was.

    A table tells a heavy tail from wild labels by the gap before these: going outward from the median, the first label
    at four times the distance of the one before, ten deviations away or more, is wild, and all beyond it are, if they
    are at most one in 25. So are those that ``_wild.n_tame`` tells, one in eight of them fifty deviations away. Nothing
    is clipped: on Tom's hardware, whose labels go on to 90 deviations with no gap, that costs a third of what can be
    learned. Of 1000 labels of Student's t with two degrees of freedom or of a Pareto tail of 1.5 it is 0.1 and 0.3 on
    average that are left out.

    >>> import numpy as np
    >>> believed(np.array([1.0, 2.0, 3.0, 5.0, 1.0, 3.0, 6.0, 90.0]))
    array([ 1.,  2.,  3.,  5.,  1.,  3.,  6., nan])
    """
    if not len(labels):
        return labels
    apart = np.abs(labels - float(np.median(labels)))
    sizes = np.sort(apart)
    tame = _wild.n_tame(sizes)
    first = max(1, len(sizes) - max(1, len(sizes) // _RARE))
    before, after = sizes[first - 1 : tame - 1], sizes[first:tame]
    gaps = np.flatnonzero((after > _GAP * before) & (after > _FLOOR * _wild.deviation(apart)))
    tame = first + int(gaps[0]) if len(gaps) else tame
    return np.where(apart > sizes[tame - 1], np.nan, labels)
