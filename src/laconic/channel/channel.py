"""A channel: from a model to the replicas that the neighbours keep of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel.coder import can_code, decode_row, encode_row
from laconic.channel.quantizer import Quantizer

_DENSE_BITS = 32  # the paper's price of a number that is sent as it is


class Transmission(NamedTuple):
    """What a round of talking left: the replicas, who spoke, and how many entries of each message saturated.

    ``bits`` is what each message took, where that varies from one to the next; ``memory`` what a censor remembers.
    """

    broadcast: Array
    sent: Array
    outside: Array
    bits: Array | None = None
    memory: Array | None = None


def remembers(censor: object) -> bool:
    """Whether a censor decides by what it remembers of an agent, as ``Budget`` does, and not by the round alone."""
    return all(hasattr(censor, name) for name in ("memory", "begin", "wishes", "spend"))


def _check_quantizer(quantizer: object) -> None:
    """Refuse what can neither quantize rows of innovations nor turn one of them into bytes and back.

    A quantizer has ``__call__(h)``, which is Q(h) row by row, and ``message_bits(n_features)``; or it has
    ``encode(h) -> bytes`` and ``decode(bytes) -> h``. A class of quantizers is none.
    """
    if isinstance(quantizer, type) or not (_works_on_rows(quantizer) or can_code(quantizer)):
        raise ArgumentError(
            "quantizer",
            "must be a laconic.Quantizer or work like one: with __call__(h) and message_bits(n_features), or with "
            f"encode(h) and decode(data); got {_validate.shown(quantizer)}.",
        )


@dataclass(frozen=True)
class Channel:
    """Censor, then quantize; either may be absent. ``Channel()`` sends every model as it is, in every round.

    What winds up where few speak: between two messages replicas stand still, and a learner that acts on them in every
    round, by a dual that grows with the same disagreement or a mixture that pulls the same way, adds up what was said
    once. With one message in ten rounds (``Budget(0.1)``; air quality, five agents, seeds 40 to 44, steps tuned without
    a channel on seeds 0 to 2) adapt-then-combine that mixes in every round diverges on every seed, and so does ODKLA
    with three pairs of steps; ``RFFDOKL(listen="spoken")`` has 3.15e-3, where sending everything has 2.61e-3.

    Parameters
    ----------
    censor : Censor or Budget, optional
        Or one of one's own: with ``threshold(t)``, or with what ``Budget`` has.
    quantizer : Quantizer, optional
        Or one of one's own: see ``laconic.channel.coder`` and ``docs/own-learner.md``.

    Examples
    --------
    >>> from laconic.channel import Censor
    >>> Channel(Censor(4.0, 0.99), Quantizer(3)).message_bits(100)
    332
    >>> Channel().message_bits(100)
    3200
    """

    censor: Any = None
    quantizer: Quantizer | Any | None = None

    def __post_init__(self) -> None:
        censor = self.censor
        if censor is not None and (isinstance(censor, type) or not (hasattr(censor, "threshold") or remembers(censor))):
            got = _validate.shown(censor)
            raise ArgumentError(
                "censor", f"must have a method threshold(t), like laconic.Censor, or be a laconic.Budget; got {got}."
            )
        if self.quantizer is not None:
            _check_quantizer(self.quantizer)

    @property
    def lossless(self) -> bool:
        """Whether replicas always equal the model."""
        return self.censor is None and self.quantizer is None

    def message_bits(self, n_features: int) -> int | None:
        """Bits of one broadcast, None if each has a length of its own; a censored round costs none."""
        if self.quantizer is None:
            return _DENSE_BITS * n_features
        account: Any = getattr(self.quantizer, "message_bits", None)
        return None if account is None else int(account(n_features))

    @property
    def memory(self) -> tuple[str, ...]:
        """Names of what the censor remembers of each agent; nothing, if it decides by the round alone."""
        return tuple(self.censor.memory) if remembers(self.censor) else ()

    def begin(self, n_rows: int) -> Array:
        """What the censor remembers of each row before the first round, (n_rows, how much that is)."""
        if not remembers(self.censor):
            return np.zeros((n_rows, 0))
        return np.asarray(self.censor.begin(n_rows), dtype=np.float64)

    def send(self, weights: Array, broadcast: Array, t: int, memory: Array | None = None) -> Transmission:
        """Round ``t`` of every row: replicas after it, who sent (rows,), and saturated entries (rows,).

        h = theta - theta-hat; if |h| >= alpha beta^t then theta-hat <- theta-hat + Q(h), else nothing is said. What a
        censor remembers is passed on from round to round as ``memory``; without it this is the first one.
        """
        censor: Any = self.censor
        innovation = weights - broadcast
        sent = np.ones(len(weights), dtype=bool)
        norms = None if censor is None else np.sqrt((innovation**2).sum(axis=1))
        if not remembers(censor):
            if norms is not None:
                sent = norms >= censor.threshold(t)
            heard, bits = self._say(weights, broadcast, innovation, sent)
        else:
            memory = self.begin(len(weights)) if memory is None else memory
            heard, bits = self._say(weights, broadcast, innovation, censor.wishes(memory, norms))
            prices = np.full(len(weights), self.message_bits(weights.shape[1])) if bits is None else bits
            sent, memory = censor.spend(memory, norms, prices)
            bits = None if bits is None else np.where(sent, bits, 0)
        outside, quantizer = np.zeros(len(weights), dtype=np.int64), self.quantizer  # type: Array, Any
        if hasattr(quantizer, "outside"):
            outside = np.where(sent, quantizer.outside(innovation), 0)
        return Transmission(np.where(sent[:, None], heard, broadcast), sent, outside, bits, memory)

    def _say(self, weights: Array, broadcast: Array, innovation: Array, said: Array) -> tuple[Array, Array | None]:
        """Replicas of the rows that say something, and the bits of what they say, if these vary."""
        quantizer: Any = self.quantizer
        if quantizer is None:
            return weights, None
        if _works_on_rows(quantizer):
            return broadcast + quantizer(innovation), None
        coded, bits = _code_rows(quantizer, innovation, said)
        return broadcast + coded, None if hasattr(quantizer, "message_bits") else bits


def _works_on_rows(quantizer: object) -> bool:
    """Whether a quantizer takes all rows at once, and says beforehand what a message costs."""
    return callable(quantizer) and callable(getattr(quantizer, "message_bits", None))


def _code_rows(quantizer: Any, innovation: Array, sent: Array) -> tuple[Array, Array]:
    """decode(encode(h)) of each row that is sent, and its bits; what is not finite is left as it is."""
    coded, bits = innovation.copy(), np.zeros(len(innovation), dtype=np.int64)
    for row in np.flatnonzero(sent & np.isfinite(innovation).all(axis=1)):
        data = encode_row(quantizer, innovation[row].copy())
        coded[row] = decode_row(quantizer, data, innovation.shape[1], innovation.dtype)
        bits[row] = 8 * len(data)
    return coded, bits
