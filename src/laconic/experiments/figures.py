"""The figures of a reproduction, drawn from saved traces and plain numbers; nothing is computed anew.

A method looks the same in every figure: colour, dashes and marker together, so a print in grey is as good. Each figure
is written as PNG (150 dpi) and as PDF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic._validate import Array
from laconic.experiments.settings import BEST_CENTRE, CENTRALISED_RLS, DEFAULT, FRUGAL, LOCAL_RLS, SETTINGS
from laconic.experiments.tuning import Tuning
from laconic.plot.style import FAINT, INK, POINTS, QUIET, STYLES, Style, draw_curve, draw_reference, dress
from laconic.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# In the order of the styles. ODKLA is the solid line that others lie on; those closest to it have the most open dashes.
_STYLED = ("ODKLA", "QC-ODKLA", "Q-ODKLA", "DOKL", "Local", "RFF-DOKL", "C-ODKLA")
# Beside the paper's: what is ours in one colour of its own, the ends of the scale in grey.
_LOOKS = dict(zip(_STYLED, STYLES, strict=True)) | {
    "WaveRLS": Style("#7a0f3c", (), ">"),
    FRUGAL: Style("#b5557f", (2.5, 0.8), "p"),
    DEFAULT: Style("#3d6b1f", (), "*"),
    LOCAL_RLS: Style("#8a8a8a", (1, 1.6), "<"),
    CENTRALISED_RLS: Style("#8a8a8a", (6, 2), "H"),
    BEST_CENTRE: Style("#4d4d4d", (8, 1.5, 1, 1.5), "h"),
}
# In the order of drawing and of the legends.
_ORDER = (
    "ODKLA", "QC-ODKLA", "RFF-DOKL", "DOKL", "C-ODKLA", "Q-ODKLA", "Local", "WaveRLS", FRUGAL, DEFAULT,
    LOCAL_RLS, CENTRALISED_RLS, BEST_CENTRE,
)  # fmt: skip
_OTHER = Style("#6b6b6b", (2, 2), "*")
_HEAD = 50  # a curve is shown from the first so many-th of the run: before that it is noise and hides the end
_DPI = 150


def draw_set(
    title: str, traces: Mapping[str, Sequence[Trace]], path: str | Path, *, caption: str | None = None
) -> list[Path]:
    """The paper's figure of one data set: MSE against time, against triggers and against bits.

    Parameters
    ----------
    title : str
        Name of the set.
    traces : dict
        For each method its traces over the seeds. Means over the seeds; panel (a) has a band of one standard deviation.
        Traces of runs that diverged are left out, and the caption says so.
    path : path
        Where to write, without ending.
    caption : str, optional
        The facts below the panels; by default those that the traces tell.
    """
    finished = {name: [trace for trace in runs if not trace.diverged] for name, runs in traces.items()}
    finished = {name: finished[name] for name in _ordered(finished) if finished[name]}
    if not finished:
        raise ValueError("traces must hold at least one run that did not diverge.")
    figure = _figure(10.5, 4.4, title)
    panels = [figure.add_subplot(1, 3, 1)]
    panels += [figure.add_subplot(1, 3, k, sharey=panels[0]) for k in (2, 3)]
    for number, (name, runs) in enumerate(finished.items()):
        _draw_method(panels, name, runs, number)
    what = ("time (rounds)", "triggers (messages sent by all agents)", "bits (sent by all agents)")
    for panel, letter, name in zip(panels, "abc", what, strict=True):
        _dress_up(panel)
        panel.set_xlabel(name, color=INK)
        panel.set_title(f"({letter})", loc="left", fontsize=10, color=INK)
        panel.tick_params(labelleft=letter == "a", which="both")
    panels[0].set_ylabel("mean squared error so far", color=INK)
    gone = [name for name, runs in traces.items() if any(trace.diverged for trace in runs)]
    facts = f"{title}: {_facts(finished) if caption is None else caption}. Lines: means; band: one standard deviation."
    _foot(figure, panels[0], facts + (f" Diverged and left out: {', '.join(gone)}." if gone else ""))
    return _save(figure, path)


def draw_regret(title: str, curves: Mapping[str, Mapping[str, Any]], path: str | Path) -> list[Path]:
    """Regret and collective regret against the rounds, in log-log, with the slopes that were fitted.

    Parameters
    ----------
    title : str
    curves : dict
        For each method ``rounds``, ``regret``, ``collective`` (sequences) and ``slope``, ``collective_slope``.
    path : path
        Where to write, without ending.
    """
    figure = _figure(8.4, 3.9, f"{title}: regret")
    panels = [figure.add_subplot(1, 2, 1)]
    panels.append(figure.add_subplot(1, 2, 2, sharey=panels[0]))
    kinds = (
        ("regret", "slope", "(a) each model on its own agent's data"),
        ("collective", "collective_slope", "(b) each model on all agents' data"),
    )
    for panel, (kind, slope, what) in zip(panels, kinds, strict=True):
        for number, name in enumerate(_ordered(curves)):
            rounds, values = np.asarray(curves[name]["rounds"]), _positive(curves[name][kind])
            label = f"{name}: slope {_decimals(curves[name].get(slope))}"
            draw_curve(panel, rounds, values, _look(name), label, number)
        _root(panel, curves.values(), kind)
        _dress_up(panel)
        panel.tick_params(labelleft=kind == "regret", which="both")
        panel.set_title(what, loc="left", fontsize=10, color=INK)
        panel.set_xlabel("rounds T", color=INK)
        panel.legend(frameon=False, fontsize=8, labelcolor=INK, handlelength=3.2, loc="upper left")
    panels[0].set_ylabel("regret", color=INK)
    return _save(figure, path)


def draw_lemma(
    title: str,
    rounds: Sequence[float],
    measured: Sequence[float],
    bound: Sequence[float],
    path: str | Path,
    *,
    printed: float | None = None,
) -> list[Path]:
    """Lemma 1: the error of the channel beside its bound; with ``printed``, its square beside the bound as printed."""
    figure = _figure(5.6, 3.7, f"{title}: error of the channel")
    panel = figure.add_subplot()
    lines: list[tuple[str, object, str, tuple[float, ...], float]] = [
        ("bound on $\\|E_t\\|_F$", bound, "#000000", (4, 1.5), 1.4),
        ("measured $\\|E_t\\|_F$", measured, STYLES[0].color, (), 1.8),
    ]
    if printed is not None:
        lines.append(("measured $\\|E_t\\|_F^2$", np.square(measured), STYLES[1].color, (1.2, 1.2), 1.4))
        lines.append(("printed bound on $\\|E_t\\|_F^2$", [printed] * len(rounds), STYLES[1].color, (7, 2), 1.2))
    for label, values, color, dashes, width in lines:
        panel.plot(
            rounds,
            _positive(values),
            color=color,
            dashes=dashes or (None, None),
            linewidth=width,
            label=label,
            zorder=3,
        )
    _dress_up(panel)
    panel.set_xlabel("time (rounds)", color=INK)
    panel.legend(frameon=False, fontsize=8.5, labelcolor=INK, handlelength=3.2, loc="best")
    return _save(figure, path)


def draw_batch(title: str, runs: Mapping[str, Mapping[str, Sequence[float]]], path: str | Path) -> list[Path]:
    """Batch learners: test error against iterations and messages; for each name its ``mse`` and ``sends`` so far."""
    figure = _figure(8.0, 3.7, title)
    panels = list(figure.subplots(1, 2, sharey=True))
    for (name, run), style in zip(runs.items(), STYLES, strict=False):
        for panel, across in zip(panels, (np.arange(1, len(run["mse"]) + 1), run["sends"]), strict=True):
            panel.plot(
                _positive(across),
                _positive(run["mse"]),
                color=style.color,
                dashes=style.dashes or (None, None),
                linewidth=1.8,
                label=name,
                zorder=3,
            )
    for panel, what in zip(panels, ("iterations", "messages sent by all agents"), strict=True):
        _dress_up(panel)
        panel.set_xlabel(what, color=INK)
    panels[0].set_ylabel("test mean squared error", color=INK)
    panels[0].legend(frameon=False, fontsize=8.5, labelcolor=INK, handlelength=3.2)
    return _save(figure, path)


def draw_heterogeneous(rows: Iterable[Mapping[str, Any]], path: str | Path) -> list[Path]:
    """Global MSE of every method on every set, a panel for each way to deal the rows: mean and range over the seeds.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the summary; those without a global MSE are passed over.
    path : path
        Where to write, without ending.
    """
    scores: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        if row.get("global_mse") is not None:
            here = scores.setdefault(row["partition"], {}).setdefault(row["set"], {})
            here.setdefault(row["algorithm"], []).append(float(row["global_mse"]))
    figure = _figure(10.5, 4.4, "What every model knows of everyone's data")
    if not scores:
        figure.text(0.5, 0.5, "No finished run has a global error.", ha="center", color=QUIET)
        return _save(figure, path)
    names = _ordered({name for sets in scores.values() for methods in sets.values() for name in methods})
    panels: list[Axes] = []
    for k, (partition, sets) in enumerate(scores.items()):
        panels.append(figure.add_subplot(1, len(scores), k + 1, sharey=panels[0] if panels else None))
        for number, name in enumerate(names):
            shift = 0.78 * ((number + 0.5) / len(names) - 0.5)
            places = [place + shift for place, methods in enumerate(sets.values()) if name in methods]
            values = [methods[name] for methods in sets.values() if name in methods]
            _points(panels[-1], places, values, name)
        _dress_up(panels[-1])
        panels[-1].set_xscale("linear")
        titles = [SETTINGS[name].title if name in SETTINGS else name for name in sets]
        many = len(sets) > 2
        panels[-1].set_xticks(range(len(sets)), titles, rotation=30 if many else 0, ha="right" if many else "center")
        panels[-1].set_xlim(-0.5, len(sets) - 0.5)
        panels[-1].grid(visible=False, axis="x")
        for edge in np.arange(len(sets) - 1) + 0.5:
            panels[-1].axvline(edge, color=FAINT, linewidth=0.7)
        panels[-1].set_title(re.sub("[-:]", " ", partition), loc="left", fontsize=10, color=INK)
        panels[-1].tick_params(labelleft=k == 0, which="both")
    panels[0].set_ylabel("global mean squared error", color=INK)
    facts = "Every model scored on every agent's sample. Points: means over the seeds; bars: smallest to largest."
    _foot(figure, panels[0], facts)
    return _save(figure, path)


def draw_tuning(tuning: Tuning | Mapping[str, Tuning], path: str | Path) -> list[Path]:
    """The grid of a method, or of several, each point by how far it is above the winner; the winner is framed."""
    tunings = [tuning] if isinstance(tuning, Tuning) else [tuning[name] for name in _ordered(tuning)]
    columns = min(4, len(tunings))
    lines = -(-len(tunings) // columns)
    figure = _figure(3.5 * columns, 3.3 * lines + 0.3)
    for k, one in enumerate(tunings):
        panel = figure.add_subplot(lines, columns, k + 1)
        (_grid if len(one.axes) == 2 else _line)(panel, one)
        panel.set_title(f"{one.method}: MSE {one.score:.3g}", loc="left", fontsize=10, color=INK)
        panel.tick_params(which="both", color="#bbbbbb", labelcolor=QUIET, labelsize=8, length=2)
    _foot(figure, None, "Percent above the MSE of the winner (framed); div.: diverged.")
    return _save(figure, path)


# --------------------------------------------------------------------------------------------------------------------
# Parts of the figures
# --------------------------------------------------------------------------------------------------------------------


def _draw_method(panels: list[Axes], name: str, runs: Sequence[Trace], number: int) -> None:
    """One method in the three panels: means over its seeds, round by round, of the errors and of what they cost."""
    style = _look(name)
    length = min(trace.n_rounds for trace in runs)
    errors = np.stack([trace.mse()[:length] for trace in runs])
    mean, spread = errors.mean(axis=0), errors.std(axis=0)
    rounds = np.arange(1, length + 1)
    messages, bits = (
        np.mean([np.cumsum(costs[:length].sum(axis=1)) for costs in each], axis=0)
        for each in ([trace.sent for trace in runs], [trace.bits for trace in runs])
    )
    shown = rounds > length // _HEAD
    few = np.unique(np.geomspace(length // _HEAD + 1, length, POINTS).astype(int)) - 1
    panels[0].fill_between(
        rounds[few], (mean - spread)[few], (mean + spread)[few], color=style.color, alpha=0.12, linewidth=0
    )
    for panel, cost in zip(panels, (rounds, messages, bits), strict=True):
        if cost[-1] > 0:
            started = shown & (messages >= 1) if panel is not panels[0] else shown
            draw_curve(panel, cost[started], mean[started], style, name, number)
        else:
            draw_reference(panel, mean[-1], style, name)


def _grid(panel: Axes, tuning: Tuning) -> None:
    """Two steps: a map; grey where the run diverged."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    (first, rows), (second, columns) = tuning.axes.items()
    above = np.array([[tuning.table.get((a, b), np.nan) for b in columns] for a in rows]) / tuning.score - 1
    shades = LinearSegmentedColormap.from_list("above", ["#0b4f7d", "#6aaed6", "#f7fbff"]).with_extremes(bad="#d9d9d9")
    shown = np.where(np.isfinite(above), np.minimum(above, 1.0), np.nan) ** 0.5  # most of the grid is near the winner
    panel.imshow(np.ma.masked_invalid(shown), cmap=shades, vmin=0, vmax=1, aspect="auto", origin="lower")
    size = min(7.0, 62 / len(columns))  # an extended grid has narrow cells
    for i, j in np.ndindex(above.shape):
        value = float(above[i, j])
        color = "white" if np.isfinite(value) and shown[i, j] < 0.45 else INK
        panel.text(j, i, _above(value), ha="center", va="center", fontsize=size, color=color, in_layout=False)
    place = (columns.index(tuning.steps[second]) - 0.5, rows.index(tuning.steps[first]) - 0.5)
    panel.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=STYLES[1].color, linewidth=2.2, zorder=5))
    turned = 60 if len(columns) > 9 else 0
    panel.set_xticks(range(len(columns)), [f"{value:.3g}" for value in columns], rotation=turned)
    panel.set_yticks(range(len(rows)), [f"{value:.3g}" for value in rows])
    panel.set_xlabel(second, color=INK)
    panel.set_ylabel(first, color=INK)
    for spine in panel.spines.values():
        spine.set_visible(False)


