"""Networks that change: what agents with edges that come and go compute, in both engines, and through saved states."""

import pickle

import numpy as np
import pytest
from agent_kit import carry

import laconic as lc
from laconic.engine.shares import potentials

N, T = 6, 60
RING = lc.Network.ring(N)
CROSS = lc.Network.from_edges(N, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4), (0, 3)])
PARTS = lc.Network.from_edges(N, [(0, 1), (1, 2), (3, 4)], split=True)
PLAN = [(1, RING), (11, CROSS), (18, PARTS), (30, RING), (31, CROSS), (45, RING)]


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(T, N, 2))
    return X, np.sin(4 * X[..., 0]) + X[..., 1] + 0.1 * rng.standard_normal((T, N))


FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=7, bandwidth=0.5, seed=0)


def at(t):
    return [network for start, network in PLAN if start <= t][-1]


def run_agents(learner, X, y, networks):
    """Agents in lockstep that know all neighbours they ever have, of which some are gone."""
    ever = sorted({tuple(edge) for network in networks.values() for edge in network.edges.tolist()})
    around = {i: [str(a + b - i) for a, b in ever if i in (a, b)] for i in range(N)}
    agents = {str(i): lc.Agent(str(i), around[i], FEATURES, learner, n_agents=N, engine="reference") for i in range(N)}
    there = set(ever)

    def lost(letter):
        return tuple(sorted(map(int, letter[:2]))) not in there

    predictions = np.empty(y.shape)
    for t in range(1, len(y) + 1):
        wanted = {tuple(edge) for edge in networks[t].edges.tolist()}
        if there != wanted:
            if t > 1:  # what was said is with those who were there
                carry(agents, lost)
            for event, edges in (("disconnected", there - wanted), ("connected", wanted - there)):
                for i, j in sorted(edges):
                    getattr(agents[str(i)], event)(str(j))
                    getattr(agents[str(j)], event)(str(i))
            there = wanted
        carry(agents, lost)
        for i in range(N):
            predictions[t - 1, i] = agents[str(i)].learn(X[t - 1, i], y[t - 1, i]).prediction
    carry(agents, lost)
    for agent in agents.values():
        agent.end_round()
    return agents, predictions


@pytest.mark.parametrize(
    "learner",
    [
        lc.ODKLA(rho=0.3, eta=1.0),
        lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.97),
        lc.DOKL(rho=0.2, eta=1.5),
    ],
    ids=lambda learner: learner.name,
)
def test_a_run_is_what_agents_compute_whose_edges_come_and_go(stream, learner):
    X, y = stream
    networks = {t: at(t) for t in range(1, T + 1)}
    agents, predictions = run_agents(learner, X, y, networks)
    for engine in ("reference", "compiled"):
        trace = lc.simulate(learner, FEATURES, PLAN, X, y, engine=engine)
        np.testing.assert_allclose(trace.predictions, predictions, rtol=0, atol=1e-10)
        for i in range(N):
            np.testing.assert_allclose(trace.weights[i], agents[str(i)].weights, rtol=0, atol=1e-10)
            np.testing.assert_allclose(trace.state.duals[i], agents[str(i)].duals, rtol=0, atol=1e-10)
        assert trace.about["engine"] == engine


@pytest.mark.parametrize(
    "learner",
    [lc.RFFDOKL(), lc.RFFDOKL(order="adapt-then-combine", listen="spoken"), lc.Local(), lc.Experts()],
    ids=["combine", "spoken", "local", "experts"],
)
def test_both_engines_agree_and_networks_are_those_of_their_rounds(stream, learner):
    X, y = stream
    runs = [lc.simulate(learner, FEATURES, PLAN, X, y, engine=engine) for engine in ("reference", "compiled")]
    np.testing.assert_allclose(runs[0].predictions, runs[1].predictions, rtol=0, atol=1e-11)
    state, parts = None, []
    for start, stop in ((0, 10), (10, 17), (17, 29), (29, 30), (30, 44), (44, T)):
        network = at(start + 1)
        part = lc.simulate(learner, FEATURES, network, X[start:stop], y[start:stop], engine="reference", state=state)
        state = part.state
        parts.append(part.predictions)
    np.testing.assert_array_equal(np.concatenate(parts), runs[0].predictions)


