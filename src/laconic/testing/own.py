"""A learner and a quantizer as people write their own, in NumPy, for schedules of faults to run."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Channel
from laconic.learners import Learner
from laconic.learners.base import Sample, row_dot
from laconic.network import Heard


class HeavyState(NamedTuple):
    """Models, duals, and the last steps, a row an agent."""

    weights: Array
    duals: Array
    velocity: Array


@final
class HeavyBall(Learner):
    """Linearized ADMM with momentum.

    In round t agent i, with d neighbours, moves its model by

        v     <- mu v + [grad L(theta) + rho sum_j (theta-hat_i - theta-hat_j) + gamma] / (eta + 2 rho d)
        theta <- theta - v

    and then raises its dual gamma by rho sum_j (theta-hat_i - theta-hat_j).

    Parameters
    ----------
    rho, eta, momentum : float
        Penalty on disagreement, proximal weight, and mu.
    channel : Channel, optional
    """

    name = "heavy ball"

    def __init__(
        self, rho: float = 0.4, eta: float = 24.0, momentum: float = 0.3, *, channel: Channel | None = None
    ) -> None:
        super().__init__(channel=channel or Channel())
        self.rho, self.eta, self.momentum = rho, eta, momentum

    def init(self, n_agents: int, n_features: int) -> HeavyState:
        """All begins at zero."""
        return HeavyState(*(np.zeros((n_agents, n_features)) for _ in range(3)))

    def step(self, state: HeavyState, sample: Sample, heard: Heard) -> tuple[HeavyState, dict[str, Array]]:
        """Learn from a sample."""
        slope = self.loss.slope(row_dot(state.weights, sample.phi), sample.label)
        pull = slope[:, None] * sample.phi + self.rho * heard.disagreement + state.duals
        velocity = self.momentum * state.velocity + pull / (self.eta + 2 * self.rho * heard.degrees)
        return HeavyState(state.weights - velocity, state.duals, velocity), {}

    def hear(self, state: HeavyState, heard: Heard) -> HeavyState:
        """The dual ascent, once the neighbours have spoken."""
        return state._replace(duals=state.duals + self.rho * heard.disagreement)


@final
class Halves:
    """A quantizer of one's own: entries in half precision."""

    def encode(self, h: Array) -> bytes:
        """Two bytes an entry."""
        return h.astype("<f2").tobytes()

    def decode(self, data: bytes) -> Array:
        """What they say."""
        return np.frombuffer(data, dtype="<f2").astype(np.float64)
