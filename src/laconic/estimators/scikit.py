"""scikit-learn estimators: kernel regression and classification, learned by a network of agents."""

from __future__ import annotations

import math
from typing import Any, Self, final

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from laconic._validate import Array
from laconic.defaults import Labels
from laconic.estimators import dealing
from laconic.estimators.base import DecentralizedKernelModel, learn_row
from laconic.losses import expit


@final
class DecentralizedKernelRegressor(RegressorMixin, DecentralizedKernelModel):
    """Kernel regression by agents that learn from rows of their own and exchange a few bits.

    Each row belongs to one agent: the one that ``agents`` names, else one drawn at random. Each round
    every agent learns its next row; agents that have none left wait. What they exchange is decided by the learner, and
    one model, which all of them could have, predicts. Nothing has to be scaled or tuned: inputs are raw, and the
    default is what ``lc.defaults.choose`` chooses. Rows that are equal count as one of that many times the weight.

    Labels are centred at their median and divided by their deviation (one wild label does not move either), since away
    from the data a model returns to zero. With a ``learner`` of your own it is mean and standard deviation. ``fit``
    takes both from all of y. ``partial_fit`` waits for eight rows of each agent before it chooses scales, and predicts
    the mean of the labels until then.

    Parameters
    ----------
    n_agents : int, optional
        Number of agents, on a ring. Default: as many as ``agents`` or ``network`` has, else 5.
    network : Network, optional
        Who hears whom, if not a ring.
    n_frequencies : int
        Random frequencies L of the feature map: more of them come closer to the kernel, and cost time and bits.
    bandwidth : "automatic", "scale" or float
        "automatic": ``lc.RandomFeatures.automatic``, for raw inputs. A number is the width sigma of the Gaussian kernel
        exp(-|x - x'|^2 / (2 sigma^2)), "scale" takes sigma^2 = n_features * X.var() / 2 from the data first seen, the
        gamma="scale" of SVC; for both, bring the columns to one scale before.
    features : transformer, RandomFeatures or callable, optional
        Features of one's own instead: ``Nystroem()``, a pipeline, any function with ``n_inputs`` and ``n_features``.
        What has ``fit`` is cloned and fitted to the rows first seen, unless it is a ``FrozenEstimator``. Scaling is
        then its business, and ``n_frequencies`` and ``bandwidth`` are not used.
    learner : Learner, optional
        How the agents learn and what they say: any learner of laconic. Default: what ``lc.defaults.choose`` chooses,
        least squares at every agent and a few waves that tell everybody what all know together.
    n_passes : int, optional
        How often ``fit`` goes through the data: once by default, or ten times with a ``learner`` that takes steps.
    budget : "usual", "frugal" or "silent"
        What the default learner may send.
    random_state : int, RandomState instance or None
        Draws the frequencies and the orders.

    Attributes
    ----------
    weights_ : array (n_agents, n_features)
        What each agent learned.
    coef_ : array (n_features,)
        The model that predicts.
    center_, scale_ : float
        What labels are measured from, and by.
    agents_ : array
        Names of the agents, if ``agents`` gave them.
    bits_, messages_ : int
        What the agents have said so far; a broadcast counts once, however many neighbours hear it.
    network_, features_, learner_, bandwidth_
        What was chosen when learning began.
    state_ : State
        All that ``lc.simulate`` needs to go on.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([20.0, 5e4], [3.0, 1e4], size=(1000, 2))  # raw inputs
    >>> y = 300 + 20 * np.sin(X[:, 0] / 3) * X[:, 1] / 1e4
    >>> model = lc.DecentralizedKernelRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.weights_.shape, model.network_
    ((5, 203), Network(5 agents, 5 edges))
    >>> hospitals = rng.choice(["north", "south", "west"], size=1000)
    >>> lc.DecentralizedKernelRegressor(random_state=0).fit(X, y, agents=hospitals).network_
    Network(3 agents, 3 edges)
    """

    _task = "numbers"
    _binary = False

    def fit(self, X: object, y: object, sample_weight: object = None, agents: object = None) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            How many rows each row counts as.
        agents : array (n,), optional
            Whom each row belongs to, by any names; there may be few rows of one and many of another.
        """
        self._forget()
        samples, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weights = self._weights(samples, sample_weight)
        self._measure(dealing.merge(samples, self._numbers(labels), None, weights).labels)
        return self._fit(samples, labels, sample_weight, agents)

    def partial_fit(self, X: object, y: object, sample_weight: object = None, agents: object = None) -> Self:
        """Go on learning: once through more rows, in their order, each to its agent or the one whose turn it is."""
        solo = self._shortcut
        if solo is not None and agents is sample_weight is None and type(X) is np.ndarray and type(y) is np.ndarray:
            # float() of anything but one number raises; what is then wrong with y is said below.
            label = (
                (float(y[0]) - self.center_) / self.scale_ if y.shape == (1,) and y.dtype.kind in "fiu" else math.nan
            )
            if math.isfinite(label) and learn_row(solo, X, label):
                return self
        first = not self.__sklearn_is_fitted__()
        samples, labels = validate_data(self, X, y, reset=first, dtype=np.float64, y_numeric=True)
        if first:
            self._forget()
            self._measure(labels)
        return self._partial_fit(samples, self._encoded(self._numbers(labels)), sample_weight, agents)

    def predict(self, X: object) -> Array:
        """Predict the labels of the rows of ``X``."""
        margins = self._margins(X)
        return self.center_ + self.scale_ * margins

    def _measure(self, labels: Array) -> None:
        numbers = np.asarray(labels, dtype=np.float64)
        if self.learner is not None:
            self.center_, self.scale_ = float(numbers.mean()), float(numbers.std()) or 1.0
            return
        found = Labels.measure(numbers, "numbers")
        self.center_, self.scale_ = found.centre, found.deviation or 1.0

    def _labels(self) -> dict[str, Any]:
        return {"centre": self.center_, "scale": self.scale_}

    def _numbers(self, y: Array) -> Array:
        return np.asarray(y, dtype=np.float64)

    def _encoded(self, numbers: Array) -> Array:
        scaled: Array = (numbers - self.center_) / self.scale_
        return scaled


def _has_probabilities(model: DecentralizedKernelClassifier) -> bool:
    """Least squares of signs and the logistic loss estimate probabilities; the hinge loss does not."""
    return model.learner is None or model.learner.loss.name in ("squared", "logistic")


@final
class DecentralizedKernelClassifier(ClassifierMixin, DecentralizedKernelModel):
    """Kernel classification by agents that learn from rows of their own and exchange a few bits.

    As ``DecentralizedKernelRegressor``, with labels of any kind. Of two classes one model learns -1 for the first of
    ``classes_`` and +1 for the second; of more each has a model of its own over the same features, +1 for its rows.

    Parameters
    ----------
    n_agents, network, n_frequencies, bandwidth, features, learner, n_passes, budget, random_state
        As for the regressor; a ``learner`` may have any loss. The default has the squared one.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels, sorted.
    weights_, coef_, bits_, messages_, network_, features_, learner_, bandwidth_, state_
        As for the regressor.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.5, "inside", "outside")
    >>> model = lc.DecentralizedKernelClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _task = "classes"
    _binary = True

    def fit(self, X: object, y: object, sample_weight: object = None, agents: object = None) -> Self:
        """Learn from scratch; arguments as those of the regressor, ``y`` (n,) of any kind."""
        self._forget()
        samples, labels = self._checked(X, y, reset=True)
        counted = labels if sample_weight is None else labels[np.asarray(self._weights(samples, sample_weight)) != 0]
        classes = np.unique(labels)
        if len(np.unique(counted)) < 2:
            raise ValueError(f"y must hold two classes, but there is only one class in it: {classes[0]!r}.")
        self.classes_ = classes
        return self._fit(samples, labels, sample_weight, agents)

    def partial_fit(
        self, X: object, y: object, classes: object = None, sample_weight: object = None, agents: object = None
    ) -> Self:
        """Go on learning: once through more rows, in their order, each to its agent or the one whose turn it is.

        The first call needs ``classes``, the labels that will ever come.
        """
        solo = self._shortcut
        plain = classes is agents is sample_weight is None
        if solo is not None and plain and type(X) is np.ndarray and type(y) is np.ndarray and y.shape == (1,):
            negative, positive = self.classes_
            label = 1.0 if y[0] == positive else -1.0 if y[0] == negative else 0.0
            if label and learn_row(solo, X, label):
                return self
        first = not self.__sklearn_is_fitted__()
        samples, labels = self._checked(X, y, reset=first)
        named = self._named(classes, first)
        if not np.isin(labels, named).all():
            raise ValueError(f"y must hold only the classes {named.tolist()}, got {np.unique(labels).tolist()}.")
        if first:
            self._forget()
            self.classes_ = named
        return self._partial_fit(samples, self._encoded(self._numbers(labels)), sample_weight, agents)

    def decision_function(self, X: object) -> Array:
        """The model's value at each row of ``X``, above 0 for the second of two classes; else one for each class."""
        return self._margins(X)

    def predict(self, X: object) -> Array:
        """The label of each row of ``X``."""
        margins = self.decision_function(X)
        index = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        labels: Array = self.classes_[index]
        return labels

    @available_if(_has_probabilities)
    def predict_proba(self, X: object) -> Array:
        """The probability of each of ``classes_`` at each row of ``X``; not with the hinge losses."""
        margins = self.decision_function(X)
        if self.learner is not None and self.learner.loss.name == "logistic":
            shares = expit(np.stack([-margins, margins], axis=1) if margins.ndim == 1 else margins)
            total: Array = shares.sum(axis=1, keepdims=True)
            return shares / total
        return Labels("classes", classes=tuple(self.classes_.tolist())).probabilities(margins)

    def _checked(self, X: object, y: object, *, reset: bool) -> tuple[Array, Array]:
        samples, labels = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(labels)
        return samples, labels

    def _named(self, classes: object, first: bool) -> Array:
        if classes is None:
            if first:
                raise ValueError("classes must be passed in the first call of partial_fit: the labels that may come.")
            check_is_fitted(self)
            known: Array = self.classes_
            return known
        named = np.unique(np.asarray(classes))
        if len(named) < 2:
            raise ValueError(f"classes must be two labels or more, got {classes!r}.")
        if not first and not np.array_equal(named, self.classes_):
            raise ValueError(f"classes must stay {self.classes_.tolist()}, got {named.tolist()}.")
        return named

    def _labels(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _numbers(self, y: Array) -> Array:
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _encoded(self, numbers: Array) -> Array:
        hit = numbers[:, None] == np.arange(len(self.classes_))
        signs = np.where(hit, 1.0, -1.0)
        return signs[:, 1] if len(self.classes_) == 2 else signs
