"""How much is added to the diagonal: what fresh samples ask for, summed by hand, and what everybody makes of it."""

import math

import numpy as np
import pytest
from waves_kit import Run, make_stream

import laconic as lc
from laconic.waves import Rule
from laconic.waves.message import decode
from laconic.waves.own import Probe, watched
from laconic.waves.rule import DEEP, THINNEST


def test_when_it_changes():
    def changed(thin, asked, n, pull, doubt, noise):
        return Rule().thinned(thin, asked, Rule().worth(n, 5, 2), pull, doubt, noise)

    # Three deviations, 3/sqrt(1 * 1), of 100 samples: half of it. Of 4000, a gain of 9/4000 is not worth it.
    assert changed(1.0, 0.0, 100, 3.0, 1.0, 1.0) == (0.5, 3.0)
    assert changed(1.0, 0.0, 4000, 3.0, 1.0, 1.0) == (1.0, 3.0)
    assert changed(0.25, 0.0, 100, -6.0, 4.0, 1.0) == (0.5, -3.0)
    # Two waves that say the opposite cancel; two that say the same add up, the earlier one by half.
    assert changed(0.5, 3.0, 100, -2.0, 1.0, 1.0) == (0.5, -0.5)
    assert changed(0.5, 3.0, 100, 1.0, 1.0, 1.0) == (0.5, 2.5)
    assert changed(0.5, 3.0, 100, 1.25, 1.0, 1.0) == (0.25, 2.75)
    # It is bounded, and outputs count by their precision: 8/4 of 16/16 and 2/1 of 4/1.
    assert changed(1.0, 0.0, 9, -9.0, 1.0, 1.0)[0] == 1.0 and changed(THINNEST, 0.0, 9, 9.0, 1.0, 1.0)[0] == THINNEST
    two = changed(1.0, 0.0, 10, np.array([8.0, 2.0]), np.array([16.0, 4.0]), np.array([4.0, 1.0]))
    assert two == (1.0, pytest.approx(4 / math.sqrt(5)))
    assert changed(0.5, 1.0, 10, 0.0, 0.0, 1.0) == (0.5, 1.0)


def test_more_agents_ask_for_less_on_the_diagonal_sooner():
    assert Rule().worth(1000, 2, 1) == Rule().worth(1000, 10, 2) == 3.0
    assert Rule().worth(1000, 20, 3) == 1.5 and Rule().worth(1000, 100, 2) == pytest.approx(0.3)
    assert Rule().worth(1000, 500, DEEP) == 3.0  # where what is said passes through many hands
    few, many = (Rule().thinned(1.0, 0.0, Rule().worth(3000, n, 2), 2.6, 1.0, 1.0) for n in (5, 20))
    assert few == (1.0, 2.6) and many == (0.5, 2.6)


def test_fresh_samples_are_those_after_the_adoption(features):
    """What a leaf says of pull and doubt is the sum over its samples since, of errors of the common model."""
    run = Run(Rule(), lc.Network.star(4), features)
    leaf = next(i for i, node in enumerate(run.nodes) if node.place.parent is not None)
    node, fresh, compared = run.nodes[leaf], [], 0
    X, y = make_stream(120, 4)
    for x, label in zip(X, y, strict=True):
        adopted = node.adopted
        fresh.append((features(x)[leaf], label[leaf]))
        for sender, message in run.round(x, label):
            if sender == leaf and node.probe is not None:
                said, _ = decode(message.data, features.n_features, down=False)
                phi, target = (np.array(column) for column in zip(*fresh, strict=True))
                pull = doubt = 0.0
                for k, x in enumerate((phi @ node.probe.direction) * (target - phi @ node.common.theta)):
                    most = 3 * math.sqrt((doubt + x * x) / (k + 1))
                    pull, doubt = pull + np.clip(x, -most, most), doubt + min(abs(x), most) ** 2
                assert said.pull == pytest.approx(pull, rel=2**-8, abs=1e-9)
                assert said.doubt == pytest.approx(doubt, rel=2**-8)
                compared += 1
        if node.adopted > adopted:
            fresh = []
    assert compared > 5


def test_one_wild_sample_asks_for_little():
    """Beside a hundred others, one of a million times their size: three times its root mean square, whatever it is."""
    probe, theta = Probe(np.array([1.0, 0.0]), 0.0, 0.0, 0.0), np.zeros(2)
    for x in [1.0, -1.0] * 50:
        probe = watched(probe, theta, np.array([1.0, 0.0]), 1.0, x)
    assert (probe.pull, probe.doubt, probe.fresh) == (0.0, 100.0, 100.0)
    wild = watched(probe, theta, np.array([1.0, 0.0]), 1.0, 1e6)
    most = 3 * math.sqrt((100 + 1e12) / 101)
    assert wild[1:] == pytest.approx((most, 100 + most**2, 101.0))
    assert wild.pull / math.sqrt(wild.doubt) < 1
    # A common one is not cut.
    assert watched(probe, theta, np.array([0.5, 0.0]), 1.0, 2.0)[1:] == (1.0, 101.0, 101.0)


def test_it_thins_where_the_best_ridge_is_small(features):
    """A smooth function that is hardly disturbed: the default is far too thick for it."""
    X = np.random.default_rng(0).uniform(size=(500, 5, 3))
    y = np.sin(4 * X[..., 0]) + X[..., -1] - 0.7
    trace = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(5), X, y, collective=True)
    thin = trace.state.learner["thin"]
    assert (thin == thin[0]).all() and thin[0] < 0.1
    errors = {}
    for ridge in (0.05, 0.0005):
        centre = lc.offline.recursive_least_squares(features, X, y, centralised=True, regularization=ridge)
        errors[ridge] = np.mean((centre - y) ** 2)
    assert errors[0.0005] < 0.8 * errors[0.05]
    assert trace.global_mse()[-1] < errors[0.05]


def test_it_does_not_where_noise_is_all_there_is(features):
    X, y = make_stream(400, 5)
    y = np.random.default_rng(1).standard_normal(y.shape)
    trace = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(5), X, y)
    assert trace.state.learner["thin"][0] == 1.0
