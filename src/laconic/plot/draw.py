"""Pictures of networks and of runs. matplotlib is imported when something is drawn, and its settings stay untouched.

Runs are told apart by colour, line style and marker at once, so a figure can be printed in grey; the colours are those
of Okabe and Ito, which people who do not see red or green can tell apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from laconic._validate import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from laconic.network import Network
    from laconic.trace import Trace

_INK, _QUIET, _FAINT = "#222222", "#6b6b6b", "#e4e4e4"
_NAMED_AGENTS = 60  # beyond this, names inside the dots could not be read
_SPRINGS = 500  # beyond this, springs take too long
_POINTS = 600  # more than a printed line can show
_RUN = "laconic-run"


class _Style(NamedTuple):
    color: str
    dashes: tuple[float, ...]
    marker: str


# Neighbours in this list differ in lightness and in dashes, not only in hue.
_STYLES = (
    _Style("#0072b2", (), "o"),
    _Style("#d55e00", (5, 1.5), "s"),
    _Style("#009e73", (1.2, 1.2), "^"),
    _Style("#cc79a7", (7, 1.5, 1.2, 1.5), "D"),
    _Style("#000000", (3, 1), "v"),
    _Style("#e69f00", (9, 2), "P"),
    _Style("#56b4e9", (4, 1.2, 1.2, 1.2, 1.2, 1.2), "X"),
)


# --------------------------------------------------------------------------------------------------------------------
# Networks
# --------------------------------------------------------------------------------------------------------------------


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
    places = _places(network)
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
            color = "white" if dark else _INK
            ax.text(place[0], place[1], name, ha="center", va="center_baseline", fontsize=size, color=color)
    middle, reach = (places.max(axis=0) + places.min(axis=0)) / 2, np.ptp(places, axis=0) / 2
    # Room for the dots at the border, and for a path or a single agent, which have no height of their own.
    reach = np.maximum(1.16 * reach, 0.25 * max(reach.max(), 0.1)) + 0.02 * reach.max()
    ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _places(network: Network) -> Array:
    """Where each agent is drawn: where it was built if that is known, else where springs pull it."""
    import networkx as nx

    if network._positions is not None:
        known = network._positions
        return np.array([known[k] for k in range(network.n_agents)], dtype=float)
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

    laplacian, _ = network._laplacians
    start = np.random.default_rng(0).uniform(size=network.n_agents)
    _, modes = eigsh(laplacian.tocsc(), k=3, sigma=-0.01, which="LM", v0=start)
    return np.asarray(modes[:, 1:])


def _apart(places: Array) -> bool:
    """Whether no two dots are so close that one would cover the other's name."""
    from scipy.spatial.distance import pdist

    return len(places) < 2 or bool(pdist(places).min() > 0.055 * np.ptp(places, axis=0).max())


# --------------------------------------------------------------------------------------------------------------------
# Runs
# --------------------------------------------------------------------------------------------------------------------


def draw_trace(trace: Trace, label: str | None, figure: Figure | None) -> Figure:
    """Draw the running MSE of a trace against rounds, messages and bits, in three panels that share their scale.

    A run in which nobody spoke has no place on the last two axes: a thin line at its final MSE stands for it.

    Parameters
    ----------
    trace : Trace
    label : str or None
        Name of the run in the legend; None takes the learner's.
    figure : Figure or None
        A figure that this function drew, to add a run to it, or an empty one; None makes one.
    """
    if trace.n_rounds == 0:
        raise ValueError("trace must hold at least one round to be drawn.")
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(10.5, 3.7), layout="constrained")
    panels = _panels(figure)
    number = sum(line.get_gid() == _RUN for line in panels[0].lines)
    style, name = _STYLES[number % len(_STYLES)], str(trace.about["name"]) if label is None else label

    mse = trace.mse()
    rounds = np.arange(trace.state.round - trace.n_rounds, trace.state.round) + 1
    messages, bits = (np.cumsum(costs.sum(axis=1)) for costs in (trace.sent, trace.bits))
    for panel, cost in zip(panels, (rounds, messages, bits), strict=True):
        if cost[-1] > 0:
            _draw_curve(panel, cost, mse, style, name, number)
        else:
            _draw_reference(panel, mse[-1], style, name)
    _legend(figure, panels[0])
    return figure


