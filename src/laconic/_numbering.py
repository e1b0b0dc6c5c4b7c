"""An order of agents in which neighbours are near each other, so that who computes a row finds its neighbours at hand.

METIS (``pymetis``, where it is installed) cuts the network into small parts with few edges between them; otherwise the
reverse order of Cuthill and McKee, a walk over the network from its rim, does nearly as well on networks in the plane.
Where anybody may hear anybody there are no such parts, and METIS looks for them for long: half a minute among 10^6
agents, for rounds as long as after the walk, which takes a fraction of a second.
"""

from __future__ import annotations

import numpy as np

from laconic import _extras
from laconic._validate import Array

_LEAST = 4096  # below, all models lie in the cache anyway
_WINDOW = 512  # rows that are at hand
_NEAR_ENOUGH = 0.9
_PART = 256  # agents
_BALLS, _CLOSED = 16, 0.5  # around how many agents is looked, and how much of what they hear must be from nearby


def locality(starts: Array, neighbours: Array) -> float:
    """Share of neighbours that are near in the order that is."""
    own = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    return float((np.abs(neighbours - own) <= _WINDOW).mean()) if len(own) else 1.0


def closeness(starts: Array, neighbours: Array) -> float:
    """Share of an agent's neighbours that are among the few hundred around one and the same agent, as it is.

    On average over the agents of some such balls, spread over the network: 0.9 in the plane and in trees, 0.3 where
    seven neighbours are anywhere. Of an agent with very many neighbours the first ones are looked at.
    """
    shares = []
    for centre in np.linspace(0, len(starts) - 2, _BALLS).astype(int).tolist():
        ball, reached, heard = {centre}, [centre], []
        for agent in reached:  # which grows while there is room in the ball
            near = neighbours[starts[agent] : starts[agent + 1]][:_PART].tolist()
            heard.append(near)
            fresh = [other for other in dict.fromkeys(near) if other not in ball][: _PART - len(ball)]
            ball.update(fresh)
            reached.extend(fresh)
        shares += [sum(other in ball for other in near) / len(near) for near in heard if near]
    return float(np.mean(shares)) if shares else 1.0


def numbering(starts: Array, neighbours: Array) -> Array | None:
    """Agents in an order in which neighbours are near; None if the network is small, or they already are."""
    n_agents = len(starts) - 1
    if n_agents < _LEAST or locality(starts, neighbours) >= _NEAR_ENOUGH:
        return None
    if closeness(starts, neighbours) < _CLOSED:
        return by_walking(starts, neighbours)
    try:
        return by_parts(starts, neighbours)
    except ImportError:
        return by_walking(starts, neighbours)


def by_parts(starts: Array, neighbours: Array) -> Array:
    """Parts of some hundred agents, by METIS; in each, agents with as many neighbours follow each other.

    A loop over neighbours then ends, row after row, where the processor expects it to. Within a part any order will do,
    since the cache holds all of it; to mix the agents of two parts, or of a walk, costs more than that gains.
    """
    import pymetis

    n_agents = len(starts) - 1
    adjacency = pymetis.CSRAdjacency(adj_starts=starts, adjacent=neighbours)
    _, parts = pymetis.part_graph(max(1, n_agents // _PART), adjacency=adjacency)
    return np.lexsort((np.diff(starts), np.asarray(parts)))


def by_walking(starts: Array, neighbours: Array) -> Array:
    """The reverse Cuthill-McKee order, by SciPy."""
    sparse = _extras.need("scipy.sparse", "a large network")
    graphs = _extras.need("scipy.sparse.csgraph", "a large network")
    n_agents = len(starts) - 1
    ones = np.ones(len(neighbours), dtype=np.int8)
    matrix = sparse.csr_matrix((ones, neighbours, starts), shape=(n_agents, n_agents))
    return np.asarray(graphs.reverse_cuthill_mckee(matrix, symmetric_mode=True), dtype=np.int64)
