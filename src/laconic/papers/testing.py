"""Is it better, or luck? Paired tests of scipy's over seeds, and Holm's correction where there are several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic import _extras
from laconic._validate import Array


class Test(NamedTuple):
    """A paired test: its name, and what it takes for granted."""

    name: str
    assumes: str


TESTS = {
    "t": Test(
        "paired t-test (scipy.stats.ttest_rel), two-sided",
        "assumes that the differences between paired runs are independent and normally distributed",
    ),
    "wilcoxon": Test(
        "Wilcoxon signed-rank test (scipy.stats.wilcoxon), two-sided",
        "assumes that the differences between paired runs are independent and symmetric about their median",
    ),
}


def p_value(kind: str, one: Array, other: Array) -> float:
    """The p-value of no difference; NaN where there are fewer than two pairs, or numbers are missing."""
    stats = _extras.need("scipy.stats", "a test")
    apart = one - other
    if len(apart) < 2 or not np.isfinite(apart).all():
        return float("nan")
    if not apart.any():
        return 1.0
    if kind == "t" and np.ptp(apart) <= 1e-12 * np.abs(apart).max():  # the same every time, and no variance to speak of
        return 0.0
    found = stats.ttest_rel(one, other) if kind == "t" else stats.wilcoxon(apart)
    return float(found.pvalue)


def least_p(kind: str, n: int) -> float:
    """The smallest p-value that so many pairs can give: 2/2^n by ranks."""
    return 2.0 ** (1 - n) if kind == "wilcoxon" else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the k-th smallest of m is multiplied by m - k + 1, and none is below the one before.

    What is NaN was no test, and is not counted.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [float("nan")] * len(p_values)
    tested = sorted((p, k) for k, p in enumerate(p_values) if p == p)
    reached = 0.0
    for rank, (p, k) in enumerate(tested):
        reached = max(reached, min(1.0, p * (len(tested) - rank)))
        corrected[k] = reached
    return corrected
