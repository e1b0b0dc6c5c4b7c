"""ODKLA, online decentralized kernel learning via linearized ADMM, and QC-ODKLA, the same behind a lossy channel."""

from __future__ import annotations

from typing import Any, final

from laconic import losses
from laconic._validate import Array
from laconic.channel import Censor, Channel, Quantizer
from laconic.learners.base import Kernel, Sample, row_dot, tempered
from laconic.learners.families import ADMM
from laconic.learners.robust import REACH
from laconic.learners.schedules import NumberOrSchedule
from laconic.network import Heard


class ODKLA(ADMM):
    """Linearized ADMM (Algorithm 1 of the paper; Algorithm 2 with a channel that censors and quantizes).

    In round t agent i, with d neighbours, moves its model by

        theta <- theta - [grad L(theta) + rho sum_j (theta-hat_i - theta-hat_j) + gamma] / (eta_t + 2 rho d)

    where grad L = l'(theta.phi, y) phi + (2 lambda / N) theta; it broadcasts; and then raises its dual by
    rho sum_j (theta-hat_i - theta-hat_j).

    Parameters
    ----------
    rho : float or schedule
        Penalty on disagreement; 0.05 to 2 for data scaled to [0, 1]. A function of the round is for ``simulate`` alone,
        by the reference engine: agents keep what an edge has summed up over rho.
    eta : float or schedule
        Proximal weight, the inverse of a step size; 1 to 8 for data scaled to [0, 1].
    regularization : float
        lambda.
    loss : str or Loss
    channel : Channel
        Default: every model is sent as it is, and theta-hat = theta.
    robust : None or "clip"
        Whether no neighbour may pull much harder than most: see ``docs/robust.md``. The same at every agent.
    reach : float
        How many times the median a pull may be, if ``robust``; at least 1.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.ODKLA(rho=0.5, eta=lc.schedules.SqrtGrowth(0.1))
    ODKLA(rho=0.5, eta=SqrtGrowth(scale=0.1), regularization=0.0001, loss='squared',
          channel=Channel(censor=None, quantizer=None), robust=None, reach=1.5)
    """

    name = "ODKLA"

    def kernel(self) -> Kernel | None:
        """Linearized ADMM; with a schedule for rho there is none."""
        if callable(self.rho):
            return None
        return Kernel("linearized", self.eta, rho=self.rho, reach=self.clips())

    def step(self, state: Any, sample: Sample, heard: Heard) -> tuple[Any, dict[str, Array]]:
        """Eq. dec_qcodkla_primal."""
        weights, duals = state.weights, state.duals
        slope = tempered(self.loss.slope(row_dot(weights, sample.phi), sample.label), sample)
        gradient = slope[:, None] * sample.phi + self.shrink(heard.n_agents) * weights
        rho = self.penalty(sample.t)
        gain = 1 / (self.eta(sample.t) + 2 * rho * heard.degrees)
        moved = weights - gain * (gradient + rho * heard.disagreement + duals)
        return state._replace(weights=moved), {"slope": slope}


@final
class QCODKLA(ODKLA):
    """Quantized, communication-censored ODKLA: ``ODKLA`` with ``Channel(Censor(alpha, beta), Quantizer(bits, range))``.

    Parameters
    ----------
    rho, eta, regularization, loss, robust, reach
        As for ODKLA.
    alpha, beta : float
        A model is sent iff it moved at least ``alpha * beta**t`` from what was last sent.
    bits : int
        Bits an entry, 1 to 16.
    range : "adaptive" or (u, v)
        Range of the quantizer.
    rounding : "rise" or "tread"
        Cells of the quantizer.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.QCODKLA(alpha=4.0, beta=0.99, bits=3).channel
    Channel(censor=Censor(alpha=4.0, beta=0.99),
            quantizer=Quantizer(bits=3, range='adaptive', rounding='rise'))
    """

    name = "QC-ODKLA"

    def __init__(
        self,
        rho: NumberOrSchedule = 0.5,
        eta: NumberOrSchedule = 2.0,
        alpha: float = 4.0,
        beta: float = 0.99,
        bits: int = 3,
        range: str | tuple[float, float] = "adaptive",
        *,
        rounding: str = "rise",
        regularization: float = 1e-4,
        loss: str | losses.Loss = "squared",
        robust: str | None = None,
        reach: float = REACH,
    ) -> None:
        channel = Channel(Censor(alpha, beta), Quantizer(bits, range, rounding))
        super().__init__(
            rho, eta, regularization=regularization, loss=loss, channel=channel, robust=robust, reach=reach
        )
        assert channel.censor is not None and channel.quantizer is not None  # for the type checker
        self.alpha, self.beta = channel.censor.alpha, channel.censor.beta
        self.bits, self.range, self.rounding = (
            channel.quantizer.bits,
            channel.quantizer.range,
            channel.quantizer.rounding,
        )
