"""Experts against their equations written out densely, and least squares against the equations that it solves."""

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.learners.base import Sample

ENGINES = ("reference", "compiled")


def features(n_frequencies=6):
    return lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=n_frequencies, bandwidth=0.6, seed=1)


def written_out(learner, network, X, y, phi_of, censor=None):
    """The rule, agent by agent and expert by expert: predictions, votes and matrices at the end."""
    n_rounds, n_agents = y.shape
    D, ridge = phi_of.n_features, learner.ridge
    memories = [*learner.forgetting, *([0.95] if learner.drift else [])]
    n_experts = len(learner.steps) + len(memories)
    theta = [[np.zeros(D) for _ in range(n_experts)] for _ in range(n_agents)]
    votes = [[1 / n_experts] * n_experts for _ in range(n_agents)]
    P = [[np.eye(D) / ridge for _ in memories] for _ in range(n_agents)]
    hat = [np.zeros(D) for _ in range(n_agents)]
    v, seen = [0.0] * n_agents, [0] * n_agents
    predictions = np.zeros((n_rounds, n_agents))
    for t in range(n_rounds):
        spoke = []
        for i in range(n_agents):
            phi = phi_of(X[t, i])
            margins = [th @ phi for th in theta[i]]
            predictions[t, i] = sum(w * m for w, m in zip(votes[i], margins, strict=True))
            if not np.isnan(y[t, i]):
                seen[i] += 1
                e = predictions[t, i] - y[t, i]
                v[i] += (e * e - v[i]) / min(seen[i], 100)
                errors = [m - y[t, i] for m in margins]
                u = [w * np.exp(-min(ek * ek / (2 * v[i]), 50)) for w, ek in zip(votes[i], errors, strict=True)]
                votes[i] = [0.99 * uk / sum(u) + 0.01 / n_experts for uk in u]
                for k, mu in enumerate(learner.steps):
                    theta[i][k] = theta[i][k] - 2 * mu * errors[k] * phi
                for r, f in enumerate(memories):
                    k = len(learner.steps) + r
                    g = P[i][r] @ phi
                    n = f + g @ phi
                    theta[i][k] = theta[i][k] - g * errors[k] / n
                    P[i][r] = (P[i][r] - np.outer(g, g) / n) / f
                    m, c = (seen[i] - 1) % D, D * (1 - f) * ridge
                    column = P[i][r][:, m].copy()
                    P[i][r] = P[i][r] - c / (1 + c * column[m]) * np.outer(column, column)
            half = sum(w * th for w, th in zip(votes[i], theta[i], strict=True))
            if censor is None or np.linalg.norm(half - hat[i]) >= censor.threshold(t + 1):
                hat[i] = half
                spoke.append(i)
        for i in range(n_agents):
            half = sum(w * th for w, th in zip(votes[i], theta[i], strict=True))
            others = [j for a, b in network.edges.tolist() for i_, j in ((a, b), (b, a)) if i_ == i]
            pull = np.zeros(D)
            for j in others:
                if j in spoke:
                    pull += 1 / (1 + max(network.degrees[i], network.degrees[j])) * (hat[j] - half)
            theta[i] = [th + learner.mixing * pull for th in theta[i]]
    return predictions, np.array(votes), P


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [{}, {"drift": True, "ridge": 0.3}, {"forgetting": (), "steps": (0.05, 0.4)}])
def test_every_line_of_the_rule(engine, options):
    censor = lc.Censor(0.6, 0.97)
    learner = lc.Experts(**options, channel=lc.Channel(censor))
    network, phi = NETWORKS["random"], features()
    X, y = make_stream(150, network.n_agents)
    y[30:40, 2] = np.nan
    expected, votes, P = written_out(learner, network, X, y, phi, censor)
    trace = lc.simulate(learner, phi, network, X, y, engine=engine)
    assert 0.05 < trace.sent.mean() < 0.95
    np.testing.assert_allclose(trace.predictions, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(trace.state.learner["votes"], votes, rtol=1e-8, atol=1e-12)
    spread = trace.state.learner["spread"]
    np.testing.assert_allclose(spread.reshape(-1), np.array(P).reshape(-1), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(spread, spread.swapaxes(2, 3))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_least_squares_solve_the_weighted_equations_with_the_leak(engine, forgetting):
    learner, phi = lc.Experts(steps=(), forgetting=(forgetting,), ridge=0.2), features()
    X, y = make_stream(120, 1)
    trace = lc.simulate(learner, phi, NETWORKS["alone"], X, y, engine=engine)
    D = phi.n_features
    # H theta = b, in which every sample has its weight and every direction in its turn some more ridge.
    H, theta = 0.2 * np.eye(D), np.zeros(D)
    for t in range(len(y)):
        x = phi(X[t, 0])
        np.testing.assert_allclose(trace.predictions[t, 0], theta @ x, rtol=1e-8, atol=1e-10)
        b = forgetting * H @ theta + y[t, 0] * x
        H = forgetting * H + np.outer(x, x)
        theta = np.linalg.solve(H, b)
        H[t % D, t % D] += D * (1 - forgetting) * 0.2
    np.testing.assert_allclose(trace.weights[0], theta, rtol=1e-8, atol=1e-10)
    if forgetting == 1.0:  # then that is the ridge regression of all samples
        rows = phi(X[:, 0])
        batch = np.linalg.solve(rows.T @ rows + 0.2 * np.eye(D), rows.T @ y[:, 0])
        np.testing.assert_allclose(theta, batch, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_winds_up_where_only_one_input_is_ever_seen(engine):
    learner, phi = lc.Experts(forgetting=(0.95,)), features()
    X, y = np.full((1500, 1, 3), 0.3), np.ones((1500, 1))
    trace = lc.simulate(learner, phi, NETWORKS["alone"], X, y, engine=engine)
    spread = trace.state.learner["spread"][0, 0]
    np.testing.assert_array_equal(spread, spread.T)
    assert np.linalg.eigvalsh(spread)[-1] < 3 / learner.ridge  # without the leak it would be 0.95^-1500/ridge
    assert abs(trace.predictions[-1, 0] - 1) < 1e-6


def test_the_expert_that_suits_is_believed_and_another_one_when_the_world_turns():
    phi, random = features(20), np.random.default_rng(0)
    X = random.uniform(size=(1200, 1, 3))
    y = np.sin(4 * X[..., 0]) + X[..., 1]
    y[600:] = -y[600:]
    learner = lc.Experts(steps=(0.02, 0.4), forgetting=())
    trace = lc.simulate(learner, phi, NETWORKS["alone"], X, y)
    votes = [lc.simulate(learner, phi, NETWORKS["alone"], X[:n], y[:n]).state.learner["votes"][0] for n in (600, 700)]
    assert votes[1][1] > 0.9  # fast just after it has turned
    alone = [lc.simulate(lc.Experts((mu,), ()), phi, NETWORKS["alone"], X, y).mse()[-1] for mu in (0.02, 0.4)]
    assert trace.mse()[-1] < 1.05 * min(alone)


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.slow)])
def test_single_precision_keeps_double_matrices(engine):
    phi, network = features(), NETWORKS["ring"]
    X, y = make_stream(300, network.n_agents)
    single = lc.simulate(lc.Experts(), phi, network, X, y, engine=engine, dtype="float32")
    double = lc.simulate(lc.Experts(), phi, network, X, y, engine=engine)
    assert single.predictions.dtype == single.weights.dtype == np.float32
    assert single.state.learner["spread"].dtype == np.float64
    np.testing.assert_allclose(single.predictions, double.predictions, atol=2e-3)


