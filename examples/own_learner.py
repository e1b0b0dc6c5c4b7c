"""A learner of one's own: diffusion with momentum, in the few lines between the two rulers below.

It is written once, in NumPy, over rows (a row is an agent), and at once runs on every network, through every channel,
with every loss and metric. Here it talks in three bits on a ring, beside ODKLA, which does the same.

    python examples/own_learner.py
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import laconic as lc

# --- the learner ------------------------------------------------------------------------------------------------------


class MomentumState(NamedTuple):
    """What the next round needs, and no more: models and velocities, a row an agent."""

    weights: np.ndarray
    velocity: np.ndarray


class MomentumDiffusion(lc.Learner):
    """Mix with the neighbours, then move along a running sum of gradients.

    velocity <- momentum velocity + grad L(theta)
    theta    <- theta + mixing sum_j a_ij (theta-hat_j - theta-hat_i) - rate velocity
    """

    name = "momentum"

    def __init__(self, rate=0.1, momentum=0.8, mixing=0.8, *, channel=None, loss="squared", regularization=1e-4):
        super().__init__(channel=channel or lc.Channel(), loss=loss, regularization=regularization)
        self.rate, self.momentum, self.mixing = rate, momentum, mixing

    def init(self, n_agents, n_features):
        """Everything starts at rest."""
        return MomentumState(np.zeros((n_agents, n_features)), np.zeros((n_agents, n_features)))

    def step(self, state, sample, heard):
        """The two equations above."""
        prediction = (state.weights * sample.phi).sum(axis=1)
        slope = self.loss.slope(prediction, sample.label)  # zero where an agent has no label
        gradient = slope[:, None] * sample.phi + self.shrink(heard.n_agents) * state.weights
        velocity = self.momentum * state.velocity + gradient
        weights = state.weights + self.mixing * heard.mixture - self.rate * velocity
        return MomentumState(weights, velocity), {"speed": np.linalg.norm(velocity, axis=1)}


# --- and what it can do -----------------------------------------------------------------------------------------------


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A learner of one's own beside ODKLA, in three bits, on a ring.")
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--agents", type=int, default=8)
    options = parser.parse_args(arguments)

    # Agent k hears one stretch of a melody, [k/N, (k+1)/N), and wants to know all of it.
    rng = np.random.default_rng(0)
    X = (np.arange(options.agents) + rng.uniform(size=(options.rounds, options.agents)))[..., None] / options.agents
    y = np.sin(9 * X[..., 0]) + 0.5 * np.cos(23 * X[..., 0]) + 0.1 * rng.standard_normal(X.shape[:2])

    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=30, bandwidth=0.05, seed=0)
    network = lc.Network.ring(options.agents)
    three_bits = lc.Channel(quantizer=lc.Quantizer(bits=3))
    learners = [MomentumDiffusion(channel=three_bits), lc.ODKLA(rho=0.5, eta=1.0, channel=three_bits), lc.Local(0.25)]

    lc.checks.check_learner(learners[0])
    traces = lc.sweep(learners, features, network, X, y, collective=True)
    for learner, trace in zip(learners, traces, strict=True):
        print(
            f"{learner.name:10} engine {trace.about['engine']:10} mse {trace.mse()[-1]:.4f}   "
            f"global mse {trace.global_mse()[-1]:.4f}   {trace.bits.sum() / 1e6:.2f} Mbit"
        )
    print(f"the last round's speeds, which step() returned: {traces[0].info['speed'][-1].round(2)}")
    return traces


if __name__ == "__main__":
    main()
