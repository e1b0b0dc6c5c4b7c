"""What is asked for before it is needed, where rows are too many for the cache.

Rows are asked for in their order: an agent's own some rows ahead, and replicas, which neighbours read, so far ahead
that they are there when the first neighbour reads them. That serves neighbours that are near in the order of the rows.
The others are listed, by groups of rows: at the rim of a part of METIS a few, in a random network all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic._validate import Array
from laconic.engine.cache import entry
from laconic.engine.vectors import ladder, prefetch_row

if TYPE_CHECKING:
    from laconic.engine.rounds import Graph, Rows

#: Beyond so many bytes models do not stay in the cache from one round to the next.
CACHED = 1 << 21
#: Beyond so many they are in no cache at all, and it pays to ask for distant neighbours.
DISTANT = 1 << 23
#: Neighbours within so many rows are near: as many as METIS has in a part.
NEAR = 256
#: Distant neighbours are listed for so many rows at a time.
GROUP = 8
_OWN_AHEAD = 12  # rows
_GROUPS_AHEAD = 8


@ladder
def prefetch_ahead(weights, duals, broadcast, i):
    """Ask for what is read of the rows some way behind the i-th; not all learners have ``duals``."""
    size = weights.shape[1]
    own, heard = (i + _OWN_AHEAD) * size, (i + NEAR) * size
    prefetch_row(weights, own, size)
    if duals.size:
        prefetch_row(duals, own, size)
    prefetch_row(broadcast, heard, size)


@ladder
def prefetch_distant(broadcast, distant_starts, distant, i, n_rows):
    """Where a group begins with one of ``n_rows`` rows from the i-th on, ask for the distant neighbours of a later one.

    Each of them would otherwise be waited for.
    """
    group, size = i // GROUP + _GROUPS_AHEAD, broadcast.shape[1]
    if i % GROUP < n_rows and group + 1 < distant_starts.shape[0]:
        for k in range(distant_starts[group], distant_starts[group + 1]):
            prefetch_row(broadcast, distant[k] * size, size)


@entry
def _list_distant(neighbours, starts, distant_starts, distant):
    """Lists those that ``distant`` has room for; returns how many there are."""
    count = 0
    for i in range(len(starts) - 1):
        if i % GROUP == 0:
            distant_starts[i // GROUP] = count
        for k in range(starts[i], starts[i + 1]):
            if abs(neighbours[k] - i) > NEAR:
                if count < len(distant):
                    distant[count] = neighbours[k]
                count += 1
    distant_starts[len(distant_starts) - 1] = count
    return count


def listed_distant(starts: Array, neighbours: Array) -> tuple[Array, Array]:
    """Where the distant neighbours of the next ``GROUP`` rows begin, and these neighbours back to back.

    Of neighbours most of whom are distant all are listed: by the list that there is.

    Examples
    --------
    >>> starts, neighbours = np.array([0, 2, *range(3, 1002)]), np.arange(1001, dtype=np.int32) // 2
    >>> neighbours[0] = 700  # a neighbour of the first row
    >>> distant_starts, distant = listed_distant(starts, neighbours)
    >>> distant[:2], distant_starts[:2]
    (array([700, 257], dtype=int32), array([0, 1]))
    """
    distant_starts = np.zeros(-(-(len(starts) - 1) // GROUP) + 1, dtype=np.int64)
    known = [np.require(array, kind, ["C", "A", "W"]) for array, kind in ((neighbours, np.int32), (starts, np.int64))]
    count = _list_distant(*known, distant_starts, np.empty(0, dtype=np.int32))
    if 2 * count > len(neighbours):
        return np.append(starts[:-1:GROUP], starts[-1]), neighbours
    distant = np.empty(count, dtype=np.int32)
    _list_distant(*known, distant_starts, distant)
    return distant_starts, distant


def with_distant(graph: Graph, rows: Rows) -> Graph:
    """The graph, and who is distant in it, where rows are too many for any cache."""
    if rows.weights.nbytes <= DISTANT:
        return graph
    distant_starts, distant = listed_distant(graph.starts, graph.neighbours)
    return graph._replace(distant_starts=distant_starts, distant=distant)
