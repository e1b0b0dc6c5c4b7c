"""What is chosen when nothing is said: the labels' way in and out, the reasons in words, and no peeking."""

import numpy as np
import pytest

import laconic as lc
from laconic.defaults import Labels, choose, recognise
from laconic.defaults.untuned import learn_untuned, online_linear, running_mean


def stream(n_rounds=120, n_agents=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([20.0, 1e5, 3.0], [5.0, 2e4, 0.0], size=(n_rounds, n_agents, 3))
    return X, 500 + 30 * np.sin(X[..., 0] / 4) + X[..., 1] / 2e3 + rng.normal(size=X.shape[:2])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["yes", "no"], "classes"),
        ([True, False], "classes"),
        (np.tile([0, 1, 2], 10), "classes"),
        (np.tile([1.0, 2.0, np.nan], 20), "classes"),
        (np.arange(100), "numbers"),
        ([0, 1, 2, 3], "numbers"),  # too few of each to tell
        ([0.5] * 50, "numbers"),
        ([3.0] * 50, "numbers"),
        ([], "numbers"),
    ],
)
def test_labels_tell_what_they_are(y, task):
    assert recognise(np.asarray(y)) == task


def test_numbers_are_centred_at_the_median_and_one_of_them_changes_little():
    rng = np.random.default_rng(0)
    y = rng.normal(50, 3, size=40)
    plain = Labels.measure(y, "numbers")
    y[7] = 1e9
    wild = Labels.measure(y, "numbers")
    assert abs(wild.centre - plain.centre) < 1 and abs(wild.deviation / plain.deviation - 1) < 0.2
    y[[1, 30, 31, 32]] = -1e8
    wild = Labels.measure(y, "numbers")
    assert abs(wild.centre - plain.centre) < 2 and abs(wild.deviation / plain.deviation - 1) < 0.3
    np.testing.assert_allclose(plain.decode(plain.encode(y)), y)
    assert Labels.measure([], "numbers") == Labels("numbers")
    assert Labels.measure([4.0] * 9, "numbers").deviation is None


