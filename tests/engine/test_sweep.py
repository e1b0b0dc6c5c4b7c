"""A sweep gives the bits of single runs, whoever does the work: threads, processes or a cluster."""

import pickle

import numpy as np
import pytest
from breadth import each
from conftest import CHANNELS, LEARNERS, NETWORKS, make_learner, make_stream
from joblib import parallel_config

import laconic as lc
from laconic.engine import make_engine, sweeping

COLUMNS = (
    "predictions",
    "labels",
    "sent",
    "saturated",
    "consensus_error",
    "energy",
    "replica_error",
    "collective_square",
    "collective_loss",
)


def assert_same_bits(one, other):
    for name in COLUMNS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True), name
    assert set(one.info) == set(other.info)
    for name, values in one.info.items():
        assert np.array_equal(values, other.info[name]), name
    assert one.state.round == other.state.round
    assert set(one.state.learner) == set(other.state.learner)
    for name, array in one.state.learner.items():
        assert np.array_equal(array, other.state.learner[name]), name
    assert np.array_equal(one.state.broadcast, other.state.broadcast)


@pytest.fixture
def short_chunks(monkeypatch):
    """Seventeen chunks of 300 rounds instead of one, so that engines travel to and fro."""
    monkeypatch.setattr("laconic.engine.samples._CHUNK_ROWS", 6 * 18)


def some_learners():
    learners = {kind: make_learner(kind, channel=CHANNELS["both"]) for kind in LEARNERS}
    learners["dense"] = make_learner("odkla")
    learners["growing"] = lc.ODKLA(rho=0.3, eta=lc.schedules.SqrtGrowth(0.5))
    return learners


def assert_sweep_is_simulate(features, backend, collective=True, dtype="float64", kinds=None, n_rounds=300):
    X, y = make_stream(n_rounds, 6)
    y[3, 2] = y[-50] = np.nan
    learners = {kind: learner for kind, learner in some_learners().items() if kinds is None or kind in kinds}
    with parallel_config(backend=backend):
        swept = lc.sweep(learners, features, NETWORKS["random"], X, y, n_jobs=2, collective=collective, dtype=dtype)
    assert list(swept) == list(learners)
    for kind, learner in learners.items():
        alone = lc.simulate(learner, features, NETWORKS["random"], X, y, collective=collective, dtype=dtype)
        assert alone.n_rounds == n_rounds
        assert_same_bits(swept[kind], alone)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_sweep_has_the_bits_of_simulate_under_every_backend(backend, features, short_chunks):
    assert_sweep_is_simulate(features, backend)


@pytest.mark.slow
def test_sweep_in_processes_in_single_precision(features, short_chunks):
    assert_sweep_is_simulate(features, "loky", collective=False, dtype="float32")


@pytest.mark.slow
def test_sweep_on_a_dask_cluster(features, short_chunks):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster),
    ):
        assert_sweep_is_simulate(features, "dask", kinds=["odkla", "combine-then-adapt", "growing"], n_rounds=90)


@pytest.mark.slow
def test_sweep_on_ray(features, short_chunks):
    joblib_on_ray = pytest.importorskip("ray.util.joblib", reason="Ray is not installed")
    joblib_on_ray.register_ray()
    assert_sweep_is_simulate(features, "ray")


@pytest.mark.slow
@pytest.mark.parametrize("most_lent", [2**28, 1])
def test_sweep_of_large_chunks_in_processes(most_lent, monkeypatch):
    """Features of more than a megabyte reach a process as a memory map; pools are renewed when they hold too many."""
    monkeypatch.setattr(sweeping, "_MOST_LENT", most_lent)
    monkeypatch.setattr("laconic.engine.samples._CHUNK_ROWS", 6 * 150)
    features = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=100, bandwidth=0.6, seed=4)
    X, y = make_stream(450, 6)
    learners = [make_learner("odkla"), lc.QCODKLA(alpha=0.5, beta=0.9)]
    for backend in ("loky", "multiprocessing"):
        with parallel_config(backend=backend):
            swept = lc.sweep(learners, features, NETWORKS["ring"], X, y, n_jobs=2)
        for trace, learner in zip(swept, learners, strict=True):
            assert_same_bits(trace, lc.simulate(learner, features, NETWORKS["ring"], X, y))


class Own(lc.Learner):
    """A learner of one's own: averages, then a gradient step."""

    def init(self, n_agents, n_features):
        return lc.Local().init(n_agents, n_features)

    def step(self, state, sample, heard):
        moved = state.weights + 0.5 * heard.mixture
        slope = self.loss.slope((moved * sample.phi).sum(axis=1), sample.label)
        return state._replace(weights=moved - 0.3 * slope[:, None] * sample.phi), {"slope": slope}


