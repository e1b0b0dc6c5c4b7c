"""The compared algorithms as functions of the steps that are tuned: (rho, eta) of ADMM, (step,) of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from laconic.channel import Censor, Channel, Quantizer
from laconic.experiments.settings import BITS, METHODS, REGULARIZATION, Setting
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner, Local

Steps = dict[str, Any]  # numbers; Any, because they are passed on as keyword arguments of several types


class Method(NamedTuple):
    """A name, the grid of each of its steps, and the learner that given steps make."""

    name: str
    grid: dict[str, tuple[float, ...]]
    make: Callable[[Steps], Learner]


_RHO = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_ETA = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_STEP = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)


def methods(setting: Setting, names: tuple[str, ...] = METHODS) -> dict[str, Method]:
    """The algorithms of those names with the set's censoring thresholds."""
    censor, quantizer = Censor(setting.alpha, setting.beta), Quantizer(BITS)
    admm: dict[str, tuple[float, ...]] = {"rho": _RHO, "eta": _ETA}
    gradient: dict[str, tuple[float, ...]] = {"step": _STEP}

    def odkla(channel: Channel) -> Callable[[Steps], Learner]:
        return lambda steps: ODKLA(**steps, regularization=REGULARIZATION, channel=channel)

    def qc_odkla(steps: Steps) -> Learner:
        return QCODKLA(**steps, alpha=setting.alpha, beta=setting.beta, bits=BITS, regularization=REGULARIZATION)

    known = {
        "RFF-DOKL": Method("RFF-DOKL", gradient, lambda steps: RFFDOKL(**steps, regularization=REGULARIZATION)),
        "DOKL": Method("DOKL", admm, lambda steps: DOKL(**steps, regularization=REGULARIZATION)),
        "ODKLA": Method("ODKLA", admm, odkla(Channel())),
        "QC-ODKLA": Method("QC-ODKLA", admm, qc_odkla),
        "C-ODKLA": Method("C-ODKLA", admm, odkla(Channel(censor=censor))),
        "Q-ODKLA": Method("Q-ODKLA", admm, odkla(Channel(quantizer=quantizer))),
        "Local": Method("Local", gradient, lambda steps: Local(**steps, regularization=REGULARIZATION)),
    }
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"algorithm must be one of {', '.join(known)}, got {unknown[0]!r}.")
    return {name: known[name] for name in names}
