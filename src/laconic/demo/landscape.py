"""A landscape on the unit square, and ten agents each of which measures it in a tile of its own.

Agent k measures only inside its tile of a grid, with noise, and hears only the agents next door. So what it knows of
the other nine tiles it knows from talking.
"""

from __future__ import annotations

import numpy as np

from laconic._validate import Array
from laconic.network import Network

ROWS, COLUMNS = 2, 5
#: Deviation of the noise; no predictor can have less error than its square.
NOISE = 0.1


def landscape(X: Array) -> Array:
    """sin(6 east) cos(5 north) + east north, the function to be learned, at points (..., 2).

    >>> import numpy as np
    >>> landscape(np.zeros((3, 2)))
    array([0., 0., 0.])
    """
    east, north = X[..., 0], X[..., 1]
    height: Array = np.sin(6 * east) * np.cos(5 * north) + east * north
    return height


def corners() -> Array:
    """Lower left corner of each agent's tile, (N, 2); agent 0 lives in the north-west."""
    agent = np.arange(ROWS * COLUMNS)
    return np.stack([agent % COLUMNS / COLUMNS, 1 - (agent // COLUMNS + 1) / ROWS], axis=1)


def grid(wide: int, high: int) -> Array:
    """Points (wide high, 2) all over the square: rows from north to south, points of a row from west to east.

    >>> grid(2, 1)
    array([[0.25, 0.5 ],
           [0.75, 0.5 ]])
    """
    east, north = (np.arange(wide) + 0.5) / wide, 1 - (np.arange(high) + 0.5) / high
    return np.stack(np.meshgrid(east, north), axis=-1).reshape(-1, 2)


def neighbourhood() -> Network:
    """Who hears whom: agents whose tiles have a side in common."""
    return Network.grid(ROWS, COLUMNS)


def measure(n_rounds: int, seed: int) -> tuple[Array, Array]:
    """Inputs (T, N, 2) and noisy labels (T, N).

    >>> X, y = measure(n_rounds=5, seed=0)
    >>> X.shape, y.shape
    ((5, 10, 2), (5, 10))
    """
    rng = np.random.default_rng(seed)
    X = corners() + rng.uniform(size=(n_rounds, ROWS * COLUMNS, 2)) / [COLUMNS, ROWS]
    return X, landscape(X) + NOISE * rng.standard_normal(X.shape[:2])
