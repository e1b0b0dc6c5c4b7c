"""The scikit-learn face: its checks in full, the bits of the engine behind it, and sentences for what goes wrong."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from breadth import EVERYTHING, each
from conftest import LEARNERS, make_learner
from raw_data import find_raw
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, SGDRegressor
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import laconic as lc
from laconic.estimators.dealing import Dealt, by_owner, deal, in_turn, merge
from laconic.estimators.solo import ALONE, Solo

Regressor, Classifier = lc.DecentralizedKernelRegressor, lc.DecentralizedKernelClassifier


def table(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 5.0 + 3.0 * np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def rows_of(X, y):
    return [(X[k : k + 1], y[k : k + 1]) for k in range(len(X))]


# --- scikit-learn's own checks --------------------------------------------------------------------------------------

OPTIONS = {
    "default": {} if EVERYTHING else {"n_frequencies": 20},
    "alone": {"n_agents": 1},
    "local": {"learner": lc.Local(step=0.25)},
    "diffusion": {"learner": lc.RFFDOKL(step=0.25)},
    "exact steps on a star": {"network": lc.Network.star(4), "learner": lc.DOKL(rho=0.2, eta=2.0)},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "face"), dict.fromkeys([*each(OPTIONS, [Regressor, Classifier]), ("default", Classifier)])
)
def test_passes_every_check_of_scikit_learn(options, face):
    results = check_estimator(face(**OPTIONS[options]), on_skip=None)
    assert len(results) > 40
    # The one check that may be skipped needs a variable in the environment: it runs in the next test.
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {"check_array_api_input"}


@pytest.mark.slow
def test_passes_the_check_that_needs_another_environment():
    program = """
import laconic as lc
from sklearn.utils.estimator_checks import estimator_checks_generator
for face in (lc.DecentralizedKernelRegressor, lc.DecentralizedKernelClassifier):
    for estimator, check in estimator_checks_generator(face()):
        if "array_api" in str(check):
            check(estimator)
            print("passed")
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["passed", "passed"]


# --- one row at a time: the bits of lc.simulate ---------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loss"), each(LEARNERS, ["squared", "logistic", "hinge"]))
def test_a_lone_agent_has_the_bits_of_simulate(kind, loss, features):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 1, 3)), rng.choice([-1.0, 1.0], size=(200, 1))
    y[17] = np.nan
    learner = make_learner(kind, loss)
    trace = lc.simulate(learner, features, ALONE, X, y)
    agent = Solo(learner, features)
    predictions = []
    for x, label in zip(X, y[:, 0], strict=True):
        agent.sample[:] = x
        predictions.append(agent.learn(float(label)))
    assert np.array_equal(predictions, trace.predictions[:, 0])
    assert np.array_equal(agent.weights, trace.weights[0])
    assert agent.round == trace.state.round == 200
    agent.sample[:] = X[3]
    assert agent.predict() == lc.simulate(learner, features, ALONE, X[3:4], y[3:4], state=trace.state).predictions[0, 0]


@pytest.mark.parametrize("learner", [lc.QCODKLA(0.5, lc.schedules.SqrtGrowth(2.0)), lc.Local(0.3)])
def test_partial_fit_of_single_rows_is_simulate(learner):
    X, y = table()
    model = Regressor(n_agents=1, n_frequencies=13, learner=learner, random_state=0).partial_fit(X[:20], y[:20])
    for row, label in rows_of(X[20:], y[20:]):
        model.partial_fit(row, label)
    assert model._shortcut is not None  # the short way was the one taken
    labels = (y - model.center_) / model.scale_
    trace = lc.simulate(model.learner_, model.features_, ALONE, X[:, None], labels[:, None])
    assert np.array_equal(model.weights_, trace.weights)
    assert model.state_.round == 60
    assert model.bits_ == model.messages_ == 0  # nobody to speak to

    # Going on with a batch, and with single rows again, changes nothing about that.
    model.partial_fit(X[:7], y[:7]).partial_fit(X[7:8], y[7:8]).partial_fit(X[8:9], y[8:9])
    more = lc.simulate(model.learner_, model.features_, ALONE, X[:9, None], labels[:9, None], state=trace.state)
    assert np.array_equal(model.weights_, more.weights)


