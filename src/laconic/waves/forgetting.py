"""Least squares that forget: each sample counts f times less with each one after it, and a leak keeps P bounded."""

from __future__ import annotations

import numpy as np

from laconic._validate import Array

FADED = 1e-3  # of the ridge of an entry, left after D samples, from where on its model follows the leak


def forgetting_step(
    spread: Array,
    model: Array,
    error: Array | float,
    phi: Array,
    f: Array | float,
    ridge: float,
    turn: Array | int,
    bend: Array | float = 1.0,
) -> tuple[Array, Array]:
    """P and the model theta after one more sample, at which the model's error is e.

    g = P phi, n = f + s g.phi, theta <- theta - e g/n, P <- (P - s g g'/n)/f; then, with m = ``turn``,
    c = D (1-f) ridge and k = c/(1 + c P_mm) P_m, P <- P - k P_m', which adds c to entry m of the diagonal of P's
    inverse: one direction after the other is reminded of the ridge. Every line treats P_ab and P_ba alike, so P stays
    symmetric to the bit; otherwise what rounding makes of their difference would grow as f^-t.

    Where f^D < 1/1000 the model follows: theta <- theta - k theta_m. With many features an entry's ridge fades before
    its next turn. A leak that only made P smaller would then claim to know an entry that no sample has shown: such
    entries grew by a factor of e in some 400 samples, D = 800 and f = 0.98, until the run diverged. With fewer
    features samples themselves hold the model, and a pull towards zero costs accuracy.

    Parameters
    ----------
    spread : array (..., D, D)
        P, symmetric.
    model, phi : arrays (..., D)
    error, f, bend, turn : arrays (...) or numbers
        e, the forgetting, s, and m.
    ridge : float
    """
    n_features = phi.shape[-1]
    f, bend = np.asarray(f, dtype=np.float64)[..., None], np.asarray(bend, dtype=np.float64)[..., None]
    gain = (spread @ phi[..., None])[..., 0]
    scale = _positive(f + bend * (gain * phi).sum(axis=-1, keepdims=True))
    model = model - np.asarray(error)[..., None] * (gain / scale)
    spread = (spread - (bend / scale)[..., None] * (gain[..., :, None] * gain[..., None, :])) / f[..., None]
    at = np.broadcast_to(np.asarray(turn), spread.shape[:-2])[..., None]
    column = np.take_along_axis(spread, at[..., None], axis=-1)[..., 0]
    leak = n_features * (1 - f) * ridge
    share = leak / _positive(1 + leak * np.take_along_axis(column, at, axis=-1))
    followed = np.where(f**n_features < FADED, share * np.take_along_axis(model, at, axis=-1), 0.0)
    spread = spread - share[..., None] * (column[..., :, None] * column[..., None, :])
    return spread, np.where(followed == 0.0, model, model - followed * column)


def _positive(number: Array) -> Array:
    """NaN where P has made it negative: P is not positive any more."""
    return np.where(number > 0, number, np.nan)
