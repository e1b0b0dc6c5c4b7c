"""One agent's rounds in NumPy and by kernels: the same replicas to the bit, the same model to rounding."""

import numpy as np
import pytest
from breadth import crossed
from conftest import CHANNELS, LEARNERS, NETWORKS, make_learner, make_stream

import laconic as lc
from laconic.engine import endings
from laconic.engine.one import make_row

DTYPES = [np.dtype("float64"), np.dtype("float32")]


def make_rows(learner, features, dtype, n_neighbours=2):
    return [make_row(learner, features, 5, n_neighbours, dtype, engine) for engine in ("compiled", "reference")]


@pytest.mark.parametrize(
    ("kind", "channel", "dtype"),
    [*crossed(LEARNERS[:-1], CHANNELS, DTYPES), *(("local", "dense", dtype) for dtype in DTYPES)],
    ids=str,
)
def test_both_ways_compute_the_same_rounds(kind, channel, dtype, features):
    """Fed with the same samples and the same messages of two neighbours."""
    rows = make_rows(make_learner(kind, channel=CHANNELS[channel]), features, dtype)
    X, y = make_stream(60, 1)
    y[7] = np.nan
    random = np.random.default_rng(1)
    quantizer = CHANNELS[channel].quantizer
    # In single precision the last digit decides about a code now and then, and that is a cell.
    atol = 1e-12 if dtype == np.float64 else 1e-4 if quantizer is None else 0.5
    for row in rows:
        row.listen_to((1, 2), (0.25, 1 / 3))
    for t in range(1, 61):
        h = (0.1 * random.standard_normal(features.n_features)).astype(dtype)
        ended = []
        for row in rows:
            row.sample[:] = X[t - 1]
            status, prediction = row.learn(float(y[t - 1, 0]), t)
            assert status == endings.FINISHED
            spoken = row.speak(t)
            if quantizer is None:
                assert row.hear_model(1 + t % 2, h)
            else:
                data = np.frombuffer(quantizer.encode(h), dtype=np.uint8)
                adaptive = getattr(quantizer, "adaptive", False)
                scale = float(data[:4].view("<f4")[0]) if adaptive else 0.0
                assert row.hear(1 + t % 2, data[4 if adaptive else 0 :], scale)
            row.listen()
            ended.append((prediction, spoken[:2]))
        if dtype == np.float64 or not row.memory.size:  # where a code decides what the next one is worth, see above
            assert ended[0][1] == ended[1][1]
        assert abs(ended[0][0] - ended[1][0]) <= atol
    one, other = rows
    np.testing.assert_array_equal(one.replicas[1:], other.replicas[1:])
    np.testing.assert_allclose(one.shares[1:, : one.n_features], other.shares[1:], rtol=0, atol=60 * 10 * atol)
    np.testing.assert_allclose(one.replicas[0], other.replicas[0], rtol=0, atol=10 * atol)
    assert one.parts == other.parts
    for part in one.parts:
        np.testing.assert_allclose(one.part(part), other.part(part), rtol=0, atol=10 * atol)
    if kind != "local":
        np.testing.assert_allclose(
            one.pull[0], other.pull[1 if one.heeds or "combine" in kind else 0], rtol=0, atol=10 * atol
        )


@pytest.mark.parametrize("channel", CHANNELS)
def test_either_way_goes_on_from_the_other(channel, features):
    """A checkpoint of a compiled agent serves where there is no compiler, and the other way around."""
    learner = make_learner("odkla", channel=CHANNELS[channel])
    rows = make_rows(learner, features, DTYPES[0], n_neighbours=1)
    X, y = make_stream(40, 1)
    for row in rows:
        row.listen_to((1,), (0.5,))
        for t in range(1, 21):
            step(row, X[t - 1], y[t - 1], t)
    for row, other in (rows, rows[::-1]):
        fresh = make_row(learner, features, 5, 1, DTYPES[0], "reference" if row is rows[0] else "compiled")
        fresh.listen_to((1,), (0.5,))
        fresh.replicas[:], fresh.shares[:, : row.n_features] = row.replicas, row.shares[:, : row.n_features]
        fresh.pull, fresh.largest, fresh.memory[:] = row.pull, row.largest, row.memory
        for part in row.parts:
            fresh.put(part, row.part(part))
        last = [step(r, X[t - 1], y[t - 1], t) for r in (fresh, row) for t in range(21, 31)]
        np.testing.assert_allclose(last[:10], last[10:], rtol=0, atol=1e-12)
        assert type(fresh) is type(other)


