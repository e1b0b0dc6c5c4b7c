"""Limits of labels and inputs: what passes, what is clipped, held back or dropped, and how limits are learned."""

import math
import statistics

import numpy as np
import pytest
from breadth import each, examples
from hypothesis import given, settings
from hypothesis import strategies as st

import laconic as lc
from laconic.guard import LARGEST_LABEL
from laconic.protocol.ledger import FEW

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(3000, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1]


def one_by_one(values, deviations=20.0):
    """The rule for a stream of labels in plain Python: their clipped values, NaN where one is held back."""
    first, n, row, mean, square, mean_all, square_all = [], 0, 0, 0.0, 0.0, 0.0, 0.0
    for value in values:
        n += 1
        known = n > 8 and max(square, square_all) > 0
        if known:
            width = max(deviations * math.sqrt(max(square, square_all)), abs(mean))
        else:
            width = max(100.0, deviations * sorted(map(abs, first))[len(first) // 2 - 1] if n > 2 else 0.0)
        clipped = min(max(value, mean - width, -1e12), mean + width, 1e12)
        near = known and abs(value - mean) <= 5 * width and abs(value) <= 1e12
        yield clipped if near or clipped == value else math.nan
        if n <= 8:
            first.append(value)
            if n == 8:
                mean = mean_all = statistics.median(first)
                apart = sorted(abs(v - mean) for v in first)
                deviation = max(1.4826 * statistics.median(apart), math.sqrt(sum(a * a for a in apart[:6]) / 6))
                square = square_all = deviation**2
            continue
        least = 1 if clipped == value else 500
        row = 0 if clipped == value else row + 1
        if row in (1, 2):
            most = 5 * math.sqrt(max(square, square_all))
            clipped = min(max(clipped, mean - most), mean + most)
        w = 1 / min(max(n, least), 500)
        mean, square = mean + w * (clipped - mean), (1 - w) * (square + w * (clipped - mean) ** 2)
        w = 1 / max(n, least)
        mean_all, square_all = (
            mean_all + w * (clipped - mean_all),
            (1 - w) * (square_all + w * (clipped - mean_all) ** 2),
        )


def labels(guard, values):
    return [guard([0.5], value).y for value in values]


streams = st.lists(
    st.one_of(st.floats(-2, 2), st.sampled_from([0.0, 1.0, 1e3, -1e4, 1e6, 1e11])), min_size=1, max_size=60
)


@given(streams)
@settings(max_examples=examples(300), deadline=None)
def test_it_follows_the_rule_as_it_is_written_down(values):
    np.testing.assert_allclose(labels(lc.Guard(1), values), [*one_by_one(values)], rtol=1e-9, atol=1e-12)


def test_usual_samples_pass_as_they_are():
    guard = lc.Guard(2)
    for x, y in zip(X, Y, strict=True):
        seen = guard(x, y)
        assert seen.x is x and seen.y == y and seen.beyond == ()
    low, high = guard.limits.T
    centre, spread = [Y.mean(), *X.mean(axis=0)], [Y.std(), *X.std(axis=0)]
    np.testing.assert_allclose((low + high) / 2, centre, atol=0.1)
    np.testing.assert_allclose((high - low) / 2, spread * np.array([20, 200, 200]), rtol=0.1)


@pytest.mark.parametrize("value", [30.0, -1e6, 1e17, -1e300])
def test_one_label_however_large_is_clipped_or_dropped_and_hardly_widens_the_limits(value):
    for n in (8, 9, 20, 100, 3000):
        guard = lc.Guard(2)
        for x, y in zip(X[:n], Y[:n], strict=True):
            guard(x, y)
        (low, high), *_ = guard.limits
        seen = guard(X[0], value)
        outcome = "clipped" if value == 30.0 else "dropped"
        assert seen.y == high if value == 30.0 else math.isnan(seen.y)
        assert seen.beyond == (("label", value, low, high, outcome),)
        (lower, higher), *_ = guard.limits
        assert higher - lower < 1.03 * (high - low)


@pytest.mark.parametrize(("at", "value"), each(range(8), [101.0, -1e6, 1e17, 1e300]))
def test_among_the_first_labels_a_large_one_is_held_back_and_does_not_set_the_limits(at, value):
    guard, usual = lc.Guard(2), lc.Guard(2)
    for t in range(8):
        seen = guard(X[t], value if t == at else Y[t])
        usual(X[t], Y[t])
        assert math.isnan(seen.y) == (t == at)
        assert [one.outcome for one in seen.beyond] == ["held back"] * (t == at)
    assert np.abs(guard.limits[0]).max() < 3 * np.abs(usual.limits[0]).max()


def test_two_of_the_first_eight_may_be_wrong():
    guard = lc.Guard(1)
    seen = labels(guard, [1e17, 0.1, 0.2, -1e9, 0.3, 0.1, 0.4, 0.2])
    assert np.flatnonzero(np.isnan(seen)).tolist() == [0, 3]
    assert np.abs(guard.limits[0]).max() < 10


@pytest.mark.parametrize("scale", [300.0, 2e5, -1e10])
def test_where_labels_are_large_the_first_two_are_held_back_and_no_more(scale):
    guard = lc.Guard(1)
    values = scale * (1 + 0.1 * RANDOM.standard_normal(200))
    assert np.flatnonzero(labels(guard, values) != values).tolist() == [0, 1]


@pytest.mark.parametrize(("shift", "most"), [(1e2, 12), (1e3, 20), (1e6, 44), (-1e6, 44), (1e11, 84)])
def test_a_stream_that_moves_for_good_is_followed(shift, most):
    guard = lc.Guard(2)
    for x, y in zip(X[:1000], Y[:1000], strict=True):
        guard(x, y)
    touched = [bool(guard(x, y + shift).beyond) for x, y in zip(X[1000:], Y[1000:], strict=True)]
    n = touched.index(False)
    assert 0 < n <= most and not any(touched[n:])


@pytest.mark.parametrize("every", [30, 100, 400])
def test_faults_that_come_again_and_again_do_not_widen_the_limits_for_ever(every):
    guard = lc.Guard(1)
    values = [1e17 if t % every == every - 1 else y for t, y in enumerate(np.tile(Y, 4))]
    seen = labels(guard, values)
    faulty = np.array(values) == 1e17
    assert np.isnan(seen)[faulty].all() and not np.isnan(seen)[~faulty].any()
    assert np.abs(guard.limits[0]).max() < 50


def test_dropped_samples_are_learned_of_so_that_a_stream_that_moves_is_followed_all_the_same():
    guard = lc.Guard(1, beyond="drop")
    labels(guard, Y[:1000])
    seen = labels(guard, Y[1000:1100] + 1e6)
    assert math.isnan(seen[0]) and not any(math.isnan(y) for y in seen[45:])


@pytest.mark.parametrize("constant", [0.0, 1.0, -3.5, 900.0, 5000.0, 1e9])
def test_constants_pass_and_so_does_their_first_change(constant):
    guard = lc.Guard(1)
    held = 2 if abs(constant) > 100 else 0
    assert labels(guard, [constant] * 1000)[held:] == [constant] * (1000 - held)
    assert labels(guard, [constant + 1.0]) == [constant + 1.0]
    assert labels(guard, [constant] * 10) == [constant] * 10


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_large_label_amid_constants_is_held_back(constant):
    guard = lc.Guard(1)
    labels(guard, [constant] * 100)
    assert math.isnan(labels(guard, [1e17])[0])
    assert labels(guard, [constant] * 3) == [constant] * 3


def test_a_calm_night_makes_no_surprise_of_the_morning():
    day = np.maximum(0, np.sin(np.linspace(0, 20 * np.pi, 50_000)))  # ten days, half of each is night
    guard = lc.Guard(1)
    assert labels(guard, day) == day.tolist()


def test_an_input_far_off_is_clipped():
    guard = lc.Guard(2)
    for x, y in zip(X, Y, strict=True):
        guard(x, y)
    for far, outcome in ((100.0, "clipped"), (1e12, "dropped")):
        seen = guard([0.5, far], 0.7)
        assert seen.x[0] == 0.5 and 50 < seen.x[1] < 70
        assert seen.y == 0.7 if outcome == "clipped" else math.isnan(seen.y)
        assert [(one.what, one.outcome) for one in seen.beyond] == [(1, outcome)]


def test_what_is_not_finite_passes_and_is_not_learned_of():
    guard, other = lc.Guard(2), lc.Guard(2)
    for t, (x, y) in enumerate(zip(X[:50], Y[:50], strict=True)):
        guard(x, y)
        other(x, y)
        if t % 3 == 0:
            for missing in (None, math.nan, math.inf):
                seen = other([math.nan, math.inf], missing)
                assert seen.beyond == () and math.isnan(seen.x[0]) and not math.isfinite(seen.y)
    np.testing.assert_array_equal(guard.limits, other.limits)


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=40), st.sampled_from(["clip", "drop", "off"]))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_comes_an_agent_can_learn_from_what_is_finite(samples, beyond):
    guard = lc.Guard(1, beyond=beyond)
    for x, y in samples:
        seen = guard([x], y)
        assert math.isnan(seen.y) or math.isinf(y) or abs(seen.y) <= LARGEST_LABEL
        assert seen.x[0] == x or math.isfinite(seen.x[0]) or math.isnan(x)
        assert not np.isnan(guard.limits).any()


