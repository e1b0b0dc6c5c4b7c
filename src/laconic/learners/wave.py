"""WaveRLS: recursive least squares at every agent, and waves over a tree that tell everybody what all know together."""

from __future__ import annotations

from typing import NamedTuple, Self, final

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.learners.base import Learner, Sample, Speech, row_dot
from laconic.network import Heard
from laconic.waves import Rule
from laconic.waves.own import recursive_step, square_of
from laconic.waves.rule import NEVER


class WaveState(NamedTuple):
    """Models w and their spreads P, a row an agent: what recursive least squares keeps between waves."""

    weights: Array
    spread: Array


@final
class WaveRLS(Learner):
    """Central accuracy for a hundredth of the bits: recursive least squares, and O(log T) waves over a spanning tree.

    Every agent does recursive least squares on what it sees. At rounds that grow by half, a wave runs up a tree and
    down again and leaves every agent with nearly what a centre would know: see ``laconic.waves``. A sample costs
    O(D^2), D the number of features, and memory is (3 + children) D^2 numbers an agent, however many agents there are.
    The waves themselves need a tree and rounds that all agents count alike.

    It computes in double precision always; with ``dtype="float32"`` inputs and predictions alone are single.

    Parameters
    ----------
    ridge : float
        What is added to the diagonal of the information, once for the whole stream.
    floor : float
        What is added besides for every sample: directions that carry less are not told apart.
    growth : float
        A wave starts when so many times the rounds of the last one are over.
    kappa : float
        What may be left out of a matrix, in deviations of its estimate. From 3 on it is unsafe.
    nu : float, optional
        Fineness of a matrix's terms; 1/sqrt(D) by default.
    delta : float
        Step of the vectors, in deviations of their estimate.
    first : int
        The round after which the first wave starts.
    most : int
        Terms of a matrix in one message, at the most.
    forgetting : float in (0, 1]
        How much a sample's weight shrinks with each round; 1 forgets nothing.
    loss : str or Loss
        "squared", or another, of which every sample contributes a square that touches it where the prediction was.
    outputs : int
        K labels a sample, as of K classes: y is (T, N, K), predictions too, and models are (N, K, D). All outputs share
        the matrices, which are most of the work and of the bits; each of them adds a vector to a message. The loss is
        the squared one then, and a sample of which one label is missing is not learned from.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(300, 5, 2))
    >>> y = np.sin(4 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=20, bandwidth=0.5)
    >>> trace = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(5), X, y)
    >>> dense = lc.simulate(lc.ODKLA(), features, lc.Network.ring(5), X, y)
    >>> bool(trace.mse()[-1] < 0.2 * dense.mse()[-1] and trace.bits.sum() < 0.05 * dense.bits.sum())
    True

    Three classes, a score each: +1 where a sample is of the class, -1 where it is not.

    >>> classes = np.digitize(y, [0.0, 0.3])
    >>> scores = np.where(classes[..., None] == np.arange(3), 1.0, -1.0)
    >>> trace = lc.simulate(lc.WaveRLS(outputs=3), features, lc.Network.ring(5), X, scores)
    >>> trace.predictions.shape, bool(trace.error_rate()[-1] < 0.15)
    ((300, 5, 3), True)
    """

    name = "WaveRLS"
    speech = Speech.OWN

    def __init__(
        self,
        ridge: float = 0.05,
        floor: float = 1e-4,
        growth: float = 1.5,
        kappa: float = 1.0,
        nu: float | None = None,
        delta: float = 0.25,
        first: int = 1,
        most: int = 40,
        forgetting: float = 1.0,
        loss: str | losses.Loss = "squared",
        outputs: int = 1,
    ) -> None:
        super().__init__(regularization=0.0, loss=loss, channel=None)
        self.ridge = _validate.number("ridge", ridge, above=0)
        self.floor = _validate.number("floor", floor, least=0)
        self.growth = _validate.number("growth", growth, above=1)
        self.kappa = _validate.number("kappa", kappa, above=0)
        self.nu = None if nu is None else _validate.number("nu", nu, above=0)
        self.delta = _validate.number("delta", delta, above=0)
        self.first = _validate.integer("first", first, least=1)
        self.most = _validate.integer("most", most, least=0)
        self.forgetting = _validate.number("forgetting", forgetting, above=0)
        if self.forgetting > 1:
            raise ArgumentError("forgetting", f"must be at most 1, got {_validate.shown(forgetting)}.")
        self.outputs = _validate.integer("outputs", outputs, least=1, most=2**16)
        if self.outputs > 1 and self.loss.name != "squared":
            raise ArgumentError("outputs", f"must be 1 for the {self.loss.name} loss, got {self.outputs}.")

    @classmethod
    def frugal(cls, **changes: float) -> Self:
        """Half the bits for a few percent of accuracy: coarser terms and vectors, and fewer waves.

        >>> import laconic as lc
        >>> lc.WaveRLS.frugal(ridge=0.02).kappa
        2.0
        """
        coarse = {"kappa": 2.0, "nu": 0.07, "floor": 3e-4, "growth": 2.0, "delta": 0.35}
        return cls(**{**coarse, **changes})  # type: ignore[arg-type]

    def rule(self) -> Rule:
        """The parameters, for the nodes that run them."""
        given = Rule(**self.parameters())
        return given._replace(first=min(given.first, NEVER), most=min(given.most, NEVER))

    def alone(self, n_rounds: int) -> WaveRLS:
        """Recursive least squares with the same ridge, whose first wave never comes."""
        return WaveRLS(**{**self.parameters(), "first": _validate.integer("n_rounds", n_rounds, least=0) + 1})

    def describe(self) -> str:
        """What decides how well it learns and how much it says."""
        forgets = f", forgetting {self.forgetting:g}" if self.forgetting < 1 else ""
        return f"ridge {self.ridge:g}, waves at rounds that grow by {self.growth:g}, kappa {self.kappa:g}{forgets}"

    def advice(self) -> str:
        """What is left where even a model that is made anew of an agent's own samples is out of bounds."""
        return "a model made anew of an agent's own samples leaves all bounds, too; scale X and y, or lower kappa."

    def init(self, n_agents: int, n_features: int) -> WaveState:
        """P = I/ridge, w = 0."""
        spread = np.repeat(np.eye(n_features)[None] / self.ridge, n_agents, axis=0)
        return WaveState(np.zeros((n_agents, *self.rule().models(n_features))), spread)

    def step(self, state: WaveState, sample: Sample, heard: Heard) -> tuple[WaveState, dict[str, Array]]:
        """What an agent does in a round without a wave: P/f, then recursive least squares with the new sample."""
        phi = sample.phi if self.outputs == 1 else sample.phi[:, None]
        weights, spread = state.weights.copy(), state.spread / self.forgetting
        weight, target = square_of(self.loss, row_dot(weights, phi), sample.label)
        for i in np.flatnonzero(weight > 0):
            spread[i], weights[i] = recursive_step(spread[i], weights[i], sample.phi[i], float(weight[i]), target[i])
        return WaveState(weights, spread), {"weight": weight}
