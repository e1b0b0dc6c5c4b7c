"""Metrics by hand, files that survive, runs that go on where they stopped."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from breadth import crossed
from conftest import CHANNELS, LEARNERS, NETWORKS, make_learner, make_stream
from scipy.optimize import minimize

import laconic as lc


@pytest.fixture
def run(features):
    X, y = make_stream(50, 6)
    y[3, 2] = y[20] = np.nan
    return lc.simulate(lc.QCODKLA(alpha=0.5, beta=0.9), features, NETWORKS["ring"], X, y, collective=True)


def test_mse_is_the_running_mean_over_rounds_and_agents(run):
    errors = [
        [(p - y) ** 2 for p, y in zip(ps, ys, strict=True) if not np.isnan(y)]
        for ps, ys in zip(run.predictions, run.labels, strict=True)
    ]
    for t in (0, 3, 19, 20, 21, 49):
        assert run.mse()[t] == pytest.approx(np.mean([e for row in errors[: t + 1] for e in row]), rel=1e-12)
        window = [e for row in errors[max(0, t - 4) : t + 1] for e in row]
        assert run.windowed_mse(5)[t] == pytest.approx(np.mean(window), rel=1e-9)
    np.testing.assert_allclose(run.windowed_mse(1000), run.mse(), rtol=1e-12)


def test_global_mse_scores_every_model_on_every_sample(features):
    """Kept by hand from runs of one round more each time."""
    X, y = make_stream(12, 4)
    network = lc.Network.ring(4)
    learner = lc.ODKLA(eta=1.0)
    whole = lc.simulate(learner, features, network, X, y, collective=True)
    models = [np.zeros((4, features.n_features))]
    models += [lc.simulate(learner, features, network, X[:t], y[:t]).weights for t in range(1, 12)]
    squares = [((model @ features(x).T - label) ** 2).mean() for model, x, label in zip(models, X, y, strict=True)]
    np.testing.assert_allclose(whole.global_mse(), np.cumsum(squares) / np.arange(1, 13), rtol=1e-10)
    with pytest.raises(ValueError, match="run it with collective=True"):
        lc.simulate(learner, features, network, X, y).global_mse()


def test_consensus_and_broadcast_error_by_hand(features):
    X, y = make_stream(15, 4)
    learner = lc.QCODKLA(alpha=0.5, beta=0.9)
    trace = lc.simulate(learner, features, lc.Network.ring(4), X, y)
    for t in (1, 7, 15):
        state = lc.simulate(learner, features, lc.Network.ring(4), X[:t], y[:t]).state
        assert trace.consensus()[t - 1] == pytest.approx(np.linalg.norm(state.weights - state.weights.mean(axis=0)))
        assert trace.broadcast_error()[t - 1] == pytest.approx(np.linalg.norm(state.weights - state.broadcast))


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_regret_against_the_best_model_in_hindsight(loss, features):
    X, y = make_stream(80, 3, binary=loss != "squared")
    y[4, 1] = np.nan
    ridge = 1e-3
    best = lc.offline.comparator(features, X, y, regularization=ridge, loss=loss)
    function = lc.losses.get(loss)
    phi = features(X)

    def total(theta):
        return np.nansum(function.value(phi @ theta, y)) + 80 * ridge * theta @ theta

    # No step in any direction, and no other solver, finds a better one.
    random = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            assert total(best.weights) <= total(best.weights + size * random.normal(size=22)) + 1e-9
    assert total(best.weights) <= minimize(total, best.weights, method="Powell", options={"maxiter": 3}).fun + 1e-5

    learner = lc.ODKLA(eta=2.0, regularization=ridge, loss=loss)
    network = lc.Network.ring(3)
    trace = lc.simulate(learner, features, network, X, y, collective=True)
    models = [np.zeros((3, 22))] + [lc.simulate(learner, features, network, X[:t], y[:t]).weights for t in range(1, 80)]
    own, everyone, ideal, ideal_everyone = np.zeros((4, 80))
    for t, model in enumerate(models):
        rows = ridge / 3 * (model**2).sum()
        own[t] = np.nansum(function.value((model * phi[t]).sum(axis=1), y[t])) + rows
        everyone[t] = np.nanmean(function.value(model @ phi[t].T, y[t]), axis=1).sum() + rows
        ideal[t] = np.nansum(function.value(phi[t] @ best.weights, y[t])) + ridge * best.weights @ best.weights
        ideal_everyone[t] = 3 * np.nanmean(function.value(phi[t] @ best.weights, y[t])) + ridge * (
            best.weights @ best.weights
        )
    np.testing.assert_allclose(trace.regret(best), np.cumsum(own - ideal), rtol=1e-8)
    np.testing.assert_allclose(trace.collective_regret(best), np.cumsum(everyone - ideal_everyone), rtol=1e-8)


def test_error_rate_counts_wrong_signs(features):
    X, y = make_stream(60, 4, binary=True)
    trace = lc.simulate(lc.ODKLA(eta=1.0, loss="logistic"), features, lc.Network.ring(4), X, y)
    assert trace.error_rate()[-1] == pytest.approx(np.mean((trace.predictions > 0) != (y > 0)))


@pytest.mark.parametrize(
    ("kind", "channel", "engine"),
    [
        *crossed(LEARNERS[:-1], CHANNELS, ["reference", "compiled"]),
        ("local", "dense", "reference"),
        ("local", "dense", "compiled"),
    ],
)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(kind, channel, engine, features, tmp_path):
    X, y = make_stream(40, 6)
    learner, network = make_learner(kind, channel=CHANNELS[channel]), NETWORKS["random"]
    whole = lc.simulate(learner, features, network, X, y, engine=engine)
    first = lc.simulate(learner, features, network, X[:17], y[:17], engine=engine)
    state = lc.Trace.load(first.save(tmp_path / "first.npz")).state
    rest = lc.simulate(learner, features, network, X[17:], y[17:], engine=engine, state=state)
    for name in ("predictions", "sent", "consensus_error", "energy", "replica_error", "saturated"):
        assert np.array_equal(getattr(whole, name)[17:], getattr(rest, name)), name
    assert set(whole.state.learner) == set(rest.state.learner)
    for name, array in whole.state.learner.items():
        assert np.array_equal(array, rest.state.learner[name]), name
    assert np.array_equal(whole.state.broadcast, rest.state.broadcast)
    assert rest.state.round == 40
    # The state that was passed in is still what it was.
    assert np.array_equal(first.state.weights, state.weights)


def test_any_cut_into_blocks_gives_the_same_bits(features):
    X, y = make_stream(100, 6)
    for learner in (make_learner("odkla"), lc.QCODKLA(alpha=0.5, beta=0.9)):
        whole = lc.simulate(learner, features, NETWORKS["ring"], X, y)
        for cuts in ([50], [1, 2, 3, 99], [33, 66], list(range(1, 100))):
            blocks = zip(np.split(X, cuts), np.split(y, cuts), strict=True)
            parts = lc.simulate(learner, features, NETWORKS["ring"], blocks)
            assert np.array_equal(whole.predictions, parts.predictions)
            assert np.array_equal(whole.labels, parts.labels)
            assert np.array_equal(whole.weights, parts.weights)
        last = list(lc.stream(learner, features, NETWORKS["ring"], zip(X[:, None], y[:, None], strict=True)))
        assert len(last) == 100
        assert np.array_equal(last[-1].weights, whole.weights)


@pytest.mark.parametrize("collective", [False, True])
def test_save_and_load(collective, features, tmp_path):
    X, y = make_stream(30, 6)
    dtype = "float64" if collective else "float32"
    for engine in ("reference", "compiled"):
        trace = lc.simulate(
            lc.QCODKLA(), features, NETWORKS["ring"], X, y, engine=engine, collective=collective, dtype=dtype
        )
        path = trace.save(tmp_path / f"{engine}.npz")
        again = lc.Trace.load(path)
        assert again.about == trace.about
        assert repr(again) == repr(trace)
        for name in ("predictions", "labels", "sent", "saturated", "consensus_error", "energy", "bits", "weights"):
            assert np.array_equal(getattr(again, name), getattr(trace, name), equal_nan=True), name
        assert (again.collective_square is None) == (not collective)
        assert set(again.info) == set(trace.info)
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_damaged_file_is_refused(run, tmp_path):
    path = run.save(tmp_path / "run.npz")
    whole = path.read_bytes()
    for damaged in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"\x93NUMPY" + whole[:50], b"{}", whole[:-100]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a complete laconic trace"):
            lc.Trace.load(path)
    np.savez(path, predictions=np.zeros(3))
    with pytest.raises(ValueError, match="is not a complete laconic trace"):
        lc.Trace.load(path)
    with pytest.raises(FileNotFoundError):
        lc.Trace.load(tmp_path / "absent.npz")


def test_a_failed_save_leaves_the_old_file(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space"):
        run.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_to_frame(run):
    frame = run.to_frame()
    assert frame.shape == (300, 6)
    row = frame.filter((pl.col("round") == 8) & (pl.col("agent") == 3)).row(0, named=True)
    assert row["prediction"] == run.predictions[7, 3]
    assert row["bits"] == run.bits[7, 3]
    assert frame["bits"].sum() == run.bits.sum()


def test_to_frame_of_several_outputs(features):
    X, y = np.random.default_rng(0).uniform(size=(20, 6, 3)), np.random.default_rng(1).uniform(size=(20, 6, 2))
    trace = lc.simulate(lc.WaveRLS(outputs=2), features, NETWORKS["ring"], X, y)
    frame = trace.to_frame()
    assert frame.columns == ["round", "agent", "label_0", "label_1", "prediction_0", "prediction_1", "sent", "bits"]
    row = frame.filter((pl.col("round") == 8) & (pl.col("agent") == 3)).row(0, named=True)
    assert (row["label_1"], row["prediction_1"]) == (y[7, 3, 1], trace.predictions[7, 3, 1])


def test_a_run_without_rounds(features, tmp_path):
    empty = lc.simulate(lc.QCODKLA(), features, NETWORKS["ring"], np.empty((0, 6, 3)), np.empty((0, 6)))
    assert empty.n_rounds == 0
    assert empty.mse().shape == (0,)
    assert "0 rounds" in repr(lc.Trace.load(empty.save(tmp_path / "empty.npz")))
    assert lc.simulate(lc.QCODKLA(), features, NETWORKS["ring"], iter(())).n_rounds == 0


def test_a_long_log_goes_to_disk_and_comes_back(monkeypatch, features):
    X, y = make_stream(200, 6)
    whole = lc.simulate(lc.QCODKLA(), features, NETWORKS["ring"], X, y, collective=True)
    monkeypatch.setattr("laconic.engine.log._IN_MEMORY", 1000)
    blocks = zip(np.split(X, 20), np.split(y, 20), strict=True)
    spilled = lc.simulate(lc.QCODKLA(), features, NETWORKS["ring"], blocks, collective=True)
    assert isinstance(spilled.predictions, np.memmap)
    for name in ("predictions", "labels", "sent", "saturated", "energy", "collective_loss"):
        assert np.array_equal(getattr(whole, name), getattr(spilled, name)), name
    assert np.array_equal(whole.mse(), spilled.mse())


@pytest.mark.parametrize("most", [1 << 26, 500])
def test_what_is_outside_in_some_blocks_only_is_where_it_was(monkeypatch, most):
    X, y = make_stream(40, 6)
    y = y * np.where(np.arange(40) < 20, 0.01, 9.0)[:, None]
    learner = lc.ODKLA(rho=0.1, eta=5.0, channel=lc.Channel(quantizer=lc.Quantizer(3, range=(-0.3, 0.3))))
    features = lc.RandomFeatures.gaussian(X.shape[2], 5, bandwidth=0.3, seed=0)
    whole = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    assert whole.saturated[:20].max() == 0 < whole.saturated[20:].max()
    monkeypatch.setattr("laconic.engine.log._IN_MEMORY", most)
    blocks = zip(np.split(X, 8), np.split(y, 8), strict=True)
    pieces = lc.simulate(learner, features, NETWORKS["ring"], blocks)
    assert np.array_equal(whole.saturated, pieces.saturated)


MEMORY = """
import resource, sys
import numpy as np, laconic as lc

