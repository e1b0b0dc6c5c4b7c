"""What every learner is: parameters, a first state, and a pure step over rows.

A row is an agent. The simulator passes N rows at once, a running agent passes one, and the same lines serve both. In
each round the engine

1. hands the new sample and what was last heard to ``step``, which returns the new state;
2. lets the channel carry ``state.weights`` to the neighbours' replicas;
3. hands what is heard now to ``hear``, which returns the state that the next round starts from.

Predictions are made before all that, from ``state.weights``, by the engine. A learner of one's own is a subclass with
``init`` and ``step`` in plain NumPy: see ``docs/own-learner.md`` and ``examples/own_learner.py``.

All that others need to know of a learner it says itself, in its own file: name, way of speaking, steps to tune, usual
steps, kernel, advice. Nobody asks of what class it is.

How a learner speaks is its ``speech``. ``BROADCAST``: its channel carries its model to all neighbours, as above.
``NEVER``: it has no channel. ``OWN``: it has messages of its own instead of a broadcast model, and no channel either.
Its ``rule`` says which: the engine then runs a node of ``laconic.waves`` for each agent, and ``step`` is what an agent
does in a round without messages.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel import Channel
from laconic.learners import parameters
from laconic.learners.schedules import Constant, Schedule
from laconic.network import Heard, Network
from laconic.waves import Rule

#: Whom a learner mixes with.
ALL, SPOKEN = "all", "spoken"


class Sample(NamedTuple):
    """What one round brings to each row.

    Attributes
    ----------
    phi : array (rows, n_features)
        Features of the inputs.
    label : array (rows,)
        NaN where an agent saw nothing to learn from.
    t : int
        The round, counted from 1.
    square : array (rows,) or None
        |phi|^2; None where it is 1 for every input, as it is of plain maps.
    """

    phi: Array
    label: Array
    t: int
    square: Array | None = None


class Voting(NamedTuple):
    """Experts of one agent, for the compiled step: steps of those along the gradient, then forgetting of the others."""

    steps: tuple[float, ...]
    forgetting: tuple[float, ...]
    ridge: float


class Kernel(NamedTuple):
    """The compiled step of a learner, and the numbers that it needs.

    Attributes
    ----------
    step : str
        Its name in ``core/learners.h``.
    rate : schedule
        What a step is measured by, as a function of the round: eta of ADMM, the step of a gradient.
    rho, mixing : float
        Penalty on disagreement; share of the mixture.
    reach : float
        How many times the median pull a neighbour's pull may be; 0 where nothing is clipped.
    experts : Voting or None
        What a learner that mixes experts keeps beside its model.
    """

    step: str
    rate: Schedule
    rho: float = 0.0
    mixing: float = 0.0
    reach: float = 0.0
    experts: Voting | None = None


class Speech(Enum):
    """How a learner speaks to its neighbours."""

    BROADCAST = "its model, through a channel"
    NEVER = "not at all"
    OWN = "in messages of its own"


class Learner(ABC):
    """Base of all learners. Subclasses are final: they set their parameters and fill in ``init`` and ``step``.

    Parameters
    ----------
    regularization : float
        lambda of the ridge (lambda / n_agents) |theta|^2 that every sample's loss carries.
    loss : str or Loss
        "squared", "logistic", "hinge", "squared-hinge", or a loss of one's own.
    channel : Channel or None
        What carries the weights to the neighbours; None for a learner that never speaks.
    """

    #: The algorithm's name in tables and figures, and, in any case and with or without hyphens, wherever one is chosen.
    name: ClassVar[str] = "custom"
    speech: ClassVar[Speech] = Speech.BROADCAST
    #: Whom it mixes with: "all", whenever they last spoke, or "spoken", those who have spoken in this round.
    listen: str = ALL
    #: The steps that decide how fast it learns, and for each the values that tuning tries first.
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    #: Arguments with which it computes something else than by default: the battery of checks tries each of them.
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    #: How many labels a sample has: labels are (T, N), and (T, N, K) for a learner whose K is not 1.
    outputs: int = 1

    def __init_subclass__(cls, **options: Any) -> None:
        """A learner that steps in its own way is not what the kernel of its base computes."""
        super().__init_subclass__(**options)
        if "kernel" not in vars(cls) and {"init", "step", "hear"} & set(vars(cls)):
            cls.kernel = Learner.kernel  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        channel: Channel | None = None,
    ) -> None:
        self.regularization = _validate.number("regularization", regularization, least=0)
        self.loss = losses.get(loss)
        if channel is not None and not isinstance(channel, Channel):
            raise ArgumentError("channel", f"must be a laconic.Channel, got {_validate.shown(channel)}.")
        self.channel = channel

    @abstractmethod
    def init(self, n_agents: int, n_features: int) -> Any:
        """The first state: a NamedTuple of arrays with a row for each agent, ``weights`` among them."""

    @abstractmethod
    def step(self, state: Any, sample: Sample, heard: Heard) -> tuple[Any, dict[str, Array]]:
        """Learn from a sample. Returns the new state, and an array (rows,) for whatever is worth seeing."""

    def hear(self, state: Any, heard: Heard) -> Any:
        """Take in what the neighbours said this round. By default nothing: ``step`` will see it again."""
        return state

    def clips(self) -> float:
        """How many times the median pull a neighbour's pull may be; 0, as by default, where nothing is clipped.

        Otherwise the state has ``sums``, the running sum of what was said, and ``heard`` is clipped: ``_clipping``.
        """
        return 0.0

    def moved(self, state: Any, weights: Array) -> Any:
        """The state whose ``weights`` are these: for an agent that takes over a model, or shortens its own."""
        return state._replace(weights=weights)

    def why_not(self, state: Any) -> str:
        """What a state from a file holds that this learner cannot have come to; nothing, as by default, if all may be.

        All numbers of it are finite. What is used to find a place, or that no later round could mend, belongs here.
        """
        return ""

    def precise(self) -> frozenset[str]:
        """The parts of the state that are kept in double precision always; by default the sums of who clips pulls.

        Running sums are small differences of large numbers: in single precision nothing would be left of them.
        """
        return frozenset({"sums"}) if self.clips() else frozenset()

    def kernel(self) -> Kernel | None:
        """The compiled step that computes what ``step`` and ``hear`` do; None if there is none."""
        return None

    def rule(self) -> Rule:
        """The rule of its waves, of a learner that has messages of its own."""
        raise NotImplementedError(f"{type(self).__name__} has no messages of its own.")

    def advice(self) -> str:
        """What to change when a run diverges."""
        return "its steps are too large for this data."

    def shrink(self, n_agents: int) -> float:
        """2 lambda / N: the ridge's gradient is this times theta."""
        return 2.0 * self.regularization / n_agents

    def local_step(self, network: Network) -> float | None:
        """The step with which Local moves as far as this learner would without neighbours; None if nobody knows."""
        return None

    def alone(self, n_rounds: int) -> Learner | None:
        """The same learner with nobody to talk to for so many rounds; None if ``Local`` stands for that."""
        return None

    def describe(self) -> str:
        """Its steps, in words."""
        values = {name: getattr(self, _attribute(name)) for name in self.grid}
        return ", ".join(f"{name} {value(1) if callable(value) else value:g}" for name, value in values.items())

    # Parameters -------------------------------------------------------------------------------------------------

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Names of the constructor's arguments."""
        return tuple(parameters.arguments(cls))

    @classmethod
    def usual_steps(cls, loss: losses.Loss) -> dict[str, float]:
        """Steps that do well with this loss on data scaled to [0, 1]; by default the constructor's own."""
        defaults = parameters.arguments(cls)
        return {name: defaults[name] for name in cls.grid if defaults[name] is not inspect.Parameter.empty}

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments and their values."""
        return {name: getattr(self, _attribute(name)) for name in self.arguments()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them; ``deep`` adds those of channel and schedules.

        >>> import laconic as lc
        >>> lc.QCODKLA(rho=0.2, eta=4.0).get_params()["eta"]
        4.0
        >>> lc.ODKLA(channel=lc.Channel(lc.Censor(2.0, 0.9))).get_params()["channel__censor__alpha"]
        2.0
        """
        found = {k: v.value if isinstance(v, Constant) else v for k, v in self.parameters().items()}
        return parameters.flatten(found) if deep else found

    def set_params(self, **changes: Any) -> Self:
        """Change some arguments, by the names of ``get_params``; all of them are checked as when it was made.

        >>> import laconic as lc
        >>> learner = lc.ODKLA(channel=lc.Channel(lc.Censor(2.0, 0.9)))
        >>> learner.set_params(rho=1.0, channel__censor__alpha=3.0).channel.censor
        Censor(alpha=3.0, beta=0.9)
        """
        arguments = parameters.replaced(type(self).__name__, self.get_params(deep=False), changes)
        made = type(self)(**arguments)  # which may refuse, and then nothing has changed
        self.__dict__.clear()
        self.__dict__.update(made.__dict__)
        return self

    def __sklearn_clone__(self) -> Self:
        # scikit-learn's own clone wants arguments to be kept as they came; here a number becomes a schedule.
        return copy.copy(self)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({arguments})"


def _attribute(argument: str) -> str:
    """Where an argument is kept: ``step`` is the name of the method, so learners keep their step as ``step_size``."""
    return "step_size" if argument == "step" else argument


def tempered(slope: Array, sample: Sample) -> Array:
    """The slope of the loss, divided by max(1, |phi|^2): what a first-order learner multiplies phi by.

    Where features may be longer than 1, a step that is right for length 1 is too long by the square of their length.
    """
    if sample.square is None:
        return slope
    shorter: Array = slope / np.maximum(sample.square, 1).astype(slope.dtype)
    return shorter


def row_dot(a: Array, b: Array) -> Array:
    """Inner product of each row of ``a`` with that row of ``b``."""
    product: Array = (a * b).sum(axis=-1)
    return product
