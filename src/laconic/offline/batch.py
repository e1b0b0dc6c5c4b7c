"""Batch learning over a network: DKLA, and COKE, which says less (Xu, Wang, Chen and Tian, JMLR 2021).

All data are there from the start. Agent i minimises its share of the paper's eq. decentr_theta,

    F_i(theta) = sum_t l(theta.phi(x_it), y_it) + (lambda/N) |theta|^2,

and ADMM brings the agents to the minimiser of the sum. The ridge is lambda |theta|^2 in all; the online learners carry
(lambda/N) |theta|^2 with every sample, T lambda |theta|^2 in all, and so converge to another model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features import RandomFeatures
from laconic.losses import Logistic, Loss, Squared
from laconic.network import Network
from laconic.offline.comparator import Comparator, comparator
from laconic.offline.shares import (
    LogisticShare,
    Share,
    SquaredShare,
    check_features,
    check_network,
    checked,
    mean_square,
    own_samples,
)

_BITS_A_NUMBER = 32
_RHO_A_SAMPLE = 1e-4


@final
@dataclass(frozen=True, eq=False, repr=False)
class BatchRun:
    """What DKLA or COKE leaves behind, with an entry for each of its K iterations.

    Attributes
    ----------
    features : RandomFeatures
    weights : array (n_agents, n_features)
        The models in the end.
    objective : array (K,)
        sum_i F_i(theta_i), ridge included.
    training_mse : array (K,)
        Mean squared error of each agent's model on its own data.
    test_mse : array (K,) or None
        The same on the data held out, if any were given.
    consensus_error : array (K,)
        Distance of the models from their mean, |Theta - mean|_F.
    sent : bool array (K, n_agents)
        Who broadcast.
    converged : bool
        Whether the tolerance was met before the iterations ran out.
    rho : float
        As used.
    """

    features: RandomFeatures
    weights: Array
    objective: Array
    training_mse: Array
    test_mse: Array | None
    consensus_error: Array
    sent: Array
    converged: bool
    rho: float

    @property
    def iterations(self) -> int:
        """Number K of iterations."""
        return len(self.objective)

    @property
    def sends(self) -> Array:
        """Broadcasts in each iteration, (K,): one counts once, whatever the number of neighbours."""
        return np.asarray(self.sent.sum(axis=1))

    @property
    def bits(self) -> Array:
        """Bits sent in each iteration, (K,): 32 for each of the 2L numbers of a model."""
        return self.sends * (_BITS_A_NUMBER * self.features.n_features)

    def predict(self, X: object) -> Array:
        """Each agent's predictions for its own inputs: (..., n_agents, n_inputs) to (..., n_agents)."""
        phi = self.features(X)
        if phi.ndim < 2 or phi.shape[-2] != len(self.weights):
            shape = f"(..., {len(self.weights)}, {self.features.n_inputs})"
            raise ValueError(f"X must have shape {shape}, got {phi.shape[:-1]} and {self.features.n_inputs}.")
        return np.asarray(np.einsum("...if,if->...i", phi, self.weights))

    def mse(self, X: object, y: object) -> float:
        """Mean squared error on data (T, n_agents, n_inputs) and labels (T, n_agents), NaN where there is none."""
        inputs, labels = checked(X, y)
        return float(np.nanmean((self.predict(inputs) - labels) ** 2))

    def __repr__(self) -> str:
        ending = "converged" if self.converged else "stopped"
        return (
            f"BatchRun({ending} after {self.iterations} iterations, training mse {self.training_mse[-1]:.4g}, "
            f"{int(self.sent.sum())} messages, {int(self.bits.sum())} bits)"
        )


def dkla(
    features: RandomFeatures,
    network: Network,
    X: object,
    y: object,
    *,
    rho: float | None = None,
    regularization: float = 1e-4,
    loss: str | Loss = "squared",
    max_iterations: int = 500,
    tolerance: float = 1e-3,
    test: tuple[object, object] | None = None,
) -> BatchRun:
    """Decentralized kernel learning by ADMM; every agent broadcasts its model in every iteration.

    In iteration k = 1, 2, ... agent i, with d neighbours, takes

        theta_i = argmin F_i(theta) + gamma_i.theta + rho sum_j |theta - (theta-hat_i + theta-hat_j)/2|^2,

    broadcasts it, theta-hat_i = theta_i, and then gamma_i += rho sum_j (theta-hat_i - theta-hat_j). All start at zero.

    Parameters
    ----------
    features : RandomFeatures
    network : Network
    X : array (T, n_agents, n_inputs)
    y : array (T, n_agents)
        NaN where a label is missing: agents may have fewer than T samples.
    rho : float, optional
        Penalty of disagreement. It competes with a loss that is summed over an agent's samples, so a good value grows
        with their number; 1e-4 times their mean number if not given.
    regularization : float
        lambda, in all: lambda / n_agents for each agent.
    loss : "squared" or "logistic"
        Squared: in closed form, a Cholesky factor an agent being kept. Logistic: Newton's method from the last model.
    max_iterations : int
    tolerance : float
        Stop when the objective changed by no more than this share of itself, and the models lie no further from their
        mean than this share of their norm. A rho far too large moves so slowly that it seems to have arrived.
    test : (X, y), optional
        Data held out, to score after each iteration.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 4, 1))
    >>> y = np.sin(5 * X[..., 0]) + rng.normal(scale=0.1, size=(200, 4))
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=10, bandwidth=0.3)
    >>> run = lc.offline.dkla(features, lc.Network.ring(4), X, y, rho=1.0)
    >>> best = lc.offline.batch_solution(features, X, y)
    >>> run.converged, bool(abs(run.mse(X, y) / best.mse() - 1) < 0.05)
    (True, True)
    """
    return _admm(features, network, X, y, rho, regularization, loss, max_iterations, tolerance, test, 0.0, 1.0)


