"""An agent's own data and model: A, b, c, m; P and w.

Every sample becomes a weighted square s (z - w.phi)^2. For the squared loss s = 1 and z = y; for another, at the
prediction p (cut to +-8), s = max(l'', 0.05) and z = p - l'/s; for the squared hinge s = 1 and z = y where the margin
is violated, and s = 0 where it is not. Several outputs have one s and a z each: all squares are then the squared
loss's, and a sample of which one label is missing is not learned from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.losses import Loss
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.rule import Numbers, Rule
from laconic.waves.terms import dots

_FLATTEST, _FARTHEST = 0.05, 8.0
_FAR = 3.0  # what one sample may say beside others, in root mean squares


def square_of(loss: Loss, prediction: Array, label: Array) -> tuple[Array, Array]:
    """Weight s and target z of the square that stands for the loss, row by row; s = 0 where there is no label.

    Labels (rows, K) of several outputs are targets as they are.
    """
    missing = np.isnan(label)
    if label.ndim > 1:
        without = np.isnan(label.sum(axis=1))
        return np.where(without, 0.0, 1.0), np.where(without[:, None], 0.0, label)
    if loss.name in ("squared", "squared-hinge"):
        weight, target = np.ones_like(prediction), label
        if loss.binary:
            weight = np.where(label * prediction < 1, 1.0, 0.0)
    else:
        near = np.clip(prediction, -_FARTHEST, _FARTHEST)
        weight = np.maximum(loss.bend(near, label), _FLATTEST)
        target = near - loss.slope(near, label) / weight
    return np.where(missing, 0.0, weight), np.where(missing, 0.0, target)


def recursive_step(spread: Array, weights: Array, phi: Array, weight: float, target: Numbers) -> tuple[Array, Array]:
    """P and w after one more square: g = P phi, n = 1 + s g.phi, w + s g (z - w.phi)/n, P - s g g'/n.

    Where n < 0, P is not positive any more; then all is NaN, as the root of n is in the compiled version.
    """
    gain = spread @ phi
    scale = weight / (1.0 + weight * float(gain @ phi))
    scale = scale if scale >= 0 else np.nan
    error = target - weights @ phi
    return spread - scale * (gain[:, None] * gain[None, :]), weights + np.multiply.outer(scale * error, gain)


class Seen(NamedTuple):
    """What own data say of a model theta: r = b - A theta, q = c - 2 b.theta + theta'A theta, d'A d."""

    moments: Array
    square: Numbers
    bend: Numbers


class Report(NamedTuple):
    """What a message is made of: m, A to be added to, c; r, q, d'A d at a model; pull and doubt of fresh samples."""

    n: float
    information: Array
    energy: Numbers
    moments: Array
    square: Numbers
    bend: Numbers
    pull: Numbers
    doubt: Numbers


class Probe(NamedTuple):
    """A direction u in which fresh samples are measured: sums of x = s e u.phi, e their errors at theta, and of x^2.

    Each x is cut to three times the root mean square of those so far and itself, ``fresh`` of them.
    """

    direction: Array
    pull: Numbers
    doubt: Numbers
    fresh: Numbers


