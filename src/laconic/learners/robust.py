"""The option ``robust="clip"`` of learners that mix: no neighbour pulls much harder than most of them do.

What is clipped, and how, is in ``laconic._clipping``; engines and agents apply it to what is heard, so that a learner's
step sees pulls that are clipped already. All that it needs beside that is the running sum of what everybody has said,
which a robust learner keeps in its state as ``sums``.
"""

from __future__ import annotations

from laconic import _validate

CLIP = "clip"
#: Chosen on streams that no table shows: nearer to 1 costs where agents differ by nature, 2 lets some attacks through.
REACH = 1.5


class Clipping:
    """What robust learners share: their two arguments."""

    robust: str | None
    reach: float

    def _set_clipping(self, robust: str | None, reach: float) -> None:
        self.robust = None if robust is None else _validate.choice("robust", robust, (CLIP,))
        self.reach = _validate.number("reach", reach, least=1)

    def clips(self) -> float:
        """How many times the median pull a neighbour's pull may be; 0 where nothing is clipped."""
        return 0.0 if self.robust is None else self.reach
