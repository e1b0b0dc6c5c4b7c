"""Several agents in one process, each of which learns a sample when it has one, and speaks as its channel lets it.

``lc.simulate`` has rounds in which everybody has a sample. Records of a stream come one by one, from whichever agent
has one; so an agent's round is its own sample: it learns, says what its channel lets it say, which its neighbours hear
at once, and then takes in what it has heard since its last round.
"""

from __future__ import annotations

from itertools import pairwise
from typing import final

import numpy as np

from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel import Budget, Channel, EntropyQuantizer
from laconic.engine import Diverged, simulate
from laconic.engine.endings import BAD_INPUT, FINISHED
from laconic.engine.one import make_row
from laconic.features import RandomFeatures
from laconic.learners import Experts, Learner, Speech
from laconic.network import Network

_SELDOM = 0.1  # of its own samples, after which an agent may speak


def usual_learner() -> Learner:
    """What agents are that have a stream and nothing to tune: experts that speak after a tenth of their samples."""
    return Experts(channel=Channel(Budget(_SELDOM), EntropyQuantizer()))


@final
class Team:
    """The agents of a network that learn one model.

    Parameters
    ----------
    learner : Learner
        One that broadcasts its model, or never speaks.
    features : RandomFeatures
    network : Network

    Attributes
    ----------
    bits, messages : int
        What all of them have sent; each message counts once, however many hear it.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=20)
    >>> team = Team(lc.RFFDOKL(0.5), features, lc.Network.path(2))
    >>> for _ in range(20):
    ...     said = team.learn(0, np.array([[1.0]]), 3.0), team.learn(1, np.array([[-2.0]]), 1.0)
    >>> abs(team.predict(1, np.array([[1.0]])) - 3.0) < 0.1  # which agent 1 has never seen
    True
    """

    def __init__(self, learner: Learner, features: RandomFeatures, network: Network) -> None:
        if learner.speech is Speech.OWN:
            raise ArgumentError("learner", f"must broadcast its model where samples come one by one, got {learner!r}.")
        self.learner, self.features, self.network = learner, features, network
        self.rounds = np.zeros(network.n_agents, dtype=np.int64)
        self.bits = self.messages = 0
        self._largest = 0.0
        self._each = learner.channel.message_bits(features.n_features) if learner.channel else 0
        real, ends = np.dtype(np.float64), network.starts.tolist()
        self._others = [network.neighbours[a:b].tolist() for a, b in pairwise(ends)]
        self._rows = []
        for agent, others in enumerate(self._others):
            row = make_row(learner, features, network.n_agents, 0, real)
            row.resize([0] * len(others))
            shares = network.combination[ends[agent] : ends[agent + 1]].tolist()
            row.listen_to(tuple(range(1, len(others) + 1)), tuple(shares))
            self._rows.append(row)

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies, as many as before."""
        self.features = features
        for row in self._rows:
            row.use(features)

    def predict(self, agent: int | None, sample: Array) -> float:
        """An agent's prediction for a sample (1, n_inputs), or the mean of all; NaN if it is not finite."""
        asked = self._rows if agent is None else [self._rows[agent]]
        said = 0.0
        for row in asked:
            row.sample[:] = sample
            said += row.predict()
        return said / len(asked)

    def learn(self, agent: int, sample: Array, label: float) -> float:
        """One round of an agent; returns what it predicted before."""
        row, t = self._rows[agent], int(self.rounds[agent]) + 1
        row.sample[:] = sample
        # The yardstick of divergence is everybody's, as in the simulator: neighbours teach what an agent has not seen.
        row.largest = self._largest = max(self._largest, abs(label))
        status, prediction = row.learn(label, t)
        if status != FINISHED:
            self._fail(agent, status)
        self.rounds[agent] = t
        if self.learner.channel is not None:
            self._speak(agent, t)
            row.listen()
        return float(prediction)

    def _speak(self, agent: int, t: int) -> None:
        row = self._rows[agent]
        sent, _, scale = row.speak(t)
        if not sent:
            return
        self.messages += 1
        self.bits += 8 * len(row.message) if self._each is None else self._each
        for other in self._others[agent]:
            hearer, index = self._rows[other], 1 + self._others[other].index(agent)
            if row.dense:
                hearer.hear_model(index, row.replicas[0])
            else:
                hearer.hear(index, row.message, scale)
            hearer.spoken[index] = 1

    def _fail(self, agent: int, status: int) -> None:
        if status == BAD_INPUT:
            raise ValueError("the features of a sample must be finite numbers, and not so large that phases overflow.")
        n = self.network.n_agents
        trace = simulate(
            self.learner, self.features, self.network, np.empty((0, n, self.features.n_inputs)), np.empty((0, n))
        )
        raise Diverged(int(self.rounds[agent]) + 1, trace, f"{self.learner.advice()} The learner is {self.learner!r}.")

    @property
    def weights(self) -> Array:
        """Everybody's model, (n_agents, n_features)."""
        return np.stack([np.array(row.part("weights")) for row in self._rows])
