"""scikit-learn estimators: kernel regression and classification, learned by a network of agents."""

from __future__ import annotations

import math
from typing import Any, Self, final

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from laconic._validate import Array
from laconic.estimators.base import DecentralizedKernelModel, learn_row


@final
class DecentralizedKernelRegressor(RegressorMixin, DecentralizedKernelModel):
    """Kernel regression by agents that keep their data to themselves and exchange a few bits.

    Row r of the data belongs to agent r mod N and stays there. In each round every agent predicts its next row, learns
    from it and speaks to its neighbours; in each pass of ``fit`` it goes through its rows in a new order. The agents
    end up close to each other, and the mean of their models predicts. Where rows do not fill a round, the agents left
    over have nothing to learn from in it.

    Labels are centred, because away from the data a kernel model returns to zero, and the mean is a better guess than
    zero; and they are divided by their standard deviation, so that steps and thresholds mean the same in any unit. Both
    numbers come from the labels first seen. The squared loss aims at the mean, hence mean and deviation and not a
    median: an outlier that moves them changes the unit, and hardly what is learned. ``fit`` takes them from all of y;
    let the first batch of ``partial_fit`` be large enough to tell them (from a single row the scale is 1).

    Parameters
    ----------
    n_agents : int, optional
        Number of agents, on a ring. Default: 5, or as many as ``network`` has.
    network : Network, optional
        Who hears whom, if not a ring.
    n_frequencies : int
        Random frequencies L of the kernel's feature map: more of them come closer to the kernel, and cost time and bits
        in proportion.
    bandwidth : "scale" or float
        Width sigma of the Gaussian kernel exp(-|x - x'|^2 / (2 sigma^2)). "scale" takes sigma^2 = n_features *
        X.var() / 2 from the data first seen, the gamma="scale" of SVC. Bring the columns to one scale before.
    learner : Learner, optional
        How the agents learn and what they say: any learner of laconic. Default: QC-ODKLA with three bits an entry and
        steps that shrink slowly. (On a stream that drifts, constant steps keep adapting:
        ``learner=lc.QCODKLA(rho=0.2, eta=4.0)``.)
    n_passes : int
        How often ``fit`` goes through the data; ``partial_fit`` goes once, in the order given.
    random_state : int, RandomState instance or None
        Draws the frequencies and the orders.

    Attributes
    ----------
    weights_ : array (n_agents, 2 n_frequencies)
        What each agent learned.
    coef_ : array (2 n_frequencies,)
        Their mean.
    center_, scale_ : float
        Mean and deviation of the labels first seen.
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
    >>> X = rng.normal(size=(1000, 2))
    >>> y = 300 + 20 * np.sin(X[:, 0]) * X[:, 1]
    >>> model = lc.DecentralizedKernelRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.weights_.shape, model.network_
    ((5, 200), Network(5 agents, 5 edges))
    >>> model.bits_ == model.messages_ * (3 * 200 + 32)  # three bits an entry, and the scale
    True
    """

    _loss = "squared"
    _binary = False

    def fit(self, X: object, y: object) -> Self:
        """Learn from scratch: ``n_passes`` times through ``X`` (n, d) with labels ``y`` (n,)."""
        samples, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._measure(labels)
        return self._fit(samples, self._scaled(labels))

    def partial_fit(self, X: object, y: object) -> Self:
        """Go on learning: once through more rows, in their order, each to the agent whose turn it is."""
        solo = self._shortcut
        if solo is not None and type(X) is np.ndarray and type(y) is np.ndarray:
            # float() of anything but one number raises; what is then wrong with y is said below.
            label = (
                (float(y[0]) - self.center_) / self.scale_ if y.shape == (1,) and y.dtype.kind in "fiu" else math.nan
            )
            if math.isfinite(label) and learn_row(solo, X, label):
                return self
        first = not self.__sklearn_is_fitted__()
        samples, labels = validate_data(self, X, y, reset=first, dtype=np.float64, y_numeric=True)
        if first:
            self._measure(labels)
            self._begin(samples)
        return self._partial_fit(samples, self._scaled(labels))

    def predict(self, X: object) -> Array:
        """Predict the labels of the rows of ``X``."""
        margins = self._margins(X)
        return self.center_ + self.scale_ * margins

    def _measure(self, labels: Array) -> None:
        self.center_ = float(labels.mean())
        self.scale_ = float(labels.std()) or 1.0

    def _labels(self) -> dict[str, Any]:
        return {"centre": self.center_, "scale": self.scale_}

    def _scaled(self, labels: Array) -> Array:
        return (np.asarray(labels, dtype=np.float64) - self.center_) / self.scale_


