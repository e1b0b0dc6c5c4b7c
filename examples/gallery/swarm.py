"""A robot swarm on a moving graph: who is near hears, and every now and then the swarm falls into parts."""

import numpy as np
from shared import ENGINE, dress, save, size

import laconic as lc


def main() -> None:
    from matplotlib.figure import Figure

    rng, n, rounds = np.random.default_rng(0), 20, size(1200, 60)
    start, speed = rng.uniform(size=(n, 2)), rng.normal(scale=0.004, size=(n, 2))
    where = np.abs((start + np.arange(rounds)[:, None, None] * speed + 1) % 2 - 1)  # walls reflect

    def near(t: int) -> lc.Network:
        return lc.Network.within(where[(t - 1) // 20 * 20], radius=0.3, split=True)

    def landscape(east: np.ndarray, north: np.ndarray) -> np.ndarray:
        return np.sin(6 * east) * np.cos(4 * north)

    y = landscape(where[..., 0], where[..., 1]) + 0.1 * rng.standard_normal((rounds, n))
    features = lc.RandomFeatures.gaussian(2, n_frequencies=size(40, 6), bandwidth=0.3)
    runs = {
        "talking to who is near": lc.simulate(
            lc.ODKLA(rho=0.2, eta=1.0), features, near, where, y, collective=True, engine=ENGINE
        ),
        "alone": lc.simulate(lc.Local(step=0.7), features, near, where, y, collective=True, engine=ENGINE),
    }
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 2.4))
    over = np.stack(np.meshgrid(*[np.linspace(0, 1, 80)] * 2), axis=-1)
    for row, t in enumerate((1, rounds // 2)):
        panel = figure.add_subplot(grid[row, 0])
        panel.imshow(landscape(over[..., 0], over[..., 1]), origin="lower", extent=(0, 1, 0, 1), cmap="cividis")
        places = where[(t - 1) // 20 * 20]
        for one, other in near(t).edges:
            panel.plot(*places[[one, other]].T, color="white", linewidth=0.9, alpha=0.8)
        panel.scatter(*places.T, s=14, color="#d55e00", edgecolors="white", linewidths=0.6, zorder=3)
        panel.set_axis_off()
        parts = near(t).n_parts
        panel.set_title(f"round {t}: {parts} part{'s' if parts > 1 else ''}", fontsize=9)
    panel = dress(figure.add_subplot(grid[:, 1]))
    for name, trace in runs.items():
        panel.loglog(trace.global_mse(), label=name)
    panel.set(xlabel="round", ylabel="error on everybody's places")
    panel.legend(frameon=False)
    save(figure, "swarm")


if __name__ == "__main__":
    main()
