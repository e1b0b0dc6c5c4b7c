"""Learners inside scikit-learn's machinery: clone, set_params and GridSearchCV reach their parameters."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import laconic as lc


def sample(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


def model(**options):
    options = {"n_frequencies": 20, "n_passes": 2, "random_state": 0, "learner": lc.ODKLA(), **options}
    return lc.DecentralizedKernelRegressor(**options)


def test_a_grid_search_reaches_the_learner():
    X, y = sample()
    etas = [2.0, 500.0]
    search = GridSearchCV(model(), {"learner__eta": etas, "learner__rho": [0.1]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learner__eta": 2.0, "learner__rho": 0.1}
    assert search.best_estimator_.learner_.eta(1) == 2.0
    # Each score is that of an estimator made with that learner by hand.
    for eta, score in zip(etas, search.cv_results_["mean_test_score"], strict=True):
        by_hand = cross_val_score(model(learner=lc.ODKLA(rho=0.1, eta=eta)), X, y, cv=3)
        assert score == pytest.approx(by_hand.mean(), rel=1e-12)


def test_a_grid_search_reaches_the_channel_and_whole_learners():
    X, y = sample()
    learner = lc.ODKLA(rho=0.1, channel=lc.Channel(quantizer=lc.Quantizer(3)))
    grid = [{"learner__channel__quantizer__bits": [1, 8]}, {"learner": [lc.Local(0.2), lc.DOKL(0.1)]}]
    search = GridSearchCV(model(learner=learner), grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(set(scores)) == 4
    assert learner.channel == lc.Channel(quantizer=lc.Quantizer(3))  # the search worked on copies


def test_a_grid_search_through_a_pipeline():
    X, y = sample()
    pipe = make_pipeline(StandardScaler(), model(learner=lc.QCODKLA(rho=0.1)))
    grid = {"decentralizedkernelregressor__learner__eta": [2.0, 500.0]}
    search = GridSearchCV(pipe, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"decentralizedkernelregressor__learner__eta": 2.0}


def test_a_clone_shares_nothing_that_can_change():
    one = model(learner=lc.QCODKLA(rho=0.3, range=(-1, 1)))
    other = clone(one)
    assert other.learner is not one.learner
    assert repr(other.learner) == repr(one.learner)
    other.set_params(learner__rho=0.9)
    assert (one.learner.rho, other.learner.rho) == (0.3, 0.9)
    assert one.get_params()["learner__rho"] == 0.3


def test_what_was_fitted_keeps_the_learner_it_was_fitted_with():
    X, y = sample()
    fitted = model().fit(X, y)
    fitted.set_params(learner__rho=0.9)
    assert (fitted.learner.rho, fitted.learner_.rho) == (0.9, 0.5)


def test_a_bad_parameter_is_one_sentence():
    with pytest.raises(ValueError, match="rho must be at least 0"):
        model().set_params(learner__rho=-1)
    with pytest.raises(ValueError, match="momentum is no parameter of ODKLA"):
        model().set_params(learner__momentum=0.5)