def test_limits_that_are_given_hold_from_the_first_sample():
    guard = lc.Guard(2, label=[-1, 2], inputs=[[0, 1], [-5, 5]])
    seen = guard([3.0, -7.0], 1e17)
    assert seen.x.tolist() == [1.0, -5.0] and seen.y == 2.0
    assert [one.what for one in seen.beyond] == ["label", 0, 1]
    for _ in range(100):
        guard([3.0, -7.0], 1e17)
    assert guard.limits.tolist() == [[-1, 2], [0, 1], [-5, 5]]
    assert lc.Guard(2, inputs=[0, 1]).limits[1:].tolist() == [[0, 1], [0, 1]]


def test_drop_leaves_a_clipped_input_to_predict_for_and_no_label():
    seen = lc.Guard(2, inputs=[0, 1], beyond="drop")([0.5, 9.0], 0.3)
    assert seen.x.tolist() == [0.5, 1.0] and math.isnan(seen.y)
    assert [one.outcome for one in seen.beyond] == ["dropped"]


def test_off_is_off_but_for_labels_that_agents_refuse():
    guard = lc.Guard(2, beyond="off")
    for x, y in zip(X[:100], Y[:100], strict=True):
        guard(x, y)
    x = np.array([1e17, 0.0])
    assert guard(x, 1e11).x is x and guard(x, 1e11).y == 1e11
    seen = guard(x, 2e12)
    assert math.isnan(seen.y) and seen.beyond[0].outcome == "dropped"


