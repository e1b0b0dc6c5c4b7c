"""robust="clip": what passes of each neighbour's pull, in both engines, against the equations written out once more."""

import numpy as np
import pytest
from breadth import EVERYTHING, each
from conftest import CHANNELS, NETWORKS, make_stream

import laconic as lc
from laconic._clipping import weigh

ROBUST = {
    "odkla": lambda **options: lc.ODKLA(rho=0.3, eta=1.0, **options),
    "dokl": lambda **options: lc.DOKL(rho=0.3, eta=1.0, **options),
    "combine-then-adapt": lambda **options: lc.RFFDOKL(0.4, **options),
    "adapt-then-combine": lambda **options: lc.RFFDOKL(0.4, "adapt-then-combine", **options),
}


def assert_close(one, other, tolerance=1e-12):
    one, other = np.asarray(one), np.asarray(other)
    assert np.abs(one - other).max() <= tolerance * max(1.0, np.abs(one).max())


# --------------------------------------------------------------------------------------------------------------------
# What passes


def test_who_pulls_no_harder_than_most_is_heard_in_full():
    rng = np.random.default_rng(0)
    for n in (2, 3, 4, 7):
        apart, shares = rng.normal(size=(2, n, 5))
        apart /= np.linalg.norm(apart, axis=1)[:, None]
        shares /= np.linalg.norm(shares, axis=1)[:, None] / rng.uniform(1.0, 1.5, size=(n, 1))
        taken, kept = weigh(apart, shares, np.zeros(5), np.zeros(5), 1.5)
        assert (taken == 1).all() and (kept == 1).all()


def test_lengths_beyond_the_limit_fall_with_the_square():
    apart = np.array([[1.0], [2.0], [-4.0], [100.0]])  # the lower median is 2
    shares = np.array([[1.0], [-2.0], [3.0], [600.0]])
    taken, kept = weigh(apart, shares, np.ones(1), np.ones(1), 1.5)
    np.testing.assert_allclose(kept, [1, 1, 1, (3 / 600) ** 2])
    np.testing.assert_allclose(taken, [1, 1, 3 / 4, (3 / 600) ** 2 * 3 / 100])
    # However far it goes: what it adds to the dual becomes less, not more.
    assert kept[3] * 600 < weigh(apart, shares / [[1], [1], [1], [10]], np.ones(1), np.ones(1), 1.5)[1][3] * 60


def test_nothing_depends_on_the_order_or_the_unit():
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 6):
        apart, shares = rng.normal(size=(2, n, 4)) * rng.uniform(0.1, 10, size=(2, n, 1))
        said, total = rng.normal(size=(2, 4))
        taken, kept = weigh(apart, shares, said, total, 1.2)
        order = rng.permutation(n)
        for found, expected in zip(weigh(apart[order], shares[order], said, total, 1.2), (taken, kept), strict=True):
            assert np.array_equal(found, expected[order])
        for found, expected in zip(weigh(8 * apart, 8 * shares, 8 * said, 8 * total, 1.2), (taken, kept), strict=True):
            assert np.array_equal(found, expected)


def test_of_two_the_nearer_is_believed():
    taken, kept = weigh(np.array([[1e9], [0.1]]), np.array([[1e9], [0.1]]), np.ones(1), np.ones(1), 1.5)
    assert taken[1] == kept[1] == 1 and kept[0] * 1e9 < 1e-6


def test_one_neighbour_alone_is_compared_with_what_one_has_said_oneself():
    near, far, said, total = np.array([[0.1]]), np.array([[1e6]]), np.ones(1), 50 * np.ones(1)
    assert weigh(near, 9 * near, said, total, 1.5) == (1, 1)
    taken, kept = weigh(far, 50 * far, said, total, 1.5)
    np.testing.assert_allclose(kept, (75 / 50e6) ** 2)
    np.testing.assert_allclose(taken, kept * 1.5e-6)
    # Who has not said anything, as an agent without labels, follows the only one there is.
    assert weigh(far, far, np.zeros(1), np.zeros(1), 1.5) == (1, 1)


def test_nobody_and_nothing_are_no_special_cases():
    taken, kept = weigh(np.zeros((0, 3)), np.zeros((0, 3)), np.ones(3), np.ones(3), 1.5)
    assert taken.shape == kept.shape == (0,)
    taken, kept = weigh(np.zeros((3, 2)), np.zeros((3, 2)), np.ones(2), np.ones(2), 1.5)
    assert (taken == 1).all() and (kept == 1).all()


# --------------------------------------------------------------------------------------------------------------------
# Engines


