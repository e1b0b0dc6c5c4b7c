"""Which of some numbers are so far from all others that they cannot be measurements, and the deviation of the rest."""

from __future__ import annotations

import math

import numpy as np

from laconic._validate import Array

#: So many deviations of all smaller ones away, a number is wild.
FAR = 50.0
#: Of so many numbers one may be wild; where more are far off they are no accident.
RARE = 8
_SPARED = 20  # of so many numbers the largest is not asked how far they scatter
_FEWEST = 5  # numbers by which others are judged
_LARGEST = 1e100  # of what is squared
_NORMAL = 1.4826  # deviation of a normal distribution over its median absolute deviation


def n_tame(sizes: Array) -> int:
    """How many of the sorted distances ``sizes`` belong together; those after them are wild.

    A distance is wild if it is beyond fifty times the root mean square of all smaller ones, zeros aside, and all
    larger ones are with it, if they are at most one in eight.

    >>> import numpy as np
    >>> n_tame(np.array([0.1, 0.5, 1.0, 1.2, 3.0, 1e7])), n_tame(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1e7]))
    (5, 6)
    """
    sizes = np.minimum(sizes, _LARGEST)
    zeros = int(np.searchsorted(sizes, 0.0, side="right"))
    counts = np.arange(1, len(sizes) - zeros + 1)
    first = max(_FEWEST, len(sizes) - max(1, len(sizes) // RARE) - zeros)
    if first >= len(counts):
        return len(sizes)
    usual = np.sqrt((sizes[zeros:] ** 2).cumsum() / counts)
    jumps = np.flatnonzero(sizes[zeros + first :] > FAR * usual[first - 1 : -1])
    return zeros + first + int(jumps[0]) if len(jumps) else len(sizes)


def deviation(apart: Array) -> float:
    """The deviation of numbers at the distances ``apart`` from their centre, by those that are not wild.

    The larger of 1.4826 times the median distance and the root mean square of the tame ones, and of all but the
    largest, or the largest of each twenty: so few decide nothing, and if they are wild one in eight does not. Where
    more than half are at the centre itself, as of rain, it is the deviation of the others.

    >>> import numpy as np
    >>> round(deviation(np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1e9])), 3)
    2.224
    """
    sizes = np.sort(np.minimum(apart, _LARGEST))
    sizes = sizes[sizes > 0] if 2 * np.count_nonzero(sizes) < len(sizes) else sizes
    kept = min(n_tame(sizes), len(sizes) - max(1, len(sizes) // _SPARED))
    usual = math.sqrt(float((sizes[:kept] ** 2).mean())) if kept > 0 else 0.0
    return max(_NORMAL * float(np.median(sizes)), usual) if kept > 0 else 0.0
