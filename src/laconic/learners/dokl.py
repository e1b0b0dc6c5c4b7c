"""DOKL: online ADMM whose every step is solved exactly, in closed form or by a scalar Newton."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.learners.base import Kernel, Sample, row_dot
from laconic.learners.families import ADMM
from laconic.network import Heard, Network


@final
class DOKL(ADMM):
    """Online decentralized ADMM with the exact primal step.

    With c = eta + 2 rho d + 2 lambda/N and v = eta theta + rho sum_j (theta-hat_i + theta-hat_j) - gamma, the model
    moves to

        argmin_theta  l(theta.phi, y) + (c/2) |theta|^2 - v.theta  =  (v - s phi)/c

    where the scalar s = l'(m, y) solves m = (phi.v - s |phi|^2)/c. That is O(L): no matrix is ever solved.
    The dual step is ODKLA's.

    Parameters
    ----------
    rho, eta, regularization, loss, channel, robust, reach
        As for ODKLA. Any loss that ``Loss.prox`` can handle will do, which is every convex one.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.DOKL(rho=0.2, eta=4.0, loss="hinge").loss
    'hinge'
    """

    name = "DOKL"

    def kernel(self) -> Kernel | None:
        """ADMM with the exact step; with a schedule for rho there is none."""
        if callable(self.rho):
            return None
        return Kernel("proximal", self.eta, rho=self.rho, reach=self.clips())

    def local_step(self, network: Network) -> float:
        """An exact step is as long as a gradient step of 1/(c + curvature), with the largest curvature of the loss."""
        c = self.eta(1) + 2 * self.rho * network.degrees + self.shrink(network.n_agents)
        return float(np.mean(1 / (c + self.loss.curvature)))

    def step(self, state: Any, sample: Sample, heard: Heard) -> tuple[Any, dict[str, Array]]:
        """The exact minimiser above."""
        weights, duals = state.weights, state.duals
        eta, degrees = self.eta(sample.t), heard.degrees
        rho = self.penalty(sample.t)
        c = eta + 2 * rho * degrees + self.shrink(heard.n_agents)
        # sum_j (own + other) = 2 d own - disagreement
        v = eta * weights + rho * (2 * degrees * heard.broadcast - heard.disagreement) - duals
        square = 1.0 if sample.square is None else sample.square
        slope = self.loss.prox(row_dot(v, sample.phi) / square, c[:, 0] / square, sample.label)
        moved = ((v - slope[:, None] * sample.phi) / c).astype(weights.dtype)
        return state._replace(weights=moved), {"slope": np.asarray(slope)}
