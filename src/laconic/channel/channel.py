"""A channel: from a model to the replicas that the neighbours keep of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.channel.censor import Censor
from laconic.channel.quantizer import Quantizer

_DENSE_BITS = 32  # the paper's price of a number that is sent as it is


class Transmission(NamedTuple):
    """What a round of talking left: the replicas, who spoke, and how many entries of each message saturated."""

    broadcast: Array
    sent: Array
    outside: Array


@dataclass(frozen=True)
class Channel:
    """Censor, then quantize; either may be absent. ``Channel()`` sends every model as it is, in every round.

    Parameters
    ----------
    censor : Censor, optional
    quantizer : Quantizer, optional

    Examples
    --------
    >>> Channel(Censor(4.0, 0.99), Quantizer(3)).message_bits(100)
    332
    >>> Channel().message_bits(100)
    3200
    """

    censor: Censor | None = None
    quantizer: Quantizer | None = None

    def __post_init__(self) -> None:
        if self.censor is not None and not hasattr(self.censor, "threshold"):
            raise ValueError(f"censor must have a method threshold(t), like laconic.Censor; got {self.censor!r}.")
        if self.quantizer is not None and not callable(self.quantizer):
            raise ValueError(f"quantizer must be a laconic.Quantizer or work like one; got {self.quantizer!r}.")

    @property
    def lossless(self) -> bool:
        """Whether replicas always equal the model."""
        return self.censor is None and self.quantizer is None

    def message_bits(self, n_features: int) -> int:
        """Bits of one broadcast; a censored round costs none."""
        if self.quantizer is None:
            return _DENSE_BITS * n_features
        return self.quantizer.message_bits(n_features)

    def send(self, weights: Array, broadcast: Array, t: int) -> Transmission:
        """Round ``t`` of every row: replicas after it, who sent (rows,), and saturated entries (rows,).

        h = theta - theta-hat; if |h| >= alpha beta^t then theta-hat <- theta-hat + Q(h), else nothing is said.
        """
        innovation = weights - broadcast
        sent = np.ones(len(weights), dtype=bool)
        if self.censor is not None:
            sent = np.sqrt((innovation**2).sum(axis=1)) >= self.censor.threshold(t)
        outside = np.zeros(len(weights), dtype=np.int64)
        if self.quantizer is None:
            heard = weights
        else:
            heard = broadcast + self.quantizer(innovation)
            outside = np.where(sent, self.quantizer.outside(innovation), 0)
        return Transmission(np.where(sent[:, None], heard, broadcast), sent, outside)
