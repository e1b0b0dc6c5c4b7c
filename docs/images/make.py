"""Makes every picture of the README and the documentation, from runs made here and now.

python docs/images/make.py
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from matplotlib.figure import Figure

import laconic as lc

HERE = Path(__file__).parent
INK, QUIET = "#222222", "#6b6b6b"
SEEDS = range(5)


def main() -> None:
    """All of them."""
    from one_wave import draw_wave  # beside this file; measure.py imports it from elsewhere

    demo = load_example("compare_learners")
    network = lc.Network.grid(demo.ROWS, demo.COLUMNS)
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=0)
    X, y = demo.measure(2000, seed=0)
    traces = lc.sweep(demo.LEARNERS, features, network, X, y, collective=True)

    save("knowledge", demo.draw_knowledge(traces, features))
    save("learning", draw_learning(traces))
    save("networks", draw_networks())
    save("wave", draw_wave(demo))
    save("readme", draw_readme())
    save("steps", draw_steps(demo, network))
    save("saying-less", draw_saying_less(demo, network))


def load_example(name: str) -> ModuleType:
    """The example of that name, as a module."""
    spec = importlib.util.spec_from_file_location(name, HERE.parents[1] / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def save(name: str, figure: Figure) -> None:
    """Write a picture beside this file."""
    path = HERE / f"{name}.png"
    figure.savefig(path, dpi=130, facecolor="white")
    print(f"wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def draw_learning(traces: dict[str, lc.Trace]) -> Figure:
    """The learning curves of the demo."""
    figure = Figure(figsize=(10.5, 3.7), layout="constrained")
    for name, trace in traces.items():
        trace.plot(name, figure)
    return figure


def draw_readme() -> Figure:
    """The picture of the README's ten lines."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 10, 2))
    y = np.sin(6 * X[..., 0]) * np.cos(5 * X[..., 1]) + 0.1 * rng.standard_normal((2000, 10))
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=0)
    network = lc.Network.random(10, p=0.4, seed=0)
    figure = Figure(figsize=(10.5, 3.7), layout="constrained")
    for learner in (lc.ODKLA(rho=0.5, eta=1.0), lc.QCODKLA(rho=0.5, eta=1.0, alpha=0.3, beta=0.9995)):
        lc.simulate(learner, features, network, X, y).plot(figure=figure)
    return figure


def draw_networks() -> Figure:
    """Some of the networks that have a name."""
    networks = {
        "ring(8)": lc.Network.ring(8),
        "star(7)": lc.Network.star(7),
        "grid(3, 4)": lc.Network.grid(3, 4),
        "random(10, p=0.4)": lc.Network.random(10, p=0.4),
        "small_world(16)": lc.Network.small_world(16),
        "geometric(40, radius=0.25)": lc.Network.geometric(40, radius=0.25),
    }
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    for panel, (title, network) in zip(figure.subplots(2, 3).flat, networks.items(), strict=True):
        network.draw(panel)
        panel.set_title(title, fontsize=10, family="monospace", color=INK)
    return figure


def draw_steps(demo: ModuleType, network: lc.Network) -> Figure:
    """Global MSE of ODKLA over a grid of (rho, eta), mean of five seeds."""
    rhos, etas = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    grid = {(rho, eta): lc.ODKLA(rho, eta) for eta in etas for rho in rhos}
    errors = np.zeros((len(etas), len(rhos)))
    for seed in SEEDS:
        X, y = demo.measure(2000, seed)
        features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=seed)
        traces = lc.sweep(grid, features, network, X, y, collective=True)
        ends = [np.nan if trace.diverged else trace.global_mse()[-1] for trace in traces.values()]
        errors += np.reshape(ends, errors.shape) / len(SEEDS)
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    panel = figure.add_subplot()
    panel.set_facecolor("#eeeeee")
    panel.imshow(np.log(errors), origin="lower", cmap="cividis_r", vmax=np.log(0.1), aspect="auto")
    for (row, column), error in np.ndenumerate(errors):
        gone = np.isnan(error)
        color = QUIET if gone else ("white" if error > 0.035 else INK)
        panel.text(
            column, row, "diverged" if gone else f"{error:.3f}", ha="center", va="center", fontsize=8, color=color
        )
    panel.set_xticks(range(len(rhos)), [f"{rho:g}" for rho in rhos])
    panel.set_yticks(range(len(etas)), [f"{eta:g}" for eta in etas])
    panel.set_xlabel("rho", color=INK)
    panel.set_ylabel("eta", color=INK)
    quiet(panel)
    panel.spines[:].set_visible(False)
    return figure


def draw_saying_less(demo: ModuleType, network: lc.Network) -> Figure:
    """Global MSE against bits: quantizers of 2 to 8 bits, each with censors of growing thresholds; five seeds."""
    alphas, widths = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8), (2, 3, 4, 8)
    learners = {
        (bits, alpha): lc.QCODKLA(demo.RHO, demo.ETA, alpha=alpha, beta=1.0, bits=bits)
        for bits in widths
        for alpha in alphas
    }
    learners[None] = lc.ODKLA(demo.RHO, demo.ETA)
    spent, errors = dict.fromkeys(learners, 0.0), dict.fromkeys(learners, 0.0)
    for seed in SEEDS:
        X, y = demo.measure(2000, seed)
        features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.2, seed=seed)
        for key, trace in lc.sweep(learners, features, network, X, y, collective=True).items():
            spent[key] += trace.bits.sum() / len(SEEDS)
            errors[key] += trace.global_mse()[-1] / len(SEEDS)
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    panel = figure.add_subplot()
    styles = zip(widths, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), "o^sD", ("-", "--", "-.", ":"), strict=True)
    for bits, color, marker, line in styles:
        x, z = ([values[bits, alpha] for alpha in alphas] for values in (spent, errors))
        panel.plot(x, z, marker=marker, color=color, linestyle=line, markersize=5, label=f"{bits} bits")
    panel.plot(spent[None], errors[None], "*", color=INK, markersize=12, label="ODKLA, 32 bits")
    for alpha in alphas:
        text = "alpha = 0.8" if alpha == 0.8 else f"{alpha:g}"
        place = (spent[widths[-1], alpha], errors[widths[-1], alpha])
        panel.annotate(text, place, (6, 5), textcoords="offset points", fontsize=8, color=QUIET)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks([4e6, 8e6, 16e6, 32e6, 64e6], ["4", "8", "16", "32", "64"])
    panel.set_yticks([0.015, 0.02, 0.03, 0.04], ["0.015", "0.02", "0.03", "0.04"])
    panel.minorticks_off()
    panel.set_xlabel("data sent (Mbit)", color=INK)
    panel.set_ylabel("global mean squared error (unit of y)²", color=INK)
    panel.grid(color="#e4e4e4", linewidth=0.7)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=9, title="each dot another threshold alpha", title_fontsize=8)
    quiet(panel)
    return figure


def quiet(panel: object) -> None:
    """Ticks and frames in grey."""
    panel.tick_params(which="both", color="#bbbbbb", labelcolor=QUIET, labelsize=9)  # type: ignore[attr-defined]
    panel.spines[:].set_color("#bbbbbb")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
