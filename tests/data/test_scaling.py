"""Scaling to [0, 1]: hand-computed cases, and the running one against itself row by row."""

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laconic import data

BLOCKS = arrays(np.float64, st.tuples(*[st.integers(1, 5)] * 3), elements=st.floats(-1e3, 1e3))


def test_column_and_matrix_by_hand():
    X = np.array([[1.0, -200.0, 7.0], [3.0, 0.0, 7.0], [2.0, 600.0, 7.0]])
    np.testing.assert_array_equal(data.scale(X, "column"), [[0, 0, 0], [1, 0.25, 0], [0.5, 1, 0]])
    np.testing.assert_allclose(data.scale(X, "matrix"), (X + 200) / 800, rtol=1e-15)
    np.testing.assert_array_equal(data.scale(X[:, 0], "column"), data.scale(X[:, 0], "matrix"))
    dealt = data.scale(X.reshape(3, 1, 3).repeat(2, axis=1), "column")
    np.testing.assert_array_equal(dealt[:, 0], data.scale(X, "column"))


def test_missing_labels_stay_missing_and_constants_become_zero():
    np.testing.assert_array_equal(data.scale([1.0, np.nan, 3.0]), [0, np.nan, 1])
    np.testing.assert_array_equal(data.scale([5.0, np.nan, 5.0]), [0, np.nan, 0])
    np.testing.assert_array_equal(data.scale([np.nan, 4.0, 6.0, 5.0], "running"), [np.nan, 0, 1, 0.5])
    assert data.scale(np.empty((0, 3))).shape == (0, 3)


def test_numbers_at_the_ends_of_the_floats():
    largest = np.finfo(float).max
    np.testing.assert_array_equal(data.scale([-largest, 0.0, largest]), [0, 0.5, 1])
    np.testing.assert_array_equal(data.scale([0.0, 5e-324]), [0, 1])


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(X=BLOCKS)
def test_results_lie_in_the_unit_interval_and_reach_its_ends(X):
    for how in ("column", "matrix", "running"):
        scaled = data.scale(X, how)
        assert scaled.shape == X.shape and scaled.min() >= 0 and scaled.max() <= 1
    spread = np.ptp(X, axis=(0, 1)) > 0
    np.testing.assert_array_equal(data.scale(X, "column").max(axis=(0, 1)), spread.astype(float))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(X=BLOCKS, shared=st.booleans(), data_=st.data())
def test_running_is_the_same_by_round_by_block_and_by_definition(X, shared, data_):
    whole = data.RunningScaler(shared=shared).rounds(X)
    rounds = data.RunningScaler(shared=shared)
    np.testing.assert_array_equal(np.stack([rounds(x) for x in X]), whole)
    cut = data_.draw(st.integers(0, len(X)))
    parts = data.RunningScaler(shared=shared)
    np.testing.assert_array_equal(np.concatenate([parts.rounds(X[:cut]), parts.rounds(X[cut:])]), whole)
    for t in range(len(X)):
        for i in range(X.shape[1]):
            seen = X[: t + 1] if shared else X[: t + 1, i : i + 1]
            low, high = seen.min(axis=(0, 1)), seen.max(axis=(0, 1))
            span = np.where(high > low, high - low, 1)
            np.testing.assert_allclose(whole[t, i], np.where(high > low, (X[t, i] - low) / span, 0), atol=1e-15)


def test_running_never_looks_ahead():
    X = np.random.default_rng(0).normal(size=(40, 3, 2))
    changed = X.copy()
    changed[25:] *= 100
    np.testing.assert_array_equal(data.scale(X, "running")[:25], data.scale(changed, "running")[:25])


def test_running_labels_rows_and_the_way_back():
    y = np.array([[1.0, 3.0], [5.0, 2.0]])
    np.testing.assert_array_equal(data.RunningScaler().rounds(y), [[0, 1], [1, 0.25]])
    np.testing.assert_array_equal(data.RunningScaler(shared=False).rounds(y), [[0, 0], [1, 0]])
    scaler = data.RunningScaler()
    scaler.rounds(y)
    assert (scaler.low, scaler.high) == (1.0, 5.0)
    np.testing.assert_array_equal(scaler.transform([9.0, 3.0, -1.0]), [1, 0.5, 0])  # clipped, and not taken note of
    assert scaler.high == 5.0
    np.testing.assert_array_equal(scaler.inverse([0.25, 1.0]), [2, 5])
    X = np.random.default_rng(1).normal(size=(30, 4))
    np.testing.assert_array_equal(data.scale(X, "running"), data.RunningScaler().rounds(X[:, None])[:, 0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: data.scale([[1.0]], "rows"), "how must be one of 'column', 'matrix', 'running'"),
        (lambda: data.scale([[np.inf]]), "X must not hold infinite numbers"),
        (lambda: data.scale([["a"]]), "X must hold real numbers"),
        (lambda: data.scale(3.0), "X must have shape"),
        (lambda: data.RunningScaler().transform([1.0]), "before the first round"),
        (lambda: data.RunningScaler().inverse([1.0]), "before the first round"),
        (lambda: data.RunningScaler()(3.0), "block must have shape"),
        (lambda: data.RunningScaler()([[np.inf]]), "values must not hold infinite numbers"),
    ],
)
def test_bad_input_is_named(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_rounds_keep_their_columns():
    scaler = data.RunningScaler()
    scaler(np.ones((3, 2)))
    scaler(np.ones((5, 2)))  # agents may join
    with pytest.raises(ValueError, match="values must have rounds of the shape"):
        scaler.transform(np.ones((3, 4)))
    with pytest.raises(ValueError, match="block must have rounds of the shape"):
        scaler(np.ones((3, 4)))
    alone = data.RunningScaler(shared=False)
    alone(np.ones((3, 2)))
    with pytest.raises(ValueError, match="block must have rounds of the shape"):
        alone(np.ones((5, 2)))
