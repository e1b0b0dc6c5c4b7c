"""The root's step, compiled: whitened, shortened and rounded, and where it leads, in one call.

Factor, step back and its square are what all agents share, with NumPy's bits; the rest only the root computes.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.wave_describing import grid, rounded
from laconic.engine.wave_kernels import factor, on_grid, solve_back


@entry
def step(information, n, thick, left, lower, change, residual, numbers, rows, moved, squares):
    """chol(n C + thick I, thick) into ``lower``, and for each output a row of ``rows``: step and codes of L'd, shorter.

    ``numbers`` are trust and the size of steps of all outputs; ``moved`` is L'^-1 k s, and ``squares`` |k s|^2. Returns
    whether a pivot was raised.
    """
    size = len(lower)
    raised = factor(information, n, thick, left, lower)
    for k in range(change.shape[0]):
        vector = np.zeros(size)
        told = known = 0.0
        for i in range(size):
            told += change[k, i] * residual[k, i]
            for j in range(i + 1):
                vector[j] += change[k, i] * lower[i, j]
        for i in range(size):
            known += vector[i] * vector[i]
        share = told / known if known > 0.0 else 1.0
        shorter = math.sqrt(min(1.0, share)) / numbers[0, k] if share > 0.0 else 0.0
        byte = grid(numbers[1, k])
        width = on_grid(byte)
        rows[k, 0] = byte
        for i in range(size):
            rows[k, 1 + i] = rounded(vector[i] * shorter / width)
        solve_back(lower, width, rows[k, 1:], moved[k])
        squares[k] = 0.0
        for i in range(size):
            scaled = rows[k, 1 + i] * width
            squares[k] += scaled * scaled
    return raised
