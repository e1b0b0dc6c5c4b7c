"""Bad input gets one clear sentence and loses nothing."""

import numpy as np
import pytest
from conftest import NETWORKS, make_learner, make_stream

import laconic as lc

ENGINES = pytest.mark.parametrize("engine", ["reference", "compiled"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[0], y), r"X must have shape \(T, n_agents, n_inputs\)"),
        (lambda X, y: (X, y[0]), r"y must have shape \(T, n_agents\)"),
        (lambda X, y: (X[:, :5], y[:, :5]), r"shapes \(T, 6, 3\) and \(T, 6\) for this network and feature map"),
        (lambda X, y: (X[..., :2], y), r"got \(20, 6, 2\) and \(20, 6\)"),
        (lambda X, y: (X[:9], y), r"got \(9, 6, 3\) and \(20, 6\)"),
        (lambda X, y: (X.astype(str), y), "X must hold real numbers"),
        (lambda X, y: (X + 1j, y), "X must hold real numbers"),
        (lambda X, y: (X, y.astype(object)), "y must hold real numbers"),
        (lambda X, y: ([[1, 2], [3]], y), "X must be an array of shape"),
        (lambda X, y: (X, np.where(y > 0.5, np.inf, y)), "y must be finite, or NaN where a label is missing"),
        (lambda X, y: (X, None), "y is missing"),
        (lambda X, y: ("data.csv", None), "y is missing"),
        (lambda X, y: ([X[0], X[1], X[2]], None), "each block must be a pair"),
        (lambda X, y: ([1, 2], None), "each block must be a pair"),
    ],
)
@ENGINES
def test_data_of_the_wrong_form(engine, change, message, features):
    X, y = change(*make_stream(20, 6))
    with pytest.raises(ValueError, match=message):
        lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y, engine=engine)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("label", [0.0, 2.0, -1.5])
def test_labels_of_a_classifier_are_minus_and_plus_one(loss, label, features):
    X, y = make_stream(20, 6, binary=True)
    y[3, 3] = label
    with pytest.raises(ValueError, match=f"y must hold only -1 and \\+1 .* for the {loss} loss"):
        lc.simulate(lc.ODKLA(loss=loss), features, NETWORKS["ring"], X, y)
    with pytest.raises(ValueError, match="y must hold only -1"):
        lc.sweep([lc.ODKLA(), lc.ODKLA(loss=loss)], features, NETWORKS["ring"], X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_agents", [6, 300])
@ENGINES
def test_a_bad_value_in_mid_stream_loses_nothing(engine, n_agents, value, features):
    network = lc.Network.ring(n_agents)
    X, y = make_stream(20, n_agents)
    good = lc.simulate(lc.QCODKLA(), features, network, X[:13], y[:13], engine=engine)
    X[13, 5, 1] = value
    with pytest.raises(ValueError, match="in round 14 agent 5 got a value that is not finite") as caught:
        lc.simulate(lc.QCODKLA(), features, network, X, y, engine=engine)
    kept = caught.value.trace
    assert kept.n_rounds == 13
    assert np.array_equal(kept.predictions, good.predictions)
    for name, array in good.state.learner.items():
        assert np.array_equal(kept.state.learner[name], array)
    X[13, 5, 1] = 0.5
    rest = lc.simulate(lc.QCODKLA(), features, network, X[13:], y[13:], engine=engine, state=kept.state)
    whole = lc.simulate(lc.QCODKLA(), features, network, X, y, engine=engine)
    assert np.array_equal(rest.weights, whole.weights)


def test_a_bad_block_loses_nothing(features):
    X, y = make_stream(30, 6)

    def blocks():
        yield X[:10], y[:10]
        yield X[10:20], y[10:20, :4]

    with pytest.raises(ValueError, match=r"got \(10, 6, 3\) and \(10, 4\)") as caught:
        lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], blocks())
    assert caught.value.trace.n_rounds == 10
    assert "10 rounds before it are kept" in caught.value.__notes__[0]

    def broken():
        yield X[:10], y[:10]
        raise ConnectionError("the sensor is gone")

    with pytest.raises(ConnectionError, match="sensor is gone") as lost:
        lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], broken())
    assert lost.value.trace.n_rounds == 10


@ENGINES
def test_huge_but_finite_inputs(engine, features):
    X, y = make_stream(20, 6)
    X[7, 2] = 1e7  # beyond the polynomials' range: the library's sine takes over
    slow = lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y, engine=engine)
    assert np.isfinite(slow.predictions).all()


