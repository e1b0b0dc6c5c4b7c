"""Factored recursive least squares in the core: the ridge solution of all samples so far, and positive for ever."""

import numpy as np
import pytest

from laconic.native.arrays import aligned
from laconic.native.least_squares import recursive_rounds


def learn(n_rounds, n_agents, n_features, n_models, forgetting, labels=None):
    rng = np.random.default_rng(0)
    n_rows = n_rounds * n_agents
    phi = aligned(n_rows, n_features, float)
    phi[:, :n_features] = rng.normal(size=(n_rows, n_features))
    if labels is None:
        labels = phi[:, :n_features] @ rng.normal(size=n_features) + rng.normal(size=n_rows)
        labels[rng.uniform(size=n_rows) < 0.2] = np.nan
        labels = labels.reshape(n_rounds, n_agents)
    weights, gain = aligned(n_models, n_features, float), aligned(1, n_features, float)
    factors = aligned(n_models * n_features, n_features, float)
    spreads, predictions = np.full((n_models, n_features), 1 / 0.3), np.empty(labels.shape)
    row = recursive_rounds(phi, labels, weights, factors, spreads, gain, forgetting, predictions)
    return phi[:, :n_features], labels, weights, factors, spreads, predictions, row


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 8, 22, 41])
def test_models_are_the_ridge_solutions(n_features, together, forgetting):
    n_rounds, n_agents = 90, 3
    found = learn(n_rounds, n_agents, n_features, 1 if together else n_agents, forgetting)
    phi, labels, weights, factors, spreads, predictions, row = found
    assert row == labels.size
    age = n_rounds - 1 - np.repeat(np.arange(n_rounds), n_agents)
    for model, w in enumerate(weights[:, :n_features]):
        mine = ~np.isnan(labels.ravel()) & (together | (np.arange(labels.size) % n_agents == model))
        x, y, share = phi[mine], labels.ravel()[mine], forgetting ** age[mine]
        information = (x.T * share) @ x + 0.3 * forgetting**n_rounds * np.eye(n_features)
        np.testing.assert_allclose(w, np.linalg.solve(information, (x.T * share) @ y), rtol=1e-8, atol=1e-10)
        root = factors[model * n_features : (model + 1) * n_features, :n_features].T + np.eye(n_features)
        covariance = (root * spreads[model]) @ root.T
        np.testing.assert_allclose(covariance @ information, np.eye(n_features), atol=1e-8)
        assert not np.tril(root, -1).any()
    first = predictions[0], np.zeros(n_agents)
    assert np.array_equal(*first)


def test_a_direction_that_is_forgotten_beyond_numbers_ends_the_rounds():
    labels = np.ones((3000, 1))
    labels[1:2990] = np.nan
    row = learn(3000, 1, 3, 1, 0.7, labels)[-1]
    assert row == 2991
