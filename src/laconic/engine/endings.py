"""How a round or a chunk of rounds ends, in numbers that compiled and plain code share."""

from __future__ import annotations

from laconic.native.run import AGAIN, BAD_INPUT, DIVERGED, FINISHED, SPOILED

__all__ = ["AGAIN", "BAD_INPUT", "DIVERGED", "DIVERGENCE", "FINISHED", "NORM_LIMIT", "SPOILED"]

#: A prediction this many times larger than any label seen so far can only come from a run that diverges.
DIVERGENCE = 1e3

#: A replica of this norm has diverged. Its square, and sums of many, are finite in single precision.
NORM_LIMIT = 1e15
