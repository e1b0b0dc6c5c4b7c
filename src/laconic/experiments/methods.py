"""The compared algorithms as functions of the steps that are tuned: (rho, eta) of ADMM, (step,) of gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from laconic import learners
from laconic.channel import Censor, Channel, Quantizer
from laconic.experiments.settings import BITS, CENSORED, FRUGAL, METHODS, QUANTIZED, REGULARIZATION, WAVES, Setting
from laconic.learners import ODKLA, Learner, WaveRLS

Steps = dict[str, Any]  # numbers; Any, because they are passed on as keyword arguments of several types


class Method(NamedTuple):
    """A name, the grid of each of its steps, and the learner that given steps make."""

    name: str
    grid: Mapping[str, tuple[float, ...]]
    make: Callable[[Steps], Learner]


def all_methods() -> tuple[str, ...]:
    """Names of all methods that can be run: the paper's, and every other registered learner.

    One without steps has an empty grid: there is nothing to tune, and its one point is its defaults.
    """
    others = (learner.name for learner in learners.every() if learner.name not in METHODS)
    return (*METHODS, *others)


def learner_of(name: str) -> type[Learner]:
    """The learner behind a method. C- and Q-ODKLA are ODKLA with one half of QC-ODKLA's channel."""
    return ODKLA if name in (CENSORED, QUANTIZED) else learners.get(name)


def channel_of(name: str, setting: Setting) -> Channel:
    """The channel that a method's learner is given."""
    censor = Censor(setting.alpha, setting.beta) if name == CENSORED else None
    return Channel(censor, Quantizer(BITS) if name == QUANTIZED else None)


def methods(setting: Setting, names: tuple[str, ...] = METHODS) -> dict[str, Method]:
    """The algorithms of those names with the set's censoring thresholds."""
    unknown = [name for name in names if name not in all_methods()]
    if unknown:
        raise ValueError(f"algorithm must be one of {', '.join(all_methods())}, got {unknown[0]!r}.")
    return {name: Method(name, learner_of(name).grid, partial(_make, name, setting)) for name in names}


def untuned(names: tuple[str, ...]) -> dict[str, Learner]:
    """The learners of these names that run as they are, whatever the set."""
    return {name: WaveRLS.frugal() if name == FRUGAL else WaveRLS() for name in names if name in WAVES}


def _make(name: str, setting: Setting, steps: Steps) -> Learner:
    """The learner that takes these steps: behind the method's channel, or the one that it makes itself."""
    learner = learner_of(name)
    given = {"alpha": setting.alpha, "beta": setting.beta, "bits": BITS, "regularization": REGULARIZATION, **steps}
    given["channel"] = channel_of(name, setting)
    return learner(**{argument: value for argument, value in given.items() if argument in learner.arguments()})
