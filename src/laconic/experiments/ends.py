"""What stands beside the algorithms, as runs: least squares by each agent alone and by a centre, and the default."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from laconic.defaults.labels import NUMBERS
from laconic.defaults.untuned import learn_untuned
from laconic.engine import simulate
from laconic.experiments.settings import BEST_CENTRE, CENTRALISED_RLS, DEFAULT, LOCAL_RLS
from laconic.experiments.streams import Stream
from laconic.learners import WaveRLS
from laconic.offline import recursive_least_squares
from laconic.trace import State, Trace

#: Ridges of which the best centre takes, in hindsight, the one with the smallest error.
RIDGES = (0.004, 0.02, 0.05, 0.1)
#: The ridge that an agent alone has, and the centre that the reference points speak of.
LOCAL_RIDGE, CENTRALISED_RIDGE = 0.02, 0.004
_NUMBER_BITS = 32


def local_rls(stream: Stream) -> Trace:
    """Recursive least squares by each agent on its own samples; nothing is ever said.

    It is what ``WaveRLS`` does before its first wave, so that the scores on everybody's data come with it.
    """
    learner = WaveRLS(ridge=LOCAL_RIDGE).alone(len(stream.y))
    trace = simulate(learner, stream.features, stream.network, stream.X, stream.y, collective=True)
    return slim(dataclasses.replace(trace, about={**trace.about, "name": LOCAL_RLS}))


def centres(stream: Stream) -> dict[str, Trace]:
    """Recursive least squares in one place: with the usual ridge, and with that which turns out to be best.

    Every agent sends every sample, d inputs and a label of 32 bits each, and every prediction is the centre's. That
    the centre is one hop away and that predictions come back for nothing is in its favour.
    """
    made = {ridge: _centre(stream, ridge) for ridge in RIDGES}
    best = min(made.values(), key=lambda trace: float(trace.mse()[-1]))
    named = {CENTRALISED_RLS: made[CENTRALISED_RIDGE], BEST_CENTRE: best}
    return {name: dataclasses.replace(trace, about={**trace.about, "name": name}) for name, trace in named.items()}


def _centre(stream: Stream, ridge: float) -> Trace:
    start = time.perf_counter()
    predictions = recursive_least_squares(stream.features, stream.X, stream.y, centralised=True, regularization=ridge)
    seconds = time.perf_counter() - start
    n_rounds, n_agents = stream.y.shape
    nothing = np.zeros(n_rounds)
    about: dict[str, Any] = {
        "learner": f"recursive least squares in one place, ridge {ridge:g}",
        "features": repr(stream.features),
        "loss": "squared",
        "regularization": 0.0,
        "energy_before": 0.0,
        "message_bits": _NUMBER_BITS * (stream.X.shape[2] + 1),
        "engine": "compiled",
        "seconds": seconds,
    }
    errors = np.nanmean((predictions - stream.y) ** 2, axis=1, keepdims=True)
    together = np.repeat(errors, n_agents, axis=1)
    weights = np.tile(_last_model(stream, ridge), (n_agents, 1))
    return Trace(
        predictions=predictions,
        labels=stream.y,
        sent=np.ones(stream.y.shape, dtype=bool),
        saturated=np.zeros(stream.y.shape),
        consensus_error=nothing,
        energy=nothing,
        replica_error=nothing,
        degrees=stream.network.degrees,
        state=State(n_rounds, {"weights": weights}, weights),
        about=about,
        collective_square=together,
        collective_loss=together,
    )


def _last_model(stream: Stream, ridge: float) -> Any:
    """The model after the last sample: (sum phi phi' + ridge I)^-1 sum y phi."""
    phi, labels = stream.features(stream.X.reshape(-1, stream.X.shape[2])), stream.y.ravel()
    there = ~np.isnan(labels)
    phi, labels = phi[there], labels[there]
    return np.linalg.solve(phi.T @ phi + ridge * np.eye(phi.shape[1]), phi.T @ labels)


def default(stream: Stream, seed: int) -> Trace:
    """What is done where nothing is said: no bandwidth of the paper's, no steps, the first eight rows decide.

    Until these are there, a small model predicts, or the mean of an agent's labels so far, as in ``laconic run``.
    """
    run = learn_untuned(stream.X, stream.y, stream.network, task=NUMBERS, seed=seed)
    trace = run.traces[0]
    return slim(
        dataclasses.replace(trace, predictions=run.scores.predictions[..., 0], about={**trace.about, "name": DEFAULT})
    )


def slim(trace: Trace) -> Trace:
    """The trace without the matrices that it would need to go on: a few megabytes a run that nobody will ask for."""
    kept = {"weights": trace.state.learner["weights"]}
    return dataclasses.replace(trace, state=State(trace.state.round, kept, trace.state.broadcast))
