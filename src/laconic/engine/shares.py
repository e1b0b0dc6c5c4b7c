"""The dual of each edge, where edges come and go: what an agent keeps of a neighbour that is gone.

An agent's dual is the sum of its edges' shares, G_ij = sum over the rounds of the edge of rho (theta-hat_i -
theta-hat_j). When an edge goes its share is set aside, when it comes back it counts again, and a new edge begins at
zero: the rule of agents (``docs/protocol.md``). The engines know only the sums. But while a network stays, all shares
grow by differences of one potential, G_ij += P_i - P_j, and P follows from how the duals have grown: L P = gamma_now -
gamma_then with the network's Laplacian L. So shares are needed, and found, only where the network changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from laconic import _extras, _graphs
from laconic._validate import Array
from laconic.network import Network


def potentials(network: Network, grown: Array) -> Array:
    """P with L P = ``grown`` (n_agents, n_features), zero at one agent of each connected part."""
    found: Array = np.zeros(grown.shape)
    _, part = _graphs.parts(network.n_agents, network.edges)
    _, grounded = np.unique(part, return_index=True)
    free = np.setdiff1d(np.arange(network.n_agents), grounded)
    if len(free):
        laplacian = network.laplacians[0].tocsc()[free][:, free]
        solver = _extras.need("scipy.sparse.linalg", "a network that changes").splu(laplacian.tocsc())
        found[free] = solver.solve(np.ascontiguousarray(grown[free], dtype=np.float64))
    return found


@final
class Shares:
    """The shares of all edges that ever were, at the smaller agent's end; at the other they have the other sign."""

    def __init__(self, n_agents: int, n_features: int, kept: Mapping[str, Array] | None = None) -> None:
        self._n_agents = n_agents
        self._numbers: Array = np.empty(0, dtype=np.int64)  # i * n_agents + j of each edge, sorted
        self._rows: Array = np.empty((0, n_features))
        if kept:
            pairs = np.asarray(kept["pairs"], dtype=np.int64)
            if kept["shares"].shape != (len(pairs), n_features) or (len(pairs) and pairs.max() >= n_agents):
                raise ValueError("state comes from another network or feature map: its edges do not fit.")
            self._numbers, self._rows = pairs[:, 0] * n_agents + pairs[:, 1], np.array(kept["shares"], dtype=np.float64)

    def _places(self, network: Network) -> Array:
        """Where the shares of a network's edges are; new ones begin at zero."""
        wanted = network.edges[:, 0].astype(np.int64) * self._n_agents + network.edges[:, 1]
        numbers = np.union1d(self._numbers, wanted)
        if len(numbers) > len(self._numbers):
            rows = np.zeros((len(numbers), self._rows.shape[1]))
            rows[np.searchsorted(numbers, self._numbers)] = self._rows
            self._numbers, self._rows = numbers, rows
        return np.searchsorted(self._numbers, wanted)

    def grow(self, network: Network, grown: Array) -> None:
        """Let the shares of these edges grow as the duals have, by ``grown`` (n_agents, n_features)."""
        self.grow_by(network, potentials(network, grown))

    def grow_by(self, network: Network, rows: Array) -> None:
        """Let the shares of these edges grow by what ``rows`` (n_agents, n_features) differ between their ends."""
        places = self._places(network)
        self._rows[places] += rows[network.edges[:, 0]] - rows[network.edges[:, 1]]

    def duals(self, network: Network) -> Array:
        """The dual of each agent: the sum of the shares of its edges."""
        places = self._places(network)
        shares = self._rows[places]
        sums: Array = np.zeros((self._n_agents, shares.shape[1]))
        np.add.at(sums, network.edges[:, 0], shares)
        np.subtract.at(sums, network.edges[:, 1], shares)
        return sums

    def keep(self, network: Network) -> dict[str, Array]:
        """What a state keeps of them, and which of them are edges of the present network."""
        places = self._places(network)
        live: Array = np.zeros(len(self._numbers), dtype=bool)
        live[places] = True
        pairs = np.stack([self._numbers // self._n_agents, self._numbers % self._n_agents], axis=1)
        return {"pairs": pairs, "live": live, "shares": self._rows.copy()}
