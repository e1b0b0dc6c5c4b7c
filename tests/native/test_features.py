"""The feature map of the core: accurate, and the same bits in any company."""

import numpy as np
import pytest

import laconic as lc
from laconic.native.arrays import aligned
from laconic.native.binding import INTEGER, POINTER, function
from laconic.native.features import FeatureMap, map_features


def waves_of(phases):
    """(sines, cosines) of phases, by a map of one frequency 1."""
    frequencies, bits = aligned(1, 1, phases.dtype), 8 * phases.itemsize
    frequencies[0, 0] = 1
    size = frequencies.shape[1]
    shape = {"n_inputs": 1, "n_frequencies": 1, "stride": size, "size": size, "n_lifted": 1}
    unit = FeatureMap.of(**shape, scale=1.0, frequencies=frequencies)
    phi, room = (aligned(phases.size, size, phases.dtype) for _ in range(2))
    map_rows = function(f"map_rows_f{bits}", *[POINTER] * 2, *[INTEGER] * 2, *[POINTER] * 3)
    places = [array.ctypes.data for array in (phases, room, phi)]
    assert map_rows(unit.address, places[0], phases.size, phases.size, places[1], None, places[2]) == phases.size
    return phi[:, 1], phi[:, 0]


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 1.4e-16), (np.float32, 1.0e-7)])
def test_sine_and_cosine_are_accurate_over_their_range(dtype, limit):
    rng = np.random.default_rng(0)
    phases = np.concatenate(
        [
            rng.uniform(-1e4, 1e4, 200_000),
            rng.uniform(-10, 10, 200_000),
            np.arange(-6000, 6000) * np.pi / 4,
            [0.0, -0.0],
        ]
    ).astype(dtype)
    out = waves_of(phases)
    exact = phases.astype(np.longdouble)
    assert float(np.abs(out[0] - np.sin(exact)).max()) < limit
    assert float(np.abs(out[1] - np.cos(exact)).max()) < limit
    assert out[0][-2] == 0 and out[1][-2] == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_compiled_map_is_the_map(dtype):
    features = lc.RandomFeatures.gaussian(13, 37, bandwidth=0.4, seed=0)
    X = np.random.default_rng(0).normal(size=(301, 13))
    X[5] *= 1e5  # phases beyond the polynomials' range
    mapped = map_features(features, X, dtype)[:, : features.n_features]
    tolerance = 1e-9 if dtype is np.float64 else 0.3  # single precision has no digits left at such phases
    np.testing.assert_allclose(mapped[5], features(X)[5], atol=tolerance)
    rest = np.arange(301) != 5
    np.testing.assert_allclose(mapped[rest], features(X)[rest], atol=1e-14 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_has_the_same_bits_alone_and_in_any_block(dtype):
    rng = np.random.default_rng(0)
    for n_inputs, n_frequencies in ((1, 1), (2, 3), (77, 50), (300, 13)):
        features = lc.RandomFeatures.gaussian(n_inputs, n_frequencies, seed=1)
        X = rng.normal(size=(150, n_inputs))
        together = map_features(features, X, dtype)
        for size in (1, 3, 4, 7, 130):
            parts = [map_features(features, X[k : k + size], dtype) for k in range(0, 150, size)]
            assert np.array_equal(np.concatenate(parts), together)