def _draw_curve(panel: Axes, cost: Array, mse: Array, style: _Style, name: str, number: int) -> None:
    """One run in one panel: a line with a few marks, and a larger mark where it ends."""
    shown = np.flatnonzero((cost > 0) & np.isfinite(mse))
    if shown.size == 0:
        return
    # As many points as a line can show, evenly spread on the logarithmic axis.
    ranks = np.geomspace(1, shown.size, min(_POINTS, shown.size)).round().astype(int) - 1
    kept = shown[np.unique(ranks)]
    x, y = cost[kept], mse[kept]
    panel.plot(
        x, y, color=style.color, dashes=style.dashes or (None, None), linewidth=1.6, label=name, gid=_RUN,
        marker=style.marker, markersize=4.5, markevery=_marks(x, number), solid_capstyle="round", zorder=3,
    )  # fmt: skip
    panel.plot(
        x[-1:], y[-1:], style.marker, color=style.color, markersize=7.5, markeredgecolor="white", markeredgewidth=0.9,
        zorder=4,
    )  # fmt: skip


def _draw_reference(panel: Axes, level: float, style: _Style, name: str) -> None:
    """A run that sent nothing, in a panel whose axis counts what was sent."""
    panel.axhline(level, color=style.color, linewidth=1.0, dashes=(1, 2.5), zorder=2, gid=_RUN)
    panel.annotate(
        f"{name}: sends nothing", (0, level), xycoords=("axes fraction", "data"), xytext=(4, 3),
        textcoords="offset points", fontsize=8, color=style.color,
    )  # fmt: skip


def _marks(x: Array, number: int) -> list[int]:
    """Three marks on each line, at places that differ from run to run: none is to cover another."""
    spread = (np.arange(1, 4) + 0.8 * (number % len(_STYLES)) / len(_STYLES)) / 4
    low, high = np.log(x[0]), np.log(x[-1])
    return sorted({int(k) for k in np.searchsorted(np.log(x), low + spread * (high - low))} - {len(x) - 1, len(x)})


def _panels(figure: Figure) -> list[Axes]:
    """The three panels of a figure, made if it is empty."""
    if not figure.axes:
        first = figure.add_subplot(1, 3, 1)
        panels = [first, *(figure.add_subplot(1, 3, k, sharey=first) for k in (2, 3))]
        for panel, what in zip(
            panels, ("time (rounds)", "messages sent (broadcasts)", "data sent (bits)"), strict=True
        ):
            _dress(panel)
            panel.set_xlabel(what, color=_INK)
            panel.set_gid(_RUN)
        first.set_ylabel("mean squared error so far (unit of y)²", color=_INK)
        for panel in panels[1:]:
            panel.tick_params(labelleft=False, which="both")
    if len(figure.axes) != 3 or any(panel.get_gid() != _RUN for panel in figure.axes):
        raise ValueError("figure must be empty, or one that plot() returned.")
    return list(figure.axes)


def _dress(panel: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.grid(color=_FAINT, linewidth=0.7, which="major")
    panel.set_axisbelow(True)
    for side, spine in panel.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#bbbbbb")
    panel.tick_params(which="both", color="#bbbbbb", labelcolor=_QUIET, labelsize=9)
    panel.tick_params(which="minor", length=0)


def _legend(figure: Figure, panel: Axes) -> None:
    """One legend for all panels, below them."""
    for old in list(figure.legends):
        old.remove()
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 7), frameon=False, fontsize=9,
        labelcolor=_INK, handlelength=3.4, columnspacing=1.8,
    )  # fmt: skip
