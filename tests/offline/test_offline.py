"""Batch learning and recursive least squares, against dense solves and ADMM in its long form."""

import math
import subprocess
import sys

import numpy as np
import pytest
from conftest import NETWORKS, make_stream
from raw_data import find_raw

import laconic as lc
from laconic.native import least_squares
from laconic.native.arrays import aligned
from laconic.native.features import map_features
from laconic.offline import rls
from laconic.offline.shares import LogisticShare

GRAPHS = ("path", "ring", "star", "complete", "random")


def uneven_stream(binary=False, n_rounds=40, seed=0):
    """Six agents, of whom each lacks some labels of its own."""
    X, y = make_stream(n_rounds, 6, binary=binary, seed=seed)
    rng = np.random.default_rng(seed + 100)
    if not binary:
        y = y + rng.normal(scale=0.1, size=y.shape)
    y[rng.uniform(size=y.shape) < np.linspace(0, 0.5, 6)] = np.nan
    return X, y


def ridge_solution(phi, y, ridge, weight=None):
    """Least squares on rows and a ridge, as one tall system: no normal equations."""
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    n = phi.shape[1]
    tall = np.vstack([root[:, None] * phi, math.sqrt(ridge) * np.eye(n)])
    return np.linalg.lstsq(tall, np.concatenate([root * y, np.zeros(n)]), rcond=None)[0]


# --------------------------------------------------------------------------------------------------------------------
# DKLA and COKE
# --------------------------------------------------------------------------------------------------------------------


def long_admm(features, network, X, y, rho, ridge, n_iterations):
    """DKLA as ADMM over arcs: a copy z and two multipliers for each, nothing eliminated. Yields the models."""
    n_agents, n = network.n_agents, features.n_features
    arcs = [(int(i), int(j)) for edge in network.edges for i, j in (edge, edge[::-1])]
    z, first, second = (np.zeros((len(arcs), n)) for _ in range(3))
    for _ in range(n_iterations):
        theta = []
        for i in range(n_agents):
            has = ~np.isnan(y[:, i])
            rows, targets = [features(X[has, i])], [y[has, i]]
            rows.append(math.sqrt(ridge / n_agents) * np.eye(n))
            targets.append(np.zeros(n))
            for a, arc in enumerate(arcs):
                for end, multiplier in zip(arc, (first[a], second[a]), strict=True):
                    if end == i:  # (rho/2) |theta - z + multiplier/rho|^2
                        rows.append(math.sqrt(rho / 2) * np.eye(n))
                        targets.append(math.sqrt(rho / 2) * (z[a] - multiplier / rho))
            theta.append(np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0])
        for a, (i, j) in enumerate(arcs):
            z[a] = (theta[i] + theta[j]) / 2 + (first[a] + second[a]) / (2 * rho)
            first[a] += rho * (theta[i] - z[a])
            second[a] += rho * (theta[j] - z[a])
        yield np.array(theta)


@pytest.mark.parametrize("graph", GRAPHS)
def test_dkla_is_admm_over_arcs(features, graph):
    X, y = uneven_stream()
    network = NETWORKS[graph]
    for k, theta in enumerate(long_admm(features, network, X, y, 0.3, 0.05, 6), start=1):
        run = lc.offline.dkla(features, network, X, y, rho=0.3, regularization=0.05, max_iterations=k, tolerance=0)
        np.testing.assert_allclose(run.weights, theta, rtol=0, atol=1e-10 * np.abs(theta).max())


def plain_coke(features, network, X, y, rho, ridge, v, mu, n_iterations):
    """COKE's four lines, an agent and a neighbour at a time."""
    n_agents, n = network.n_agents, features.n_features
    theta, hat, gamma = (np.zeros((n_agents, n)) for _ in range(3))
    neighbours = [network.neighbours[network.starts[i] : network.starts[i + 1]] for i in range(n_agents)]
    for k in range(1, n_iterations + 1):
        for i in range(n_agents):
            has = ~np.isnan(y[:, i])
            phi = features(X[has, i])
            pull = rho * sum(hat[i] + hat[j] for j in neighbours[i]) - gamma[i]
            matrix = 2 * phi.T @ phi + (2 * ridge / n_agents + 2 * rho * len(neighbours[i])) * np.eye(n)
            theta[i] = np.linalg.solve(matrix, 2 * phi.T @ y[has, i] + pull)
        sent = np.array([np.linalg.norm(hat[i] - theta[i]) >= v * mu**k for i in range(n_agents)])
        hat[sent] = theta[sent]
        for i in range(n_agents):
            gamma[i] += rho * sum(hat[i] - hat[j] for j in neighbours[i])
        yield theta.copy(), sent


