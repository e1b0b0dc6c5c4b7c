"""The river face: river's own checks, features that come, go and change places, and the bits of the engine."""

import importlib
import math
import pickle
import random
import sys

import numpy as np
import pytest
from river import checks, datasets, evaluate, linear_model, metrics, multiclass, preprocessing

import laconic as lc
from laconic.estimators.records import draw_column
from laconic.estimators.solo import ALONE

MODELS = {
    "regressor": lc.river.Regressor(n_frequencies=10),
    "classifier": lc.river.Classifier(n_frequencies=10),
    "regressor with ADMM": lc.river.Regressor(learner=lc.QCODKLA(rho=0.2, eta=4.0), bandwidth=2.0),
    "regressors": lc.river.Regressor(n_agents=3, n_frequencies=10),
    "classifiers": lc.river.Classifier(n_agents=2, n_frequencies=7),
    "classifier with hinge": lc.river.Classifier(learner=lc.DOKL(eta=2.0, loss="hinge"), n_frequencies=7),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_passes_every_check_of_river(model):
    names = set()
    for check in checks.yield_checks(model):
        random.seed(0)  # the checks shuffle features
        check(model.clone())
        names.add(check.__name__)
    assert {"check_learn_one", "check_emerging_features", "check_pickling", "check_shuffle_features_no_impact"} <= names
    assert not model._unit_test_skips()


def records(n=80, seed=0, names=("wind", "rain", "heat", "dust")):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(names)))
    y = 20 + np.sin(X[:, 0]) + X[:, 1]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()], y.tolist(), X


def trained(xs, ys, **options):
    model = lc.river.Regressor(**options)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("learner", [None, lc.QCODKLA(0.3, 3.0), lc.DOKL(0.3, lc.schedules.SqrtGrowth(2.0))])
def test_has_the_bits_of_simulate(learner):
    names = ("wind", "rain", "heat", "dust")
    xs, ys, X = records(names=names)
    model = lc.river.Regressor(n_frequencies=9, learner=learner, seed=3)
    predictions = []
    for x, y in zip(xs, ys, strict=True):
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    order = np.argsort(names)
    columns = [draw_column(3, names[k], 9) / np.sqrt(len(names) / 2) for k in order]
    features = lc.RandomFeatures(np.stack(columns, axis=1))
    means, mean = [], 0.0
    for k, y in enumerate(ys):
        mean += (y - mean) / (k + 1)
        means.append(mean)
    labels = np.array(ys) - means
    learner = learner or lc.Experts()
    trace = lc.simulate(learner, features, ALONE, X[:, None, order], labels[:, None])
    assert np.array_equal(predictions, [0.0, *means[:-1]] + trace.predictions[:, 0])
    assert np.array_equal(model._agent.weights, trace.weights[0])


def test_the_order_of_features_does_not_matter_at_all():
    xs, ys, _ = records()
    shuffler = random.Random(0)
    shuffled = [dict(shuffler.sample(list(x.items()), len(x))) for x in xs]
    model, other = trained(xs, ys), trained(shuffled, ys)
    assert [model.predict_one(x) for x in xs] == [other.predict_one(x) for x in reversed(shuffled)][::-1]


def test_an_absent_feature_is_a_zero():
    xs, ys, _ = records()
    absent = [{name: value for name, value in x.items() if (k + ord(name[0])) % 3} for k, x in enumerate(xs)]
    present = [dict.fromkeys(xs[0], 0.0) | x for x in absent]
    assert {len(x) for x in absent} >= {2, 3}
    assert {len(x) for x in present} == {4}
    one, other = trained(absent, ys, bandwidth=1.5), trained(present, ys, bandwidth=1.5)
    assert [one.predict_one(x) for x in absent] == [other.predict_one(x) for x in present]