def test_single_rows_of_a_classifier_are_simulate_too():
    X, y = table()
    names = np.where(y > 5, "high", "low")
    learner = lc.QCODKLA(0.1, 0.5, loss="logistic")
    model = Classifier(n_agents=1, n_frequencies=13, bandwidth=1.0, learner=learner, random_state=0)
    for k, (row, label) in enumerate(rows_of(X, names)):
        model.partial_fit(row, label, **({"classes": ["high", "low"]} if k == 0 else {}))
    signs = np.where(names == "low", 1.0, -1.0)
    trace = lc.simulate(model.learner_, model.features_, ALONE, X[:, None], signs[:, None])
    assert np.array_equal(model.weights_, trace.weights)


def test_a_row_of_another_kind_goes_the_long_way_to_the_same_place():
    X, y = table()
    plain = Regressor(n_agents=1, random_state=0).partial_fit(X[:5], y[:5])
    other = Regressor(n_agents=1, random_state=0).partial_fit(X[:5], y[:5])
    for row, label in rows_of(X[5:], y[5:]):
        plain.partial_fit(row, label)
        other.partial_fit(row.tolist(), label.tolist())
    assert np.array_equal(plain.weights_, other.weights_)


def test_the_short_way_refuses_what_the_long_way_refuses():
    X, y = table()
    model = Regressor(n_agents=1, bandwidth=1.0, learner=lc.Local(0.3), random_state=0)
    model.partial_fit(X[:5], y[:5]).partial_fit(X[5:6], y[5:6])
    before = model.weights_
    for row, label, sentence in [
        (np.array([[0.0, np.nan, 0.0]]), y[:1], "Input X contains NaN"),
        (np.array([[0.0, np.inf, 0.0]]), y[:1], "Input X contains infinity"),
        (np.full((1, 3), 1e308), y[:1], "finite numbers"),
        (X[:1], np.array([np.nan]), "Input y contains NaN"),
        (X[:1, :2], y[:1], "X has 2 features"),
        (X[0], y[:1], "Expected 2D array"),
        (X[:1], y[:2], "inconsistent numbers of samples"),
        (X[:1], np.array(["one"]), "could not convert"),
    ]:
        assert model._shortcut is not None
        with pytest.raises(ValueError, match=sentence):
            model.partial_fit(row, label)
    assert np.array_equal(model.weights_, before)


# --- dealing, passes, going on --------------------------------------------------------------------------------------


def test_rows_stay_with_their_agents():
    X, y = np.arange(7.0)[:, None], np.arange(7.0)
    samples, labels = deal(X, y, 3)
    assert np.array_equal(labels, [[0, 1, 2], [3, 4, 5], [6, np.nan, np.nan]], equal_nan=True)
    dealt = in_turn(7, 3)
    orders = []
    for part in dealt.passes(4, np.random.default_rng(0)):
        samples, labels = part.take(X), part.take(y, np.nan)
        for agent in range(3):
            own = labels[~np.isnan(labels[:, agent]), agent]
            assert sorted(own) == [k for k in range(7) if k % 3 == agent]
        seen = ~np.isnan(labels)
        assert np.array_equal(samples[..., 0][seen], labels[seen])
        orders.append(tuple(labels[:, 0]))
    assert len(set(orders)) > 1


