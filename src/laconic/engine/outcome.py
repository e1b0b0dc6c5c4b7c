"""How a run ends: its trace, or an error that carries the trace of what went well."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from laconic._timetable import Timetable
from laconic._validate import Array
from laconic._worded import Argument, Setting, Worded
from laconic.engine.chunk import Engine, Releasing
from laconic.engine.log import Log
from laconic.engine.origin import origin_of
from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.model import FeatureMap
from laconic.network import Network
from laconic.trace import Trace

_SATURATED = 0.1  # a larger share of saturated entries than this explains a divergence


def make_trace(
    engine: Engine,
    learner: Learner,
    features: RandomFeatures,
    network: Network | Timetable,
    log: Log,
    seconds: float,
    dtype: str,
) -> Trace:
    """What the run left, with everything needed to tell what it was; of the engine nothing may be asked any more."""
    # First the state, which leaves of the engine's memory what it needs; then what was written down is put together.
    state = engine.release() if isinstance(engine, Releasing) else engine.state()
    state = dataclasses.replace(state, origin=origin_of(learner, features, network))
    columns = log.columns(network.n_agents, dtype)
    outside = columns.pop("outside")
    each = message_bits(learner, features.n_features)
    if each is None:  # of a run without rounds, too, it must be known how long its messages were
        columns.setdefault("message_sizes", np.zeros(outside.shape, dtype=np.int64))
    info = {name[5:]: columns.pop(name) for name in list(columns) if name.startswith("info.")}
    about = {
        "name": learner.name,
        "learner": repr(learner),
        "loss": learner.loss.name,
        "regularization": learner.regularization,
        "features": repr(features),
        **features_about(features),
        "network": repr(network),
        "message_bits": each,
        "energy_before": engine.energy_before,
        "engine": engine.name,
        "dtype": dtype,
        "seconds": seconds,
    }
    return Trace(
        # Mostly nothing is outside, and zeros that nobody has written take no memory.
        saturated=outside / np.float32(features.n_features) if outside.any() else np.zeros(outside.shape),
        degrees=columns.pop("degrees", network.degrees),
        state=state,
        about=about,
        info=info,
        feature_map=FeatureMap.of(features),
        **columns,
    )


def features_about(features: RandomFeatures) -> dict[str, Any]:
    """What makes a map that scales its inputs again: ``RandomFeatures.scaled(**trace.about["scaled"])``."""
    made = features.settings()
    return {} if made is None else {"scaled": made}


def message_bits(learner: Learner, n_features: int) -> int | None:
    """Bits of one message, 0 of a learner that sends none; None where each has a length of its own."""
    if learner.speech is Speech.OWN:
        return None
    return learner.channel.message_bits(n_features) if learner.channel else 0


def bad_input(round: int, agent: int, entries: Array) -> ValueError:
    """The error for an input that no learner can use."""
    what = "a value that is not finite" if not np.isfinite(entries).all() else "values too large for the feature map"
    return ValueError(f"X must be finite, but in round {round} agent {agent} got {what}.")


def attach(error: BaseException, trace: Trace) -> None:
    """Let an error carry the rounds that were finished before it."""
    if trace.n_rounds:
        error.trace = trace  # type: ignore[attr-defined]
        error.add_note(f"The {trace.n_rounds} rounds before it are kept in this error's .trace.")


def advice(trace: Trace, learner: Learner) -> Worded:
    """Which parameter to change: a sentence that knows the names of the arguments in it."""
    saturated = float(trace.saturated[-50:].mean()) if trace.n_rounds else 0.0
    if saturated > _SATURATED:
        return Worded(
            f"{saturated:.0%} of the entries sent lately were outside the quantizer's range, which winds up the duals; "
            "widen ",
            Argument("range"),
            " or ",
            Setting("use", "range", "adaptive"),
            ".",
        )
    return Worded(learner.advice())