def _above(value: float) -> str:
    """Percent above the winner, short enough for a cell."""
    if not np.isfinite(value):
        return "div."
    if value > 9:
        return f"×{value + 1:.0f}" if value < 99 else ">×100"
    return "best" if value == 0 else f"+{100 * value:.0f}" if value >= 0.095 else f"+{100 * value:.1f}"


def _line(panel: Axes, tuning: Tuning) -> None:
    """One step: a curve; a run that diverged leaves a gap."""
    ((name, values),) = tuning.axes.items()
    scores = np.array([tuning.table.get((value,), np.nan) for value in values])
    panel.plot(values, np.where(np.isfinite(scores), scores, np.nan), "o-", color=STYLES[0].color, markersize=4)
    panel.plot(
        [tuning.steps[name]], [tuning.score], "s", markersize=11, markerfacecolor="none", markeredgewidth=2.2,
        markeredgecolor=STYLES[1].color,
    )  # fmt: skip
    _dress_up(panel)
    panel.set_xticks(values, [f"{value:.3g}" for value in values])
    panel.set_xlabel(name, color=INK)
    panel.set_ylabel("MSE", color=INK)


def _points(panel: Axes, places: list[float], values: list[list[float]], name: str) -> None:
    style = _look(name)
    means = np.array([np.mean(group) for group in values])
    reach = [means - [min(group) for group in values], [max(group) for group in values] - means]
    panel.errorbar(
        places, means, yerr=np.abs(reach), fmt=style.marker, color=style.color, markersize=5, elinewidth=1.2,
        label=name, zorder=3,
    )  # fmt: skip


