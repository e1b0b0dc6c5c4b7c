"""river models: one agent that learns from a stream of dicts, a sample at a time.

Reached as ``lc.river``. A model is what one agent of a network would be on its own; scale the features before it, the
river way: ``preprocessing.StandardScaler() | lc.river.Regressor()``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, final

from laconic import _extras, _validate
from laconic.estimators import usual
from laconic.estimators.records import Records, not_a_number
from laconic.estimators.solo import Solo
from laconic.learners import Experts, Learner

_extras.need("river", "lc.river")

from river import base  # noqa: E402

__all__ = ["Classifier", "Regressor"]


class _LoneAgent:
    """What both models share: parameters, and the way from a dict to the agent."""

    _binary: bool

    def __init__(
        self,
        *,
        n_frequencies: int = 100,
        bandwidth: float | str = "scale",
        learner: Learner | None = None,
        seed: int = 0,
    ) -> None:
        self.n_frequencies = _validate.integer("n_frequencies", n_frequencies, least=1)
        usual.checked_bandwidth(bandwidth, 1, 1.0)
        self.bandwidth = bandwidth
        usual.checked_learner(learner, self._binary)
        self.learner = learner
        self.seed = _validate.integer("seed", seed, least=0)
        self._agent: Solo | None = None
        self._forget()

    def _forget(self) -> None:
        """Begin with no classes seen."""
        raise NotImplementedError

    def _begin(self, n_inputs: int) -> Solo:
        # Behind a StandardScaler the variance is 1.
        bandwidth = usual.checked_bandwidth(self.bandwidth, max(1, n_inputs), 1.0)
        self._records = Records(self.seed, self.n_frequencies, bandwidth)
        self._agent = Solo(self.learner or Experts(), self._records.features)
        return self._agent

    def _show(self, agent: Solo, x: Mapping[Hashable, Any]) -> None:
        """Write the features of ``x`` into the agent's sample."""
        if not self._records.fill(x, agent.sample):
            self._records.admit(x)
            agent.use(self._records.features)
            self._records.fill(x, agent.sample)

    def _learn(self, x: Mapping[Hashable, Any], label: float) -> None:
        agent = self._agent or self._begin(len(x))
        self._show(agent, x)
        try:
            agent.learn(label)
        except ValueError:
            raise not_a_number(x) from None

    def _margin(self, x: Mapping[Hashable, Any]) -> float:
        agent = self._agent
        if agent is None:
            return 0.0
        self._show(agent, x)
        margin = agent.predict()
        if math.isnan(margin):
            raise not_a_number(x)
        return margin


@final
class Regressor(_LoneAgent, base.Regressor):
    """Kernel regression, a sample at a time.

    The model is a running mean of the labels plus theta.phi(x), with phi the random features of a Gaussian kernel and
    theta a mixture of gradient steps and of least squares that forget, by how well each predicts. Features may come in
    any order, turn up late and stay away: an absent one counts as 0, and its frequencies depend on its name and the
    seed only. Each sample costs the same, whatever came before it; time and memory grow only with the number of
    different features. So this is for records, not for bags of words.

    Parameters
    ----------
    n_frequencies : int
        Random frequencies of the kernel's feature map: more come closer to the kernel and cost time in proportion.
    bandwidth : "scale" or float
        Width sigma of the kernel exp(-|x - x'|^2 / (2 sigma^2)). "scale" is sigma^2 = n / 2 for the n features of the
        first sample, right for features of unit variance.
    learner : Learner, optional
        Any learner of laconic; alone, it has nobody to speak to. Default: ``lc.Experts()``, which needs no step and
        follows a stream that drifts. It keeps a matrix of (2 n_frequencies)^2 numbers; ``lc.Local(step=0.1)`` keeps
        none and takes half the time.
    seed : int
        Draws the frequencies.

    Examples
    --------
    >>> import laconic as lc
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | lc.river.Regressor(seed=0)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.278578
    """

    _binary = False

    def _forget(self) -> None:
        self._mean = 0.0
        self._count = 0

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from the features ``x`` and their label ``y``."""
        try:
            label = float(y)
        except (TypeError, ValueError):
            label = math.nan
        if not math.isfinite(label):
            raise ValueError(f"y must be a finite number, got {y!r}.")
        count = self._count + 1
        mean = self._mean + (label - self._mean) / count
        self._learn(x, label - mean)
        self._count, self._mean = count, mean

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """The prediction for ``x``; 0 before the first sample."""
        return self._mean + self._margin(x)


@final
class Classifier(_LoneAgent, base.Classifier):
    """Kernel classification of two classes, a sample at a time.

    As ``Regressor``, of -1 and +1. Labels are False and True unless others come: any two will do, 0 and 1 or
    "ham" and "spam". For more classes there is river's ``multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    n_frequencies, bandwidth, seed
        As for ``Regressor``.
    learner : Learner, optional
        Any learner of laconic. Default: ``lc.Experts()``. With a hinge loss, take the probabilities as a rough guide.

    Examples
    --------
    >>> import laconic as lc
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | lc.river.Classifier(seed=0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.12%
    """

    _binary = True

    def _forget(self) -> None:
        self._labels: list[Hashable] = [False, True]
        self._seen = [False, False]

    def learn_one(self, x: Mapping[Hashable, Any], y: Hashable) -> None:
        """Learn from the features ``x`` and their label ``y``."""
        side = self._side(y)
        self._learn(x, 1.0 if side else -1.0)
        if not self._seen[side]:
            self._labels[side], self._seen[side] = y, True

    def _side(self, y: Hashable) -> int:
        """0 or 1: which of the two labels ``y`` is, or takes the place of."""
        labels, seen = self._labels, self._seen
        for side in (0, 1):
            if labels[side] == y:
                return side
        if all(seen):
            raise ValueError(f"y must be one of two labels, {labels[0]!r} or {labels[1]!r}, got {y!r}.")
        return seen.index(False)

    def predict_proba_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
        """The probability of each label; before the first sample, an even one for False and True."""
        margin = self._margin(x)
        (first, second), seen = self._labels, self._seen
        if sum(seen) == 1:  # of two labels that are not False and True, the other is still unknown
            known = first if seen[0] else second
            if known not in (False, True):
                return {known: 1.0}
        if self.learner is None or self.learner.loss.name == "squared":  # margin estimates 2 P - 1
            likely = min(1.0, (1.0 + abs(margin)) / 2)
        else:
            likely = 1.0 / (1.0 + math.exp(-abs(margin)))  # never overflows
        unlikely = 1.0 - likely
        return {first: unlikely, second: likely} if margin > 0 else {first: likely, second: unlikely}
