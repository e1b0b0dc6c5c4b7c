"""The map that needs no bandwidth, against its rule written down once more; in every engine and at every agent."""

import pickle

import numpy as np
import pytest
from breadth import each
from conftest import CHANNELS, KINDS, LEARNERS, NETWORKS, make_learner
from hypothesis import given
from hypothesis import strategies as st
from probes import call

import laconic as lc
from laconic.native.features import map_features
from laconic.protocol.fingerprint import fingerprint


def by_the_rule(X_first, X, n_frequencies, seed, linear=True):
    """The rule, input by input and frequency by frequency, in Python's own numbers."""
    kept, middle, spread = [], [], []
    for j, column in enumerate(np.asarray(X_first, dtype=float).reshape(-1, X.shape[-1]).T):
        low, median, high = (float(q) for q in np.percentile(column, (25, 50, 75)))
        reach = 20 * (high - low) / 1.349
        limit = farthest_tame([abs(v - median) for v in column.tolist()])
        values = [v if abs(v - median) <= limit else median for v in column.tolist()]
        values = [min(max(v, median - reach), median + reach) if reach else v for v in values]
        if len(set(values)) > 1:
            mean = sum(values) / len(values)
            kept.append(j)
            middle.append(mean)
            spread.append((sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5)
    d = len(kept)
    widths = [0.5, 1, 2, 4] + [0.25] * (d <= 5) + [0.125] * (d <= 2)
    z = np.random.default_rng(seed).standard_normal((n_frequencies, d))
    rows = []
    for x in X:
        u = [(float(x[j]) - m) / s for j, m, s in zip(kept, middle, spread, strict=True)]
        whole = sum(s * s for s in spread) ** 0.5
        views = [float(np.arcsinh(v)) / d**0.5 for v in u], [v * s / whole for v, s in zip(u, spread, strict=True)]
        phases = []
        for frequency in range(n_frequencies):
            width = widths[(frequency // 2) % len(widths)]
            view = views[frequency % 2]
            phases.append(sum(a * b for a, b in zip(z[frequency].tolist(), view, strict=True)) / width)
        row = [np.cos(p) / n_frequencies**0.5 for p in phases] + [np.sin(p) / n_frequencies**0.5 for p in phases]
        if linear:
            row += [*(min(max(v, -5.0), 5.0) / d**0.5 for v in u), 1.0]
        rows.append(row)
    return np.array(rows)


def farthest_tame(distances):
    """The largest distance below the first gap of fifty root mean squares, if at most one in eight lies beyond."""
    distances = sorted(distances)
    for place in range(len(distances) - max(1, len(distances) // 8), len(distances)):
        smaller = [one for one in distances[:place] if one > 0]
        if len(smaller) >= 5 and distances[place] > 50 * (sum(one**2 for one in smaller) / len(smaller)) ** 0.5:
            return distances[place - 1]
    return distances[-1]


def raw(n_rows, n_inputs, seed=0):
    """Inputs as people have them: of all sizes, one constant, one with a heavy tail, one mostly zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_inputs)) * 10.0 ** rng.integers(-3, 5, n_inputs) + rng.normal(size=n_inputs) * 100
    X[:, 0] = 0.1
    if n_inputs > 2:
        X[:, 1] = np.exp(3 * rng.normal(size=n_rows))
        X[:, 2] = (rng.uniform(size=n_rows) < 0.2) * 7.0
    return X


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(2, 7), (3, 50), (6, 1), (8, 3), (30, 20)])
def test_it_is_the_rule(n_inputs, n_frequencies, linear):
    X = raw(40, n_inputs)
    X[3, -1] += 1e6 * np.abs(X[:, -1]).max()  # beyond the fence
    features = lc.RandomFeatures.automatic(X[:16], n_frequencies, seed=5, linear=linear)
    expected = by_the_rule(X[:16], X, n_frequencies, 5, linear)
    assert features.n_features == expected.shape[1]
    usual = np.arange(40) != 3  # whose phase is so large that it has lost its digits
    np.testing.assert_allclose(features(X)[usual], expected[usual], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(map_features(features, X)[:, : features.n_features], features(X), atol=1e-8)
    norms = (features(X) ** 2).sum(axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-12) if not linear else np.testing.assert_array_less(1.99, norms)


def test_rows_of_rounds_and_agents_are_pooled():
    X = raw(24, 4)
    one = lc.RandomFeatures.automatic(X)
    other = lc.RandomFeatures.automatic(X.reshape(8, 3, 4))
    assert np.array_equal(one(X), other(X))


def test_the_map_is_its_kernel():
    X = raw(12, 6)
    features = lc.RandomFeatures.automatic(X, n_frequencies=40_000)
    estimate = features(X) @ features(X).T
    assert np.abs(features.kernel(X, X) - estimate).max() < 5 / np.sqrt(40_000)
    mixed = lc.RandomFeatures.mixture(3, 40_000, bandwidths=(0.3, 3.0), seed=2)
    Z = np.random.default_rng(0).uniform(size=(20, 3))
    gaps = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    exact = 0.5 * np.exp(-gaps / (2 * 0.3**2)) + 0.5 * np.exp(-gaps / (2 * 3.0**2))
    np.testing.assert_allclose(mixed.kernel(Z, Z), exact, rtol=1e-12)
    assert np.abs(mixed(Z) @ mixed(Z).T - exact).max() < 5 / np.sqrt(40_000)


def test_columns_that_do_not_vary_are_ignored_but_must_be_finite():
    X = raw(20, 5)
    features = lc.RandomFeatures.automatic(X)
    assert 0 not in features.scaling.columns
    other = X.copy()
    other[:, 0] = 1e200
    assert np.array_equal(features(X), features(other))
    other[4, 0] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite, but X\[4, 0\] is nan"):
        features(other)
    with pytest.raises(ValueError, match="too large"):
        map_features(features, other)
    nothing = lc.RandomFeatures.automatic(np.ones((5, 3)), n_frequencies=4)
    assert nothing.n_features == 9
    np.testing.assert_allclose(nothing(X[:2, :3]), [[0.5] * 4 + [0.0] * 4 + [1.0]] * 2)
    np.testing.assert_allclose(map_features(nothing, X[:2, :3])[:, :9], nothing(X[:2, :3]))


def test_asinh_is_accurate_to_its_last_digits():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=50_000), 10.0 ** rng.uniform(-300, 300, 50_000), [0.0, 2.0**28, 1e308]])
    values = np.concatenate([values, -values])
    out = np.empty_like(values)
    call("asinh", values.size, values, out, result=None)
    exact = np.arcsinh(values.astype(np.longdouble))
    error = np.abs(out - exact)
    assert float((error / np.maximum(np.abs(exact), 5e-324)).max()) < 6e-16
    beyond = np.array([np.inf, -np.inf, np.nan])
    call("asinh", beyond.size, beyond, out, result=None)
    np.testing.assert_array_equal(out[:3], beyond)


def stream(n_rounds=30, n_agents=6, n_inputs=4, binary=False):
    X = raw(n_rounds * n_agents, n_inputs).reshape(n_rounds, n_agents, n_inputs)
    rows = X.reshape(-1, n_inputs)
    y = np.tanh((X[..., -1] - rows[:, -1].mean()) / rows[:, -1].std()) + 0.3 * X[..., 2] / 7
    return X, np.where(y > 0, 1.0, -1.0) if binary else y


@pytest.mark.parametrize(("kind", "loss"), each(LEARNERS, ["squared", "logistic"]))
def test_engines_agree(kind, loss):
    X, y = stream(binary=loss == "logistic")
    y[5, 0] = np.nan
    features = lc.RandomFeatures.automatic(X[:8], n_frequencies=9)
    channel = CHANNELS["both"] if kind != "local" else None
    learner = make_learner(kind, loss, channel)
    runs = [lc.simulate(learner, features, NETWORKS["ring"], X, y, engine=e) for e in ("reference", "compiled")]
    assert np.array_equal(runs[0].sent, runs[1].sent)
    np.testing.assert_allclose(runs[0].predictions, runs[1].predictions, rtol=1e-10, atol=1e-11)
    half = lc.simulate(learner, features, NETWORKS["ring"], X[:15], y[:15])
    rest = lc.simulate(learner, features, NETWORKS["ring"], X[15:], y[15:], state=half.state)
    assert np.array_equal(rest.predictions, runs[1].predictions[15:])
    (swept,) = lc.sweep([learner], features, NETWORKS["ring"], X, y, n_jobs=1)
    assert np.array_equal(swept.predictions, runs[1].predictions)


def test_waves_run_over_it():
    X, y = stream(60)
    features = lc.RandomFeatures.automatic(X[:8], n_frequencies=9)
    runs = [lc.simulate(lc.WaveRLS(), features, NETWORKS["ring"], X, y, engine=e) for e in ("reference", "compiled")]
    np.testing.assert_allclose(runs[0].predictions, runs[1].predictions, rtol=1e-7, atol=1e-8)
    assert runs[1].windowed_mse(20)[-1] < 0.1 * np.var(y)


FIRST_ORDER = [kind for kind in LEARNERS if kind not in ("proximal", "dokl") and not kind.startswith("experts")]


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(FIRST_ORDER)))
def test_a_first_order_step_never_overshoots(seed, kind):
    """With a step of 1/4 of the squared loss an agent alone moves half way to its label, or less, never beyond."""
    rng = np.random.default_rng(seed)
    X = 10.0 ** rng.uniform(-2, 2) * rng.standard_cauchy(size=(12, 1, 3))
    features = lc.RandomFeatures.automatic(X[:6], n_frequencies=5)
    learner = lc.Local(step=0.25, regularization=0.0) if kind == "local" else KINDS[kind][0](regularization=0.0)
    alone = lc.Network.from_edges(1, [])
    before = lc.simulate(learner, features, alone, X[:11], np.ones((11, 1)))
    twice = lc.simulate(learner, features, alone, X[[11, 11]], np.full((2, 1), 3.0), state=before.state)
    first, second = (float(p) - 3.0 for p in twice.predictions[:, 0])
    assert abs(second) <= abs(first) + 1e-12
    assert second * first >= -1e-12 * first**2


def test_the_exact_step_is_the_minimiser():
    """DOKL's model after a round has no gradient left, whatever the norm of phi."""
    X, y = stream(1)
    features = lc.RandomFeatures.automatic(stream(8)[0], n_frequencies=6)
    phi, alone = features(X[0, 3]), lc.Network.from_edges(1, [])
    learner = lc.DOKL(rho=0.3, eta=0.7, regularization=0.05)
    trace = lc.simulate(learner, features, alone, X[:, 3:4], y[:, 3:4])
    theta = trace.weights[0]
    gradient = 2 * (theta @ phi - y[0, 3]) * phi + 0.1 * theta + 0.7 * theta
    assert phi @ phi > 2
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_agents_compute_what_the_simulator_does(engine):
    X, y = stream(12, n_agents=2)
    features = lc.RandomFeatures.automatic(X[:4], n_frequencies=8)
    learner = lc.QCODKLA(rho=0.2, eta=1.0, alpha=0.1, beta=0.9)
    expected = lc.simulate(learner, features, lc.Network.path(2), X, y)
    names = ("ann", "ben")
    agents = {a: lc.Agent(a, [b], features, learner, n_agents=2, engine=engine) for a, b in (names, names[::-1])}
    got = {name: [] for name in names}
    for _ in range(200):
        for k, name in enumerate(names):
            agent = agents[name]
            if agent.ready and len(got[name]) < 12:
                row = len(got[name])
                got[name].append(agent.learn(X[row, k], y[row, k]).prediction)
            for message in agent.outgoing():
                agents[message.to].receive(message.data, name)
    found = np.array([got[name] for name in names]).T
    assert found.shape == (12, 2)
    if engine == "compiled":
        assert np.array_equal(found, expected.predictions)
    np.testing.assert_allclose(found, expected.predictions, rtol=1e-9, atol=1e-11)
    for name in names:
        with pytest.raises(ValueError, match="x must be finite"):
            agents[name].predict([np.nan, *X[0, 0, 1:]])


def test_the_scaling_is_part_of_the_fingerprint_of_files_and_of_pickles(tmp_path):
    X, y = stream()
    features = lc.RandomFeatures.automatic(X[:8], n_frequencies=9)

    def mark(features):
        return fingerprint(features, lc.ODKLA(), 3, np.dtype("float64"))

    centre, scale = features.scaling.centre, features.scaling.scale
    same = lc.RandomFeatures.scaled(**features.settings())
    nudged = np.nextafter(centre, np.inf)
    others = [
        lc.RandomFeatures.scaled(nudged, scale, 9),
        lc.RandomFeatures.scaled(centre, scale * (1 + 1e-15), 9),
        lc.RandomFeatures.scaled(centre, scale, 9, linear=False),
        lc.RandomFeatures(features.frequencies),
    ]
    assert mark(features) == mark(same)
    assert len({mark(other) for other in (features, *others)}) == 5
    trace = lc.simulate(lc.Local(), features, NETWORKS["ring"], X, y)
    trace.save(tmp_path / "run.npz")
    made = lc.RandomFeatures.scaled(**lc.Trace.load(tmp_path / "run.npz").about["scaled"])
    for copy in (made, same, pickle.loads(pickle.dumps(features))):
        assert np.array_equal(copy(X), features(X))
        assert repr(copy) == repr(features)


def test_in_single_precision_large_inputs_are_shifted_before_digits_are_lost():
    rng = np.random.default_rng(0)
    X = rng.normal(loc=[2.0**20, 0.0], size=(200, 2)).astype(np.float32)
    features = lc.RandomFeatures.automatic(X)
    np.testing.assert_allclose(features(X), features(X.astype(np.float64)), atol=1e-6)
    assert features(X).dtype == np.float32
    single = map_features(features, X, np.float32)[:, : features.n_features]
    np.testing.assert_allclose(single, features(X), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.RandomFeatures.automatic(np.zeros(3)), "X_first must have shape"),
        (lambda: lc.RandomFeatures.automatic(np.zeros((0, 3))), "at least one row"),
        (lambda: lc.RandomFeatures.automatic([[1.0, np.nan]]), r"X_first must be finite, but X_first\[0, 1\] is nan"),
        (lambda: lc.RandomFeatures.automatic([["red"]]), "X_first must hold real numbers"),
        (lambda: lc.RandomFeatures.automatic([[1e200], [-1e200]]), "X_first holds values too large"),
        (lambda: lc.RandomFeatures.automatic([[1.0], [2.0]], 0), "n_frequencies must be at least 1"),
        (lambda: lc.RandomFeatures.scaled([0.0, 1.0], [1.0]), r"scale must be as long as centre \(2\), got 1"),
        (lambda: lc.RandomFeatures.scaled([0.0], [-1.0]), "scale must be at least 0"),
        (lambda: lc.RandomFeatures([[1.0]], linear=True), "linear must be False"),
        (lambda: lc.RandomFeatures.mixture(2, 5, bandwidths=()), "bandwidths must be numbers larger than 0"),
        (lambda: lc.RandomFeatures.mixture(2, 5, bandwidths=(1.0, 0.0)), "bandwidths must be numbers larger than 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
