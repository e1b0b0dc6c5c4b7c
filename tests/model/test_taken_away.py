"""Models: they predict what the agents, estimators and runs that they come from would."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from model_kit import every_part, forms

import laconic as lc
from laconic.model import FeatureMap
from laconic.model.stages import Constant, Linear, Scale, Waves


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def stream(rng, n_rounds=80, n_agents=4):
    X = rng.uniform(size=(n_rounds, n_agents, 3))
    return X, np.sin(4 * X[..., 0]) + X[..., 1]


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern"])
def test_a_trace_s_model_predicts_what_its_agents_predict_next(kernel, rng):
    features = getattr(lc.RandomFeatures, kernel)(3, 12, bandwidth=0.8, seed=2)
    network = lc.Network.ring(4)
    X, y = stream(rng)
    learner = lc.QCODKLA(rho=0.3, eta=1.0)
    trace = lc.simulate(learner, features, network, X[:-1], y[:-1])
    following = lc.simulate(learner, features, network, X[-1:], y[-1:], state=trace.state)
    each = [trace.model(k).predict(X[-1, k]) for k in range(4)]
    np.testing.assert_allclose(each, following.predictions[0], rtol=0, atol=1e-12)
    mean = np.mean([trace.model(k).predict(X[-1]) for k in range(4)], axis=0)
    np.testing.assert_allclose(trace.model().predict(X[-1]), mean, rtol=0, atol=1e-13)
    assert trace.model(2).about["agent"] == 2 and trace.model().about["rounds"] == 79


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("n_frequencies", [1, 12])
def test_maps_for_raw_inputs_are_described(linear, n_frequencies, rng):
    """One frequency is too few for a linear block of three inputs."""
    X = rng.normal([20.0, 1e5, 7.0, -3.0], [5.0, 2e4, 0.0, 0.1], size=(40, 4))
    for first in (X, X[:1]):  # of a single row no column varies
        features = lc.RandomFeatures.automatic(first, n_frequencies, seed=1, linear=linear)
        described = FeatureMap.of(features)
        assert described.n_features == features.n_features
        far = X * np.array([1.0, -3.0, 1.0, 100.0])
        np.testing.assert_allclose(described(far), features(far), rtol=0, atol=1e-12)


def test_a_model_is_the_formula_that_it_says(rng):
    feature_map, weights = every_part(rng)
    model = lc.Model(feature_map, weights, centre=3.0, scale=2.0)
    x = np.array([0.4, -7.0, 1.5, -30.0])
    scale, (waves, linear, _) = feature_map.stages[0], feature_map.blocks
    u = [(x[0] - scale.centre[0]) / 1.0, 0.0, (x[3] - scale.centre[2]) / 2.0]
    v = [np.log(one + np.sqrt(one * one + 1)) for one in u] + u
    phi = [np.cos(sum(w * part for w, part in zip(row, v, strict=True))) / np.sqrt(20) for row in waves.frequencies]
    phi += [np.sin(sum(w * part for w, part in zip(row, v, strict=True))) / np.sqrt(20) for row in waves.frequencies]
    phi += [max(-5.0, min(5.0, one)) / np.sqrt(3) for one in u] + [1.0]
    assert max(abs(one) for one in u) > linear.limit  # the limit matters here
    expected = 3.0 + 2.0 * sum(w * part for w, part in zip(weights, phi, strict=True))
    assert float(model.predict(x)) == pytest.approx(expected, abs=1e-12)


def test_inputs_may_be_scaled_before_any_map(rng):
    plain = FeatureMap.of(lc.RandomFeatures.gaussian(3, 5, seed=0))
    raw = rng.normal(10.0, 3.0, size=(6, 3))
    low, span = np.array([10.0, 9.0, 11.0]), np.array([2.0, 0.0, 4.0])
    scaled = np.column_stack([(raw[:, 0] - 10) / 2, np.zeros(6), (raw[:, 2] - 11) / 4])
    np.testing.assert_allclose(plain.after(low, span)(raw), plain(scaled), rtol=0, atol=1e-15)


def test_many_rows_and_axes(rng, monkeypatch):
    model = forms(rng)["parts"]
    X = rng.normal(size=(7, 3, 4))
    whole = model.predict(X)
    assert whole.shape == (7, 3) and model.predict(X[0, 0]).shape == ()
    monkeypatch.setattr("laconic.model.model._NUMBERS_AT_A_TIME", 100)  # two rows at a time
    np.testing.assert_allclose(model.predict(X), whole, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n_agents", [1, 3])
def test_estimators_give_their_model_away(n_agents, rng):
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["warm", "damp"])
    y = 300 + 20 * np.sin(X["warm"]) * X["damp"]
    fitted = lc.DecentralizedKernelRegressor(n_agents=n_agents, n_passes=1, random_state=0).fit(X, y)
    model = fitted.model_
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=0, atol=1e-9)
    assert model.inputs == ("warm", "damp") and model.about["bits"] == fitted.bits_
    words = np.where(y > 300, "big", "small")
    sorter = lc.DecentralizedKernelClassifier(n_agents=n_agents, n_passes=1, random_state=0).fit(X, words)
    model = lc.Model.from_bytes(sorter.model_.to_bytes())
    assert (model.predict(X) == sorter.predict(X)).all() and model.classes == ("big", "small")
    np.testing.assert_allclose(model.decision(X), sorter.decision_function(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), sorter.predict_proba(X), rtol=0, atol=1e-12)


def test_an_agent_gives_its_model_away(rng):
    features = lc.RandomFeatures.gaussian(2, 10, seed=0)
    agent = lc.Agent("ann", [], features, lc.Local(step=0.5, loss="logistic"), n_agents=1)
    for x in rng.normal(size=(20, 2)):
        agent.learn(x, 1.0 if x[0] > 0 else -1.0)
    model = agent.model()
    x = np.array([0.3, -0.2])
    assert float(model.decision(x)) == pytest.approx(agent.predict(x), abs=1e-12)
    assert model.classes == (-1, 1) and model.about["agent"] == "ann" and model.about["round"] == 20
    agent.learn(x, -1.0)
    assert float(model.decision(x)) != agent.predict(x)  # a copy, not a view


def test_what_a_trace_is_told_of_its_data_is_in_its_models(rng, tmp_path):
    import dataclasses

    X, y = stream(rng)
    trace = lc.simulate(lc.Local(), lc.RandomFeatures.gaussian(3, 5), lc.Network.ring(4), X, y)
    data = {"inputs": ["a", "b", "c"], "target": "rent", "centre": 100.0, "scale": 50.0}
    told = dataclasses.replace(
        trace, about={**trace.about, "data": data}, feature_map=trace.feature_map.after(1.0, 2.0)
    )
    again = lc.Trace.load(told.save(tmp_path / "trace.npz"))
    model = again.model(1)
    assert (model.inputs, model.target, model.centre, model.scale) == (("a", "b", "c"), "rent", 100.0, 50.0)
    expected = 100 + 50 * trace.model(1).predict((X[0] - 1) / 2)
    np.testing.assert_allclose(model.predict(X[0]), expected, rtol=0, atol=1e-10)
    spoiled = dataclasses.replace(trace, about={**trace.about, "data": {"classes": 3}})
    with pytest.raises(ValueError, match="classes must be a list of labels, got 3"):
        spoiled.model()
    with pytest.raises(ValueError, match="no model can be made"):
        dataclasses.replace(trace, feature_map=None).model()
    with pytest.raises(ValueError, match="agent must be from 0 to 3, got 4"):
        trace.model(4)
    with pytest.raises(ValueError, match="agent must be one of 'mean', got 'best'"):
        trace.model("best")


def test_several_outputs_of_a_run_are_columns_of_its_model(rng):
    """Learners keep a row for each output, (N, K, D)."""
    import dataclasses

    X, y = stream(rng, n_rounds=3)
    features = lc.RandomFeatures.gaussian(3, 8, seed=0)
    trace = lc.simulate(lc.Local(), features, lc.Network.ring(4), X, y, engine="reference")
    rows = rng.normal(size=(4, 2, 16))
    several = dataclasses.replace(trace, state=lc.State(3, {"weights": rows}, rows))
    np.testing.assert_allclose(several.model(1).predict(X[0]), features(X[0]) @ rows[1].T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(several.model().predict(X[0]), features(X[0]) @ rows.mean(axis=0).T, rtol=0, atol=1e-12)


def test_several_outputs_are_an_axis_more(rng):
    models = forms(rng)
    X = rng.normal(size=(5, 4))
    assert models["outputs"].predict(X).shape == (5, 3)
    classes = models["classes"]
    assert classes.decision(X).shape == (5, 4) and classes.predict(X).shape == (5,)
    shares = classes.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert [classes.classes[k] for k in shares.argmax(axis=1)] == classes.predict(X).tolist()
    far = lc.Model(FeatureMap(1, (), (Constant(),)), [[-800.0, -900.0]], loss="logistic", classes=["a", "b"])
    assert far.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]  # both are as unlikely as numbers go


def test_columns_are_found_by_name(rng):
    feature_map = FeatureMap.of(lc.RandomFeatures.gaussian(2, 5))
    model = lc.Model(feature_map, rng.normal(size=10), inputs=["warm", "damp"])
    table = {"damp": [1.0, 2.0], "other": ["x", "y"], "warm": [3.0, 4.0]}
    expected = model.predict([[3.0, 1.0], [4.0, 2.0]])
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        assert (model.predict(frame) == expected).all()
        with pytest.raises(ValueError, match="X must have a column 'damp'; its columns are other, warm"):
            model.predict(frame[["other", "warm"]])


def test_wrong_arguments_get_a_sentence(rng):
    feature_map = FeatureMap.of(lc.RandomFeatures.gaussian(2, 5))
    model = lc.Model(feature_map, np.ones(10))
    for call, sentence in (
        (lambda: model.predict([1.0, 2.0, 3.0]), r"X must have shape \(..., 2\), got \(3,\)"),
        (lambda: model.predict([[1.0, np.nan]]), r"X must be finite, but X\[0, 1\] is nan"),
        (lambda: model.predict(3.0), r"X must have shape"),
        (lambda: model.predict_proba([1.0, 2.0]), "there are no classes"),
        (lambda: lc.Model(feature_map, np.ones(10), loss="hinge").predict_proba([1.0, 2.0]), "logistic or squared"),
        (lambda: lc.Model(feature_map, np.ones(9)), r"weights must have shape \(10,\) or \(10, n\), got \(9,\)"),
        (lambda: lc.Model(feature_map, np.full(10, np.inf)), "weights must be finite"),
        (lambda: lc.Model(feature_map, np.ones(10), classes=["a"]), "classes must be 2, got 1"),
        (lambda: lc.Model(feature_map, np.ones(10), classes=["a", 1]), "classes must be different words"),
        (lambda: lc.Model(feature_map, np.ones((10, 3)), classes=[1, 2, 2]), "classes must be different words"),
        (lambda: lc.Model(feature_map, np.ones(10), classes=[0, 1], scale=2.0), "classes are for labels"),
        (lambda: lc.Model(feature_map, np.ones(10), inputs=["a", "a"]), "inputs must be 2 different names"),
        (lambda: lc.Model(feature_map, np.ones(10), inputs="ab"), "inputs must be a list of names"),
        (lambda: lc.Model("map", np.ones(10)), "feature_map must be a laconic.model.FeatureMap"),
        (lambda: FeatureMap(2, (), ()), "blocks must be at least one"),
        (lambda: FeatureMap(3, (), (Waves(np.ones((4, 2))),)), "frequencies must have 3 columns, got 2"),
        (lambda: FeatureMap(1, (Scale(np.array([1]), [0.0], [1.0]),), (Constant(),)), "indices below 1, got 1"),
        (lambda: FeatureMap(1, (), (Linear(1, 5.0, 1.0),)), "first must be below 1"),
        (lambda: model.to_c("9lives"), "name must be made of letters"),
        (lambda: model.to_onnx("float16"), "dtype must be one of 'float64', 'float32'"),
        (lambda: lc.Model(feature_map, np.ones(10), about={"x": {1, 2}}).to_bytes(), "about must hold plain"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


THIN = """
import sys, numpy as np
for name in ("scipy", "sklearn", "polars", "networkx", "onnx", "zenoh"):
    sys.modules[name] = None
import laconic as lc, json
model = lc.Model.load(sys.argv[1])
print(json.dumps(model.predict(np.array(json.loads(sys.argv[2]))).tolist()))
"""


def test_a_model_is_used_in_another_process_with_numpy_alone(rng, tmp_path):
    model = forms(rng)["parts"]
    X = rng.normal(size=(4, 4))
    path = model.save(tmp_path / "model.npz")
    command = [sys.executable, "-c", THIN, str(path), json.dumps(X.tolist())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == model.predict(X).tolist()
