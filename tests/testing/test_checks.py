"""The battery passes over every learner of the package, and catches learners that break its rules."""

from typing import NamedTuple

import numpy as np
import pytest

import laconic as lc
from laconic.testing import checks

LEARNERS = {
    f"{name}-{loss}": make(loss)
    for loss in ("squared", "logistic", "hinge")
    for name, make in {
        "odkla": lambda loss: lc.ODKLA(rho=0.3, eta=1.0, loss=loss),
        "dokl": lambda loss: lc.DOKL(rho=0.3, eta=1.0, loss=loss),
        "cta": lambda loss: lc.RFFDOKL(step=0.5, loss=loss),
        "atc": lambda loss: lc.RFFDOKL(step=0.5, order="adapt-then-combine", loss=loss),
        "local": lambda loss: lc.Local(step=0.5, loss=loss),
    }.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_of_the_package_passes(name):
    checks.check_learner(LEARNERS[name])


class Weights(NamedTuple):
    weights: np.ndarray


class Good(lc.Learner):
    """A person's own learner, NumPy only: normalised LMS that leans towards its neighbours."""

    def __init__(self, channel=None):
        super().__init__(channel=channel or lc.Channel())

    def init(self, n_agents, n_features):
        return Weights(np.zeros((n_agents, n_features)))

    def step(self, state, sample, heard):
        weights = state.weights + 0.5 * heard.mixture
        error = self.loss.slope((weights * sample.phi).sum(axis=1), sample.label)
        return Weights(weights - 0.3 * error[:, None] * sample.phi), {"error": error}


class ChangesItsState(Good):
    def step(self, state, sample, heard):
        state.weights[:] += 1.0
        return super().step(state, sample, heard)


class PeeksAtOthers(Good):
    def step(self, state, sample, heard):
        moved, info = super().step(state, sample, heard)
        return Weights(moved.weights + 0.1 * state.weights.mean(axis=0)), info


class Remembers(Good):
    count = 0

    def step(self, state, sample, heard):
        self.count += 1
        moved, info = super().step(state, sample, heard)
        return Weights(moved.weights * (1 - 0.001 * self.count)), info


class ForgetsNaN(Good):
    def step(self, state, sample, heard):
        error = (state.weights * sample.phi).sum(axis=1) - sample.label
        return Weights(state.weights - 0.3 * error[:, None] * sample.phi), {}


class NeverLearns(Good):
    def step(self, state, sample, heard):
        return state, {}


class NoWeights(Good):
    def init(self, n_agents, n_features):
        return {"theta": np.zeros((n_agents, n_features))}


def test_own_learner_passes():
    checks.check_learner(Good())


@pytest.mark.parametrize(
    ("learner", "rule"),
    [
        (ChangesItsState, "must not change their arguments"),
        (PeeksAtOthers, "must not depend on the other rows"),
        (Remembers, "same answer to the same question"),
        (ForgetsNaN, "missing label"),
        (NeverLearns, "loss must fall"),
        (NoWeights, "NamedTuple"),
    ],
)
def test_a_broken_rule_is_named(learner, rule):
    with pytest.raises(AssertionError, match=rule):
        checks.check_learner(learner())


def test_own_learner_works_with_everything():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 4, 2))
    y = X[..., 0]
    features = lc.RandomFeatures.matern(n_inputs=2, n_frequencies=10, nu=2.5)
    for channel in (lc.Channel(), lc.Channel(lc.Censor(1.0, 0.9), lc.Quantizer(2))):
        for network in (lc.Network.star(4), lc.Network.ring(4)):
            trace = lc.simulate(Good(channel), features, network, X, y, collective=True)
            assert trace.about["engine"] == "reference"
            assert trace.info["error"].shape == (50, 4)
            assert trace.mse()[-1] < trace.mse()[0]
            assert trace.global_mse()[-1] < trace.global_mse()[0]
    swept = lc.sweep([Good(), lc.ODKLA()], features, lc.Network.ring(4), X, y)
    assert [trace.about["engine"] for trace in swept] == ["reference", "compiled"]
    with pytest.raises(ValueError, match="engine must be 'reference' or 'auto'"):
        lc.simulate(Good(), features, lc.Network.ring(4), X, y, engine="compiled")
