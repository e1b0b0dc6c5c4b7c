"""Raw inputs, made comparable: the front end of a feature map that needs no bandwidth.

Each column is measured once, on the first rows that there are: its mean m and deviation s, with what lies beyond
median +- 20 IQR/1.349 clipped, and what lies so far from all others that it cannot be a measurement left out, so that
no single value decides them. From then on

    u = (x - m)/s,    lifted = [asinh(u), u]

for the columns that vary. asinh(u) is u near zero and grows as a logarithm, so that a heavy tail does not use up the
whole range of a map; u keeps lines straight. Both stand side by side, and each frequency looks at one of them.
"""

from __future__ import annotations

from typing import Self, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._wild import n_tame
from laconic._worded import ArgumentError

_FENCE = 20 / 1.349  # of a normal column, the interquartile range is 1.349 deviations
#: Deviations at which a linear block stops growing, where a few rows have told them.
REACH = 5.0


@final
class Scaling:
    """Centre and scale of each input; one whose scale is 0 is ignored.

    Parameters
    ----------
    centre, scale : arrays (n_inputs,)
        m and s. Where all scales are 0 the lifted inputs are a single zero.
    reach : float
        Where a linear block is cut off, in deviations: 5 where a few rows have told them; a whole table can afford 25.

    Attributes
    ----------
    columns : int array (d,)
        The inputs that are not ignored.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = Scaling.measure(np.array([[1.0, 7.0, 10.0], [3.0, 7.0, 30.0]]))
    >>> scaling.centre, scaling.scale, scaling.columns
    (array([ 2.,  7., 20.]), array([ 1.,  0., 10.]), array([0, 2]))
    >>> scaling.standard(np.array([4.0, 0.0, 20.0]))
    array([2., 0.])
    """

    def __init__(self, centre: object, scale: object, reach: float = REACH) -> None:
        self.centre = _row("centre", centre)
        self.scale = _row("scale", scale)
        if self.centre.shape != self.scale.shape:
            raise ArgumentError("scale", f"must be as long as centre ({len(self.centre)}), got {len(self.scale)}.")
        if (self.scale < 0).any():
            raise ArgumentError("scale", "must be at least 0 everywhere.")
        self.reach = _validate.number("reach", reach, above=0)
        self.columns = np.flatnonzero(self.scale)
        self.columns.flags.writeable = False

    @classmethod
    def measure(cls, X_first: object, reach: float = REACH) -> Self:
        """The scaling of the rows of ``X_first``, (n, n_inputs) or (rounds, agents, n_inputs)."""
        rows = _validate.real_array("X_first", X_first, "(n, n_inputs) or (rounds, agents, n_inputs)")
        if rows.ndim not in (2, 3) or 0 in rows.shape:
            shape = "(n, n_inputs) or (rounds, agents, n_inputs), at least one row and one input"
            raise ArgumentError("X_first", f"must have shape {shape}, got {rows.shape}.")
        _validate.finite("X_first", rows)
        rows = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            low, middle, high = np.quantile(rows, (0.25, 0.5, 0.75), axis=0)
            fence = np.where(high > low, _FENCE * (high - low), np.inf)
            usual = np.clip(_without_wild(rows, middle), middle - fence, middle + fence)
            # A column that does not vary may have a mean that is off by a rounding, and so a deviation above zero.
            varies = usual.max(axis=0) > usual.min(axis=0)
            centre = np.where(varies, usual.mean(axis=0), usual[0])
            scale = np.where(varies, usual.std(axis=0), 0.0)
            sizes = np.abs(centre) + (scale**2).sum()
        if not np.isfinite(sizes).all():
            raise ArgumentError("X_first", "holds values too large to be scaled.")
        return cls(centre, scale, reach)

    def farthest(self, X: Array) -> float:
        """How many deviations off the farthest value of a table (n, n_inputs) is, wild ones aside."""
        rows = np.asarray(X, dtype=np.float64)[:, self.columns]
        apart = np.abs(rows - np.median(rows, axis=0))
        tame = apart <= _farthest_tame(apart)
        with np.errstate(over="ignore"):
            sizes = np.abs(rows - self.centre[self.columns]) / self.scale[self.columns]
        return float(np.max(sizes, where=tame, initial=0.0))

    @property
    def n_inputs(self) -> int:
        """How long an input is, ignored entries and all."""
        return len(self.centre)

    @property
    def n_lifted(self) -> int:
        """How long a lifted input is: twice the inputs that are not ignored."""
        return 2 * max(1, len(self.columns))

    def standard(self, X: Array) -> Array:
        """u = (x - m)/s of the columns that are not ignored, in double precision."""
        kept = self.columns
        with np.errstate(over="ignore"):
            shifted: Array = (X[..., kept].astype(np.float64) - self.centre[kept]) / self.scale[kept]
        return shifted

    def lift(self, X: Array) -> Array:
        """[asinh(u), u], in the precision of ``X``."""
        if not len(self.columns):
            return np.zeros((*X.shape[:-1], 2), dtype=X.dtype)
        u = self.standard(X)
        return np.concatenate([np.arcsinh(u), u], axis=-1).astype(X.dtype)

    def direct(self, X: Array) -> Array:
        """clip(u, +-reach)/sqrt(d), what a linear block sees, in the precision of ``X``."""
        u = self.standard(X)
        cut: Array = (np.clip(u, -self.reach, self.reach) * self.share).astype(X.dtype)
        return cut

    @property
    def share(self) -> float:
        """1/sqrt(d): so that a typical input has length one."""
        return max(1, len(self.columns)) ** -0.5


def _without_wild(rows: Array, middle: Array) -> Array:
    """The rows with their wild values, column by column, at the column's middle; the same where there are none."""
    apart = np.abs(rows - middle)
    return np.where(apart > _farthest_tame(apart), middle, rows)


def _farthest_tame(apart: Array) -> Array:
    """Of each column of distances the largest that is not wild."""
    return np.array([column[n_tame(column) - 1] for column in np.sort(apart, axis=0).T])


def _row(name: str, value: object) -> Array:
    """A read-only copy of a row of finite numbers."""
    array = _validate.real_array(name, value, "(n_inputs,)", ndim=1)
    if not len(array):
        raise ArgumentError(name, "must have at least one entry.")
    array = np.array(_validate.finite(name, array), dtype=np.float64)
    array.flags.writeable = False
    return array