@pytest.mark.parametrize("graph", GRAPHS)
def test_coke_is_its_four_lines(features, graph):
    X, y = uneven_stream()
    network = NETWORKS[graph]
    expected = list(plain_coke(features, network, X, y, 0.3, 0.05, 1.0, 0.97, 40))
    run = lc.offline.coke(
        features, network, X, y, v=1.0, mu=0.97, rho=0.3, regularization=0.05, max_iterations=40, tolerance=0
    )
    np.testing.assert_array_equal(run.sent, [sent for _, sent in expected])
    np.testing.assert_allclose(run.weights, expected[-1][0], atol=1e-10)
    assert 0.1 < run.sent.mean() < 0.9  # some are silent, some are not
    apart = [np.linalg.norm(theta - theta.mean(axis=0)) for theta, _ in expected]
    np.testing.assert_allclose(run.consensus_error, apart, rtol=1e-9)
    scored = ~np.isnan(y)
    errors = [np.nanmean((np.einsum("tif,if->ti", features(X), theta) - y) ** 2) for theta, _ in expected]
    np.testing.assert_allclose(run.training_mse, errors, rtol=1e-9)
    ridges = [0.05 / 6 * (theta**2).sum() for theta, _ in expected]
    np.testing.assert_allclose(run.objective, np.array(errors) * scored.sum() + ridges, rtol=1e-9)


def test_a_threshold_of_zero_is_dkla_and_an_endless_one_is_silence(features):
    X, y = uneven_stream()
    network = NETWORKS["ring"]
    dense = lc.offline.dkla(features, network, X, y, rho=0.2, max_iterations=30)
    open_gate = lc.offline.coke(features, network, X, y, v=0, mu=0.5, rho=0.2, max_iterations=30)
    np.testing.assert_array_equal(dense.weights, open_gate.weights)
    assert dense.sent.all() and open_gate.sent.all()
    silent = lc.offline.coke(features, network, X, y, v=1e9, mu=1.0, rho=0.2, max_iterations=30)
    assert not silent.sent.any() and silent.bits.sum() == 0
    assert not silent.converged  # nothing moves, but nobody agrees
    first = lc.offline.dkla(features, network, X, y, rho=0.2, max_iterations=1)
    np.testing.assert_array_equal(silent.weights, first.weights)


def test_messages_cost_32_bits_a_number_and_count_once(features):
    X, y = uneven_stream()
    run = lc.offline.dkla(features, NETWORKS["star"], X, y, rho=0.2, max_iterations=7, tolerance=0)
    assert features.n_features == 22
    assert run.iterations == 7 and run.sends.tolist() == [6] * 7
    assert run.bits.tolist() == [6 * 22 * 32] * 7
    alone = lc.offline.dkla(features, NETWORKS["alone"], X[:, :1], y[:, :1], rho=0.2, max_iterations=3)
    assert not alone.sent.any()


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
def test_dkla_agrees_on_the_centralised_ridge_solution(graph):
    features = lc.RandomFeatures.gaussian(3, 4, bandwidth=0.6, seed=4)
    X, y = uneven_stream()
    scored = ~np.isnan(y)
    best = ridge_solution(features(X)[scored], y[scored], 0.5)  # 0.5 in all: neither for each agent nor each round
    run = lc.offline.dkla(
        features, NETWORKS[graph], X, y, rho=2.0, regularization=0.5, max_iterations=5000, tolerance=1e-10
    )
    assert run.converged and run.iterations < 5000
    np.testing.assert_allclose(run.weights, np.tile(best, (6, 1)), atol=2e-6)
    np.testing.assert_allclose(lc.offline.batch_solution(features, X, y, regularization=0.5).weights, best, atol=1e-9)
    error = np.mean((features(X)[scored] @ best - y[scored]) ** 2)
    assert run.mse(X, y) == pytest.approx(error, rel=1e-6) == pytest.approx(run.training_mse[-1], rel=1e-6)


