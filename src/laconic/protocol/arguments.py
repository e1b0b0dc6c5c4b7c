"""What people pass to an agent, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from laconic import _validate
from laconic._worded import Argument, Worded
from laconic.guard import LARGEST_LABEL
from laconic.learners import Learner, Speech
from laconic.waves.rule import Numbers

_MOST_AGENTS = 2**32  # as many as have a number of their own where waves run


def read_label(y: object, outputs: int = 1) -> Numbers:
    """``y`` as a number, or as one for each of several outputs; NaN where it is missing."""
    if outputs > 1:
        if y is None:
            return np.full(outputs, math.nan)
        labels = _validate.real_array("y", y, f"({outputs},)", ndim=1)
        if labels.shape != (outputs,):
            raise ValueError(f"y must have shape ({outputs},), a label for each output; got {labels.shape}.")
        return np.array([read_label(label) for label in labels.tolist()])
    if y is None or y is np.ma.masked:
        return math.nan
    if isinstance(y, (str, bytes)):  # float would read it
        raise ValueError(f"y must be a number, or NaN where it is missing; got {_validate.shown(y)}.")
    try:
        label = float(y)  # type: ignore[arg-type]
    except OverflowError:
        label = math.inf
    except (TypeError, ValueError):
        raise ValueError(f"y must be a number, or NaN where it is missing; got {_validate.shown(y)}.") from None
    if math.isinf(label):
        raise ValueError(f"y must be finite, or NaN where it is missing; got {_validate.shown(y)}.")
    if abs(label) > LARGEST_LABEL:
        raise ValueError(f"y must be at most {LARGEST_LABEL:g} in size, got {_validate.shown(y)}.")
    return label


def check_name(what: str, name: object) -> str:
    """``name`` if it can be the name of an agent; ``what`` is the argument that it came by."""
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        raise ValueError(f"{what} must be given as text of 1 to 200 characters, got {_validate.shown(name)}.")
    return name


def check_neighbours(neighbours: object) -> dict[str, int]:
    """Names and degrees; 0 where a degree is not known."""
    if isinstance(neighbours, str):
        raise ValueError(f"neighbours must be a list of names, got the single string {neighbours!r}.")
    if not isinstance(neighbours, Iterable) or (isinstance(neighbours, np.ndarray) and not neighbours.ndim):
        raise ValueError(f"neighbours must be a list of names, got {_validate.shown(neighbours)}.")
    degrees = neighbours if isinstance(neighbours, Mapping) else None
    names = [check_name("neighbours", name) for name in neighbours]
    return {name: 0 if degrees is None else degrees[name] for name in names}


def check_size(n_agents: object, n_neighbours: int) -> int:
    """The size of a network in which an agent has ``n_neighbours``."""
    return _validate.integer("n_agents", n_agents, least=1 + n_neighbours, most=_MOST_AGENTS)


def bad_sample() -> ValueError:
    """The error for an input that no feature map can use."""
    return ValueError("x must be finite, and not so large that the phases of the features overflow.")


def lost_model(name: str, learner: Learner) -> Worded:
    """What to say of an agent whose model left all bounds, and what to change."""
    lost = f"the model of agent {name!r} left all bounds; "
    if learner.speech is Speech.OWN:
        return Worded(lost, learner.advice())
    return Worded(lost, "raise ", Argument("eta"), " or lower ", Argument("step"), ".")
