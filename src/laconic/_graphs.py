"""What networks are made of, checked: how many agents, which edges, and whether they are connected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from laconic import _extras, _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

_MOST_AGENTS = 2**24
_MOST_EDGES = 2**26  # some 5 GB while a network is made of them
_WALKED = 2000
_READ_AT_ONCE = 2**20  # bytes
_LONGEST_NUMBER = 1000  # digits: Python refuses to read much longer ones


def parts(n_agents: int, edges: Array) -> tuple[int, Array]:
    """How many connected parts there are, and which of them each agent belongs to."""
    if n_agents <= _WALKED:
        return _parts_by_walking(n_agents, edges)
    sparse = _extras.need("scipy.sparse", f"a network of more than {_WALKED} agents")
    graphs = _extras.need("scipy.sparse.csgraph", f"a network of more than {_WALKED} agents")
    ones = np.ones(len(edges), dtype=np.int8)
    matrix = sparse.coo_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(n_agents, n_agents))
    n_parts, labels = graphs.connected_components(matrix, directed=False)
    return int(n_parts), labels


def _parts_by_walking(n_agents: int, edges: Array) -> tuple[int, Array]:
    """The same in plain Python: quicker, while a network is small, than importing SciPy's."""
    neighbours: list[list[int]] = [[] for _ in range(n_agents)]
    for i, j in edges.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    labels = [-1] * n_agents
    n_parts = 0
    for first in range(n_agents):
        if labels[first] >= 0:
            continue
        labels[first] = n_parts
        walk = [first]
        while walk:
            for other in neighbours[walk.pop()]:
                if labels[other] < 0:
                    labels[other] = n_parts
                    walk.append(other)
        n_parts += 1
    return n_parts, np.array(labels, dtype=np.int64)


def count_agents(name: str, n_agents: object) -> int:
    """``n_agents`` if it is a number of agents that a network may have."""
    count = _validate.integer(name, n_agents, least=1)
    if count > _MOST_AGENTS:
        raise ArgumentError(name, f"must be at most {_MOST_AGENTS}, got {n_agents}.")
    return count


def may_be_too_many(n_edges: float) -> bool:
    """Whether these are more edges than a network may have."""
    return n_edges > _MOST_EDGES


def check_edges(name: str, n_agents: int, n_edges: float) -> None:
    """Refuse a network whose edges would not fit into the memory of an ordinary machine."""
    if may_be_too_many(n_edges):
        raise ArgumentError(
            name, f"must be smaller for so dense a network: {n_agents} agents would have {n_edges:.3g} edges."
        )


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
        found = f"an array of {array.dtype} of shape {array.shape}"
        raise ArgumentError("edges", f"must be pairs (i, j) of agent numbers, got {found}.")
    if array.min() < 0 or array.max() >= n_agents:
        raise ValueError(f"edges must join agents 0 to {n_agents - 1}, found {array.min()} to {array.max()}.")
    if (array[:, 0] == array[:, 1]).any():
        agent = int(array[array[:, 0] == array[:, 1]][0, 0])
        raise ValueError(f"edges must join two different agents, found {(agent, agent)}.")
    low, high = np.sort(array.astype(np.int64), axis=1).T
    pairs = np.sort(low * n_agents + high)  # one number for a pair: far quicker to sort
    first = np.concatenate([[True], pairs[1:] != pairs[:-1]])
    return pairs_of(pairs[first], n_agents)


def read_pairs(path: Path) -> Array | None:
    """The pairs in a large file that holds nothing but two numbers a line; None if it is small or anything else.

    What holds names, commas or comments is read word by word, which for millions of lines takes three times as long.
    """
    if path.stat().st_size < _READ_AT_ONCE:
        return None
    data = path.read_bytes()
    if (
        not data.strip() or data.translate(None, b"0123456789 \t\r\n") or re.search(rb"(?<!\d)0\d", data)
    ):  # 07 and 7 are two names
        return None
    try:
        pairs = np.loadtxt(path, dtype=np.int64, ndmin=2)
    except (ValueError, OverflowError):
        return None
    return pairs if pairs.shape[1] == 2 else None


def in_order(names: Iterable[str]) -> list[str]:
    """Names by their numbers if all are numbers, else as words; 7 before 07, in every process alike."""
    listed = list(names)
    if all(name.isdecimal() and len(name) <= _LONGEST_NUMBER for name in listed):
        return sorted(listed, key=lambda name: (int(name), len(name), name))
    return sorted(listed)


def pairs_of(numbers: Array, n_agents: int) -> Array:
    """The pairs (i, j) of the numbers i n + j."""
    return np.stack(np.divmod(numbers, n_agents), axis=1)
