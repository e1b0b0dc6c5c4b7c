"""Tables of many columns: accuracy beside ridge, with no cliff where inputs outnumber the kernel's waves."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import laconic as lc
from laconic.defaults import choose
from laconic.defaults.untuned import learn_untuned

N_ROWS, N_TEST = 1200, 500


def table(n_inputs, seed=3):
    """Ten of the columns add up to the label; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS + N_TEST, n_inputs))
    return X, X[:, :10].sum(axis=1) + 0.1 * rng.normal(size=len(X))


@pytest.mark.slow
@pytest.mark.parametrize("n_inputs", [10, 200, 201, 401, 600])
def test_a_fit_of_many_columns_is_as_good_as_ridge(n_inputs):
    X, y = table(n_inputs)
    first, rest = slice(0, N_ROWS), slice(N_ROWS, None)
    found = lc.DecentralizedKernelRegressor(random_state=0).fit(X[first], y[first]).score(X[rest], y[rest])
    assert found > Ridge().fit(X[first], y[first]).score(X[rest], y[rest]) - 0.03


@pytest.mark.slow
@pytest.mark.parametrize("n_inputs", [100, 400, 401, 600])
def test_a_stream_of_many_columns_ends_beside_a_linear_model(n_inputs):
    X, y = (part[:N_ROWS].reshape(N_ROWS // 5, 5, *part.shape[1:]) for part in table(n_inputs))
    run = learn_untuned(X, y, lc.Network.ring(5))
    assert run.scores.r2(late=True) > run.baselines["linear"].r2(late=True) - 0.15


@pytest.mark.parametrize("n_inputs", [100, 101, 150])
def test_a_simulation_over_an_automatic_map_keeps_what_is_linear(n_inputs):
    X, y = (part[:N_ROWS].reshape(N_ROWS // 5, 5, *part.shape[1:]) for part in table(n_inputs))
    features = lc.RandomFeatures.automatic(X[:8])
    assert features.n_features == 101 + n_inputs
    trace = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(5), X, y)
    assert trace.windowed_mse(24)[-1] < 0.05 * y.var()


def test_frequencies_that_are_asked_for_stay_however_many_inputs_there_are():
    X = table(600)[0][:40]
    choice = choose(X)
    assert (choice.features.n_frequencies, choice.features.n_direct, choice.features.n_features) == (50, 600, 701)
    assert "and the 600 inputs themselves: 701 numbers" in str(choice)
    assert choose(X, n_frequencies=7).features.n_features == 615


def test_a_kernel_of_a_given_width_has_the_learner_of_its_own_size():
    X = np.random.default_rng(0).normal(size=(60, 1900))
    model = lc.DecentralizedKernelRegressor(bandwidth="scale", n_frequencies=20).fit(X, X[:, 0])
    assert model.features_.n_features == 40 and isinstance(model.learner_, lc.Personal)
