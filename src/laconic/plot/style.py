"""How runs look: told apart by colour, line style and marker at once, so that a figure can be printed in grey.

The colours are those of Okabe and Ito, which people who do not see red or green can tell apart. matplotlib is imported
when something is drawn, and its settings stay untouched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from laconic._validate import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, QUIET, FAINT = "#222222", "#6b6b6b", "#e4e4e4"
POINTS = 600  # more than a printed line can show
RUN = "laconic-run"  # marks the lines and panels that are ours


class Style(NamedTuple):
    """How one run is drawn."""

    color: str
    dashes: tuple[float, ...]
    marker: str


# Neighbours in this list differ in lightness and in dashes, not only in hue.
STYLES = (
    Style("#0072b2", (), "o"),
    Style("#d55e00", (5, 1.5), "s"),
    Style("#009e73", (1.2, 1.2), "^"),
    Style("#cc79a7", (7, 1.5, 1.2, 1.5), "D"),
    Style("#000000", (3, 1), "v"),
    Style("#e69f00", (9, 2), "P"),
    Style("#56b4e9", (4, 1.2, 1.2, 1.2, 1.2, 1.2), "X"),
)


def style_of(number: int) -> Style:
    """The style of the run with that number: after all colours come the same ones with other marks and dashes."""
    turn, n = number // len(STYLES), len(STYLES)
    color, mark, dash = (STYLES[(number + shift) % n] for shift in (0, turn, 2 * turn))
    return Style(color.color, dash.dashes, mark.marker)


def draw_band(panel: Axes, cost: Array, least: Array, most: Array, style: Style) -> None:
    """Where all runs of several seeds lie."""
    shown = np.flatnonzero((cost > 0) & np.isfinite(least) & np.isfinite(most))
    kept = shown[_thinned(shown.size)]
    panel.fill_between(
        cost[kept], least[kept], most[kept], color=style.color, alpha=0.18, linewidth=0, zorder=2, gid="laconic-band"
    )


def _thinned(size: int) -> Array:
    """As many places as a line can show, evenly spread on the logarithmic axis."""
    if size == 0:
        return np.empty(0, dtype=int)
    return np.unique(np.geomspace(1, size, min(POINTS, size)).round().astype(int) - 1)


def draw_curve(panel: Axes, cost: Array, mse: Array, style: Style, name: str, number: int) -> None:
    """One run in one panel: a line with a few marks, and a larger mark where it ends."""
    shown = np.flatnonzero((cost > 0) & np.isfinite(mse))
    if shown.size == 0:
        return
    kept = shown[_thinned(shown.size)]
    x, y = cost[kept], mse[kept]
    panel.plot(
        x, y, color=style.color, dashes=style.dashes or (None, None), linewidth=1.6, label=name, gid=RUN,
        marker=style.marker, markersize=4.5, markevery=_marks(x, number), solid_capstyle="round", zorder=3,
    )  # fmt: skip
    panel.plot(
        x[-1:], y[-1:], style.marker, color=style.color, markersize=7.5, markeredgecolor="white", markeredgewidth=0.9,
        zorder=4,
    )  # fmt: skip


def draw_reference(panel: Axes, level: float, style: Style, name: str, small: bool = False) -> None:
    """A run that sent nothing, in a panel whose axis counts what was sent."""
    panel.axhline(level, color=style.color, linewidth=1.0, dashes=(1, 2.5), zorder=2, gid=RUN)
    words = "sends nothing" if small else f"{name}: sends nothing"
    panel.annotate(
        words, (0, level), xycoords=("axes fraction", "data"), xytext=(4, 3),
        textcoords="offset points", fontsize=7 if small else 8, color=style.color,
    )  # fmt: skip


def _marks(x: Array, number: int) -> list[int]:
    """Three marks on each line, at places that differ from run to run: none is to cover another."""
    spread = (np.arange(1, 4) + 0.8 * (number % len(STYLES)) / len(STYLES)) / 4
    low, high = np.log(x[0]), np.log(x[-1])
    return sorted({int(k) for k in np.searchsorted(np.log(x), low + spread * (high - low))} - {len(x) - 1, len(x)})


def dress(panel: Axes, small: bool = False) -> None:
    """Give a panel its logarithmic axes, its grid and its quiet frame."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.grid(color=FAINT, linewidth=0.7, which="major")
    panel.set_axisbelow(True)
    for side, spine in panel.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#bbbbbb")
    panel.tick_params(which="both", color="#bbbbbb", labelcolor=QUIET, labelsize=7 if small else 9)
    panel.tick_params(which="minor", length=0)
