"""Features of one's own: the same as the house's where they compute the same, checked, and recognised by agents."""

import pickle

import numpy as np
import pytest
from agent_kit import carry
from sklearn.kernel_approximation import Nystroem

import laconic as lc

N, T = 4, 50
RING = lc.Network.ring(N)
PLAIN = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=6, bandwidth=0.5, seed=0)
NOT_UNIT = lc.RandomFeatures.automatic(np.random.default_rng(0).uniform(size=(20, 2)), n_frequencies=6)


class Frozen:
    """A small network whose weights stay what they are."""

    n_inputs, n_features = 2, 5

    def __init__(self, seed=0):
        self.first = np.random.default_rng(seed).normal(size=(2, 5))

    def __call__(self, rows):
        return np.tanh(rows @ self.first)


@pytest.fixture(scope="module")
def stream():
    X = np.random.default_rng(0).uniform(size=(T, N, 2))
    return X, np.sin(4 * X[..., 0]) + X[..., 1]


@pytest.mark.parametrize("learner", [lc.ODKLA(eta=2.0), lc.RFFDOKL(), lc.WaveRLS()], ids=lambda x: x.name)
def test_a_map_of_the_house_as_one_s_own_gives_the_same(stream, learner):
    own = lc.OwnFeatures(NOT_UNIT.__call__, n_inputs=2)
    for engine in ("reference", "compiled"):
        usual = lc.simulate(learner, NOT_UNIT, RING, *stream, engine=engine)
        trace = lc.simulate(learner, own, RING, *stream, engine=engine)
        np.testing.assert_allclose(trace.predictions, usual.predictions, rtol=0, atol=1e-10)
        assert trace.about["engine"] == engine


def test_transformers_and_networks_are_taken_as_they_are(stream):
    X, y = stream
    nystroem = Nystroem(gamma=4.0, n_components=7, random_state=0).fit(X[:5].reshape(-1, 2))
    for features, size in ((nystroem, 7), (Frozen(), 5)):
        trace = lc.simulate(lc.ODKLA(), features, RING, X, y, engine="reference")
        assert trace.weights.shape == (N, size)
        (swept,) = lc.sweep([lc.ODKLA()], features, RING, X, y, engine="reference")
        np.testing.assert_array_equal(swept.predictions, trace.predictions)
        blocks = lc.simulate(lc.ODKLA(), features, [(1, RING)], [(X[:20], y[:20]), (X[20:], y[20:])])
        np.testing.assert_allclose(blocks.predictions, trace.predictions, atol=1e-12)
    own = lc.OwnFeatures(Frozen())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own))(X), own(X))
    with pytest.raises(ValueError, match="features of its own"):
        trace.model()


def test_agents_compute_what_the_simulator_does_and_know_each_other_by_their_maps(stream):
    X, y = stream
    for learner in (lc.ODKLA(), lc.WaveRLS()):
        trace = lc.simulate(learner, Frozen(), lc.Network.path(2), X[:, :2], y[:, :2], engine="reference")
        agents = {n: lc.Agent(n, [o], Frozen(), learner, n_agents=2) for n, o in (("0", "1"), ("1", "0"))}
        for t in range(T):
            carry(agents)
            for k, agent in enumerate(agents.values()):
                found = agent.learn(X[t, k], y[t, k]).prediction
                assert found == pytest.approx(trace.predictions[t, k], abs=1e-10)
    one = lc.Agent("a", ["b"], Frozen(), lc.ODKLA(), n_agents=2)
    other = lc.Agent("b", ["a"], Frozen(seed=1), lc.ODKLA(), n_agents=2)
    carry({"a": one, "b": other})
    assert one.counters["refusals"].get("fingerprint", 0) + other.counters["refusals"].get("fingerprint", 0) > 0


def test_a_name_stands_for_the_map():
    named = [lc.OwnFeatures(Frozen(seed), name="mine") for seed in (0, 1)]
    assert named[0].mark() == named[1].mark() != lc.OwnFeatures(Frozen()).mark()
    assert lc.OwnFeatures(Frozen()).mark() == lc.OwnFeatures(Frozen()).mark() != lc.OwnFeatures(Frozen(1)).mark()


def test_what_is_no_map_is_refused(stream):
    X, y = stream

    class Wrong(Frozen):
        def __call__(self, rows):
            return np.full((len(rows), 4), np.nan)

    with pytest.raises(ValueError, match="must return real numbers of shape \\(n, 5\\)"):
        lc.simulate(lc.ODKLA(), Wrong(), RING, X, y)
    with pytest.raises(ValueError, match="finite numbers"):
        lc.OwnFeatures(lambda rows: np.full(rows.shape, np.inf), n_inputs=2)
    with pytest.raises(ValueError, match="n_inputs must be given"):
        lc.OwnFeatures(np.tanh)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="same for the same input"):
        lc.OwnFeatures(lambda rows: rng.normal(size=rows.shape), n_inputs=2)
    for wrong in (3, "gaussian", None, Frozen):
        with pytest.raises(ValueError, match="features must be a laconic RandomFeatures"):
            lc.simulate(lc.ODKLA(), wrong, RING, X, y)
    bad = X.copy()
    bad[7, 2, 0] = np.nan
    with pytest.raises(ValueError, match="in round 8 agent 2"):
        lc.simulate(lc.ODKLA(), Frozen(), RING, bad, y, engine="reference")


class Bare:
    """A map that says how many features it makes, and not how many inputs it takes."""

    n_features = 3

    def __call__(self, rows):
        return np.column_stack([rows, np.ones(len(rows))])


def test_how_many_inputs_a_map_takes_is_seen_from_the_stream(stream):
    X, y = stream
    full = lc.OwnFeatures(Bare(), n_inputs=2)
    expected = lc.simulate(lc.ODKLA(eta=2.0), full, RING, X, y, engine="reference").predictions
    for given in (X, [X[:, k] for k in range(N)]):
        labels = y if given is X else [y[:, k] for k in range(N)]
        found = lc.simulate(lc.ODKLA(eta=2.0), Bare(), RING, given, labels, engine="reference")
        np.testing.assert_array_equal(found.predictions, expected)
    (swept,) = lc.sweep([lc.ODKLA(eta=2.0)], Bare(), RING, X, y, engine="reference")
    np.testing.assert_array_equal(swept.predictions, expected)
    fitted = lc.DecentralizedKernelRegressor(n_agents=2, features=Bare()).fit(X.reshape(-1, 2), y.ravel())
    assert fitted.predict(X[0]).shape == (N,)


def test_who_cannot_see_it_is_told_what_to_say(stream):
    for run in (
        lambda: lc.Agent("a", ["b"], Bare(), lc.ODKLA(), n_agents=2),
        lambda: next(lc.stream(lc.ODKLA(), Bare(), RING, [stream])),
    ):
        with pytest.raises(ValueError, match="features must say how many inputs they take"):
            run()
    with pytest.raises(ValueError, match="features must be fitted"):
        lc.simulate(lc.ODKLA(), Nystroem(), RING, *stream)
