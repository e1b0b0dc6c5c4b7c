"""What the scikit-learn regressor and classifier share: everything that does not depend on what a label is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from laconic import _validate
from laconic._validate import Array
from laconic.engine import Diverged, stream
from laconic.engine.compiled import map_features
from laconic.estimators import dealing, defaults
from laconic.estimators.solo import Solo
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.model import Model
from laconic.model.making import make_model
from laconic.network import Network
from laconic.trace import State

_N_AGENTS = 5
_SEEDS = 2**31 - 1
_PREDICTED_ROWS = 8192  # at a time, so that the features of a large X never exist all at once
_FLOAT64 = np.dtype(np.float64)


class DecentralizedKernelModel(BaseEstimator):
    """Base of the estimators; ``_loss`` is the loss of their default learner."""

    _loss: str
    _binary: bool

    def __init__(
        self,
        *,
        n_agents: int | None = None,
        network: Network | None = None,
        n_frequencies: int = 100,
        bandwidth: float | str = "scale",
        learner: Learner | None = None,
        n_passes: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_agents = n_agents
        self.network = network
        self.n_frequencies = n_frequencies
        self.bandwidth = bandwidth
        self.learner = learner
        self.n_passes = n_passes
        self.random_state = random_state

    # Learning ---------------------------------------------------------------------------------------------------

    def _begin(self, X: Array) -> np.random.Generator:
        """Choose all that lasts: learner, network, features. Returns what draws the orders."""
        # First of all forget, so that nothing old is taken for fitted if something below is refused.
        self._state: State | None = None
        self._solo: Solo | None = None
        random = check_random_state(self.random_state)
        seed, order = (int(random.randint(_SEEDS)) for _ in range(2))
        self.learner_ = defaults.checked_learner(self.learner, self._loss, binary=self._binary)
        self.network_ = self._make_network()
        self.bandwidth_ = defaults.checked_bandwidth(self.bandwidth, X.shape[1], float(X.var()))
        drawn = RandomFeatures.gaussian(X.shape[1], self.n_frequencies, self.bandwidth_, seed)
        self.features_ = RandomFeatures(drawn.frequencies)  # the bare map can be pickled
        self.bits_ = self.messages_ = 0
        self._next_agent = 0
        return np.random.default_rng(order)

    def _make_network(self) -> Network:
        if self.network is None:
            n_agents = _N_AGENTS if self.n_agents is None else self.n_agents
            return Network.ring(_validate.integer("n_agents", n_agents, least=1))
        if not isinstance(self.network, Network):
            raise ValueError(f"network must be a laconic Network such as lc.Network.ring(5), got {self.network!r}.")
        if self.n_agents not in (None, self.network.n_agents):
            raise ValueError(
                f"n_agents is {self.n_agents!r} but network has {self.network.n_agents}: pass one of them."
            )
        return self.network

    def _fit(self, X: Array, labels: Array) -> Self:
        random = self._begin(X)
        n_passes = _validate.integer("n_passes", self.n_passes, least=1)
        self._run(dealing.passes(X, labels, self.network_.n_agents, n_passes, random), len(X))
        return self

    def _partial_fit(self, X: Array, labels: Array) -> Self:
        n_agents = self.network_.n_agents
        if len(X) == 1 and n_agents == 1:
            solo = Solo(self.learner_, self.features_, self._current())
            solo.sample[:] = X
            solo.learn(float(labels[0]))
            self._state = solo.state()
            # Column names have to be compared in every call, which the short way cannot afford.
            self._solo = None if hasattr(self, "feature_names_in_") else solo
            return self
        self._run([dealing.deal(X, labels, n_agents, self._next_agent)], len(X))
        return self

    def _run(self, blocks: Iterable[tuple[Array, Array]], n_rows: int) -> None:
        """Learn the rounds of ``blocks``: all of them, or none if one of them fails."""
        state, bits, messages = self._current(), 0, 0
        try:
            for trace in stream(self.learner_, self.features_, self.network_, blocks, state=state):
                state = trace.state
                bits += int(trace.bits.sum())
                messages += int(trace.sent.sum())
        except Diverged as error:
            error.add_note(f"The learner was {self.learner_!r}: pass learner=... with smaller steps, and scale X.")
            raise
        self._state, self._solo = state, None
        self.bits_ += bits
        self.messages_ += messages
        self._next_agent = (self._next_agent + n_rows) % self.network_.n_agents

    @property
    def _shortcut(self) -> Solo | None:
        """The lone agent that waits for its next row, if there is one."""
        return self.__dict__.get("_solo")

    def _current(self) -> State | None:
        return self._state if self._solo is None else self._solo.state()

    # What was learned -------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self.__dict__.get("_state") is not None

    @property
    def state_(self) -> State:
        """All that is needed to go on, for ``lc.simulate(..., state=model.state_)``."""
        check_is_fitted(self)
        state = self._current()
        assert state is not None  # for the type checker
        return state

    @property
    def weights_(self) -> Array:
        """The agents' models, (n_agents, 2 n_frequencies)."""
        return self.state_.weights

    @property
    def coef_(self) -> Array:
        """The mean of the agents' models, which predicts, (2 n_frequencies,)."""
        mean: Array = self.weights_.mean(axis=0)
        return mean

    @property
    def model_(self) -> Model:
        """What was learned, apart from the agents: to save, to take away as ONNX or C, to predict with NumPy alone."""
        names = self.__dict__.get("feature_names_in_")
        return make_model(
            self.features_,
            self.learner_,
            self.coef_,
            (None if names is None else [str(name) for name in names], None),
            agents=self.network_.n_agents,
            messages=self.messages_,
            bits=self.bits_,
            **self._labels(),
        )

    def _labels(self) -> dict[str, Any]:
        """What labels were made of before they were learned, as ``lc.Model`` takes it."""
        return {}

    def _margins(self, X: object) -> Array:
        """The values of the mean model at the rows of ``X``."""
        check_is_fitted(self)
        samples = validate_data(self, X, reset=False, dtype=np.float64)
        coef = self.coef_
        margins = np.empty(len(samples))
        for start in range(0, len(samples), _PREDICTED_ROWS):
            rows = slice(start, start + _PREDICTED_ROWS)
            margins[rows] = map_features(self.features_, samples[rows])[:, : len(coef)] @ coef
        return margins


def learn_row(solo: Solo, X: Array, label: float) -> bool:
    """The short way for one row; False if it does not fit through, and scikit-learn is to say why."""
    if X.dtype is not _FLOAT64 or X.shape != solo.sample.shape:
        return False
    solo.sample[:] = X
    try:
        solo.learn(label)
    except ValueError:
        return False
    return True
