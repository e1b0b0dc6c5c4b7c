"""A picture of runs: what each knows after so many rounds, messages and bits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.plot.panels import PANELS, USUAL, Panel, chosen
from laconic.plot.style import INK, RUN, draw_band, draw_curve, draw_reference, dress, style_of
from laconic.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 3.5, 3.3  # of a panel, in inches, where nothing is said
_ROW = 0.21  # the height of a row of the legend
_NARROW = 2.6  # inches of a panel below which letters are smaller


def draw_traces(
    traces: Sequence[Trace],
    label: str,
    figure: Figure | None,
    panels: object = None,
    width: float | None = None,
) -> Figure:
    """Draw one run, or the same run for several seeds, into the panels of a figure.

    Of several, the line is their mean, round by round, and the band goes from the least to the largest. A run in which
    nobody spoke has no place on axes that count what was said: a thin line at its final value stands for it.

    Parameters
    ----------
    traces : sequence of Trace
    label : str
        Name of the run in the legend.
    figure : Figure or None
        A figure that this function drew, to add a run to it, or an empty one; None makes one.
    panels : names of ``PANELS``, or None
        By default those of the figure, or "rounds", "messages" and "bits".
    width : float or None
        Width in inches of a new figure.
    """
    if any(trace.n_rounds == 0 for trace in traces):
        raise ValueError("trace must hold at least one round to be drawn.")
    names = None if panels is None else chosen(panels)
    if width is not None:
        width = _validate.number("width", width, above=0)
    made = _figure(figure, names, width)
    axes = _panels(made, names)
    number = sum(line.get_gid() == RUN for line in next(iter(axes.values())).lines)
    style = style_of(number)
    for name, panel in axes.items():
        curve = _Curve(PANELS[name], traces)
        if curve.cost[-1] > 0:
            if len(traces) > 1:
                draw_band(panel, curve.cost, curve.least, curve.most, style)
            draw_curve(panel, curve.cost, curve.mean, style, label, number)
        else:
            draw_reference(panel, curve.mean[-1], style, label, small=_is_narrow(made))
    _legend(made, next(iter(axes.values())))
    return made


class _Curve:
    """The numbers of one panel: the mean over seeds, and the band around it."""

    def __init__(self, panel: Panel, traces: Sequence[Trace]) -> None:
        n_rounds = min(trace.n_rounds for trace in traces)  # one that diverged is shorter
        rows = np.array([panel.measure(trace)[:n_rounds] for trace in traces], dtype=float)
        self.cost: Array = np.mean([panel.cost(trace)[:n_rounds] for trace in traces], axis=0)
        self.mean: Array = rows.mean(axis=0)
        self.least: Array = rows.min(axis=0)
        self.most: Array = rows.max(axis=0)


def _figure(figure: Figure | None, names: tuple[str, ...] | None, width: float | None) -> Figure:
    """The figure to draw into: the one that was given, or a new one of that width."""
    if figure is not None:
        if width is not None:
            raise ValueError("width is that of a new figure: pass width, or a figure.")
        return figure
    from laconic.plot.figure import new

    columns = len(names or USUAL)
    each = _WIDTH if width is None else width / columns
    # Narrow panels are nearly square, wide ones are not higher than usual.
    return new(each * columns, min(_HEIGHT, 0.62 * each + 0.9) + _ROW)


def _panels(figure: Figure, names: tuple[str, ...] | None) -> dict[str, Axes]:
    """The panels of a figure by their names, made if it is empty; who measures the same shares a scale."""
    if not figure.axes:
        names = names or USUAL
        narrow = _is_narrow(figure, len(names))
        first: dict[str, Axes] = {}
        for k, name in enumerate(names):
            about = PANELS[name]
            panel = figure.add_subplot(1, len(names), k + 1, sharey=first.get(about.y))
            dress(panel, small=narrow)
            panel.set_xlabel(about.x, color=INK, fontsize=8 if narrow else None)
            panel.set_gid(f"{RUN}:{name}")
            # The words stand beside the first of neighbours that share them.
            if k and PANELS[names[k - 1]].y == about.y:
                panel.tick_params(labelleft=False, which="both")
            else:
                panel.set_ylabel(_wrapped(about.y), color=INK, fontsize=8 if narrow else None)
            first.setdefault(about.y, panel)
    found = [str(panel.get_gid()).removeprefix(f"{RUN}:") for panel in figure.axes]
    if not all(name in PANELS and panel.get_gid() != name for name, panel in zip(found, figure.axes, strict=True)):
        raise ValueError("figure must be empty, or one that plot() returned.")
    if names is not None and names != tuple(found):
        raise ValueError(f"figure has the panels {', '.join(found)}: panels must be these, or be left out.")
    return dict(zip(found, figure.axes, strict=True))


def _is_narrow(figure: Figure, columns: int | None = None) -> bool:
    return bool(figure.get_figwidth() / (columns or len(figure.axes)) < _NARROW)


def _wrapped(words: str) -> str:
    """In lines that are no longer than a panel is high."""
    return "\n".join(textwrap.wrap(words, 26))


def _legend(figure: Figure, panel: Axes) -> None:
    """One legend for all panels, below them, in as many rows as it needs; a figure of ours grows by them."""
    from laconic.plot.figure import Picture

    before = _rows(figure) if figure.legends else 1
    for old in list(figure.legends):
        old.remove()
    handles, labels = panel.get_legend_handles_labels()
    columns = _columns(figure.get_figwidth(), labels)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9,
        labelcolor=INK, handlelength=3.4, columnspacing=1.8,
    )  # fmt: skip
    if isinstance(figure, Picture):
        figure.set_figheight(figure.get_figheight() + _ROW * (_rows(figure) - before))


def _columns(width: float, labels: Sequence[str]) -> int:
    """How many names stand side by side in a legend of that width: 3.4 letters of line, and the longest name."""
    each = (3.4 + 0.8 + 1.8) * 9 / 72 + max(map(len, labels)) * 0.6 * 9 / 72
    return max(1, min(len(labels), int((width - 0.2) / each)))


def _rows(figure: Figure) -> int:
    (legend,) = figure.legends
    return -(-len(legend.get_texts()) // _columns(figure.get_figwidth(), [t.get_text() for t in legend.get_texts()]))
