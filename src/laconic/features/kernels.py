"""The exact kernels that feature maps approximate, each a function of the gap between inputs in units of its width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laconic._validate import Array

Kernel = Callable[[Array], Array]


def _square(gap: Array) -> Any:
    return (gap**2).sum(axis=-1)


def gaussian(gap: Array) -> Array:
    """exp(-|gap|^2 / 2)."""
    values: Array = np.exp(-0.5 * _square(gap))
    return values


def laplacian(gap: Array) -> Array:
    """exp(-|gap|_1)."""
    values: Array = np.exp(-np.abs(gap).sum(axis=-1))
    return values


def matern(gap: Array, nu: float) -> Array:
    """2^(1-nu) / Gamma(nu) r^nu K_nu(r), r = sqrt(2 nu) |gap|."""
    from scipy.special import gammaln, kve

    r = np.sqrt(2 * nu * _square(gap))
    safe = np.where(r > 0, r, 1.0)
    # kve is K_nu scaled by e^r: the product below stays finite where K_nu alone would vanish.
    log_scale = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(safe) - safe
    values: Array = np.where(r > 0, np.exp(log_scale) * kve(nu, safe), 1.0)
    return values


def mixture(gap: Array, widths: Array) -> Array:
    """The mean over ``widths`` of Gaussian kernels, exp(-|gap|^2 / (2 width^2))."""
    found, counts = np.unique(widths, return_counts=True)
    square = _square(gap)
    parts = [count * np.exp(-0.5 * square / width**2) for width, count in zip(found, counts, strict=True)]
    values: Array = np.sum(parts, axis=0) / len(widths)
    return values


def two_views(gap: Array, widths: Array, pooled: Array) -> Array:
    """Half ``mixture`` of asinh(u)/sqrt(d), half of u weighted by ``pooled``: what an automatic map stands for.

    ``gap`` is between lifted inputs [asinh(u), u]; frequencies take turns, the first of them sees asinh.
    """
    d = len(pooled)
    values = np.zeros(gap.shape[:-1])
    for k, view in enumerate((gap[..., :d] * d**-0.5, gap[..., d:] * pooled)):
        own = widths[k::2]
        if len(own):
            values += len(own) / len(widths) * mixture(view, own)
    return values
