"""The inverse of a Cholesky factor, compiled, and of the matrix that it is of.

Four rows at a time; each entry loses its products with the rows above from the first to the last.
"""

from __future__ import annotations

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import add_row
from laconic.engine.vectors import lean, load, splat, store, turned, vector_fma

_TILE = 4  # doubles of a vector


@entry
def invert(lower, inverse, turned_over, columns):
    """K = L^-1, its transpose and that of L, padded with zeros: where they are to be 0 they are so before."""
    n, size = lower.shape[0], inverse.shape[1]
    for i in range(0, n, _TILE):
        high = min(_TILE, n - i)
        invert_rows(lower, inverse, i, high)
        for k in range(0, i + 1, _TILE):
            at, over = i * size + k, k * size + i
            a0, a1, a2, a3 = turned(
                load(inverse, at), load(inverse, at + size), load(inverse, at + 2 * size), load(inverse, at + 3 * size)
            )
            store(turned_over, over, a0)
            store(turned_over, over + size, a1)
            store(turned_over, over + 2 * size, a2)
            store(turned_over, over + 3 * size, a3)
            if high == _TILE and k < i:
                at = i * n + k
                a0, a1, a2, a3 = turned(
                    load(lower, at), load(lower, at + n), load(lower, at + 2 * n), load(lower, at + 3 * n)
                )
                store(columns, over, a0)
                store(columns, over + size, a1)
                store(columns, over + 2 * size, a2)
                store(columns, over + 3 * size, a3)
        for row in range(i, i + high):
            for j in range(i if high == _TILE else 0, row + 1):
                columns[j, row] = lower[row, j]


@lean
def invert_rows(lower, inverse, i, high):
    """``high`` rows of L^-1 from i on, at most four; those above are there, and what is beyond the tiles is left."""
    size, zero = inverse.shape[1], splat(0.0)
    if high == _TILE:
        for k in range(0, i, _TILE):
            a0 = a1 = a2 = a3 = zero
            for j in range(k, i):
                x = load(inverse, j * size + k)
                a0, a1 = a0 + splat(-lower[i, j]) * x, a1 + splat(-lower[i + 1, j]) * x
                a2, a3 = a2 + splat(-lower[i + 2, j]) * x, a3 + splat(-lower[i + 3, j]) * x
            at = i * size + k
            store(inverse, at, a0)
            store(inverse, at + size, a1)
            store(inverse, at + 2 * size, a2)
            store(inverse, at + 3 * size, a3)
    for row in range(i, i + high):
        for k in range(0 if high < _TILE else i, i + _TILE, _TILE):
            store(inverse, row * size + k, zero)
        for j in range(0 if high < _TILE else i, row):
            add_row(inverse, row * size, -lower[row, j], inverse, j * size, (j + _TILE) // _TILE * _TILE)
        inverse[row, row] = 1.0
        scale = splat(1.0 / lower[row, row])
        for k in range(0, i + _TILE, _TILE):
            store(inverse, row * size + k, scale * load(inverse, row * size + k))


@entry
def square(lower, inverse, product):
    """(L L')^-1 = K'K, symmetric to the bit; ``inverse`` is room for K."""
    n = lower.shape[0]
    for i in range(0, n, _TILE):
        invert_rows(lower, inverse, i, min(_TILE, n - i))
    inverse[n:] = 0.0
    size, zero, tile = inverse.shape[1], splat(0.0), np.empty((_TILE, _TILE))
    for i in range(0, size, _TILE):
        k = 0
        while k + _TILE <= i:
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
            for m in range(i, size):
                x, y = load(inverse, m * size + k), load(inverse, m * size + k + _TILE)
                f0, f1 = splat(inverse[m, i]), splat(inverse[m, i + 1])
                f2, f3 = splat(inverse[m, i + 2]), splat(inverse[m, i + 3])
                a0, b0, a1, b1 = (
                    vector_fma(f0, x, a0),
                    vector_fma(f0, y, b0),
                    vector_fma(f1, x, a1),
                    vector_fma(f1, y, b1),
                )
                a2, b2, a3, b3 = (
                    vector_fma(f2, x, a2),
                    vector_fma(f2, y, b2),
                    vector_fma(f3, x, a3),
                    vector_fma(f3, y, b3),
                )
            put_tile(product, i, k, a0, a1, a2, a3, tile)
            put_tile(product, i, k + _TILE, b0, b1, b2, b3, tile)
            k += 2 * _TILE
        if k <= i:
            a0 = a1 = a2 = a3 = zero
            for m in range(i, size):
                x = load(inverse, m * size + k)
                a0, a1 = vector_fma(splat(inverse[m, i]), x, a0), vector_fma(splat(inverse[m, i + 1]), x, a1)
                a2, a3 = vector_fma(splat(inverse[m, i + 2]), x, a2), vector_fma(splat(inverse[m, i + 3]), x, a3)
            put_tile(product, i, k, a0, a1, a2, a3, tile)


@lean
def put_tile(product, i, k, a0, a1, a2, a3, tile):
    """Four rows from i on, in four columns from k on, of a symmetric matrix; ``tile`` is room."""
    n = product.shape[0]
    if i + _TILE <= n:
        at, over = i * n + k, k * n + i
        store(product, at, a0)
        store(product, at + n, a1)
        store(product, at + 2 * n, a2)
        store(product, at + 3 * n, a3)
        a0, a1, a2, a3 = turned(a0, a1, a2, a3)
        store(product, over, a0)
        store(product, over + n, a1)
        store(product, over + 2 * n, a2)
        store(product, over + 3 * n, a3)
        return
    store(tile, 0, a0)
    store(tile, _TILE, a1)
    store(tile, 2 * _TILE, a2)
    store(tile, 3 * _TILE, a3)
    for row in range(i, n):
        for column in range(k, min(k + _TILE, n)):
            product[row, column] = product[column, row] = tile[row - i, column - k]
