"""The battery passes over every learner of the package, and catches learners that break its rules."""

from typing import NamedTuple

import numpy as np
import pytest
from breadth import each

import laconic as lc
from laconic import channel as channels
from laconic import data
from laconic.testing import checks

# Each with one of the losses.
LEARNERS = {
    f"{name} {loss}": checks.every_learner(loss)[name] for name, loss in each(checks.every_learner(), lc.losses.LOSSES)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_every_registered_learner_passes_with_every_registered_loss(name):
    checks.check_learner(LEARNERS[name])


@pytest.mark.parametrize("loss", lc.losses.LOSSES)
def test_every_registered_loss_passes(loss):
    checks.check_loss(lc.losses.get(loss))


@pytest.mark.parametrize("censor", channels.CENSORS, ids=repr)
def test_every_registered_censor_passes(censor):
    checks.check_censor(censor)


@pytest.mark.parametrize("quantizer", channels.QUANTIZERS, ids=repr)
def test_every_registered_quantizer_passes(quantizer):
    checks.check_quantizer(quantizer)


@pytest.mark.parametrize("name", data.names())
def test_every_registered_data_set_passes(name):
    checks.check_data_set(name)


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


class Moments(NamedTuple):
    weights: np.ndarray
    first: np.ndarray
    second: np.ndarray
    steps: np.ndarray


class Scaled(Good):
    """A learner that divides by roots of second moments, which are never negative in a run of its own."""

    def init(self, n_agents, n_features):
        nothing = np.zeros((n_agents, n_features))
        return Moments(nothing, nothing.copy(), nothing.copy(), np.zeros(n_agents))

    def step(self, state, sample, heard):
        error = self.loss.slope((state.weights * sample.phi).sum(axis=1), sample.label)
        gradient = error[:, None] * sample.phi - 0.5 * heard.mixture
        steps = state.steps + 1
        first, second, move = self.scale(state, gradient, steps[:, None])
        return Moments(state.weights - move, first, second, steps), {"error": error}


class Adam(Scaled):
    def scale(self, state, gradient, t):
        first, second = 0.9 * state.first + 0.1 * gradient, 0.99 * state.second + 0.01 * gradient**2
        return first, second, 0.05 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)


class AdaGrad(Scaled):
    def scale(self, state, gradient, t):
        second = state.second + gradient**2
        return state.first, second, 0.3 * gradient / (np.sqrt(second) + 1e-8)


class RMSprop(Scaled):
    def scale(self, state, gradient, t):
        second = 0.95 * state.second + 0.05 * gradient**2
        return state.first, second, 0.03 * gradient / (np.sqrt(second) + 1e-8)


class SharesItsMoments(Adam):
    def scale(self, state, gradient, t):
        return super().scale(state._replace(second=state.second.mean(axis=0, keepdims=True)), gradient, t)


class TakesARootOfLess(Adam):
    def scale(self, state, gradient, t):
        with np.errstate(invalid="ignore"):
            return *super().scale(state, gradient, t)[:2], 0.05 * np.sqrt(gradient)


@pytest.mark.parametrize("learner", [Adam(), AdaGrad(), RMSprop()], ids=lambda learner: type(learner).__name__)
def test_learners_with_second_moments_pass(learner):
    checks.check_learner(learner)


@pytest.mark.parametrize("check", [checks.check_step_is_pure, checks.check_rows_are_agents])
def test_what_is_not_finite_is_called_so(check):
    with pytest.raises(AssertionError, match="keep state.weights finite: it became NaN"):
        check(TakesARootOfLess())


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
        (SharesItsMoments, "must not depend on the other rows"),
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


class WrongSlope(lc.losses.Loss):
    name = "wrong slope"

    def value(self, margin, label):
        return (margin - label) ** 2

    def derivative(self, margin, label):
        return 2.02 * (margin - label)


class Concave(WrongSlope):
    name = "concave"

    def value(self, margin, label):
        return -((margin - label) ** 2)

    def derivative(self, margin, label):
        return -2 * (margin - label)


class WrongKernel(WrongSlope):
    name, kernel = "wrong kernel", "squared"

    def value(self, margin, label):
        return np.abs(margin - label)

    def derivative(self, margin, label):
        return np.sign(margin - label)


class TooFlat(WrongSlope):
    name, curvature = "too flat", 1.9

    def derivative(self, margin, label):
        return 2 * (margin - label)


