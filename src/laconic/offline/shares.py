"""One agent's share of a batch problem: its data, and the minimisation that each iteration of ADMM asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.losses import Logistic
from laconic.network import Network

_NEWTON_STEPS = 50
_HALVINGS = 40


class Share(ABC):
    """The samples of one agent, and the curvature c of what the ridge and its neighbours add to their loss.

    Squared errors are computed from the moments Phi^T Phi, Phi^T y and y^T y, so that an iteration costs O((2L)^2)
    however many samples there are.

    Parameters
    ----------
    phi : array (n, n_features)
    labels : array (n,)
    curvature : float
        c = 2 lambda / N + 2 rho d.
    """

    def __init__(self, phi: Array, labels: Array, curvature: float) -> None:
        phi, labels = phi.astype(np.float64), labels.astype(np.float64)
        self.curvature = curvature
        self.count = len(labels)
        self.gram: Array = phi.T @ phi
        self.moment: Array = phi.T @ labels
        self.energy = float(labels @ labels)

    def square(self, theta: Array) -> float:
        """|Phi theta - y|^2."""
        return max(0.0, float(theta @ (self.gram @ theta) - 2 * self.moment @ theta) + self.energy)

    @abstractmethod
    def loss(self, theta: Array) -> float:
        """The loss summed over the samples, without ridge."""

    @abstractmethod
    def minimise(self, theta: Array, pull: Array) -> Array:
        """Argmin of loss + (c/2) |theta|^2 - pull.theta; ``theta`` is where to start looking."""


@final
class SquaredShare(Share):
    """(2 Phi^T Phi + c I) theta = 2 Phi^T y + pull, factored once."""

    def __init__(self, phi: Array, labels: Array, curvature: float) -> None:
        super().__init__(phi, labels, curvature)
        self._factor: tuple[Array, bool] | None = None

    def loss(self, theta: Array) -> float:
        """|Phi theta - y|^2."""
        return self.square(theta)

    def minimise(self, theta: Array, pull: Array) -> Array:
        """The minimiser, in closed form."""
        from scipy.linalg import cho_factor, cho_solve

        if self._factor is None:
            self._factor = cho_factor(2 * self.gram + self.curvature * np.eye(len(theta)))
        return np.asarray(cho_solve(self._factor, 2 * self.moment + pull))


@final
class LogisticShare(Share):
    """Newton's method with backtracking; from the model of the iteration before, a few steps do."""

    def __init__(self, phi: Array, labels: Array, curvature: float) -> None:
        super().__init__(phi, labels, curvature)
        if not np.isin(labels, (-1, 1)).all():
            raise ValueError("y must hold -1 and +1 for the logistic loss.")
        self._phi, self._labels = phi.astype(np.float64), labels.astype(np.float64)
        self._loss = Logistic()

    def loss(self, theta: Array) -> float:
        """The sum of log(1 + e^(-y theta.phi))."""
        return float(self._loss.value(self._phi @ theta, self._labels).sum())

    def minimise(self, theta: Array, pull: Array) -> Array:
        """Until the Newton decrement is lost in rounding."""
        from scipy.linalg import cho_factor, cho_solve

        identity = np.eye(len(theta))
        value = self._augmented(theta, pull)
        for _ in range(_NEWTON_STEPS):
            slope = self._loss.derivative(self._phi @ theta, self._labels)
            gradient = self._phi.T @ slope + self.curvature * theta - pull
            spread = np.abs(slope) * (1 - np.abs(slope))
            hessian = (self._phi.T * spread) @ self._phi + self.curvature * identity
            step = cho_solve(cho_factor(hessian), gradient)
            decrement = float(gradient @ step)
            if decrement <= 1e-16 * (1 + abs(value)):
                return np.asarray(theta - step)
            theta, value = self._descend(theta, step, decrement, value, pull)
        return theta

    def _descend(self, theta: Array, step: Array, decrement: float, value: float, pull: Array) -> tuple[Array, float]:
        """Halve the step until the objective falls by a tenth of what it promises."""
        share = 1.0
        for _ in range(_HALVINGS):
            reached = self._augmented(theta - share * step, pull)
            if reached <= value - 0.1 * share * decrement:
                break
            share /= 2
        return theta - share * step, reached

    def _augmented(self, theta: Array, pull: Array) -> float:
        return self.loss(theta) + 0.5 * self.curvature * float(theta @ theta) - float(pull @ theta)


def mean_square(shares: Sequence[Share], weights: Array) -> float:
    """Mean squared error of each agent's model on its own samples."""
    total = sum(share.square(theta) for share, theta in zip(shares, weights, strict=True))
    return float(total / sum(share.count for share in shares))


def checked(X: object, y: object, n_agents: int | None = None, which: str = "") -> tuple[Array, Array]:
    """Data (T, N, n_inputs) and labels (T, N) as arrays that fit together; ``which`` names them in complaints."""
    inputs = _validate.real_array(f"{which}X", X, "(T, N, n_inputs)", ndim=3)
    labels = _validate.real_array(f"{which}y", y, "(T, N)", ndim=2)
    if inputs.shape[:2] != labels.shape:
        shapes = f"{inputs.shape} and {labels.shape}"
        raise ValueError(f"{which}X and {which}y must agree in their first two lengths, got {shapes}.")
    if n_agents is not None and labels.shape[1] != n_agents:
        raise ValueError(f"{which}X and {which}y must hold {n_agents} agents, got {labels.shape[1]}.")
    if np.isinf(labels).any():
        raise ValueError(f"{which}y must hold finite labels, or NaN where there is none.")
    if np.isnan(labels).all():
        raise ValueError(f"{which}y must hold at least one label.")
    return inputs, labels


def check_features(features: object) -> None:
    """Refuse what is no feature map."""
    _validate.instance("features", features, RandomFeatures, "laconic RandomFeatures")


def check_network(network: object) -> None:
    """Refuse what is no network."""
    _validate.instance("network", network, Network, "a laconic Network")


def own_samples(features: RandomFeatures, X: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """The features and labels of each agent's samples in turn, those without a label left out."""
    for i in range(y.shape[1]):
        has = ~np.isnan(y[:, i])
        yield features(X[has, i]), y[has, i]
