"""Pulls clipped to a multiple of their median, over rows: the equations are in ``laconic._clipping``.

The sums that duals are made of are double precision in every run, and what is compared is, too.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.rows import clear_row, distance_row, dot_row
from laconic.engine.vectors import counted, jit, load, splat, store, width_of


@jit
def sum_up(sums, broadcast, row):
    """S <- S + theta-hat, of one row."""
    for k in range(sums.shape[1]):
        sums[row, k] += np.float64(broadcast[row, k])


@counted
def limit_of(lengths, own, reach):
    """``reach`` times the lower median of the lengths; one length alone is compared with ``own``."""
    n = lengths.size
    if n == 1:
        return reach * min(lengths[0], own)
    ordered = lengths.copy()
    for k in range(1, n):  # few, so this is quick
        length, at = ordered[k], k
        while at > 0 and ordered[at - 1] > length:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = length
    return reach * ordered[(n - 1) // 2]


@counted
def weigh_row(reach, broadcast, sums, at, neighbours, start, stop, size):
    """(taken, kept) of each neighbour of the row that starts at ``at``."""
    n = stop - start
    taken, kept = np.ones(n), np.ones(n)
    if n == 0:
        return taken, kept
    said = math.sqrt(np.float64(dot_row(broadcast, at, broadcast, at, size)))
    if n == 1 and said == 0.0:  # nothing to compare with
        return taken, kept
    for k in range(n):
        other = neighbours[start + k] * size
        taken[k] = math.sqrt(np.float64(distance_row(broadcast, at, broadcast, other, size)))
        kept[k] = math.sqrt(distance_row(sums, at, sums, other, size))
    near = limit_of(taken, said, reach)
    far = limit_of(kept, math.sqrt(dot_row(sums, at, sums, at, size)), reach)
    for k in range(n):
        passes = far / kept[k] if kept[k] > far else 1.0
        kept[k] = passes * passes
        taken[k] = kept[k] * (near / taken[k] if taken[k] > near else 1.0)
    return taken, kept


@jit
def clip_disagreement(taken, broadcast, at, neighbours, start, stop, disagreement, size):
    """G = sum_j taken_j (theta-hat_i - theta-hat_j), in the order of the neighbour list."""
    real = broadcast.dtype.type
    clear_row(disagreement, 0, size)
    for n in range(start, stop):
        other, factor = neighbours[n] * size, splat(real(taken[n - start]))
        for k in range(0, size, width_of(broadcast)):
            apart = load(broadcast, at + k) - load(broadcast, other + k)
            store(disagreement, k, load(disagreement, k) + factor * apart)


@jit
def clip_mixture(taken, broadcast, at, neighbours, combination, start, stop, pull, size):
    """Sum of a_ij taken_j (theta-hat_j - theta-hat_i), in the order of the neighbour list."""
    real = broadcast.dtype.type
    clear_row(pull, 0, size)
    for n in range(start, stop):
        other, factor = neighbours[n] * size, splat(real(taken[n - start]) * combination[n])
        for k in range(0, size, width_of(broadcast)):
            apart = load(broadcast, other + k) - load(broadcast, at + k)
            store(pull, k, load(pull, k) + factor * apart)


@jit
def clip_duals(kept, rho, sums, at, neighbours, start, stop, duals, duals_at, size):
    """Gamma = rho sum_j kept_j (S_i - S_j)."""
    real = duals.dtype.type
    row, own = duals_at // size, at // size
    for k in range(size):
        total = real(0.0)
        for n in range(start, stop):
            total += real(kept[n - start] * (sums[own, k] - sums[neighbours[n], k]))
        duals[row, k] = rho * total
