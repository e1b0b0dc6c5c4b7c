"""What the scikit-learn regressor and classifier share: everything that does not depend on what a label is."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.defaults import PREFIX, Choice, choose
from laconic.engine import Diverged
from laconic.estimators import dealing, usual
from laconic.estimators.dealing import Dealt
from laconic.estimators.learning import Learned, learn, phi_of, rounds_to_settle
from laconic.estimators.settled import settled_model
from laconic.estimators.solo import Solo
from laconic.features import OwnFeatures, RandomFeatures
from laconic.guard.labels import LabelGuard, believed
from laconic.learners import Learner, Personal, Speech
from laconic.model import Model
from laconic.model.making import make_model
from laconic.network import Network
from laconic.trace import State

_N_AGENTS = 5
_PASSES = 10  # of learners that step along gradients; least squares needs one
_SEEDS = 2**31 - 1
_PREDICTED_ROWS = 8192  # at a time, so that the features of a large X never exist all at once
_FLOAT64 = np.dtype(np.float64)
_REMEMBERED = 1000  # of a table's labels, by which later ones are judged
_MOST_REPEATED = 20  # times the rows: up to there whole weights are rows that come again


class DecentralizedKernelModel(BaseEstimator):
    """Base of the estimators; ``_task`` is what their labels are, ``_binary`` whether they may have a loss of signs."""

    _task: str
    _binary: bool

    def __init__(
        self,
        *,
        n_agents: int | None = None,
        network: Network | None = None,
        n_frequencies: int = 100,
        bandwidth: float | str = "automatic",
        features: Any = None,
        learner: Learner | None = None,
        n_passes: int | None = None,
        budget: str = "usual",
        random_state: Any = None,
    ) -> None:
        self.n_agents = n_agents
        self.network = network
        self.n_frequencies = n_frequencies
        self.bandwidth = bandwidth
        self.features = features
        self.learner = learner
        self.n_passes = n_passes
        self.budget = budget
        self.random_state = random_state

    # Learning ---------------------------------------------------------------------------------------------------

    def _begin(
        self, X: Array, labels: Array, n_agents: int | None = None, *, whole: bool = False
    ) -> np.random.Generator:
        """Choose all that lasts: learner, network, features. Returns what draws the orders."""
        random = check_random_state(self.random_state)
        seed, order = (int(random.randint(_SEEDS)) for _ in range(2))
        usual.checked_learner(self.learner, binary=self._binary)
        self.network_ = self._make_network(n_agents)
        own = None if self.features is None else usual.checked_features(self.features, X, seed)
        automatic = isinstance(self.bandwidth, str) and self.bandwidth == usual.AUTOMATIC
        if automatic:
            self.bandwidth_: float | str = usual.AUTOMATIC
        else:
            self.bandwidth_ = usual.checked_bandwidth(
                self.bandwidth, X.shape[1], float(X.var()), besides=usual.AUTOMATIC
            )
            if own is None:
                drawn = RandomFeatures.gaussian(X.shape[1], self.n_frequencies, float(self.bandwidth_), seed)
                own = RandomFeatures(drawn.frequencies)  # the bare map can be pickled
        # Labels are encoded by now: signs of two classes are numbers like others.
        about: dict[str, Any] = {"y_first": labels, "task": "numbers"}
        if labels.ndim > 1:
            about = {"task": "classes", "classes": range(labels.shape[1])}
        about |= {"budget": self.budget, "n_frequencies": self.n_frequencies, "seed": seed, "features": own}
        choice: Choice = choose(X, **about, whole=whole)
        self.features_ = choice.features
        self.learner_ = choice.learner if self.learner is None else usual.checked_learner(self.learner, self._binary)
        self.bits_ = self.messages_ = 0
        self._next_agent = 0
        return np.random.default_rng(order)

    def _forget(self) -> None:
        """First of all forget, so that nothing old is taken for fitted if something is refused later."""
        self._states: list[State] | None = None
        self._solo: Solo | None = None
        self._settled: Array | None = None
        self._waiting: list[tuple[Array, ...]] = []
        self._owners: dict[Any, int] | None = None
        self._guards: list[LabelGuard] = []

    def _make_network(self, n_agents: int | None) -> Network:
        asked = self.n_agents if n_agents is None else n_agents
        if self.network is None:
            return Network.ring(_validate.integer("n_agents", _N_AGENTS if asked is None else asked, least=1))
        if not isinstance(self.network, Network):
            raise ValueError(f"network must be a laconic Network such as lc.Network.ring(5), got {self.network!r}.")
        if asked not in (None, self.network.n_agents):
            raise ValueError(f"n_agents is {asked!r} but network has {self.network.n_agents}: pass one of them.")
        return self.network

    def _indices(self, agents: object, n_rows: int) -> Array | None:
        """The agent that each row belongs to, by number; names are numbered when they are first given."""
        if agents is None:
            return None
        names = np.asarray(agents)
        if names.shape != (n_rows,):
            raise ArgumentError("agents", f"must name an agent for each of the {n_rows} rows, got shape {names.shape}.")
        found, index = np.unique(names, return_inverse=True)
        if self._owners is None:
            self._owners = {name: k for k, name in enumerate(found.tolist())}
            self.agents_ = found
        unknown = [name for name in found.tolist() if name not in self._owners]
        if unknown:
            raise ArgumentError("agents", f"must be those that were there at first, got {_validate.shown(unknown[0])}.")
        places = np.array([self._owners[name] for name in found.tolist()])
        numbers: Array = places[index]
        return numbers

    def _weights(self, X: Array, sample_weight: object) -> Array | None:
        """Checked weights, or None where all rows count alike."""
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ArgumentError("sample_weight", "must not be zero everywhere.")
        return None if (weights == 1).all() else weights

    def _fit(self, X: Array, y: Array, sample_weight: object, agents: object) -> Self:
        owners, weights = self._indices(agents, len(X)), self._weights(X, sample_weight)
        n_passes = None if self.n_passes is None else _validate.integer("n_passes", self.n_passes, least=1)
        rows = dealing.merge(X, self._numbers(y), owners, weights)
        if (total := float(rows.weights.sum())) < len(rows.weights):
            # Shares of a whole say how rows compare, not that there are hardly any; how often rows came is never less.
            rows = rows._replace(weights=rows.weights * (len(rows.weights) / total))
        labels = self._encoded(rows.labels)
        random = self._begin(rows.X, labels, None if self._owners is None else len(self._owners), whole=True)
        if isinstance(self.learner_, Personal) and self.learner is None:
            labels = self._whole(labels)
        rows, labels = self._repeated(rows, labels)
        order = random.permutation(len(rows.X))
        n_agents = self.network_.n_agents
        if owners is None:
            dealt = Dealt(np.where((turn := dealing.in_turn(len(order), n_agents).rows) >= 0, order[turn], -1))
        else:
            dealt = Dealt(np.where((turn := dealing.by_owner(rows.owners[order], n_agents).rows) >= 0, order[turn], -1))
        waves = self.learner_.speech is Speech.OWN
        passes = dealt.passes(n_passes or _PASSES, random) if not waves else [dealt] * (n_passes or 1)
        weights = None if (rows.weights == 1).all() else rows.weights
        for part in passes:
            self._run(part, rows.X, labels, weights)
        done = len(dealt.rows) * (n_passes or 1)
        self._settle(rows.X, rounds_to_settle(self.learner_, self.network_, done) if waves else 0)
        if self.learner is None and waves:
            found = [settled_model(self.learner_, self.features_, state.learner) for state in self._current()]
            models = [part for part in found if part is not None]
            self._settled = np.stack(models) if len(models) == len(found) else None
        return self

    def _whole(self, labels: Array) -> Array:
        """A whole table's labels, of which those that cannot be are known: agents need not find out as in a stream.

        Rows that come later are held to what is usual by guards that have seen the table's.
        """
        learner = self.learner_
        assert isinstance(learner, Personal)
        self.learner_ = Personal(learner.shared, deviations=None)
        if self._task != "numbers" or learner.deviations is None:
            return labels
        kept = believed(labels)
        guard = LabelGuard(learner.deviations, learner.usual)
        order = np.random.default_rng(0).permutation(len(kept))  # rows are sorted by now
        for label in kept[order[:_REMEMBERED]].tolist():
            guard(label)
        self._guards = [copy.deepcopy(guard) for _ in range(self.network_.n_agents)]
        return np.asarray(kept)

    def _repeated(self, rows: dealing.Rows, labels: Array) -> tuple[dealing.Rows, Array]:
        """Weights as the learner takes them: least squares as they are, others as rows that come again."""
        if self.learner_.speech is Speech.OWN or (rows.weights == 1).all():
            return rows, labels
        whole = rows.weights.astype(int)
        if (whole == rows.weights).all() and whole.sum() <= _MOST_REPEATED * len(whole):
            again = np.repeat(np.arange(len(whole)), whole)
            parts = rows.X[again], rows.labels[again], rows.owners[again], np.ones(len(again))
            return dealing.Rows(*parts), labels[again]
        if self.learner_.loss.name != "squared":
            raise ArgumentError("sample_weight", "must be small whole numbers for a learner whose loss is not squared.")
        return rows._replace(weights=rows.weights / rows.weights.max()), labels  # no step longer than without weights

    def _partial_fit(self, X: Array, labels: Array, sample_weight: object, agents: object) -> Self:
        owners, weights = self._indices(agents, len(X)), self._weights(X, sample_weight)
        if weights is not None and self.learner is not None and self.learner.loss.name != "squared":
            raise ArgumentError("sample_weight", "must be absent for a learner whose loss is not squared.")
        if self._states is None:
            self._waiting.append((X, labels, np.ones(len(X)) if weights is None else weights, self._owned(owners, X)))
            if not self._enough():
                return self
            X, labels, kept, owned = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
            self._begin(X, labels, None if self._owners is None else len(self._owners))
            owners, weights = None if self._owners is None else owned, None if (kept == 1).all() else kept
            self._waiting = []
        n_agents = self.network_.n_agents
        if len(X) == 1 and n_agents == 1 and weights is None and self._quick(labels):
            solo = Solo(self.learner_, self.features_, self._current()[0] if self._states else None)
            solo.sample[:] = X
            solo.learn(float(labels[0]))
            self._states = [solo.state()]
            # Column names have to be compared in every call, which the short way cannot afford.
            self._solo = None if hasattr(self, "feature_names_in_") else solo
            return self
        if weights is not None:
            self._hold_labels_here()
        if owners is None:
            dealt = dealing.in_turn(len(X), n_agents, self._next_agent)
        else:
            dealt = dealing.by_owner(owners, n_agents)
        self._run(dealt, X, self._held(dealt, labels), weights)
        if owners is None:
            self._next_agent = (self._next_agent + len(X)) % n_agents
        return self

    def _hold_labels_here(self) -> None:
        """From the first weights on labels are held to what is usual before they are scaled by them, not after."""
        learner = self.learner_
        if self.learner is not None or not isinstance(learner, Personal) or learner.deviations is None:
            return
        guards = [LabelGuard(learner.deviations, learner.usual) for _ in range(self.network_.n_agents)]
        states = self._current() if self._states else []
        for state in states:
            for guard, numbers in zip(guards, state.learner["guard"], strict=True):
                guard.restore(numbers)
        bare = np.zeros((len(guards), 0))
        self._states = [replace(state, learner={**state.learner, "guard": bare}) for state in states] or None
        self.learner_, self._guards = Personal(learner.shared, deviations=None), guards

    def _held(self, dealt: Dealt, labels: Array) -> Array:
        if not self._guards:
            return labels
        held = labels.copy()
        for guard, rows in zip(self._guards, dealt.rows.T, strict=True):
            for row in rows[rows >= 0].tolist():
                held[row] = guard(float(labels[row]))
        return held

    def _owned(self, owners: Array | None, X: Array) -> Array:
        return np.zeros(len(X), dtype=np.int64) if owners is None else owners

    def _enough(self) -> bool:
        """Whether there are rows enough to choose by: eight of each agent, or any if nothing has to be measured."""
        if self.features is not None:
            if not hasattr(self.features, "fit"):
                return True
        elif not (isinstance(self.bandwidth, str) and self.bandwidth == usual.AUTOMATIC):
            return True
        n_agents = self._make_network(None if self._owners is None else len(self._owners)).n_agents
        return sum(len(part[0]) for part in self._waiting) >= PREFIX * n_agents

    def _quick(self, labels: Array) -> bool:
        own = isinstance(self.features_, OwnFeatures)
        return labels.ndim == 1 and self.learner_.speech is not Speech.OWN and not own

    def _run(self, dealt: Dealt, X: Array, labels: Array, weights: Array | None) -> None:
        """Learn the rounds of ``dealt``: all models, or none if one of them fails."""
        columns = [labels] if labels.ndim == 1 or self.learner_.outputs > 1 else list(labels.T)
        samples, shares = dealt.take(X), None if weights is None else dealt.take(weights)
        before = self._current() if self._states else [None] * len(columns)
        try:
            found = [
                learn(self.learner_, self.features_, self.network_, samples, dealt.take(column, np.nan), shares, state)
                for column, state in zip(columns, before, strict=True)
            ]
        except Diverged as error:
            error.add_note(f"The learner was {self.learner_!r}: pass learner=... with smaller steps, and scale X.")
            raise
        self._keep(found)

    def _settle(self, X: Array, n_rounds: int) -> None:
        """Rounds without labels, in which a last wave tells everybody of all rows."""
        if not n_rounds:
            return
        n_agents = self.network_.n_agents
        outputs = (self.learner_.outputs,) if self.learner_.outputs > 1 else ()
        samples, labels = np.repeat(X[:1], n_rounds * n_agents, axis=0), np.full((n_rounds, n_agents, *outputs), np.nan)
        rounds = samples.reshape(n_rounds, n_agents, -1)
        self._keep(
            [learn(self.learner_, self.features_, self.network_, rounds, labels, None, s) for s in self._current()]
        )

    def _keep(self, found: list[Learned]) -> None:
        self._states, self._solo, self._settled = [part.state for part in found], None, None
        self.bits_ += sum(part.bits for part in found)
        self.messages_ += sum(part.messages for part in found)

    @property
    def _shortcut(self) -> Solo | None:
        """The lone agent that waits for its next row, if there is one."""
        return self.__dict__.get("_solo")

    def _current(self) -> list[State]:
        if self._solo is not None:
            return [self._solo.state()]
        return self._states or []

    # What was learned -------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.__dict__.get("_states") or self.__dict__.get("_waiting"))

    @property
    def state_(self) -> Any:
        """All that is needed to go on, for ``lc.simulate(..., state=model.state_)``; of several models a list."""
        check_is_fitted(self)
        states = self._current()
        if not states:
            raise AttributeError("there is no model before the first rows are there: see partial_fit.")
        return states[0] if len(states) == 1 else states

    @property
    def weights_(self) -> Array:
        """The agents' models, (n_agents, n_features), or (n_classes, n_agents, n_features) of more than two classes."""
        state = self.state_
        if isinstance(state, list):
            return np.stack([one.weights for one in state])
        weights: Array = state.weights
        return weights if weights.ndim == 2 else weights.swapaxes(0, 1)

    @property
    def coef_(self) -> Array:
        """The model that predicts, (n_features,), or (n_classes, n_features) of more than two classes."""
        state = self.state_
        settled: Array | None = self.__dict__.get("_settled")
        if settled is not None:
            return settled if isinstance(state, list) else settled[0]
        found = np.stack([self._one(part) for part in (state if isinstance(state, list) else [state])])
        return found if isinstance(state, list) else found[0]

    def _one(self, state: State) -> Array:
        """One model for everybody: as the learner blends its agents', or their mean."""
        blend = getattr(self.learner_, "blend", None)
        mean: Array = state.weights.mean(axis=0) if blend is None else blend(state.learner)
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

    def _numbers(self, y: Array) -> Array:
        """Labels as numbers by which equal ones are found."""
        raise NotImplementedError

    def _encoded(self, numbers: Array) -> Array:
        """What is learned of labels as ``_numbers`` gives them: (n,), or (n, n_classes)."""
        raise NotImplementedError

    def _margins(self, X: object) -> Array:
        """The values of the model at the rows of ``X``; before there is one, the mean of the labels so far."""
        check_is_fitted(self)
        samples = validate_data(self, X, reset=False, dtype=np.float64)
        if self._waiting:
            labels = np.concatenate([part[1] for part in self._waiting])
            shares = np.concatenate([part[2] for part in self._waiting])
            mean = np.average(labels, axis=0, weights=shares if shares.any() else None)
            return np.repeat(np.asarray(mean)[None], len(samples), axis=0)
        coef = self.coef_
        margins = np.empty((len(samples), *coef.shape[:-1]))
        for start in range(0, len(samples), _PREDICTED_ROWS):
            rows = slice(start, start + _PREDICTED_ROWS)
            margins[rows] = phi_of(self.features_, samples[rows])[:, : coef.shape[-1]] @ coef.T
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
