"""Who computes which agents, when several processes share a network; without MPI, so that it can be looked at alone."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from laconic import _extras, _numbering, _validate
from laconic._validate import Array
from laconic.network import Network


class Part(NamedTuple):
    """The agents of one process, and what it must hear from and tell to the others.

    Agents here are numbered from 0 on, in the order of ``agents``; agents elsewhere follow, in that of ``elsewhere``.

    Attributes
    ----------
    agents, elsewhere : array of int
        Numbers in the network: of the agents here, and of their neighbours in other processes, by process.
    starts, neighbours : array of int
        The neighbour lists of the agents here, back to back, in the order that they have in the network.
    combination : array
        The combination weight of each entry of ``neighbours``.
    degrees : array of int
    others : array of int
        The processes that have neighbours of agents here.
    hear : array (len(others) + 1,)
        Where the agents of each of them begin in ``elsewhere``.
    tell, members : array of int
        ``members[tell[k] : tell[k + 1]]`` are those agents here that process ``others[k]`` hears.
    """

    agents: Array
    elsewhere: Array
    starts: Array
    neighbours: Array
    combination: Array
    degrees: Array
    others: Array
    hear: Array
    tell: Array
    members: Array


def divide(network: Network, n_parts: int, method: str = "auto") -> Array:
    """Which part, from 0 to ``n_parts - 1``, each agent belongs to: of about the same size, with few edges between.

    Parameters
    ----------
    network : Network
    n_parts : int
        At most as many as there are agents.
    method : "auto", "metis" or "contiguous"
        METIS, where pymetis is installed; else stretches of a numbering in which neighbours stand near each other
        (reverse Cuthill-McKee), which cut more edges.

    Examples
    --------
    >>> import laconic as lc
    >>> divide(lc.Network.path(6), 2, "contiguous").tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """
    n_parts = _validate.integer("n_parts", n_parts, least=1)
    _validate.choice("method", method, ("auto", "metis", "contiguous"))
    n = network.n_agents
    if n_parts > n:
        raise ValueError(f"n_parts must be at most the number of agents: {n} agents cannot be shared by {n_parts}.")
    if n_parts == 1:
        return np.zeros(n, dtype=np.int64)
    if method == "metis" or (method == "auto" and find_spec("pymetis") is not None):
        metis = _extras.need("pymetis", "a partition by METIS")
        lists = metis.CSRAdjacency(adj_starts=network.starts, adjacent=network.neighbours)
        found = np.array(metis.part_graph(n_parts, adjacency=lists)[1], dtype=np.int64)
        if len(np.unique(found)) == n_parts:
            return found
    place = np.empty(n, dtype=np.int64)
    place[_numbering.by_walking(network.starts, network.neighbours)] = np.arange(n)
    return place * n_parts // n


def make_part(network: Network, owner: Array, part: int) -> Part:
    """What the process ``part`` has to know, when ``owner`` says who computes which agent."""
    mine = _nearby(network, np.flatnonzero(owner == part), owner, part)
    entries, starts = _lists(network, mine)
    heard = network.neighbours[entries]
    away = owner[heard] != part
    teller = np.repeat(np.arange(len(mine)), np.diff(starts))[away]

    outside = np.unique(heard[away])
    elsewhere = outside[np.lexsort((outside, owner[outside]))]
    others, counts = np.unique(owner[elsewhere], return_counts=True)

    local = np.empty(network.n_agents, dtype=np.int64)
    local[mine] = np.arange(len(mine))
    local[elsewhere] = len(mine) + np.arange(len(elsewhere))

    # Whom a process tells is ordered as that process orders whom it hears: by number in the network.
    pairs = np.unique(np.stack([owner[heard[away]], mine[teller]], axis=1), axis=0)
    tell = np.concatenate([[0], np.cumsum(np.unique(pairs[:, 0], return_counts=True)[1])]).astype(np.int64)
    return Part(
        mine,
        elsewhere,
        starts,
        local[heard],
        network.combination[entries],
        network.degrees[mine],
        others,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        tell,
        local[pairs[:, 1]],
    )


def known_to(part: Part) -> Array:
    """The agents that a process keeps a row of: those here, then those whose replicas it keeps."""
    return np.concatenate([part.agents, part.elsewhere])


def _lists(network: Network, agents: Array) -> tuple[Array, Array]:
    """Where the neighbour lists of some agents are in those of all, and where they begin when put back to back."""
    lengths = network.degrees[agents]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return np.repeat(network.starts[agents], lengths) + within, starts


def _nearby(network: Network, agents: Array, owner: Array, part: int) -> Array:
    """The agents of a part in an order in which those stand near each other that hear each other."""
    entries, starts = _lists(network, agents)
    inside = owner[network.neighbours[entries]] == part
    row = np.repeat(np.arange(len(agents)), np.diff(starts))[inside]
    inner = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(agents)))])
    return np.asarray(
        agents[_numbering.by_walking(inner, np.searchsorted(agents, network.neighbours[entries][inside]))]
    )
