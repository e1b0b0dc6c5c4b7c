"""How many samples of clean data a guard touches, what that costs, and how soon it follows a stream that moves.

    LACONIC_DATA=... python benchmarks/outliers.py

Rows in their own order and shuffled are dealt to five agents in turn, all columns scaled to [0, 1]. Takes a minute.
"""

import numpy as np

import laconic as lc

N_AGENTS = 5
MOST = 20_000
COSTLY = ("toms-hardware", "twitter")


def scaled(columns):
    """Each column to [0, 1]."""
    low, width = columns.min(axis=0), np.ptp(columns, axis=0)
    return (columns - low) / np.where(width > 0, width, 1.0)


def guarded(X, y, beyond, classes):
    """The samples as they are to be learned from, (T, N, ...), and how many labels and rows of inputs were touched."""
    X, y, labels, inputs = X.copy(), y.copy(), 0, 0
    for agent in range(y.shape[1]):
        guard = lc.Guard(X.shape[2], beyond=beyond, guard_labels=not classes)
        for t in range(len(y)):
            x, label, found = guard(X[t, agent], y[t, agent])
            X[t, agent], y[t, agent] = x, label
            labels += any(one.what == "label" for one in found)
            inputs += any(one.what != "label" for one in found)
    return X, y, labels, inputs


def error(X, y, truth):
    """Mean square error of ODKLA's predictions against the labels as they were."""
    features = lc.RandomFeatures.gaussian(X.shape[2], 50, bandwidth=1.0, seed=0)
    trace = lc.simulate(lc.ODKLA(rho=0.5, eta=1.0), features, lc.Network.ring(N_AGENTS), X, y)
    return float(((trace.predictions - truth) ** 2).mean())


def look_at(name):
    """Print what a guard does to a data set."""
    try:
        data = lc.data.load(name, download=False)
    except ValueError as problem:
        print(f"{name:<20}{problem}")
        return
    classes = set(np.unique(data.y)) <= {-1.0, 1.0}
    X, y = scaled(np.asarray(data.X, dtype=float)), np.asarray(data.y, dtype=float)
    y = y if classes else scaled(y)
    n = min(len(y), MOST) // N_AGENTS * N_AGENTS
    for order, rows in (("in order", np.arange(n)), ("shuffled", np.random.default_rng(1).permutation(len(y))[:n])):
        dealt, truth = X[rows].reshape(-1, N_AGENTS, X.shape[1]), y[rows].reshape(-1, N_AGENTS)
        A, b, labels, inputs = guarded(dealt, truth, "clip", classes)
        line = f"{name:<20}{order:<10}{n:>7} samples: {labels:>3} labels, inputs of {inputs:>3}"
        if name in COSTLY:
            off, dropped = error(dealt, truth, truth), guarded(dealt, truth, "drop", classes)
            clipped, without = error(A, b, truth) / off - 1, error(*dropped[:2], truth) / off - 1
            line += f"; error {clipped:+.2%} clipped, {without:+.2%} dropped"
        print(line, flush=True)


def follow(shift):
    """Samples that are touched after the labels of a stream have moved by ``shift``."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(3000, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1]
    guard = lc.Guard(2)
    for x, label in zip(X, y, strict=True):
        guard(x, label)
    return sum(bool(guard(x, label + shift).beyond) for x, label in zip(X, y, strict=True))


if __name__ == "__main__":
    for known in lc.data.names():
        look_at(known)
    for power in (2, 3, 6, 9):
        print(f"labels move by 1e{power}: followed after {follow(10.0**power)} samples")
