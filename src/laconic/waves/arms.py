"""An agent's own prediction beside the model that all share: five arms over the same data, and a stack of them.

The wave's model is for everybody. An agent that sees a corner of the world, or one that turns, can do better for
itself with what it has at hand, at no cost in bits. Its arms, in their order:

    wave      w of the waves
    shrunk    the same with ten times the ridge: at each adoption (H + 9 ridge I)^-1 H theta, H = n C + thick I
    personal  its own data around the model that all share: at each adoption P (b + ridge theta), P = (A + ridge I)^-1
    recent    least squares on its own data that forget by 0.98, with the leak of ``forgetting``
    quick     normalised gradient steps of 0.5

Each of them learns every sample; the first three by recursive least squares. The stack weighs them by their errors.
"""

from __future__ import annotations

import math

import numpy as np

from laconic._validate import Array
from laconic.guard.labels import LabelGuard
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.forgetting import forgetting_step
from laconic.waves.own import Own, rebuilt, recursive_step, reminded
from laconic.waves.rule import ArmNumbers, Numbers, Rule

ARMS = ("wave", "shrunk", "personal", "recent", "quick")
SHRUNK, PERSONAL, RECENT, QUICK = range(4)  # in the arrays of those beside the wave's

#: How much each arm is trusted before anything is known, and a little for ever.
FIRST = np.array([0.6, 0.2, 0.2 / 3, 0.2 / 3, 0.2 / 3])
MEMORY, BACK, STEEPEST = 0.99, 0.003, 5.0


class Stack:
    """Weights of the arms: steps along the exponentiated gradient of the error that their mixture would have had.

    With e the arms' errors of a round, E <- 0.99 E + e e', g = E w and q = w.g,

        w_k <- w_k exp(clip(-(g_k - q)/q, +-5)), normalised;  w <- 0.997 w + 0.003 w_0
    """

    def __init__(self) -> None:
        self.weights, self.errors = FIRST.copy(), np.zeros((len(FIRST), len(FIRST)))

    def learn(self, errors: Array) -> None:
        """The arms' errors of one round."""
        self.errors = MEMORY * self.errors + errors[:, None] * errors[None, :]
        slope = self.errors @ self.weights
        mean = float(self.weights @ slope)
        if mean > 0:
            grown = self.weights * np.exp(np.clip((mean - slope) / mean, -STEEPEST, STEEPEST))
            self.weights = (1 - BACK) * (grown / grown.sum()) + BACK * FIRST


def shrunk(spread: Array, weights: Array, more: float) -> tuple[Array, Array]:
    """(H + more I)^-1 and (H + more I)^-1 H w, of H by its inverse P: solutions of (I + more P) x = P and = w."""
    n_features = len(weights)
    both = np.linalg.solve(np.eye(n_features) + more * spread, np.column_stack([spread, weights]))
    matrix = both[:, :n_features]
    return 0.5 * (matrix + matrix.T), both[:, n_features].copy()


def rebuilt_arms(own: Own, numbers: ArmNumbers, theta: Array) -> tuple[list[Array], Array]:
    """P of ``shrunk``, ``personal`` and ``recent``, and the models of all arms but the wave's, of an agent's own sums.

    The last two forget, and begin anew at the personal model.
    """
    A, b, ridge = own.information, own.moments, own.rule.ridge
    P, w = rebuilt(A, b, numbers.shrinkage * ridge, theta)
    Q, v = rebuilt(A, b, ridge, theta)
    return [P, Q, np.eye(len(v)) / numbers.ridge], np.array([w, v, v, v])


