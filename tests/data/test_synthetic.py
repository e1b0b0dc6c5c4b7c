"""Synthetic data: the truth is what it says, and each option changes only what it names."""

import numpy as np
import pytest

import laconic as lc
from laconic import data


def test_the_truth_is_the_kernel_sum_by_hand():
    stream = data.synthetic(50, 3, 2, n_centres=4, bandwidth=0.7, noise=0, seed=5)
    truth = stream.truth
    gaps = stream.X[..., None, :] - truth.centres
    by_hand = np.exp(-(gaps**2).sum(axis=-1) / (2 * 0.7**2)) @ truth.coefficients
    np.testing.assert_allclose(stream.y, by_hand, rtol=1e-12)
    np.testing.assert_allclose(truth(stream.X), by_hand, rtol=1e-12)
    assert truth(stream.X[0, 0]).shape == ()
    assert truth.centres.min() >= 0 and truth.centres.max() <= 1


def test_noise_is_normal_with_the_deviation_given():
    stream = data.synthetic(4000, 5, 2, noise=0.3, seed=1)
    noise = stream.y - stream.truth(stream.X)
    assert abs(noise.std() - 0.3) < 0.006 and abs(noise.mean()) < 0.006
    assert abs(np.mean(np.abs(noise) < 0.3) - 0.6827) < 0.01


def test_options_leave_alone_what_they_do_not_name():
    plain = data.synthetic(20, 3, 2, seed=4)
    np.testing.assert_array_equal(plain.y, data.synthetic(20, 3, 2, seed=4).y)
    assert not np.array_equal(plain.X, data.synthetic(20, 3, 2, seed=5).X)
    drifting = data.synthetic(20, 3, 2, drift=1, seed=4)
    np.testing.assert_array_equal(plain.X, drifting.X)
    np.testing.assert_array_equal(plain.y[0], drifting.y[0])  # the first round is before all drift
    np.testing.assert_array_equal(plain.truth.coefficients, drifting.truth.coefficients)
    quiet = data.synthetic(20, 3, 2, noise=0, seed=4)
    np.testing.assert_allclose(plain.y - quiet.y, (plain.y - plain.truth(plain.X)), atol=1e-15)


def test_drift_turns_the_coefficients():
    stream = data.synthetic(101, 2, 2, drift=0.5, noise=0, seed=0)
    truth, x = stream.truth, np.array([0.3, 0.6])
    start, quarter, half = (truth(x, t) for t in (1, 1 + 101 / 2, 1 + 101))
    np.testing.assert_allclose(half, -start, rtol=1e-12)  # half a turn
    swapped = data.Truth(truth.centres, truth.other, truth.other, truth.bandwidth, 0.0, 1)
    np.testing.assert_allclose(quarter, swapped(x), rtol=1e-12)
    np.testing.assert_allclose(stream.y, truth(stream.X, np.arange(1, 102)[:, None]), rtol=1e-12)
    with pytest.raises(ValueError, match="t must say at which round"):
        truth(x)


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_heterogeneity_gives_each_agent_its_region(inputs):
    alike = data.synthetic(2000, 4, 3, inputs=inputs, seed=2).X
    own = data.synthetic(2000, 4, 3, inputs=inputs, heterogeneity=1, seed=2).X
    for i in range(3):
        assert own[:, i, 0].max() <= own[:, i + 1, 0].min()
    np.testing.assert_array_equal(own[..., 1:], alike[..., 1:])
    # All agents together still draw from the common law.
    expected = (0.5, 1 / 12) if inputs == "uniform" else (0.0, 1.0)
    for X in (alike, own):
        np.testing.assert_allclose([X[..., 0].mean(), X[..., 0].var()], expected, atol=0.04)
    half = data.synthetic(2000, 4, 3, heterogeneity=0.5, seed=2).X[..., 0]
    np.testing.assert_allclose(half.min(axis=0), [0, 0.125, 0.25, 0.375], atol=0.01)
    np.testing.assert_allclose(half.max(axis=0), [0.625, 0.75, 0.875, 1], atol=0.01)


def test_a_function_of_ones_own():
    stream = data.synthetic(10, 2, 1, centres=[[0.5]], coefficients=[2.0], bandwidth=1.0, noise=0)
    np.testing.assert_allclose(stream.y, 2 * np.exp(-((stream.X[..., 0] - 0.5) ** 2) / 2), rtol=1e-14)
    assert data.synthetic(3, 2, 4, coefficients=np.ones(7)).truth.centres.shape == (7, 4)
    assert data.synthetic(3, 2, 4, centres=np.ones((6, 4))).truth.coefficients.shape == (6,)


def test_large_inputs_are_worked_through_in_blocks():
    truth = data.synthetic(2, 1, 40, n_centres=200, seed=3).truth
    X = np.random.default_rng(0).uniform(size=(600, 40))  # 600 x 200 x 40 differences: three blocks
    np.testing.assert_allclose(truth(X), [truth(x) for x in X], rtol=1e-12)


def test_a_learner_comes_near_the_noise_floor():
    stream = data.synthetic(3000, 4, 2, noise=0.1, seed=0)
    features = lc.RandomFeatures.gaussian(2, 60, bandwidth=0.5, seed=1)
    trace = lc.simulate(lc.ODKLA(rho=0.3, eta=1.0), features, lc.Network.ring(4), stream.X, stream.y)
    assert 0.9 * 0.1**2 < trace.windowed_mse(500)[-1] < 2 * 0.1**2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_rounds": 0}, "n_rounds must be at least 1"),
        ({"n_centres": 0}, "n_centres must be at least 1"),
        ({"bandwidth": 0}, "bandwidth must be larger than 0"),
        ({"noise": -1}, "noise must be at least 0"),
        ({"drift": np.nan}, "drift must be finite"),
        ({"heterogeneity": 1.5}, "heterogeneity must be at most 1"),
        ({"heterogeneity": -0.5}, "heterogeneity must be at least 0"),
        ({"inputs": "cauchy"}, "inputs must be one of 'uniform', 'normal'"),
        ({"centres": [[1.0, 2.0, 3.0]]}, "centres must have shape \\(n_centres, 2\\)"),
        ({"centres": [[np.nan, 2.0]]}, "centres must be finite"),
        (
            {"centres": [[1.0, 2.0]], "coefficients": [1.0, 2.0]},
            "coefficients must have one number for each of the 1 centres",
        ),
        ({"coefficients": [[1.0]]}, "coefficients must have shape"),
        ({"seed": None}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_named(options, sentence):
    arguments = {"n_rounds": 5, "n_agents": 2, "n_inputs": 2, **options}
    with pytest.raises(ValueError, match=sentence):
        data.synthetic(**arguments)


def test_bad_points_are_named():
    truth = data.synthetic(5, 2, 2).truth
    with pytest.raises(ValueError, match="X must have shape"):
        truth(np.ones(3))
    with pytest.raises(ValueError, match="X must have shape"):
        truth(1.0)