def test_classes_are_never_far_off():
    guard = lc.Guard(1, guard_labels=False)
    assert labels(guard, [-1.0] * 2000 + [1.0]) == [-1.0] * 2000 + [1.0]


@pytest.mark.parametrize("n", [0, 3, 8, 200])
def test_a_guard_goes_on_where_another_was(n):
    guard, again = lc.Guard(2), lc.Guard(2)
    for x, y in zip(X[:n], Y[:n], strict=True):
        guard(x, y)
    again.restore(guard.to_bytes())
    for x, y in zip(X[n : n + 50], Y[n : n + 50], strict=True):
        for value in (y, 1e5 * y):
            assert guard(x, value).y == pytest.approx(again(x, value).y, rel=0, abs=0, nan_ok=True)
    np.testing.assert_array_equal(guard.limits, again.limits)


def test_a_guard_refuses_what_none_has_given():
    good = lc.Guard(2).to_bytes()
    for bad in (b"", good[:-1], good[:-1] + b"!", b"x" + good[1:], lc.Guard(3).to_bytes()):
        guard = lc.Guard(2)
        with pytest.raises(ValueError, match="data must be what a guard"):
            guard.restore(bad)
        np.testing.assert_array_equal(guard.limits, lc.Guard(2).limits)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"n_inputs": 0}, "n_inputs must be at least 1"),
        ({"deviations": 0.5}, "deviations must be at least 1"),
        ({"beyond": "cut"}, "beyond must be one of 'clip', 'drop', 'off'"),
        ({"label": 3}, r"label must be two numbers, \[low, high\], got 3"),
        ({"label": [2, 1]}, "label must have the lower limit first"),
        ({"label": [0, 1e13]}, "label must be at most 1e.12 in size"),
        ({"label": [0, math.nan]}, "label must be finite"),
        ({"inputs": [[0, 1]]}, "inputs must have a pair for each of 2 inputs, got 1"),
        ({"inputs": "01"}, "inputs must be two numbers"),
    ],
)
def test_a_wrong_argument_is_named(arguments, why):
    with pytest.raises(ValueError, match=why):
        lc.Guard(**{"n_inputs": 2, **arguments})
    with pytest.raises(ValueError, match=r"x must have shape \(2,\), got \(3,\)"):
        lc.Guard(2)([1, 2, 3], 0.0)


# What an agent refuses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_an_agent_refuses_a_label_of_which_no_model_could_be_said(clock):
    features = lc.RandomFeatures.gaussian(2, 10, bandwidth=0.5, seed=0)
    pair = [
        lc.Agent(name, [other], features, lc.ODKLA(rho=0.5, eta=1.0), n_agents=2, clock=clock)
        for name, other in (("ann", "ben"), ("ben", "ann"))
    ]

    def carry():
        for sender, receiver in 5 * (pair, pair[::-1]):
            for message in sender.outgoing():
                receiver.receive(message.data)

    def learn(*labels):
        for agent, label in zip(pair, labels, strict=True):
            agent.learn([0.3, 0.4], label)
        carry()

    carry()
    learn(0.5, 0.5)
    before = pair[0].weights
    for label in (1e17, -1.1e12):
        with pytest.raises(ValueError, match=r"y must be at most 1e\+12 in size"):
            pair[0].learn([0.3, 0.4], label)
    assert pair[0].round == 1 and np.array_equal(pair[0].weights, before)
    for label in (1e12, 0.5, 0.5):
        learn(label, -label)
    assert pair[0].round == 4 and np.array_equal(pair[1].replica("ann"), pair[0].broadcast)
    assert not any("not finite" in agent.counters["refusals"] for agent in pair)


def test_a_model_that_others_would_refuse_has_diverged():
    features = lc.RandomFeatures.gaussian(2, 10, bandwidth=0.5, seed=0)
    ann = lc.Agent("ann", ["ben"], features, lc.Local(step=1e4, regularization=0.0), n_agents=2)
    with pytest.raises(lc.Diverged):  # with its first labels an agent does not judge itself yet
        all(ann.learn([0.3, 0.4], 1e12) for _ in range(FEW + 1))