def _root(panel: Axes, curves: Iterable[Mapping[str, Any]], kind: str) -> None:
    """A thin line of slope 1/2, the theorem's, below the curves."""
    rounds = np.concatenate([np.asarray(curve["rounds"], dtype=float) for curve in curves])
    values = np.concatenate([_positive(curve[kind]) for curve in curves])
    if not np.isfinite(values).any():
        return
    ends = np.array([rounds.max() / 30, rounds.max()])
    level = 0.45 * np.nanmin(values[rounds >= ends[0]]) if np.isfinite(values[rounds >= ends[0]]).any() else 1.0
    panel.plot(ends, level * (ends / ends[0]) ** 0.5, color=QUIET, linewidth=1.0, label="slope 1/2")


def _facts(traces: Mapping[str, Sequence[Trace]]) -> str:
    """What the traces say of themselves: N, L, sigma, alpha, beta and the number of seeds."""
    runs = [trace for group in traces.values() for trace in group]
    words = " ".join({str(trace.about[key]) for trace in runs for key in ("features", "learner")})
    facts = [f"N = {runs[0].n_agents}"]
    for symbol, name in (("L", "n_frequencies"), ("σ", "bandwidth"), ("α", "alpha"), ("β", "beta")):
        found = sorted(set(re.findall(rf"\b{name}=([-+.\deE]+)", words)))
        facts += [f"{symbol} = {' or '.join(f'{float(value):g}' for value in found)}"] if found else []
    seeds = max(len(group) for group in traces.values())
    return ", ".join([*facts, f"{seeds} seed{'s' if seeds > 1 else ''}"])


