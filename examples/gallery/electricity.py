"""Electricity prices (elec2): will it be dearer in half an hour? Needs the data set."""

from shared import ENGINE, axes, save, size

import laconic as lc


def main() -> None:
    try:
        data = lc.data.load("electricity")
    except (FileNotFoundError, OSError, ValueError) as error:
        print(f"skipped: {error}")
        return
    n_agents, rounds = 5, size(4000, 40)
    n = n_agents * rounds
    X, y = data.X[:n].reshape(rounds, n_agents, -1), data.y[:n].reshape(rounds, n_agents)
    features = lc.RandomFeatures.automatic(X[:8], n_frequencies=size(50, 6))
    figure, panel = axes()
    for learner in (lc.Local(step=0.5, loss="logistic"), lc.Experts(loss="logistic")):
        panel.plot(
            lc.simulate(learner, features, lc.Network.ring(n_agents), X, y, engine=ENGINE).error_rate(),
            label=learner.name,
        )
    panel.set(xlabel="round (five half hours, one for each agent)", ylabel="share of wrong directions so far")
    panel.legend(frameon=False)
    save(figure, "electricity")


if __name__ == "__main__":
    main()
