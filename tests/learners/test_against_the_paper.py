"""Every algorithm against a formulation that shares no line with it: the paper's own, before any simplification."""

import numpy as np
import pytest
from breadth import crossed, each
from conftest import CHANNELS, NETWORKS, make_learner, make_stream

import laconic as lc

ETA, RHO, RIDGE = 1.0, 0.3, 1e-3


def incidence(network):
    """S+ and S-: a column for each of the 2r directed arcs (section II)."""
    arcs = [(i, j) for i, j in network.edges] + [(j, i) for i, j in network.edges]
    plus, minus = np.zeros((2, network.n_agents, len(arcs)))
    for column, (i, j) in enumerate(arcs):
        plus[i, column] += 1
        plus[j, column] += 1
        minus[i, column] += 1
        minus[j, column] -= 1
    return plus, minus


def full_admm(network, phi, y, linearized):
    """Equations (odkla_primal) to (odkla_dual) as they stand: Theta, Z and all 4r multipliers. Squared loss."""
    n_rounds, n_agents, n_features = phi.shape
    plus, minus = incidence(network)
    A = 0.5 * np.vstack([plus.T + minus.T, plus.T - minus.T])
    B = np.vstack([-np.eye(plus.shape[1])] * 2)
    theta = np.zeros((n_agents, n_features))
    Z, multipliers = 0.5 * plus.T @ theta, np.zeros((len(A), n_features))
    models = []
    for t in range(n_rounds):
        models.append(theta.copy())
        constant = ETA * theta - A.T @ multipliers - RHO * A.T @ B @ Z
        quadratic = ETA * np.eye(n_agents) + RHO * A.T @ A
        if linearized:
            slope = 2 * ((theta * phi[t]).sum(axis=1) - y[t])
            gradient = slope[:, None] * phi[t] + 2 * RIDGE / n_agents * theta
            theta = np.linalg.solve(quadratic, constant - gradient)
        else:
            # A'A is diagonal, so the exact step is one dense linear system for each agent.
            for i in range(n_agents):
                outer = 2 * np.outer(phi[t, i], phi[t, i])
                system = outer + (quadratic[i, i] + 2 * RIDGE / n_agents) * np.eye(n_features)
                theta[i] = np.linalg.solve(system, constant[i] + 2 * y[t, i] * phi[t, i])
        Z = np.linalg.solve(RHO * B.T @ B, -B.T @ multipliers - RHO * B.T @ A @ theta)
        multipliers = multipliers + RHO * (A @ theta + B @ Z)
    return np.array(models), theta


