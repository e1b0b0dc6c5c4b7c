"""How much of each neighbour's pull passes when pulls are clipped to a multiple of their median (``robust="clip"``).

An agent i compares its neighbours by two distances: of what they say now, p_j = theta-hat_i - theta-hat_j, and of all
that they have said, F_j = S_i - S_j, where S is the running sum of theta-hat. With the reach r and the lower median m,

    kept_j  = min(1, r m(|F|) / |F_j|)^2                 what passes of F_j, in the dual
    taken_j = kept_j min(1, r m(|p|) / |p_j|)            what passes of p_j, in the step

Who differs from its neighbours in the same direction for ever has an F that grows for ever, while those of honest
neighbours stay together: the square lets its weight fall faster than F grows, so that in the end it is not heard at
all. Clipped to a constant length instead, it would pull for ever, the others would follow, their median would grow, and
with it what it may do.

The median is the lower one, so that of two neighbours the nearer is believed. One neighbour alone is compared with what
the agent has said itself: |theta-hat_i| and |S_i|; until it has said something, there is nothing to compare with.
"""

from __future__ import annotations

import numpy as np

from laconic._validate import Array


def weigh(apart: Array, shares: Array, said: Array, total: Array, reach: float) -> tuple[Array, Array]:
    """(taken, kept) of each neighbour of one agent.

    Parameters
    ----------
    apart, shares : array (n_neighbours, n_features)
        theta-hat_i - theta-hat_j, and S_i - S_j.
    said, total : array (n_features,)
        theta-hat_i, and S_i.
    reach : float
        How many times the median a pull may be.

    Examples
    --------
    Of three neighbours two are near. The third is as far as ever, in the second example for a hundred rounds:

    >>> import numpy as np
    >>> near_and_far = np.array([[0.1], [-0.1], [0.6]])
    >>> taken, kept = weigh(near_and_far, near_and_far, np.ones(1), np.ones(1), reach=1.5)
    >>> taken.round(4), kept.round(4)
    (array([1.    , 1.    , 0.0156]), array([1.    , 1.    , 0.0625]))
    >>> shares = np.array([[0.2], [-0.2], [60.0]])
    >>> float(weigh(near_and_far, shares, np.ones(1), np.ones(1), reach=1.5)[1][2].round(8))
    2.5e-05
    """
    if len(apart) == 1 and not said.any():
        return np.ones(1), np.ones(1)
    kept = _passes(_length(shares), _length(total[None]), reach) ** 2
    return kept * _passes(_length(apart), _length(said[None]), reach), kept


def _length(rows: Array) -> Array:
    rows = rows.astype(np.float64)
    return np.sqrt((rows * rows).sum(axis=1))


def _passes(lengths: Array, own: Array, reach: float) -> Array:
    """min(1, reach m / length) for each length; m is their lower median."""
    compared = np.sort(np.concatenate([lengths, own]) if len(lengths) == 1 else lengths)
    limit = reach * compared[(len(compared) - 1) // 2] if len(lengths) else 0.0
    passes = np.ones(len(lengths))
    beyond = lengths > limit
    passes[beyond] = limit / lengths[beyond]
    return passes
