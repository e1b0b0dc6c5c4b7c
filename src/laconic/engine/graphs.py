"""A network as the core takes it: neighbour lists of rows in some order, and which of them are far away."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.native.run import Run
from laconic.network import Network

#: Beyond so many bytes models are in no cache at all, and it pays to ask for distant neighbours ahead of time.
DISTANT = 1 << 23
#: Neighbours within so many rows are near: as many as METIS has in a part. As in ``core/rounds.c``.
NEAR = 256
#: Distant neighbours are listed for so many rows at a time.
GROUP = 8


def sorted_graph(network: Network, order: Array, rank: Array, dtype: Any, *, weighted: bool) -> dict[str, Array]:
    """Neighbour lists of rows that are agents in this ``order``; each list stays in the order that it has."""
    starts, neighbours = network.starts, network.neighbours
    combination = network.combination if weighted else np.empty(0)
    if order.size:
        degrees = np.diff(starts)[order]
        moved = np.concatenate([[0], np.cumsum(degrees)])
        entries = np.repeat(starts[order] - moved[:-1], degrees) + np.arange(len(neighbours))
        starts, neighbours = moved, rank[neighbours[entries]]
        combination = combination[entries] if weighted else combination
    return {
        "starts": np.ascontiguousarray(starts, dtype=np.int64),
        "neighbours": np.ascontiguousarray(neighbours, dtype=np.int32),
        "combination": combination.astype(dtype),
    }


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
    groups = np.append(starts[:-1:GROUP], starts[-1])
    rows = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    far = np.abs(neighbours - rows) > NEAR
    if 2 * int(far.sum()) > len(neighbours):
        return groups, neighbours
    return np.concatenate([[0], np.cumsum(far)])[groups], neighbours[far]


def distant(run: Run) -> dict[str, Any]:
    """The fields of a run that list distant neighbours, where rows are too many for any cache."""
    if run.array("weights").nbytes <= DISTANT:
        return {}
    starts, neighbours = listed_distant(run.array("starts"), run.array("neighbours"))
    neighbours = np.ascontiguousarray(neighbours)
    return {"distant_starts": starts.astype(np.int64), "distant": neighbours, "n_groups": len(starts)}


def agent_graph(live: tuple[int, ...], combination: tuple[float, ...], dtype: Any) -> dict[str, Array]:
    """The graph of one agent whose ``live`` neighbours are these rows of its replicas, with their weights."""
    return {
        "starts": np.array([0, len(live)], dtype=np.int64),
        "neighbours": np.array(live, dtype=np.int32),
        "combination": np.array(combination, dtype=dtype),
    }
