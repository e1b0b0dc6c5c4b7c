"""A robot swarm on a moving graph: who is near hears, and every now and then the swarm falls into parts."""

import numpy as np
from shared import ENGINE, save, size

import laconic as lc


def main() -> None:
    from matplotlib.figure import Figure

    rng, n, rounds = np.random.default_rng(0), 20, size(1200, 60)
    start, speed = rng.uniform(size=(n, 2)), rng.normal(scale=0.004, size=(n, 2))
    where = np.abs((start + np.arange(rounds)[:, None, None] * speed + 1) % 2 - 1)  # walls reflect

    def near(t: int) -> lc.Network:
        return lc.Network.within(where[(t - 1) // 20 * 20], radius=0.3, split=True)

    y = np.sin(6 * where[..., 0]) * np.cos(4 * where[..., 1]) + 0.1 * rng.standard_normal((rounds, n))
    features = lc.RandomFeatures.gaussian(2, n_frequencies=size(40, 6), bandwidth=0.3)
    runs = {
        "talking to who is near": lc.simulate(
            lc.ODKLA(rho=0.2, eta=1.0), features, near, where, y, collective=True, engine=ENGINE
        ),
        "alone": lc.simulate(lc.Local(step=0.7), features, near, where, y, collective=True, engine=ENGINE),
    }
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    for panel, t in zip(panels, (1, rounds // 2), strict=False):
        near(t).draw(panel)
        panel.set_title(f"round {t}: {near(t).n_parts} part(s)", fontsize=10)
    for name, trace in runs.items():
        panels[2].loglog(trace.global_mse(), label=name)
    panels[2].set(xlabel="round", ylabel="error on everybody's places")
    panels[2].legend(frameon=False)
    save(figure, "swarm")


if __name__ == "__main__":
    main()
