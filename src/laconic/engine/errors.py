"""How a run can fail, with everything that was learned until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laconic._worded import Worded

if TYPE_CHECKING:
    from laconic.trace import Trace


class Diverged(ArithmeticError):
    """A run whose predictions left all bounds.

    Attributes
    ----------
    round : int
        The round in which it was noticed, counted from 1.
    trace : Trace or None
        All rounds before that; None from a running agent, which keeps no record.
    advice : str
        Which parameter to change.
    """

    def __init__(self, round: int, trace: Trace | None, advice: str) -> None:
        super().__init__(Worded(f"the run diverged in round {round}: ", advice))
        self.round = round
        self.trace = trace
        self.advice = advice

    def __reduce__(self) -> Any:
        return Diverged, (self.round, self.trace, self.advice)
