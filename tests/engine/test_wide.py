"""Registers of 64 bytes: kernels with them have the bits of those without, wherever they are compiled."""

import numpy as np
import pytest
from numba import njit

from laconic.engine import wave_lowering
from laconic.engine.compiled import aligned


@njit
def narrow(spread, at, phi, row, size, gains, own, gain):
    wave_lowering.lower_and_gain_narrow(spread, at, phi, row, size, gains, own, gain)


@njit
def wide(spread, at, phi, row, size, gains, own, gain):
    wave_lowering.lower_and_gain_wide(spread, at, phi, row, size, gains, own, gain)


@njit
def apart(spread, at, phi, row, size, gains, own, gain):
    wave_lowering.lower_spread(spread, at, size, gains, own)
    wave_lowering.gain_row(spread, at, phi, row, size, gain)


@pytest.mark.parametrize(("size", "stride"), [(4, 4), (4, 8), (8, 8), (12, 12), (12, 16), (100, 100), (100, 104)])
def test_a_round_has_the_same_bits(size, stride):
    rng = np.random.default_rng(size)
    phi, gains = aligned(3, size, np.float64), aligned(2, size, np.float64)
    phi[:], gains[:] = rng.normal(size=phi.shape), rng.normal(size=gains.shape)
    matrices = rng.normal(size=(2 * size, stride))
    for matrix in (matrices[:size, :size], matrices[size:, :size]):
        matrix += matrix.T.copy()
    made = []
    for kernel in (narrow, wide, apart):
        spread, gain = aligned(2 * size, stride, np.float64), aligned(1, size, np.float64)
        spread[:] = matrices
        kernel(spread, size * stride, phi, 2, size, gains, 1, gain)
        assert np.array_equal(spread[:size], matrices[:size])
        made.append((spread.tobytes(), gain.tobytes()))
    assert made[0] == made[1] == made[2]
    whole = np.tril(matrices[size:, :size]) - np.outer(gains[1], gains[1])
    whole = np.tril(whole) + np.tril(whole, -1).T
    np.testing.assert_allclose(gain[0], whole @ phi[2], rtol=1e-12, atol=1e-12)