def test_fit_is_simulate_over_the_passes():
    X, y = table(n=32)
    learner = lc.ODKLA(0.2, 2.0)
    options = {"n_agents": 3, "n_frequencies": 9, "n_passes": 2, "bandwidth": "scale", "random_state": 5}
    model = Regressor(learner=learner, **options).fit(X, y)
    random = np.random.RandomState(5)
    seed, order = random.randint(2**31 - 1), random.randint(2**31 - 1)
    assert model.bandwidth_ == pytest.approx(np.sqrt(3 * X.var() / 2))
    features = lc.RandomFeatures.gaussian(3, 9, model.bandwidth_, int(seed))
    rows, draw = merge(X, y, None, None), np.random.default_rng(order)
    turn, mixed = in_turn(32, 3).rows, draw.permutation(32)
    dealt = Dealt(np.where(turn >= 0, mixed[turn], -1))
    labels = (rows.labels - y.mean()) / y.std()
    blocks = [(part.take(rows.X), part.take(labels, np.nan)) for part in dealt.passes(2, draw)]
    trace = lc.simulate(learner, features, lc.Network.ring(3), blocks)
    np.testing.assert_allclose(model.weights_, trace.weights, rtol=1e-12)
    assert model.messages_ == 3 * 11 * 2
    assert model.bits_ == model.messages_ * 32 * 18
    expected = y.mean() + y.std() * (features(X) @ trace.weights.mean(axis=0))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)


def test_partial_fit_goes_on_where_fit_stopped():
    X, y = table(n=30)
    model = Regressor(n_agents=3, n_frequencies=9, learner=lc.QCODKLA(0.2, 2.0), random_state=0).fit(X, y)
    state, bits = model.state_, model.bits_
    more_X, more_y = table(n=8, seed=1)
    model.partial_fit(more_X, more_y)
    block = deal(more_X, (more_y - model.center_) / model.scale_, 3)
    trace = lc.simulate(model.learner_, model.features_, model.network_, *block, state=state)
    assert np.array_equal(model.weights_, trace.weights)
    assert model.bits_ == bits + trace.bits.sum()
    assert (model.center_, model.scale_) == (y.mean(), y.std())


