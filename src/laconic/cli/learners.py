"""``--learner`` and its options: which learner, with which steps, behind which channel."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from laconic.channel import Censor, Channel, Quantizer
from laconic.experiments.settings import BITS, REGULARIZATION, Setting
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner, Local
from laconic.learners.base import ADMM
from laconic.network import Network

#: Steps that do well on data scaled to [0, 1]. A classification loss has smaller slopes and takes larger steps.
_ADMM_STEPS = {"squared": (0.5, 2.0), "logistic": (0.1, 0.5), "hinge": (0.1, 0.5)}
_STEP = {"squared": 0.25, "logistic": 1.0, "hinge": 1.0}
#: Largest second derivative: an exact step is as long as a gradient step of 1/(c + curvature).
_CURVATURE = {"squared": 2.0, "logistic": 0.25, "hinge": 0.0}
_CHANNEL = ("alpha", "beta", "bits", "range")


def make_learner(arguments: argparse.Namespace, setting: Setting, loss: str) -> Learner:
    """The learner that the options describe. Options that it would not heed are refused."""
    kind = arguments.learner
    gradient = kind in ("rff-dokl", "local")
    _refuse(arguments, kind, ("rho", "eta") if gradient else ("step",))
    common: dict[str, Any] = {
        "loss": loss,
        "regularization": REGULARIZATION if arguments.regularization is None else arguments.regularization,
    }
    if kind == "local":
        _refuse(arguments, kind, _CHANNEL)
        return Local(_given(arguments.step, _STEP[loss]), **common)
    if kind == "rff-dokl":
        return RFFDOKL(_given(arguments.step, _STEP[loss]), channel=_channel(arguments, setting), **common)
    rho, eta = (_given(arguments.rho, _ADMM_STEPS[loss][0]), _given(arguments.eta, _ADMM_STEPS[loss][1]))
    if kind == "qc-odkla":
        bits, span = _given(arguments.bits, BITS), _given(arguments.range, "adaptive")
        return QCODKLA(rho, eta, setting.alpha, setting.beta, bits, span, **common)
    make = ODKLA if kind == "odkla" else DOKL
    return make(rho, eta, channel=_channel(arguments, setting), **common)


def local_twin(learner: Learner, network: Network) -> Local:
    """Local with the step that ``learner`` takes: what its agents would have learned had they never spoken.

    ODKLA divides the gradient by eta + 2 rho d. An exact step (DOKL) weighs the curvature of the loss in as well.
    """
    if isinstance(learner, ADMM):
        weights = learner.eta(1) + 2 * learner.rho * network.degrees
        if isinstance(learner, DOKL):
            weights = weights + learner.shrink(network.n_agents) + _CURVATURE[learner.loss.name]
        step = float(np.mean(1 / weights))
    else:
        step = float(learner.step_size(1))  # type: ignore[attr-defined]
    return Local(step, regularization=learner.regularization, loss=learner.loss)


def describe_learner(learner: Learner) -> str:
    """Its parameters, in words."""
    words = []
    if isinstance(learner, ADMM):
        words += [f"rho {learner.rho:g}", f"eta {learner.eta(1):g}"]
    else:
        words.append(f"step {learner.step_size(1):g}")  # type: ignore[attr-defined]
    words.append(f"ridge {learner.regularization:g}")
    channel = learner.channel
    if channel and channel.censor:
        words.append(f"alpha {channel.censor.alpha:g}, beta {channel.censor.beta:g}")
    if channel and channel.quantizer:
        span = channel.quantizer.range
        kind = span if isinstance(span, str) else f"{span[0]:g} to {span[1]:g}"
        words.append(f"{channel.quantizer.bits} bits, {kind} range")
    return ", ".join(words) + f"; {learner.loss.name} loss"


def _channel(arguments: argparse.Namespace, setting: Setting) -> Channel:
    """Censoring if --alpha or --beta is given, quantization if --bits or --range is; otherwise all is sent as it is."""
    censor = quantizer = None
    if arguments.alpha is not None or arguments.beta is not None:
        censor = Censor(setting.alpha, setting.beta)
    if arguments.bits is not None or arguments.range is not None:
        quantizer = Quantizer(_given(arguments.bits, BITS), _given(arguments.range, "adaptive"))
    return Channel(censor, quantizer)


def _refuse(arguments: argparse.Namespace, kind: str, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            why = "never speaks" if kind == "local" and name in _CHANNEL else "has no such parameter"
            raise ValueError(f"--{name} makes no sense with --learner {kind}, which {why}.")


def _given(value: Any, usual: Any) -> Any:
    return usual if value is None else value
