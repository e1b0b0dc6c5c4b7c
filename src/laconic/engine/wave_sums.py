"""The sums of an agent's own data, compiled: A, b, c, m, and what they say of a model.

Of A only tiles on and below the diagonal are summed up, each entry by a chain of fused operations in the order of the
samples, so that it has the same bits however samples are cut into blocks.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import add_row, dot_row
from laconic.engine.vectors import ladder, lean, load, splat, store, turned, vector_fma
from laconic.engine.wave_lowering import gain_row, splats
from laconic.engine.wide import lanes_of, load_four, load_like, longest_zero, splat_of, store_four

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
def report(
    information,
    moments,
    numbers,
    phi,
    added,
    counted,
    step,
    stop,
    squares,
    forgetting,
    scaled,
    watched,
    sums,
    theta,
    change,
    made,
    residual,
    seen,
):
    """``add_samples`` from row ``added`` on, ``watch`` from ``counted`` on, then ``lower_half`` and ``look_back``.

    A row of ``seen`` is c, then what ``look_back`` says, then the first two of ``sums``. Returns m.
    """
    add_samples(information, moments, numbers, phi, added, step, stop, squares, forgetting, scaled)
    watch(phi, counted, step, stop, squares, watched, sums)
    lower_half(information, made)
    look_back(information, moments, numbers, theta, change, residual, seen[:, 1:3])
    for k in range(seen.shape[0]):
        seen[k, 0], seen[k, 3], seen[k, 4] = numbers[1 + k], sums[k, 0], sums[k, 1]
    return numbers[0]


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
    n, size = made.shape[0], information.shape[1]
    full = n // _TILE * _TILE
    for i in range(0, full, _TILE):
        for k in range(0, i + 1, _TILE):
            at, to, over = i * size + k, i * n + k, k * n + i
            r0, r1 = load(information, at), load(information, at + size)
            r2, r3 = load(information, at + 2 * size), load(information, at + 3 * size)
            store(made, to, r0)
            store(made, to + n, r1)
            store(made, to + 2 * n, r2)
            store(made, to + 3 * n, r3)
            if k < i:
                r0, r1, r2, r3 = turned(r0, r1, r2, r3)
                store(made, over, r0)
                store(made, over + n, r1)
                store(made, over + 2 * n, r2)
                store(made, over + 3 * n, r3)
    for i in range(full, n):
        for j in range(i + 1):
            made[i, j] = made[j, i] = information[i, j]


@lean
def lower_half(information, made):
    """A without what is above the tiles on its diagonal, which nobody reads in the sum of a subtree."""
    n, size = made.shape[0], information.shape[1]
    full = n // _TILE * _TILE
    for i in range(full):
        for k in range(0, i + 1, _TILE):
            store(made, i * n + k, load(information, i * size + k))
    for i in range(full, n):
        for j in range(i + 1):
            made[i, j] = information[i, j]


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


@lean
def add_products(information, rows, n, forgetting):
    """A <- f A + x x' for each of n rows x, in their order."""
    add_products_by(information, rows, n, forgetting, longest_zero(rows))


@lean
def add_products_by(information, rows, n, forgetting, zero):
    """That in vectors as long as ``zero``, which all give the same bits: three at a time, then those that are left."""
    size, length = information.shape[1], lanes_of(zero)
    for j in range(0, size, _TILE):
        k, end = 0, j + _TILE
        while k + 3 * length <= end:
            add_three(information, rows, n, forgetting, j, k, zero)
            k += 3 * length
        while k + length <= end:
            add_one(information, rows, n, forgetting, j, k, zero)
            k += length
        if k < end:
            add_one(information, rows, n, forgetting, j, k, splat(0.0))


@ladder
def add_three(information, rows, n, forgetting, j, k, zero):
    """That for four rows of A from j on, and three vectors of columns from k on."""
    size, length, shrink = information.shape[1], lanes_of(zero), splat_of(forgetting, zero)
    at = j * size + k
    a0, a1, a2, a3 = load_four(information, at, zero)
    b0, b1, b2, b3 = load_four(information, at + length, zero)
    c0, c1, c2, c3 = load_four(information, at + 2 * length, zero)
    for row in range(n):
        place = row * size + k
        x, y, z = (
            load_like(rows, place, zero),
            load_like(rows, place + length, zero),
            load_like(rows, place + 2 * length, zero),
        )
        if forgetting < 1.0:
            a0, a1, a2, a3 = shrink * a0, shrink * a1, shrink * a2, shrink * a3
            b0, b1, b2, b3 = shrink * b0, shrink * b1, shrink * b2, shrink * b3
            c0, c1, c2, c3 = shrink * c0, shrink * c1, shrink * c2, shrink * c3
        f0, f1, f2, f3 = splats(rows, row * size + j, zero)
        a0, b0, c0 = vector_fma(f0, x, a0), vector_fma(f0, y, b0), vector_fma(f0, z, c0)
        a1, b1, c1 = vector_fma(f1, x, a1), vector_fma(f1, y, b1), vector_fma(f1, z, c1)
        a2, b2, c2 = vector_fma(f2, x, a2), vector_fma(f2, y, b2), vector_fma(f2, z, c2)
        a3, b3, c3 = vector_fma(f3, x, a3), vector_fma(f3, y, b3), vector_fma(f3, z, c3)
    store_four(information, at, a0, a1, a2, a3)
    store_four(information, at + length, b0, b1, b2, b3)
    store_four(information, at + 2 * length, c0, c1, c2, c3)


@ladder
def add_one(information, rows, n, forgetting, j, k, zero):
    """That for a single vector of columns."""
    size, shrink = information.shape[1], splat_of(forgetting, zero)
    a0, a1, a2, a3 = load_four(information, j * size + k, zero)
    for row in range(n):
        x = load_like(rows, row * size + k, zero)
        if forgetting < 1.0:
            a0, a1, a2, a3 = shrink * a0, shrink * a1, shrink * a2, shrink * a3
        f0, f1, f2, f3 = splats(rows, row * size + j, zero)
        a0, a1, a2, a3 = vector_fma(f0, x, a0), vector_fma(f1, x, a1), vector_fma(f2, x, a2), vector_fma(f3, x, a3)
    store_four(information, j * size + k, a0, a1, a2, a3)
