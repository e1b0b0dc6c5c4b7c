"""The animation of the home page: what agent 0 knows, alone and by talking, while the rounds go by.

python docs/images/motion.py

Both are runs of ``laconic demo`` (seed 0), from moment to moment.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import laconic as lc
from laconic.demo.landscape import COLUMNS, NOISE, ROWS, corners, landscape, measure, neighbourhood
from laconic.demo.running import shared_features

HERE = Path(__file__).parent
ROUNDS, SIDE, FRAMES = 400, 64, 28


def models(learner: lc.Learner, features: lc.RandomFeatures, moments: list[int]) -> tuple[list[object], list[float]]:
    """Agent 0's weights and the kbit that an agent has sent, at each moment."""
    X, y = measure(moments[-1], 0)
    weights, spent, state, total = [], [], None, 0.0
    for start, stop in zip((0, *moments), moments, strict=False):
        piece = lc.simulate(learner, features, neighbourhood(), X[start:stop], y[start:stop], state=state)
        state, total = piece.state, total + float(piece.bits.sum()) / (1000 * ROWS * COLUMNS)
        weights.append(piece.weights[0])
        spent.append(total)
    return weights, spent


def main() -> None:
    """Write home.gif, and its last frame as home.png for those who want no motion."""
    axis = (np.arange(SIDE) + 0.5) / SIDE
    points = np.stack(np.meshgrid(axis, axis), axis=-1)
    features, truth = shared_features(0), landscape(points)
    phi = features(points)
    moments = np.unique(np.geomspace(1, ROUNDS, FRAMES).round().astype(int)).tolist()
    alone, _ = models(lc.WaveRLS().alone(ROUNDS), features, moments)
    talking, spent = models(lc.WaveRLS(), features, moments)

    figure = Figure(figsize=(7.2, 2.75), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 3)
    views = [
        panel.imshow(truth, origin="lower", extent=(0, 1, 0, 1), cmap="cividis", aspect="auto") for panel in panels
    ]
    for panel, title in zip(panels, ("what there is", "agent 0, alone", "agent 0, talking"), strict=True):
        panel.set(xticks=[], yticks=[])
        panel.set_title(title, fontsize=10)
        panel.spines[:].set_visible(False)
        panel.add_patch(Rectangle(tuple(corners()[0]), 1 / COLUMNS, 1 / ROWS, fill=False, ec="#d55e00", lw=2.2))
    words = figure.supxlabel(" ", fontsize=10, color="#444444")

    def draw(frame: int) -> None:
        k = min(frame, len(moments) - 1)
        shown = phi @ alone[k], phi @ talking[k]
        for view, values in zip(views[1:], shown, strict=True):
            view.set_data(values)
            view.set_clim(truth.min(), truth.max())
        errors = [float(np.mean((values - truth) ** 2)) for values in shown]
        words.set_text(
            f"round {moments[k]}:  error alone {errors[0]:.3f},  talking {errors[1]:.4f}  for {spent[k]:.0f} kbit"
        )

    animation = FuncAnimation(figure, draw, frames=len(moments) + 12)
    animation.save(HERE / "home.gif", PillowWriter(fps=5), dpi=100)
    draw(len(moments))
    figure.savefig(HERE / "home.png", dpi=100, facecolor="white")
    print(f"wrote home.gif and home.png; the noise of a measurement is {NOISE**2:g}")


if __name__ == "__main__":
    main()
