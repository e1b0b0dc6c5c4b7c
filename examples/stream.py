"""A stream that never ends: sensors whose world drifts, some of which fall silent, learned block by block.

Nothing is kept but the state, so this can run for years. Stop it with Ctrl-C; the state is saved, and the next start
goes on from it, to the bit.

    python examples/stream.py --blocks 20
    python examples/stream.py --blocks 0 --state here.npz     # for ever
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np

import laconic as lc

N_SENSORS, ROUNDS_A_BLOCK = 12, 250
MISSING = 0.05  # share of measurements that never arrive


def sensors(first_block: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of positions (T, N, 2) and measurements (T, N); NaN where a measurement did not arrive."""
    for block in count(first_block):
        rng = np.random.default_rng(block)
        X = rng.uniform(size=(ROUNDS_A_BLOCK, N_SENSORS, 2))
        drift = 0.02 * (block + np.arange(ROUNDS_A_BLOCK)[:, None] / ROUNDS_A_BLOCK)
        y = np.sin(5 * X[..., 0] + drift) + np.cos(4 * X[..., 1] - drift) + 0.1 * rng.standard_normal(X.shape[:2])
        y[rng.uniform(size=y.shape) < MISSING] = np.nan
        yield X, y


def main(arguments: list[str] | None = None) -> lc.Trace | None:
    parser = argparse.ArgumentParser(description="Learn from a stream that never ends.")
    parser.add_argument("--blocks", type=int, default=20, help="how many blocks to learn from; 0 for all of them")
    parser.add_argument("--state", type=Path, help="file to go on from, if it exists, and to leave the state in")
    options = parser.parse_args(arguments)

    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=40, bandwidth=0.5, seed=0)
    network = lc.Network.geometric(N_SENSORS, radius=0.45, seed=0)
    # The world goes on changing, so the threshold for speaking stays where it is: beta = 1.
    learner = lc.QCODKLA(rho=0.2, eta=1.5, alpha=0.1, beta=1.0, bits=3)

    trace, start = None, None
    if options.state and options.state.exists():
        trace = lc.Trace.load(options.state)
        start = trace.state
        print(f"going on from round {start.round}")
    done = start.round // ROUNDS_A_BLOCK if start else 0
    blocks = islice(sensors(done), options.blocks or None)
    dense = 32 * features.n_features * N_SENSORS * ROUNDS_A_BLOCK
    try:
        for trace in lc.stream(learner, features, network, blocks, state=start):
            bits = trace.bits.sum()
            print(
                f"round {trace.state.round:7}   mse of this block {trace.mse()[-1]:.4f}   "
                f"spoke {trace.sent.mean():4.0%}   {bits / 1e3:6.1f} kbit, {bits / dense:.1%} of what ODKLA sends",
                flush=True,
            )
    except KeyboardInterrupt:
        print("stopped")
    if trace and options.state:
        print(f"wrote {trace.save(options.state)}")
    return trace


if __name__ == "__main__":
    main()
