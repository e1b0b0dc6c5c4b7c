"""What travels between the processes of one job, over MPI: messages to those who hear them, and sums over everybody.

mpi4py is imported when such a job is asked for, and not before.
"""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar, final

import numpy as np

from laconic import _extras
from laconic._validate import Array
from laconic.engine.partition import Part

Found = TypeVar("Found")

_NAP = 0.005  # seconds between two looks at whether another process has come as far
_PARTING = 0.5  # seconds for what was shown to reach whoever started the job: with that all that is on its way is lost
_PATIENCE = 5.0  # seconds until one that has failed believes that the others have not


def world() -> Any:
    """All processes of this job."""
    return _extras.need("mpi4py.MPI", "engine='mpi'").COMM_WORLD


class FailedElsewhere(RuntimeError):
    """Another process of the job could not go on, for no reason that input may give; it shows where."""


def agreed(comm: Any, do: Callable[[], Found]) -> Found:
    """What ``do`` gives in this process; where it fails in any, an error in all of them.

    Whatever may fail in one process alone (a file, a stream) is done like this: the others would wait for it for ever.
    Of bad input and files everybody says the same. ``comm`` is None for a process by itself.
    """
    if comm is None or comm.size == 1:
        return do()
    failure: BaseException | None = None
    try:
        found = do()
    except (Exception, SystemExit) as error:
        failure = error
    told = [error for error in comm.allgather(_sendable(failure)) if error is not None]
    if failure is not None:
        raise failure
    if told:
        raise next((error for error in told if not isinstance(error, FailedElsewhere)), told[0])
    return found


def _sendable(failure: BaseException | None) -> Exception | None:
    """What other processes are told of it."""
    if failure is None:
        return None
    if not isinstance(failure, (ValueError, OSError)):
        return FailedElsewhere(f"another process could not go on: {failure!r}.")
    try:
        same: Exception = pickle.loads(pickle.dumps(failure))
    except Exception:  # of whoever made an exception that does not survive this
        return ValueError(str(failure))
    return same


def all_fail(comm: Any) -> bool:
    """Whether all processes of the job fail now: then none waits for another, and each may end in its own way."""
    waiting, until = comm.Ibarrier(), time.monotonic() + _PATIENCE
    while not waiting.Test():
        if time.monotonic() > until:
            return False
        time.sleep(_NAP)
    return True


def abandon(comm: Any, code: int = 1) -> None:
    """Show the error that is being handled, and end the whole job, since this process alone cannot go on."""
    traceback.print_exc()
    sys.stderr.flush()
    time.sleep(_PARTING)
    comm.Abort(code)


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


def _before(counts: Array) -> Array:
    """Where each of some pieces begins that stand back to back."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)


def _most(starts: Array, longest: int) -> int:
    """The bytes of messages from everybody, with the bits that say who spoke."""
    lengths = np.diff(starts)
    return int((-(-lengths // 4) + lengths * longest).sum())
