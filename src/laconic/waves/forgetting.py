"""Least squares that forget: each sample counts f times less with each one after it, and a leak keeps P bounded."""

from __future__ import annotations

import numpy as np

from laconic._validate import Array


def forgetting_step(
    spread: Array, phi: Array, f: Array | float, ridge: float, turn: Array | int, bend: Array | float = 1.0
) -> tuple[Array, Array]:
    """P after one more sample, and g/n, by which a model moves for each unit of its error.

    g = P phi, n = f + s g.phi, P <- (P - s g g'/n)/f; then, with m = ``turn`` and c = D (1-f) ridge,
    P <- P - c/(1 + c P_mm) P_m P_m', which adds c to entry m of the diagonal of P's inverse: one direction after the
    other is reminded of the ridge. Every line treats P_ab and P_ba alike, so P stays symmetric to the bit; otherwise
    what rounding makes of their difference would grow as f^-t.

    Parameters
    ----------
    spread : array (..., D, D)
        P, symmetric.
    phi : array (..., D)
    f, bend, turn : arrays (...) or numbers
        The forgetting, s, and m.
    ridge : float
    """
    n_features = phi.shape[-1]
    f, bend = np.asarray(f, dtype=np.float64)[..., None], np.asarray(bend, dtype=np.float64)[..., None]
    gain = (spread @ phi[..., None])[..., 0]
    scale = f + bend * (gain * phi).sum(axis=-1, keepdims=True)
    spread = (spread - (bend / scale)[..., None] * (gain[..., :, None] * gain[..., None, :])) / f[..., None]
    at = np.broadcast_to(np.asarray(turn), spread.shape[:-2])[..., None]
    column = np.take_along_axis(spread, at[..., None], axis=-1)[..., 0]
    leak = n_features * (1 - f) * ridge
    share = leak / (1 + leak * np.take_along_axis(column, at, axis=-1))
    return spread - share[..., None] * (column[..., :, None] * column[..., None, :]), gain / scale