def test_a_list_a_function_and_pairs_say_the_same(stream):
    X, y = stream
    learner = lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.97)
    pairs = lc.simulate(learner, FEATURES, PLAN, X, y, engine="reference")
    listed = lc.simulate(learner, FEATURES, [at(t) for t in range(1, T + 1)], X, y, engine="reference")
    asked = lc.simulate(learner, FEATURES, at, X, y, engine="reference")
    swept = lc.sweep([learner], FEATURES, at, X, y, engine="reference")[0]
    blocks = lc.simulate(learner, FEATURES, at, [(X[:25], y[:25]), (X[25:], y[25:])], engine="reference")
    for other in (listed, asked, swept, blocks):
        np.testing.assert_array_equal(other.predictions, pairs.predictions)
        np.testing.assert_array_equal(other.state.duals, pairs.state.duals)
    assert np.array_equal(pairs.degrees, [at(t).degrees for t in range(1, T + 1)])
    assert "changing" in pairs.about["network"]


def test_a_network_that_does_not_change_is_the_usual_run_to_the_bit(stream):
    X, y = stream
    learner = lc.ODKLA(rho=0.3, eta=1.0)
    usual = lc.simulate(learner, FEATURES, RING, X, y, engine="reference")
    for network in ([(1, RING)], lambda t: lc.Network.ring(N)):
        trace = lc.simulate(learner, FEATURES, network, X, y, engine="reference")
        np.testing.assert_array_equal(trace.predictions, usual.predictions)
        np.testing.assert_array_equal(trace.state.duals, usual.state.duals)


def test_stop_save_and_go_on_anywhere(stream, tmp_path):
    X, y = stream
    learner = lc.ODKLA(rho=0.3, eta=1.0)
    whole = lc.simulate(learner, FEATURES, PLAN, X, y, engine="reference")
    for cut in (10, 20, 31):
        first = lc.simulate(learner, FEATURES, at, X[:cut], y[:cut], engine="reference")
        state = lc.Trace.load(first.save(tmp_path / "half.npz")).state
        rest = lc.simulate(learner, FEATURES, at, X[cut:], y[cut:], engine="reference", state=state)
        np.testing.assert_allclose(rest.predictions, whole.predictions[cut:], rtol=0, atol=1e-12)
    # A network that stays from now on still knows what was set aside.
    last = lc.simulate(learner, FEATURES, PLAN, X[:44], y[:44], engine="reference").state
    rest = lc.simulate(learner, FEATURES, RING, X[44:], y[44:], engine="reference", state=last)
    np.testing.assert_allclose(rest.predictions, whole.predictions[44:], rtol=0, atol=1e-12)
    loaded = lc.Trace.load(whole.save(tmp_path / "whole.npz"))
    np.testing.assert_array_equal(loaded.link_bits, whole.link_bits)
    np.testing.assert_array_equal(loaded.degrees, whole.degrees)


def test_who_meets_is_told_in_full_and_that_is_counted(stream):
    X, y = stream
    trace = lc.simulate(lc.ODKLA(), FEATURES, PLAN, X, y, engine="reference")
    greetings = trace.info["greetings"]
    assert set(np.flatnonzero(greetings.sum(axis=1)) + 1) == {11, 30, 31, 45}
    new = lc.Network.from_edges(N, [(0, 3), (1, 4)], split=True)  # of the second network, beside those of the ring
    np.testing.assert_array_equal(greetings[10], new.degrees * 32 * FEATURES.n_features)
    np.testing.assert_array_equal(trace.link_bits, trace.bits * trace.degrees + greetings)
    assert not lc.simulate(lc.Local(), FEATURES, PLAN, X, y, engine="reference").info["greetings"].any()


