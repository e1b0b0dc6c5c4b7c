"""The sums of an agent's own data, compiled: A, b, c, m, and what they say of a model.

Of A only tiles on and below the diagonal are summed up, each entry by a chain of fused operations in the order of the
samples, so that it has the same bits however samples are cut into blocks.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import add_row, dot_row
from laconic.engine.vectors import jit, load, splat, store, vector_fma
from laconic.engine.wave_rounds import gain_row

_TILE = 4  # doubles of a vector
_FAR = 3.0  # what one sample may say beside others, in root mean squares


@entry
def look_back(information, moments, numbers, theta, change, residual, seen):
    """What samples say of a model: r = b - A theta into ``residual``, and for each output a row of ``seen``.

    That is c - 2 b.theta + theta'A theta, and d'A d with d = ``change``.
    """
    outputs, n = theta.shape
    size = information.shape[1]
    row, product = np.zeros((1, size)), np.empty((1, size))
    for k in range(outputs):
        square, bend = numbers[1 + k], 0.0
        for j in range(n):
            row[0, j] = theta[k, j]
        gain_row(information, 0, row, 0, size, product)
        for j in range(n):
            residual[k, j] = moments[k, j] - product[0, j]
            square -= (moments[k, j] + residual[k, j]) * theta[k, j]
            row[0, j] = change[k, j]
        gain_row(information, 0, row, 0, size, product)
        for j in range(n):
            bend += product[0, j] * change[k, j]
        seen[k, 0], seen[k, 1] = square, bend


@entry
def watch(phi, first, step, stop, squares, watched, sums):
    """Sums of x = s e u.phi, of x^2 and of 1 over samples, a row for each output: e is their error at theta.

    Each x is cut to three root mean squares. Two rows of ``watched`` for each output are theta and u.
    """
    size = watched.shape[1]
    for row in range(first, stop, step):
        weight = squares[row, 0]
        if weight > 0.0:
            for k in range(sums.shape[0]):
                error = squares[row, 2 + k] - dot_row(watched, 2 * k * size, phi, row * size, size)
                x = weight * error * dot_row(watched, (2 * k + 1) * size, phi, row * size, size)
                sums[k, 2] += 1.0
                most = _FAR * math.sqrt((sums[k, 1] + x * x) / sums[k, 2])
                x = max(-most, min(most, x))
                sums[k, 0] += x
                sums[k, 1] += x * x


@entry
def whole(information, made):
    """All of A from its tiles on and below the diagonal."""
    for i in range(made.shape[0]):
        for j in range(i + 1):
            made[i, j] = made[j, i] = information[i, j]


@entry
def add_samples(information, moments, numbers, phi, first, step, stop, squares, forgetting, scaled):
    """A, b, c, m of samples ``first``, ``first`` + ``step``, .. of ``phi``.

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
