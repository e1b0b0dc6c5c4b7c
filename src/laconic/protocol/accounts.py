"""The sums behind the sessions of one agent: a ``Book`` over its ledger.

In ordinary rounds the dual grows by rho (hat_i - hat_j), as in the simulator and with its bits. Beside it each edge has
its share F in float64, which both ends compute from the same numbers by the same operations, one with the opposite
sign, so that in lockstep F_ij = -F_ji to the bit. From the shares the dual is computed anew when an edge comes or goes:

    gamma_i = rho sum_j F_ij

Where pulls are clipped (``robust="clip"``), shares stay what they are, and gamma_i = rho sum_j kept_ij F_ij is computed
from them in every round: no end needs to know what the other lets pass.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import final

import numpy as np

from laconic._validate import Array
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Kind, Statement
from laconic.protocol.wire import SHARE_LIMIT, Wire


@final
class Accounts:
    """Shares and replicas of an agent's edges, which go by number from 1: see ``laconic.protocol.session.Book``.

    Parameters
    ----------
    ledger : Ledger
    wire : Wire
    weigh : callable
        The combination weights of these edges.
    """

    def __init__(self, ledger: Ledger, wire: Wire, weigh: Callable[[tuple[int, ...]], tuple[float, ...]]) -> None:
        self.ledger, self.wire, self._weigh = ledger, wire, weigh
        self._heard: tuple[tuple[int, ...], tuple[float, ...]] | None = None
        self._counted: tuple[int, ...] = ()

    def resize(self, kept: list[int]) -> None:
        """Keep the rows of these edges, in this order; a 0 is room for a new one."""
        self._heard, self._counted = None, ()
        self.ledger.resize(kept)

    def hat(self) -> Array:
        """A copy of the broadcast."""
        return self.ledger.said(0).copy()

    def is_hat(self, hat: Array) -> bool:
        """Whether the broadcast is still what it was when it was copied."""
        return bool(np.array_equal(self.ledger.said(0), hat))

    def is_blank(self, hat: Array) -> bool:
        """Whether a broadcast is zero."""
        return not hat.any()

    def share(self, index: int) -> Array:
        """A copy of F."""
        return self.ledger.shares[index].copy()

    def opposite(self, share: Array) -> Array:
        """-F; without negative zeros, so that equal shares have equal bytes."""
        negative: Array = 0.0 - share
        return negative

    def nothing(self) -> Array:
        """A share of zero."""
        return np.zeros(self.ledger.n_features)

    def open(self, index: int, replica: Array | None, share: Array) -> None:
        """Put a replica and a share in the place of what was known; without a replica the old one stays."""
        if replica is not None:
            self.ledger.said(index)[:] = replica
        self.ledger.shares[index] = share

    def listen(self, indices: list[int], grown: list[int]) -> None:
        """End a round: what the replicas say, the dual, and F <- F + hat - replica of all but ``grown``."""
        kept = [(index, self.share(index)) for index in grown]
        self._listen_to(tuple(indices))
        self.ledger.listen()
        self._listen_to(self._counted)  # by how many the next step is divided
        for index, share in kept:
            self.ledger.shares[index] = share
        # Where pulls are clipped, a share that has not grown counts in the dual, too.
        if kept or (self.ledger.clips and tuple(indices) != self._counted):
            self.settle(list(self._counted))

    def _listen_to(self, indices: tuple[int, ...]) -> None:
        heard = indices, self._weigh(indices)
        if heard != self._heard:
            self._heard = heard
            self.ledger.listen_to(*heard)

    def let_pass(self, index: int, rounds: int) -> None:
        """F <- F + rounds (hat - replica)."""
        if rounds:
            self.ledger.shares[index] += rounds * (self.ledger.said(0).astype(np.float64) - self.ledger.said(index))

    def hear(self, index: int, statement: Statement, late: int, digest_of: int) -> str:
        """Change a replica by what was said, and F <- F - late (new - old); otherwise why not, and nothing changes."""
        replica = self.ledger.said(index)
        if statement.kind is Kind.SILENCE:
            return "" if self._digest(index, index, digest_of) == statement.digest else "digest"
        before = replica.copy()
        if not self.ledger.hear(index, statement.kind, *statement.content):
            return "not finite"
        if not replica.dot(replica) <= self.ledger.harmless and self.ledger.is_too_large(replica):
            replica[:] = before
            return "too large"
        if self._digest(index, index, digest_of) != statement.digest:
            replica[:] = before
            return "digest"
        if late:
            share = self.ledger.shares[index] - late * (replica.astype(np.float64) - before)
            if not np.abs(share).max() <= SHARE_LIMIT:
                replica[:] = before
                return "not finite"
            self.ledger.shares[index] = share
        if self.ledger.row.heeds:
            self.ledger.row.spoken[index] = 1
        return ""

    def is_too_large(self, index: int) -> bool:
        """Whether a replica or a share is beyond the agent's reach."""
        return self.ledger.is_too_large(self.ledger.said(index), self.ledger.shares[index])

    def digest(self, index: int, digest_of: int) -> int:
        """CRC-32 of the broadcast and, unless ``digest_of`` is 0, of so many times F."""
        return self._digest(0, index, digest_of)

    def _digest(self, row: int, index: int, digest_of: int) -> int:
        digest = zlib.crc32(self.ledger.said(row).data)
        return zlib.crc32((digest_of * self.ledger.shares[index] + 0.0).data, digest) if digest_of else digest

    def full(self) -> tuple[Kind, bytes]:
        """The broadcast, as the body of a statement."""
        return Kind.FULL, self.wire.model(self.ledger.said(0))

    def settle(self, indices: list[int]) -> None:
        """The dual, from its definition: rho times the sum of these edges' shares."""
        self.count(indices)
        self.ledger.settle([self.ledger.shares[index] for index in indices])

    def count(self, indices: list[int]) -> None:
        """Have these edges count, without moving the dual."""
        self._counted = tuple(indices)
        self._listen_to(self._counted)
        if self.ledger.clips:
            for index in indices:
                self.ledger.align(index, self.ledger.shares[index])