def test_a_feature_may_turn_up_late_and_stay_away():
    xs, ys, _ = records(n=200)
    without = [{name: x[name] for name in ("wind", "heat")} for x in xs[:50]]
    model = trained(without, ys[:50], bandwidth=1.5)
    before = model.predict_one(without[0])
    # An unknown feature is not ignored: it has frequencies from the first moment, learned from or not.
    assert model.predict_one(without[0] | {"rain": 1.0}) != before
    assert model.predict_one(without[0] | {"rain": 0.0}) == before == model.predict_one(without[0])
    # That it was asked for changes nothing, and neither does when it turned up.
    never_asked = trained(without, ys[:50], bandwidth=1.5)
    for x, y in zip(xs[50:], ys[50:], strict=True):
        model.learn_one(x, y)
        never_asked.learn_one(x, y)
    assert [model.predict_one(x) for x in xs] == [never_asked.predict_one(x) for x in xs]
    assert math.isfinite(model.predict_one({}))


def test_learning_works_from_the_empty_record_on():
    model = lc.river.Regressor()
    model.learn_one({}, 3.0)
    model.learn_one({}, 5.0)
    assert 3.0 < model.predict_one({}) < 5.0
    model.learn_one({"a": 1.0}, 5.0)
    model.learn_one({"a": 1.0, 7: True}, 5.0)
    assert math.isfinite(model.predict_one({7: 1}))


def test_frequencies_depend_on_seed_and_name_only():
    # They must not change with the process, the platform or the version.
    pinned = [0.41833382862730506, 0.5788553331065879, -0.04073830970860854]
    np.testing.assert_allclose(draw_column(0, "speed", 3), pinned, rtol=1e-15)
    assert not np.isin(draw_column(1, "speed", 3), draw_column(0, "speed", 3)).any()
    column = np.concatenate([draw_column(0, f"feature {k}", 100) for k in range(200)])
    assert abs(column.mean()) < 0.03
    assert abs(column.std() - 1) < 0.03


def test_predictions_before_the_first_sample():
    assert lc.river.Regressor().predict_one({"a": 1.0}) == 0.0
    assert lc.river.Classifier().predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert lc.river.Classifier().predict_one({"a": 1.0}) is False


@pytest.mark.parametrize(("negative", "positive"), [(False, True), (0, 1), (-1, 1), (1, -1), ("ham", "spam"), (1, 2)])
def test_any_two_labels(negative, positive):
    xs, ys, _ = records(n=300)
    labels = [positive if y > 20 else negative for y in ys]
    model, usual = lc.river.Classifier(), lc.river.Classifier()
    for x, label in zip(xs, labels, strict=True):
        model.learn_one(x, label)
        usual.learn_one(x, label == positive)
    assert {model.predict_one(x) for x in xs} == {negative, positive}
    assert [model.predict_one(x) == positive for x in xs] == [usual.predict_one(x) for x in xs]
    for x in xs[:20]:
        assert model.predict_proba_one(x)[positive] == pytest.approx(usual.predict_proba_one(x)[True], rel=1e-12)
    model.learn_one(xs[0], "third")
    assert set(model.predict_proba_one(xs[0])) == {negative, positive, "third"}


def test_one_label_of_two_unknown_ones():
    model = lc.river.Classifier()
    model.learn_one({"a": 1.0}, "spam")
    assert model.predict_proba_one({"a": 1.0}) == {"spam": 1.0}
    assert model.predict_one({"a": 1.0}) == "spam"


def test_extreme_margins_are_still_probabilities():
    model = lc.river.Classifier(learner=lc.Local(step=1e5, loss="logistic"))
    model.learn_one({"a": 1.0}, True)
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.0, True: 1.0}


def test_a_pickle_goes_on_like_the_original():
    xs, ys, _ = records()
    model = trained(xs, ys)
    copied = pickle.loads(pickle.dumps(model))
    for x, y in zip(xs, ys, strict=True):
        assert model.predict_one(x) == copied.predict_one(x)
        model.learn_one(x, y + 1)
        copied.learn_one(x, y + 1)


def test_learns_more_than_a_linear_model():
    def error(model):
        pipeline = preprocessing.StandardScaler() | model
        return evaluate.progressive_val_score(datasets.TrumpApproval(), pipeline, metrics.MAE()).get()

    assert error(lc.river.Regressor()) < 0.6 * error(linear_model.LinearRegression())


