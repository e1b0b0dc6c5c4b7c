"""A picture of a run's waves: when each ran, how long, what it cost, and what became of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic.plot.panels import recent_mse
from laconic.plot.style import FAINT, INK, QUIET, STYLES, dress
from laconic.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_waves(trace: Trace, figure: Figure | None) -> Figure:
    """Draw the error of a run above its waves, round by round.

    Below, a bar for each wave: from its start to when the last agent has adopted it, 2h rounds, as high as its bits.

    Parameters
    ----------
    trace : Trace
        Of a run with ``WaveRLS``.
    figure : Figure or None
        An empty figure to draw into; None makes one.
    """
    from matplotlib.ticker import FuncFormatter

    waves = trace.waves
    if len(waves) == 0:
        raise ValueError(f"trace must hold waves to be drawn, and this run with {trace.about['name']} has none.")
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(8.4, 4.6), layout="constrained")
    if figure.axes:
        raise ValueError("figure must be empty.")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    first = trace.state.round - trace.n_rounds
    rounds = np.arange(first + 1, first + trace.n_rounds + 1)
    error = recent_mse(trace)
    shown = np.isfinite(error)
    above.plot(rounds[shown], error[shown], color=STYLES[0].color, linewidth=1.6)
    dress(above)
    above.set_ylabel("mean squared error\nof the last fifth", color=INK)
    length = 2 * waves["depth"]
    below.bar(
        waves["when"], waves["bits"] / 1e3, width=np.maximum(length, 0.06 * waves["when"]), align="edge",
        color=STYLES[1].color, alpha=0.85, zorder=3,
    )  # fmt: skip
    _quiet(below)
    for wave in waves:
        above.axvline(wave["when"], color=FAINT, linewidth=1.0, zorder=1)
        if wave["terms"]:
            below.annotate(
                str(wave["terms"]), (wave["when"], wave["bits"] / 1e3), (1, 2), textcoords="offset points",
                fontsize=8, color=QUIET,
            )  # fmt: skip
    below.set_ylabel("kbit of the wave", color=INK)
    below.set_xlabel("time (rounds)", color=INK)
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    total, n_agents = trace.bits.sum() / 1e3, trace.n_agents
    below.set_title(
        f"{len(waves)} waves over a tree of depth {int(waves['depth'].max())}: {total:.3g} kbit in all, "
        f"{total / n_agents:.3g} an agent; numbers: rank-one terms sent",
        loc="left", fontsize=9, color=QUIET,
    )  # fmt: skip
    return figure


def _quiet(panel: Axes) -> None:
    panel.grid(visible=True, axis="y", color=FAINT, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.set_ylim(0, 1.2 * panel.get_ylim()[1])
    for side, spine in panel.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#bbbbbb")
    panel.tick_params(which="both", color="#bbbbbb", labelcolor=QUIET, labelsize=9)
