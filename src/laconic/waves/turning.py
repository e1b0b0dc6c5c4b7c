"""Coordinates of a message up in which its large numbers come first: reflections that both ends of a link know.

Of what a subtree says, K r and the terms of K (S - n U) K' with K = L^-1, half or more of the squares lies along a few
directions: those in which it knows most, by U, and for the vector also those that its terms have just told. Numbers
that are large and few want another order of their Rice codes than those that are small and many, but L spreads both of
them over all coordinates. So the whitened space is turned by Householder's reflections H = I - v v', as a QR
factorisation of K G makes them, the columns of G the first few of a pivoted Cholesky factor of U; and for the vector by
some more, of the codes of terms. What is large then stands in the first coordinates.

Both ends make these reflections of what they hold equal to the bit, so everything here has a written order: + - * /
sqrt, nothing fused, and every sum over coordinates in four parts, those of i = 0, 1, 2, 3 (mod 4), each from left to
right, that add up to (p0 + p2) + (p1 + p3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic._validate import Array
from laconic.waves.message import Term, heads

_SMALLEST = 2.0**-20  # of the largest entry on the diagonal: what is left of it that still makes a column


def reflections(information: Array, lower: Array) -> Array:
    """A row v for each reflection of K G, at most as many as a term of a message has numbers in its head.

    >>> U = np.diag([4.0, *8 * [0.0]])
    >>> v = reflections(U, np.eye(9))
    >>> len(v), np.round(turned(v, 2.0 * np.eye(9)[0]), 9).tolist()[0]
    (1, -2.0)
    """
    columns = strongest(information, heads(len(information), 0)[0])
    for j in range(columns.shape[1]):  # L^-1, from the first coordinate to the last
        columns[:, j] /= lower[j, j]
        columns[:, j + 1 :] -= columns[:, j : j + 1] * lower[j + 1 :, j]
    return appended(np.zeros((0, len(lower))), columns)


def strongest(information: Array, most: int) -> Array:
    """The first columns, a row each, of a Cholesky factor of U that takes the largest entry left on the diagonal."""
    left, columns = information.diagonal().copy(), np.zeros((0, len(information)))
    least = _SMALLEST * left.max()
    for _ in range(most):
        pivot = int(left.argmax())
        if not left[pivot] > least:
            break
        column = information[pivot].copy()
        for before in columns:
            column -= before * before[pivot]
        column /= np.sqrt(left[pivot])
        left -= column * column
        left[pivot] = 0.0
        columns = np.vstack([columns, column])
    return columns


def appended(known: Array, vectors: Array | Sequence[Array]) -> Array:
    """With one reflection more for each of some vectors, which are turned by those that are ``known`` already."""
    made = list(known)
    for vector in vectors:
        turned_on = turned(made[len(known) :], np.asarray(vector, dtype=np.float64))
        made.append(_reflection(turned_on, len(made)))
    return np.array(made).reshape(len(made), -1 if made else known.shape[1])


def longer(known: Array, terms: Sequence[Term]) -> Array:
    """The reflections of a message's vectors: those of its terms, and some more of the first few terms."""
    n_features = known.shape[1]
    first, more = heads(n_features, 0)[0], heads(n_features, len(terms))[1]
    return appended(known, [term.codes for term in terms[: more - first]])


def _reflection(vector: Array, place: int) -> Array:
    """v, zero before ``place``, of the reflection that leaves nothing of a vector behind it; 0 if there is nothing."""
    v = vector.copy()
    v[:place] = 0.0
    square = _sum(v * v)
    if not 0.0 < square < np.inf:
        return np.zeros_like(v)
    root = np.sqrt(square)
    scale = 1.0 / np.sqrt(square + abs(v[place]) * root)
    v[place] += root if v[place] >= 0.0 else -root
    return v * scale


def turned(known: Array | Sequence[Array], vector: Array) -> Array:
    """H_c .. H_1 x: what stands in a message."""
    for v in known:
        vector = vector - v * _sum(v * vector)
    return vector


def turned_back(known: Array | Sequence[Array], vector: Array) -> Array:
    """H_1 .. H_c x: what a message means."""
    return turned(known[::-1], vector)


def turned_matrix(known: Array, symmetric: Array) -> Array:
    """H_c .. H_1 M H_1 .. H_c, which only senders need."""
    for v in known:
        symmetric = symmetric - np.outer(v, v @ symmetric)
        symmetric = symmetric - np.outer(symmetric @ v, v)
    return 0.5 * (symmetric + symmetric.T)


def _sum(products: Array) -> float:
    p = [float(np.add.accumulate(products[k::4])[-1]) if k < len(products) else 0.0 for k in range(4)]
    return (p[0] + p[2]) + (p[1] + p[3])
