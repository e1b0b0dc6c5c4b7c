"""Local: every agent on its own. The baseline that tells what talking is worth."""

from __future__ import annotations

from typing import final

import numpy as np

from laconic import losses
from laconic._validate import Array
from laconic.learners.base import Kernel, Sample, Speech, row_dot, tempered
from laconic.learners.families import Gradient
from laconic.learners.rffdokl import DiffusionState
from laconic.learners.schedules import NumberOrSchedule
from laconic.network import Heard


@final
class Local(Gradient):
    """Gradient steps on one's own data, no neighbours, no bits: theta <- theta - step grad L(theta).

    Parameters
    ----------
    step : float or schedule
        Step size.
    regularization, loss
        As for ODKLA.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.Local(step=0.25)
    Local(step=0.25, regularization=0.0001, loss='squared')
    """

    name = "Local"
    speech = Speech.NEVER

    def __init__(
        self,
        step: NumberOrSchedule = 0.25,
        *,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
    ) -> None:
        super().__init__(step, regularization=regularization, loss=loss, channel=None)

    def kernel(self) -> Kernel:
        """A gradient step."""
        return Kernel("local", self.step_size)

    def init(self, n_agents: int, n_features: int) -> DiffusionState:
        """theta_1 = 0."""
        return DiffusionState(np.zeros((n_agents, n_features)))

    def step(self, state: DiffusionState, sample: Sample, heard: Heard) -> tuple[DiffusionState, dict[str, Array]]:
        """One gradient step."""
        weights = state.weights
        slope = tempered(self.loss.slope(row_dot(weights, sample.phi), sample.label), sample)
        gradient = slope[:, None] * sample.phi + self.shrink(heard.n_agents) * weights
        return DiffusionState(weights - self.step_size(sample.t) * gradient), {"slope": slope}
