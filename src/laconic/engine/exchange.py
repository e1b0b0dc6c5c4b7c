"""What travels between the processes of one job, over MPI: messages to those who hear them, and sums over everybody.

mpi4py is imported when such a job is asked for, and not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from laconic import _extras
from laconic._validate import Array
from laconic.engine.partition import Part

_NAP = 0.005  # seconds between two looks at whether another process has finished compiling


def world() -> Any:
    """All processes of this job."""
    return _extras.need("mpi4py.MPI", "engine='mpi'").COMM_WORLD


def alone() -> Any:
    """The process that asks, by itself."""
    return _extras.need("mpi4py.MPI", "engine='mpi'").COMM_SELF


@final
class Exchange:
    """The processes that hear each other, as a graph of their own, and how much has travelled along it.

    ``sent_bytes`` counts the bytes that this process has sent to others, in ``sent_rounds`` rounds.
    """

    def __init__(self, comm: Any, part: Part, longest: int) -> None:
        self._mpi = _extras.need("mpi4py.MPI", "engine='mpi'")
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        others = part.others.tolist()
        self._graph = comm.Create_dist_graph_adjacent(others, others)
        self.sent_bytes = self.sent_rounds = 0
        self._counts, self._coming = (np.zeros(len(others), dtype=np.int32) for _ in range(2))
        self.outgoing = np.zeros(_most(part.tell, longest), dtype=np.uint8)
        self.incoming = np.zeros(_most(part.hear, longest), dtype=np.uint8)

    @property
    def counts(self) -> Array:
        """Bytes for each other process, to be filled in before ``swap``."""
        return self._counts

    def swap(self) -> Array:
        """Send what stands in ``outgoing``, and fill ``incoming``; how many bytes came from each."""
        if not len(self._counts):
            return self._coming
        # How much is coming has to be known before it comes: a censor lets through what it lets through.
        self._graph.Neighbor_alltoall(self._counts, self._coming)
        self._graph.Neighbor_alltoallv(
            [self.outgoing, (self._counts, _before(self._counts)), self._mpi.BYTE],
            [self.incoming, (self._coming, _before(self._coming)), self._mpi.BYTE],
        )
        self.sent_bytes += int(self._counts.sum())
        self.sent_rounds += 1
        return self._coming

    def total(self, numbers: Array) -> Array:
        """The sum over all processes, in all of them the same."""
        whole = np.empty_like(numbers)
        self.comm.Allreduce(numbers, whole, op=self._mpi.SUM)
        return whole

    def largest(self, numbers: Array) -> Array:
        """The largest over all processes."""
        whole = np.empty_like(numbers)
        self.comm.Allreduce(numbers, whole, op=self._mpi.MAX)
        return whole

    def free(self) -> None:
        """Give the graph back."""
        self._graph.Free()


def one_first(comm: Any, do: Callable[[], object]) -> None:
    """On each machine one process does something, compiling above all, before the others go on.

    They would do the same at the same time, and waiting for it in MPI's own way keeps a core busy for nothing.
    """
    if comm.size == 1:
        return
    mpi = _extras.need("mpi4py.MPI", "engine='mpi'")
    here = comm.Split_type(mpi.COMM_TYPE_SHARED)
    try:
        if here.rank == 0:
            do()
        waiting = here.Ibarrier()
        while not waiting.Test():
            time.sleep(_NAP)
    finally:
        here.Free()


def _before(counts: Array) -> Array:
    """Where each of some pieces begins that stand back to back."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)


def _most(starts: Array, longest: int) -> int:
    """The bytes of messages from everybody, with the bits that say who spoke."""
    lengths = np.diff(starts)
    return int((-(-lengths // 4) + lengths * longest).sum())
