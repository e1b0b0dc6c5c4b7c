"""Dealing rows to agents: each row once, each kind as it says."""

import numpy as np
import pytest

import laconic as lc
from laconic import data

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(103, 3))
Y = np.arange(103.0)  # a label names its row

KINDS = ["shuffled", "time", "time-stretches", "sorted-by-feature:1", "sorted-by-target", "uneven"]


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("n_agents", [1, 4, 103])
def test_inputs_stay_with_their_labels_and_no_row_comes_twice(how, n_agents):
    inputs, labels = data.partition(X, Y, n_agents, how, seed=3)
    n_rounds = len(labels)
    assert inputs.shape == (n_rounds, n_agents, 3) and labels.shape == (n_rounds, n_agents)
    there = ~np.isnan(labels)
    rows = labels[there].astype(int)
    assert len(set(rows)) == len(rows)
    np.testing.assert_array_equal(inputs[there], X[rows])
    if how == "uneven":
        assert len(rows) == 103
    else:
        assert there.all() and n_rounds == 103 // n_agents


@pytest.mark.parametrize("how", ["shuffled", "sorted-by-feature:1", "sorted-by-target", "uneven"])
def test_what_is_drawn_is_a_function_of_the_seed(how):
    first, again, other = (data.partition(X, Y, 4, how, seed)[1] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_time_keeps_the_order():
    np.testing.assert_array_equal(data.partition(X, Y, 4, "time")[1], np.arange(100).reshape(25, 4))
    np.testing.assert_array_equal(data.partition(X, Y, 4, "time-stretches")[1], np.arange(100).reshape(4, 25).T)


def test_shuffled_agents_are_alike_and_sorted_ones_are_not():
    X = np.random.default_rng(1).uniform(size=(20_000, 2))
    y = X[:, 0]
    shuffled = data.partition(X, y, 5, "shuffled")[0]
    np.testing.assert_allclose(shuffled[..., 0].mean(axis=0), 0.5, atol=0.02)
    order = data.partition(X, y, 5, "shuffled")[1].ravel()
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.03


@pytest.mark.parametrize(("how", "values"), [("sorted-by-feature:2", X[:, 2]), ("sorted-by-target", Y)])
def test_sorted_agents_hold_neighbouring_quantiles_in_no_order(how, values):
    labels = data.partition(X, Y, 4, how, seed=1)[1]
    held = values[labels.astype(int)]
    for i in range(3):
        assert held[:, i].max() < held[:, i + 1].min()
    assert all((np.diff(held[:, i]) < 0).any() and (np.diff(held[:, i]) > 0).any() for i in range(4))
    # The three rows left over come from anywhere in the larger blocks, not all from the top.
    dropped = set(range(103)) - set(labels.astype(int).ravel())
    assert len(dropped) == 3
    assert dropped != set(np.argsort(values)[-3:])


def test_equal_values_are_dealt_at_random():
    signs = np.repeat([-1.0, 1.0], 50)
    column = np.arange(100.0)[:, None]
    inputs, labels = data.partition(column, signs, 4, "sorted-by-target", seed=0)
    np.testing.assert_array_equal(labels, np.broadcast_to([-1.0, -1.0, 1.0, 1.0], (25, 4)))
    assert inputs[:, 0].max() > 25 and inputs[:, 1].min() < 25  # not the first and the second quarter of the file


def test_uneven_sizes_and_padding():
    inputs, labels = data.partition(X, Y, 4, "uneven", seed=2)
    sizes = (~np.isnan(labels)).sum(axis=0)
    assert sizes.sum() == 103 and sizes.min() >= 1 and sizes.max() == len(labels)
    assert np.ptp(sizes) > 20
    for i, size in enumerate(sizes):
        assert np.isnan(labels[size:, i]).all()
        np.testing.assert_array_equal(inputs[size:, i], np.broadcast_to(inputs[size - 1, i], inputs[size:, i].shape))
    even = (~np.isnan(data.partition(X, Y, 4, "uneven", concentration=1e6)[1])).sum(axis=0)
    assert np.ptp(even) <= 1
    lopsided = (~np.isnan(data.partition(X, Y, 4, "uneven", concentration=0.01)[1])).sum(axis=0)
    assert np.sort(lopsided)[:2].tolist() == [1, 1]


def test_padding_is_never_scored_nor_learned_from():
    features = lc.RandomFeatures.gaussian(3, 10, seed=0)
    inputs, labels = data.partition(X, Y / 103, 4, "uneven", seed=2)
    trace = lc.simulate(lc.Local(step=0.25), features, lc.Network.ring(4), inputs, labels)
    scored = ~np.isnan(labels)
    error = np.sum((trace.predictions[scored] - labels[scored]) ** 2) / scored.sum()
    np.testing.assert_allclose(trace.mse()[-1], error, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"how": "random"}, "how must be 'time', 'shuffled', .* got 'random'"),
        ({"how": "sorted-by-feature:3"}, "how must name a feature from 0 to 2, got 'sorted-by-feature:3'"),
        ({"how": "sorted-by-feature:-1"}, "how must be"),
        ({"how": "sorted-by-feature:"}, "how must be"),
        ({"how": None}, "how must be"),
        ({"n_agents": 0}, "n_agents must be at least 1"),
        ({"n_agents": 104}, "n_agents must be at most 103, the number of rows of X; got 104"),
        ({"n_agents": 2.0}, "n_agents must be a whole number"),
        ({"y": Y[1:]}, "y must have a label for each of the 103 rows of X, got 102"),
        ({"X": X[:, 0]}, "X must have shape"),
        ({"y": X}, "y must have shape"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"concentration": 0}, "concentration must be larger than 0"),
    ],
)
def test_bad_input_is_named(change, sentence):
    arguments = {"X": X, "y": Y, "n_agents": 4, "how": "shuffled", "seed": 0, "concentration": 1.0, **change}
    with pytest.raises(ValueError, match=sentence):
        data.partition(**arguments)
