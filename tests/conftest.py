"""Streams, networks and channels that many tests share."""

import numpy as np
import pytest
from hypothesis import settings

import laconic as lc

# The same examples on every machine and in every run, however slow it is.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")


def pytest_collection_modifyitems(items):
    """Tests with real processes and sockets run one after the other, beside all the others."""
    for item in items:
        if item.path.parent.name in ("deploy", "transport"):
            item.add_marker(pytest.mark.xdist_group("network"))


NETWORKS = {
    "path": lc.Network.path(6),
    "ring": lc.Network.ring(6),
    "star": lc.Network.star(6),
    "complete": lc.Network.complete(6),
    "random": lc.Network.random(6, p=0.5, seed=3),
    "alone": lc.Network.from_edges(1, []),
}

CHANNELS = {
    "dense": lc.Channel(),
    "censor": lc.Channel(censor=lc.Censor(0.5, 0.95)),
    "adaptive": lc.Channel(quantizer=lc.Quantizer(3)),
    "fixed": lc.Channel(quantizer=lc.Quantizer(5, range=(-0.6, 0.5))),
    "tread": lc.Channel(quantizer=lc.Quantizer(4, rounding="tread")),
    "both": lc.Channel(lc.Censor(0.5, 0.95), lc.Quantizer(3)),
}


def make_learner(kind, loss="squared", channel=None):
    """A learner of each kind with steps that suit the streams below."""
    channel = channel or lc.Channel()
    if kind == "odkla":
        return lc.ODKLA(rho=0.3, eta=1.0, regularization=1e-3, loss=loss, channel=channel)
    if kind == "dokl":
        return lc.DOKL(rho=0.3, eta=1.0, regularization=1e-3, loss=loss, channel=channel)
    if kind == "local":
        return lc.Local(step=0.4, regularization=1e-3, loss=loss)
    return lc.RFFDOKL(step=0.4, order=kind, regularization=1e-3, loss=loss, channel=channel)


LEARNERS = ("odkla", "dokl", "combine-then-adapt", "adapt-then-combine", "local")


def make_stream(n_rounds, n_agents, n_inputs=3, binary=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rounds, n_agents, n_inputs))
    y = np.sin(4 * X[..., 0]) + X[..., -1] - 0.7
    return X, (np.where(y > 0, 1.0, -1.0) if binary else y)


@pytest.fixture(scope="session")
def features():
    return lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=11, bandwidth=0.6, seed=4)
