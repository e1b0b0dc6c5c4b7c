"""Registers of 64 bytes: kernels with them have the bits of those without, wherever they are compiled."""

import numpy as np
import pytest
from laconic.engine.compiled import aligned
from numba import njit

from laconic.engine import wave_describing, wave_lowering, wave_spectrum, wave_sums, wide


@njit
def lower_narrow(spread, at, phi, row, size, gains, own, gain):
    wave_lowering.lower_and_gain_narrow(spread, at, phi, row, size, gains, own, gain)


@njit
def lower_wide(spread, at, phi, row, size, gains, own, gain):
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
    for kernel in (lower_narrow, lower_wide, apart):
        spread, gain = aligned(2 * size, stride, np.float64), aligned(1, size, np.float64)
        spread[:] = matrices
        kernel(spread, size * stride, phi, 2, size, gains, 1, gain)
        assert np.array_equal(spread[:size], matrices[:size])
        made.append((spread.tobytes(), gain.tobytes()))
    assert made[0] == made[1] == made[2]
    whole = np.tril(matrices[size:, :size]) - np.outer(gains[1], gains[1])
    whole = np.tril(whole) + np.tril(whole, -1).T
    np.testing.assert_allclose(gain[0], whole @ phi[2], rtol=1e-12, atol=1e-12)


@njit
def whiten_short(inverse, turned, matrix, half):
    wave_describing.whiten_by(inverse, turned, matrix, half, wide.nothing_short(matrix))


@njit
def whiten_wide(inverse, turned, matrix, half):
    wave_describing.whiten_by(inverse, turned, matrix, half, wide.nothing_wide(matrix))


@pytest.mark.parametrize("size", [4, 8, 12, 28, 100])
def test_a_whitened_matrix_has_the_same_bits(size):
    rng = np.random.default_rng(size)
    X, made = rng.normal(size=(size, size)), []
    for kernel in (whiten_short, whiten_wide):
        inverse, turned, matrix, half = (aligned(size, size, np.float64) for _ in range(4))
        inverse[:] = np.tril(np.random.default_rng(0).normal(size=(size, size)))
        turned[:], matrix[:], half[:] = inverse.T, X + X.T, np.nan
        kernel(inverse, turned, matrix, half)
        made.append(np.tril(matrix))
        np.testing.assert_allclose(made[-1], np.tril(inverse @ (X + X.T) @ inverse.T), rtol=1e-10, atol=1e-10)
    assert made[0].tobytes() == made[1].tobytes()


@njit
def subtract_narrow(matrix, i, length, work):
    wave_spectrum.subtract_and_gain_narrow(matrix, i, length, work)


@njit
def subtract_wide(matrix, i, length, work):
    wave_spectrum.subtract_and_gain_wide(matrix, i, length, work)


@pytest.mark.parametrize(("size", "length"), [(8, 4), (12, 8), (28, 24), (100, 96)])
def test_a_step_towards_the_tridiagonal_form_has_the_same_bits(size, length):
    rng = np.random.default_rng(size)
    X, rows, made = rng.normal(size=(size, size)), rng.normal(size=(3, size)), []
    for kernel in (subtract_narrow, subtract_wide):
        matrix, work = aligned(size, size, np.float64), aligned(3, size, np.float64)
        matrix[:], work[:] = X + X.T, rows
        kernel(matrix, length, length, work)
        made.append((matrix.tobytes(), work.tobytes()))
    assert made[0] == made[1]
    whole = (X + X.T - np.outer(rows[1], rows[2]) - np.outer(rows[2], rows[1]))[:length, :length]
    np.testing.assert_allclose(work[0, :length], whole @ (X + X.T)[length, :length], rtol=1e-12, atol=1e-12)


@njit
def add_short(information, rows, n, forgetting):
    wave_sums.add_products_by(information, rows, n, forgetting, wide.nothing_short(rows))


@njit
def add_wide(information, rows, n, forgetting):
    wave_sums.add_products_by(information, rows, n, forgetting, wide.nothing_wide(rows))


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize("size", [4, 8, 12, 28, 100])
def test_sums_of_products_have_the_same_bits(size, forgetting):
    rng = np.random.default_rng(size)
    samples, before, made = rng.normal(size=(5, size)), rng.normal(size=(size, size)), []
    for kernel in (add_short, add_wide):
        information, rows = aligned(size, size, np.float64), aligned(7, size, np.float64)
        information[:], rows[:5] = before, samples
        kernel(information, rows, 5, forgetting)
        made.append(information.tobytes())
    assert made[0] == made[1]
    powers = forgetting ** np.arange(4, -1, -1)
    whole = forgetting**5 * before + (samples.T * powers) @ samples
    np.testing.assert_allclose(np.tril(information), np.tril(whole), rtol=1e-12, atol=1e-12)
    above = np.arange(size)[None] >= (np.arange(size) // 4 * 4 + 4)[:, None]
    assert np.array_equal(information[above], before[above])