@pytest.mark.parametrize(
    ("network", "kind", "engine"),
    crossed([name for name in NETWORKS if name != "alone"], ["odkla", "dokl"], ["reference", "compiled"]),
)
def test_admm_is_the_paper_s_before_it_was_simplified(engine, kind, network, features):
    graph = NETWORKS[network]
    X, y = make_stream(60, graph.n_agents)
    phi = features(X)
    models, last = full_admm(graph, phi, y, linearized=kind == "odkla")
    trace = lc.simulate(make_learner(kind), features, graph, X, y, engine=engine)
    expected = (models * phi).sum(axis=2)
    np.testing.assert_allclose(trace.predictions, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(trace.weights, last, rtol=1e-12, atol=1e-12 * np.abs(last).max())


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("order", ["combine-then-adapt", "adapt-then-combine"])
def test_diffusion_is_a_product_with_a_stochastic_matrix(order, network, features):
    graph = NETWORKS[network]
    X, y = make_stream(60, graph.n_agents)
    phi = features(X)
    mixing = graph.metropolis_weights()
    theta = np.zeros((graph.n_agents, features.n_features))
    expected = []
    for t in range(len(y)):
        expected.append((theta * phi[t]).sum(axis=1))
        start = mixing @ theta if order == "combine-then-adapt" else theta
        error = (start * phi[t]).sum(axis=1) - y[t]
        moved = start - 0.4 * (2 * error[:, None] * phi[t] + 2 * RIDGE / graph.n_agents * start)
        theta = moved if order == "combine-then-adapt" else mixing @ moved
    trace = lc.simulate(make_learner(order), features, graph, X, y)
    np.testing.assert_allclose(trace.predictions, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trace.weights, theta, rtol=1e-12, atol=1e-12)


class Neighbour:
    """An agent of Algorithm 2, for itself alone: it knows its own rows and keeps replicas of its neighbours'."""

    def __init__(self, neighbours, n_features, n_agents, quantizer, censor):
        self.theta = np.zeros(n_features)
        self.gamma = np.zeros(n_features)
        self.replicas = {j: np.zeros(n_features) for j in neighbours}
        self.own = np.zeros(n_features)
        self.n_agents, self.quantizer, self.censor = n_agents, quantizer, censor

    def learn(self, phi, y, t):
        degree = len(self.replicas)
        gradient = 2 * (self.theta @ phi - y) * phi + 2 * RIDGE / self.n_agents * self.theta
        pull = sum((self.own - replica for replica in self.replicas.values()), np.zeros_like(self.theta))
        self.theta = self.theta - (gradient + RHO * pull + self.gamma) / (ETA + 2 * RHO * degree)
        h = self.theta - self.own
        if self.censor is not None and np.linalg.norm(h) < self.censor.alpha * self.censor.beta**t:
            return None
        if self.quantizer is None:
            return h, None
        scale = np.float32(np.abs(h).max())
        if float(scale) < np.abs(h).max():
            scale = np.nextafter(scale, np.float32(np.inf))
        width = 2 * float(scale) / 2**self.quantizer.bits
        codes = [min(2**self.quantizer.bits - 1, max(0, int(np.floor((entry + float(scale)) / width)))) for entry in h]
        return codes, scale

    def apply(self, replica, message):
        codes, scale = message
        if scale is None:
            return replica + codes
        width = 2 * float(scale) / 2**self.quantizer.bits
        return replica + np.array([-float(scale) + (code + 0.5) * width for code in codes])

    def dual(self):
        for replica in self.replicas.values():
            self.gamma = self.gamma + RHO * (self.own - replica)


@pytest.mark.parametrize(
    ("network", "channel"),
    each([name for name in NETWORKS if name != "alone"], ["dense", "censor", "adaptive", "both"]),
)
def test_algorithm_2_between_agents_that_only_exchange_messages(network, channel, features):
    graph, line = NETWORKS[network], CHANNELS[channel]
    X, y = make_stream(60, graph.n_agents)
    phi = features(X)
    agents = [
        Neighbour(
            graph.neighbours[graph.starts[i] : graph.starts[i + 1]],
            features.n_features,
            graph.n_agents,
            line.quantizer,
            line.censor,
        )
        for i in range(graph.n_agents)
    ]
    expected, sent = np.zeros(y.shape), np.zeros(y.shape, dtype=bool)
    for t in range(len(y)):
        expected[t] = [agent.theta @ phi[t, i] for i, agent in enumerate(agents)]
        messages = [agent.learn(phi[t, i], y[t, i], t + 1) for i, agent in enumerate(agents)]
        sent[t] = [message is not None for message in messages]
        for i, agent in enumerate(agents):
            if messages[i] is not None:
                agent.own = agent.apply(agent.own, messages[i])
            for j in agent.replicas:
                if messages[j] is not None:
                    agent.replicas[j] = agent.apply(agent.replicas[j], messages[j])
        for agent in agents:
            agent.dual()
        # Every replica of an agent has the bits of its own copy, everywhere, always.
        assert all(np.array_equal(agents[j].own, copy) for agent in agents for j, copy in agent.replicas.items())
    for engine in ("reference", "compiled"):
        trace = lc.simulate(make_learner("odkla", channel=line), features, graph, X, y, engine=engine)
        assert np.array_equal(trace.sent, sent)
        np.testing.assert_allclose(trace.predictions, expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(trace.state.duals, [agent.gamma for agent in agents], rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(trace.state.broadcast, [agent.own for agent in agents], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["odkla", "dokl", "combine-then-adapt", "adapt-then-combine", "local"])
def test_one_agent_is_the_centralised_learner(kind, features):
    X, y = make_stream(80, 1)
    phi = features(X)[:, 0]
    theta = np.zeros(features.n_features)
    expected = []
    for x, label in zip(phi, y[:, 0], strict=True):
        expected.append(theta @ x)
        gradient = 2 * (theta @ x - label) * x + 2 * RIDGE * theta
        if kind == "odkla":
            theta = theta - gradient / ETA
        elif kind == "dokl":
            system = 2 * np.outer(x, x) + (ETA + 2 * RIDGE) * np.eye(len(x))
            theta = np.linalg.solve(system, ETA * theta + 2 * label * x)
        else:
            theta = theta - 0.4 * gradient
    trace = lc.simulate(make_learner(kind), features, NETWORKS["alone"], X, y)
    np.testing.assert_allclose(trace.predictions[:, 0], expected, rtol=1e-12, atol=1e-13)
    assert not trace.sent.any()
    assert trace.bits.sum() == 0


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_without_censor_and_quantizer_it_is_odkla_to_the_bit(engine, features):
    X, y = make_stream(100, 6)
    args = (features, NETWORKS["random"], X, y)
    plain = lc.simulate(lc.ODKLA(rho=0.3, eta=1.0), *args, engine=engine)
    through_nothing = lc.simulate(lc.ODKLA(rho=0.3, eta=1.0, channel=lc.Channel(None, None)), *args, engine=engine)
    never_silent = lc.simulate(
        lc.ODKLA(rho=0.3, eta=1.0, channel=lc.Channel(censor=lc.Censor(0.0, 0.5))), *args, engine=engine
    )
    for other in (through_nothing, never_silent):
        assert np.array_equal(plain.predictions, other.predictions)
        assert np.array_equal(plain.weights, other.weights)
        assert np.array_equal(plain.state.duals, other.state.duals)
    named = lc.simulate(lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.95, bits=3), *args, engine=engine)
    spelled = lc.simulate(lc.ODKLA(rho=0.3, eta=1.0, channel=CHANNELS["both"]), *args, engine=engine)
    assert np.array_equal(named.predictions, spelled.predictions)
    assert np.array_equal(named.sent, spelled.sent)


@pytest.mark.parametrize(("kind", "channel", "network"), crossed(["odkla", "dokl"], CHANNELS, NETWORKS))
def test_the_duals_sum_to_zero(kind, channel, network, features):
    graph = NETWORKS[network]
    X, y = make_stream(150, graph.n_agents)
    trace = lc.simulate(make_learner(kind, channel=CHANNELS[channel]), features, graph, X, y)
    size = max(1.0, np.abs(trace.state.duals).max())
    assert np.abs(trace.state.duals.sum(axis=0)).max() < 1e-12 * size


def test_the_broadcast_error_stays_within_lemma_1(features):
    """With the norm (not its square), alpha (not alpha beta), and a range that holds every innovation."""
    X, y = make_stream(300, 6)
    censor, quantizer = lc.Censor(0.5, 0.95), lc.Quantizer(6, range=(-2.0, 2.0))
    trace = lc.simulate(make_learner("odkla", channel=lc.Channel(censor, quantizer)), features, NETWORKS["ring"], X, y)
    assert trace.saturated.max() == 0
    width = 4.0 / quantizer.cells
    t = np.arange(1, 301)
    rounding = np.sqrt(features.n_features) * width / 2
    bound = np.sqrt(6) * np.maximum(censor.alpha * censor.beta**t, rounding)
    assert (trace.broadcast_error() <= bound * (1 + 1e-12)).all()
    assert trace.broadcast_error()[:20].max() > np.sqrt(6) * rounding  # the censor's part is really used
