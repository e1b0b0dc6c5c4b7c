"""One agent on its own, a sample at a time: the short way from a row of numbers to a learned model.

``lc.simulate`` is made for many rounds at a call; for a single row its preparations would cost a hundred times the
work. ``Solo`` runs the rounds of one agent (``engine.one``) that nobody hears.
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy as np

from laconic._validate import Array
from laconic.engine import Diverged, simulate
from laconic.engine.chunk import first_memory, first_state
from laconic.engine.endings import BAD_INPUT, FINISHED
from laconic.engine.one import make_row
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network
from laconic.trace import State

ALONE = Network(1, [])


@final
class Solo:
    """A network of one agent, with the bits that ``lc.simulate`` would give it.

    An agent that nobody hears has nothing to say: whatever the learner's channel, nothing is sent. A learner without
    kernels takes the steps of ``simulate(engine="reference")``, in which its replica moves all the same.

    Parameters
    ----------
    learner : Learner
    features : RandomFeatures
    state : State, optional
        Where to go on from.

    Attributes
    ----------
    sample : array (1, n_inputs)
        The input: fill it in, then call ``predict`` or ``learn``.
    round : int
        Samples learned so far.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=20)
    >>> agent = Solo(lc.Local(step=0.25), features)
    >>> agent.sample[:] = [[0.5, -1.0]]
    >>> agent.learn(3.0)
    0.0
    >>> round(agent.predict(), 3)
    1.5
    """

    def __init__(self, learner: Learner, features: RandomFeatures, state: State | None = None) -> None:
        real = np.dtype(np.float64)
        kept = first_state(learner, ALONE, features.n_features, real, state)
        self.learner, self.features, self.round = learner, features, kept.round
        self._row = make_row(learner, features, 1, 0, real)
        for name, rows in kept.learner.items():
            self._row.put(name, rows[0])
        self._row.replicas[:] = kept.broadcast
        self._row.memory[:] = first_memory(learner, 1, state)[0]
        # A model cannot predict beyond its norm: that is the first yardstick of divergence, as in ``lc.simulate``.
        self._row.largest = float(np.sqrt((kept.weights**2).sum()))
        self.sample = self._row.sample

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies, as many as before: for inputs that came to have more entries."""
        self.features = features
        self._row.use(features)
        self.sample = self._row.sample

    def predict(self) -> float:
        """The prediction for ``sample``, NaN if it is not finite."""
        return self._row.predict()

    def learn(self, label: float) -> float:
        """Learn ``sample`` with its ``label`` (a Python float), and return what was predicted before that."""
        t = self.round + 1
        status, prediction = self._row.learn(label, t)
        if status != FINISHED:
            self._fail(status)
        self._row.finish_alone(t)
        self.round = t
        return prediction

    def _fail(self, status: int) -> None:
        if status == BAD_INPUT:
            raise ValueError("the features of a sample must be finite numbers, and not so large that phases overflow.")
        past = np.empty((0, 1, self.features.n_inputs)), np.empty((0, 1))
        trace = dataclasses.replace(simulate(self.learner, self.features, ALONE, *past), state=self.state())
        raise Diverged(self.round + 1, trace, f"{self.learner.advice()} The learner is {self.learner!r}.")

    @property
    def weights(self) -> Array:
        """The model, (n_features,)."""
        return self._row.part("weights")

    def state(self) -> State:
        """A copy of all that the next sample needs, for another ``Solo`` or for ``lc.simulate``."""
        learner = {name: np.array(self._row.part(name))[None] for name in self._row.parts}
        names = self.learner.channel.memory if self.learner.channel else ()
        memory = dict(zip(names, self._row.memory[:, None].copy(), strict=True))
        return State(self.round, learner, self._row.replicas.copy(), memory)