class WrongProx(TooFlat):
    name, curvature = "wrong prox", 2.0

    def prox(self, a, c, label):
        return 2 * (a - c * label) / (c + 1.9)


@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        (WrongSlope, "must be that of a convex value"),
        (Concave, "must be that of a convex value"),
        (WrongKernel, "kernel of wrong kernel must compute its value"),
        (TooFlat, "must bound its second derivative"),
        (WrongProx, "must solve c m"),
    ],
)
def test_a_loss_that_breaks_a_rule_is_named(loss, rule):
    with pytest.raises(AssertionError, match=rule):
        checks.check_loss(loss())


class Moody:
    """A censor that remembers how often it was asked."""

    count = 0

    def threshold(self, t):
        self.count += 1
        return 1 / self.count


class Backward:
    def threshold(self, t):
        return -1.0


@pytest.mark.parametrize(("censor", "rule"), [(Moody(), "depend on the round alone"), (Backward(), "at least 0")])
def test_a_censor_that_breaks_a_rule_is_named(censor, rule):
    with pytest.raises(AssertionError, match=rule):
        checks.check_censor(censor)


class Careless(lc.Quantizer):
    def __call__(self, innovation):
        innovation *= 1.0 + 1e-3
        return super().__call__(innovation)


class Sharing(lc.Quantizer):
    def __call__(self, innovation):
        largest = 1.0 + np.abs(innovation).max()
        return super().__call__(innovation / largest) * largest


class Free(lc.Quantizer):
    def message_bits(self, n_features):
        return 0


class Halves:
    """A quantizer of one's own that has only its two methods: the first half of a change, as it is."""

    def encode(self, h):
        return np.float32(len(h)).tobytes() + h[: len(h) // 2].astype("<f4").tobytes()

    def decode(self, data):
        said = np.zeros(int(np.frombuffer(data[:4], "<f4")[0]))
        said[: len(said) // 2] = np.frombuffer(data[4:], "<f4")
        return said


class SaysAnother(Halves):
    """Answers rows with something else than its bytes say."""

    def __call__(self, innovation):
        return innovation.copy()


def test_a_quantizer_of_bytes_alone_passes():
    checks.check_quantizer(Halves())
    channels.register(part := Halves())
    assert channels.QUANTIZERS.pop() is part


@pytest.mark.parametrize(
    ("quantizer", "rule"),
    [
        (SaysAnother(), "must answer what decode"),
        (Careless(3), "must not change what it is given"),
        (Sharing(3, range=(-1.0, 1.0)), "must look at each row on its own"),
        (Free(3), "must be positive"),
    ],
)
def test_a_quantizer_that_breaks_a_rule_is_named(quantizer, rule):
    with pytest.raises(AssertionError, match=rule):
        checks.check_quantizer(quantizer)


def test_a_data_set_that_breaks_a_rule_is_named(monkeypatch):
    def draw(n_rows):
        return data.Table(np.zeros((n_rows or 60, 2)), np.zeros(n_rows or 60), ("a", "b"), "y")

    entry = data.Entry("odd", "Odd", "Two inputs, though it says three.", "", n_inputs=3, draw=draw)
    monkeypatch.setitem(data.registry.REGISTRY, "odd", entry)
    with pytest.raises(AssertionError, match="odd must have the inputs it promises"):
        checks.check_data_set("odd")


class Forgets(Good):
    """Does not keep its argument under its name."""

    def __init__(self, rate=0.3, channel=None):
        super().__init__(channel)
        self.speed = rate


def test_an_argument_that_is_not_kept_is_named():
    with pytest.raises(AssertionError, match=r"the argument rate must be kept as self\.rate"):
        checks.check_learner(Forgets())


def test_what_is_registered_is_found_by_the_battery():
    lc.learners.register(type("Named", (Good,), {"name": "named"}))
    censor = channels.register(lc.Censor(1.0, 0.5))
    quantizer = channels.register(lc.Quantizer(7))
    try:
        assert isinstance(checks.every_learner()["named"], Good)
        behind = list(checks.channels().values())
        assert lc.Channel(censor) in behind and lc.Channel(quantizer=quantizer) in behind
    finally:
        lc.learners.unregister("named")
        channels.CENSORS.remove(censor)
        channels.QUANTIZERS.remove(quantizer)
    assert "named" not in checks.every_learner()
    for part in (lc.Censor, 3):
        with pytest.raises(ValueError, match="part must be a censor or a quantizer"):
            channels.register(part)
