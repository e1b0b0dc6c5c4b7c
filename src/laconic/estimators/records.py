"""From a dict of features to a row of numbers, and the frequencies that belong to each feature.

A feature's frequencies are drawn from the seed and its name. So they depend neither on when the feature turned up nor
on the order of the dict, and two models with the same seed agree on them without a word.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Hashable, Mapping
from operator import itemgetter
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures


def draw_column(seed: int, name: Hashable, n_frequencies: int) -> Array:
    """Standard normal numbers (n_frequencies,) that only ``seed`` and ``name`` decide.

    >>> draw_column(0, "speed", 2) == draw_column(0, "speed", 2), draw_column(0, 1, 2) == draw_column(0, "1", 2)
    (array([ True,  True]), array([False, False]))
    """
    # Python's own hash of a string differs from one process to the next.
    digest = hashlib.blake2b(f"{seed} {_sorting_key(name)}".encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little")).standard_normal(n_frequencies)


def _sorting_key(name: Hashable) -> str:
    return f"{type(name).__name__} {name!r}"


@final
class Records:
    """The features seen so far, sorted by name, and their frequencies.

    The sorting makes sums independent of the order in which features turned up, to the last bit.

    Parameters
    ----------
    seed, n_frequencies : int
    bandwidth : float
        Width of the Gaussian kernel.

    Attributes
    ----------
    features : RandomFeatures
        Of the features seen so far; before there are any, of one that is always zero.
    sample : array (1, n_inputs)
        What ``fill`` filled last.
    """

    def __init__(self, seed: int, n_frequencies: int, bandwidth: float) -> None:
        self._seed, self._n_frequencies, self._bandwidth = seed, n_frequencies, bandwidth
        self._columns: dict[Hashable, Array] = {}
        self._arrange()

    def _arrange(self) -> None:
        names = sorted(self._columns, key=_sorting_key)
        self._columns = {name: self._columns[name] for name in names}
        columns = list(self._columns.values()) or [np.zeros(self._n_frequencies)]
        self.features = RandomFeatures(np.stack(columns, axis=1))
        self.sample = np.zeros((1, len(columns)))
        self._n_names = len(names)
        self._format = f"{len(names)}d"
        # itemgetter fetches many values in one call, but of one name it would give the bare value.
        self._pick = itemgetter(*names) if len(names) > 1 else None

    def admit(self, x: Mapping[Hashable, Any]) -> bool:
        """Draw the frequencies of features not seen before; whether there were any."""
        new = [name for name in x if name not in self._columns]
        for name in new:
            self._columns[name] = draw_column(self._seed, name, self._n_frequencies) / self._bandwidth
        if new:
            self._arrange()
        return bool(new)

    def fill(self, x: Mapping[Hashable, Any]) -> bool:
        """Write ``x`` into ``sample``, absent features as 0; False if ``x`` has features never seen."""
        sample = self.sample
        try:
            if len(x) == self._n_names and self._pick is not None:
                struct.pack_into(self._format, sample.data, 0, *self._pick(x))
                return True
        except KeyError:
            pass
        except (struct.error, OverflowError):
            raise not_a_number(x) from None
        if not x.keys() <= self._columns.keys():
            return False
        try:
            struct.pack_into(self._format, sample.data, 0, *[x.get(name, 0.0) for name in self._columns])
        except (struct.error, OverflowError):
            raise not_a_number(x) from None
        return True


def not_a_number(x: Mapping[Hashable, Any]) -> ValueError:
    """Names the feature that is to blame."""
    for name, value in x.items():
        try:
            if math.isfinite(value):
                continue
        except (TypeError, OverflowError):
            pass
        return ValueError(f"x must map features to finite numbers, but x[{name!r}] is {value!r}.")
    return ValueError("x holds numbers too large for the feature map.")