def test_more_classes_as_they_turn_up_and_by_way_of_river():
    def accuracy(model):
        stream = list(datasets.ImageSegments())[::4]  # which come class by class
        random.Random(0).shuffle(stream)
        return evaluate.progressive_val_score(stream, preprocessing.StandardScaler() | model, metrics.Accuracy()).get()

    one = lc.river.Classifier(n_frequencies=50)
    found = accuracy(one)
    assert (
        found > 0.75 and found > accuracy(multiclass.OneVsRestClassifier(lc.river.Classifier(n_frequencies=50))) - 0.03
    )


def test_several_agents_learn_what_only_one_of_them_sees():
    rng = np.random.default_rng(0)
    team = lc.river.Regressor(n_agents=3, agent="who", n_frequencies=40)
    alone = lc.river.Regressor(n_agents=3, agent="who", n_frequencies=40, learner=lc.Local(step=0.2))
    for k in range(900):
        a = float(rng.uniform(-2, 2))
        seen = {"who": f"agent {k % 3}", "a": a if k % 3 else -abs(a)}  # the first sees one half only
        for model in (team, alone):
            model.learn_one(seen, float(np.sin(2 * seen["a"])))
    held_out = [{"who": "agent 0", "a": a} for a in np.linspace(0.2, 1.8, 20).tolist()]
    errors = [np.mean([(m.predict_one(x) - np.sin(2 * x["a"])) ** 2 for x in held_out]) for m in (team, alone)]
    assert errors[0] < 0.5 * errors[1]
    assert team.agents == ("agent 0", "agent 1", "agent 2") and 10 < team.messages < 150 < team.bits
    everybody = team.predict_one({"a": 1.0})
    assert everybody == pytest.approx(np.mean([team.predict_one({"who": w, "a": 1.0}) for w in team.agents]), rel=1e-12)
    assert everybody == team.predict_one({"who": "stranger", "a": 1.0})
    with pytest.raises(ValueError, match=r"x must name one of 3 agents \(agent 0, .* got 'stranger'"):
        team.learn_one({"who": "stranger", "a": 1.0}, 0.0)
    with pytest.raises(ValueError, match="learner must broadcast its model"):
        lc.river.Regressor(n_agents=2, learner=lc.WaveRLS()).learn_one({"agent": 0, "a": 1.0}, 0.0)


@pytest.mark.parametrize("places", [(0,), (3, 5), (100, 101, 102), (2, 50, 200)])
def test_labels_that_cannot_be_do_not_ruin_a_model(places):
    xs, ys, _ = records(n=250)
    usual = trained(xs, ys, n_frequencies=20)
    for place in places:
        ys[place] = 1e7
    troubled = trained(xs, ys, n_frequencies=20)
    truth = [20 + math.sin(x["wind"]) + x["rain"] for x in xs]
    errors = [np.mean([(m.predict_one(x) - y) ** 2 for x, y in zip(xs, truth, strict=True)]) for m in (usual, troubled)]
    if places == (3, 5):  # two of the first eight: by then nobody can say which are the wild ones
        assert errors[1] < 1e15
    else:
        assert errors[1] < 1.5 * errors[0] + 0.02


