"""What networks are made of, checked: how many agents, which edges, and whether they are connected."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

ATTEMPTS = 1000
_MOST_AGENTS = 2**24
MOST_EDGES = 2**26  # some 5 GB while a network is made of them
MOST_DRAWN = 2**23  # networkx takes half a kilobyte for each edge
_HOPELESS = 50.0  # agents without neighbours to be expected: fewer than none once in e^50 draws


def parts_by_walking(n_agents: int, starts: list[int], neighbours: list[int]) -> int:
    """How many connected parts there are, by walking through each of them."""
    unseen = set(range(n_agents))
    parts = 0
    while unseen:
        parts += 1
        edge_of_walk = [unseen.pop()]
        while edge_of_walk:
            agent = edge_of_walk.pop()
            found = unseen.intersection(neighbours[starts[agent] : starts[agent + 1]])
            unseen -= found
            edge_of_walk.extend(found)
    return parts


def count_agents(name: str, n_agents: object) -> int:
    """``n_agents`` if it is a number of agents that a network may have."""
    count = _validate.integer(name, n_agents, least=1)
    if count > _MOST_AGENTS:
        raise ArgumentError(name, f"must be at most {_MOST_AGENTS}, got {n_agents}.")
    return count


def check_edges(name: str, n_agents: int, n_edges: float, most: int) -> None:
    """Refuse a network whose edges would not fit into the memory of an ordinary machine."""
    if n_edges > most:
        raise ArgumentError(
            name, f"must be smaller for so dense a network: {n_agents} agents would have {n_edges:.3g} edges."
        )


def check_hopeful(n_agents: int, share: float, what: str) -> None:
    """Refuse draws that practically always leave somebody alone: a share (1 - share)^(n - 1) of all agents."""
    alone = n_agents * math.exp((n_agents - 1) * math.log1p(-min(share, 0.999)))
    if n_agents > 1 and (share == 0 or alone > _HOPELESS):
        raise unconnected(what)


def unconnected(what: str) -> ValueError:
    """The error for draws that left the network in parts."""
    return ValueError(f"no connected network in {ATTEMPTS} draws with {what}: ask for more edges.")


def probability(p: object) -> float:
    """``p`` if it lies within [0, 1]."""
    value = _validate.number("p", p, least=0)
    if value > 1:
        raise ArgumentError("p", f"must be at most 1, got {p!r}.")
    return value


def clean_names(n_agents: int, names: Iterable[object] | None) -> tuple[str, ...]:
    """A name for each agent, no two alike."""
    if isinstance(names, (str, bytes)) or (names is not None and not isinstance(names, Iterable)):
        raise ArgumentError("names", f"must be a list of {n_agents} different names, got {_validate.shown(names)}.")
    named = tuple(str(name) for name in (range(n_agents) if names is None else names))
    if len(named) != n_agents or len(set(named)) != n_agents:
        raise ArgumentError("names", f"must be {n_agents} different names, got {len(set(named))}.")
    return named


def clean_edges(n_agents: int, edges: Iterable[Iterable[int]]) -> Array:
    """Each edge once, as sorted pairs in sorted order."""
    try:
        array = np.asarray(edges if isinstance(edges, np.ndarray) else [tuple(edge) for edge in edges])
    except (TypeError, ValueError):
        raise ArgumentError("edges", f"must be pairs (i, j) of agent numbers, got {_validate.shown(edges)}.") from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError("edges must be pairs (i, j) of agent numbers.")
    if array.min() < 0 or array.max() >= n_agents:
        raise ValueError(f"edges must join agents 0 to {n_agents - 1}, found {array.min()} to {array.max()}.")
    if (array[:, 0] == array[:, 1]).any():
        raise ValueError(f"edges must join two different agents, found {tuple(array[array[:, 0] == array[:, 1]][0])}.")
    low, high = np.sort(array.astype(np.int64), axis=1).T
    pairs = np.sort(low * n_agents + high)  # one number for a pair: far quicker to sort
    first = np.concatenate([[True], pairs[1:] != pairs[:-1]])
    return pairs_of(pairs[first], n_agents)


def pairs_of(numbers: Array, n_agents: int) -> Array:
    """The pairs (i, j) of the numbers i n + j."""
    return np.stack(np.divmod(numbers, n_agents), axis=1)