@pytest.mark.slow
def test_logistic_agents_agree_on_the_centralised_classifier():
    features = lc.RandomFeatures.gaussian(3, 4, bandwidth=0.6, seed=4)
    X, y = uneven_stream(binary=True)
    best = lc.offline.batch_solution(features, X, y, regularization=0.5, loss="logistic").weights
    options = {"rho": 0.3, "regularization": 0.5, "loss": "logistic", "max_iterations": 300, "tolerance": 1e-7}
    run = lc.offline.dkla(features, NETWORKS["random"], X, y, **options)
    assert run.converged
    np.testing.assert_allclose(run.weights, np.tile(best, (6, 1)), atol=1e-4)
    censored = lc.offline.coke(features, NETWORKS["random"], X, y, v=1.0, mu=0.9, **options)
    np.testing.assert_allclose(censored.weights, np.tile(best, (6, 1)), atol=1e-4)
    assert censored.sent.sum() < run.sent.sum()
    # At the optimum the gradient of the whole problem vanishes.
    scored = ~np.isnan(y)
    phi, labels = features(X)[scored], y[scored]
    slope = -labels / (1 + np.exp(labels * (phi @ best)))
    np.testing.assert_allclose(phi.T @ slope + 2 * 0.5 * best, 0, atol=1e-6)


def test_newton_finds_the_minimum_from_far_away(features):
    rng = np.random.default_rng(0)
    phi, labels = features(rng.uniform(size=(60, 3))), rng.choice([-1.0, 1.0], size=60)
    pull = rng.normal(size=22)
    share = LogisticShare(phi, labels, curvature=1e-3)
    for start in (np.zeros(22), 300 * rng.normal(size=22)):
        theta = share.minimise(start, pull)
        slope = -labels / (1 + np.exp(labels * (phi @ theta)))
        np.testing.assert_allclose(phi.T @ slope + 1e-3 * theta - pull, 0, atol=1e-9)


def test_it_stops_when_the_objective_rests_and_the_agents_agree():
    features = lc.RandomFeatures.gaussian(3, 4, bandwidth=0.6, seed=4)
    X, y = uneven_stream()
    options = {"rho": 2.0, "regularization": 0.5}
    network = NETWORKS["path"]
    long = lc.offline.dkla(features, network, X, y, **options, max_iterations=400, tolerance=0)
    run = lc.offline.dkla(features, network, X, y, **options, max_iterations=400, tolerance=1e-3)
    k = run.iterations
    assert run.converged and not long.converged and 2 < k < 400 == long.iterations
    np.testing.assert_array_equal(run.objective, long.objective[:k])
    change = np.abs(np.diff(run.objective)) / run.objective[1:]
    norms = [
        np.linalg.norm(lc.offline.dkla(features, network, X, y, **options, max_iterations=j, tolerance=0).weights)
        for j in (k - 1, k)
    ]
    assert change[-1] <= 1e-3 and run.consensus_error[-1] <= 1e-3 * norms[1]
    assert change[-2] > 1e-3 or run.consensus_error[-2] > 1e-3 * norms[0]


