"""Feature maps against the kernels they stand for: right at every d, tight enough to catch a factor of two."""

import numpy as np
import pytest
from breadth import crossed

import laconic as lc

KERNELS = {
    "gaussian": lambda gap, s: np.exp(-(gap**2).sum(-1) / (2 * s**2)),
    "laplacian": lambda gap, s: np.exp(-np.abs(gap).sum(-1) / s),
    "matern-0.5": lambda gap, s: np.exp(-np.sqrt((gap**2).sum(-1)) / s),
    "matern-1.5": lambda gap, s: (1 + np.sqrt(3 * (gap**2).sum(-1)) / s) * np.exp(-np.sqrt(3 * (gap**2).sum(-1)) / s),
    "matern-2.5": lambda gap, s: (
        (1 + np.sqrt(5 * (gap**2).sum(-1)) / s + 5 * (gap**2).sum(-1) / (3 * s**2))
        * np.exp(-np.sqrt(5 * (gap**2).sum(-1)) / s)
    ),
}


def make(kernel, n_inputs, n_frequencies, bandwidth, seed, **options):
    name, _, nu = kernel.partition("-")
    if nu:
        options["nu"] = float(nu)
    return getattr(lc.RandomFeatures, name)(
        n_inputs=n_inputs, n_frequencies=n_frequencies, bandwidth=bandwidth, seed=seed, **options
    )


def pairs(kernel, n_inputs, n_pairs=6):
    """Points and a bandwidth for which the kernel is neither 0 nor 1, where a wrong bandwidth shows most."""
    rng = np.random.default_rng(n_inputs)
    x, z = rng.uniform(size=(2, n_pairs, n_inputs))
    low, high = 1e-3, 1e4
    for _ in range(60):
        bandwidth = np.sqrt(low * high)
        low, high = (bandwidth, high) if KERNELS[kernel](x - z, bandwidth).mean() < 0.5 else (low, bandwidth)
    return x, z, bandwidth


@pytest.mark.parametrize(("kernel", "n_inputs", "orthogonal"), crossed(KERNELS, [2, 13, 77], [False, True]))
def test_the_map_is_the_kernel_at_every_d(kernel, n_inputs, orthogonal):
    x, z, bandwidth = pairs(kernel, n_inputs)
    exact = KERNELS[kernel](x - z, bandwidth)
    n_frequencies = 20_000
    features = make(kernel, n_inputs, n_frequencies, bandwidth, seed=1, orthogonal=orthogonal)
    np.testing.assert_allclose(np.diag(features.kernel(x, z)), exact, rtol=1e-10)
    estimate = (features(x) * features(z)).sum(axis=1)
    # The variance of one cosine is at most 1/2 (1 + kappa(2 gap)) - kappa^2 <= 1; five deviations.
    deviation = np.sqrt((1 + KERNELS[kernel](2 * (x - z), bandwidth)) / 2 - exact**2) / np.sqrt(n_frequencies)
    assert (np.abs(estimate - exact) < 5 * deviation).all()
    for wrong in (bandwidth / 2, bandwidth * 2, bandwidth * np.sqrt(2)):
        assert (np.abs(estimate - KERNELS[kernel](x - z, wrong)) > 5 * deviation).any()


@pytest.mark.slow
@pytest.mark.parametrize("n_inputs", [2, 13, 77])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_error_falls_as_one_over_root_l(kernel, n_inputs):
    x, z, bandwidth = pairs(kernel, n_inputs, n_pairs=30)
    exact = KERNELS[kernel](x - z, bandwidth)

    def rms(n_frequencies):
        errors = []
        for seed in range(15):
            features = make(kernel, n_inputs, n_frequencies, bandwidth, seed)
            errors.append((features(x) * features(z)).sum(axis=1) - exact)
        return np.sqrt(np.mean(np.square(errors)))

    slope = np.log(rms(25) / rms(1600)) / np.log(1600 / 25)
    assert 0.4 < slope < 0.6


