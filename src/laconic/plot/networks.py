"""Drawing of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic._validate import Array
from laconic.network import Network
from laconic.plot.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED_AGENTS = 60  # beyond this, names inside the dots could not be read
_SPRINGS = 500  # beyond this, springs take too long


def draw_network(network: Network, ax: Axes | None) -> Axes:
    """Draw a network: agents are dots, darker with more neighbours; edges are lines.

    Parameters
    ----------
    network : Network
    ax : Axes or None
        Where to draw; None makes a figure.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.2, 4.2), layout="constrained").add_subplot()
    places = layout(network)
    n, degrees = network.n_agents, network.degrees
    shades = LinearSegmentedColormap.from_list("degrees", ["#d4e6f1", "#0072b2", "#062f4f"])
    # A regular graph is drawn in the middle shade.
    scale = Normalize(degrees.min() - 0.5 * (np.ptp(degrees) == 0), degrees.max() + 0.5 * (np.ptp(degrees) == 0))
    named = n <= _NAMED_AGENTS and _apart(places)
    area = 330.0 if n <= 16 and named else (170.0 if named else max(4.0, 4000.0 / n**0.9))

    line, rim = min(1.1, 12 / n**0.5), min(1.2, area**0.5 / 8)

    ax.add_collection(LineCollection(list(places[network.edges]), colors="#b4bcc2", linewidths=line, zorder=1))
    x, y = places.T
    ax.scatter(x, y, s=area, c=shades(scale(degrees)), edgecolors="white", linewidths=rim, zorder=2)
    if named:
        for place, name, degree in zip(places, network.names, degrees, strict=True):
            dark = scale(degree) > 0.35
            size = min(9.5 if n <= 16 else 6.5, 30.0 / len(name))
            color = "white" if dark else INK
            ax.text(place[0], place[1], name, ha="center", va="center_baseline", fontsize=size, color=color)
    middle, reach = (places.max(axis=0) + places.min(axis=0)) / 2, np.ptp(places, axis=0) / 2
    # Room for the dots at the border, and for a path or a single agent, which have no height of their own.
    reach = np.maximum(1.16 * reach, 0.25 * max(reach.max(), 0.1)) + 0.02 * reach.max()
    ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def layout(network: Network) -> Array:
    """Where each agent is drawn: where it was built if that is known, else where springs pull it."""
    import networkx as nx

    if network.positions is not None:
        return network.positions
    if network.n_agents > _SPRINGS:
        return _slow_modes(network)
    graph = network.to_networkx()
    placed = nx.kamada_kawai_layout(graph) if network.n_agents <= _NAMED_AGENTS else nx.spring_layout(graph, seed=0)
    places = np.array([placed[k] for k in range(network.n_agents)], dtype=float)
    places -= places.mean(axis=0)
    _, lengths, directions = np.linalg.svd(places, full_matrices=False)
    # Springs do not care which way is up; a long graph is best seen lying down.
    return places @ directions.T if lengths[0] > 2 * lengths[-1] else places


def _slow_modes(network: Network) -> Array:
    """The two slowest modes of the graph as coordinates: coarse, and quick for many thousands of agents."""
    from scipy.sparse.linalg import eigsh

    laplacian, _ = network.laplacians
    start = np.random.default_rng(0).uniform(size=network.n_agents)
    _, modes = eigsh(laplacian.tocsc(), k=3, sigma=-0.01, which="LM", v0=start)
    return np.asarray(modes[:, 1:])


def _apart(places: Array) -> bool:
    """Whether no two dots are so close that one would cover the other's name."""
    from scipy.spatial.distance import pdist

    return len(places) < 2 or bool(pdist(places).min() > 0.055 * np.ptp(places, axis=0).max())
