"""The arrays of rounds between waves, for tests of the core."""

from types import SimpleNamespace

import numpy as np

from laconic.engine.personal import make_arms
from laconic.native import waves
from laconic.native.arrays import aligned
from laconic.waves.rule import ArmNumbers, Rule


class Block:
    """Samples, models and matrices of N agents with D features and K outputs; labels are missing now and then."""

    def __init__(self, n_rounds, n_agents, n_features, outputs=1, *, seed=0, ridge=0.01, missing=0.1, scored=True):
        rng = np.random.default_rng(seed)
        n_rows = n_rounds * n_agents
        self.n_rounds, self.n_agents, self.n_features, self.outputs = n_rounds, n_agents, n_features, outputs
        self.ridge, self.arms = ridge, None
        self.weights, self.theta = (aligned(n_agents * outputs, n_features, float) for _ in range(2))
        self.theta[:, :n_features] = rng.normal(size=(n_agents * outputs, n_features))
        size = self.size = self.weights.shape[1]
        self.spread = aligned(n_agents * size, -(-n_features // 8) * 8, float)  # rows on cache lines
        self.pending, self.gain = aligned(n_agents, n_features, float), aligned(1, n_features, float)
        for agent in range(n_agents):
            self.reset(agent)
        self.phi = aligned(n_rows, n_features, float)
        self.phi[:, :n_features] = rng.normal(size=(n_rows, n_features)) / np.sqrt(n_features)
        true = rng.normal(size=(n_features, outputs))
        labels = self.phi[:, :n_features] @ true + 0.1 * rng.normal(size=(n_rows, outputs))
        labels[rng.uniform(size=labels.shape) < missing] = np.nan
        self.labels = self.targets = labels.reshape(n_rounds, n_agents, outputs)
        self.squares, self.predictions = np.zeros((n_rows, 2 + outputs)), np.zeros(self.labels.shape)
        self.found, self.scores = np.zeros((n_rounds, 3)), np.zeros((2, n_rounds if scored else 0, n_agents))
        self.largest = np.array([1.0])

    def with_arms(self):
        """Let agents have arms of their own."""
        rng, n_agents, n = np.random.default_rng(1), self.n_agents, self.n_features
        made = make_arms(Rule(ridge=self.ridge, arms=ArmNumbers()), n_agents, n)
        names = ("models", "pair", "pair_spread", "recent", "recent_spread", "quick", "stack", "errors", "turns")
        self.arms = SimpleNamespace(made=made, **{name: made.array(name) for name in names})
        self.targets, self.stacks = np.clip(self.labels, -1.0, 1.0), np.zeros((self.n_rounds, n_agents, 5))
        self.shared, self.adopted = aligned(n_agents, n, float), rng.uniform(size=n_agents) < 0.5
        self.shared[:, :n] = rng.normal(size=(n_agents, n))
        return self

    def matrix(self, agent):
        """A view of an agent's P; its tiles above the diagonal mean nothing."""
        return self.spread[agent * self.size : agent * self.size + self.n_features, : self.n_features]

    def reset(self, agent):
        """A model that has learned nothing."""
        self.spread[agent * self.size : (agent + 1) * self.size] = 0.0
        self.matrix(agent)[:] = np.eye(self.n_features) / self.ridge
        self.weights[agent * self.outputs : (agent + 1) * self.outputs] = 0.0
        self.pending[agent] = 0.0

    def rounds(self, loss=0, forgetting=1.0, block=None, group=None):
        """The rounds of the core over these arrays."""
        made = waves.Rounds.over(self.weights, self.spread, self.pending, self.theta, loss, forgetting)
        if self.arms is not None:
            self.arms.made.put(shared=self.shared, adopted=self.adopted, stacks=self.stacks)
            made.put(arms=self.arms.made)
        if block is not None:
            made.put(
                block=block, history=np.empty(((block + 1) * len(self.weights), self.size)), limits=np.empty(block + 1)
            )
            made.put(scored=made.array("history"))
        made.group = made.group if group is None else group
        made.record(self.phi, self.labels, self.targets, self.predictions, self.squares, self.found, self.scores)
        made.largest = float(self.largest[0])
        return made

    def settle(self):
        """Subtract from every P what is pending."""
        rounds = self.rounds()
        for agent in range(self.n_agents):
            rounds.finish(agent)

    def arrays(self):
        """All that rounds may change."""
        names = ("weights", "spread", "pending", "predictions", "squares", "found", "scores", "largest")
        arms = () if self.arms is None else ("models", "pair", "pair_spread", "recent", "recent_spread", "quick")
        arms += () if self.arms is None else ("stack", "errors", "turns")
        found = {name: getattr(self, name) for name in names} | {name: getattr(self.arms, name) for name in arms}
        return found if self.arms is None else found | {"stacks": self.stacks}


def lower(matrix):
    """A symmetric matrix of which the lower half is kept."""
    return np.tril(matrix) + np.tril(matrix, -1).T


def differing(one, other):
    """The names of arrays that two blocks do not have in common, to the bit."""
    theirs = other.arrays()
    return [name for name, array in one.arrays().items() if not np.array_equal(array, theirs[name], equal_nan=True)]
