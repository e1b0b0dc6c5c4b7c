"""A picture of runs: what each knows after so many rounds, messages and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic.plot.style import INK, RUN, STYLES, draw_curve, draw_reference, dress
from laconic.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    number = sum(line.get_gid() == RUN for line in panels[0].lines)
    style, name = STYLES[number % len(STYLES)], str(trace.about["name"]) if label is None else label

    mse = trace.mse()
    rounds = np.arange(trace.state.round - trace.n_rounds, trace.state.round) + 1
    messages, bits = (np.cumsum(costs.sum(axis=1)) for costs in (trace.sent, trace.bits))
    for panel, cost in zip(panels, (rounds, messages, bits), strict=True):
        if cost[-1] > 0:
            draw_curve(panel, cost, mse, style, name, number)
        else:
            draw_reference(panel, mse[-1], style, name)
    _legend(figure, panels[0])
    return figure


def _panels(figure: Figure) -> list[Axes]:
    """The three panels of a figure, made if it is empty."""
    if not figure.axes:
        first = figure.add_subplot(1, 3, 1)
        panels = [first, *(figure.add_subplot(1, 3, k, sharey=first) for k in (2, 3))]
        for panel, what in zip(
            panels, ("time (rounds)", "messages sent (broadcasts)", "data sent (bits)"), strict=True
        ):
            dress(panel)
            panel.set_xlabel(what, color=INK)
            panel.set_gid(RUN)
        first.set_ylabel("mean squared error so far (unit of y)²", color=INK)
        for panel in panels[1:]:
            panel.tick_params(labelleft=False, which="both")
    if len(figure.axes) != 3 or any(panel.get_gid() != RUN for panel in figure.axes):
        raise ValueError("figure must be empty, or one that plot() returned.")
    return list(figure.axes)


def _legend(figure: Figure, panel: Axes) -> None:
    """One legend for all panels, below them."""
    for old in list(figure.legends):
        old.remove()
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 7), frameon=False, fontsize=9,
        labelcolor=INK, handlelength=3.4, columnspacing=1.8,
    )  # fmt: skip
