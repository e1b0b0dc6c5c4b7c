"""Least squares that forget, of more features than they remember samples: sound for as long as anybody likes."""

import numpy as np
import pytest

import laconic as lc
from laconic.learners import Personal
from laconic.waves.rule import ArmNumbers

ENGINES = ("compiled", "reference")
FEATURES = lc.RandomFeatures.gaussian(n_inputs=20, n_frequencies=30, bandwidth=8.0, seed=0)
NETWORKS = {1: lc.Network.from_edges(1, []), 2: lc.Network.path(2)}
_rule = Personal.rule


def sine(n_rounds, n_agents, draw):
    X = draw(size=(n_rounds, n_agents, 20))
    return X, np.sin(2 * X[..., 0]) + np.tanh(X[..., 1] * X[..., 2])


@pytest.fixture
def short(monkeypatch):
    """An arm that remembers 5 samples of 60 features is what one is that remembers 50 of 600, in fewer rounds."""
    arms = ArmNumbers(forgetting=0.8)
    monkeypatch.setattr(Personal, "rule", lambda learner: _rule(learner)._replace(arms=arms))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_agents", [1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_arm_whose_ridge_fades_does_not_grow(engine, n_agents, seed, short):
    X, y = sine(2000, n_agents, np.random.default_rng(seed).normal)
    trace = lc.simulate(lc.Personal(), FEATURES, NETWORKS[n_agents], X, y, engine=engine)
    recent = trace.state.learner["arms"][:, 3]
    assert np.abs(recent).max() < 100
    assert trace.squared_errors()[1000:].mean() < 1.1 * y.var()
    assert not trace.info["rebuilt"].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_experts_that_forget_much_do_not_grow(engine):
    X, y = sine(1500, 2, np.random.default_rng(2).normal)
    y[::7] = np.nan
    learner = lc.Experts(steps=(0.1,), forgetting=(0.8,))
    trace = lc.simulate(learner, FEATURES, NETWORKS[2], X, y, engine=engine)
    assert np.abs(trace.state.learner["models"]).max() < 100
