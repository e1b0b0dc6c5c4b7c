"""A sample of least squares that forget, over the lower tiles of a matrix: what the personal rounds are compiled with."""

from __future__ import annotations

import math

from laconic.engine.rows import add_row, dot_row
from laconic.engine.vectors import lean, load, splat, store, vector_fma
from laconic.engine.wave_rounds import gain_row

_TILE = 4  # doubles of a vector
_FADED = 1e-3  # as in ``waves.forgetting``


@lean
def forget_spread(spread, at, size, raised, u, v):
    """P <- raised P - u u' - v v'."""
    raised = splat(raised)
    for j in range(size):
        u_j, v_j, row = splat(-u[0, j]), splat(-v[0, j]), at + j * size
        for k in range(0, j + 1, _TILE):
            kept = vector_fma(u_j, load(u, k), raised * load(spread, row + k))
            store(spread, row + k, vector_fma(v_j, load(v, k), kept))


@lean
def least_squares_row(
    models, model, spread, at, size, n_features, phi, row, error, bend, forgetting, ridge, turn, gain, column
):
    """One more sample for the expert in row ``model``, whose matrix starts at ``at``; ``turn`` is whose ridge leaks."""
    gain_row(spread, at, phi, row, size, gain)
    scale = forgetting + bend * dot_row(gain, 0, phi, row * size, size)
    add_row(models, model * size, -error / scale, gain, 0, size)
    root = splat(math.sqrt(bend / (scale * forgetting)))
    for k in range(0, size, _TILE):
        store(gain, k, root * load(gain, k))
    # The column that leaks, as it will be: below its tile the matrix is read along it, up to there along its row.
    raised, first = 1.0 / forgetting, turn // _TILE * _TILE
    for k in range(first + _TILE):
        column[0, k] = raised * spread[at // size + turn, k] - gain[0, k] * gain[0, turn]
    for k in range(first + _TILE, size):
        column[0, k] = raised * spread[at // size + k, turn] - gain[0, k] * gain[0, turn]
    leak = n_features * (1.0 - forgetting) * ridge
    root = splat(math.sqrt(leak / (1.0 + leak * column[0, turn])))
    if forgetting**n_features < _FADED:
        share = leak / (1.0 + leak * column[0, turn])
        add_row(models, model * size, -(share * models[model, turn]), column, 0, size)
    for k in range(0, size, _TILE):
        store(column, k, root * load(column, k))
    forget_spread(spread, at, size, raised, gain, column)
