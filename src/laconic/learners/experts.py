"""Experts: a few learners with different steps at every agent, and a vote that knows which of them to believe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from laconic import _validate, losses
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel import Channel
from laconic.learners.base import SPOKEN, Kernel, Learner, Sample, Voting, row_dot
from laconic.learners.schedules import Constant
from laconic.network import Heard
from laconic.waves.forgetting import forgetting_step

_DRIFT = 0.95  # the forgetting that is added for a world that turns
_WINDOW = 100  # labels over which the usual cost is known
_FLOOR = 0.01  # of the votes, shared by all: who was wrong for long can be right again
_FLATTEST = 0.05  # curvature that a sample counts with at least
_WORST = 50.0  # the exponent that a single label can cost an expert
_BENT = ("squared", "logistic", "hinge", "squared-hinge")  # losses whose curvature is compiled
_ROUNDING, _TINY = 1e-5, 1e-300  # of a file's numbers, which may be those of a run in single precision
_MOST_SEEN = 2.0**53  # labels: up to here each whole number is one
_MIXING, _MIXING_ALONE = 0.5, 1.0  # with least squares among the experts, and without


class ExpertsState(NamedTuple):
    """What each agent keeps, a row an agent.

    Attributes
    ----------
    weights : array (N, D)
        sum_k w_k theta_k: the model that predicts and is spoken of.
    models : array (N, K, D)
        theta_k, first those that step along the gradient, then those of least squares.
    votes : array (N, K)
        w_k.
    spread : array (N, R, D, D)
        P of each expert of least squares.
    cost : array (N,)
        v, what a prediction usually costs.
    seen : array (N,)
        Labels so far.
    """

    weights: Array
    models: Array
    votes: Array
    spread: Array
    cost: Array
    seen: Array


@final
class Experts(Learner):
    r"""A learner that needs no step: K experts at each agent, mixed by how well each of them predicts.

    The experts differ in how fast they learn. With m_k = theta_k.phi and votes w_k, agent i predicts sum_k w_k m_k.
    In its round t, counted by its labels from 1,

        e_k = m_k - y,  e = sum_k w_k e_k,  v <- v + (e^2 - v)/min(t, 100)
        u_k = w_k exp(-min(e_k^2/(2 v), 50)),  w = 0.99 u/sum u + 0.01/K

    An expert with a step mu moves along the gradient, one with a forgetting f by recursive least squares:

        theta_k <- theta_k - 2 mu e_k phi/max(1, |phi|^2)
        g = P phi,  n = f + s g.phi,  theta_k <- theta_k - g e_k/n,  P <- (P - s g g'/n)/f

    with s = 1 and P = I/ridge at first. Where nothing is seen P would grow without end; so, with m = (t-1) mod D and
    c = D (1-f) ridge, each time P <- P - c/(1 + c P_mm) P_m P_m'. Where f^D < 1/1000, theta_k follows: see
    ``laconic.waves.forgetting``.

    The agent speaks of half = sum_k w_k theta_k, through any channel, and draws all its experts to those that have
    just spoken: theta_k <- theta_k + mixing a_ij (theta-hat_j - half).

    For another loss l, whose curvature is at most c, e_k is l'(m_k)/max(1, c), e_k^2 is 2 l(m_k)/max(1, c), and s is
    the curvature there, max(l''(m_k)/max(1, c), 0.05); 1 where c = 0, as for the hinge.

    Without least squares, ``forgetting=()``, a sample costs O(K D) instead of O(D^2); take more steps then, such as
    (0.05, 0.1, 0.2, 0.4, 0.7).

    Models, votes and P are in double precision always; with ``dtype="float32"`` features and what is said are single.

    Parameters
    ----------
    steps : sequence of float
        mu of each expert that steps along the gradient.
    forgetting : sequence of float in (0, 1]
        f of each expert of least squares.
    ridge : float
        Of these.
    drift : bool
        Whether one more forgets much: f = 0.95, for a world that turns.
    mixing : float, optional
        How far to follow those that have just spoken; 0.5 by default, 1 without least squares.
    loss : str or Loss
    channel : Channel

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(300, 5, 2))
    >>> y = np.sin(4 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=20, bandwidth=0.5)
    >>> trace = lc.simulate(lc.Experts(), features, lc.Network.ring(5), X, y)
    >>> dense = lc.simulate(lc.ODKLA(), features, lc.Network.ring(5), X, y)
    >>> bool(trace.mse()[-1] < 0.5 * dense.mse()[-1])
    True
    """

    name = "Experts"
    listen = SPOKEN
    variants = ({}, {"forgetting": ()})

    def __init__(
        self,
        steps: Sequence[float] = (0.1, 0.5),
        forgetting: Sequence[float] = (0.99,),
        *,
        ridge: float = 0.1,
        drift: bool = False,
        mixing: float | None = None,
        loss: str | losses.Loss = "squared",
        channel: Channel = Channel(),  # noqa: B008 (immutable)
    ) -> None:
        super().__init__(regularization=0.0, loss=loss, channel=channel)
        _validate.instance("channel", channel, Channel, "a laconic.Channel")
        self.steps = _numbers("steps", steps)
        self.forgetting = _numbers("forgetting", forgetting, most=1.0)
        if not self.steps and not self.forgetting:
            raise ArgumentError("steps", "must not be empty where forgetting is: there would be no expert.")
        self.ridge = _validate.number("ridge", ridge, above=0)
        if not isinstance(drift, bool):
            raise ArgumentError("drift", f"must be True or False, got {_validate.shown(drift)}.")
        self.drift = drift
        self._mixing_given = mixing
        if mixing is None:
            mixing = _MIXING if self.memories else _MIXING_ALONE
        self.mixing = _validate.number("mixing", mixing, least=0)

    @property
    def memories(self) -> tuple[float, ...]:
        """The forgetting of each expert of least squares, that of ``drift`` included."""
        return (*self.forgetting, _DRIFT) if self.drift else self.forgetting

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As for every learner; a mixing that was not given stays so, since it depends on the experts."""
        return {**super().get_params(deep), "mixing": self._mixing_given}

    def kernel(self) -> Kernel | None:
        """Votes on its experts; None where the kernels do not know the curvature of a loss."""
        if self.memories and self.loss.kernel not in _BENT:
            return None
        voting = Voting(self.steps, self.memories, self.ridge)
        return Kernel("experts", Constant(1.0), mixing=self.mixing, experts=voting)

    def why_not(self, state: ExpertsState) -> str:
        """Votes that are no shares, labels that were not counted, P that is not positive, or another mixture."""
        if not (np.all(state.votes >= 0) and np.allclose(state.votes.sum(axis=1), 1, rtol=0, atol=_ROUNDING)):
            return "votes that are no shares"
        if not np.all((state.seen >= 0) & (state.seen <= _MOST_SEEN) & (state.seen == np.floor(state.seen))):
            return "labels that cannot be counted"
        if not np.all(state.cost >= 0):
            return "costs below zero"
        mixed, size = _mixed(state), np.abs(state.models).max(initial=0.0)
        if not np.all(np.abs(mixed - state.weights) <= _ROUNDING * (1 + size)):
            return "weights that are no mixture of its experts"
        for r, f in enumerate(self.memories):
            n = state.weights.shape[1]
            leak = min(1.0, n * (1 - f)) * self.ridge if f < 1 else self.ridge
            most = 2 / max(leak * f ** (n + 1), _TINY)
            if not all(_is_spread(spread, most) for spread in state.spread[:, r]):
                return "a spread that no samples have"
        return ""

    def precise(self) -> frozenset[str]:
        """All but the mixture."""
        return frozenset({"models", "votes", "spread", "cost", "seen"})

    def describe(self) -> str:
        """Its experts."""
        steps = ", ".join(f"{step:g}" for step in self.steps)
        memories = ", ".join(f"{f:g}" for f in self.memories)
        words = [f"steps {steps}"] * bool(steps) + [f"forgetting {memories}, ridge {self.ridge:g}"] * bool(memories)
        return "; ".join(words)

    def advice(self) -> str:
        """To take smaller steps."""
        return "every expert was lost; lower the largest of its steps, or raise ridge."

    def init(self, n_agents: int, n_features: int) -> ExpertsState:
        """theta_k = 0, w_k = 1/K, P = I/ridge."""
        n_least_squares = len(self.memories)
        n_experts = len(self.steps) + n_least_squares
        first = np.eye(n_features) / self.ridge
        return ExpertsState(
            np.zeros((n_agents, n_features)),
            np.zeros((n_agents, n_experts, n_features)),
            np.full((n_agents, n_experts), 1 / n_experts),
            np.tile(first, (n_agents, n_least_squares, 1, 1)),
            np.zeros(n_agents),
            np.zeros(n_agents),
        )

    def step(self, state: ExpertsState, sample: Sample, heard: Heard) -> tuple[ExpertsState, dict[str, Array]]:
        """Vote on the experts, then let each of them learn; nothing of that without a label."""
        phi, label = sample.phi.astype(np.float64), sample.label.astype(np.float64)[:, None]
        known = ~np.isnan(label)
        margins = np.einsum("ikd,id->ik", state.models, phi)
        mixed = (state.votes * margins).sum(axis=1, keepdims=True)

        # What it cost, and whom to believe.
        seen = state.seen + known[:, 0]
        cost = state.cost + (self._cost(mixed, label)[:, 0] - state.cost) / np.clip(seen, 1, _WINDOW)
        votes = self._vote(state.votes, self._cost(margins, label), cost[:, None])

        # What each expert learns of it.
        slope = self.loss.slope(margins, label) / self._scale
        n_steps = len(self.steps)
        lengths = 2 * np.array(self.steps) / np.maximum(1.0, row_dot(phi, phi))[:, None]
        models = state.models.copy()
        models[:, :n_steps] -= (lengths * slope[:, :n_steps])[:, :, None] * phi[:, None, :]
        spread = state.spread
        if self.memories:
            bend, turn = self._bend(margins[:, n_steps:], label), state.seen.astype(int) % phi.shape[1]
            f = np.array(self.memories)
            spread, models[:, n_steps:] = forgetting_step(
                spread, models[:, n_steps:], slope[:, n_steps:], phi[:, None, :], f, self.ridge, turn[:, None], bend
            )
        learned = ExpertsState(
            state.weights,
            np.where(known[:, :, None], models, state.models),
            np.where(known, votes, state.votes),
            np.where(known[:, :, None, None], spread, state.spread),
            np.where(known[:, 0], cost, state.cost),
            seen,
        )
        return learned._replace(weights=_mixed(learned)), {"error": np.where(known, mixed - label, 0.0)[:, 0]}

    def hear(self, state: ExpertsState, heard: Heard) -> ExpertsState:
        """All experts follow those that have just spoken, and with them their mixture."""
        models = state.models + (self.mixing * heard.mixture)[:, None, :]
        return state._replace(models=models, weights=_mixed(state._replace(models=models)))

    def moved(self, state: ExpertsState, weights: Array) -> ExpertsState:
        """All experts move by as much as their mixture does."""
        by = weights.astype(np.float64) - state.weights
        return state._replace(weights=weights, models=state.models + by[:, None, :])

    @property
    def _scale(self) -> float:
        """max(1, c): what makes l'/scale the error and 2 l/scale its square, for the squared loss."""
        return max(1.0, self.loss.curvature)

    def _cost(self, margins: Array, label: Array) -> Array:
        """e^2, or what stands for it."""
        return 2 * self.loss.value(margins, label) / self._scale

    def _bend(self, margins: Array, label: Array) -> Array:
        """s, the curvature with which a sample counts."""
        if not self.loss.curvature > 0:
            return np.ones_like(margins)
        return np.maximum(self.loss.bend(margins, label) / self._scale, _FLATTEST)

    def _vote(self, votes: Array, costs: Array, usual: Array) -> Array:
        """u_k = w_k exp(-min(e_k^2/(2 v), 50)), w = 0.99 u/sum u + 0.01/K; where v = 0 nothing is to be told apart."""
        exponents = np.minimum(costs, 2 * _WORST * usual) / np.where(usual > 0, 2 * usual, 1.0)
        believed = votes * np.exp(-exponents)
        shares = believed / believed.sum(axis=1, keepdims=True)
        return (1 - _FLOOR) * shares + _FLOOR / votes.shape[1]


def _is_spread(spread: Array, most: float) -> bool:
    """Whether that can be P: symmetric, positive but for rounding, and no entry beyond ``most``."""
    if not (np.array_equal(spread, spread.T) and np.abs(np.diag(spread)).max() <= most):
        return False
    try:
        np.linalg.cholesky(spread + _ROUNDING * np.abs(np.diag(spread)).max() * np.eye(len(spread)))
    except np.linalg.LinAlgError:
        return False
    return True


def _mixed(state: ExpertsState) -> Array:
    """sum_k w_k theta_k."""
    return np.einsum("ik,ikd->id", state.votes, state.models).astype(state.weights.dtype)


def _numbers(name: str, values: Sequence[float], most: float = np.inf) -> tuple[float, ...]:
    """Positive numbers, at most ``most``."""
    given: object = values
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ArgumentError(name, f"must be a list of numbers, got {_validate.shown(values)}.")
    checked = tuple(_validate.number(name, value, above=0) for value in values)
    if max(checked, default=0.0) > most:
        raise ArgumentError(name, f"must hold numbers up to {most:g}, got {_validate.shown(values)}.")
    return checked
