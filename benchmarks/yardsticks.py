"""What laconic is compared with: the same run by stacked NumPy arrays, and scikit-learn one row at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import laconic as lc


class NumpyODKLA:
    """ODKLA over stacked arrays, as one would write it in NumPy: features first, then a few products a round."""

    def __init__(self, learner: lc.ODKLA, features: lc.RandomFeatures, network: lc.Network) -> None:
        self.frequencies = features.frequencies.T.copy()
        self.scale = features.n_frequencies**-0.5
        self.laplacian = np.diag(network.degrees.astype(float))
        for i, j in network.edges:
            self.laplacian[i, j] = self.laplacian[j, i] = -1.0
        self.rho, self.shrink = learner.rho, learner.shrink(network.n_agents)
        self.gain = 1 / (learner.eta(1) + 2 * learner.rho * network.degrees[:, None])

    def run(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The predictions, from inputs (T, N, d) and labels (T, N)."""
        phases = X @ self.frequencies
        phi = np.concatenate([np.cos(phases), np.sin(phases)], axis=2) * self.scale
        theta, gamma, apart = np.zeros((3, *phi.shape[1:]))
        predictions = np.empty(y.shape)
        for t in range(len(y)):
            predictions[t] = np.einsum("ij,ij->i", theta, phi[t])
            slope = 2 * (predictions[t] - y[t])
            pull = slope[:, None] * phi[t] + self.shrink * theta + self.rho * apart + gamma
            theta -= self.gain * pull
            apart = self.laplacian @ theta
            gamma += self.rho * apart
        return predictions


def one_row_sgd(X: np.ndarray, y: np.ndarray, n_frequencies: int) -> Callable[[], None]:
    """RBFSampler + SGDRegressor.partial_fit, one row at a time: predict, then learn."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDRegressor

    sampler = RBFSampler(gamma=0.5, n_components=2 * n_frequencies, random_state=0).fit(X)
    model = SGDRegressor(learning_rate="constant", eta0=0.1, alpha=1e-5)
    model.partial_fit(sampler.transform(X[:1]), y[:1])

    def run() -> None:
        for k in range(len(X)):
            phi = sampler.transform(X[k : k + 1])
            model.predict(phi)
            model.partial_fit(phi, y[k : k + 1])

    return run