class PersonalOwn(Own):
    """An agent's own part with arms of its own: what it predicts is their stack, what it shares is the wave's.

    Attributes
    ----------
    arms : array (4, D)
        The models of all arms but the wave's.
    spreads : list of three arrays (D, D)
        P of ``shrunk``, ``personal`` and ``recent``.
    """

    def __init__(self, rule: Rule, arithmetic: Arithmetic, n_features: int) -> None:
        super().__init__(rule, arithmetic, n_features)
        numbers = self.numbers = rule.arms or ArmNumbers()
        first = np.eye(n_features)
        ridges = numbers.shrinkage * rule.ridge, rule.ridge, numbers.ridge
        self.arms, self.spreads = np.zeros((4, n_features)), [first / ridge for ridge in ridges]
        self.stack, self.theta, self.following = Stack(), np.zeros(n_features), False
        self.guard = None if numbers.deviations is None else LabelGuard(numbers.deviations, numbers.usual)
        self._turn = 0

    @property
    def model(self) -> Array:
        """The stack, which is linear in the arms, as one model."""
        return np.asarray(self.stack.weights[0] * self.weights + self.stack.weights[1:] @ self.arms)

    @property
    def trust(self) -> Array:
        """The stack's weights of the arms."""
        return self.stack.weights.copy()

    @property
    def shared(self) -> Array:
        """The model that all share; the wave's own before there is one."""
        return self.theta if self.following else self.weights

    def learn(self, phi: Array, label: Numbers) -> Numbers:
        """Predict by the stack, then let it and every arm learn the label, held to what is usual."""
        label = float(label) if self.guard is None else self.guard(float(label))
        margins = np.array([self.weights @ phi, *(self.arms @ phi)])
        prediction = float(self.stack.weights @ margins)
        super().learn(phi, label)
        forgetting, numbers = self.rule.forgetting, self.numbers
        if forgetting < 1:
            self.spreads[SHRUNK] = self.spreads[SHRUNK] / forgetting
            self.spreads[PERSONAL] = self.spreads[PERSONAL] / forgetting
        if math.isnan(label):
            return prediction
        errors = margins - label
        self.stack.learn(errors)
        for arm in (SHRUNK, PERSONAL):
            self.spreads[arm], self.arms[arm] = recursive_step(self.spreads[arm], self.arms[arm], phi, 1.0, label)
        self.spreads[RECENT], self.arms[RECENT] = forgetting_step(
            self.spreads[RECENT],
            self.arms[RECENT],
            errors[1 + RECENT],
            phi,
            numbers.forgetting,
            numbers.ridge,
            self._turn,
        )
        square = float(phi @ phi)
        if square > 0:
            self.arms[QUICK] -= (numbers.step * errors[1 + QUICK] / square) * phi
        self._turn = (self._turn + 1) % len(phi)
        return prediction

    def adopt(self, spread: Array, weights: Array) -> None:
        """What a wave brought, for the arms that follow it; then each sample since."""
        since = list(self._since or ())
        super().adopt(spread, weights)
        self.theta, self.following = weights.copy(), True
        more = (self.numbers.shrinkage - 1) * self.rule.ridge
        P, w = shrunk(spread, weights, more)
        for phi, weight, target in since:
            P = P / self.rule.forgetting
            if weight > 0:
                P, w = recursive_step(P, w, phi, weight, target)
        self.spreads[SHRUNK], self.arms[SHRUNK] = P, w
        self.personalise()

    def remind(self, ridge: float) -> None:
        """Put so much of the ridge back into P, and as many times as much as there was into those of arms."""
        super().remind(ridge)
        for arm, times in ((SHRUNK, self.numbers.shrinkage), (PERSONAL, 1.0)):
            self.spreads[arm] = reminded(self.spreads[arm], times * ridge)

    def rebuild(self, theta: Array) -> None:
        """Make all arms anew, and trust them as in the beginning."""
        super().rebuild(theta)
        self.spreads, self.arms = rebuilt_arms(self, self.numbers, theta)
        self.stack = Stack()

    def personalise(self) -> None:
        """w = P (b + ridge theta) of the personal arm.

        Its P is (A + ridge I)^-1 already, kept by every sample; only where A forgets it is made anew.
        """
        ridge = self.rule.ridge
        if self.rule.forgetting < 1:
            inverse = np.linalg.inv(self.information + ridge * np.eye(len(self.theta)))
            self.spreads[PERSONAL] = 0.5 * (inverse + inverse.T)
        self.arms[PERSONAL] = self.spreads[PERSONAL] @ (self.moments + ridge * self.theta)

    def check_guard(self, numbers: Array, largest: float = np.inf) -> None:
        """ValueError unless labels of at most that size can have taught its guard these numbers."""
        if self.guard is not None:
            self.guard.check(numbers, largest)

    def parts(self) -> dict[str, Array]:
        """All of it as arrays; ``weights`` are those of the model that all share."""
        return {
            **super().parts(),
            "weights": self.shared.copy(),
            **self.arm_parts(),
        }

    def arm_parts(self) -> dict[str, Array]:
        """What there is beside the wave's part."""
        guard = np.zeros(0) if self.guard is None else self.guard.numbers()
        return {
            "adopted": self.theta.copy(),
            "following": np.array(int(self.following)),
            "arms": np.array([self.weights, *self.arms]),
            "arm_spreads": np.array([spread[np.tril_indices(len(spread))] for spread in self.spreads]),
            "stack": self.stack.weights.copy(),
            "stack_errors": self.stack.errors.copy(),
            "guard": guard,
            "turn": np.array(self._turn),
        }

    def restore(self, parts: dict[str, Array]) -> None:
        """Take over what ``parts`` gave."""
        super().restore({**parts, "weights": parts["arms"][0]})
        self.theta, self.arms = parts["adopted"].copy(), parts["arms"][1:].copy()
        size = len(self.theta)
        self.spreads = []
        for triangle in parts["arm_spreads"]:
            lower = np.zeros((size, size))
            lower[np.tril_indices(size)] = triangle
            self.spreads.append(lower + np.tril(lower, -1).T)
        self.stack.weights, self.stack.errors = parts["stack"].copy(), parts["stack_errors"].copy()
        self._turn, self.following = int(parts["turn"]), bool(parts["following"])
        if self.guard is not None:
            self.guard.restore(parts["guard"])
