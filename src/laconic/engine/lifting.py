"""Raw inputs -> [asinh(u), u], u = (x - m)/s: what stands before the product, and behind the waves, of a scaled map.

asinh is written out, so that it has the same bits on every machine: libraries differ in its last digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.engine.vectors import fma, from_bits, jit, to_bits

_LARGE = 2.0**28  # from here on asinh(a) is log(2 a), to the last digit
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first ends in zeros: its multiples are exact
_LOG_2 = math.log(2.0)
_ODD = tuple(1.0 / (2 * k + 1) for k in range(11, -1, -1))  # of the series of atanh, the highest power first
_LENGTH, _MANTISSA, _ONE = np.uint64(52), np.uint64(2**52 - 1), np.uint64(1023 << 52)
_MANTISSA_OF_ROOT_2 = np.uint64(int((math.sqrt(2.0) - 1.0) * 2.0**52))
_MAGIC_BITS, _MAGIC = np.uint64((1023 + 52) << 52), 2.0**52 + 1023.0


class Front(NamedTuple):
    """How raw inputs are scaled, and room for a block of them; all empty for a map that takes inputs as they are.

    ``direct`` is how many scaled inputs stand behind the waves; ``last`` whether a 1 does.
    """

    columns: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    lifted: np.ndarray
    n_direct: int
    last: bool
    share: float
    most: float


@jit
def logarithm(y):
    """log y for y >= 1: y = 2^e m with m around 1, and log m = 2 atanh((m - 1)/(m + 1)) by its series."""
    bits = to_bits(y)
    high = (bits & _MANTISSA) > _MANTISSA_OF_ROOT_2  # m above sqrt(2) is halved
    # 2^52 + e is a double whose lowest bits are e: where there is no instruction for it, this turns integers to floats.
    exponent = from_bits((bits >> _LENGTH) | _MAGIC_BITS) - _MAGIC + (1.0 if high else 0.0)
    m = from_bits((bits & _MANTISSA) | _ONE) * (0.5 if high else 1.0)
    r = (m - 1.0) / (m + 1.0)
    z = r * r
    series = _ODD[0]
    for k in range(1, len(_ODD)):
        series = fma(series, z, _ODD[k])
    return fma(exponent, _LOG_2_HIGH, fma(2.0 * r, series, exponent * _LOG_2_LOW))


@jit
def inverse_sinh(u):
    """asinh u = sign(u) log1p(|u| + u^2/(1 + sqrt(1 + u^2))), in double precision; what is not finite stays as it is.

    Without branches, so that a loop over it is vectorised.
    """
    a = abs(u)
    near = a < _LARGE
    b = a if near else 0.0
    w = b + b * b / (1.0 + math.sqrt(fma(b, b, 1.0)))
    y = 1.0 + w
    rest = (w - (y - 1.0)) / y  # what rounding took from 1 + w
    value = logarithm(y if near else a) + (rest if near else _LOG_2)
    return math.copysign(value, u) if a < np.inf else u


@jit
def lift_rows(front, samples, start, stop, n_frequencies, phi, phi_row):
    """``front.lifted[:stop - start] = [asinh(u), u]``, and the linear block of each row into its place in ``phi``.

    A row that is not finite, be it in a column that is ignored, is lifted to NaN: its phases will tell.
    """
    columns, centre, scale, lifted, n_direct, last, share, most = front
    real, d = lifted.dtype.type, columns.size
    half, block = lifted.shape[1] // 2, 2 * n_frequencies
    for row in range(stop - start):
        at, out = start + row, phi_row + row
        finite = True
        for k in range(samples.shape[1]):
            finite &= abs(samples[at, k]) < np.inf
        for k in range(d):
            u = (np.float64(samples[at, columns[k]]) - centre[k]) / scale[k]
            lifted[row, k] = real(inverse_sinh(u))
            lifted[row, half + k] = real(u)
            if n_direct:
                phi[out, block + k] = real(min(max(u, -most), most) * share)
        if not finite:
            lifted[row, 0] = real(np.nan)
        elif not d:
            lifted[row, 0] = real(0.0)
        if last:
            phi[out, block + n_direct] = real(1.0)