class Own:
    """One agent's own part, learned from its samples alone and, now and then, replaced by what a wave brought.

    Attributes
    ----------
    information, moments, square, count
        A = sum s phi phi', b = sum s z phi, c = sum s z^2, m.
    weights : array (D,)
        w, the model that predicts.

    Of several outputs ``weights`` and ``moments`` are (K, D), ``square`` is (K,).
    """

    def __init__(self, rule: Rule, arithmetic: Arithmetic, n_features: int) -> None:
        self.rule, self.arithmetic = rule, arithmetic
        self.information = np.zeros((n_features, n_features))
        self.moments = np.zeros(rule.models(n_features))
        self.square: Numbers = 0.0 if rule.outputs == 1 else np.zeros(rule.outputs)
        self.count = 0.0
        self.spread = np.eye(n_features) / rule.ridge
        self.weights = np.zeros(rule.models(n_features))
        self._since: list[tuple[Array, float, Numbers]] | None = None
        self._watched: Array = self.weights
        self._probe: Probe | None = None

    @property
    def probe(self) -> Probe | None:
        """What fresh samples say, those since ``watch``; None before that."""
        return self._probe

    def watch(self, theta: Array, probe: Probe) -> None:
        """Samples from here on are fresh: their errors at ``theta`` are added to what ``probe`` says already."""
        self._watched, self._probe = theta, probe

    @property
    def model(self) -> Array:
        """The model that predicts."""
        return self.weights

    @property
    def trust(self) -> Array:
        """How much each of several models is trusted in a prediction; here there is one."""
        return np.ones(1)

    @property
    def shared(self) -> Array:
        """The model for anybody's data."""
        return self.weights

    def learn(self, phi: Array, label: Numbers) -> Numbers:
        """Predict w.phi, then learn; nothing is learned from a missing label (NaN), but time passes."""
        prediction = self.weights @ phi
        squares = square_of(self.rule.loss, np.array([prediction]), np.array([label]))
        weight, target = float(squares[0][0]), squares[1][0]
        f = self.rule.forgetting
        if f < 1:
            self.spread /= f
            self.information *= f
            self.moments *= f
            self.square, self.count = self.square * f, self.count * f
        if not np.isnan(label).any():
            self.count += 1.0
        if weight > 0:
            self.spread, self.weights = recursive_step(self.spread, self.weights, phi, weight, target)
            self.information += weight * (phi[:, None] * phi[None, :])
            self.moments += np.multiply.outer(weight * target, phi)
            self.square = self.square + weight * target * target
            if self._probe is not None:
                self._probe = watched(self._probe, self._watched, phi, weight, target)
        if self._since is not None:
            self._since.append((phi, weight, target))
        return prediction

    def look_back(self, theta: Array, step: Array) -> Seen:
        """What the data say of a model, and of its last step d."""
        at_theta = theta @ self.information
        q = self.square - 2 * dots(self.moments, theta) + dots(at_theta, theta)
        return Seen(self.moments - at_theta, q, dots(step @ self.information, step))

    def report(self, theta: Array, step: Array) -> Report:
        """All that there is to say at a model, and of its last step d."""
        energy, probe = self.square, self.probe
        pull, doubt = (0.0 * energy, 0.0 * energy) if probe is None else probe[1:3]
        return Report(self.count, self.total(), energy, *self.look_back(theta, step), pull, doubt)

    def total(self) -> Array:
        """A, to be added to."""
        return self.information.copy()

    def mark(self) -> None:
        """Samples from here on are "since": a wave has taken the others with it."""
        self._since = []

    def adopt(self, spread: Array, weights: Array) -> None:
        """P and w of a wave, then each sample since; P is copied."""
        self.spread, self.weights = spread.copy(), weights.copy()
        for phi, weight, target in self._since or ():
            if self.rule.forgetting < 1:
                self.spread /= self.rule.forgetting
            if weight > 0:
                self.spread, self.weights = recursive_step(self.spread, self.weights, phi, weight, target)
        self._since = None

    def replace(self, spread: Array, weights: Array) -> None:
        """P and w that hold all samples so far."""
        self.spread, self.weights = spread, weights

    def remind(self, ridge: float) -> None:
        """Put so much of the ridge back into P; w stays what it is."""
        self.spread = reminded(self.spread, ridge)

    def rebuild(self, theta: Array) -> None:
        """Make P and w anew of the sums A and b, around what all share."""
        self.replace(*rebuilt(self.information, self.moments, self.rule.ridge, theta))

    def check_guard(self, numbers: Array, largest: float = np.inf) -> None:
        """ValueError unless labels of at most that size can have taught its guard these numbers; here there is none."""

    def parts(self) -> dict[str, Array]:
        """All of it as arrays."""
        n_features, outputs = len(self.information), self.rule.outputs
        since = self._since or []
        return {
            "weights": self.weights,
            "spread": self.spread,
            "own": self.information,
            "moments": self.moments,
            "square": np.array(self.square),
            "count": np.array(self.count),
            "marked": np.array(-1 if self._since is None else len(since)),
            "since": np.array([[*phi, weight, *np.atleast_1d(target)] for phi, weight, target in since]).reshape(
                -1, n_features + 1 + outputs
            ),
        }

    def restore(self, parts: dict[str, Array]) -> None:
        """Take over what ``parts`` gave."""
        self.weights, self.spread = parts["weights"].copy(), parts["spread"].copy()
        self.information, self.moments = parts["own"].copy(), parts["moments"].copy()
        self.square, self.count = number_of(parts["square"]), float(parts["count"])
        marked = int(parts["marked"])
        rows = parts["since"][: max(marked, 0)]
        n = len(self.information)
        one = self.rule.outputs == 1
        since = [(row[:n].copy(), float(row[n]), float(row[n + 1]) if one else row[n + 1 :].copy()) for row in rows]
        self._since = None if marked < 0 else since


def watched(probe: Probe, theta: Array, phi: Array, weight: float, target: Numbers) -> Probe:
    """What is known of a direction after one more sample, or that of each output."""
    x = weight * (target - theta @ phi) * (probe.direction @ phi)
    most = _FAR * np.sqrt((probe.doubt + x * x) / (probe.fresh + 1.0))
    x = np.maximum(-most, np.minimum(most, x))
    return Probe(probe.direction, probe.pull + x, probe.doubt + x * x, probe.fresh + 1.0)


def reminded(spread: Array, ridge: float) -> Array:
    """(P^-1 + ridge I)^-1, symmetric to the bit: in no direction more than 1/ridge.

    P/f in every round leaves f^t of the ridge after t rounds; where samples say nothing of a direction P grows without
    bounds, until rounding makes one of its eigenvalues negative.
    """
    made = np.linalg.solve(np.eye(len(spread)) + ridge * spread, spread)
    return 0.5 * (made + made.T)


def rebuilt(information: Array, moments: Array, ridge: float, theta: Array) -> tuple[Array, Array]:
    """P = (A + ridge I)^-1 and w = P (b + ridge theta), eigenvalues of A at least 0; LinAlgError if A is not finite."""
    values, vectors = np.linalg.eigh(information)
    made = (vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T
    made = 0.5 * (made + made.T)
    return made, (moments + ridge * theta) @ made


def number_of(array: Array) -> Numbers:
    """A number, or a number for each output, of an array that was kept."""
    return array.copy() if array.ndim else float(array)