def test_inputs_whose_phase_overflows_are_named(features):
    X, y = make_stream(20, 6)
    X[7, 2] = 1e308
    with pytest.raises(ValueError, match="round 8 agent 2 got values too large for the feature map"):
        lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y)
    with pytest.raises(ValueError, match="values too large for the feature map"):
        lc.sweep([lc.ODKLA()], features, NETWORKS["ring"], X, y)


@ENGINES
def test_a_run_that_diverges_says_where_and_what_to_change(engine, features):
    X, y = make_stream(3000, 6)
    cases = {
        "raise eta .now 0.01. or rho .now 0.01.": lc.ODKLA(rho=0.01, eta=0.01),
        "lower step": lc.RFFDOKL(step=10.0),
        "widen range or use range='adaptive'": lc.ODKLA(
            rho=0.2, eta=1.0, channel=lc.Channel(quantizer=lc.Quantizer(3, range=(-0.05, 0.05)))
        ),
    }
    for advice, learner in cases.items():
        with pytest.raises(lc.Diverged, match=advice) as caught:
            lc.simulate(learner, features, NETWORKS["complete"], X, y, engine=engine)
        error = caught.value
        assert f"diverged in round {error.round}" in str(error)
        assert error.trace.n_rounds == error.round - 1
        assert np.isfinite(error.trace.predictions).all()


def test_the_engines_notice_divergence_in_the_same_round(features):
    X, y = make_stream(200, 6)
    rounds = []
    for engine in ("reference", "compiled"):
        with pytest.raises(lc.Diverged) as caught:
            lc.simulate(lc.Local(step=1.2), features, NETWORKS["ring"], X, y, engine=engine)
        rounds.append(caught.value.round)
    assert rounds[0] == rounds[1]


def test_large_labels_are_not_divergence(features):
    X, y = make_stream(100, 6)
    trace = lc.simulate(lc.ODKLA(eta=1.0), features, NETWORKS["ring"], X, 1e9 * y)
    rescaled = lc.simulate(lc.ODKLA(eta=1.0), features, NETWORKS["ring"], X, y)
    np.testing.assert_allclose(trace.predictions / 1e9, rescaled.predictions, rtol=1e-9, atol=1e-12)
    y[50:] = 0
    large = lc.simulate(lc.ODKLA(eta=1.0), features, NETWORKS["ring"], X[:50], 1e9 * y[:50])
    lc.simulate(lc.ODKLA(eta=1.0), features, NETWORKS["ring"], X[50:], y[50:], state=large.state)


def test_a_sweep_survives_a_learner_that_diverges(features):
    X, y = make_stream(300, 6)
    traces = lc.sweep([lc.Local(step=0.3), lc.Local(step=5.0)], features, NETWORKS["ring"], X, y)
    assert [trace.diverged for trace in traces] == [False, True]
    assert traces[0].n_rounds == 300 > traces[1].n_rounds
    assert "lower step" in traces[1].about["advice"]
    with pytest.raises(ValueError, match="X must be finite"):
        lc.sweep([lc.Local()], features, NETWORKS["ring"], X * np.inf, y)


def test_a_state_from_elsewhere_is_refused(features):
    X, y = make_stream(10, 6)
    state = lc.simulate(lc.Local(), features, NETWORKS["ring"], X, y).state
    with pytest.raises(ValueError, match="state comes from another learner: it holds .*, ODKLA keeps"):
        lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y, state=state)
    for other in (lc.RandomFeatures.gaussian(3, 5), features.redrawn(7)):
        with pytest.raises(ValueError, match="state comes from another feature map"):
            lc.simulate(lc.Local(), other, NETWORKS["ring"], X, y, state=state)
    with pytest.raises(ValueError, match="state comes from another network or feature map"):
        lc.simulate(lc.Local(), features, lc.Network.ring(3), X[:, :3], y[:, :3], state=state)


@pytest.mark.parametrize("learner", [lc.Local(), lc.WaveRLS()], ids=["rows", "waves"])
@pytest.mark.parametrize("state", [{"weights": 1}, "trace"])
def test_what_is_no_state_is_refused(learner, state, features):
    X, y = make_stream(10, 6)
    trace = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    with pytest.raises(ValueError, match="state must be the state of a trace"):
        lc.simulate(learner, features, NETWORKS["ring"], X, y, state=trace if state == "trace" else state)