def _ordered(names: Iterable[str]) -> list[str]:
    """Known methods in one order, unknown ones after them."""
    given = list(names)
    return [name for name in _ORDER if name in given] + sorted(name for name in given if name not in _ORDER)


def _look(name: str) -> Style:
    return _LOOKS.get(name, _OTHER)


def _positive(values: object) -> Array:
    """A logarithmic axis has no place for the rest."""
    numbers = np.asarray(values, dtype=float)
    return np.where(numbers > 0, numbers, np.nan)


def _decimals(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) and np.isfinite(value) else "not fitted"


def _dress_up(panel: Axes) -> None:
    """The package's dress, with ticks that suit the span: a narrow one has no power of ten inside it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    dress(panel)
    panel.autoscale(tight=False)
    panel.xaxis.set_minor_locator(NullLocator())
    low, high = panel.get_xlim()
    if high / low < 300:
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    panel.xaxis.set_major_formatter(FuncFormatter(_count))
    low, high = panel.get_ylim()
    if high / low < 3:
        panel.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    elif high / low < 30:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7), numticks=12))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _count(value: float, _: object = None) -> str:
    """500, 20k, 3M: what an axis can hold."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _figure(width: float, height: float, title: str = "") -> Figure:
    from matplotlib.figure import Figure

    # Not pyplot's: nothing to close, no display, no settings touched.
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=INK)
    return figure