def by_hand(network, phi, y, rho, eta, reach, n_rounds):
    """Robust ODKLA without a channel and without a ridge, agent by agent and neighbour by neighbour."""
    n, size = y.shape[1], phi.shape[2]
    models, sums = [np.zeros(size) for _ in range(n)], [np.zeros(size) for _ in range(n)]
    forces = [np.zeros(size) for _ in range(n)]
    around = [[b if a == i else a for a, b in network.edges.tolist() if i in (a, b)] for i in range(n)]

    def limited(lengths, own):
        compared = sorted([*lengths, own] if len(lengths) == 1 else lengths)
        limit = reach * compared[(len(compared) - 1) // 2]
        return [limit / length if length > limit else 1.0 for length in lengths]

    predictions = []
    for t in range(n_rounds):
        predictions.append([float(models[i] @ phi[t, i]) for i in range(n)])
        for i in range(n):
            gradient = 2 * (predictions[-1][i] - y[t, i]) * phi[t, i]
            models[i] = models[i] - (gradient + forces[i]) / (eta + 2 * rho * len(around[i]))
        sums = [sums[i] + models[i] for i in range(n)]
        for i in range(n):
            pulls, shares = [models[i] - models[j] for j in around[i]], [sums[i] - sums[j] for j in around[i]]
            near = limited([np.linalg.norm(p) for p in pulls], np.linalg.norm(models[i]))
            far = limited([np.linalg.norm(s) for s in shares], np.linalg.norm(sums[i]))
            forces[i] = np.zeros(size)
            for p, s, a, b in zip(pulls, shares, near, far, strict=True):
                forces[i] = forces[i] + rho * (a * b**2 * p + b**2 * s)
    return np.array(predictions)


@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "alone"])
def test_both_engines_compute_what_the_equations_say(network, features):
    X, y = make_stream(80, 6)
    expected = by_hand(NETWORKS[network], features(X.reshape(-1, 3)).reshape(80, 6, -1), y, 0.3, 1.0, 1.2, 80)
    learner = lc.ODKLA(rho=0.3, eta=1.0, regularization=0.0, robust="clip", reach=1.2)
    for engine in ("reference", "compiled"):
        trace = lc.simulate(learner, features, NETWORKS[network], X, y, engine=engine)
        assert_close(expected, trace.predictions)
    unclipped = lc.simulate(learner.set_params(robust=None), features, NETWORKS[network], X, y)
    assert np.abs(unclipped.predictions - expected).max() > 1e-6  # something was clipped


@pytest.mark.parametrize(("network", "kind"), each(NETWORKS, ROBUST))
def test_engines_agree_with_robust_on(kind, network, features):
    graph = NETWORKS[network]
    X, y = make_stream(40, graph.n_agents)
    y[5, 0] = y[17, -1] = np.nan
    for channel in CHANNELS.values():
        learner = ROBUST[kind](channel=channel, robust="clip")
        slow, fast = (lc.simulate(learner, features, graph, X, y, engine=e) for e in ("reference", "compiled"))
        assert np.array_equal(slow.sent, fast.sent) and np.array_equal(slow.bits, fast.bits)
        assert_close(slow.predictions, fast.predictions)
        for name, array in slow.state.learner.items():
            assert_close(array, fast.state.learner[name])


@pytest.mark.parametrize("kind", ROBUST)
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_reach_that_nobody_comes_near_changes_nothing(kind, engine, features):
    X, y = make_stream(60, 6)
    for channel in (lc.Channel(), CHANNELS["adaptive"]):  # where nobody is silent: who is, is at no distance
        one = lc.simulate(ROBUST[kind](channel=channel), features, NETWORKS["complete"], X, y, engine=engine)
        learner = ROBUST[kind](channel=channel, robust="clip", reach=1e12)
        other = lc.simulate(learner, features, NETWORKS["complete"], X, y, engine=engine)
        assert_close(one.predictions, other.predictions, 1e-10)


@pytest.mark.parametrize("kind", ROBUST)
def test_single_precision_follows_double(kind, features):
    X, y = make_stream(200, 6)
    double = lc.simulate(ROBUST[kind](robust="clip"), features, NETWORKS["random"], X, y)
    for engine in ("reference", "compiled"):
        single = lc.simulate(
            ROBUST[kind](robust="clip"), features, NETWORKS["random"], X, y, dtype="float32", engine=engine
        )
        assert single.weights.dtype == np.float32 and single.state.learner["sums"].dtype == np.float64
        np.testing.assert_allclose(single.predictions, double.predictions, atol=1e-4)


@pytest.mark.parametrize("kind", ROBUST)
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(kind, engine, features, tmp_path):
    X, y = make_stream(60, 6)
    learner = ROBUST[kind](channel=CHANNELS["both"], robust="clip")
    whole = lc.simulate(learner, features, NETWORKS["random"], X, y, engine=engine)
    lc.simulate(learner, features, NETWORKS["random"], X[:30], y[:30], engine=engine).save(tmp_path / "half")
    first = lc.Trace.load(tmp_path / "half")
    rest = lc.simulate(learner, features, NETWORKS["random"], X[30:], y[30:], engine=engine, state=first.state)
    assert np.array_equal(whole.predictions[30:], rest.predictions)
    with pytest.raises(ValueError, match="state comes from another learner"):
        lc.simulate(ROBUST[kind](), features, NETWORKS["random"], X[30:], y[30:], engine=engine, state=first.state)


@pytest.mark.parametrize("kind", [*ROBUST, "qc-odkla"] if EVERYTHING else ["adapt-then-combine", "qc-odkla"])
def test_robust_learners_keep_all_the_rules(kind):
    make = ROBUST.get(kind, lambda **options: lc.QCODKLA(alpha=0.5, beta=0.95, **options))
    lc.checks.check_learner(make(robust="clip"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"robust": "trim"}, "robust must be"),
        ({"robust": True}, "robust must be"),
        ({"robust": "clip", "reach": 0.5}, "reach must be at least 1"),
        ({"reach": "far"}, "reach must be a number"),
        ({"reach": float("nan")}, "reach must be"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments, said):
    for make in (lc.ODKLA, lc.QCODKLA, lc.DOKL, lc.RFFDOKL):
        with pytest.raises(ValueError, match=said):
            make(**arguments)