def step(row, x, y, t):
    row.sample[:] = x
    _, prediction = row.learn(float(y[0]), t)
    row.speak(t)
    row.listen()
    return prediction


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_ends_a_round(engine, features):
    row = make_row(lc.Local(step=0.5), features, 1, 0, DTYPES[0], engine)
    row.sample[:] = 0.5
    assert row.learn(1.0, 1)[0] == endings.FINISHED
    before = row.part("weights").copy()
    row.sample[0, 1] = np.inf
    assert row.learn(1.0, 2)[0] == endings.BAD_INPUT and np.isnan(row.predict())
    np.testing.assert_array_equal(row.part("weights"), before)
    row.sample[:] = 0.5
    row.put("weights", 1e5 * before)
    assert row.learn(1.0, 2)[0] == endings.DIVERGED
    row.put("weights", before)
    assert row.learn(1e200, 2)[0] == endings.DIVERGED  # the model's norm overflows


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_odd_bits_and_huge_messages_change_nothing(engine, features):
    row = make_row(make_learner("odkla", channel=CHANNELS["adaptive"]), features, 3, 1, DTYPES[0], engine)
    size = -(-3 * features.n_features // 8)
    good = np.zeros(size, dtype=np.uint8)
    odd = good.copy()
    odd[-1] = 0x80
    assert row.hear(1, good, 0.5)
    before = row.replicas.copy()
    assert before[1].any()
    assert not row.hear(1, odd, 0.5)
    assert row.hear(1, good, 0.0)  # a scale of zero adds nothing
    np.testing.assert_array_equal(row.replicas, before)
    dense = make_row(make_learner("odkla"), features, 3, 1, DTYPES[0], engine)
    assert not dense.hear_model(1, np.full(features.n_features, 1e200))
    assert not dense.replicas.any()


def test_replicas_that_come_and_go(features):
    for row in make_rows(make_learner("odkla"), features, DTYPES[0], n_neighbours=3):
        for index in (1, 2, 3):
            row.hear_model(index, np.full(features.n_features, float(index)))
        row.listen_to((1, 2, 3), (0.25, 0.25, 0.25))
        row.listen()
        row.resize([3, 0, 1])
        assert row.replicas[:, 0].tolist() == [0.0, 3.0, 0.0, 1.0]
        assert row.shares[:, 0].tolist() == [0.0, -3.0, 0.0, -1.0]


def test_compiled_is_for_what_has_kernels(features):
    class Own(lc.ODKLA):
        def step(self, state, sample, heard):
            return super().step(state, sample, heard)

    with pytest.raises(ValueError, match="engine must be 'reference' or 'auto'"):
        make_row(Own(), features, 2, 1, DTYPES[0], "compiled")
    with pytest.raises(ValueError, match="engine must be one of"):
        make_row(Own(), features, 2, 1, DTYPES[0], "fast")


def test_without_the_core_the_simulator_falls_back(features, monkeypatch):
    from laconic.engine import support

    monkeypatch.setattr(support, "library", lambda: None)
    X, y = make_stream(20, 6)
    trace = lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y)
    assert trace.about["engine"] == "reference"
    assert type(make_row(lc.ODKLA(), features, 1, 0, DTYPES[0])).__name__ == "PlainRow"