@pytest.mark.slow
def test_learners_of_ones_own_and_reference_engines_in_processes(features, short_chunks):
    X, y = make_stream(200, 6)
    learners = [Own(channel=CHANNELS["both"]), make_learner("dokl", channel=CHANNELS["both"])]
    alone = [lc.simulate(learner, features, NETWORKS["ring"], X, y, engine="reference") for learner in learners]
    for backend in ("threading", "loky", "multiprocessing"):
        with parallel_config(backend=backend):
            swept = lc.sweep(learners, features, NETWORKS["ring"], X, y, n_jobs=2, engine="reference")
        for one, other in zip(swept, alone, strict=True):
            assert_same_bits(one, other)


@pytest.mark.slow
def test_divergence_is_noticed_in_the_same_round_under_every_backend(features, short_chunks):
    """Its yardstick, the largest label so far, is no part of a run's state and must travel all the same."""
    X, y = make_stream(300, 6)
    y[0] *= 1e6
    learners = {"stable": lc.Local(step=0.3), "diverges": lc.Local(step=1.15)}
    with pytest.raises(lc.Diverged) as caught:
        lc.simulate(learners["diverges"], features, NETWORKS["ring"], X, y)
    assert caught.value.round > 2 * 18
    for backend in ("threading", "loky", "multiprocessing"):
        with parallel_config(backend=backend):
            swept = lc.sweep(learners, features, NETWORKS["ring"], X, y, n_jobs=2)
        assert [trace.diverged for trace in swept.values()] == [False, True]
        assert swept["stable"].n_rounds == 300
        assert swept["diverges"].n_rounds == caught.value.round - 1
        assert np.array_equal(swept["diverges"].predictions, caught.value.trace.predictions)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pickled_engine_goes_on_with_the_same_bits(engine, dtype, features):
    X, y = make_stream(60, 6)
    for kind, channel in each(LEARNERS, CHANNELS):
        learner = make_learner(kind, channel=CHANNELS[channel])
        whole, first = (make_engine(learner, features, NETWORKS["random"], engine, dtype) for _ in range(2))
        expected = whole.advance(X, y)
        first.advance(X[:23], y[:23])
        again = pickle.loads(pickle.dumps(first))
        chunk = again.advance(X[23:], y[23:])
        assert again.round == 60
        for name, column in expected.columns.items():
            assert np.array_equal(chunk.columns[name], column[23:]), (kind, name)
        for name, array in whole.state().learner.items():
            assert np.array_equal(again.state().learner[name], array), (kind, name)


def test_a_worker_that_returns_nothing_is_an_error(features, monkeypatch):
    X, y = make_stream(30, 6)
    call = [lc.Local()], features, NETWORKS["ring"], X, y
    monkeypatch.setattr(sweeping, "_advance", lambda engine, phi, y: None)
    with pytest.raises(RuntimeError, match="a worker returned None instead of the rounds of Local"):
        lc.sweep(*call)

    def forgetful(engine, phi, y):
        copy = pickle.loads(pickle.dumps(engine))
        return sweeping._Part(engine, copy.advance(phi, y, mapped=True), 0.0)

    monkeypatch.setattr(sweeping, "_advance", forgetful)
    with pytest.raises(RuntimeError, match="an engine that stands at round 0 instead of 30"):
        lc.sweep(*call)

    def lazy(engine, phi, y):
        return sweeping._Part(engine, engine.advance(phi[:10], y[:10], mapped=True), 0.0)

    monkeypatch.setattr(sweeping, "_advance", lazy)
    with pytest.raises(RuntimeError, match="a worker returned 10 of 30 rounds"):
        lc.sweep(*call)


def test_read_only_data_is_learned_from(features):
    X, y = make_stream(30, 6)
    expected = lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y)
    X.flags.writeable = y.flags.writeable = False
    again = lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y)
    assert np.array_equal(expected.predictions, again.predictions)


@pytest.mark.parametrize(
    ("learners", "message"),
    [
        ([], "learners must hold at least one learner"),
        ({}, "learners must hold at least one learner"),
        (None, "learners must be a list or a dict of learners, got None"),
        (lc.ODKLA(), "learners must be a list or a dict of learners"),
        ("odkla", "learners must be a list or a dict of learners"),
        ([lc.ODKLA(), "local"], "learners must hold laconic Learners only, found 'local'"),
    ],
)
def test_learners_of_a_sweep_are_checked(learners, message, features):
    X, y = make_stream(5, 6)
    with pytest.raises(ValueError, match=message):
        lc.sweep(learners, features, NETWORKS["ring"], X, y)


@pytest.mark.parametrize(("n_jobs", "message"), [(0, "n_jobs must not be 0"), ("all", "n_jobs must be a whole number")])
def test_workers_of_a_sweep_are_checked(n_jobs, message, features):
    X, y = make_stream(5, 6)
    with pytest.raises(ValueError, match=message):
        lc.sweep([lc.ODKLA()], features, NETWORKS["ring"], X, y, n_jobs=n_jobs)
