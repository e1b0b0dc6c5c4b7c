"""The figure and the table of a paper: five seeds, bands, a paired test, and fonts that publishers take."""

from shared import ENGINE, save, size

import laconic as lc


def main() -> None:
    data = lc.data.synthetic(n_rounds=size(600, 40), n_agents=8, n_inputs=2, seed=2)
    features = lc.RandomFeatures.gaussian(2, n_frequencies=size(30, 5), bandwidth=0.5)
    learners = {"ODKLA": lc.ODKLA(eta=1.0), "QC-ODKLA": lc.QCODKLA(eta=1.0, alpha=0.5), "RFF-DOKL": lc.RFFDOKL()}
    runs = lc.sweep(learners, features, lc.Network.random(8, p=0.4), data.X, data.y, seeds=size(5, 2), engine=ENGINE)
    figure = None
    for name, several in runs.items():
        new = {} if figure else {"width": 7.0, "panels": ["rounds", "bits"]}
        figure = several.plot(label=name, figure=figure, **new)
    save(figure, "paper")
    print(lc.compare(runs, ["mse", "bits"], against="ODKLA").to_latex())


if __name__ == "__main__":
    main()
