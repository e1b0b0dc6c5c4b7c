"""The ridges of a table's model, weighed by generalised cross-validation, as hat matrices have it."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import laconic as lc
from laconic.estimators.settled import settled_model


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    return X, X @ rng.standard_normal(8) + 5 * rng.standard_normal(n)


def by_hat_matrix(features, X, labels, ridges, ratios=(1, 4, 16, 64, 1e6)):
    """V = |(I - S) y|^2 / (1 - tr S/n)^2, S = Phi (Phi'Phi + r W)^-1 Phi', and the mean of all models by V^(-n/5)."""
    phi, n = features(X), len(X)
    found = []
    for ridge, ratio in itertools.product(ridges, ratios):
        penalty = np.where(np.arange(phi.shape[1]) < 2 * features.n_frequencies, ratio, 1.0) * ridge
        inverse = np.linalg.inv(phi.T @ phi + np.diag(penalty))
        hat = phi @ inverse @ phi.T
        left = labels - hat @ labels
        found.append(((left**2).sum() / (1 - np.trace(hat) / n) ** 2, ridge, inverse @ phi.T @ labels))
    errors = np.array([one[0] for one in found])
    return min(found, key=lambda one: one[0])[1], np.average(
        [one[2] for one in found], axis=0, weights=(errors / errors.min()) ** (-n / 5)
    )


def test_one_agent_takes_the_ridges_of_the_hat_matrix():
    X, y = noisy(150)
    model = lc.DecentralizedKernelRegressor(n_agents=1, n_frequencies=20, random_state=0).fit(X, y)
    ridge, expected = by_hat_matrix(model.features_, X, (y - model.center_) / model.scale_, 0.05 * 2.0 ** np.arange(13))
    assert ridge > 1  # it is small for its noise
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-6)


def test_more_inputs_than_rows_are_a_line_where_they_are_one():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((620, 150))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(620)
    model = lc.DecentralizedKernelRegressor(random_state=0).fit(X[:120], y[:120])
    ridge = Ridge().fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > ridge.score(X[120:], y[120:])


def test_agents_come_to_what_a_centre_would_have():
    X, y = noisy(2300)
    X, y, truth = X[:300], y[:300], (X[300:], y[300:])
    five = lc.DecentralizedKernelRegressor(random_state=0).fit(X, y)
    one = lc.DecentralizedKernelRegressor(n_agents=1, random_state=0).fit(X, y)
    assert abs(five.score(*truth) - one.score(*truth)) < 0.05
    shared = five.state_.weights.mean(axis=0)
    assert np.linalg.norm(five.coef_) < 0.7 * np.linalg.norm(shared)
    before = five.score(*truth)
    five._settled = None  # what a stream would have
    assert five.score(*truth) < before - 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_settled_too(n_classes):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((240, 5))
    y = np.digitize(X[:, 0] + 2 * rng.standard_normal(240), [0.0, 1.5][: n_classes - 1])
    model = lc.DecentralizedKernelClassifier(random_state=0).fit(X, y)
    assert model.coef_.shape == ((206,) if n_classes == 2 else (3, 206))
    weights = model.weights_.mean(axis=-2)
    assert np.linalg.norm(model.coef_) < np.linalg.norm(weights)
    assert model.model_.weights.shape == model.coef_.T.shape


def test_who_goes_on_learning_has_a_streams_model_again():
    X, y = noisy(100)
    model = lc.DecentralizedKernelRegressor(random_state=0).fit(X, y)
    settled = model.coef_
    model.partial_fit(X, y)
    assert not np.array_equal(model.coef_, settled)
    np.testing.assert_array_equal(model.coef_, model.learner_.blend(model.state_.learner))


def test_silent_agents_and_learners_that_take_steps_are_left_alone():
    X, y = noisy(100)
    silent = lc.DecentralizedKernelRegressor(budget="silent", random_state=0).fit(X, y)
    assert settled_model(silent.learner_, silent.features_, silent.state_.learner) is None
    np.testing.assert_array_equal(silent.coef_, silent.learner_.blend(silent.state_.learner))
    steps = lc.DecentralizedKernelRegressor(learner=lc.ODKLA(), bandwidth="scale", random_state=0).fit(X, y)
    np.testing.assert_array_equal(steps.coef_, steps.weights_.mean(axis=0))
