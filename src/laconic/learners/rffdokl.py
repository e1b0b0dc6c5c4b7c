"""RFF-DOKL: diffusion, gradient steps that alternate with averaging over the neighbourhood."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel import Channel
from laconic.learners.base import ALL, SPOKEN, Kernel, Sample, row_dot, tempered
from laconic.learners.families import Gradient
from laconic.learners.robust import REACH, Clipping
from laconic.learners.schedules import NumberOrSchedule
from laconic.network import Heard

COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE = "combine-then-adapt", "adapt-then-combine"
_LOSSY_MIXING = 0.5


class RobustDiffusionState(NamedTuple):
    """Models, and the running sums of theta-hat, a row an agent."""

    weights: Array
    sums: Array


class DiffusionState(NamedTuple):
    """Models, a row an agent."""

    weights: Array


@final
class RFFDOKL(Clipping, Gradient):
    """Diffusion with Metropolis weights a_ij = 1/(1 + max(d_i, d_j)).

    Combine then adapt, the paper's baseline: psi_i = sum_j a_ij theta_j, theta_i <- psi_i - step grad L(psi_i). Adapt
    then combine is the other order, and better. Through a lossy channel it is replicas that are mixed,

        theta_i + mixing sum_j a_ij (theta-hat_j - theta-hat_i),

    which is the same when theta-hat = theta and mixing = 1. Replicas of those who are silent stay what they were, and
    to be drawn to them in every round winds a model up: see ``Channel``. With ``listen="spoken"`` an agent mixes, after
    its own step, only with those who have just spoken,

        theta_i <- theta_i + mixing sum over j that spoke of a_ij (theta-hat_j - theta_i),

    and does nothing where nobody did. That is a convex combination, so it cannot diverge by itself, however few speak.

    Parameters
    ----------
    step : float or schedule
        Step size of the gradient.
    order : "combine-then-adapt" or "adapt-then-combine"
    mixing : float, optional
        Share of the mixture that is taken in. Default: 1 through a lossless channel and with ``listen="spoken"``, 0.5
        through a lossy one (where 1 diverges under coarse quantization).
    listen : "all" or "spoken"
        Whom to mix with; "spoken" is for ``order="adapt-then-combine"`` and without ``robust``.
    regularization, loss, channel, robust, reach
        As for ODKLA.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.RFFDOKL(step=0.25).mixing, lc.RFFDOKL(step=0.25, channel=lc.Channel(quantizer=lc.Quantizer(3))).mixing
    (1.0, 0.5)
    >>> quiet = lc.Channel(lc.Budget(0.1), lc.Quantizer(3))
    >>> lc.RFFDOKL(step=0.25, order="adapt-then-combine", listen="spoken", channel=quiet).mixing
    1.0
    """

    name = "RFF-DOKL"
    variants = (
        {"order": COMBINE_THEN_ADAPT},
        {"order": ADAPT_THEN_COMBINE},
        {"order": ADAPT_THEN_COMBINE, "listen": SPOKEN},
    )

    def __init__(
        self,
        step: NumberOrSchedule = 0.25,
        order: str = COMBINE_THEN_ADAPT,
        *,
        mixing: float | None = None,
        listen: str = ALL,
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        channel: Channel = Channel(),  # noqa: B008 (immutable)
        robust: str | None = None,
        reach: float = REACH,
    ) -> None:
        super().__init__(step, regularization=regularization, loss=loss, channel=channel)
        self._mixing_given = mixing
        _validate.instance("channel", channel, Channel, "a laconic.Channel")
        self._set_clipping(robust, reach)
        self.order = _validate.choice("order", order, (COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE))
        self.listen = _validate.choice("listen", listen, (ALL, SPOKEN))
        if listen == SPOKEN and order != ADAPT_THEN_COMBINE:
            raise ArgumentError(
                "listen", f"must be 'all' unless order is 'adapt-then-combine', and order is {order!r}."
            )
        if listen == SPOKEN and robust is not None:
            raise ArgumentError("listen", "must be 'all' with robust='clip', which compares what all have said.")
        if mixing is None:
            mixing = 1.0 if channel.lossless or listen == SPOKEN else _LOSSY_MIXING
        self.mixing = _validate.number("mixing", mixing, above=0)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As for every learner; a mixing that was not given stays so, since it depends on the channel."""
        return {**super().get_params(deep), "mixing": self._mixing_given}

    def kernel(self) -> Kernel:
        """Diffusion in its order."""
        return Kernel(self.order, self.step_size, mixing=self.mixing, reach=self.clips())

    def init(self, n_agents: int, n_features: int) -> Any:
        """theta_1 = 0."""
        if self.clips():
            return RobustDiffusionState(np.zeros((n_agents, n_features)), np.zeros((n_agents, n_features)))
        return DiffusionState(np.zeros((n_agents, n_features)))

    def step(self, state: Any, sample: Sample, heard: Heard) -> tuple[Any, dict[str, Array]]:
        """Combine, if that comes first; then adapt."""
        weights = state.weights
        if self.order == COMBINE_THEN_ADAPT:
            weights = weights + self.mixing * heard.mixture
        slope = tempered(self.loss.slope(row_dot(weights, sample.phi), sample.label), sample)
        gradient = slope[:, None] * sample.phi + self.shrink(heard.n_agents) * weights
        return state._replace(weights=weights - self.step_size(sample.t) * gradient), {"slope": slope}

    def hear(self, state: Any, heard: Heard) -> Any:
        """Combine, if that comes last."""
        if heard.shares is not None:
            state = state._replace(sums=state.sums + heard.broadcast)
        if self.order == COMBINE_THEN_ADAPT:
            return state
        return state._replace(weights=state.weights + self.mixing * heard.mixture)
