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


def jax_rounds(
    learner: lc.QCODKLA, features: lc.RandomFeatures, network: lc.Network, X: np.ndarray, y: np.ndarray, padded: bool
) -> Callable[[], object]:
    """QC-ODKLA as one would write it in JAX: a jitted ``lax.scan`` over rounds of all agents.

    Neighbours are summed over lists padded to the longest, or as segments of one long list.
    """
    import jax
    from jax import numpy as jnp

    n, degrees = network.n_agents, jnp.asarray(network.degrees, jnp.float32)[:, None]
    frequencies = jnp.asarray(features.frequencies.T, jnp.float32)
    scale, rho, shrink = features.n_frequencies**-0.5, learner.rho, learner.shrink(n)
    quantizer, censor = learner.channel.quantizer, learner.channel.censor
    cells, thresholds = quantizer.cells, jnp.asarray(censor.thresholds(1, len(y)), jnp.float32)
    gain = 1 / (learner.eta(1) + 2 * rho * degrees)
    longest = int(network.degrees.max())
    lists = np.tile(np.arange(n)[:, None], longest)  # who is missing is oneself, at no distance
    rows = np.repeat(np.arange(n), network.degrees)
    lists[rows, np.arange(len(rows)) - np.repeat(network.starts[:-1], network.degrees)] = network.neighbours
    lists, rows, others = jnp.asarray(lists), jnp.asarray(rows), jnp.asarray(network.neighbours)

    def apart(hat: jax.Array) -> jax.Array:
        if padded:
            return sum((hat - hat[lists[:, k]] for k in range(longest)), jnp.zeros_like(hat))
        return degrees * hat - jax.ops.segment_sum(hat[others], rows, n, indices_are_sorted=True)

    def one(state: tuple[jax.Array, ...], sample: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], object]:
        theta, gamma, hat, pull = state
        x, label, threshold = sample
        phases = x @ frequencies
        phi = jnp.concatenate([jnp.cos(phases), jnp.sin(phases)], axis=1) * scale
        margin = (theta * phi).sum(axis=1)
        slope = 2 * (margin - label)
        theta = theta - gain * (slope[:, None] * phi + shrink * theta + rho * pull + gamma)
        h = theta - hat
        sent = jnp.linalg.norm(h, axis=1, keepdims=True) >= threshold
        high = jnp.abs(h).max(axis=1, keepdims=True)
        width = 2 * high / cells
        cell = jnp.clip(jnp.floor((h + high) / width), 0, cells - 1)
        hat = jnp.where(sent & (high > 0), hat - high + (cell + 0.5) * width, hat)
        pull = apart(hat)
        gamma = gamma + rho * pull
        mean = theta.mean(axis=0)
        return (theta, gamma, hat, pull), (
            margin,
            sent[:, 0],
            jnp.linalg.norm(theta - mean),
            jnp.linalg.norm(theta - hat),
        )

    scan = jax.jit(lambda state, samples: jax.lax.scan(one, state, samples))
    state = tuple(jnp.zeros((n, features.n_features), jnp.float32) for _ in range(4))
    samples = jnp.asarray(X), jnp.asarray(y), thresholds
    return lambda: jax.block_until_ready(scan(state, samples))