# --- what it refuses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_frequencies": 0}, "n_frequencies must be at least 1"),
        ({"bandwidth": "wide"}, "bandwidth must be 'scale' or a positive number"),
        ({"bandwidth": 0.0}, "bandwidth must be larger than 0"),
        ({"learner": "odkla"}, "learner must be a laconic learner"),
        ({"learner": lc.ODKLA(loss="logistic")}, "learner must have a loss for real labels"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_parameters_that_make_no_sense(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        lc.river.Regressor(**options)


def test_a_learner_without_kernels_learns_what_the_reference_does():
    class Own(lc.ODKLA):
        """A learner of one's own, that also hears something where nobody speaks."""

        def step(self, state, sample, heard):
            state, info = super().step(state, sample, heard)
            return state._replace(weights=state.weights + 0.1 * (heard.broadcast - state.weights)), info

        def hear(self, state, heard):
            return state._replace(duals=0.5 * state.duals + 0.01)

    learner = Own(eta=1.0, loss="logistic", channel=lc.Channel(quantizer=lc.Quantizer(3)))
    model = lc.river.Classifier(learner=learner, n_frequencies=10, bandwidth=1.0)
    X = np.random.default_rng(0).standard_normal((60, 1, 2))
    y = np.where(X[..., 0] > 0, 1.0, -1.0)
    for x, label in zip(X[:, 0], y[:, 0], strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, label > 0)
    trace = lc.simulate(learner, model._agent.features, ALONE, X, y, engine="reference")
    np.testing.assert_allclose(model._agent.weights, trace.weights[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(model._agent.state().duals, trace.state.duals, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model._agent.state().broadcast, trace.state.broadcast, rtol=0, atol=1e-12)


@pytest.mark.parametrize("value", [math.nan, math.inf, "north", None, 10**400], ids=str)
@pytest.mark.parametrize("others", [{}, {"rain": 1.0}], ids=["some features", "all features"])
def test_features_that_are_not_numbers_are_named(value, others):
    model = lc.river.Regressor()
    model.learn_one({"wind": 1.0, "rain": 2.0}, 1.0)
    before = model.predict_one({"wind": 1.0, "rain": 2.0})
    for method, arguments in ((model.learn_one, (1.0,)), (model.predict_one, ())):
        with pytest.raises(ValueError, match=r"x must map features to finite numbers, but x\['wind'\] is"):
            method({"wind": value, **others}, *arguments)
    assert model.predict_one({"wind": 1.0, "rain": 2.0}) == before


def test_features_too_large():
    model = lc.river.Regressor(bandwidth=1e-3)
    model.learn_one({"wind": 1.0}, 1.0)
    with pytest.raises(ValueError, match="too large for the feature map"):
        model.learn_one({"wind": 1e308}, 1.0)


@pytest.mark.parametrize("y", [math.nan, -math.inf, None, "ten"], ids=str)
def test_labels_that_are_not_numbers(y):
    model = lc.river.Regressor()
    with pytest.raises(ValueError, match="y must be a finite number"):
        model.learn_one({"a": 1.0}, y)
    assert model.predict_one({"a": 1.0}) == 0.0


def test_divergence_says_what_to_change():
    model = lc.river.Regressor(learner=lc.Local(step=3.0))

    def go_on():
        for k in range(100):
            model.learn_one({"a": 0.5}, float(k % 2))

    with pytest.raises(lc.Diverged, match=r"lower step. The learner is Local\(step=3") as caught:
        go_on()
    assert caught.value.round == model._agent.round + 1 > 2


def test_without_river_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "laconic.estimators.river")
    with pytest.raises(ModuleNotFoundError, match=r"lc.river needs river: pip install river, or"):
        lc.river.Regressor  # noqa: B018
    monkeypatch.undo()
    assert importlib.import_module("laconic.estimators.river").Regressor is lc.river.Regressor


@pytest.mark.parametrize("size", [20, 30, 60, 1e3, 1e7])
def test_ten_labels_of_any_size_hardly_move_a_model_of_one_stream(size):
    errors = {}
    for wild in (False, True):
        rng = np.random.default_rng(3)
        model, off = lc.river.Regressor(n_frequencies=30), []
        at = rng.choice(600, 10, replace=False)
        for k, x in enumerate(rng.standard_normal((600, 2)).tolist()):
            y = 3 * np.sin(2 * x[0]) + x[1]
            record = dict(zip("ab", x, strict=True))
            if k >= 300 and k not in at:
                off.append(model.predict_one(record) - y)
            model.learn_one(record, y + size * 2.4 * (-1) ** k if wild and k in at else y)
        errors[wild] = np.mean(np.square(off))
    assert errors[True] < 2 * errors[False] + 0.02