def _is_logistic(model: DecentralizedKernelClassifier) -> bool:
    """Only the logistic loss speaks of probabilities."""
    return model.learner is None or model.learner.loss.name == "logistic"


@final
class DecentralizedKernelClassifier(ClassifierMixin, DecentralizedKernelModel):
    """Kernel classification of two classes by agents that keep their data to themselves and exchange a few bits.

    As ``DecentralizedKernelRegressor``, with labels of any two kinds: inside, the first of ``classes_`` is -1 and the
    second +1. For more classes wrap it in scikit-learn's ``OneVsRestClassifier``.

    Parameters
    ----------
    n_agents, network, n_frequencies, bandwidth, n_passes, random_state
        As for the regressor.
    learner : Learner, optional
        Any learner of laconic with any loss. Default: QC-ODKLA with the logistic loss, three bits an entry and steps
        that shrink slowly. (On a stream that drifts: ``learner=lc.QCODKLA(rho=0.05, eta=0.5, loss="logistic")``.)

    Attributes
    ----------
    classes_ : array (2,)
        The two labels, sorted.
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

    _loss = "logistic"
    _binary = True

    def fit(self, X: object, y: object) -> Self:
        """Learn from scratch: ``n_passes`` times through ``X`` (n, d) with labels ``y`` (n,) of two kinds."""
        samples, labels = self._checked(X, y, reset=True)
        classes = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(f"y must hold two classes, but there is only one class in it: {classes[0]!r}.")
        self.classes_ = classes
        return self._fit(samples, self._signs(labels))

    def partial_fit(self, X: object, y: object, classes: object = None) -> Self:
        """Go on learning: once through more rows, in their order, each to the agent whose turn it is.

        The first call needs ``classes``, the two labels that will ever come.
        """
        solo = self._shortcut
        if solo is not None and classes is None and type(X) is np.ndarray and type(y) is np.ndarray and y.shape == (1,):
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
            self.classes_ = named
            self._begin(samples)
        return self._partial_fit(samples, self._signs(labels))

    def decision_function(self, X: object) -> Array:
        """The mean model's value at each row of ``X``: above 0 for the second of ``classes_``."""
        return self._margins(X)

    def predict(self, X: object) -> Array:
        """The label of each row of ``X``."""
        margins = self.decision_function(X)
        labels: Array = self.classes_[(margins > 0).astype(int)]
        return labels

    @available_if(_is_logistic)
    def predict_proba(self, X: object) -> Array:
        """The probability of each of ``classes_`` at each row of ``X``; only with the logistic loss."""
        from scipy.special import expit

        margins = self.decision_function(X)
        return np.stack([expit(-margins), expit(margins)], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _checked(self, X: object, y: object, *, reset: bool) -> tuple[Array, Array]:
        samples, labels = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(labels)
        kind = type_of_target(labels, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        return samples, labels

    def _named(self, classes: object, first: bool) -> Array:
        if classes is None:
            if first:
                raise ValueError(
                    "classes must be passed in the first call of partial_fit: the two labels that may come."
                )
            check_is_fitted(self)
            known: Array = self.classes_
            return known
        named = np.unique(np.asarray(classes))
        if len(named) != 2:
            raise ValueError(f"Only binary classification is supported: classes must be two labels, got {classes!r}.")
        if not first and not np.array_equal(named, self.classes_):
            raise ValueError(f"classes must stay {self.classes_.tolist()}, got {named.tolist()}.")
        return named

    def _labels(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _signs(self, labels: Array) -> Array:
        return np.where(labels == self.classes_[1], 1.0, -1.0)