def _foot(figure: Figure, panel: Axes | None, text: str) -> None:
    """Below the panels: one legend for all of them, and a small line of facts."""
    height = figure.get_figheight()
    handles, labels = panel.get_legend_handles_labels() if panel is not None else ([], [])
    columns = len(labels) if len(labels) < 9 else -(-len(labels) // 2)
    room = (0.22 if panel is None else 0.55 if columns == len(labels) else 0.75) / height
    figure.set_layout_engine("constrained", rect=(0, room, 1, 1 - room))
    figure.text(0.012, 0.07 / height, text, fontsize=7.5, color=QUIET, in_layout=False)
    if panel is not None:
        legend = figure.legend(
            handles, labels, loc="lower center", bbox_to_anchor=(0.5, 0.18 / height), ncols=columns, frameon=False,
            fontsize=8.5, labelcolor=INK, handlelength=4.2 if columns < 8 else 2, columnspacing=1.5,
        )  # fmt: skip
        legend.set_in_layout(False)


def _save(figure: Figure, path: str | Path) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    stem = str(path).removesuffix(".png").removesuffix(".pdf")
    written = [Path(f"{stem}.png"), Path(f"{stem}.pdf")]
    written[0].parent.mkdir(parents=True, exist_ok=True)
    # The canvases themselves, not savefig: that one draws everything a first time to no purpose.
    FigureCanvasAgg(figure).print_png(written[0])
    figure.set_layout_engine("none")  # it is laid out: the second file need not do it again
    FigureCanvasPdf(figure).print_pdf(written[1], metadata={"CreationDate": None})  # same numbers, same file
    return written