def coke(
    features: RandomFeatures,
    network: Network,
    X: object,
    y: object,
    *,
    v: float,
    mu: float,
    rho: float | None = None,
    regularization: float = 1e-4,
    loss: str | Loss = "squared",
    max_iterations: int = 500,
    tolerance: float = 1e-3,
    test: tuple[object, object] | None = None,
) -> BatchRun:
    """DKLA that censors: an agent broadcasts theta iff |theta-hat - theta| >= v mu^k; else neighbours keep the last.

    Parameters
    ----------
    v, mu : float
        Threshold before the first iteration, and its decay in (0, 1]. v = 0 is DKLA.
    features, network, X, y, rho, regularization, loss, max_iterations, tolerance, test
        As in ``dkla``.
    """
    v = _validate.number("v", v, least=0)
    mu = _validate.number("mu", mu, above=0)
    if mu > 1:
        raise ValueError(f"mu must be at most 1, got {mu!r}.")
    return _admm(features, network, X, y, rho, regularization, loss, max_iterations, tolerance, test, v, mu)


def batch_solution(
    features: RandomFeatures, X: object, y: object, *, regularization: float = 1e-4, loss: str | Loss = "squared"
) -> Comparator:
    """The model that DKLA's agents agree on in the end, computed in one place: ridge ``regularization`` in all."""
    check_features(features)
    inputs, labels = checked(X, y)
    regularization = _validate.number("regularization", regularization, least=0)
    return comparator(features, inputs, labels, regularization=regularization / max(1, len(labels)), loss=loss)


def _admm(
    features: RandomFeatures,
    network: Network,
    X: object,
    y: object,
    rho: float | None,
    regularization: float,
    loss: str | Loss,
    max_iterations: int,
    tolerance: float,
    test: tuple[object, object] | None,
    v: float,
    mu: float,
) -> BatchRun:
    check_features(features)
    check_network(network)
    n_agents, degrees = network.n_agents, network.degrees[:, None]
    regularization = _validate.number("regularization", regularization, least=0)
    if n_agents == 1 and regularization == 0:
        raise ArgumentError("regularization", "must be larger than 0 for an agent without neighbours.")
    max_iterations = _validate.integer("max_iterations", max_iterations, least=1)
    tolerance = _validate.number("tolerance", tolerance, least=0)
    inputs, labels = checked(X, y, n_agents)
    if rho is None:
        rho = _RHO_A_SAMPLE * float((~np.isnan(labels)).sum(axis=0).mean())
    rho = _validate.number("rho", rho, above=0)
    curvatures = (2 * regularization / n_agents + 2 * rho * network.degrees).tolist()
    kind = _share_of(losses.get(loss))
    shares = [kind(*own, c) for own, c in zip(own_samples(features, inputs, labels), curvatures, strict=True)]
    held_out = None
    if test is not None:
        if not isinstance(test, (tuple, list)) or len(test) != 2:
            raise ArgumentError("test", f"must be a pair (X, y) of data held out, got {_validate.shown(test)}.")
        held_out = [SquaredShare(*own, 0.0) for own in own_samples(features, *checked(*test, n_agents, "test "))]

    weights, duals, broadcast, disagreement = (np.zeros((n_agents, features.n_features)) for _ in range(4))
    record: list[tuple[float, float, float, float]] = []
    sent: list[Array] = []
    converged = False
    while len(record) < max_iterations and not converged:
        pull = rho * (2 * degrees * broadcast - disagreement) - duals
        weights = np.stack([share.minimise(*rows) for share, *rows in zip(shares, weights, pull, strict=True)])
        threshold = v * mu ** float(len(record) + 1)
        speaks = np.linalg.norm(broadcast - weights, axis=1) >= threshold
        broadcast = np.where(speaks[:, None], weights, broadcast)
        disagreement = network.listen(broadcast).disagreement
        duals = duals + rho * disagreement

        total = sum(share.loss(theta) for share, theta in zip(shares, weights, strict=True))
        objective = float(total + regularization / n_agents * (weights**2).sum())
        apart = float(np.linalg.norm(weights - weights.mean(axis=0)))
        settled = bool(record) and abs(objective - record[-1][0]) <= tolerance * objective
        converged = settled and apart <= tolerance * float(np.linalg.norm(weights))
        tested = np.nan if held_out is None else mean_square(held_out, weights)
        record.append((objective, mean_square(shares, weights), tested, apart))
        sent.append(speaks & (network.degrees > 0))
    objectives, training, tests, consensus = np.array(record).T
    return BatchRun(
        features,
        weights,
        objectives,
        training,
        None if test is None else tests,
        consensus,
        np.stack(sent),
        converged,
        rho,
    )


def _share_of(loss: Loss) -> type[Share]:
    if type(loss) is Squared:
        return SquaredShare
    if type(loss) is Logistic:
        return LogisticShare
    raise ArgumentError("loss", f"must be 'squared' or 'logistic', got {loss!r}.")
