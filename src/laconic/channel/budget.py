"""A budget instead of a threshold: what may be sent is given, and what is worth sending follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

_BURST = 20.0  # messages
_BURST_ROUNDS = 200.0  # what 20 messages are at one message in ten rounds


@dataclass(frozen=True)
class Budget:
    """Send what is most worth it, and in any n rounds no more than ``burst + rate n`` messages.

    Nothing has to be known of the size of models. Each agent keeps a threshold tau, which is the norm of the first
    innovation h that is not zero, and a credit c, which is ``burst`` at first. In every round

        wish = |h| > 0 and |h| >= tau
        c   <- min(burst, c + rate);    send iff wish and c >= 1, and then c <- c - 1
        tau <- tau exp(gain (wish - rate))

    so that tau settles where wishes come at ``rate``, and the credit holds whatever the stream does.

    With ``bits_per_round`` the credit is in bits and a message costs its length b: it is sent iff c >= b, ``rate``
    is min(1, bits_per_round / b) with the length of the last message that was wished for, and in any n rounds at most
    ``burst + bits_per_round n`` bits are sent. A message longer than ``burst`` is saved up for; where there are such,
    their length takes the place of ``burst``.

    What the sessions of running agents cost (greetings, repair, a model told whole after a loss of memory) comes on
    top, and an agent that starts without memory starts with full credit.

    Parameters
    ----------
    rate : float, optional
        Messages a round, above 0 and at most 1.
    burst : float, optional
        What may be sent at once after a silence, in the unit of the rate. Default: 20 messages; in bits, what 200
        rounds are worth, which is as much where an agent speaks in one round of ten.
    gain : float
        How fast the threshold follows, by the logarithm.
    bits_per_round : float, optional
        Bits a round, instead of ``rate``.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(1000, 5, 2))
    >>> y = np.sin(4 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=20, bandwidth=0.5)
    >>> channel = lc.Channel(lc.Budget(0.1), lc.Quantizer(3))
    >>> learner = lc.RFFDOKL(order="adapt-then-combine", listen="spoken", channel=channel)
    >>> trace = lc.simulate(learner, features, lc.Network.ring(5), X, y)
    >>> bool((trace.sent.sum(axis=0) <= 20 + 0.1 * 1000).all())
    True
    >>> lc.Budget(bits_per_round=50)
    Budget(rate=None, burst=10000.0, gain=0.1, bits_per_round=50.0)
    """

    rate: float | None = None
    burst: float | None = None
    gain: float = 0.1
    bits_per_round: float | None = None

    #: What it remembers of each agent: tau (0 while there is none), the credit, and the price of the last wish.
    memory: ClassVar[tuple[str, ...]] = ("tau", "credit", "cost")

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.bits_per_round is None):
            raise ArgumentError("rate", f"must be given, or else bits_per_round, and not both; got {self.rate!r}.")
        if self.rate is not None:
            object.__setattr__(self, "rate", _validate.number("rate", self.rate, above=0))
            if self.rate > 1:
                raise ArgumentError("rate", f"must be at most 1, a message in every round; got {self.rate!r}.")
            burst = _validate.number("burst", _BURST if self.burst is None else self.burst, least=1)
        else:
            bits = _validate.number("bits_per_round", self.bits_per_round, above=0)
            object.__setattr__(self, "bits_per_round", bits)
            burst = _validate.number("burst", _BURST_ROUNDS * bits if self.burst is None else self.burst, least=0)
        object.__setattr__(self, "burst", burst)
        object.__setattr__(self, "gain", _validate.number("gain", self.gain, least=0))

    @property
    def in_bits(self) -> bool:
        """Whether credit is counted in bits, not in messages."""
        return self.bits_per_round is not None

    @property
    def income(self) -> float:
        """What a round adds to the credit."""
        income = self.rate if self.rate is not None else self.bits_per_round
        assert income is not None  # one of them is given
        return income

    @property
    def most(self) -> float:
        """The credit that an agent may have, and starts with: ``burst``, as a number."""
        assert self.burst is not None
        return self.burst

    def begin(self, n_rows: int) -> Array:
        """What is remembered of ``n_rows`` agents before their first round, (n_rows, 3)."""
        return np.tile([0.0, self.most, 1.0], (n_rows, 1))

    def wishes(self, memory: Array, norms: Array) -> Array:
        """Whose innovation, of these ``norms``, is worth a message: |h| > 0 and |h| >= tau."""
        return (norms > 0) & (norms >= memory[:, 0])

    def spend(self, memory: Array, norms: Array, bits: Array) -> tuple[Array, Array]:
        """Who sends, if a message would have so many ``bits``; and what is remembered from now on.

        These lines are ``budgeting.spend``'s.
        """
        norms = np.asarray(norms, dtype=np.float64)
        tau, credit, cost = memory.T
        wish = self.wishes(memory, norms)
        tau = np.where((tau == 0) & (norms > 0), norms, tau)
        cost = np.where(wish, bits if self.in_bits else 1.0, cost)
        credit = np.minimum(np.maximum(self.most, cost), credit + self.income)
        sent = wish & (credit >= cost)
        with np.errstate(divide="ignore"):  # a message of no bits costs nothing
            rate = np.minimum(1.0, self.income / cost)
        tau = tau * np.exp(self.gain * (wish - rate))
        return sent, np.stack([tau, np.where(sent, credit - cost, credit), cost], axis=1)
