"""A city of sensors with drift: what was true in the morning is not true in the evening; who forgets follows."""

from shared import ENGINE, axes, save, size

import laconic as lc


def main() -> None:
    n = size(40, 8)
    data = lc.data.synthetic(n_rounds=size(2000, 60), n_agents=n, n_inputs=2, drift=1.0, seed=0)
    features = lc.RandomFeatures.gaussian(2, n_frequencies=size(30, 5), bandwidth=0.5)
    network = lc.Network.geometric(n, radius=0.35 if n > 10 else 0.8, seed=0, connect=True)
    learners = {"ODKLA": lc.ODKLA(eta=1.0), "Experts that forget": lc.Experts(drift=True), "alone": lc.Local(step=0.5)}
    figure, panel = axes()
    for name, trace in lc.sweep(learners, features, network, data.X, data.y, engine=ENGINE).items():
        panel.semilogy(trace.windowed_mse(50), label=name)
    panel.set(xlabel="round", ylabel="error of the last 50 rounds")
    panel.legend(frameon=False)
    save(figure, "drifting_city")


if __name__ == "__main__":
    main()
