"""Waves have the same bits however many threads BLAS has."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import laconic as lc


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("learner", [lc.Personal(), lc.WaveRLS(outputs=3)], ids=repr)
def test_threads_of_blas_change_no_bit(learner, engine):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(16, 4, 3))
    y = rng.standard_normal((16, 4, 3) if getattr(learner, "outputs", 1) > 1 else (16, 4))
    features = lc.RandomFeatures.gaussian(3, 64, bandwidth=0.3, seed=0)
    runs = []
    for threads in (1, 4):
        with threadpool_limits(threads, user_api="blas"):
            runs.append(lc.simulate(learner, features, lc.Network.ring(4), X, y, engine=engine))
    assert np.array_equal(runs[0].predictions, runs[1].predictions)
    assert np.array_equal(runs[0].state.weights, runs[1].state.weights)
