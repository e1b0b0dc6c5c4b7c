"""Who hears whom: an undirected, connected graph of agents.

Inside, a network is neighbour lists laid back to back (CSR): ``neighbours[starts[i]:starts[i+1]]`` are those of agent
i, in increasing order. Networks at random are drawn in ``laconic._drawing``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from laconic import _clipping, _drawing, _extras, _graphs, _late, _numbering, _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Heard(NamedTuple):
    """What a round of listening tells each row: everything that a learner may know about its neighbours.

    Attributes
    ----------
    broadcast : array (rows, n_features)
        theta-hat_i: what the neighbours believe this agent's model to be.
    disagreement : array (rows, n_features)
        g_i = sum_j (theta-hat_i - theta-hat_j).
    mixture : array (rows, n_features)
        sum_j a_ij (theta-hat_j - theta-hat_i) with Metropolis weights a_ij. For a learner whose ``listen`` is "spoken":
        sum over those who have spoken in this round of a_ij (theta-hat_j - theta_i), and zero when the next one begins.
    degrees : array (rows, 1)
        Number of neighbours.
    n_agents : int
        Size N of the whole network.
    t : int
        In ``hear``, the round that ends; else 0.
    shares : array (rows, n_features) or None
        Where pulls are clipped: sum_j kept_j (S_i - S_j), what passes of all disagreement so far. Disagreement and
        mixture are then sums of what passes, too: see ``laconic._clipping``.
    """

    broadcast: Array
    disagreement: Array
    mixture: Array
    degrees: Array
    n_agents: int
    shares: Array | None = None
    t: int = 0


@final
class Network:
    """An undirected connected graph. Build one with a class method: ``random``, ``ring``, ``from_edges``, ...

    Attributes
    ----------
    n_agents : int
    edges : array (n_edges, 2)
        Each edge once, the smaller agent first, sorted.
    degrees : array (n_agents,)
    names : tuple of str
        What the agents are called; "0", "1", ... unless the graph came with names.
    positions : array (n_agents, 2) or None
        Where each agent was placed, if the network was built in the plane.
    n_parts : int
        1, unless the network was allowed to fall into parts.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.Network.ring(4)
    Network(4 agents, 4 edges)
    >>> lc.Network.from_edges(3, [(0, 1), (1, 2)]).degrees
    array([1, 2, 1])
    """

    def __init__(
        self,
        n_agents: int,
        edges: Iterable[Iterable[int]],
        names: Iterable[object] | None = None,
        *,
        split: bool = False,
    ) -> None:
        self.n_agents = _graphs.count_agents("n_agents", n_agents)
        self.edges = _graphs.clean_edges(self.n_agents, edges)
        self.names = _graphs.clean_names(self.n_agents, names)
        there, back = (one * self.n_agents + other for one, other in (self.edges.T, self.edges.T[::-1]))
        both = _graphs.pairs_of(np.sort(np.concatenate([there, back])), self.n_agents)
        self.degrees: Array = np.bincount(both[:, 0], minlength=self.n_agents)
        self.starts: Array = np.concatenate([[0], np.cumsum(self.degrees)])
        self.neighbours: Array = np.ascontiguousarray(both[:, 1])
        self.positions: Array | None = None
        self._seeded: tuple[str, dict[str, Any]] | None = None  # the class method that drew it, and its arguments
        self.n_parts, _ = _graphs.parts(self.n_agents, self.edges)
        if self.n_parts > 1 and not split:
            raise ValueError(
                f"the network must be connected, but it falls into {self.n_parts} parts that could never agree "
                "(split=True lets it, where it will change)."
            )

    def _matrix(self, entries: Array) -> Any:
        sparse = _extras.need("scipy.sparse", "a whole network")
        return sparse.csr_matrix((entries, self.neighbours, self.starts), shape=(self.n_agents, self.n_agents))

    def __repr__(self) -> str:
        n, e = self.n_agents, len(self.edges)
        return f"Network({n} agent{'s' * (n != 1)}, {e} edge{'s' * (e != 1)})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = _late.find("show a network")(self)
        return shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.names == other.names and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.names, self.edges.tobytes()))

    def __reduce__(self) -> Any:
        # What is derived and kept for speed is left behind, so equal networks have equal pickles.
        return _restored, (self.n_agents, self.edges, self.names, self.positions, self._seeded)

    @cached_property
    def combination(self) -> Array:
        """Metropolis weights a_ij = 1/(1 + max(d_i, d_j)), an entry for each entry of ``neighbours``."""
        own = np.repeat(self.degrees, self.degrees)
        return 1.0 / (1.0 + np.maximum(own, self.degrees[self.neighbours]))

    @cached_property
    def numbering(self) -> Array | None:
        """The agents in an order in which neighbours are near each other; None of a small network, or if they are."""
        return _numbering.numbering(self.starts, self.neighbours)

    def metropolis_weights(self) -> Array:
        """The symmetric, doubly stochastic (n_agents, n_agents) matrix of Metropolis weights, diagonal included."""
        matrix: Array = self._matrix(self.combination).toarray()
        np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
        return matrix

    @cached_property
    def laplacians(self) -> tuple[Any, Any]:
        """The sparse Laplacians of the graph: degrees minus adjacency, and the same with combination weights."""
        diags = _extras.need("scipy.sparse", "a whole network").diags
        adjacency, weighted = self._matrix(np.ones(len(self.neighbours))), self._matrix(self.combination)
        return diags(self.degrees.astype(float)) - adjacency, diags(weighted @ np.ones(self.n_agents)) - weighted

    def listen(self, broadcast: Array) -> Heard:
        """What each agent hears when the models that neighbours believe in are ``broadcast`` (n_agents, n_features)."""
        laplacian, weighted = self.laplacians
        return Heard(
            broadcast=broadcast,
            disagreement=(laplacian @ broadcast).astype(broadcast.dtype),
            mixture=(-(weighted @ broadcast)).astype(broadcast.dtype),
            degrees=self.degrees[:, None].astype(broadcast.dtype),
            n_agents=self.n_agents,
        )

    def listen_to_spoken(self, broadcast: Array, weights: Array, spoken: Array) -> Heard:
        """As ``listen``, but only those are mixed with who have ``spoken`` (n_agents,), and with one's own model:

        mixture_i = sum over j that spoke of a_ij (theta-hat_j - theta_i)
        """
        weighted = self._matrix(self.combination)
        heard, share = weighted @ (spoken[:, None] * broadcast), weighted @ spoken.astype(float)
        mixture = (heard - share[:, None] * weights).astype(broadcast.dtype)
        return self.listen(broadcast)._replace(mixture=mixture)

    def listen_with_care(self, broadcast: Array, sums: Array, reach: float) -> Heard:
        """As ``listen``, with pulls clipped to ``reach`` times their median; ``sums`` are running sums of broadcast."""
        disagreement, mixture, shares = (np.zeros_like(broadcast) for _ in range(3))
        for i in range(self.n_agents):
            entries = slice(self.starts[i], self.starts[i + 1])
            others = self.neighbours[entries]
            apart, behind = broadcast[i] - broadcast[others], sums[i] - sums[others]
            taken, kept = _clipping.weigh(apart, behind, broadcast[i], sums[i], reach)
            disagreement[i] = taken @ apart
            mixture[i] = -((taken * self.combination[entries]) @ apart)
            shares[i] = kept @ behind
        degrees = self.degrees[:, None].astype(broadcast.dtype)
        return Heard(broadcast, disagreement, mixture, degrees, self.n_agents, shares)

    @classmethod
    def from_edges(
        cls,
        n_agents: int,
        edges: Iterable[Iterable[int]],
        names: Iterable[object] | None = None,
        *,
        split: bool = False,
    ) -> Network:
        """A network of agents 0..n_agents-1 with the given (i, j) edges; direction and repetition do not matter.

        With ``split`` it may fall into parts: one moment of a network that changes.
        """
        return cls(n_agents, edges, names, split=split)

    @classmethod
    def within(cls, positions: object, radius: float, *, split: bool = False) -> Network:
        """Agents at these ``positions`` (n_agents, 2) hear those within ``radius``: one moment of a swarm.

        With ``split`` it may fall into parts.

        >>> import laconic as lc
        >>> lc.Network.within([[0, 0], [1, 0], [5, 0]], radius=1.5, split=True).edges
        array([[0, 1]])
        """
        places = _validate.finite("positions", _validate.real_array("positions", positions, "(n_agents, 2)", ndim=2))
        if places.shape[1] != 2:
            raise ArgumentError("positions", f"must have shape (n_agents, 2), got {places.shape}.")
        radius = _validate.number("radius", radius, above=0)
        near = _drawing.pairs_within(places, radius)
        network = cls(len(places), near, split=split)
        network.positions = places
        return network

    @classmethod
    def from_networkx(cls, graph: Any) -> Network:
        """A network from any networkx graph; nodes become agents in their order, and lend them their names."""
        if isinstance(graph, type) or not (hasattr(graph, "nodes") and callable(getattr(graph, "edges", None))):
            raise ArgumentError("graph", f"must be a networkx graph, got {_validate.shown(graph)}.")
        index = {node: k for k, node in enumerate(graph.nodes)}
        edges = [(index[a], index[b]) for a, b in graph.edges() if a != b]
        return cls(len(index), edges, index)

    @classmethod
    def read(cls, path: str | Path) -> Network:
        """A network from a file: GraphML, GML, or a plain text list of edges, two names a line (# starts a comment)."""
        path = _validate.path("path", path)
        try:
            if path.suffix in (".graphml", ".gml"):
                nx = _extras.need("networkx", "reading a graph")
                return cls.from_networkx(getattr(nx, f"read_{path.suffix[1:]}")(path))
            numbers = _graphs.read_pairs(path)
            if numbers is not None:
                known, places = np.unique(numbers, return_inverse=True)
                edges = places.reshape(numbers.shape)
                return cls(len(known), edges[edges[:, 0] != edges[:, 1]], known.tolist())
            lines = [
                line.split("#")[0].replace(",", " ").split()
                for line in path.read_text(encoding="utf-8-sig").splitlines()
            ]
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not a readable {path.suffix[1:] or 'edge list'} file: {error}") from error
        pairs = [words for words in lines if words]
        wrong = [words for words in pairs if len(words) != 2]
        if wrong or not pairs:
            found = " ".join(wrong[0])[:60] if wrong else "nothing"
            raise ValueError(f"{path} must hold two names a line, one line an edge; found {found!r}.")
        ordered = _graphs.in_order({name for pair in pairs for name in pair})
        index = {name: k for k, name in enumerate(ordered)}
        return cls(len(index), [(index[a], index[b]) for a, b in pairs if a != b], ordered)

    @classmethod
    def complete(cls, n_agents: int) -> Network:
        """The complete graph: everybody hears everybody."""
        n_agents = _graphs.count_agents("n_agents", n_agents)
        _graphs.check_edges("n_agents", n_agents, n_agents * (n_agents - 1) / 2)
        return cls(n_agents, np.stack(np.triu_indices(n_agents, 1), axis=1))

    @classmethod
    def ring(cls, n_agents: int) -> Network:
        """A closed circle; each agent has two neighbours."""
        n_agents = _graphs.count_agents("n_agents", n_agents)
        agent = np.arange(n_agents if n_agents > 1 else 0)
        return cls(n_agents, np.stack([agent, (agent + 1) % n_agents], axis=1))

    @classmethod
    def path(cls, n_agents: int) -> Network:
        """A path: agents in a line, each beside up to two others."""
        n_agents = _graphs.count_agents("n_agents", n_agents)
        agent = np.arange(n_agents - 1)
        return cls(n_agents, np.stack([agent, agent + 1], axis=1))

    @classmethod
    def star(cls, n_agents: int) -> Network:
        """Agent 0 in the middle, all others around it."""
        n_agents = _graphs.count_agents("n_agents", n_agents)
        agent = np.arange(1, n_agents)
        return cls(n_agents, np.stack([np.zeros_like(agent), agent], axis=1))

    @classmethod
    def grid(cls, rows: int, columns: int) -> Network:
        """A rectangle of ``rows`` times ``columns`` agents, each beside up to four others."""
        rows = _validate.integer("rows", rows, least=1)
        columns = _validate.integer("columns", columns, least=1)
        _graphs.count_agents("rows times columns", rows * columns)
        agent = np.arange(rows * columns).reshape(rows, columns)
        across = np.stack([agent[:, :-1].ravel(), agent[:, 1:].ravel()], axis=1)
        down = np.stack([agent[:-1].ravel(), agent[1:].ravel()], axis=1)
        network = cls(rows * columns, np.concatenate([across, down]))
        network.positions = np.stack([agent % columns, -(agent // columns)], axis=-1).reshape(-1, 2).astype(float)
        return network

    @classmethod
    def random(cls, n_agents: int, p: float = 0.5, seed: int = 0, *, connect: bool = False) -> Network:
        """Each pair is an edge with probability ``p``; drawn again, from the same seed, until connected.

        With ``connect`` it is drawn once, and parts are joined to the largest by an edge each, anywhere.
        """
        n_agents, p = _graphs.count_agents("n_agents", n_agents), _graphs.probability(p)
        _graphs.check_edges("n_agents", n_agents, p * n_agents * (n_agents - 1) / 2)
        alone = _drawing.alone(n_agents, p)
        network = cls._drawn(lambda draw: _drawing.random(n_agents, p, draw), seed, f"p={p:g}", connect, alone)
        network._seeded = "random", {"n_agents": n_agents, "p": p, "connect": connect}
        return network

    @classmethod
    def geometric(cls, n_agents: int, radius: float, seed: int = 0, *, connect: bool = False) -> Network:
        """Agents scattered over the unit square hear those within ``radius``: a sensor field.

        Drawn again, from the same seed, until connected; with ``connect`` once, and parts are joined where they are
        near each other.
        """
        n_agents = _graphs.count_agents("n_agents", n_agents)
        radius = _validate.number("radius", radius, above=0)
        near = min(1.0, math.pi * min(radius, 1.0) ** 2)  # the share of the square that is near; less at its rim
        _graphs.check_edges("n_agents", n_agents, near / 4 * n_agents * (n_agents - 1) / 2)
        alone, what = _drawing.alone_in_square(n_agents, radius), f"radius={radius:g}"
        network = cls._drawn(lambda draw: _drawing.geometric(n_agents, radius, draw), seed, what, connect, alone)
        network._seeded = "geometric", {"n_agents": n_agents, "radius": radius, "connect": connect}
        return network

    @classmethod
    def small_world(
        cls, n_agents: int, n_neighbours: int = 4, p: float = 0.1, seed: int = 0, *, connect: bool = False
    ) -> Network:
        """A ring of near neighbours, some of whose edges are rewired to anywhere (Watts and Strogatz)."""
        n_agents = _graphs.count_agents("n_agents", n_agents)
        n_neighbours = _validate.integer("n_neighbours", n_neighbours, least=1, most=max(1, n_agents - 1))
        p = _graphs.probability(p)
        _graphs.check_edges("n_agents", n_agents, n_agents * n_neighbours / 2)
        if n_neighbours == 1 and n_agents > 1:  # each agent has n_neighbours // 2 on either side
            raise ValueError("n_neighbours must be at least 2, or nobody has a neighbour.")
        alone, what = _drawing.alone_in_small_world(n_agents, n_neighbours, p), f"p={p:g}"
        network = cls._drawn(
            lambda draw: _drawing.small_world(n_agents, n_neighbours, p, draw), seed, what, connect, alone
        )
        given = {"n_agents": n_agents, "n_neighbours": n_neighbours, "p": p, "connect": connect}
        network._seeded = "small_world", given
        return network

    @property
    def has_seed(self) -> bool:
        """Whether the network was drawn from a seed, so that ``redrawn`` can draw it again."""
        return self._seeded is not None

    def redrawn(self, seed: int) -> Network:
        """A network drawn as this one was, by ``random``, ``geometric`` or ``small_world``, from another ``seed``."""
        if self._seeded is None:
            raise ValueError("this network was not drawn from a seed: it cannot be drawn again.")
        method, arguments = self._seeded
        made: Network = getattr(type(self), method)(**arguments, seed=seed)
        return made

    @classmethod
    def _drawn(
        cls, draw: Callable[[int], _drawing.Drawn], seed: int, what: str, connect: bool, alone: float
    ) -> Network:
        """A network that a seed stands for."""
        seed = _validate.integer("seed", seed, least=0)
        _validate.instance("connect", connect, bool, "True or False")
        drawn = _drawing.connected(draw, seed, what, join=connect, alone=alone)
        network = cls(drawn.n_agents, drawn.edges)
        network.positions = drawn.positions
        return network

    def to_networkx(self) -> Any:
        """The same graph for networkx, nodes 0..n_agents-1."""
        nx = _extras.need("networkx", "a networkx graph")

        graph = nx.Graph()
        graph.add_nodes_from(range(self.n_agents))
        graph.add_edges_from(self.edges.tolist())
        return graph

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw the network with matplotlib; darker agents have more neighbours. Returns the axes."""
        _extras.need("matplotlib", "a picture")
        axes: Axes = _late.find("draw a network")(self, ax)
        return axes


def _restored(
    n_agents: int,
    edges: Array,
    names: tuple[str, ...],
    positions: Array | None,
    seeded: tuple[str, dict[str, Any]] | None = None,
) -> Network:
    network = Network(n_agents, edges, names, split=True)
    network.positions, network._seeded = positions, seeded
    return network
