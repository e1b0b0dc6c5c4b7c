"""Your own learner, loss, kernel and quantizer, all at once: each is a few lines, and they work with each other."""

from typing import Any, NamedTuple

import numpy as np
from shared import ENGINE, axes, save, size

import laconic as lc


class Slow(NamedTuple):
    """A model, and the average of what it was."""

    weights: np.ndarray
    slow: np.ndarray


class Averaged(lc.Learner):
    """Diffusion that predicts with a running average of its models."""

    name = "averaged diffusion"

    def __init__(self, step: float = 0.3, **options: Any) -> None:
        super().__init__(**options)
        self.step_size = step

    def init(self, n_agents: int, n_features: int) -> Slow:
        zeros = np.zeros((n_agents, n_features))
        return Slow(zeros, zeros.copy())

    def step(self, state: Slow, sample: lc.Sample, heard: lc.Heard) -> tuple[Slow, dict[str, Any]]:
        slope = self.loss.slope((state.weights * sample.phi).sum(axis=1), sample.label)
        moved = state.weights + heard.mixture - self.step_size * slope[:, None] * sample.phi
        slow = 0.9 * state.slow + 0.1 * moved
        return Slow(0.5 * (moved + slow), slow), {}


class Tilted(lc.Loss):
    """Too low is three times as bad as too high."""

    name = "tilted"

    def value(self, prediction: Any, label: Any) -> Any:
        error = prediction - label
        return np.where(error < 0, 3.0, 1.0) * error**2

    def derivative(self, prediction: Any, label: Any) -> Any:
        error = prediction - label
        return np.where(error < 0, 6.0, 2.0) * error


class Halves:
    """Numbers of 16 bits."""

    def encode(self, h: np.ndarray) -> bytes:
        return h.astype("<f2").tobytes()

    def decode(self, data: bytes) -> np.ndarray:
        return np.frombuffer(data, dtype="<f2").astype(float)


class Bumps:
    """A kernel of one's own: a grid of bumps."""

    n_inputs, n_features = 1, 12

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.exp(-((rows - np.linspace(0, 1, 12)) ** 2) / 0.01)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(size(1000, 40), 5, 1))
    y = np.sin(6 * X[..., 0]) + 0.3 * rng.standard_normal(X.shape[:2])
    learner = Averaged(step=0.1, loss=Tilted(), channel=lc.Channel(quantizer=Halves()))
    trace = lc.simulate(learner, Bumps(), lc.Network.ring(5), X, y, engine=ENGINE)
    print(trace)
    figure, panel = axes()
    at = np.linspace(0, 1, 200)
    panel.plot(X[-60:].ravel(), y[-60:].ravel(), ".", color="#b8b8b8", label="what all five measured lately")
    panel.plot(at, np.sin(6 * at), "--", color="#222222", label="without noise")
    panel.plot(at, Bumps()(at[:, None]) @ trace.weights[0], label="agent 0: rather too high than too low")
    panel.set(xlabel="input", ylabel="label")
    panel.legend(frameon=False, fontsize=9)
    save(figure, "own_parts")


if __name__ == "__main__":
    main()
