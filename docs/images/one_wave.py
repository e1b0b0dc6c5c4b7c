"""The picture of a wave in ``docs/waves.md``: what each of ten agents believes, before, on the way, and after."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

import laconic as lc
from laconic.waves import places

INK, QUIET, UP, DOWN = "#222222", "#6b6b6b", "#d55e00", "#0072b2"
START = 60  # rounds that everybody learns alone
GAP = 1.6  # from one agent's map to the next


def draw_wave(demo: ModuleType) -> Figure:
    """Four moments of the first wave over the ten agents of the demo, each agent's model as a map of the landscape."""
    network = lc.Network.grid(demo.ROWS, demo.COLUMNS)
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=0)
    height = places(network)[0].height
    X, y = demo.measure(START + 2 * height, seed=0)
    learner = lc.WaveRLS(first=START)
    axis = (np.arange(60) + 0.5) / 60
    points = np.stack(np.meshgrid(axis, axis), axis=-1)
    phi, truth = features(points), demo.landscape(points)
    moments = {
        START: "a wave starts: what each agent has learned alone",
        START + height - 1: "up: sums of what has been seen, one hop a round",
        START + height: "the root has heard everybody, and answers",
        START + 2 * height: "down: every agent knows what all of them know",
    }
    trace = lc.simulate(learner, features, network, X[: START - 1], y[: START - 1])
    figure = Figure(figsize=(10.5, 5.1), layout="constrained")
    panels = iter(figure.subplots(2, 2).flat)
    for t in range(START, START + 2 * height + 1):
        trace = lc.simulate(learner, features, network, X[t - 1 : t], y[t - 1 : t], state=trace.state)
        if t in moments:
            panel = next(panels)
            views = phi @ trace.weights.T
            error = float(np.mean((views - truth[..., None]) ** 2))
            _frame(panel, demo, network, views, truth)
            _arrows(panel, demo, network, trace, up=t < START + height)
            panel.set_title(
                f"round {t}: {moments[t]}\nsquared error on the whole landscape, mean of the ten models: {error:.3f}",
                loc="left", fontsize=9, color=INK,
            )  # fmt: skip
    return figure


def _place(demo: ModuleType, agent: int) -> tuple[float, float]:
    """The middle of an agent's map."""
    return agent % demo.COLUMNS * GAP, -(agent // demo.COLUMNS) * GAP


def _frame(panel: Any, demo: ModuleType, network: lc.Network, views: np.ndarray, truth: np.ndarray) -> None:
    for place in places(network):
        if place.parent is not None:
            ends = zip(_place(demo, place.agent), _place(demo, place.parent), strict=True)
            panel.plot(*ends, color="#c9c9c9", linewidth=1.4, zorder=1)
    for agent, corner in enumerate(demo.corners()):
        x, z = _place(demo, agent)
        panel.imshow(
            views[..., agent], origin="lower", extent=(x - 0.5, x + 0.5, z - 0.5, z + 0.5), cmap="cividis",
            vmin=truth.min(), vmax=truth.max(), zorder=2,
        )  # fmt: skip
        own = (x - 0.5 + corner[0], z - 0.5 + corner[1])
        panel.add_patch(
            Rectangle(own, 1 / demo.COLUMNS, 1 / demo.ROWS, fill=False, edgecolor="white", linewidth=1.1, zorder=3)
        )
    panel.set_xlim(-0.6, (demo.COLUMNS - 1) * GAP + 0.6)
    panel.set_ylim(-(demo.ROWS - 1) * GAP - 0.6, 0.6)
    panel.set_aspect("equal")
    panel.axis("off")


def _arrows(panel: Any, demo: ModuleType, network: lc.Network, trace: lc.Trace, up: bool) -> None:
    """What is sent when this round is over: to the parent on the way up, to all children on the way down."""
    for place in places(network):
        bits = int(trace.bits[-1, place.agent])
        if not bits:
            continue
        for other in (place.parent,) if up else place.children:
            start, end = (np.array(_place(demo, agent)) for agent in (place.agent, other))
            along = (end - start) / GAP
            panel.add_patch(
                FancyArrowPatch(
                    tuple(start + 0.5 * along), tuple(end - 0.5 * along),
                    arrowstyle="simple,head_length=6,head_width=7",
                    mutation_scale=1.2, shrinkA=1, shrinkB=1, color=UP if up else DOWN, zorder=4,
                )
            )  # fmt: skip
            sideways = along[0] != 0
            middle = (start + end) / 2 + ([0, 0.2] if sideways else [0.07, 0])
            panel.text(
                *middle, f"{bits / 1e3:.0f} kbit", fontsize=6.5, color=QUIET, ha="center" if sideways else "left",
                va="center", zorder=5,
            )  # fmt: skip
