"""Prints the tables of ``choose.md``: means of five seeds on the landscape of ``examples/compare_learners.py``.

python docs/measure.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from images.make import SEEDS, load_example

import laconic as lc

CHANNELS = {
    "as it is": lc.Channel(),
    "3 bits": lc.Channel(quantizer=lc.Quantizer(3)),
    "censored, 3 bits": lc.Channel(lc.Censor(0.3, 0.9995), lc.Quantizer(3)),
}
LEARNERS: dict[str, Callable[[lc.Channel], lc.Learner]] = {
    "ODKLA(rho=0.5, eta=1)": lambda channel: lc.ODKLA(0.5, 1.0, channel=channel),
    "DOKL(rho=0.3, eta=1)": lambda channel: lc.DOKL(0.3, 1.0, channel=channel),
    "RFFDOKL(step=0.25)": lambda channel: lc.RFFDOKL(0.25, channel=channel),
    "RFFDOKL(step=0.5, adapt-then-combine)": lambda channel: lc.RFFDOKL(0.5, "adapt-then-combine", channel=channel),
}
KERNELS = {
    "gaussian": lc.RandomFeatures.gaussian,
    "matern, nu=1.5": lc.RandomFeatures.matern,
    "laplacian": lc.RandomFeatures.laplacian,
}


def mean_traces(
    learners: Mapping[Any, lc.Learner], make_features: Callable[[int], lc.RandomFeatures]
) -> dict[Any, Any]:
    """Global MSE, Mbit and MSE of each learner, means over the seeds."""
    demo = load_example("compare_learners")
    network = lc.Network.grid(demo.ROWS, demo.COLUMNS)
    rows: dict[Any, list[Any]] = {key: [] for key in learners}
    for seed in SEEDS:
        X, y = demo.measure(2000, seed)
        for key, trace in lc.sweep(learners, make_features(seed), network, X, y, collective=True).items():
            error = np.nan if trace.diverged else trace.global_mse()[-1]
            rows[key].append((error, trace.bits.sum() / 1e6, trace.mse()[-1]))
    return {key: np.mean(values, axis=0) for key, values in rows.items()}


def gaussian(seed: int) -> lc.RandomFeatures:
    """The features that most tables use."""
    return lc.RandomFeatures.gaussian(2, 50, 0.2, seed)


def main() -> None:
    """All tables."""
    learners = {(name, how): make(channel) for name, make in LEARNERS.items() for how, channel in CHANNELS.items()}
    learners["Local(step=0.25)", "as it is"] = lc.Local(0.25)
    found = mean_traces(learners, gaussian)
    print("learner and channel: global mse, Mbit, mse on own data")
    for (name, how), (error, megabits, own) in found.items():
        print(f"  {name:40}{how:18}{error:8.4f}{megabits:8.2f}{own:8.4f}")

    one_bit = lc.Channel(quantizer=lc.Quantizer(1))
    growing = lc.schedules.SqrtGrowth(0.1)
    others = {
        "ODKLA(rho=0.5, eta=1), 1 bit": lc.ODKLA(0.5, 1.0, channel=one_bit),
        "ODKLA(rho=0.2, eta=2), 1 bit": lc.ODKLA(0.2, 2.0, channel=one_bit),
        "DOKL(rho=0.3, eta=1), 1 bit": lc.DOKL(0.3, 1.0, channel=one_bit),
        "ODKLA(rho=0.5, eta=SqrtGrowth(0.1))": lc.ODKLA(0.5, growing),
        "the same, censored, 3 bits": lc.ODKLA(0.5, growing, channel=CHANNELS["censored, 3 bits"]),
    }
    print("one bit, and steps that shrink: global mse, Mbit")
    for name, (error, megabits, _) in mean_traces(others, gaussian).items():
        print(f"  {name:40}" + ("diverged" if np.isnan(error) else f"{error:8.4f}{megabits:8.2f}"))

    seldom = lc.Channel(lc.Budget(0.1), lc.Quantizer(3))
    steps = (0.05, 0.1, 0.2, 0.4, 0.7)
    untuned = {
        "WaveRLS()": lc.WaveRLS(),
        "WaveRLS.frugal()": lc.WaveRLS.frugal(),
        "alone": lc.WaveRLS().alone(2000),
        "Experts()": lc.Experts(),
        "Experts(), a tenth of the rounds, 3 bits": lc.Experts(channel=seldom),
        "the same without least squares": lc.Experts(steps, (), channel=seldom),
    }
    print("nothing tuned: global mse, Mbit, mse on own data")
    for name, (error, megabits, own) in mean_traces(untuned, gaussian).items():
        print(f"  {name:40}{error:8.4f}{megabits:8.2f}{own:8.4f}")

    odkla = {"odkla": lc.ODKLA(0.5, 1.0)}
    widths = (0.05, 0.1, 0.2, 0.4, 0.8)
    print(f"kernel and bandwidth {widths}, 50 frequencies: global mse of ODKLA")
    for name, make in KERNELS.items():
        errors = [
            mean_traces(odkla, lambda seed, make=make, width=width: make(2, 50, bandwidth=width, seed=seed))["odkla"][0]
            for width in widths
        ]
        print(f"  {name:18}" + "".join(f"{error:9.4f}" for error in errors))
    print("frequencies, Gaussian kernel of bandwidth 0.2: global mse of ODKLA")
    for count in (10, 20, 50, 100, 200):
        error = mean_traces(odkla, lambda seed, count=count: lc.RandomFeatures.gaussian(2, count, 0.2, seed))["odkla"][
            0
        ]
        print(f"  {count:4}{error:9.4f}")


if __name__ == "__main__":
    main()
