"""What learners of a kind share: those that move by ADMM, and those that step along the gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import Argument, ArgumentError, Worded
from laconic.channel import Channel
from laconic.learners import schedules
from laconic.learners.base import Learner
from laconic.learners.robust import REACH, Clipping
from laconic.learners.schedules import Constant, NumberOrSchedule
from laconic.network import Heard, Network


class ADMMState(NamedTuple):
    """Models theta and duals gamma, a row an agent."""

    weights: Array
    duals: Array


class RobustADMMState(NamedTuple):
    """Models theta, duals gamma, and the running sums of theta-hat, a row an agent."""

    weights: Array
    duals: Array
    sums: Array


class ADMM(Clipping, Learner):
    """What ODKLA and DOKL share: penalty, proximal weight, and the dual ascent once the neighbours have spoken."""

    grid = {"rho": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0), "eta": (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)}

    def __init__(
        self,
        rho: NumberOrSchedule = 0.5,
        eta: NumberOrSchedule = 2.0,
        *,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        channel: Channel = Channel(),  # noqa: B008 (immutable)
        robust: str | None = None,
        reach: float = REACH,
    ) -> None:
        super().__init__(regularization=regularization, loss=loss, channel=channel)
        _validate.instance("channel", channel, Channel, "a laconic.Channel")
        self._set_clipping(robust, reach)
        self.rho: Any = rho if callable(rho) else _validate.number("rho", rho, least=0)
        if callable(rho) and self.clips():
            raise ArgumentError("rho", "must be a number with robust='clip', whose dual is rho times a sum.")
        self.eta = schedules.get("eta", eta)

    def penalty(self, t: int) -> float:
        """rho in round ``t``."""
        return _validate.number(f"rho({t})", self.rho(t), least=0) if callable(self.rho) else self.rho

    def advice(self) -> Worded:
        """To raise eta or rho, since eta + 2 rho d divides every step."""
        eta = f" (now {self.eta.value:g})" if isinstance(self.eta, Constant) else ""
        return Worded(
            "eta + 2 rho d is too small for this data, and its inverse is the step: raise ",
            Argument("eta"),
            f"{eta} or ",
            Argument("rho"),
            "." if callable(self.rho) else f" (now {self.rho:g}).",
        )

    @classmethod
    def usual_steps(cls, loss: losses.Loss) -> dict[str, float]:
        """A classification loss has smaller slopes and takes larger steps."""
        return {"rho": 0.1, "eta": 0.5} if loss.binary else {"rho": 0.5, "eta": 2.0}

    def local_step(self, network: Network) -> float:
        """The mean of 1/(eta + 2 rho d), by which the gradient is multiplied."""
        return float(np.mean(1 / (self.eta(1) + 2 * self.penalty(1) * network.degrees)))

    def init(self, n_agents: int, n_features: int) -> Any:
        """theta_1 = gamma_1 = 0."""
        weights, duals = np.zeros((n_agents, n_features)), np.zeros((n_agents, n_features))
        if self.clips():
            return RobustADMMState(weights, duals, np.zeros((n_agents, n_features)))
        return ADMMState(weights, duals)

    def hear(self, state: Any, heard: Heard) -> Any:
        """Gamma <- gamma + rho sum_j (theta-hat_i - theta-hat_j)   (eq. dec_qcodkla_dual).

        Where pulls are clipped, gamma <- rho sum_j kept_j (S_i - S_j), which without clipping is the same.
        """
        if heard.shares is not None:
            duals = (self.rho * heard.shares).astype(state.duals.dtype)
            return state._replace(duals=duals, sums=state.sums + heard.broadcast)
        return state._replace(duals=state.duals + self.penalty(heard.t) * heard.disagreement)


class Gradient(Learner):
    """What diffusion and Local share: the step along the gradient."""

    grid = {"step": (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)}

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

    @classmethod
    def usual_steps(cls, loss: losses.Loss) -> dict[str, float]:
        """A classification loss has smaller slopes and takes larger steps."""
        return {"step": 1.0 if loss.binary else 0.25}

    def local_step(self, network: Network) -> float:
        """Its own step."""
        return float(self.step_size(1))

    def advice(self) -> Worded:
        """To lower the step."""
        return Worded("the step is too large for this data; lower ", Argument("step"), ".")