def test_predictions_are_those_of_each_agents_own_model(features):
    X, y = uneven_stream()
    held_out = uneven_stream(seed=5)
    run = lc.offline.dkla(features, NETWORKS["ring"], X, y, rho=0.1, max_iterations=5, tolerance=0, test=held_out)
    expected = np.array([[features(X[t, i]) @ run.weights[i] for i in range(6)] for t in range(40)])
    np.testing.assert_allclose(run.predict(X), expected, atol=1e-13)
    assert run.predict(X[0]).shape == (6,)
    assert run.test_mse[-1] == pytest.approx(run.mse(*held_out), rel=1e-10)
    assert run.test_mse[-1] != pytest.approx(run.mse(X, y), rel=1e-3)
    assert repr(run).startswith("BatchRun(stopped after 5 iterations, training mse")
    default = lc.offline.dkla(features, NETWORKS["ring"], X, y, max_iterations=1)
    assert default.rho == pytest.approx(1e-4 * (~np.isnan(y)).sum() / 6) and default.test_mse is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rho": 0}, "rho must be larger than 0"),
        ({"regularization": -1}, "regularization must be at least 0"),
        ({"loss": "hinge"}, "loss must be 'squared' or 'logistic'"),
        ({"loss": "logistic"}, "y must hold -1 and \\+1"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"tolerance": np.nan}, "tolerance must be finite"),
        ({"v": -1}, "v must be at least 0"),
        ({"mu": 1.1}, "mu must be at most 1"),
        ({"X": np.ones((5, 6, 2))}, "X and y must agree"),
        ({"X": np.ones((40, 6, 2))}, "X must have shape \\(..., 3\\)"),
        ({"network": lc.Network.ring(5)}, "X and y must hold 5 agents, got 6"),
        ({"y": np.full((40, 6), np.nan)}, "y must hold at least one label"),
        ({"y": np.full((40, 6), np.inf)}, "y must hold finite labels"),
        ({"test": (np.ones((4, 6, 3)), np.ones((4, 5)))}, "test X and test y must agree"),
    ],
)
def test_bad_batch_input_is_named(features, options, sentence):
    X, y = uneven_stream()
    arguments = {"network": NETWORKS["ring"], "X": X, "y": y, "rho": 0.1, "v": 1.0, "mu": 0.9, **options}
    with pytest.raises(ValueError, match=sentence):
        lc.offline.coke(features, **arguments)


def test_bad_shapes_and_ridges_are_named(features):
    X, y = uneven_stream()
    with pytest.raises(ValueError, match="regularization must be larger than 0 for an agent without neighbours"):
        lc.offline.dkla(features, NETWORKS["alone"], X[:, :1], y[:, :1], regularization=0)
    run = lc.offline.dkla(features, NETWORKS["ring"], X, y, max_iterations=1)
    with pytest.raises(ValueError, match=r"X must have shape \(..., 6, 3\)"):
        run.predict(X[:, :5])


# --------------------------------------------------------------------------------------------------------------------
# COKE's synthetic experiment
# --------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment():
    return lc.offline.coke_experiment(n_agents=12, n_samples=(200, 300), seed=1)


@pytest.mark.slow
def test_coke_learns_what_dkla_learns_and_says_a_third_of_it(experiment):
    dkla, coke = experiment.dkla, experiment.coke
    assert dkla.sends.sum() == 200 * 12 and dkla.iterations == coke.iterations == 200
    assert coke.sends.sum() < 0.35 * dkla.sends.sum()
    assert coke.bits.sum() < 0.35 * dkla.bits.sum()
    assert coke.test_mse[-1] < 1.015 * dkla.test_mse[-1]
    near, nearer = experiment.sends_within(0.05), experiment.sends_within(0.01)
    assert near[1] < 0.7 * near[0] and nearer[1] < 0.5 * nearer[0]
    # Nothing is missed that could be known.
    assert experiment.noise**2 == pytest.approx(0.01)
    for run in (dkla, coke):
        assert 0.9 * experiment.centralised_mse < run.test_mse[-1] < 1.05 * experiment.centralised_mse
        assert 0.9 * 0.01 < run.test_mse[-1] < 1.2 * 0.01
        assert run.test_mse[0] > 1.2 * run.test_mse[-1]


