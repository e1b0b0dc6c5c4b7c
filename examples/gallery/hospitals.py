"""Hospitals of different patients: each sees one band of ages, and all end up with a model of every age.

They send no raw rows, but sums over a few patients, which can be solved for them: docs/threat-model.md has figures.
"""

import numpy as np
from shared import ENGINE, axes, save, size

import laconic as lc


def main() -> None:
    rng, n_hospitals = np.random.default_rng(0), 6
    age = rng.uniform(size=(size(800, 60), n_hospitals)) / n_hospitals + np.arange(n_hospitals) / n_hospitals
    marker = rng.uniform(size=age.shape)
    X = np.stack([age, marker], axis=-1)  # each hospital has a band of ages, and no other
    y = np.sin(5 * age) * marker + 0.1 * rng.standard_normal(age.shape)
    features = lc.RandomFeatures.gaussian(2, n_frequencies=size(50, 6), bandwidth=0.4)
    figure, panel = axes()
    learners = {"alone": lc.WaveRLS().alone(len(y)), "together, by waves": lc.WaveRLS()}
    for name, learner in learners.items():
        trace = lc.simulate(learner, features, lc.Network.ring(n_hospitals), X, y, collective=True, engine=ENGINE)
        panel.loglog(trace.global_mse(), label=f"{name}: {trace.bits.sum() / n_hospitals / 1e3:.0f} kbit a hospital")
    panel.set(xlabel="patients a hospital", ylabel="error on all hospitals' patients")
    panel.legend(frameon=False)
    save(figure, "hospitals")


if __name__ == "__main__":
    main()
