"""Several outputs that share one matrix: each is what it would be alone, in both engines."""

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc

ENGINES = ("reference", "compiled")
GRAPH = NETWORKS["random"]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def make_outputs(n_rounds, n_agents):
    X, y = make_stream(n_rounds, n_agents)
    return X, np.stack([y, 3 - y**2, np.cos(3 * X[..., 0])], axis=-1)


def simulate(learner, features, X, y, engine, **more):
    return lc.simulate(learner, features, GRAPH, X, y, engine=engine, **more)


def test_every_output_is_the_centres_solution_with_the_shared_matrix(features, engine):
    """Hardly anything is left out: theta_k solves (A + ridge) theta_k = b_k over all that the last wave carried."""
    X, y = make_outputs(120, GRAPH.n_agents)
    fine = lc.WaveRLS(kappa=1e-4, nu=0.01, delta=1e-4, most=500, floor=0.0, outputs=3)
    state = simulate(fine, features, X, y, engine).state.learner
    phi = features(X)
    wave = simulate(fine, features, X, y, engine).waves[-1]
    H = state["thin"][0] * fine.ridge * np.eye(features.n_features)
    r = np.zeros((3, features.n_features))
    for place in lc.waves.places(GRAPH):
        n = wave["when"] + wave["depth"] - place.depth
        H += phi[:n, place.agent].T @ phi[:n, place.agent]
        r += y[:n, place.agent].T @ phi[:n, place.agent]
    assert state["theta"].shape == (GRAPH.n_agents, 3, features.n_features)
    found, exact = phi[:, 0] @ state["theta"][0].T, phi[:, 0] @ np.linalg.solve(H, r.T)
    np.testing.assert_allclose(found, exact, atol=2e-3)


def test_copies_of_one_output_are_that_output(features, engine):
    """To the bit in what everybody knows, for one matrix and three vectors. (Forgetting: nothing is thinned.)"""
    X, y = make_stream(100, GRAPH.n_agents)
    y[7, 2] = np.nan
    one = simulate(lc.WaveRLS(forgetting=0.999), features, X, y, engine)
    learner = lc.WaveRLS(forgetting=0.999, outputs=3)
    three = simulate(learner, features, X, np.repeat(y[..., None], 3, axis=2), engine)
    assert three.predictions.shape == (100, GRAPH.n_agents, 3) and three.weights.shape[1:] == (3, features.n_features)
    for k in range(3):
        assert np.array_equal(three.state.learner["theta"][:, k], one.state.learner["theta"])
        np.testing.assert_allclose(three.predictions[..., k], one.predictions, rtol=1e-9, atol=1e-10)
    assert np.array_equal(three.state.learner["information"], one.state.learner["information"])
    assert (three.waves["terms"] == one.waves["terms"]).all()
    assert one.bits.sum() < three.bits.sum() < 2.5 * one.bits.sum()
    np.testing.assert_allclose(three.mse(), one.mse(), rtol=1e-9)


def test_the_engines_agree(features):
    X, y = make_outputs(120, GRAPH.n_agents)
    y[5, 0, 1] = y[17, 3, 0] = np.nan
    y[30, 2] = np.nan
    slow, fast = (simulate(lc.WaveRLS(outputs=3), features, X, y, engine, collective=True) for engine in ENGINES)
    for name in ("bits", "sent", "link_bits"):
        assert np.array_equal(getattr(slow, name), getattr(fast, name)), name
    for name in ("theta", "information", "step", "energy", "thin", "link", "mail"):
        assert np.array_equal(slow.state.learner[name], fast.state.learner[name]), name
    for name in ("predictions", "energy", "consensus_error", "replica_error", "collective_square", "collective_loss"):
        np.testing.assert_allclose(getattr(slow, name), getattr(fast, name), rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_sample_without_one_of_its_labels_is_not_learned_from(features, engine):
    X, y = make_outputs(60, GRAPH.n_agents)
    partly, wholly = y.copy(), y.copy()
    partly[20, 1, 2] = wholly[20, 1] = np.nan
    runs = [simulate(lc.WaveRLS(outputs=3), features, X, labels, engine) for labels in (partly, wholly)]
    assert np.array_equal(runs[0].predictions, runs[1].predictions)
    assert np.isnan(runs[0].squared_errors()[20, 1]) and np.isfinite(runs[0].mse()).all()


@pytest.mark.parametrize("graph", [GRAPH, lc.Network.path(22)], ids=["random", "deep"])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(graph, features, engine):
    X, y = make_outputs(45, graph.n_agents)
    learner = lc.WaveRLS(outputs=3)
    whole = lc.simulate(learner, features, graph, X, y, engine=engine)
    for cut in (2, 9, 13, 30):
        first = lc.simulate(learner, features, graph, X[:cut], y[:cut], engine=engine)
        rest = lc.simulate(learner, features, graph, X[cut:], y[cut:], engine=engine, state=first.state)
        assert np.array_equal(rest.predictions, whole.predictions[cut:]) and np.array_equal(rest.bits, whole.bits[cut:])


def test_classes(features, engine):
    X, y = make_stream(300, GRAPH.n_agents)
    classes = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    scores = np.where(classes[..., None] == np.arange(4), 1.0, -1.0)
    together = simulate(lc.WaveRLS(outputs=4), features, X, scores, engine)
    alone = simulate(lc.WaveRLS(outputs=4).alone(300), features, X, scores, engine)
    assert together.error_rate()[-1] < 0.9 * alone.error_rate()[-1] < 0.5


def test_what_is_refused(features):
    X, y = make_outputs(5, GRAPH.n_agents)
    with pytest.raises(ValueError, match=r"y must have shape \(T, n_agents, outputs\)"):
        lc.simulate(lc.WaveRLS(outputs=3), features, GRAPH, X, y[..., 0])
    with pytest.raises(ValueError, match=r"X and y must have shapes .* and \(T, 6, 2\)"):
        lc.simulate(lc.WaveRLS(outputs=2), features, GRAPH, X, y)
    with pytest.raises(ValueError, match="outputs must be 1 for the logistic loss"):
        lc.WaveRLS(outputs=2, loss="logistic")
    for outputs in (0, 10**9):
        with pytest.raises(ValueError, match="outputs must be from 1 to 65536"):
            lc.WaveRLS(outputs=outputs)
