"""The spanning tree that waves run over, and what an agent knows of its place in it.

The root is the agent of least eccentricity, the first by name of several. Everybody's parent is, of the neighbours
that are one step nearer to the root, the first by name; children are kept in that order. Names are ordered as people
do it, 2 before 10, so that agents that are called by their index stand in its order. An echo that starts at the root
and runs one hop a round builds this tree; so does anybody who knows who hears whom.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from laconic.network import Network


class Place(NamedTuple):
    """Where an agent stands in the tree.

    Attributes
    ----------
    agent : int
    parent : int or None
        None at the root.
    children : tuple of int
        In the order of their names.
    depth : int
        Steps to the root.
    census : tuple of int
        How many agents there are at each depth 0 .. h: everybody knows it.
    inner : int
        How many agents other than the root have children: everybody knows it.
    """

    agent: int
    parent: int | None
    children: tuple[int, ...]
    depth: int
    census: tuple[int, ...]
    inner: int

    @property
    def height(self) -> int:
        """Depth h of the whole tree."""
        return len(self.census) - 1

    @property
    def n_agents(self) -> int:
        """Number N of agents in the tree."""
        return sum(self.census)


def places(network: Network) -> tuple[Place, ...]:
    """The place of every agent.

    Examples
    --------
    >>> from laconic.network import Network
    >>> [place.parent for place in places(Network.ring(6))]
    [None, 0, 1, 2, 5, 0]
    >>> places(Network.path(5))[2].children
    (1, 3)
    """
    starts, flat = network.starts.tolist(), network.neighbours.tolist()
    return grow([flat[starts[i] : starts[i + 1]] for i in range(network.n_agents)], network.names)


def grow(neighbours: Sequence[Sequence[int]], names: Sequence[str], term: int = 0) -> tuple[Place, ...]:
    """The tree over agents that hear each other, all of them connected; in term k its root is the k-th best."""
    n_agents = len(neighbours)
    order = {i: rank for rank, i in enumerate(sorted(range(n_agents), key=lambda i: by_name(names[i])))}
    depths = _depths(neighbours, _root(neighbours, [order[i] for i in range(n_agents)], term))
    nearer = [[j for j in near if depths[j] < depths[i]] for i, near in enumerate(neighbours)]
    parents = [min(near, key=order.__getitem__) if near else None for near in nearer]
    children: list[list[int]] = [[] for _ in parents]
    for i in sorted(range(n_agents), key=order.__getitem__):
        parent = parents[i]
        if parent is not None:
            children[parent].append(i)
    census = tuple(depths.count(depth) for depth in range(max(depths) + 1))
    inner = sum(bool(own) for own in children) - (n_agents > 1)
    return tuple(Place(i, parents[i], tuple(children[i]), depths[i], census, inner) for i in range(n_agents))


def by_name(name: str) -> tuple[tuple[tuple[str, int], ...], str]:
    """What to sort names by so that numbers in them count as numbers.

    >>> sorted(["b10", "b2", "a", "10", "9"], key=by_name)
    ['9', '10', 'a', 'b2', 'b10']
    """
    pieces = re.findall(r"([^0-9]*)([0-9]*)", name)
    return tuple((text, int(digits or -1)) for text, digits in pieces), name


def _root(neighbours: Sequence[Sequence[int]], order: Sequence[int], term: int) -> int:
    """The agent of least eccentricity, the first of several in their order; in term k the k-th best.

    From d(i, j) and the eccentricity e(i), e(j) is at least max(d, e(i) - d). Whoever could be best by all such bounds
    is looked at, and whoever is farthest from there, until somebody who was looked at is best: few of many have to be.
    """
    n_agents = len(order)
    least, known = [0] * n_agents, [False] * n_agents
    while True:
        best = sorted(range(n_agents), key=lambda i: (least[i], order[i]))[: term % n_agents + 1]
        doubtful = next((i for i in best if not known[i]), None)
        if doubtful is None:
            return best[-1]
        for _ in range(2):
            depths = _depths(neighbours, doubtful)
            reach, known[doubtful] = max(depths), True
            least = [max(bound, d, reach - d) for bound, d in zip(least, depths, strict=True)]
            doubtful = depths.index(reach)
            if known[doubtful]:
                break


def _depths(neighbours: Sequence[Sequence[int]], root: int) -> list[int]:
    """Steps from every agent to ``root``."""
    depths = [-1] * len(neighbours)
    depths[root] = 0
    ring = [root]
    while ring:
        following = []
        for i in ring:
            for j in neighbours[i]:
                if depths[j] < 0:
                    depths[j] = depths[i] + 1
                    following.append(j)
        ring = following
    return depths
