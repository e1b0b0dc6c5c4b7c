"""The theory put to the test: regret and its slope, Lemma 1, and the steps that the theorem prints.

Each function is a pure computation on a stream; ``docs/errata.md`` says what the outcomes mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.channel import Censor, Channel, Quantizer
from laconic.engine import Diverged, simulate
from laconic.experiments.settings import BITS, REGULARIZATION, Setting
from laconic.experiments.streams import Stream
from laconic.learners import ODKLA, Learner, WaveRLS
from laconic.offline import batch_solution, comparator
from laconic.trace import Trace

_POINTS = 60
_WIDE = 2.0  # wide enough for scaled data, and coarse enough in 3 bits that the print's square shows


def theorem_steps(stream: Stream, *, printed: bool, scale: float = 1.0) -> dict[str, Any]:
    """ODKLA with the theorem's eta = rho: 1/sqrt(T) as it is printed, or sqrt(T), which its proof needs.

    eta + 2 rho d is the inverse of the step, so the printed choice takes steps of size sqrt(T).
    """
    root = float(np.sqrt(len(stream.y)))
    value = scale / root if printed else scale * root
    learner = ODKLA(rho=value, eta=value, regularization=REGULARIZATION)
    outcome: dict[str, Any] = {"eta": value, "rho": value, "diverged": False, "round": None, "mse": None}
    try:
        trace = simulate(learner, stream.features, stream.network, stream.X, stream.y)
    except Diverged as error:
        return {**outcome, "diverged": True, "round": error.round}
    return {**outcome, "mse": float(trace.mse()[-1])}


def regret(stream: Stream, learners: Mapping[str, Learner]) -> dict[str, Any]:
    """Regret and collective regret against the best fixed model, and the slope of each in log-log over its last part.

    A slope of 1/2 is the theorem's; 1 would mean that nothing is learned. The comparator carries the same ridge a slot:
    the paper's, or, for a learner that has one for the whole stream, its share of that.
    """
    best = comparator(stream.features, stream.X, stream.y, regularization=REGULARIZATION)
    picked = _logarithmic(len(stream.y))
    outcome: dict[str, Any] = {"rounds": (picked + 1).tolist(), "comparator_mse": best.mse()}
    for name, learner in learners.items():
        trace = simulate(learner, stream.features, stream.network, stream.X, stream.y, collective=True)
        against = best
        if isinstance(learner, WaveRLS):
            share = learner.ridge / len(stream.y)
            against = comparator(stream.features, stream.X, stream.y, regularization=share)
            trace = dataclasses.replace(trace, about={**trace.about, "regularization": share})
        own, together = trace.regret(against), trace.collective_regret(against)
        outcome[name] = {
            "regret": own[picked].tolist(),
            "collective": together[picked].tolist(),
            "slope": slope(own),
            "collective_slope": slope(together),
        }
    return outcome


def slope(curve: Array) -> float:
    """Exponent p of curve ~ t^p, fitted in log-log over the last nine tenths of log-time; NaN if not positive there."""
    picked = _logarithmic(len(curve))
    picked = picked[picked >= len(curve) // 10]
    values = curve[picked]
    if len(picked) < 3 or not (values > 0).all():
        return float("nan")
    return float(np.polyfit(np.log(picked + 1), np.log(values), 1)[0])


def lemma(stream: Stream, setting: Setting, steps: Mapping[str, Any]) -> dict[str, Any]:
    """|E_t|_F against Lemma 1's bound, in a run whose fixed range holds every innovation.

    Stated rightly: |E_t|_F <= sqrt(N) max(alpha beta^t, sqrt(2L) D/2) for round t. The paper prints the square of the
    norm on the left, alpha beta instead of alpha for the first slot, and leaves out that h must lie in [u, v).
    """
    reach = _reach(stream, setting, steps)
    censor, quantizer = Censor(setting.alpha, setting.beta), Quantizer(BITS, range=(-reach, reach))
    learner = ODKLA(**steps, regularization=REGULARIZATION, channel=Channel(censor, quantizer))
    trace = simulate(learner, stream.features, stream.network, stream.X, stream.y)
    measured = trace.broadcast_error()
    width = 2 * reach / quantizer.cells
    n_agents, n_features = stream.network.n_agents, stream.features.n_features
    rounding = np.sqrt(n_features) * width / 2
    thresholds = censor.thresholds(1, trace.n_rounds)
    bound = np.sqrt(n_agents) * np.maximum(thresholds, rounding)
    printed = max(np.sqrt(n_agents) * censor.threshold(1), np.sqrt(n_agents) * rounding)
    picked = _logarithmic(trace.n_rounds)
    return {
        "rounds": (picked + 1).tolist(),
        "measured": measured[picked].tolist(),
        "bound": bound[picked].tolist(),
        "range": reach,
        "saturated": float(trace.saturated.max(initial=0.0)),
        "holds": bool((measured <= bound * (1 + 1e-9)).all()),
        "printed_bound": float(printed),
        "violations_of_print": int((measured**2 > printed).sum()),
    }


def _reach(stream: Stream, setting: Setting, steps: Mapping[str, Any]) -> float:
    """A range that no innovation leaves: doubled until nothing saturates."""
    reach = _WIDE
    while reach < 1e3:
        channel = Channel(Censor(setting.alpha, setting.beta), Quantizer(BITS, range=(-reach, reach)))
        learner = ODKLA(**steps, regularization=REGULARIZATION, channel=channel)
        try:
            trace = simulate(learner, stream.features, stream.network, stream.X, stream.y)
        except Diverged:
            reach *= 2
            continue
        if trace.saturated.max(initial=0.0) == 0:
            return reach
        reach *= 2
    raise ValueError("no range up to 1000 holds every innovation; the steps are too large.")


def ridge(stream: Stream) -> dict[str, float]:
    """What regret sums, the ridge of every slot included, for the comparator that matches it and for the batch model.

    A ridge of lambda/N a slot and agent adds up to T lambda; the batch problem of the paper has lambda in all. Its
    minimiser is no minimiser of what regret sums, so regret against it would be too small, or even negative.
    """
    options: dict[str, Any] = {"regularization": REGULARIZATION}
    matching = comparator(stream.features, stream.X, stream.y, **options)
    batch = batch_solution(stream.features, stream.X, stream.y, **options)
    same_ridge = dataclasses.replace(batch, regularization=REGULARIZATION)
    return {"matching": float(matching.round_losses().sum()), "batch": float(same_ridge.round_losses().sum())}


def saturation(
    stream: Stream, setting: Setting, steps: Mapping[str, Any], ranges: tuple[float, ...]
) -> list[dict[str, Any]]:
    """QC-ODKLA with a fixed range: the share of saturated entries, and whether the run survives a range too small.

    The censor makes it worse: what was not said piles up, until the innovation leaves the range at once.
    """
    outcomes = []
    for reach in ranges:
        channel = Channel(Censor(setting.alpha, setting.beta), Quantizer(BITS, range=(-reach, reach)))
        outcome: dict[str, Any] = {"range": reach, "diverged": False, "mse": None}
        try:
            trace: Trace = simulate(
                ODKLA(**steps, regularization=REGULARIZATION, channel=channel),
                stream.features,
                stream.network,
                stream.X,
                stream.y,
            )
            outcome["mse"] = float(trace.mse()[-1])
        except Diverged as error:
            trace = error.trace  # type: ignore[assignment]  # a simulation's errors carry one
            outcome |= {"diverged": True, "round": error.round}
        outcome["saturated"] = float(trace.saturated.mean()) if trace.n_rounds else 0.0
        outcomes.append(outcome)
    return outcomes


def _logarithmic(n_rounds: int) -> Array:
    """Indices of about sixty rounds, evenly spread in log-time."""
    return np.unique(np.geomspace(1, n_rounds, _POINTS).astype(int)) - 1
