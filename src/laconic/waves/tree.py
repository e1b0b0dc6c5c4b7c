"""The spanning tree that waves run over, and what an agent knows of its place in it.

The root is the agent of least eccentricity, the smallest index of several. Everybody's parent is, of the neighbours
that are one step nearer to the root, the one of smallest index; children are kept in index order. All of that an agent
can tell from its neighbours alone once a root is known: an echo that starts there and runs one hop a round builds this
tree.
"""

from __future__ import annotations

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
        In index order.
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
    neighbours = [flat[starts[i] : starts[i + 1]] for i in range(network.n_agents)]
    reaches = [_depths(neighbours, i) for i in range(network.n_agents)]
    root = min(range(network.n_agents), key=lambda i: (max(reaches[i]), i))
    depths = reaches[root]
    nearer = [[j for j in near if depths[j] < depths[i]] for i, near in enumerate(neighbours)]
    parents = [min(near) if near else None for near in nearer]
    children: list[list[int]] = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(i)
    census = tuple(depths.count(depth) for depth in range(max(depths) + 1))
    inner = sum(bool(own) for own in children) - (network.n_agents > 1)
    return tuple(Place(i, parents[i], tuple(children[i]), depths[i], census, inner) for i in range(network.n_agents))


def _depths(neighbours: list[list[int]], root: int) -> list[int]:
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
