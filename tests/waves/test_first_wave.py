"""What all leave out of the first wave adds up; together it must be little, however many they are."""

import math

import numpy as np
import pytest

import laconic as lc
from laconic.waves import Rule
from laconic.waves.tree import places


def binary_tree(n):
    return lc.Network.from_edges(n, [(i, (i - 1) // 2) for i in range(1, n)])


def hidden(seed, n_rounds, n_agents):
    """Inputs that are all but the same, so that features have few directions, and labels hang on their differences."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.1, 0.9, size=(n_rounds, n_agents))
    noise = 0.12 * rng.standard_normal((3, n_rounds, n_agents))
    X = 0.5 + 0.05 * (np.stack([u, u + noise[0], 0.65 - 0.3 * u + noise[1], 0.8 - 0.4 * u + noise[2]], axis=-1) - 0.5)
    return X, 0.95 - u + 0.05 * rng.standard_normal((n_rounds, n_agents))


def errors(learner, features, network, X, y):
    """Of each round: everybody's model on everybody's sample."""
    trace = lc.simulate(learner, features, network, X, y, collective=True)
    return np.diff(trace.global_mse() * np.arange(1, len(y) + 1), prepend=0.0)


@pytest.mark.parametrize(
    "network",
    [binary_tree(127), lc.Network.geometric(60, 0.2, seed=3, connect=True)],
    ids=["tree of height 6", "deep tree"],
)
def test_many_agents_that_see_the_same_take_no_step_that_is_too_long(network):
    n = network.n_agents
    X, y = hidden(0, 60, n)
    features = lc.RandomFeatures.gaussian(4, 25, bandwidth=0.5, seed=0)
    waves = errors(lc.WaveRLS(), features, network, X, y)
    alone = errors(lc.WaveRLS().alone(60), features, network, X, y)
    after = slice(places(network)[0].height * 2 + 3, 60)
    assert waves[after].mean() < 0.5 * alone[after].mean()  # without that 0.6 and 2 times as large


@pytest.mark.parametrize(("n", "expected"), [(2, 1.0), (11, 1.0), (12, 0.9833), (26, 0.6235)])
def test_how_much_less_is_left_out(n, expected):
    """On a star n - 1 leaves, each of which has one sample of the 2 + n - 1 that the wave carries."""
    census = places(lc.Network.star(n))[0].census
    assert Rule().tightness(1, census) == pytest.approx(expected, abs=1e-4)
    assert Rule().tightness(1, census) == min(1.0, 3 / ((n - 1) * math.sqrt(1 / (n + 1))))