@pytest.mark.slow
def test_the_experiment_is_a_function_of_its_arguments(experiment):
    again = lc.offline.coke_experiment(n_agents=12, n_samples=(200, 300), seed=1, max_iterations=3)
    np.testing.assert_array_equal(again.coke.test_mse, experiment.coke.test_mse[:3])
    np.testing.assert_array_equal(again.sizes, experiment.sizes)
    assert len(again.sizes) == 12 and again.sizes.min() >= 200 and again.sizes.max() <= 300
    assert len(set(again.sizes.tolist())) > 6
    other = lc.offline.coke_experiment(n_agents=12, n_samples=(200, 300), seed=2, max_iterations=3)
    assert not np.array_equal(other.sizes, again.sizes)
    assert again.sends_within(0)[0] == 36  # three iterations, and each was better than the last
    # rho's default counts training samples alone: 70% of all
    assert again.dkla.rho == pytest.approx(1e-4 * np.mean(again.sizes * 7 // 10))


@pytest.mark.slow
def test_the_experiment_as_a_table(experiment):
    table = experiment.to_frame()
    assert table.columns == ["algorithm", "iteration", "training_mse", "test_mse", "sends", "bits"]
    last = table.row(-1, named=True)
    assert last["algorithm"] == "COKE" and last["iteration"] == 200
    assert last["sends"] == experiment.coke.sent.sum() and last["bits"] == last["sends"] * 200 * 32
    assert table.height == 400
    assert repr(experiment).startswith("CokeExperiment(DKLA mse 0.01")


@pytest.mark.slow
def test_untested_runs_and_bad_sizes_are_named(features, experiment):
    with pytest.raises(ValueError, match=r"n_samples\[1\] must be at least 50"):
        lc.offline.coke_experiment(n_samples=(50, 40))
    X, y = uneven_stream()
    run = lc.offline.dkla(features, NETWORKS["ring"], X, y, max_iterations=1)
    bare = lc.offline.CokeExperiment(run, run, 0.0, 0.0, experiment.sizes)
    with pytest.raises(ValueError, match="this run was not tested"):
        bare.sends_within(0.01)


# --------------------------------------------------------------------------------------------------------------------
# Recursive least squares
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("centralised", [False, True])
def test_each_prediction_is_that_of_the_ridge_solution_so_far(features, centralised, forgetting):
    X, y = uneven_stream(n_rounds=130)
    phi = features(X)
    predictions = lc.offline.recursive_least_squares(
        features, X, y, centralised=centralised, regularization=0.03, forgetting=forgetting
    )
    assert predictions.shape == y.shape and not predictions[0].any()
    for t in (1, 2, 5, 23, 60, 129):
        for i in range(6):
            use = ~np.isnan(y[:t])
            if not centralised:
                use[:, np.arange(6) != i] = False
            age = np.broadcast_to(np.arange(t, 0, -1)[:, None] - 1, use.shape)[use]
            best = ridge_solution(phi[:t][use], y[:t][use], 0.03 * forgetting**t, forgetting**age)
            assert predictions[t, i] == pytest.approx(phi[t, i] @ best, abs=1e-9)


def test_a_round_is_predicted_before_any_of_it_is_learned(features):
    X, y = uneven_stream()
    for centralised in (False, True):
        before = lc.offline.recursive_least_squares(features, X, y, centralised=centralised)
        changed = y.copy()
        changed[20] = 100.0
        after = lc.offline.recursive_least_squares(features, X, changed, centralised=centralised)
        np.testing.assert_array_equal(before[:21], after[:21])
        assert not np.isclose(before[21], after[21]).any()


def test_agents_alone_know_nothing_of_each_other(features):
    X, y = uneven_stream()
    together = lc.offline.recursive_least_squares(features, X, y, centralised=False)
    for i in range(6):
        own = slice(i, i + 1)
        alone = lc.offline.recursive_least_squares(features, X[:, own], y[:, own], centralised=False)
        np.testing.assert_array_equal(together[:, own], alone)
        # One agent is its own centre, given the same ridge.
        ridge = {"regularization": rls.LOCAL_RIDGE, "centralised": True}
        np.testing.assert_array_equal(
            lc.offline.recursive_least_squares(features, X[:, own], y[:, own], **ridge), alone
        )


@pytest.mark.parametrize("centralised", [False, True])
def test_blocks_do_not_show(features, centralised, monkeypatch):
    X, y = uneven_stream()
    whole = lc.offline.recursive_least_squares(features, X, y, centralised=centralised)
    monkeypatch.setattr(rls, "_BLOCK_ROWS", 20)
    np.testing.assert_array_equal(lc.offline.recursive_least_squares(features, X, y, centralised=centralised), whole)


def test_a_hundred_thousand_samples_leave_the_covariance_exact_and_positive():
    """A smooth kernel and a ridge of 1e-6: the covariance's eigenvalues span eleven orders of magnitude."""
    features = lc.RandomFeatures.gaussian(2, 13, bandwidth=1.5, seed=0)
    n, n_samples = features.n_features, 100_000
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_samples, 2))
    phi = map_features(features, X)
    y = (np.sin(3 * X[:, 0]) + rng.normal(scale=0.1, size=n_samples))[:, None]
    weights, gain, factors = aligned(1, n, float), aligned(1, n, float), aligned(n, n, float)
    spreads, predictions = np.full((1, n), 1e6), np.empty((n_samples, 1))
    start = 0
    for stop in (50, 1000, 30_000, n_samples):
        part = slice(start, stop)
        phi_part = np.ascontiguousarray(phi[part])
        least_squares.recursive_rounds(phi_part, y[part], weights, factors, spreads, gain, 1.0, predictions[part])
        start = stop
        assert (spreads > 0).all()
        best = ridge_solution(phi[:stop, :n], y[:stop, 0], 1e-6)
        errors = phi[:200, :n] @ (weights[0, :n] - best)
        np.testing.assert_allclose(errors, 0, atol=1e-7)
        # P = U D U^T is the inverse of Phi^T Phi + ridge: their product is the identity, as far as doubles go.
        root = (factors[:, :n].T + np.eye(n)) * np.sqrt(spreads[0])
        information = phi[:stop, :n].T @ phi[:stop, :n] + 1e-6 * np.eye(n)
        singular = np.linalg.svd(root, compute_uv=False)
        assert singular[0] ** 2 / singular[-1] ** 2 > 1e6
        np.testing.assert_allclose(root.T @ information @ root, np.eye(n), atol=1e-5)
    assert not factors[:, n:].any() and not weights[:, n:].any()