def test_waves_go_on_over_their_own_tree_with_their_own_features(features, tmp_path):
    X, y = make_stream(10, 6)
    trace = lc.simulate(lc.WaveRLS(), features, NETWORKS["ring"], X, y)
    saved = lc.Trace.load(trace.save(tmp_path / "waves.npz"))
    for state in (trace.state, saved.state):
        with pytest.raises(ValueError, match="state comes from another network: waves go on over the tree"):
            lc.simulate(lc.WaveRLS(), features, NETWORKS["path"], X, y, state=state)
        with pytest.raises(ValueError, match="state comes from another feature map"):
            lc.simulate(lc.WaveRLS(), features.redrawn(7), NETWORKS["ring"], X, y, state=state)
        again = lc.simulate(lc.WaveRLS(), features.redrawn(4), NETWORKS["ring"], X, y, state=state)
        assert again.state.round == 20


@pytest.mark.parametrize("learner", [lc.ODKLA(), lc.WaveRLS(), lc.WaveRLS(outputs=2), lc.Personal()], ids=repr)
@ENGINES
def test_an_input_that_is_none_in_the_first_round(learner, engine, features):
    X, y = make_stream(10, 6)
    X[0, 2, 1] = np.nan
    y = np.stack([y, y], axis=-1) if getattr(learner, "outputs", 1) == 2 else y
    with pytest.raises(ValueError, match="X must be finite, but in round 1 agent 2 got a value that is not finite"):
        lc.simulate(learner, features, NETWORKS["ring"], X, y, engine=engine)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.ODKLA(rho=-0.1), "rho must be at least 0"),
        (lambda: lc.ODKLA(eta=0.0), "eta must be larger than 0"),
        (lambda: lc.ODKLA(eta=np.nan), "eta must be finite"),
        (lambda: lc.ODKLA(eta="large"), "eta must be a number"),
        (lambda: lc.ODKLA(regularization=-1e-4), "regularization must be at least 0"),
        (lambda: lc.ODKLA(loss="absolute"), "loss must be one of"),
        (lambda: lc.DOKL(rho=True), "rho must be a number"),
        (lambda: lc.RFFDOKL(step=-1.0), "step must be larger than 0"),
        (lambda: lc.RFFDOKL(order="combine"), "order must be one of 'combine-then-adapt', 'adapt-then-combine'"),
        (lambda: lc.RFFDOKL(mixing=0.0), "mixing must be larger than 0"),
        (lambda: lc.Local(step=np.inf), "step must be finite"),
        (lambda: lc.QCODKLA(alpha=-1.0), "alpha must be at least 0"),
        (lambda: lc.QCODKLA(range=(2.0, 1.0)), "with u < v"),
        (lambda: lc.schedules.SqrtGrowth(0.0), "scale must be larger than 0"),
    ],
)
def test_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "fast"}, "engine must be one of 'auto', 'compiled', 'reference'"),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32'"),
        ({"learner": "odkla"}, "learner must be a laconic Learner"),
        ({"features": np.eye(3)}, "features must be a laconic RandomFeatures"),
        ({"network": 6}, "network must be a laconic Network"),
    ],
)
def test_arguments_of_simulate_are_named(arguments, message, features):
    X, y = make_stream(5, 6)
    given = {"learner": lc.ODKLA(), "features": features, "network": NETWORKS["ring"], "X": X, "y": y} | arguments
    with pytest.raises(ValueError, match=message):
        lc.simulate(**given)
    with pytest.raises(ValueError, match="at least one learner"):
        lc.sweep([], features, NETWORKS["ring"], X, y)


def test_other_memory_layouts_are_welcome(features):
    X, y = make_stream(40, 6)
    plain = lc.simulate(make_learner("odkla"), features, NETWORKS["ring"], X, y)
    for X_other, y_other in (
        (np.asfortranarray(X), np.asfortranarray(y)),
        (np.repeat(X, 2, axis=0)[::2], np.repeat(y, 2, axis=1)[:, ::2]),
        (X.tolist(), y.tolist()),
        (X[::-1][::-1], y),
    ):
        other = lc.simulate(make_learner("odkla"), features, NETWORKS["ring"], X_other, y_other)
        assert np.array_equal(other.predictions, plain.predictions)
    integers = lc.simulate(make_learner("odkla"), features, NETWORKS["ring"], (9 * X).astype(int), y > 0)
    assert integers.n_rounds == 40