def test_features_longer_than_one_make_no_step_too_long():
    learner = lc.Experts(steps=(0.5,), forgetting=())
    state = learner.init(1, 4)
    phi = np.full((1, 4), 5.0)
    moved, _ = learner.step(state, Sample(phi, np.ones(1), 1), NETWORKS["alone"].listen(np.zeros((1, 4))))
    np.testing.assert_allclose(moved.weights @ phi[0], 1.0)


def test_a_model_that_is_taken_over_moves_every_expert():
    learner, phi = lc.Experts(), features()
    X, y = make_stream(40, 1)
    state = lc.simulate(learner, phi, NETWORKS["alone"], X, y).state.learner
    before = type(learner.init(1, phi.n_features))(**state)
    target = np.linspace(-1, 1, phi.n_features)[None]
    after = learner.moved(before, target)
    mixed = np.einsum("ik,ikd->id", after.votes, after.models)
    np.testing.assert_allclose(mixed, target, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0.1}, "steps must be a list of numbers"),
        ({"steps": (0.1, -1)}, "steps must be larger than 0"),
        ({"forgetting": (1.5,)}, "forgetting must hold numbers up to 1"),
        ({"steps": (), "forgetting": ()}, "steps must not be empty"),
        ({"ridge": 0}, "ridge must be larger than 0"),
        ({"drift": "yes"}, "drift must be True or False"),
        ({"mixing": -1}, "mixing must be at least 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        lc.Experts(**arguments)


def test_parameters_survive_and_the_mixing_follows_the_experts():
    assert lc.Experts().mixing == 0.5
    assert lc.Experts(forgetting=()).mixing == 1.0
    assert lc.Experts().set_params(forgetting=()).mixing == 1.0
    assert lc.Experts(mixing=0.7).set_params(forgetting=()).mixing == 0.7
    assert lc.Experts(drift=True).memories == (0.99, 0.95)