def blocks(n):
    X = np.random.default_rng(0).uniform(size=(1000, 10, 3))
    for _ in range(n):
        yield X, X[..., 0]

features = lc.RandomFeatures.gaussian(3, 10)
network = lc.Network.ring(10)
lc.simulate(lc.ODKLA(), features, network, blocks(10))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
trace = lc.simulate(lc.ODKLA(), features, network, blocks(int(sys.argv[1])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, trace.n_rounds)
"""


@pytest.mark.slow
def test_memory_stays_constant():
    """Ten million samples leave 290 MB of record; the process grows by its 64 MB buffer and little else."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, "1000"], capture_output=True, text=True, check=True, env=os.environ
    )
    grown, rounds = map(int, done.stdout.split())
    assert rounds == 1_000_000
    unit = 1024 if sys.platform == "linux" else 1
    assert grown * unit < 160 * 2**20


@pytest.mark.parametrize("method", ["regret", "collective_regret"])
@pytest.mark.parametrize("wrong", [None, "best", 3.0, np.zeros(50), lc.offline.Comparator, lc.Network.ring(3)])
def test_regret_needs_a_comparator(run, method, wrong):
    with pytest.raises(ValueError, match="comparator must be a laconic.offline.Comparator, got"):
        getattr(run, method)(wrong)


def test_regret_needs_the_comparator_of_the_same_stream(run, features):
    for n_rounds, n_agents in ((49, 6), (50, 5)):
        other = lc.offline.comparator(features, *make_stream(n_rounds, n_agents))
        message = f"comparator must be that of this stream: it saw .{n_rounds}, {n_agents}., the run had .50, 6."
        for method in (run.regret, run.collective_regret):
            with pytest.raises(ValueError, match=message):
                method(other)
