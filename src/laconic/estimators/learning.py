"""Rounds of rows, with weights if there are, through an engine; and the rounds after them, in which a last wave runs.

A row of weight w counts as w rows: of the squared loss w (theta.phi - y)^2 is the error at sqrt(w) phi and sqrt(w) y,
so these are what is learned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.engine import Diverged
from laconic.engine.log import Log
from laconic.engine.mapping import map_own
from laconic.engine.outcome import advice, bad_input, make_trace
from laconic.engine.run import make_engine
from laconic.features import OwnFeatures, RandomFeatures
from laconic.learners import Learner, Speech
from laconic.native.features import map_features
from laconic.network import Network
from laconic.trace import State
from laconic.waves import places

_CHUNK_ROWS = 16384  # whose features exist at once
_FLOAT64 = "float64"


class Learned(NamedTuple):
    """Where a run stands, and what was said in it."""

    state: State
    bits: int
    messages: int


def phi_of(features: RandomFeatures, X: Array) -> Array:
    """phi of rows (n, d), padded to whole vectors as engines have it; of features of one's own, too."""
    if isinstance(features, OwnFeatures):
        return map_own(features, X[None], np.dtype(_FLOAT64), padded=True)[0]
    return map_features(features, X)


def learn(
    learner: Learner,
    features: RandomFeatures,
    network: Network,
    X: Array,
    labels: Array,
    weights: Array | None = None,
    state: State | None = None,
) -> Learned:
    """Learn rounds ``X`` (T, N, d), ``labels`` (T, N), or (T, N, K), from ``state`` on; a label that is NaN is none."""
    runner = make_engine(learner, features, network, state=state)
    log, n_agents = Log(), network.n_agents
    step = max(1, _CHUNK_ROWS // n_agents)
    for start in range(0, len(labels), step):
        x, y = X[start : start + step], labels[start : start + step]
        phi = phi_of(features, x.reshape(-1, x.shape[2])).reshape(*y.shape[:2], -1)
        if weights is not None:
            root = np.sqrt(weights[start : start + step])
            phi, y = phi * root[..., None], y * (root if y.ndim == 2 else root[..., None])
        chunk = runner.advance(phi, y, mapped=True)
        log.append({**chunk.columns, "labels": y[: chunk.n_rounds]})
        if chunk.ending is None:
            continue
        if chunk.ending == "diverged":
            trace = make_trace(runner, learner, features, network, log, 0.0, _FLOAT64)
            raise Diverged(runner.round + 1, trace, advice(trace, learner))
        raise bad_input(runner.round + 1, chunk.agent, x[chunk.n_rounds, chunk.agent])
    trace = make_trace(runner, learner, features, network, log, 0.0, _FLOAT64)
    return Learned(trace.state, int(trace.bits.sum()), int(trace.sent.sum()))


def rounds_to_settle(learner: Learner, network: Network, done: int) -> int:
    """How many more rounds it takes until a wave that holds all of ``done`` rounds has reached everybody.

    0 of learners that have no waves, and of those whose next one is far.

    >>> import laconic as lc
    >>> rounds_to_settle(lc.WaveRLS(), lc.Network.ring(5), 60), rounds_to_settle(lc.ODKLA(), lc.Network.ring(5), 60)
    (34, 0)
    """
    if learner.speech is not Speech.OWN or network.n_agents == 1:
        return 0
    rule, height = learner.rule(), places(network)[0].height
    start = rule.first
    if start > 2 * done + 4 * height + 16:  # it is to be silent
        return 0
    while start < done:
        start = rule.following(start, height)
    return start + 2 * height + 1 - done