def test_duals_cancel_and_models_come_nearer_although_the_graph_is_never_whole():
    """Two halves of a path take turns, eight rounds each: no moment is connected, and they differ less than alone."""
    halves = [[(0, 1), (2, 3)], [(1, 2)]]
    networks = [lc.Network.from_edges(4, half, split=True) for half in halves]
    X = np.random.default_rng(0).uniform(size=(3000, 4, 1))
    y = np.sin(3 * X[..., 0]) + np.arange(4) * 0.1
    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=4, bandwidth=0.5)
    trace = lc.simulate(
        lc.ODKLA(rho=0.3, eta=lc.schedules.SqrtGrowth(0.5)), features, lambda t: networks[t // 8 % 2], X, y
    )
    assert np.abs(trace.state.duals.sum(axis=0)).max() < 1e-10
    alone = lc.simulate(lc.Local(), features, networks[0], X, y)
    assert trace.consensus()[-1] < 0.7 * alone.consensus()[-1]


def test_potentials_are_those_of_the_pseudoinverse():
    rng = np.random.default_rng(0)
    for network in (RING, CROSS, PARTS):
        laplacian = network.laplacians[0].toarray()
        grown = laplacian @ rng.normal(size=(N, 3))
        found = potentials(network, grown)
        np.testing.assert_allclose(laplacian @ found, grown, atol=1e-12)
        exact = np.linalg.pinv(laplacian) @ grown
        i, j = network.edges.T
        np.testing.assert_allclose(found[i] - found[j], exact[i] - exact[j], atol=1e-12)


def test_an_engine_that_changes_can_be_sent_to_another_process(stream):
    X, y = stream
    from laconic._timetable import Timetable
    from laconic.engine.run import make_engine

    make = lambda: make_engine(lc.ODKLA(rho=0.3, eta=1.0), FEATURES, Timetable(PLAN), "reference")  # noqa: E731
    one, other = make(), make()
    one.advance(X[:25], y[:25])
    other.advance(X[:25], y[:25])
    other = pickle.loads(pickle.dumps(other))
    assert other.round == 25
    a, b = one.advance(X[25:], y[25:]), other.advance(X[25:], y[25:])
    np.testing.assert_allclose(a.columns["predictions"], b.columns["predictions"], atol=1e-12)


def test_what_cannot_change_says_so(stream):
    X, y = stream
    for learner, match in ((lc.WaveRLS(), "waves run over one tree"), (lc.ODKLA(robust="clip"), "robust='clip'")):
        with pytest.raises(ValueError, match=f"network must stay the same.*{match}"):
            lc.simulate(learner, FEATURES, PLAN, X, y)
    with pytest.raises(ValueError, match="network must be connected for WaveRLS"):
        lc.simulate(lc.WaveRLS(), FEATURES, PARTS, X, y)
    for wrong in ([], "ring", [(2, RING)], [(1, RING), (1, CROSS)], [(1, RING), (5, 3)], 7):
        with pytest.raises(ValueError, match="network must"):
            lc.simulate(lc.ODKLA(), FEATURES, wrong, X, y)
    with pytest.raises(ValueError, match="same agents in every round: 6 at first, 5 in round 9"):
        lc.simulate(lc.ODKLA(), FEATURES, lambda t: RING if t < 9 else lc.Network.ring(5), X, y, engine="reference")
    with pytest.raises(ValueError, match="same agents in every round"):
        lc.simulate(lc.ODKLA(), FEATURES, [(1, RING), (9, lc.Network.ring(5))], X, y)
    with pytest.raises(ValueError, match="it ends before round 4"):
        lc.simulate(lc.ODKLA(), FEATURES, [RING, CROSS, RING], X, y, engine="reference")
    with pytest.raises(ValueError, match="must return a Network for round 1"):
        lc.simulate(lc.ODKLA(), FEATURES, lambda t: None, X, y)


def test_a_schedule_of_rho(stream):
    """Against the equations, written down once more."""
    X, y = stream

    def rho(t):
        return 0.1 + 0.02 * t

    trace = lc.simulate(lc.ODKLA(rho=rho, eta=1.0), FEATURES, RING, X, y)
    assert trace.about["engine"] == "reference"
    phi, L = FEATURES(X), RING.laplacians[0].toarray()
    theta, gamma = np.zeros((N, FEATURES.n_features)), np.zeros((N, FEATURES.n_features))
    for t in range(1, T + 1):
        prediction = (theta * phi[t - 1]).sum(axis=1)
        np.testing.assert_allclose(trace.predictions[t - 1], prediction, atol=1e-12)
        gradient = 2 * (prediction - y[t - 1])[:, None] * phi[t - 1] + 2e-4 / N * theta
        theta = theta - (gradient + rho(t) * L @ theta + gamma) / (1.0 + 2 * rho(t) * 2)
        gamma = gamma + rho(t) * L @ theta
    constant = lc.simulate(lc.DOKL(rho=lambda t: 0.3), FEATURES, RING, X, y)
    usual = lc.simulate(lc.DOKL(rho=0.3), FEATURES, RING, X, y, engine="reference")
    np.testing.assert_array_equal(constant.predictions, usual.predictions)
    with pytest.raises(ValueError, match="rho must be a number with robust"):
        lc.ODKLA(rho=rho, robust="clip")
    with pytest.raises(ValueError, match="number for rho on agents"):
        lc.Agent("a", ["b"], FEATURES, lc.ODKLA(rho=rho), n_agents=2, engine="reference")
    with pytest.raises(ValueError, match="has no kernels"):
        lc.simulate(lc.ODKLA(rho=rho), FEATURES, RING, X, y, engine="compiled")
    assert "raise" in str(lc.ODKLA(rho=rho).advice())


def test_streams_of_unequal_length(stream):
    X, y = stream
    lengths = [60, 50, 60, 1, 30, 0]
    holes = np.where(np.arange(T)[:, None] < np.array(lengths), y, np.nan)
    inputs = np.where(np.isnan(holes)[..., None], 0.0, X)
    ragged = [X[:n, i] for i, n in enumerate(lengths)], [y[:n, i].tolist() for i, n in enumerate(lengths)]
    expected = lc.simulate(lc.ODKLA(), FEATURES, RING, inputs, holes, engine="reference")
    found = lc.simulate(lc.ODKLA(), FEATURES, RING, *ragged, engine="reference")
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    even = lc.simulate(
        lc.ODKLA(), FEATURES, RING, [X[:40, i] for i in range(N)], [y[:40, i] for i in range(N)], engine="reference"
    )
    np.testing.assert_array_equal(even.labels, y[:40])


def test_unequal_streams_that_do_not_fit_are_told_whose_they_are(stream):
    X, y = stream
    lengths = [60, 50, 60, 1, 30, 0]
    inputs, labels = [X[:n, i] for i, n in enumerate(lengths)], [y[:n, i] for i, n in enumerate(lengths)]

    def refused(inputs, labels, words):
        for run in (
            lambda: lc.simulate(lc.ODKLA(), FEATURES, RING, inputs, labels, engine="reference"),
            lambda: lc.sweep([lc.ODKLA()], FEATURES, RING, inputs, labels, seeds=2, engine="reference"),
        ):
            with pytest.raises(ValueError, match=words) as error:
                run()
            assert "inhomogeneous" not in str(error.value)

    refused(inputs[:-1], labels, "lists of 6 arrays, one for each agent, got 5 and 6")
    refused(inputs, [*labels[:3], labels[4], labels[3], labels[5]], "stream of agent 3")
    refused([*inputs[:5], np.ones((4, 9))], [*labels[:5], np.ones(4)], r"agent 5.*got \(4, 9\) and \(4,\)")
    refused([x[:, 0] for x in inputs], labels, "agent 0")
    refused([*inputs[:5], [["a", "b"]]], [*labels[:5], [1.0]], "agent 5, must be numbers")


def test_seeds_put_unequal_streams_into_other_orders(stream):
    """Each agent's rows stay its own, and an agent that has few has as few."""
    X, y = stream
    lengths = [60, 50, 60, 1, 30, 0]
    inputs, labels = [X[:n, i] for i, n in enumerate(lengths)], [y[:n, i] for i, n in enumerate(lengths)]
    (runs,) = lc.sweep([lc.ODKLA()], FEATURES, RING, inputs, labels, seeds=2, engine="reference")
    first, second = (run.labels for run in runs)
    assert not np.array_equal(first, second, equal_nan=True)
    for found in (first, second):
        for agent, own in enumerate(labels):
            np.testing.assert_array_equal(np.sort(found[: len(own), agent]), np.sort(own))
            assert np.isnan(found[len(own) :, agent]).all()


@pytest.mark.parametrize("wrong", [-1.0, np.nan, "a"])
def test_a_schedule_of_rho_that_makes_no_sense_is_named(stream, wrong):
    X, y = stream
    with pytest.raises(ValueError, match=r"^rho\(3\) must be"):
        lc.simulate(lc.ODKLA(rho=lambda t: 0.5 if t < 3 else wrong), FEATURES, RING, X, y)


def test_agents_in_the_plane():
    network = lc.Network.within([[0, 0], [1, 0], [0, 1], [5, 5]], radius=1.1, split=True)
    assert network.edges.tolist() == [[0, 1], [0, 2]]
    assert network.n_parts == 2
    again = pickle.loads(pickle.dumps(network))
    assert again == network and again.n_parts == 2
    with pytest.raises(ValueError, match="must be connected"):
        lc.Network.within([[0, 0], [9, 9]], radius=1.0)
    with pytest.raises(ValueError, match="positions must have shape"):
        lc.Network.within([[0, 0, 0]], radius=1.0)
