"""A stream learned by what ``choose`` chooses, and beside it what else could have been done with the same rows.

Nothing peeks. Until every agent has seen its first rows, it predicts by the small model of ``beginning``, and before
that by the running mean of its own labels; then features, learner and centre are chosen, those rows are learned, too,
and from there on the learner predicts. The first round, in which nobody knows anything, is not scored.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.defaults.beginning import Beginning, begin, with_costs
from laconic.defaults.choice import PREFIX, Choice, choose
from laconic.defaults.labels import CLASSES, Labels, recognise
from laconic.engine import simulate
from laconic.features import Scaling
from laconic.guard.labels import LabelGuard
from laconic.learners import Learner, Personal
from laconic.network import Network
from laconic.offline import recursive_least_squares
from laconic.trace import Trace

_LATE = 10  # the last tenth shows what models are worth by now
_RIDGE = 0.05  # of the centre: that of the waves
_LINEAR_RIDGE = 0.1


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """Predictions (T, N, K) of encoded labels, and what they are worth against ``truth`` of the same shape."""

    choice: Choice
    predictions: Array
    truth: Array

    @property
    def classes(self) -> bool:
        """Whether classes are predicted."""
        return self.choice.task == CLASSES

    def accuracy(self, late: bool = False) -> float:
        """The share of rows whose class was predicted."""
        guess, truth = (self._index(part) for part in (self.predictions, self.truth))
        scored = self._scored(late)
        return float(np.mean(guess[scored] == truth[scored]))

    def mse(self, late: bool = False) -> float:
        """Mean squared error, in the labels' own unit; of classes, of their signs."""
        scored = self._scored(late)
        return float(np.mean((self.predictions[scored] - self.truth[scored]) ** 2)) * self.choice.labels.unit**2

    def r2(self, late: bool = False) -> float:
        """1 - mse / variance of the labels that were scored; 0 where they do not vary."""
        truth = self.truth[self._scored(late)]
        variance = float(truth.var(axis=0).mean()) * self.choice.labels.unit**2
        return 1 - self.mse(late) / variance if variance > 0 else 0.0

    def summary(self) -> dict[str, float]:
        """All of them by name."""
        found = {"r2": self.r2(), "r2_last_tenth": self.r2(True), "mse": self.mse()}
        if self.classes:
            found |= {"accuracy": self.accuracy(), "accuracy_last_tenth": self.accuracy(True)}
        return found

    def _index(self, scores: Array) -> Array:
        return (scores[..., 0] > 0).astype(int) if scores.shape[-1] == 1 else np.argmax(scores, axis=-1)

    def _scored(self, late: bool) -> Array:
        scored = ~np.isnan(self.truth[..., 0])
        scored[:1] = False
        if late:  # streams may end early, so it is the last tenth of what is scored that counts
            rows = scored.sum(axis=1).cumsum()
            scored[rows <= rows[-1] - max(1, rows[-1] // _LATE)] = False
        return scored


@final
@dataclass(frozen=True, eq=False)
class Untuned:
    """What came of it.

    Attributes
    ----------
    choice : Choice
    network : Network
    scores : Scores
        Of the agents' own predictions.
    traces : tuple of Trace
        One for all models, or one for each; what the small model of the beginning sent is counted in the first.
    seconds : float
    present : bool array (T, N)
        Where there is a row.
    beginning : Beginning or None
        What predicted in the first rounds.
    """

    choice: Choice
    network: Network
    X: Array
    scores: Scores
    traces: tuple[Trace, ...]
    seconds: float
    present: Array
    beginning: Beginning | None = None

    @property
    def bits(self) -> int:
        """What all agents sent together."""
        return sum(int(trace.bits.sum()) for trace in self.traces)

    @property
    def messages(self) -> int:
        """How many messages that were."""
        return sum(int(trace.sent.sum()) for trace in self.traces)

    @cached_property
    def held(self) -> tuple[int, int]:
        """How many labels were clipped to what is usual, and how many were left out since they cannot be."""
        learner = self.choice.learner
        if not isinstance(learner, Personal) or learner.deviations is None:
            return 0, 0
        n_clipped = n_left = 0
        for labels in self.scores.truth[..., 0].T:
            guard = LabelGuard(learner.deviations, learner.usual)
            given = labels[~np.isnan(labels)]
            kept = np.array([guard(label) for label in given.tolist()])
            n_left += int(np.isnan(kept).sum())
            n_clipped += int((kept != given).sum()) - int(np.isnan(kept).sum())
        return n_clipped, n_left

    @property
    def global_mse(self) -> float:
        """The error of every agent's model on everybody's rows."""
        return float(np.mean([trace.global_mse()[-1] for trace in self.traces])) * self.choice.labels.unit**2

    @cached_property
    def baselines(self) -> dict[str, Scores]:
        """The mean so far, a linear model over all rows so far, agents that never speak, and a centre that has all."""
        truth, early = self.scores.truth, self.beginning
        found = {
            "mean": running_mean(truth, together=True),
            "linear": online_linear(self.X, truth, self.present, PREFIX if early is None else early.start),
        }
        alone = self.choice.learner.alone(len(truth))
        if alone is not None:
            said = _predictions(_simulate(self.choice, alone, self.network, self.X, truth), truth)
            quiet = None if early is None else early.choice.learner.alone(len(truth))
            first = None if early is None or quiet is None else early.predictions(early.run(quiet))
            found["local"] = _begun(said, truth, early, first)
        parts = [
            recursive_least_squares(self.choice.features, self.X, column, centralised=True, regularization=_RIDGE)
            for column in np.moveaxis(truth, -1, 0)
        ]
        found["central"] = _begun(
            np.stack(parts, axis=-1), truth, early, None if early is None else early.central(_RIDGE)
        )
        return {name: Scores(self.choice, predictions, truth) for name, predictions in found.items()}


def learn_untuned(
    X: Array,
    y: Array,
    network: Network,
    *,
    task: str | None = None,
    classes: object = None,
    budget: str = "usual",
    n_frequencies: int | None = None,
    seed: int = 0,
    present: Array | None = None,
    progress: bool = False,
) -> Untuned:
    """Learn the stream ``X`` (T, N, d), ``y`` (T, N) with nothing said: raw inputs, raw labels, NaN where missing.

    What labels are, and which classes there are, is the only thing that all of ``y`` is asked for. ``present`` (T, N)
    says where there is a row at all, of streams of unequal length: elsewhere inputs are not looked at.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> from laconic.defaults.untuned import learn_untuned
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([20.0, 1e5], [5.0, 2e4], size=(200, 5, 2))
    >>> run = learn_untuned(X, 300 * np.sin(X[..., 0] / 5) + X[..., 1] / 1e3, lc.Network.ring(5))
    >>> run.scores.r2(late=True) > 0.9 > run.baselines["linear"].r2(late=True)
    True
    """
    task = task or recognise(y)
    if task == CLASSES and classes is None:
        classes = Labels.measure(y, task).classes
    present = np.ones(y.shape, dtype=bool) if present is None else present
    first = present[:PREFIX]
    choice = choose(
        X[:PREFIX][first],
        y[:PREFIX][first],
        task=task,
        classes=classes,
        budget=budget,
        n_frequencies=n_frequencies,
        seed=seed,
    )
    started = time.perf_counter()
    encoded = choice.labels.encode(y)
    truth = encoded[..., None] if encoded.ndim == 2 else encoded
    traces = _simulate(choice, choice.learner, network, X, truth, progress)
    early = first_said = None
    if choice.channel is None:
        about: dict[str, Any] = {"budget": budget, "n_frequencies": choice.features.n_frequencies, "seed": seed}
        early = begin(X, y, network, present, choice.labels, **about)
    if early is not None:
        first_trace = early.run(early.choice.learner)
        traces[0], first_said = with_costs(traces[0], first_trace), early.predictions(first_trace)
    seconds = time.perf_counter() - started
    scores = Scores(choice, _begun(_predictions(traces, truth), truth, early, first_said), truth)
    return Untuned(choice, network, X, scores, tuple(traces), seconds, present, early)


def _simulate(
    choice: Choice, learner: Learner, network: Network, X: Array, truth: Array, progress: bool = False
) -> list[Trace]:
    """One run for all models, or one for each, over the same features."""
    columns = [truth] if learner.outputs > 1 else [np.ascontiguousarray(part) for part in np.moveaxis(truth, -1, 0)]
    about: dict[str, Any] = {"collective": True, "progress": progress}
    return [simulate(learner, choice.features, network, X, column, **about) for column in columns]


def _predictions(traces: list[Trace], truth: Array) -> Array:
    return np.concatenate([trace.predictions.reshape(*truth.shape[:2], -1) for trace in traces], axis=-1)


def _begun(predictions: Array, truth: Array, early: Beginning | None, said: Array | None) -> Array:
    """Predictions as they can be made: the running mean of an agent's own labels, then the small model, then these."""
    found = np.concatenate([running_mean(truth[:PREFIX]), predictions[PREFIX:]])
    if early is not None and said is not None:
        found[early.start : len(said)] = said[early.start :]
    return found


def running_mean(truth: Array, together: bool = False) -> Array:
    """The mean of each agent's labels before each round, or of everybody's; 0 before the first."""
    known = ~np.isnan(truth)
    sums, counts = np.nancumsum(truth, axis=0), known.cumsum(axis=0)
    if together:
        sums, counts = (np.broadcast_to(part.sum(axis=1, keepdims=True), truth.shape) for part in (sums, counts))
    means = np.zeros(truth.shape)
    means[1:] = sums[:-1] / np.maximum(counts[:-1], 1)
    return means


def online_linear(X: Array, truth: Array, present: Array | None = None, start: int = PREFIX) -> Array:
    """Predictions of one linear model that learns all agents' rows, by recursive least squares, round by round.

    Inputs are scaled by the first eight rounds, until then by the first ``start``, and before that it is the mean.
    """
    means, n_first = running_mean(truth), len(truth[:PREFIX])
    early = _least_squares(X[:n_first], truth[:n_first], present, start)
    return np.concatenate([means[:start], early[start:], _least_squares(X, truth, present, PREFIX)[n_first:]])


def _least_squares(X: Array, truth: Array, present: Array | None, start: int) -> Array:
    first = X[:start] if present is None else X[:start][present[:start]]
    scaling = Scaling.measure(first.reshape(-1, X.shape[-1]))
    n_rounds, n_agents = X.shape[:2]
    inputs = np.concatenate([scaling.standard(X), np.ones((n_rounds, n_agents, 1))], axis=-1)
    size = inputs.shape[-1]
    spread, weights = np.eye(size) / _LINEAR_RIDGE, np.zeros((size, truth.shape[-1]))
    predictions = np.empty(truth.shape)
    for t in range(n_rounds):
        predictions[t] = inputs[t] @ weights
        known = ~np.isnan(truth[t, :, 0])
        rows = inputs[t, known]
        gain = spread @ rows.T
        share: Any = np.linalg.solve(np.eye(len(rows)) + rows @ gain, gain.T)
        weights += share.T @ (truth[t, known] - predictions[t, known])
        spread -= gain @ share
    return predictions