def test_classes_go_in_and_come_back():
    y = np.array(["b", "a", "c", "a"])
    labels = Labels.measure(y, "classes")
    assert labels.n_models == 3
    assert labels.decode(labels.encode(y)).tolist() == y.tolist()
    np.testing.assert_allclose(labels.probabilities(labels.encode(y)), np.eye(3)[[1, 0, 2, 0]])
    two = Labels.measure([5, 7, 5], "classes")
    assert two.n_models == 1 and two.encode([7, 5]).tolist() == [1.0, -1.0]
    np.testing.assert_allclose(two.probabilities([0.5, -3.0]), [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(labels.probabilities([[-2.0, -2.0, -2.0]]), [[1 / 3] * 3])
    gaps = Labels.measure(np.array([0.0, 1.0, 2.0, np.nan]), "classes").encode(np.array([1.0, np.nan]))
    assert np.isnan(gaps[1]).all() and gaps[0].tolist() == [-1.0, 1.0, -1.0]
    words = Labels.measure(np.array(["x", None, "y"], dtype=object), "classes")
    assert words.classes == ("x", "y") and np.isnan(words.encode(np.array([None, "x"], dtype=object))[0])
    with pytest.raises(ValueError, match=r"y must hold only the classes \['a', 'b', 'c'\], got \['d'\]"):
        labels.encode(["d"])
    with pytest.raises(ValueError, match="only one class"):
        Labels.measure(["a", "a"], "classes")


def test_the_choice_says_why():
    X, y = stream(8)
    choice = choose(X, y)
    assert choice.task == "numbers" and choice.channel is None
    assert "the median of the first 32" in str(choice) and "1 of 3 inputs do not vary" in str(choice)
    assert choice.features.settings() == lc.RandomFeatures.automatic(X).settings()
    assert choose(X, y, n_frequencies=3).features.n_frequencies == 3
    wide = np.random.default_rng(0).normal(size=(40, 161))
    assert choose(wide).features.n_frequencies == 81 and choose(wide).features.n_direct == 161
    assert "one model each" in str(choose(X, np.tile(["a", "b", "c", "b"], (8, 1))))
    assert "nothing is sent" in str(choose(X, y, budget="silent"))
    large = choose(X, y, n_frequencies=2000)
    assert large.learner.name == "RFF-DOKL" and large.channel.quantizer.bits == 3 and "4003 x 4003" in str(large)
    for given, message in [({"budget": "much"}, "budget must be one of"), ({"task": "words"}, "task must be one of")]:
        with pytest.raises(ValueError, match=message):
            choose(X, y, **given)


@pytest.mark.parametrize("budget", ["usual", "frugal", "silent"])
def test_a_stream_is_learned_without_a_word(budget):
    X, y = stream()
    run = learn_untuned(X, y, lc.Network.ring(4), budget=budget)
    assert run.scores.r2(late=True) > 0.8 and (run.bits > 0) == (budget != "silent")
    found = {name: scores.r2() for name, scores in run.baselines.items()}
    assert list(found) == ["mean", "linear", "local", "central"]
    assert found["mean"] < found["linear"] < found["central"] and run.global_mse > 0
    assert run.messages == sum(int(trace.sent.sum()) for trace in run.traces)
    if budget == "silent":
        assert run.scores.r2() == pytest.approx(found["local"])


def test_nothing_peeks():
    """What comes later changes nothing of what was predicted before."""
    X, y = stream(40)
    whole = learn_untuned(X, y, lc.Network.ring(4))
    later = X.copy(), y.copy()
    later[0][30:], later[1][30:] = 1e3, -7.0
    other = learn_untuned(*later, lc.Network.ring(4))
    pairs = zip(whole.baselines.values(), other.baselines.values(), strict=True)
    for one, two in [(whole.scores, other.scores), *pairs]:
        assert np.array_equal(one.predictions[:30], two.predictions[:30])
    early = X.copy(), y.copy()
    early[1][6] = 1e5
    third = learn_untuned(*early, lc.Network.ring(4))
    centre = whole.choice.labels.centre - third.choice.labels.centre
    before = slice(1, 7)  # in the first round nobody knows anything
    np.testing.assert_allclose(third.scores.predictions[before] - centre, whole.scores.predictions[before], atol=1e-9)


def test_classes_of_a_stream_are_scored_by_their_share():
    X, y = stream(200)
    three = np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]
    run = learn_untuned(X, three, lc.Network.ring(4))
    found = run.scores.summary()
    assert len(run.traces) == 1 and found["accuracy_last_tenth"] > 0.8 > run.baselines["mean"].accuracy()
    guess = np.argmax(run.scores.predictions, axis=-1)[1:]
    assert found["accuracy"] == np.mean(np.array(["low", "mid", "top"])[guess] == three[1:])


def test_the_linear_baseline_is_least_squares_over_all_rows_so_far():
    X, y = stream(30)
    truth = (y - 500)[..., None]
    truth[12, 1] = np.nan
    found = online_linear(X, truth)
    kept = [0, 1]
    rows = X[:8].reshape(-1, 3)
    inputs = np.concatenate([(X[..., kept] - rows[:, kept].mean(0)) / rows[:, kept].std(0), np.ones((30, 4, 1))], -1)
    past, known = inputs[:20].reshape(-1, 3), ~np.isnan(truth[:20].ravel())
    past, labels = past[known], truth[:20].ravel()[known]
    weights = np.linalg.solve(past.T @ past + 0.1 * np.eye(3), past.T @ labels)
    np.testing.assert_allclose(found[20, :, 0], inputs[20] @ weights, rtol=1e-8)
    means = running_mean(truth, together=True)
    assert means[0, 0] == 0 and means[13, 0] == pytest.approx(np.nanmean(truth[:13]))


def test_wild_labels_and_inputs_wherever_they_come_do_not_ruin_a_model():
    X, y = stream()
    clean = learn_untuned(X, y, lc.Network.ring(4)).scores.predictions[-30:, :, 0]
    error = {}
    places = {"first": [(0, 0)], "several": [(0, 1), (3, 0), (9, 2), (10, 2), (60, 3)], "none": []}
    for name, wild in places.items():
        for what in ("label", "input"):
            inputs, labels = X.copy(), y.copy()
            for t, i in wild:
                if what == "label":
                    labels[t, i] = 1e9
                else:
                    inputs[t, i, 0] = 1e9
            run = learn_untuned(inputs, labels, lc.Network.ring(4), task="numbers")
            said = run.scores.predictions[-30:, :, 0] + run.choice.labels.centre
            error[name, what] = float(((said - y[-30:]) ** 2).mean())
    usual = error["none", "label"]
    assert np.isfinite(clean).all() and max(error.values()) < 1.5 * usual, error


@pytest.mark.parametrize("n_agents", [1, 2, 5])
def test_the_first_rounds_are_predicted_by_a_small_model_whose_bits_count(n_agents):
    rng = np.random.default_rng(4)
    X = rng.normal([5.0, 1e4], [1.0, 2e3], size=(40, n_agents, 2))
    y = 100 + 7 * X[..., 0] - X[..., 1] / 1e3
    y[1, 0] = np.nan
    run = learn_untuned(X, y, lc.Network.ring(n_agents), task="numbers")
    early = run.beginning
    if n_agents == 1:  # ten rows would come after the eighth
        assert early is None
        return
    assert early.start == {2: 5, 5: 2}[n_agents] and early.choice.features.n_features == 13
    first, means = run.scores.predictions[:8], running_mean(run.scores.truth[:8])
    assert np.array_equal(first[: early.start], means[: early.start])
    wrong, usual = (np.nanmean((part - run.scores.truth[:8])[early.start :] ** 2) for part in (first, means))
    assert wrong < usual
    said = early.run(early.choice.learner)
    assert said.n_rounds == 8 + 2 * {2: 1, 5: 2}[n_agents]  # until a wave of the larger model has come back
    for part in ("bits", "sent", "link_bits"):
        assert np.array_equal(getattr(run.traces[0], part)[:7], getattr(said, part)[:7]) and said.bits[:7].any()
    alone = lc.simulate(run.choice.learner, run.choice.features, run.network, X, run.choice.labels.encode(y))
    assert run.bits == alone.bits.sum() + said.bits[:-1].sum()  # after its last prediction it says nothing more
    assert np.isfinite(run.scores.predictions).all()


def test_labels_that_were_not_learned_as_they_are_are_counted():
    X, y = stream(100)
    clean = learn_untuned(X, y, lc.Network.ring(4))
    assert clean.held == (0, 0)
    spread = y.std()
    # The last one is far off, too, but of an agent that has seen one of seven deviations.
    y[[20, 40, 10, 90], [0, 1, 2, 2]] = y.mean() + np.array([40, 300, 7, 40]) * spread
    run = learn_untuned(X, y, lc.Network.ring(4), task="numbers")
    assert run.held == (1, 2)
    assert learn_untuned(X, np.where(y > y.mean(), "a", "b"), lc.Network.ring(4)).held == (0, 0)


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e12])
def test_the_unit_of_labels_does_not_matter(size):
    X, y = stream(60)
    run, other = (learn_untuned(X, y * factor, lc.Network.ring(4), task="numbers") for factor in (1.0, size))
    assert other.scores.r2() == pytest.approx(run.scores.r2(), abs=0.02)
    assert other.scores.mse() == pytest.approx(run.scores.mse() * size**2, rel=0.05)
    assert other.global_mse == pytest.approx(run.global_mse * size**2, rel=0.1)
    said = other.choice.labels.decode(other.scores.predictions[-20:, :, 0])
    assert np.abs(said - y[-20:] * size).mean() < np.abs(y[-20:] * size).mean()
