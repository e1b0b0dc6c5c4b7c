"""Networks drawn at random: who hears whom, from a seed, and parts that are joined into one.

Up to ``DRAWN_SINGLY`` agents networkx draws, edge by edge: these are the graphs that published seeds stand for. Beyond
that arrays do, a million agents in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from laconic import _extras, _graphs
from laconic._validate import Array

DRAWN_SINGLY = 5000
_ATTEMPTS = 1000
_HOPELESS = 12.0  # agents without a neighbour to be expected: of all attempts one in 160 would succeed
_PATIENCE, _PATIENCE_SINGLY = 2e7, 5e5  # agents of all attempts, by arrays or by networkx: some ten seconds
_WHOLE = 2.0  # a radius that reaches over the whole square
_STEPS = 64  # of an integral over the rim of the square


class Drawn(NamedTuple):
    """A graph that may not be connected: edges (n_edges, 2), and where each agent is (n_agents, 2), if anywhere."""

    n_agents: int
    edges: Array
    positions: Array | None = None


def random(n_agents: int, p: float, seed: int) -> Drawn:
    """Each pair is an edge with probability ``p``."""
    if n_agents <= DRAWN_SINGLY:
        return _from_networkx(_extras.need("networkx", "a random network").fast_gnp_random_graph(n_agents, p, seed))
    # Pairs (i, j), i < j, have the numbers j (j-1)/2 + i; from one edge to the next the number grows geometrically.
    rng = np.random.default_rng(seed)
    n_pairs = n_agents * (n_agents - 1) // 2
    numbers, reached = [], -1
    while reached < n_pairs and p > 0:
        expected = p * (n_pairs - reached)
        gaps = np.minimum(rng.geometric(p, size=int(expected + 4 * math.sqrt(expected) + 16)), n_pairs)
        numbers.append(reached + np.cumsum(gaps))
        reached = int(numbers[-1][-1])
    edges = np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)
    edges = edges[edges < n_pairs]
    larger = np.floor((1 + np.sqrt(1 + 8 * edges.astype(np.float64))) / 2).astype(np.int64)
    larger -= larger * (larger - 1) // 2 > edges  # the root may have been rounded to the next whole number
    larger += larger * (larger + 1) // 2 <= edges
    return Drawn(n_agents, np.stack([edges - larger * (larger - 1) // 2, larger], axis=1))


def pairs_within(positions: Array, radius: float) -> Array:
    """Pairs of positions that are within ``radius`` of each other, (n, 2)."""
    n, tree = len(positions), _tree(positions)
    if _graphs.may_be_too_many(n * (n - 1) / 2):  # counted only where all of them would be too many
        _graphs.check_edges("radius", n, (int(tree.count_neighbors(tree, radius)) - n) / 2)
    pairs: Array = tree.query_pairs(radius, output_type="ndarray")
    return pairs


def geometric(n_agents: int, radius: float, seed: int) -> Drawn:
    """Agents scattered over the unit square hear those within ``radius``."""
    radius = min(radius, _WHOLE)
    if n_agents <= DRAWN_SINGLY:
        nx = _extras.need("networkx", "a geometric network")
        graph = nx.random_geometric_graph(n_agents, radius, seed=seed)
        return _from_networkx(graph, np.array([graph.nodes[agent]["pos"] for agent in range(n_agents)]))
    positions = np.random.default_rng(seed).uniform(size=(n_agents, 2))
    return Drawn(n_agents, pairs_within(positions, radius), positions)


def small_world(n_agents: int, n_neighbours: int, p: float, seed: int) -> Drawn:
    """A ring of ``n_neighbours // 2`` to either side, each edge rewired to anywhere with probability ``p``."""
    if n_agents <= DRAWN_SINGLY:
        nx = _extras.need("networkx", "a small world")
        return _from_networkx(nx.watts_strogatz_graph(n_agents, n_neighbours, p, seed))
    rng = np.random.default_rng(seed)
    near = np.repeat(np.arange(n_agents), n_neighbours // 2)
    far = (near + np.tile(np.arange(1, n_neighbours // 2 + 1), n_agents)) % n_agents
    waiting = np.flatnonzero(rng.uniform(size=len(near)) < p)
    if n_neighbours > n_agents / 2:
        _rewire_densely(near, far, waiting, n_agents, rng)
        return Drawn(n_agents, np.stack([near, far], axis=1))
    numbers = _numbered(near, far, n_agents)
    while len(waiting):
        wished = rng.integers(n_agents, size=len(waiting))
        wishes = _numbered(near[waiting], wished, n_agents)
        # Nobody hears itself, and no edge is there twice: who drew such a one draws again.
        _, first = np.unique(wishes, return_index=True)
        free = np.zeros(len(waiting), dtype=bool)
        free[first] = True
        free &= (wished != near[waiting]) & ~np.isin(wishes, numbers)
        far[waiting[free]], numbers[waiting[free]] = wished[free], wishes[free]
        waiting = waiting[~free]
    return Drawn(n_agents, np.stack([near, far], axis=1))


def _rewire_densely(near: Array, far: Array, waiting: Array, n_agents: int, rng: np.random.Generator) -> None:
    """Rewire where most pairs are edges: agent by agent, to places that are free; who finds none keeps its edge."""
    linked = np.eye(n_agents, dtype=bool)  # of so dense a network agents are few
    linked[near, far] = linked[far, near] = True
    for edges in np.split(waiting, np.flatnonzero(np.diff(near[waiting])) + 1) if len(waiting) else ():
        agent = near[edges[0]]
        free = np.flatnonzero(~linked[agent])
        n_moved = min(len(edges), len(free))
        moved, wished = rng.permutation(edges)[:n_moved], rng.choice(free, n_moved, replace=False)
        linked[agent, far[moved]] = linked[far[moved], agent] = False
        linked[agent, wished] = linked[wished, agent] = True
        far[moved] = wished


def connected(draw: Callable[[int], Drawn], seed: int, what: str, *, join: bool, alone: float) -> Drawn:
    """Draw until all are connected, from seeds that follow from ``seed``; or draw once and join the parts.

    Parameters
    ----------
    draw : callable
        The graph of a seed.
    what : str
        How it is drawn, for the error.
    join : bool
        Whether parts are joined.
    alone : float
        How many agents without a neighbour are to be expected. None is with a chance of e^-alone, so where that is
        hopeless nothing is drawn at all, and no more than once where many draws would take long.
    """
    seeds = np.random.default_rng(seed)
    hopeless = ValueError(
        f"no connected network is to be had with {what}: ask for more edges "
        "(in a program connect=True joins the parts)."
    )
    if alone > _HOPELESS and not join:
        raise hopeless
    for attempt in range(1, _ATTEMPTS + 1):
        drawn = draw(int(seeds.integers(2**31)))
        n_parts, labels = _graphs.parts(drawn.n_agents, drawn.edges)
        if n_parts <= 1:
            return drawn
        if join:
            return _joined(drawn, n_parts, labels, seeds)
        patience = _PATIENCE if drawn.n_agents > DRAWN_SINGLY else _PATIENCE_SINGLY
        if max(attempt, math.exp(alone)) * drawn.n_agents > patience:
            break
    raise hopeless


def alone(n_agents: int, share: float) -> float:
    """How many agents have no neighbour, if ``share`` of all pairs are edges, by chance: n (1 - share)^(n - 1)."""
    if n_agents == 1:
        return 0.0
    return math.inf if share == 0 else n_agents * math.exp((n_agents - 1) * math.log1p(-min(share, 0.999)))


def alone_in_square(n_agents: int, radius: float) -> float:
    """The same for agents scattered over the unit square, at whose rim less is near: all but those in its corners."""
    if radius >= 0.5:
        return 0.0
    inside = (1 - 2 * radius) ** 2 * alone(n_agents, math.pi * radius**2)
    depths = (np.arange(_STEPS) + 0.5) / _STEPS
    missing = np.arccos(depths) - depths * np.sqrt(1 - depths**2)  # of the circle, in squares of the radius
    shares = (np.pi - missing) * radius**2
    rim = np.exp((n_agents - 1) * np.log1p(-shares)).mean() * radius
    return float(inside + 4 * (1 - 2 * radius) * n_agents * rim) if n_agents > 1 else 0.0


def alone_in_small_world(n_agents: int, n_neighbours: int, p: float) -> float:
    """What stands for the same in a small world, where everybody keeps an edge of its own.

    With a single one an agent, p n pieces of the ring are linked by as many edges to anywhere. Such a random mapping is
    in one piece with a chance of sqrt(pi / (2 p n)), or e^(3/2) times that where nobody is linked to itself, or twice.
    """
    chance = math.exp(1.5) * math.sqrt(math.pi / (2 * max(p * n_agents, 1.0)))
    return max(0.0, -math.log(chance)) if n_neighbours in (2, 3) else 0.0


def _joined(drawn: Drawn, n_parts: int, labels: Array, rng: np.random.Generator) -> Drawn:
    """The same graph in one part: in the plane by the shortest ways from part to part, else by edges at random."""
    if drawn.positions is None:
        largest = np.bincount(labels).argmax()
        shuffled = rng.permutation(drawn.n_agents)
        _, first = np.unique(labels[shuffled], return_index=True)
        chosen = np.delete(shuffled[first], largest)
        anywhere = rng.choice(np.flatnonzero(labels == largest), size=len(chosen))
        return drawn._replace(edges=np.concatenate([drawn.edges, np.stack([chosen, anywhere], axis=1)]))
    tree, edges = _tree(drawn.positions), drawn.edges
    while n_parts > 1:
        # Every part but the largest takes its shortest edge to another one; then there are half as many, or fewer.
        edges = np.concatenate([edges, _shortest(tree, drawn.positions, labels, n_parts)])
        n_parts, labels = _graphs.parts(drawn.n_agents, edges)
    return drawn._replace(edges=edges)


def _shortest(tree: Any, positions: Array, labels: Array, n_parts: int) -> Array:
    """The shortest edge from each part but the largest to another one."""
    asking = np.flatnonzero(labels != np.bincount(labels).argmax())
    best, reach, found = np.full(n_parts, np.inf), 8, []
    while len(asking):
        distances, others = tree.query(positions[asking], k=min(reach, len(positions)))
        within = labels[others] == labels[asking][:, None]
        nearest = np.where(within, np.inf, distances).argmin(axis=1)
        rows = np.arange(len(asking))
        outside = ~within[rows, nearest]
        lengths = np.where(outside, distances[rows, nearest], np.inf)
        np.minimum.at(best, labels[asking], lengths)
        found.append((lengths[outside], asking[outside], others[rows, nearest][outside]))
        # Who sees its own part only looks further, while there might be less than that part has found elsewhere.
        asking, reach = asking[~outside & (distances[:, -1] < best[labels[asking]])], reach * 4
    lengths, ends, others = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    order = np.argsort(lengths, kind="stable")
    _, first = np.unique(labels[ends[order]], return_index=True)
    chosen = order[first]
    return np.stack([ends[chosen], others[chosen]], axis=1)


def _tree(positions: Array) -> Any:
    return _extras.need("scipy.spatial", "a geometric network").cKDTree(positions)


def _from_networkx(graph: Any, positions: Array | None = None) -> Drawn:
    edges = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    return Drawn(graph.number_of_nodes(), edges, positions)


def _numbered(one: Array, other: Array, n_agents: int) -> Array:
    """A number for each pair, whichever of the two comes first."""
    return np.minimum(one, other) * n_agents + np.maximum(one, other)
