"""The tour: ten agents, one function, three ways to learn it; error against rounds, messages and bits."""

from shared import ENGINE, save, size

import laconic as lc


def main() -> None:
    data = lc.data.synthetic(n_rounds=size(1500, 40), n_agents=10, n_inputs=3, seed=0)
    features = lc.RandomFeatures.gaussian(3, n_frequencies=size(50, 6), bandwidth=0.5, seed=0)
    learners = [lc.Local(), lc.ODKLA(eta=1.0), lc.QCODKLA(eta=1.0, alpha=0.3, beta=0.999)]
    figure = None
    for trace in lc.sweep(learners, features, lc.Network.random(10, p=0.4, seed=0), data.X, data.y, engine=ENGINE):
        figure = trace.plot(figure=figure, **({} if figure else {"panels": ["rounds", "bits"]}))
        print(trace)
    save(figure, "tour")


if __name__ == "__main__":
    main()
