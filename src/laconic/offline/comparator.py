"""What could have been known afterwards: the best single model of a whole stream, to measure regret against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features import RandomFeatures
from laconic.losses import Hinge, Logistic, Loss, Squared


@final
@dataclass(frozen=True, eq=False)
class Comparator:
    """theta* = argmin over theta of sum_t sum_i L_it(theta), and what it would have predicted.

    Attributes
    ----------
    weights : array (n_features,)
        theta*.
    predictions, labels : array (T, N)
    regularization : float
        lambda, a slot: the N agents' ridges of T rounds add up to T lambda |theta|^2. (The paper's batch problem has
        lambda |theta|^2 in all; comparing with that one would charge the online learner T times.)
    loss : Loss
    """

    weights: Array
    predictions: Array
    labels: Array
    regularization: float
    loss: Loss

    def round_losses(self, *, collective: bool = False) -> Array:
        """sum_i L_it(theta*), ridge included, for each round; collectively, each loss is the mean of all agents'."""
        scores = self.loss.value(self.predictions, self.labels)
        scored = (~np.isnan(scores)).sum(axis=1)
        total = np.nansum(scores, axis=1)
        if collective:
            total = scores.shape[1] * np.divide(total, scored, out=np.zeros_like(total), where=scored > 0)
        ridge: Array = total + self.regularization * float(self.weights @ self.weights)
        return ridge

    def mse(self) -> float:
        """Mean squared error over the whole stream, in hindsight."""
        return float(np.nanmean((self.predictions - self.labels) ** 2))


def comparator(
    features: RandomFeatures,
    X: object,
    y: object,
    *,
    regularization: float = 1e-4,
    loss: str | Loss = "squared",
) -> Comparator:
    """The best fixed model in hindsight, for ``trace.regret``.

    Parameters
    ----------
    features : RandomFeatures
        As in the run.
    X : array (T, N, n_inputs)
    y : array (T, N)
        NaN where a label is missing.
    regularization, loss
        As the learner's.

    Notes
    -----
    Squared loss: the normal equations. Logistic: Newton (scikit-learn). Hinge: dual coordinate descent (liblinear). Any
    other loss: L-BFGS.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(200, 3, 1))
    >>> y = np.sin(5 * X[..., 0])
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=20, bandwidth=0.3)
    >>> trace = lc.simulate(lc.ODKLA(eta=1.0), features, lc.Network.ring(3), X, y)
    >>> best = lc.offline.comparator(features, X, y)
    >>> bool(best.mse() < trace.mse()[-1] and trace.regret(best)[-1] > 0)
    True
    """
    _validate.instance("features", features, RandomFeatures, "laconic RandomFeatures")
    inputs = _validate.real_array("X", X, "(T, N, n_inputs)", ndim=3)
    labels = _validate.real_array("y", y, "(T, N)", ndim=2)
    if inputs.shape[:2] != labels.shape:
        raise ValueError(f"X and y must agree in their first two lengths, got {inputs.shape} and {labels.shape}.")
    regularization = _validate.number("regularization", regularization, least=0)
    loss = losses.get(loss)
    phi = features(inputs)
    scored = ~np.isnan(labels)
    if not scored.any():
        raise ValueError("y must hold at least one label.")
    ridge = len(labels) * regularization
    weights = _fit(phi[scored], labels[scored], ridge, loss)
    return Comparator(weights, phi @ weights, labels, regularization, loss)


def _fit(phi: Array, labels: Array, ridge: float, loss: Loss) -> Array:
    """Minimise sum l(phi.theta, y) + ridge |theta|^2."""
    if type(loss) is Squared:
        gram = phi.T @ phi + ridge * np.eye(phi.shape[1])
        return np.asarray(np.linalg.lstsq(gram, phi.T @ labels, rcond=None)[0])
    if type(loss) in (Logistic, Hinge):
        if ridge == 0:
            raise ArgumentError(
                "regularization", "must be larger than 0 for a classification loss, or theta* may be infinite."
            )
        if len(np.unique(labels)) < 2:
            raise ValueError("y must hold both -1 and +1 for a classification loss.")
        return _classify(phi, labels, ridge, logistic=type(loss) is Logistic)
    from scipy.optimize import minimize

    def objective(theta: Array) -> tuple[float, Array]:
        margin = phi @ theta
        value = float(loss.value(margin, labels).sum() + ridge * theta @ theta)
        return value, phi.T @ loss.slope(margin, labels) + 2 * ridge * theta

    return np.asarray(
        minimize(objective, np.zeros(phi.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 10000}).x
    )


def _classify(phi: Array, labels: Array, ridge: float, *, logistic: bool) -> Array:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    # scikit-learn minimises |theta|^2 / 2 + C sum l.
    strength = 1 / (2 * ridge)
    if logistic:
        model = LogisticRegression(C=strength, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    else:
        model = LinearSVC(C=strength, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0)
    return np.asarray(model.fit(phi, labels).coef_[0])
