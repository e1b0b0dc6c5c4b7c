"""Personal: the stack and its arms against their equations written out, both engines, resuming, and wild labels."""

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.defaults import Labels
from laconic.guard.labels import LabelGuard
from laconic.waves import Arithmetic
from laconic.waves.arms import FIRST, PersonalOwn

ENGINES = ("reference", "compiled")
FEATURES = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=6, bandwidth=0.6, seed=1)


def corner(n_rounds=160, n_agents=6):
    """A stream in which every agent sees another part of the world, with some labels missing."""
    X, y = make_stream(n_rounds, n_agents)
    X = X * 0.4 + 0.6 * np.linspace(0, 1, n_agents)[:, None]
    y = np.sin(5 * X[..., 0]) + X[..., 1] + 0.05 * y
    y[40:50, 0] = np.nan
    return X, y


def batch(phi, y, ridge, decay=1.0):
    """The minimiser of the squared errors, the last one counting 1, plus ridge |w|^2."""
    weights = decay ** np.arange(len(y) - 1, -1, -1)
    return np.linalg.solve(phi.T @ (weights[:, None] * phi) + ridge * np.eye(phi.shape[1]), phi.T @ (weights * y))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_line_of_the_stack_and_of_the_arms_of_an_agent_alone(engine):
    X, y = corner(120, 1)
    y = np.where(np.isnan(y), 0.3, y)
    trace = lc.simulate(lc.Personal(deviations=None), FEATURES, NETWORKS["alone"], X, y, engine=engine)
    phi, label, D = FEATURES(X[:, 0]), y[:, 0], FEATURES.n_features
    w, E, quick = FIRST.copy(), np.zeros((5, 5)), np.zeros(D)
    recent, H = np.zeros(D), 0.1 * np.eye(D)
    for t in range(len(label)):
        wave, shrunk = (batch(phi[:t], label[:t], ridge) for ridge in (0.05, 0.5))
        arms = np.array([wave, shrunk, wave, recent, quick])  # who shares nothing has nothing to be personal around
        np.testing.assert_allclose(trace.stack[t, 0], w, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(trace.predictions[t, 0], w @ arms @ phi[t], rtol=1e-7, atol=1e-9)
        e = arms @ phi[t] - label[t]
        E = 0.99 * E + np.outer(e, e)
        g = E @ w
        q = w @ g
        w = w * np.exp(np.clip(-(g - q) / q, -5, 5))
        w = 0.997 * w / w.sum() + 0.003 * FIRST
        b = 0.98 * H @ recent + label[t] * phi[t]
        H = 0.98 * H + np.outer(phi[t], phi[t])
        recent = np.linalg.solve(H, b)
        H[t % D, t % D] += D * 0.02 * 0.1
        quick = quick - 0.5 * e[4] * phi[t] / (phi[t] @ phi[t])


def test_what_the_arms_make_of_a_wave():
    random, n = np.random.default_rng(0), 8
    own = PersonalOwn(lc.Personal(deviations=None).rule(), Arithmetic(), n)
    phi, y, theta = random.normal(size=(30, n)), random.normal(size=30), random.normal(size=n)
    for k in range(30):
        if k == 20:
            own.mark()
        own.learn(phi[k], y[k])
    H = 40 * np.cov(random.normal(size=(n, 50))) + 0.07 * np.eye(n)  # n C + thick I
    own.adopt(np.linalg.inv(H), theta)
    since = phi[20:].T @ phi[20:]
    stronger = H + 0.45 * np.eye(n)
    expected = np.linalg.solve(stronger + since, H @ theta + phi[20:].T @ y[20:])
    np.testing.assert_allclose(own.arms[0], expected, rtol=1e-9)
    expected = np.linalg.solve(phi.T @ phi + 0.05 * np.eye(n), phi.T @ y + 0.05 * theta)
    np.testing.assert_allclose(own.arms[1], expected, rtol=1e-9)
    np.testing.assert_array_equal(own.shared, theta)
    np.testing.assert_allclose(own.weights, np.linalg.solve(H + since, H @ theta + phi[20:].T @ y[20:]), rtol=1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_the_engines_agree_and_say_what_waves_say(forgetting):
    X, y = corner()
    learner = lc.Personal(lc.WaveRLS(forgetting=forgetting))
    slow, fast = (
        lc.simulate(learner, FEATURES, NETWORKS["random"], X, y, engine=engine, collective=True) for engine in ENGINES
    )
    np.testing.assert_allclose(slow.predictions, fast.predictions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(slow.stack, fast.stack, rtol=0, atol=1e-9)
    np.testing.assert_allclose(slow.global_mse(), fast.global_mse(), rtol=1e-9)
    np.testing.assert_array_equal(slow.bits, fast.bits)
    waves = lc.simulate(learner.shared, FEATURES, NETWORKS["random"], X, y)
    np.testing.assert_array_equal(fast.bits, waves.bits)
    np.testing.assert_array_equal(fast.weights, waves.state.learner["theta"])
    assert fast.stack.shape == (*y.shape, 5)
    np.testing.assert_allclose(fast.stack.sum(axis=2), 1, rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_in_two_halves_has_the_bits_of_one(engine):
    X, y = corner()
    y[30, 1] = 1e9
    whole = lc.simulate(lc.Personal(), FEATURES, NETWORKS["path"], X, y, engine=engine)
    for half in (5, 77):
        first = lc.simulate(lc.Personal(), FEATURES, NETWORKS["path"], X[:half], y[:half], engine=engine)
        rest = lc.simulate(
            lc.Personal(), FEATURES, NETWORKS["path"], X[half:], y[half:], engine=engine, state=first.state
        )
        np.testing.assert_array_equal(whole.predictions[half:], rest.predictions)
        np.testing.assert_array_equal(whole.stack[half:], rest.stack)
        for name, part in whole.state.learner.items():
            np.testing.assert_array_equal(part, rest.state.learner[name])


@pytest.mark.parametrize("engine", ENGINES)
def test_one_wild_label_does_not_ruin_anybody(engine):
    X, y = corner(260)
    clean = lc.simulate(lc.Personal(), FEATURES, NETWORKS["ring"], X, y, engine=engine)
    y[100, 2] = 1e6
    wild = lc.simulate(lc.Personal(), FEATURES, NETWORKS["ring"], X, y, engine=engine)
    unguarded = lc.simulate(lc.Personal(deviations=None), FEATURES, NETWORKS["ring"], X, y, engine=engine)
    late = [np.nanmean((trace.predictions[160:] - y[160:]) ** 2) for trace in (clean, wild, unguarded)]
    assert late[1] < 3 * late[0]
    assert late[2] > 100 * late[0]


def test_agents_in_corners_predict_better_for_themselves_than_what_all_share():
    X, y = corner(600)
    own = lc.simulate(lc.Personal(), FEATURES, NETWORKS["ring"], X, y)
    waves = lc.simulate(lc.WaveRLS(), FEATURES, NETWORKS["ring"], X, y)
    alone = lc.simulate(lc.WaveRLS().alone(600), FEATURES, NETWORKS["ring"], X, y)
    assert own.mse()[-1] < 1.1 * min(waves.mse()[-1], alone.mse()[-1])


def test_the_blend_is_between_what_all_share_and_the_shrunk_arm():
    X, y = corner(100)
    learner = lc.Personal()
    parts = lc.simulate(learner, FEATURES, NETWORKS["ring"], X, y).state.learner
    trust = parts["stack"][:, 0] / parts["stack"][:, :2].sum(axis=1)
    expected = [
        t * theta + (1 - t) * arms[1] for t, theta, arms in zip(trust, parts["weights"], parts["arms"], strict=True)
    ]
    np.testing.assert_allclose(learner.blend(parts), np.mean(expected, axis=0), rtol=1e-12)


@pytest.mark.parametrize("size", [5, 10, 20, 25, 30, 37, 50, 60, 100, 1e3, 1e7])
def test_ten_labels_of_any_size_leave_most_of_what_others_say(size):
    """What they add to the sum of squares of 600 labels, dealt to five agents: the size at which that is most is 20."""
    added = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels = rng.standard_normal((120, 5))
        wild = rng.choice(600, 10, replace=False)
        labels.flat[wild] = size * rng.choice([-1.0, 1.0], 10)
        usual = Labels.measure(labels[:8], "numbers").deviation
        kept = np.column_stack(
            [[guard(y) for y in column] for column in labels.T for guard in [LabelGuard(20.0, usual)]]
        )
        added.append(np.nansum(kept.flat[wild] ** 2) / 600)
    assert np.mean(added) < (3 if size in (20, 25) else 2)


def test_the_guard_of_labels_follows_a_stream_and_lets_classes_pass():
    guard = LabelGuard(20.0)
    labels = np.random.default_rng(0).normal(5, 2, size=1000)
    assert [guard(float(y)) for y in labels] == labels.tolist()
    assert 5 + 30 < guard(55.0) < 5 + 60
    assert np.isnan(guard(float("nan"))) and np.isnan(guard(1e12)) and np.isnan(guard(-1e300))
    moved = [guard(float(y)) for y in labels + 1000]
    assert np.isnan(moved[:6]).all() and not np.isnan(moved[8:]).any()
    assert moved[-1] == labels[-1] + 1000  # a stream that has moved for good is followed
    constant = LabelGuard(20.0)
    assert [constant(-1.0) for _ in range(50)] == [-1.0] * 50
    assert constant(1.0) == 1.0
    known = LabelGuard(20.0, usual=0.1)
    assert np.isnan(known(100.0))
    assert np.isnan(known(2.5)) and known(1.4) == 1.4  # 25 and 14 deviations, of which 15 may be no measurement
    for label in labels[:200]:
        known((label - 5) / 20)
    assert 2 < known(4.5) < 4.5  # but are a tail's where another was nearly as far


def test_rare_large_labels_of_a_heavy_tail_are_not_taken_for_wild():
    random = np.random.default_rng(1)
    tail = np.exp(2 * random.standard_normal(3000))
    rain = np.where(random.uniform(size=3000) < 0.03, np.exp(random.standard_normal(3000)), 0.0)
    for labels in (tail, rain):
        guard = LabelGuard(20.0, usual=lc.defaults.Labels.measure(labels[:40], "numbers").deviation)
        assert np.isnan([guard(float(y)) for y in labels]).sum() <= 1


@pytest.mark.parametrize("known", [None, 1.0])
def test_wild_labels_in_a_row_or_one_in_thirty_leave_the_limits_where_they_were(known):
    labels = np.random.default_rng(2).standard_normal(600)
    plain, troubled = LabelGuard(20.0, known), LabelGuard(20.0, known)
    for y in labels:
        plain(float(y))
    labels[40:47] = 1e7
    labels[100::30] = -1e9
    heard = np.array([troubled(float(y)) for y in labels])
    np.testing.assert_array_equal(np.isnan(heard), np.abs(labels) > 100)
    assert troubled.numbers()[2] < 4 * plain.numbers()[2]
    again = LabelGuard(20.0, known)
    again.restore(troubled.numbers())
    assert again(25.0) == troubled(25.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shared": lc.ODKLA()}, "shared must be a laconic.WaveRLS"),
        ({"shared": lc.WaveRLS(loss="logistic")}, "shared must have the squared loss"),
        ({"deviations": 0.5}, "deviations must be at least 1"),
        ({"usual": 0}, "usual must be larger than 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        lc.Personal(**arguments)
