"""What a round of an agent was, and why the next one cannot begin yet."""

from __future__ import annotations

from typing import Any, NamedTuple


class NotReady(RuntimeError):
    """The round is not over: some neighbour has not been heard."""


class Info(NamedTuple):
    """What a round was.

    Attributes
    ----------
    round : int
        Counted from 1.
    prediction : float, or array of several outputs
        Made before the label was learned from; NaN in a round without a sample.
    label : float, or array
        NaN if it was missing.
    loss : float
        Of the prediction, the mean over its outputs; NaN without a label.
    sent : bool
        Whether the model, or its change, was sent.
    bits : int
        What that cost by the paper's account: 0 if nothing was sent.
    saturated : float
        Share of the message's entries that lay outside the quantizer's range.
    """

    round: int
    prediction: Any
    label: Any
    loss: float
    sent: bool
    bits: int
    saturated: float
