"""One agent on its own, a sample at a time: the short way from a row of numbers to a learned model.

``lc.simulate`` is made for many rounds at a call; for a single row its preparations would cost a hundred times the
work. ``Solo`` keeps everything ready between calls and hands it to one compiled function with few arguments.
"""

from __future__ import annotations

from typing import final

import numpy as np

from laconic.engine import Diverged, rounds, simulate, single
from laconic.engine.chunk import first_state
from laconic.engine.compiled import aligned, for_one, kernel_of, make_plan, padded, supports
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.schedules import Constant, Schedule
from laconic.network import Network
from laconic.trace import State

ALONE = Network(1, [])


@final
class Solo:
    """A network of one agent, with the bits that ``lc.simulate`` would give it.

    An agent that nobody hears has nothing to say: whatever the learner's channel, nothing is sent, and the replica that
    neighbours would keep stays as it was.

    Parameters
    ----------
    learner : Learner
        One that ``can_learn`` accepts.
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
        plan = make_plan(learner, features, 1, np.float64)
        kept = first_state(learner, ALONE, features.n_features, np.dtype(np.float64), state)
        self.learner, self.round = learner, kept.round
        self._broadcast, self._has_duals = kept.broadcast, "duals" in kept.learner
        self._rows = aligned(single.N_OWN_ROWS, features.n_features, np.float64)
        for row, name in ((single.OWN, "weights"), (single.DUAL, "duals")):
            if name in kept.learner:
                self._rows[row, : features.n_features] = kept.learner[name][0]
        self._phases = aligned(1, features.n_frequencies, np.float64)
        # A model cannot predict beyond its norm: that is the first yardstick of divergence, as in ``lc.simulate``.
        largest = np.sqrt((kept.weights**2).sum())
        self._numbers, self._codes = for_one(plan, largest)
        self._rate: Schedule = kernel_of(learner).rate
        self._steady = self._rate.value if isinstance(self._rate, Constant) else None
        self.use(features)

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies, as many as before: for inputs that came to have more entries."""
        self.features = features
        self._frequencies = padded(features.frequencies.T, np.float64)
        self.sample = np.zeros((1, features.n_inputs))

    def predict(self) -> float:
        """The prediction for ``sample``, NaN if it is not finite."""
        return single.predict_one(self.sample, self._frequencies, self._rows, self._phases, self._numbers, self._codes)

    def learn(self, label: float) -> float:
        """Learn ``sample`` with its ``label`` (a Python float), and return what was predicted before that."""
        rate = self._rate(self.round + 1) if self._steady is None else self._steady
        status, prediction = single.learn_one(
            self.sample,
            label,
            rate,
            self._frequencies,
            self._rows,
            self._phases,
            self._numbers,
            self._codes,
        )
        if status != rounds.FINISHED:
            self._fail(status)
        self.round += 1
        return prediction

    def _fail(self, status: int) -> None:
        if status == rounds.BAD_INPUT:
            raise ValueError("the features of a sample must be finite numbers, and not so large that phases overflow.")
        past = np.empty((0, 1, self.features.n_inputs)), np.empty((0, 1))
        trace = simulate(self.learner, self.features, ALONE, *past, state=self.state())
        raise Diverged(self.round + 1, trace, f"{self.learner.advice()} The learner is {self.learner!r}.")

    @property
    def weights(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The model, (n_features,)."""
        weights: np.ndarray[tuple[int], np.dtype[np.float64]] = self._rows[single.OWN, : self.features.n_features]
        return weights

    def state(self) -> State:
        """A copy of all that the next sample needs, for another ``Solo`` or for ``lc.simulate``."""
        size = self.features.n_features
        learner = {"weights": self._rows[single.OWN : single.OWN + 1, :size].copy()}
        if self._has_duals:
            learner["duals"] = self._rows[single.DUAL : single.DUAL + 1, :size].copy()
        return State(self.round, learner, self._broadcast.copy())


def can_learn(learner: Learner) -> bool:
    """Whether ``Solo`` has kernels for this learner and its loss."""
    return supports(learner)