@pytest.mark.parametrize("n_inputs", [2, 13, 77])
def test_orthogonal_rows_are_orthogonal_and_as_long_as_normal_ones(n_inputs):
    features = lc.RandomFeatures.gaussian(n_inputs, 40 * n_inputs, bandwidth=0.5, seed=2, orthogonal=True)
    first = features.frequencies[:n_inputs]
    gram = first @ first.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * np.abs(gram).max())
    squares = (features.frequencies**2).sum(axis=1) * 0.25
    assert abs(squares.mean() / n_inputs - 1) < 5 * np.sqrt(2 / n_inputs / len(squares))  # chi-square, d degrees
    assert squares.std() > 0.5 * np.sqrt(2 * n_inputs)  # random lengths, not all equal


def test_orthogonal_frequencies_estimate_better():
    x, z, bandwidth = pairs("gaussian", 13, n_pairs=20)
    exact = KERNELS["gaussian"](x - z, bandwidth)

    def error(orthogonal):
        maps = (make("gaussian", 13, 26, bandwidth, seed, orthogonal=orthogonal) for seed in range(200))
        return np.mean([((features(x) * features(z)).sum(axis=1) - exact) ** 2 for features in maps])

    assert error(True) < 0.8 * error(False)


def test_features_have_norm_one_and_come_in_two_halves():
    features = lc.RandomFeatures([[1.0, 2.0], [0.5, -1.0], [0.0, 3.0]])
    x = np.array([[0.3, -0.2], [1.0, 4.0]])
    phases = x @ features.frequencies.T
    expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.sqrt(3)
    np.testing.assert_allclose(features(x), expected, rtol=1e-15)
    np.testing.assert_allclose((features(x) ** 2).sum(axis=1), 1.0, rtol=1e-15)
    assert features(np.zeros((4, 5, 2))).shape == (4, 5, 6)
    assert (features.n_inputs, features.n_frequencies, features.n_features) == (2, 3, 6)


def test_the_same_seed_gives_the_same_map_and_nothing_can_change_it():
    one, two = (lc.RandomFeatures.matern(3, 10, nu=2.5, seed=7) for _ in range(2))
    assert np.array_equal(one.frequencies, two.frequencies)
    assert not np.array_equal(one.frequencies, lc.RandomFeatures.matern(3, 10, nu=2.5, seed=8).frequencies)
    with pytest.raises(ValueError, match="read-only"):
        one.frequencies[0, 0] = 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.RandomFeatures.gaussian(0, 5), "n_inputs must be at least 1"),
        (lambda: lc.RandomFeatures.gaussian(2, 2.5), "n_frequencies must be a whole number"),
        (lambda: lc.RandomFeatures.gaussian(2, 5, bandwidth=-1.0), "bandwidth must be larger than 0"),
        (lambda: lc.RandomFeatures.gaussian(2, 5, bandwidth=float("nan")), "bandwidth must be finite"),
        (lambda: lc.RandomFeatures.gaussian(2, 5, bandwidth="wide"), "bandwidth must be a number"),
        (lambda: lc.RandomFeatures.gaussian(2, 5, seed=-1), "seed must be at least 0"),
        (lambda: lc.RandomFeatures.matern(2, 5, nu=0), "nu must be larger than 0"),
        (lambda: lc.RandomFeatures(np.zeros(3)), "frequencies must have shape"),
        (lambda: lc.RandomFeatures(np.zeros((0, 3))), "at least one row"),
        (lambda: lc.RandomFeatures([[np.inf]]), "frequencies must be finite"),
        (lambda: lc.RandomFeatures([["a"]]), "frequencies must hold real numbers"),
        (lambda: lc.RandomFeatures([[1.0]])(np.zeros(2)), r"X must have shape \(\.\.\., 1\)"),
        (lambda: lc.RandomFeatures([[1.0]])([[np.nan]]), "X must be finite, but X"),
        (lambda: lc.RandomFeatures([[1.0]]).kernel([[0.0]], [[0.0]]), "kernel is not known"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