def test_batches_take_turns():
    X, y = table(n=24)
    options = {"n_agents": 4, "n_frequencies": 9, "learner": lc.ODKLA(0.2, 2.0), "random_state": 0, "bandwidth": 1.0}
    whole = Regressor(**options).partial_fit(X[:12], y[:12]).partial_fit(X[12:], y[12:])
    parts = Regressor(**options).partial_fit(X[:12], y[:12]).partial_fit(X[12:20], y[12:20]).partial_fit(X[20:], y[20:])
    assert np.array_equal(whole.weights_, parts.weights_)
    # Two rows at a time: agents 0 and 1, then 2 and 3, so that nobody is left out.
    pairs = Regressor(**options)
    for start in range(0, 8, 2):
        pairs.partial_fit(X[start : start + 2], y[start : start + 2])
    labels = np.full((4, 4), np.nan)
    samples = np.zeros((4, 4, 3))
    for start in range(0, 8, 2):
        agents = [start % 4, start % 4 + 1]
        samples[start // 2, agents] = X[start : start + 2]
        labels[start // 2, agents] = (y[start : start + 2] - pairs.center_) / pairs.scale_
    trace = lc.simulate(pairs.learner_, pairs.features_, pairs.network_, samples, labels)
    assert np.array_equal(pairs.weights_, trace.weights)


def test_a_batch_is_learned_whole_or_not_at_all():
    X, y = table(n=40)
    learner = lc.ODKLA(rho=0.0, eta=0.3)
    model = Regressor(n_agents=2, learner=learner, bandwidth="scale", random_state=0).partial_fit(X[:4], y[:4])
    before = model.weights_
    with pytest.raises(lc.Diverged, match="raise eta") as caught:
        model.partial_fit(np.repeat(X, 30, axis=0), np.repeat(y, 30))
    assert "smaller steps" in caught.value.__notes__[0]
    assert np.array_equal(model.weights_, before)
    with pytest.raises(lc.Diverged):
        Regressor(n_agents=2, learner=learner, bandwidth="scale", random_state=0, n_passes=100).fit(X, y)
    alone = Regressor(n_agents=1, learner=learner, bandwidth="scale", random_state=0).partial_fit(X[:2], y[:2])

    def go_on():
        for _ in range(200):
            alone.partial_fit(X[:1], y[:1])

    with pytest.raises(lc.Diverged, match="too small for this data, .* raise eta") as caught:
        go_on()
    assert caught.value.trace.n_rounds == 0
    assert caught.value.round == alone.state_.round + 1


def test_a_model_that_overflows_at_once_is_noticed_at_once(features):
    learner = lc.Local(step=1e200)
    agent = Solo(learner, features)
    for run in (
        lambda: agent.learn(1e200),
        lambda: lc.simulate(learner, features, ALONE, np.zeros((1, 1, 3)), np.full((1, 1), 1e200)),
    ):
        with pytest.raises(lc.Diverged) as caught:
            run()
        assert caught.value.round == 1


@pytest.mark.parametrize(
    ("wrong", "error"), [({"learner": lc.Local(step=50.0)}, lc.Diverged), ({"n_passes": 0}, ValueError)]
)
def test_a_fit_that_fails_leaves_nothing_fitted(wrong, error):
    X, y = table()
    model = Regressor(random_state=0).fit(X, y)
    with pytest.raises(error):
        model.set_params(**wrong).fit(X, 2 * y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# --- copies, names, reproducibility ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_agents", [1, 4])
@pytest.mark.parametrize("face", [Regressor, Classifier])
def test_a_pickle_goes_on_like_the_original(face, n_agents):
    X, y = table()
    y = y if face is Regressor else (y > 5).astype(int)
    model = face(n_agents=n_agents, random_state=0).fit(X, y)
    model.partial_fit(X[:1], y[:1]).partial_fit(X[1:2], y[1:2])
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.predict(X), model.predict(X))
    for row, label in rows_of(X[:10], y[:10]):
        model.partial_fit(row, label)
        copied.partial_fit(row, label)
    assert np.array_equal(copied.weights_, model.weights_)
    assert copied.bits_ == model.bits_


def test_a_clone_has_the_parameters_and_nothing_else():
    X, y = table()
    model = Regressor(network=lc.Network.star(3), learner=lc.DOKL(0.2, 2.0), bandwidth=0.7, random_state=3).fit(X, y)
    fresh = clone(model)
    assert fresh.network == model.network
    assert repr(fresh.learner) == repr(model.learner)
    assert (fresh.bandwidth, fresh.random_state) == (0.7, 3)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert np.array_equal(fresh.fit(X, y).predict(X), model.predict(X))


def test_random_state_decides():
    X, y = table()
    one, same, other = (Regressor(random_state=seed).fit(X, y).predict(X) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_column_names_are_kept_and_compared():
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = Regressor(n_agents=1, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    model.partial_fit(frame[:1], y[:1]).partial_fit(frame[1:2], y[1:2])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[["b", "a", "c"]][:1], y[:1])


# --- what it learns -------------------------------------------------------------------------------------------------


def test_the_unit_of_the_labels_does_not_matter():
    X, y = table(n=200)
    model, scaled = (Regressor(random_state=0).fit(X, label) for label in (y, 1000 * y - 7))
    assert model.messages_ == scaled.messages_
    np.testing.assert_allclose(scaled.predict(X), 1000 * model.predict(X) - 7, rtol=1e-6)


def test_constant_labels_are_predicted():
    X, _ = table()
    np.testing.assert_allclose(Regressor().fit(X, np.full(60, 7.5)).predict(X), 7.5)


@pytest.mark.slow
@pytest.mark.parametrize("n_agents", [1, 5, 20])
def test_regression_out_of_the_box_beats_stochastic_gradients(n_agents):
    X, y = make_friedman1(4000, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)
    ours = Regressor(n_agents=n_agents, random_state=0).fit(X, y).score(X_test, y_test)
    usual = make_pipeline(RBFSampler(gamma="scale", n_components=200, random_state=0), SGDRegressor(random_state=0))
    assert ours > 0.75
    assert ours > usual.fit(X, y).score(X_test, y_test)


@pytest.mark.data
def test_real_data_when_it_is_there():
    rows = np.loadtxt(find_raw("Folds5x2_pp.csv"), delimiter=",", skiprows=1)
    X, X_test, y, y_test = train_test_split(rows[:, :-1], rows[:, -1], random_state=0)
    model = make_pipeline(StandardScaler(), Regressor(random_state=0)).fit(X, y)
    assert model.score(X_test, y_test) > 0.935


def test_a_part_of_a_pipeline_and_of_a_search():
    X, y = table(n=120)
    pipeline = make_pipeline(StandardScaler(), Regressor(random_state=0, n_passes=3))
    search = GridSearchCV(pipeline, {"decentralizedkernelregressor__bandwidth": ["scale", 0.05]}, cv=2).fit(X, y)
    assert search.best_params_ == {"decentralizedkernelregressor__bandwidth": "scale"}


def test_a_learner_of_ones_own_runs_too():
    class Own(lc.ODKLA):
        """No kernels for it, so the reference engine runs it."""

    X, y = table()
    for n_agents in (1, 3):
        options = {"n_agents": n_agents, "n_passes": 2, "random_state": 0}
        own = Regressor(learner=Own(0.2, 2.0), **options).fit(X, y).partial_fit(X[:1], y[:1])
        compiled = Regressor(learner=lc.ODKLA(0.2, 2.0), **options).fit(X, y).partial_fit(X[:1], y[:1])
        np.testing.assert_allclose(own.weights_, compiled.weights_, rtol=1e-9, atol=1e-12)


def test_classification_of_any_two_labels():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    numbers = Classifier(random_state=0).fit(X, y)
    assert numbers.score(X, y) > 0.94
    words = Classifier(random_state=0).fit(X, np.where(y == 1, "benign", "a worry"))
    assert words.classes_.tolist() == ["a worry", "benign"]
    assert np.array_equal(words.decision_function(X), numbers.decision_function(X))
    assert np.array_equal(words.predict(X) == "benign", numbers.predict(X) == 1)
    np.testing.assert_allclose(numbers.predict_proba(X).sum(axis=1), 1)
    assert np.array_equal(numbers.predict_proba(X)[:, 1] > 0.5, numbers.predict(X) == 1)


def test_probabilities_only_where_the_loss_has_them():
    assert hasattr(Classifier(), "predict_proba")
    assert not hasattr(Classifier(learner=lc.ODKLA(loss="hinge")), "predict_proba")


def test_many_classes_have_a_model_each():
    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    model = Classifier(random_state=0).fit(X, words)
    assert model.score(X, words) > 0.95
    assert model.coef_.shape == (3, model.features_.n_features) and model.weights_.shape[:2] == (3, 5)
    shares = model.predict_proba(X)
    assert shares.shape == (150, 3) and (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    one = Classifier(random_state=0).fit(X, words == "virginica")  # against all others: the third of the models
    np.testing.assert_allclose(model.decision_function(X)[:, 2], one.decision_function(X), atol=0.2)
    assert (model.model_.predict(X) == model.predict(X)).all()


@pytest.mark.slow
def test_digits_are_as_well_told_apart_as_by_a_linear_model():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).score(X_test, y_test)
    assert Classifier(random_state=0).fit(X, y).score(X_test, y_test) > linear - 0.01


# --- whose the rows are, and how much they count ----------------------------------------------------------------------


def test_rows_belong_to_the_agents_that_are_named():
    X, y = table(n=90)
    names = np.array(["north", "south", "west"])[np.r_[np.zeros(60, int), np.ones(20, int), np.full(10, 2)]]
    model = Regressor(n_frequencies=20, random_state=0).fit(X, y, agents=names)
    assert model.agents_.tolist() == ["north", "south", "west"] and model.network_.n_agents == 3
    assert model.score(X, y) > 0.8
    dealt = by_owner(np.array([0, 1, 0, 0]), 2)
    assert dealt.rows.tolist() == [[0, 1], [2, -1], [3, -1]]
    model.partial_fit(X[:2], y[:2], agents=["west", "north"])
    with pytest.raises(ValueError, match="agents must be those that were there at first, got 'east'"):
        model.partial_fit(X[:1], y[:1], agents=["east"])
    with pytest.raises(ValueError, match="agents must name an agent for each of the 90 rows"):
        Regressor().fit(X, y, agents=["a"])
    with pytest.raises(ValueError, match="n_agents is 3 but network has 4"):
        Regressor(network=lc.Network.ring(4)).fit(X, y, agents=names)


def test_a_row_of_weight_three_is_a_row_three_times():
    X, y = table(n=40)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    for options in ({}, {"learner": lc.Local(0.25)}, {"learner": lc.ODKLA(0.2, 2.0), "bandwidth": 1.0}):
        weighted = Regressor(n_frequencies=9, random_state=0, **options).fit(X, y, sample_weight=weights)
        repeated = Regressor(n_frequencies=9, random_state=0, **options)
        repeated.fit(np.repeat(X, weights, axis=0)[::-1], np.repeat(y, weights)[::-1])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    merged = merge(np.array([[1.0], [2.0], [1.0]]), np.array([5.0, 6.0, 5.0]), None, np.array([0.5, 1.0, 2.0]))
    assert merged.X.tolist() == [[1.0], [2.0]] and merged.weights.tolist() == [2.5, 1.0]
    with pytest.raises(ValueError, match="at least one non-zero|not be zero everywhere"):
        Regressor().fit(X, y, sample_weight=np.zeros(40))


def test_fractions_of_a_row_move_the_model_towards_it():
    X = np.zeros((40, 1))
    y = np.tile([0.0, 1.0], 20)
    for options in ({}, {"learner": lc.Local(0.05)}):
        model = Regressor(random_state=0, bandwidth=1.0, **options)
        model.fit(X + np.arange(40)[:, None] * 1e-9, y, sample_weight=np.tile([0.5, 1.5], 20))
        assert 0.65 < model.predict([[0.0]])[0] < 0.85  # 0.75 is the weighted mean


def test_before_the_first_rows_are_there_the_mean_is_predicted():
    X, y = table(n=60)
    model = Regressor(n_agents=2, n_frequencies=9, random_state=0).partial_fit(X[:5], y[:5])
    np.testing.assert_allclose(model.predict(X[:3]), y[:5].mean())
    with pytest.raises(AttributeError, match="no model before the first rows"):
        model.state_  # noqa: B018
    model.partial_fit(X[5:40], y[5:40]).partial_fit(X[40:], y[40:])
    assert model.state_.round == 30 and model.score(X, y) > 0.5
    names = np.where(y > 5, "high", "low")
    some = Classifier(random_state=0).partial_fit(X[:3], names[:3], classes=["high", "low", "none"])
    assert set(some.predict(X)) == {"high" if (names[:3] == "high").sum() > 1 else "low"}


def test_one_wild_label_does_not_ruin_the_scale():
    X, y = table(n=200)
    y[17] = 1e7
    model = Regressor(random_state=0).fit(X, y)
    assert abs(model.center_ - 5) < 1 and model.scale_ < 10


# --- what it refuses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_agents": 0}, "n_agents must be at least 1"),
        ({"n_agents": 2.5}, "n_agents must be a whole number"),
        ({"network": "ring"}, "network must be a laconic Network"),
        ({"network": lc.Network.ring(4), "n_agents": 5}, "n_agents is 5 but network has 4"),
        ({"n_frequencies": 0}, "n_frequencies must be at least 1"),
        ({"bandwidth": "auto"}, "bandwidth must be 'automatic', 'scale' or a positive number"),
        ({"bandwidth": -1.0}, "bandwidth must be larger than 0"),
        ({"learner": "odkla"}, "learner must be a laconic learner"),
        ({"learner": lc.ODKLA(loss="hinge")}, "learner must have a loss for real labels"),
        ({"n_passes": 0}, "n_passes must be at least 1"),
    ],
)
def test_parameters_that_make_no_sense(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Regressor(**options).fit(*table())


def test_inputs_too_large_for_the_feature_map():
    X, y = table()
    model = Regressor(bandwidth=1e-3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="too large for the feature map"):
        model.predict(np.full((1, 3), 1e307))


def test_classes_are_named_first_and_stay():
    X, y = table()
    y = (y > 5).astype(int)
    model = Classifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed in the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must be two labels or more"):
        model.partial_fit(X, y, classes=[0])
    with pytest.raises(ValueError, match=r"y must hold only the classes \[3, 4\]"):
        model.partial_fit(X, y, classes=[3, 4])
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    model.partial_fit(X[:1], y[:1], classes=[1, 0])
    with pytest.raises(ValueError, match=r"classes must stay \[0, 1\]"):
        model.partial_fit(X[:1], y[:1], classes=[1, 2])
    with pytest.raises(ValueError, match=r"y must hold only the classes \[0, 1\], got \[7\]"):
        model.partial_fit(X[:1], np.array([7]))
    with pytest.raises(ValueError, match="only one class"):
        Classifier().fit(X, np.zeros(60))


def test_a_lone_classifier_refuses_a_third_label():
    X, _ = table()
    model = Classifier(n_agents=1, bandwidth=1.0, learner=lc.Local(1.0, loss="logistic"), random_state=0)
    model.partial_fit(X[:1], np.array([0]), classes=[0, 1])
    assert model._shortcut is not None
    with pytest.raises(ValueError, match="y must hold only the classes"):
        model.partial_fit(X[:1], np.array([2]))


@pytest.mark.parametrize("size", [20, 60, 1e7])
def test_labels_that_cannot_be_are_left_out_of_a_table_and_of_what_comes_after(size):
    rng = np.random.default_rng(4)
    X, others = rng.standard_normal((2, 600, 2))
    y, truth = (3 * np.sin(2 * part[:, 0]) + part[:, 1] for part in (X, others))
    y[rng.choice(600, 10, replace=False)] = size * y.std()
    model = lc.DecentralizedKernelRegressor(n_frequencies=50, random_state=0).fit(X, y)
    assert model.score(others, truth) > 0.95
    model.partial_fit(others[:50], np.where(np.arange(50) == 20, size * y.std(), truth[:50]))
    assert model.score(others, truth) > 0.9


def test_a_heavy_tail_is_learned_as_it_is():
    rng = np.random.default_rng(16)
    X = np.exp(1.5 * rng.standard_normal((2000, 2)))
    y = X @ [1.0, 0.5] + 0.1 * rng.standard_normal(2000)
    model = lc.DecentralizedKernelRegressor(random_state=0).fit(X[:1500], y[:1500])
    assert np.abs(y - np.median(y)).max() > 25 * model.scale_
    assert model.score(X[1500:], y[1500:]) > 0.99


def test_weights_that_add_up_to_one_are_as_good_as_others():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 2))
    y, weights = 3 * np.sin(2 * X[:, 0]) + X[:, 1], rng.exponential(size=300)
    by_sum, by_mean = (
        lc.DecentralizedKernelRegressor(n_frequencies=40, random_state=0).fit(X, y, sample_weight=weights / total)
        for total in (weights.sum(), weights.mean())
    )
    assert by_mean.score(X, y) > 0.9
    np.testing.assert_allclose(by_sum.predict(X), by_mean.predict(X), rtol=1e-6, atol=1e-6)
