"""What every learner is: parameters, a first state, and a pure step over rows.

A row is an agent. The simulator passes N rows at once, a running agent passes one, and the same lines serve both. In
each round the engine

1. hands the new sample and what was last heard to ``step``, which returns the new state;
2. lets the channel carry ``state.weights`` to the neighbours' replicas;
3. hands what is heard now to ``hear``, which returns the state that the next round starts from.

Predictions are made before all that, from ``state.weights``, by the engine. A learner of one's own is a subclass with
``init`` and ``step`` in plain NumPy: see ``docs/own-learner.md`` and ``examples/own_learner.py``.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic.channel import Channel
from laconic.learners import schedules
from laconic.learners.schedules import Constant, NumberOrSchedule, Schedule
from laconic.network import Heard


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
    """

    phi: Array
    label: Array
    t: int


class Kernel(NamedTuple):
    """The compiled step of a learner, and the numbers that it needs.

    Attributes
    ----------
    step : str
        Its rung in ``engine.steps``.
    rate : schedule
        What a step is measured by, as a function of the round: eta of ADMM, the step of a gradient.
    rho, mixing : float
        Penalty on disagreement; share of the mixture.
    """

    step: str
    rate: Schedule
    rho: float = 0.0
    mixing: float = 0.0


class Learner(ABC):
    """Base of all learners. Subclasses are final: they set their parameters and fill in ``init`` and ``step``.

    Parameters
    ----------
    regularization : float
        lambda of the ridge (lambda / n_agents) |theta|^2 that every sample's loss carries.
    loss : str or Loss
        "squared", "logistic", "hinge", or a loss of one's own.
    channel : Channel or None
        What carries the weights to the neighbours; None for a learner that never speaks.
    """

    #: The algorithm's name in tables and figures, and, in any case and with or without hyphens, wherever one is chosen.
    name: ClassVar[str] = "custom"

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
            raise ValueError(f"channel must be a laconic.Channel, got {channel!r}.")
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

    def kernel(self) -> Kernel | None:
        """The compiled step that computes what ``step`` and ``hear`` do; None if there is none."""
        return None

    def advice(self) -> str:
        """What to change when a run diverges."""
        return "its steps are too large for this data."

    def shrink(self, n_agents: int) -> float:
        """2 lambda / N: the ridge's gradient is this times theta."""
        return 2.0 * self.regularization / n_agents

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments and their values."""
        # ``step`` is the name of the method, so learners keep their step as ``step_size``.
        return {name: getattr(self, "step_size" if name == "step" else name) for name in _arguments(type(self))}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({arguments})"


@cache
def _arguments(learner: type[Learner]) -> tuple[str, ...]:
    """Names of the constructor's arguments."""
    return tuple(name for name in inspect.signature(learner).parameters if name not in ("args", "kwargs"))


class ADMMState(NamedTuple):
    """Models theta and duals gamma, a row an agent."""

    weights: Array
    duals: Array


class ADMM(Learner):
    """What ODKLA and DOKL share: penalty, proximal weight, and the dual ascent once the neighbours have spoken."""

    def __init__(
        self,
        rho: float = 0.5,
        eta: NumberOrSchedule = 2.0,
        *,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        channel: Channel = Channel(),  # noqa: B008 (immutable)
    ) -> None:
        super().__init__(regularization=regularization, loss=loss, channel=channel)
        self.rho = _validate.number("rho", rho, least=0)
        self.eta = schedules.get("eta", eta)

    def advice(self) -> str:
        """Eta + 2 rho d divides every step."""
        eta = f" (now {self.eta.value:g})" if isinstance(self.eta, Constant) else ""
        return (
            "eta + 2 rho d is too small for this data, and its inverse is the step: "
            f"raise eta{eta} or rho (now {self.rho:g})."
        )

    def init(self, n_agents: int, n_features: int) -> ADMMState:
        """theta_1 = gamma_1 = 0."""
        return ADMMState(np.zeros((n_agents, n_features)), np.zeros((n_agents, n_features)))

    def hear(self, state: ADMMState, heard: Heard) -> ADMMState:
        """gamma <- gamma + rho sum_j (theta-hat_i - theta-hat_j)   (eq. dec_qcodkla_dual)."""
        return state._replace(duals=state.duals + self.rho * heard.disagreement)


class Gradient(Learner):
    """What diffusion and Local share: the step along the gradient."""

    def __init__(
        self,
        step: NumberOrSchedule = 0.25,
        *,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        channel: Channel | None = None,
    ) -> None:
        super().__init__(regularization=regularization, loss=loss, channel=channel)
        self.step_size = schedules.get("step", step)

    def advice(self) -> str:
        """The step alone decides."""
        return "the step is too large for this data; lower step."


def row_dot(a: Array, b: Array) -> Array:
    """Inner product of each row of ``a`` with that row of ``b``."""
    product: Array = (a * b).sum(axis=1)
    return product
