"""Features of one's own: scikit-learn's Nystroem, fitted to a few rows, beside random Fourier features of its size."""

from shared import ENGINE, save, size
from sklearn.kernel_approximation import Nystroem

import laconic as lc


def main() -> None:
    data = lc.data.synthetic(n_rounds=size(800, 40), n_agents=6, n_inputs=2, bandwidth=0.5, seed=3)
    n = size(40, 6)
    few = data.X[:20].reshape(-1, 2)
    maps = {
        "Nystroem": lc.OwnFeatures(Nystroem(gamma=2.0, n_components=n, random_state=0).fit(few)),
        "random Fourier features": lc.RandomFeatures.gaussian(2, n_frequencies=n // 2, bandwidth=0.5),
    }
    figure = None
    for (name, _), trace in lc.sweep(
        [lc.ODKLA(eta=1.0)], maps, lc.Network.ring(6), data.X, data.y, engine=ENGINE
    ).items():
        figure = trace.plot(label=name, figure=figure, **({} if figure else {"panels": ["rounds", "bits"]}))
    save(figure, "nystroem")


if __name__ == "__main__":
    main()
