"""Weights of single rows, and features of one's own, in the scikit-learn faces."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import laconic as lc


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("later", [False, True])
def test_rows_of_large_weight_are_learned_as_they_are(rows, later):
    """A weight scales a label, which is no reason to take it for one that cannot be."""
    X, y = rows
    y[150] += 3.0
    weights = np.ones(len(y))
    weights[150] = 1e4
    model = lc.DecentralizedKernelRegressor(n_agents=1, n_frequencies=20, random_state=0)
    if later:  # what was learned of labels until then is not forgotten
        model.fit(X[:100], y[:100])
        model.partial_fit(X[100:], y[100:], weights[100:])
    else:
        for part in (slice(0, 40), slice(40, 120), slice(120, 200)):
            model.partial_fit(X[part], y[part], weights[part])
    assert model.predict(X[150:151])[0] == pytest.approx(y[150], abs=0.05)
    before = model.coef_.copy()
    wild = y[:2] + 1e6
    model.partial_fit(X[:2], wild, [9.0, 9.0])
    assert np.abs(model.coef_ - before).max() < 1e-6
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))


def test_features_of_ones_own(rows):
    X, y = rows
    own = make_pipeline(StandardScaler(), Nystroem(n_components=30))
    model = clone(lc.DecentralizedKernelRegressor(features=own, n_agents=3, random_state=1))
    model.fit(X, y)
    assert model.features_.n_features == 30 and model.coef_.shape == (30,) and model.score(X, y) > 0.9
    assert not hasattr(own[0], "mean_") and "features__nystroem__gamma" in model.get_params()
    nystroem = Nystroem(n_components=20)  # has a random_state, which is drawn from that of the model
    one, two = (lc.DecentralizedKernelRegressor(features=nystroem, random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(one.predict(X), two.predict(X)) and nystroem.random_state is None
    assert np.array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))
    search = GridSearchCV(one, {"features__gamma": [1e-6, 0.5]}, cv=2).fit(X, y)
    assert search.best_params_ == {"features__gamma": 0.5}


def test_features_that_are_ready_are_taken_as_they_are(rows):
    X, y = rows
    frozen = FrozenEstimator(Nystroem(n_components=20, random_state=0).fit(X[:50]))
    ours = lc.RandomFeatures.gaussian(2, 15, bandwidth=1.0, seed=0)
    for features, n_features in ((frozen, 20), (ours, 30)):
        model = lc.DecentralizedKernelClassifier(features=features, n_agents=2, random_state=0)
        model.partial_fit(X[:100], y[:100] > 0, classes=[False, True]).partial_fit(X[100:], y[100:] > 0)
        assert model.weights_.shape == (2, n_features) and model.score(X, y > 0) > 0.9
    with pytest.raises(ValueError, match="features must take 2 inputs"):
        lc.DecentralizedKernelRegressor(features=lc.RandomFeatures.gaussian(3, 5)).fit(X, y)
    with pytest.raises(ValueError, match="features must be a laconic RandomFeatures"):
        lc.DecentralizedKernelRegressor(features="rbf").fit(X, y)
    choice = lc.defaults.choose(X, y, features=ours)
    assert choice.features is ours and "30 numbers, by a map of one's own" in str(choice)