def test_importing_the_room_compiles_nothing():
    check = "import sys, laconic.offline; assert not {'sklearn', 'polars', 'laconic.data'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_forgetting_too_fast_is_an_error_not_a_nan(features):
    X, y = np.full((400, 6, 3), 0.5), np.ones((400, 6))  # one direction is visited, 21 are not
    with pytest.raises(ValueError, match=r"forgetting must be nearer 1 than 0.1: at round \d+ a direction"):
        lc.offline.recursive_least_squares(features, X, y, centralised=False, forgetting=0.1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regularization": 0}, "regularization must be larger than 0"),
        ({"forgetting": 0}, "forgetting must be larger than 0"),
        ({"forgetting": 1.5}, "forgetting must be at most 1"),
        ({"X": np.ones((40, 5, 3))}, "X and y must agree"),
        ({"X": np.ones((40, 6, 2))}, "X must have shape \\(T, N, 3\\)"),
        ({"X": np.full((40, 6, 3), np.nan)}, "X must be finite"),
        ({"y": np.full((40, 6), np.inf)}, "y must hold finite labels"),
    ],
)
def test_bad_least_squares_input_is_named(features, options, sentence):
    X, y = uneven_stream()
    with pytest.raises(ValueError, match=sentence):
        lc.offline.recursive_least_squares(features, **{"X": X, "y": y, "centralised": True, **options})


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "n_agents", "bandwidth", "references"),
    [
        ("AirData.mat", 5, 0.5, (1.82, 1.50)),
        ("TomData.mat", 5, 0.5, (0.84, 0.73)),
        ("EnergyData.mat", 5, 0.1, (22.4, 21.0)),
        ("TwitterData.mat", 10, 0.5, (4.21, 2.72)),
    ],
)
def test_the_reference_figures_are_met_on_the_prepared_sets(file, n_agents, bandwidth, references):
    from scipy.io import loadmat

    stored = loadmat(find_raw(file))
    X, y = stored["X"].T, stored["y"].ravel()
    n_rounds = len(y) // n_agents
    errors = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))[: n_rounds * n_agents]
        inputs, labels = X[order].reshape(n_rounds, n_agents, -1), y[order].reshape(n_rounds, n_agents)
        features = lc.RandomFeatures.gaussian(X.shape[1], 50, bandwidth, seed=seed)
        errors.append(
            [
                np.mean((lc.offline.recursive_least_squares(features, inputs, labels, centralised=c) - labels) ** 2)
                for c in (False, True)
            ]
        )
    np.testing.assert_allclose(1000 * np.mean(errors, axis=0), references, rtol=0.05)
