"""The sums of an agent's own data, compiled: A, b, c, m, and what they say of a model.

Of A only tiles on and below the diagonal are summed up, each entry by a chain of fused operations in the order of the
samples, so that it has the same bits however samples are cut into blocks; then the rest is copied from there.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import add_row
from laconic.engine.vectors import jit, load, splat, store, vector_fma

_TILE = 4  # doubles of a vector


@entry
def look_back(information, moments, numbers, theta, change, direction, residual, seen):
    """What samples say of a model: r = b - A theta into ``residual``, and for each output a row of ``seen``.

    That is c - 2 b.theta + theta'A theta, d'A d, u.r and u'A u, with d = ``change`` and u = ``direction``.
    """
    outputs, n = theta.shape
    along, across = np.empty(n), np.empty(n)
    for k in range(outputs):
        residual[k] = moments[k, :n]
        along[:], across[:] = 0.0, 0.0
        for i in range(n):
            t, d, u = theta[k, i], change[k, i], direction[k, i]
            for j in range(n):
                a = information[i, j]
                residual[k, j] -= a * t
                along[j] += a * d
                across[j] += a * u
        square = bend = pull = sway = 0.0
        for j in range(n):
            square -= (moments[k, j] + residual[k, j]) * theta[k, j]
            bend += along[j] * change[k, j]
            pull += direction[k, j] * residual[k, j]
            sway += across[j] * direction[k, j]
        seen[k, 0], seen[k, 1], seen[k, 2], seen[k, 3] = numbers[1 + k] + square, bend, pull, sway


@entry
def add_samples(information, moments, numbers, phi, first, step, stop, squares, forgetting, scaled):
    """A, b, c, m of samples ``first``, ``first`` + ``step``, .. of ``phi``; A is whole when it returns.

    ``numbers`` are m and each output's c; ``scaled`` is room for some rows. With f < 1 all that came before shrinks by
    f each time.
    """
    size, outputs = information.shape[1], moments.shape[0]
    while first < stop:
        n = 0
        while n < scaled.shape[0] and first < stop:
            weight = squares[first, 0]
            if forgetting < 1.0:
                numbers *= forgetting
                moments *= forgetting
            numbers[0] += squares[first, 1]
            for k in range(outputs):
                target = squares[first, 2 + k]
                numbers[1 + k] += weight * target * target
                add_row(moments, k * size, weight * target, phi, first * size, size)
            root = splat(math.sqrt(weight))
            for k in range(0, size, _TILE):
                store(scaled, n * size + k, root * load(phi, first * size + k))
            n += 1
            first += step
        add_products(information, scaled, n, forgetting)
    for j in range(size):
        for k in range(j // _TILE * _TILE + _TILE, size):
            information[j, k] = information[k, j]


@jit
def add_products(information, rows, n, forgetting):
    """A <- f A + x x' for each of n rows x, in their order."""
    size = information.shape[1]
    shrink = splat(forgetting)
    for j in range(0, size, _TILE):
        k = 0
        while (
            k <= j
        ):  # two tiles at a time; of the last, which may lie beyond the diagonal, the second is a first again
            at0, wide = j * size + k, _TILE if k < j else 0
            at1, at2, at3 = at0 + size, at0 + 2 * size, at0 + 3 * size
            a0, a1 = load(information, at0), load(information, at1)
            a2, a3 = load(information, at2), load(information, at3)
            b0, b1 = load(information, at0 + wide), load(information, at1 + wide)
            b2, b3 = load(information, at2 + wide), load(information, at3 + wide)
            for row in range(n):
                x, y = load(rows, row * size + k), load(rows, row * size + k + wide)
                if forgetting < 1.0:
                    a0, a1, a2, a3 = shrink * a0, shrink * a1, shrink * a2, shrink * a3
                    b0, b1, b2, b3 = shrink * b0, shrink * b1, shrink * b2, shrink * b3
                f0, f1, f2, f3 = (
                    splat(rows[row, j]),
                    splat(rows[row, j + 1]),
                    splat(rows[row, j + 2]),
                    splat(rows[row, j + 3]),
                )
                a0, b0 = vector_fma(f0, x, a0), vector_fma(f0, y, b0)
                a1, b1 = vector_fma(f1, x, a1), vector_fma(f1, y, b1)
                a2, b2 = vector_fma(f2, x, a2), vector_fma(f2, y, b2)
                a3, b3 = vector_fma(f3, x, a3), vector_fma(f3, y, b3)
            store(information, at0, a0)
            store(information, at1, a1)
            store(information, at2, a2)
            store(information, at3, a3)
            store(information, at0 + wide, b0)
            store(information, at1 + wide, b1)
            store(information, at2 + wide, b2)
            store(information, at3 + wide, b3)
            k += 2 * _TILE
