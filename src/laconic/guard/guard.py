"""Samples that cannot be: labels and inputs far from all that a stream has shown are clipped, or not learned from.

A model that has once learned a label of 1e6 where labels are about 1 needs thousands of samples to forget it, and by
then all its neighbours have learned it, too. A guard between stream and learner knows what is usual, and lets that
pass untouched.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.guard import given
from laconic.guard.given import LARGEST_LABEL

BEYOND = ("clip", "drop", "off")

_FIRST = 8  # values after which limits are known
_FIRST_LABEL = 100.0  # size of labels that are learned from before, whatever they are
_INPUTS = 10  # an input may lie so many times farther off than a label: features are bounded, so it does less harm
_SPARED = 2  # of the first values, and in a row, so many may be arbitrarily wrong
_FAR = 5  # what lies so many times as far off as the limits is no measurement, and not worth being clipped
_ALONE = 5.0  # deviations that these count as, so that up to 4% of them do not widen the limits for ever
_WINDOW = 500  # values that the running mean and deviation remember
_MAGIC = b"laconic guard 1\n"
_WINDOWS = np.array([[_WINDOW], [np.inf]])
_LARGEST = 1e100  # of what is learned of, so that its square is finite
_NORMAL = 1.4826  # deviation of a normal distribution over its median absolute deviation


class Beyond(NamedTuple):
    """A number that lay beyond its limits.

    Attributes
    ----------
    what : "label" or int
        The label, or the index of the input.
    value, low, high : float
        The number and its limits.
    outcome : "clipped", "dropped" or "held back"
        Clipped to its limits; the sample not learned from; or the same, since too little is known of the labels yet.
    """

    what: str | int
    value: float
    low: float
    high: float
    outcome: str


class Guarded(NamedTuple):
    """A sample as it is to be learned from.

    Attributes
    ----------
    x : array (n_inputs,)
        Within the limits. The very array that was given where nothing was beyond them.
    y : float
        The label, within its limits; NaN where it was, or where the sample is not to be learned from.
    beyond : tuple of Beyond
        What was not within its limits; nearly always empty.
    """

    x: Array
    y: float
    beyond: tuple[Beyond, ...]


@final
class Guard:
    r"""Clips labels and inputs to what an agent's own stream has shown to be usual, or to limits that are given.

    Each number $v$ of a sample, the label or an input, is held to

    $$ |v - m| \le \max(k \max(s, \bar s), |m|), $$

    where $m$ and $s$ are its running mean and deviation over about the last 500 samples and $\bar s$ is the deviation
    over all of them, so that after a calm night the morning is not a surprise. They are those of the clipped values.
    What lay beyond counts as five deviations, and as one of 500: a faulty value now and then hardly widens the limits.
    Only from the third in a row on it counts as what it was clipped to: a stream that has moved for good is followed,
    in about eight samples for each power of ten. Events far off all others, in fewer than one of 25 samples, can lie
    beyond for good; give limits where they are real.

    They begin with the first eight values: $m$ is the median, $s$ the larger of 1.4826 times the median absolute
    deviation and the root mean square around the median without the two largest. Before that, and while all values were
    the same, little is known. Inputs then pass, since features are bounded. Labels pass up to a size of 100, or $k$
    times what half of the labels before exceed; larger ones are *held back*: not learned from, but learned of. So a
    stream of large labels loses its first two.

    What is not finite passes as it is.

    Parameters
    ----------
    n_inputs : int
    deviations : float
        How many deviations $k$ of labels are usual; of inputs, whose features are bounded, it is ten times as many.
        At 20, clean data of all sorts pass but for two labels in a thousand of the heaviest tails.
    label : pair of numbers, optional
        Limits of labels, instead of learned ones.
    inputs : pair of numbers or sequence of n_inputs pairs, optional
        Limits of all inputs, or of each, instead of learned ones.
    beyond : "clip", "drop" or "off"
        What to do with a sample beyond the limits. Clip: learn from what is clipped, unless it lies five times as far
        off as the limits that were learned; then drop it. Drop: do not learn from it; its label becomes NaN, with which
        an agent still has its round, and a prediction, for the clipped input. Off: learn from it all the same. Labels
        beyond 1e12 in size are dropped in any case, since agents refuse them.
    guard_labels : bool
        False for labels that are classes: they are not far from anything.

    Examples
    --------
    >>> guard = Guard(n_inputs=1)
    >>> for t in range(100):
    ...     sample = guard([t % 7], t % 5)
    >>> guard([3.0], 2.0)
    Guarded(x=array([3.]), y=2.0, beyond=())
    >>> seen = guard([3.0], 40.0)
    >>> round(seen.y, 1), seen.beyond[0].what, seen.beyond[0].outcome
    (30.5, 'label', 'clipped')
    >>> guard([3.0], 1e17).y
    nan
    """

    def __init__(
        self,
        n_inputs: int,
        *,
        deviations: float = 20.0,
        label: Sequence[float] | None = None,
        inputs: Sequence[Any] | None = None,
        beyond: str = "clip",
        guard_labels: bool = True,
    ) -> None:
        self.n_inputs = _validate.integer("n_inputs", n_inputs, least=1)
        self.deviations = _validate.number("deviations", deviations, least=1)
        self.beyond = _validate.choice("beyond", beyond, BEYOND)
        size = 1 + self.n_inputs  # the label comes first
        self._low, self._high = np.full(size, -np.inf), np.full(size, np.inf)
        self._learned = np.full(size, self.beyond != "off")
        self._learned[0] &= guard_labels
        if label is not None:
            self._low[0], self._high[0] = given.pair("label", label)
            self._learned[0] = False
        if inputs is not None:
            pairs = given.pairs(inputs, self.n_inputs)
            self._low[1:], self._high[1:] = pairs[:, 0], pairs[:, 1]
            self._learned[1:] = False
        self._given = np.isfinite(self._low)
        if self.beyond == "off" or not guard_labels:
            self._low[0], self._high[0] = -LARGEST_LABEL, LARGEST_LABEL
        if self.beyond == "off":
            self._low[1:], self._high[1:] = -np.inf, np.inf
        self._any_learned, self._all_learned = bool(self._learned.any()), bool(self._learned.all())
        self._factors = np.full(size, _INPUTS * self.deviations)
        self._factors[0] = self.deviations
        self._count, self._row = np.zeros(size), np.zeros(size)  # values, and how many of the last were beyond
        self._first = np.zeros((_FIRST, size))
        self._mean, self._square = np.zeros((2, size)), np.zeros((2, size))  # running, and over all values
        self._set_limits()

    def __repr__(self) -> str:
        return f"Guard({self.n_inputs}, deviations={self.deviations:g}, beyond={self.beyond!r})"

    @property
    def limits(self) -> Array:
        """(1 + n_inputs, 2): the lower and upper limits of the label and of each input, as of now."""
        return np.column_stack([self._lower, self._upper])

    def __call__(self, x: object, y: float | None) -> Guarded:
        """The sample (x, y) as it is to be learned from; NaN or None is a missing label."""
        values = np.empty(1 + self.n_inputs)
        values[0] = label = math.nan if y is None else float(y)
        inputs = np.asarray(x, dtype=np.float64)
        if inputs.shape != (self.n_inputs,):
            raise ArgumentError("x", f"must have shape ({self.n_inputs},), got {inputs.shape}.")
        values[1:] = inputs
        inside = (values >= self._lower) & (values <= self._upper)
        if inside.all():
            if self._any_learned:
                self._row[:] = 0
                self._learn(values, inside, inside)
            return Guarded(inputs, label, ())
        finite = np.isfinite(values)
        clipped = np.where(finite, np.clip(values, self._lower, self._upper), values)
        beyond = tuple(self._judge(int(k), float(values[k])) for k in np.flatnonzero(finite & ~inside))
        if beyond:
            inputs = clipped[1:]
            label = float(clipped[0]) if all(one.outcome == "clipped" for one in beyond) else math.nan
        if self._any_learned:
            counted = self._counted(clipped, finite & ~inside)
            self._learn(np.where(self._count < _FIRST, values, counted), finite, inside)
        return Guarded(inputs, label, beyond)

    def _judge(self, index: int, value: float) -> Beyond:
        low, high = float(self._lower[index]), float(self._upper[index])
        if index == 0 and self._learned[0] and self._unknown[0]:
            outcome = "held back"
        elif self._learned[index]:
            middle = self._mean[0, index]
            near = middle - _FAR * (middle - low) <= value <= middle + _FAR * (high - middle)
            outcome = "clipped" if near and self.beyond == "clip" else "dropped"
        else:
            outcome = "clipped" if self.beyond == "clip" and self._given[index] else "dropped"
        return Beyond(index - 1 if index else "label", value, low, high, outcome)

    def _counted(self, clipped: Array, beyond: Array) -> Array:
        """What moves means and deviations: little of what was ``beyond`` alone, more from the third in a row on."""
        self._row = np.where(beyond, self._row + 1, 0)
        mean, most = self._mean[0], _ALONE * self._deviation
        return np.where(beyond & (self._row <= _SPARED), np.clip(clipped, mean - most, mean + most), clipped)

    def _learn(self, values: Array, finite: Array, inside: Array) -> None:
        """Move the means and deviations by those values that are ``finite``; what was not ``inside`` weighs less.

        m <- m + w (v - m),  s^2 <- s^2 + w ((1 - w) (v - m)^2 - s^2),  w = 1 / min(n, 500), and 1 / n.
        """
        self._count += finite
        if self._beginning:
            self._begin(values, finite)
            finite = finite & (self._count > _FIRST)
        weight = 1.0 / np.minimum(np.maximum(self._count, 1.0), _WINDOWS)
        if inside is not finite or not self._all_learned:
            finite = finite & self._learned
            weight = np.where(inside, weight, np.minimum(weight, 1.0 / _WINDOW)) * finite
            values = np.where(finite, values, 0.0)
        apart = values - self._mean
        step = weight * apart
        self._mean += step
        self._square += step * (apart - step) - weight * self._square
        self._set_limits()

    def _begin(self, values: Array, finite: Array) -> None:
        """Keep one of the first values of each column; at the eighth, begin with their median and deviation."""
        columns = np.flatnonzero(finite & (self._count <= _FIRST))
        places = self._count[columns].astype(int) - 1
        self._first[places, columns] = np.clip(values[columns], -_LARGEST, _LARGEST)
        full = columns[places == _FIRST - 1]
        first = self._first[:, full]
        middle = np.median(first, axis=0)
        apart = np.sort(np.abs(first - middle), axis=0)
        usual = np.minimum(apart[:-_SPARED], _LARGEST)
        deviation = np.maximum(_NORMAL * np.median(apart, axis=0), np.sqrt((usual**2).mean(axis=0)))
        self._mean[:, full] = middle
        self._square[:, full] = np.minimum(deviation, _LARGEST) ** 2

    def _set_limits(self) -> None:
        mean = self._mean[0]
        self._deviation = deviation = np.sqrt(self._square.max(axis=0))
        size = np.abs(mean)
        width = np.maximum(self._factors * deviation, size)
        # While all values are the same, there is no deviation to judge another one by.
        self._unknown = (self._count < _FIRST) | (deviation == 0)
        if self._unknown.any():
            width[self._unknown] = _LARGEST
        self._beginning = bool((self._count < _FIRST).any())
        if self._unknown[0]:
            width[0] = max(_FIRST_LABEL, self.deviations * self._size_exceeded())
        self._lower = np.where(self._learned, mean - width, self._low)
        self._upper = np.where(self._learned, mean + width, self._high)
        if self._learned[0]:
            self._lower[0], self._upper[0] = max(self._lower[0], -LARGEST_LABEL), min(self._upper[0], LARGEST_LABEL)

    def _size_exceeded(self) -> float:
        """What half of the first labels exceed in size, or more; 0 while there is at most one, which may be wrong."""
        n = min(int(self._count[0]), _FIRST)
        return float(np.sort(np.abs(self._first[:n, 0]))[n // 2 - 1]) if n > 1 else 0.0

    # ----------------------------------------------------------------------------------------------------------------
    # Memory

    def to_bytes(self) -> bytes:
        """All that was learned of the stream, to go on after a restart."""
        rows = np.vstack([self._count, self._row, self._mean, self._square, self._first])
        body = _MAGIC + rows.astype("<f8").tobytes()
        return body + zlib.crc32(body).to_bytes(4, "little")

    def restore(self, data: bytes) -> None:
        """Know what a guard of as many inputs knew when it gave ``data``; ValueError, and nothing changes, if not."""
        size, body = 1 + self.n_inputs, data[:-4]
        if len(body) != len(_MAGIC) + 8 * (6 + _FIRST) * size or not body.startswith(_MAGIC):
            raise ValueError(f"data must be what a guard of {self.n_inputs} inputs gave.")
        if zlib.crc32(body).to_bytes(4, "little") != data[-4:]:
            raise ValueError("data must be what a guard gave, but its checksum is wrong.")
        rows = np.frombuffer(body, dtype="<f8", offset=len(_MAGIC)).reshape(-1, size).astype(np.float64)
        if not np.isfinite(rows).all() or (rows[:2] < 0).any() or (rows[:2] % 1).any() or (rows[4:6] < 0).any():
            raise ValueError("data must hold finite numbers, whole counts and no negative squares.")
        (self._count, self._row), self._mean, self._square, self._first = rows[:2], rows[2:4], rows[4:6], rows[6:]
        self._set_limits()
