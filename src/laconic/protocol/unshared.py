"""A ledger and its accounts for learners that share no vector with their neighbours: every one of them has no entry.

The rules of a session ask for a broadcast, for replicas and for shares of a dual (``laconic.protocol.session.Book``).
Where waves run there is none of that: the parts of a statement say what they build on by digests of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.protocol.messages import Kind

_EMPTY = np.zeros(0)


class Unshared:
    """Answers what sessions ask of vectors, of which there are none."""

    n_features = 0
    strained = False

    def hat(self) -> Array:
        """The broadcast: a vector without entries."""
        return _EMPTY

    def said(self, index: int) -> Array:
        """The broadcast, or a replica of a neighbour's: a vector without entries."""
        return _EMPTY

    def share(self, index: int) -> Array:
        """F of an edge: a vector without entries."""
        return _EMPTY

    def opposite(self, share: object) -> Array:
        """-F as well has no entries."""
        return _EMPTY

    def nothing(self) -> Array:
        """A share of zero, as is any without entries."""
        return _EMPTY

    def is_hat(self, hat: object) -> bool:
        """Whether the broadcast is still what it was: without entries it cannot change."""
        return True

    def is_blank(self, hat: object) -> bool:
        """Whether a broadcast is zero, as is any without entries."""
        return True

    def full(self) -> tuple[Kind, bytes]:
        """What is said in the place of a broadcast told whole."""
        return Kind.SILENCE, b""

    def digest(self, index: int, digest_of: int) -> int:
        """The digest that goes with a statement: 0."""
        return 0

    def is_too_large(self, *what: Any) -> bool:
        """Whether a vector is beyond reach: never."""
        return False

    def size_of(self, index: int) -> float:
        """How hard a neighbour pulls by its model and share: not at all."""
        return 0.0

    def begin_with(self, model: object, several: bool) -> None:
        """Take over a model at the start: what all know is told by a wave, or in answer to a standing."""

    def listen(self, indices: list[int], grown: list[int]) -> None:
        """End a round; no share grows by that."""

    def let_pass(self, index: int, rounds: int) -> None:
        """Let rounds pass; no share grows by that."""

    def resize(self, kept: list[int]) -> None:
        """Give neighbours other numbers; no rows are kept by these."""

    def settle(self, indices: list[int]) -> None:
        """Compute the dual anew, of which there is none."""

    def count(self, indices: list[int]) -> None:
        """Have these edges count in the dual, of which there is none."""
