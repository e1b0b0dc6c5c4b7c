"""Ten agents, each of which sees a tenth of a landscape, learn the whole of it: seven ways, compared.

The landscape is a function on the unit square. Agent k measures it, with noise, only inside its own tile of a 2 x 5
grid, and hears only the agents next door. So what it knows of the other nine tiles it knows from talking: "mse" scores
each agent where it lives, "global mse" scores every agent everywhere.

    python examples/compare_learners.py --out demo
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import laconic as lc
from laconic.demo.landscape import COLUMNS, NOISE, ROWS, corners, landscape, measure

RHO, ETA, STEP = 0.5, 1.0, 0.25
CENSOR, QUANTIZER = lc.Censor(alpha=0.3, beta=0.9995), lc.Quantizer(bits=3)

LEARNERS = {
    "Local": lc.Local(STEP),
    "RFF-DOKL": lc.RFFDOKL(STEP),
    "DOKL": lc.DOKL(RHO, ETA),
    "ODKLA": lc.ODKLA(RHO, ETA),
    "censor only": lc.ODKLA(RHO, ETA, channel=lc.Channel(CENSOR)),
    "quantizer only": lc.ODKLA(RHO, ETA, channel=lc.Channel(quantizer=QUANTIZER)),
    "QC-ODKLA": lc.QCODKLA(RHO, ETA, alpha=CENSOR.alpha, beta=CENSOR.beta, bits=QUANTIZER.bits),
}


def print_table(traces: dict[str, lc.Trace], seconds: dict[str, float]) -> None:
    full = traces["ODKLA"].bits.sum()
    print(f"{'':15}{'mse':>9}{'global mse':>12}{'messages':>10}{'bits':>13}{'saving':>9}{'seconds':>9}")
    for name, trace in traces.items():
        bits = trace.bits.sum()
        saving = f"{full / bits:.1f}x" if bits else "-"
        print(
            f"{name:15}{trace.mse()[-1]:9.4f}{trace.global_mse()[-1]:12.4f}{trace.sent.sum():10,}{bits:13,}"
            f"{saving:>9}{seconds[name]:9.3f}"
        )
    print(f"\nNo predictor can do better than the noise: {NOISE**2:g}. Saving is in bits, against ODKLA.")


def draw_knowledge(traces: dict[str, lc.Trace], features: lc.RandomFeatures) -> Figure:
    """The landscape beside what agent 0 believes it to be, alone and in company."""
    axis = (np.arange(120) + 0.5) / 120
    points = np.stack(np.meshgrid(axis, axis), axis=-1)
    phi = features(points)
    views = {
        "the landscape": landscape(points),
        "what agent 0 knows, alone (Local)": phi @ traces["Local"].weights[0],
        "what agent 0 knows, talking (QC-ODKLA)": phi @ traces["QC-ODKLA"].weights[0],
    }
    truth = views["the landscape"]
    figure = Figure(figsize=(10.5, 3.7), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for panel, (title, view) in zip(panels, views.items(), strict=True):
        picture = panel.imshow(
            view, origin="lower", extent=(0, 1, 0, 1), cmap="cividis", vmin=truth.min(), vmax=truth.max()
        )
        for agent, corner in enumerate(corners()):
            panel.add_patch(_tile(corner, "white", 0.6, zorder=2))
            if view is truth:
                panel.text(
                    corner[0] + 0.1, corner[1] + 0.25, str(agent), color="white", ha="center", va="center", fontsize=9
                )
        panel.add_patch(_tile(corners()[0], "#d55e00", 2.2, zorder=3))
        panel.set_title(title, fontsize=10)
        panel.tick_params(labelsize=8, color="#bbbbbb", labelcolor="#6b6b6b")
        panel.spines[:].set_visible(False)
    bar = figure.colorbar(picture, ax=panels, shrink=0.8, pad=0.01)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, color="#bbbbbb", labelcolor="#6b6b6b")
    return figure


def _tile(corner: np.ndarray, color: str, width: float, zorder: int) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 1 / COLUMNS, 1 / ROWS, fill=False, edgecolor=color, linewidth=width, zorder=zorder)


def main(arguments: list[str] | None = None) -> dict[str, lc.Trace]:
    parser = argparse.ArgumentParser(description="Ten agents learn a landscape together: seven learners compared.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="where the pictures and runs go")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    network = lc.Network.grid(ROWS, COLUMNS)
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=options.seed)
    X, y = measure(options.rounds, options.seed)

    print("getting the compiled kernels ready (about ten seconds the first time) ... ", end="", flush=True)
    started = time.perf_counter()
    lc.simulate(LEARNERS["ODKLA"], features, network, X[:1], y[:1])
    print(f"{time.perf_counter() - started:.1f} s")
    print(f"{network}, {options.rounds} rounds, models of {features.n_features} numbers, seed {options.seed}\n")

    traces = {
        name: lc.simulate(learner, features, network, X, y, collective=True) for name, learner in LEARNERS.items()
    }
    # Scoring everybody everywhere takes longer than learning: the clock runs on runs without it.
    seconds = {name: lc.simulate(learner, features, network, X, y).seconds for name, learner in LEARNERS.items()}
    print_table(traces, seconds)

    options.out.mkdir(parents=True, exist_ok=True)
    learning = Figure(figsize=(10.5, 3.9), layout="constrained")
    for name, trace in traces.items():
        trace.plot(name, learning)
        trace.save(options.out / f"{name.replace(' ', '-').lower()}.npz")
    settings = (
        f"{network}, seed {options.seed}; rho {RHO:g}, eta {ETA:g}, step {STEP:g}; {CENSOR}, {QUANTIZER.bits} bits"
    )
    learning.suptitle(settings, fontsize=9, color="#6b6b6b")
    for name, figure in (("learning", learning), ("knowledge", draw_knowledge(traces, features))):
        path = options.out / f"{name}.png"
        figure.savefig(path, dpi=150)
        print(f"wrote {path}")
    print(f"wrote {options.out}/*.npz, the runs themselves: lc.Trace.load reads them")
    return traces


if __name__ == "__main__":
    main()
