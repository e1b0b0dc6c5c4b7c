"""Censors and quantizers that are known: an example of each kind, which the battery of checks puts behind learners."""

from __future__ import annotations

from typing import Any, TypeVar

from laconic.channel.budget import Budget
from laconic.channel.censor import Censor
from laconic.channel.channel import remembers
from laconic.channel.coder import can_code
from laconic.channel.entropy import EntropyQuantizer
from laconic.channel.quantizer import Quantizer

P = TypeVar("P")

#: Anything that works like one will do, so these hold no particular type.
CENSORS: list[Any] = [Censor(0.5, 0.97), Budget(0.5, burst=3)]
QUANTIZERS: list[Any] = [
    Quantizer(4),
    Quantizer(4, rounding="tread"),
    Quantizer(6, range=(-1.5, 1.5)),
    EntropyQuantizer(0.5),
]


def register(part: P) -> P:
    """Make a censor or quantizer of one's own known, by an example of it, for models of any length.

    Examples
    --------
    >>> from laconic import channel
    >>> class Grace:
    ...     def threshold(self, t):
    ...         return 0.0 if t <= 50 else 0.2
    >>> grace = channel.register(Grace())
    >>> grace in channel.CENSORS
    True
    >>> channel.CENSORS.remove(grace)
    """
    censors = hasattr(part, "threshold") or remembers(part)
    if isinstance(part, type) or not (censors or callable(part) or can_code(part)):
        raise ValueError(f"part must be a censor or a quantizer, such as laconic.Quantizer(3); got {part!r}.")
    known = CENSORS if censors else QUANTIZERS
    if part not in known:
        known.append(part)
    return part
