"""river models: one agent, or several, that learn from a stream of dicts, a sample at a time.

Reached as ``lc.river``. A model is what agents of a network are on a stream; scale the features before it, the river
way: ``preprocessing.StandardScaler() | lc.river.Regressor()``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, final

import numpy as np

from laconic import _extras, _validate
from laconic._wild import n_tame
from laconic._worded import ArgumentError
from laconic.defaults import PREFIX
from laconic.estimators import usual
from laconic.estimators.records import Records, not_a_number
from laconic.estimators.solo import Solo
from laconic.estimators.team import Team, usual_learner
from laconic.guard.labels import LabelGuard
from laconic.learners import Experts, Learner
from laconic.network import Network

_extras.need("river", "lc.river")

from river import base  # noqa: E402

__all__ = ["Classifier", "Regressor"]

Record = Mapping[Hashable, Any]

_DEVIATIONS = 20.0  # that a label may lie from the mean of all before it is clipped


class _Agents:
    """What both models share: parameters, whose a record is, and the way from a dict to the agents of each output."""

    _binary: bool

    def __init__(
        self,
        *,
        n_frequencies: int = 100,
        bandwidth: float | str = "scale",
        learner: Learner | None = None,
        seed: int = 0,
        n_agents: int = 1,
        agent: str = "agent",
    ) -> None:
        self.n_frequencies = _validate.integer("n_frequencies", n_frequencies, least=1)
        usual.checked_bandwidth(bandwidth, 1, 1.0)
        self.bandwidth = bandwidth
        usual.checked_learner(learner, self._binary)
        self.learner = learner
        self.seed = _validate.integer("seed", seed, least=0)
        self.n_agents = _validate.integer("n_agents", n_agents, least=1)
        _validate.instance("agent", agent, str, "the name of a feature")
        self.agent = agent
        self._outputs: list[Solo | Team] = []
        self._names: dict[Hashable, int] = {}
        self._turn = 0
        self._forget()

    def _forget(self) -> None:
        """Begin with nothing seen."""
        raise NotImplementedError

    @property
    def agents(self) -> tuple[Hashable, ...]:
        """Who has had a record so far, by the name that it came with."""
        return tuple(self._names)

    @property
    def bits(self) -> int:
        """What all agents have sent."""
        return sum(one.bits for one in self._outputs if isinstance(one, Team))

    @property
    def messages(self) -> int:
        """How many messages that were."""
        return sum(one.messages for one in self._outputs if isinstance(one, Team))

    @property
    def _agent(self) -> Any:
        """The agents of the first output; None before the first sample."""
        return self._outputs[0] if self._outputs else None

    def _whose(self, x: Record, learning: bool) -> tuple[int | None, Record]:
        """The agent that a record names, None if nobody in particular, and the record without the name."""
        if self.n_agents == 1:
            return 0, x
        if self.agent not in x:
            return None, x
        name = x[self.agent]
        rest = {key: value for key, value in x.items() if key != self.agent}
        if name in self._names or not learning:
            return self._names.get(name), rest
        if len(self._names) == self.n_agents:
            known = ", ".join(str(one) for one in self._names)
            raise ArgumentError("x", f"must name one of {self.n_agents} agents ({known}), got {name!r}.")
        return len(self._names), rest

    def _took(self, x: Record, agent: int | None) -> None:
        """Remember who had a record, once it was learned."""
        if self.n_agents == 1:
            return
        if agent is None:
            self._turn = (self._turn + 1) % self.n_agents
        elif x[self.agent] not in self._names:
            self._names[x[self.agent]] = agent

    def _make(self) -> Solo | Team:
        if self.n_agents == 1:
            return Solo(self.learner or Experts(), self._records.features)
        return Team(self.learner or usual_learner(), self._records.features, Network.ring(self.n_agents))

    def _begin(self, n_inputs: int, n_outputs: int) -> None:
        if not self._outputs:
            # Behind a StandardScaler the variance is 1.
            bandwidth = usual.checked_bandwidth(self.bandwidth, max(1, n_inputs), 1.0)
            self._records = Records(self.seed, self.n_frequencies, bandwidth)
        while len(self._outputs) < n_outputs:
            self._outputs.append(self._make())

    def _show(self, x: Record) -> None:
        """Make a sample of ``x``; if it has new features, let all agents see through the new frequencies."""
        if not self._records.fill(x):
            self._records.admit(x)
            for output in self._outputs:
                output.use(self._records.features)
            self._records.fill(x)

    def _learn(self, x: Record, agent: int | None, labels: list[float]) -> None:
        self._begin(len(x), len(labels))
        self._show(x)
        sample, who = self._records.sample, self._turn if agent is None else agent
        try:
            for output, label in zip(self._outputs, labels, strict=True):
                if isinstance(output, Team):
                    output.learn(who, sample, label)
                else:
                    output.sample[:] = sample
                    output.learn(label)
        except ValueError:
            raise not_a_number(x) from None

    def _margins(self, x: Record, agent: int | None) -> list[float]:
        """What the agent's model of each output says; nothing before the first sample."""
        if not self._outputs:
            return []
        self._show(x)
        sample, found = self._records.sample, []
        for output in self._outputs:
            if isinstance(output, Team):
                found.append(output.predict(agent, sample))
            else:
                output.sample[:] = sample
                found.append(output.predict())
        if any(math.isnan(margin) for margin in found):
            raise not_a_number(x)
        return found


@final
class Regressor(_Agents, base.Regressor):
    """Kernel regression, a sample at a time.

    The model is a running mean of the labels plus theta.phi(x), with phi the random features of a Gaussian kernel and
    theta a mixture of gradient steps and of least squares that forget, by how well each predicts. Features may come in
    any order, turn up late and stay away: an absent one counts as 0, and its frequencies depend on its name and the
    seed only. Each sample costs the same, whatever came before it; time and memory grow only with the number of
    different features. So this is for records, not for bags of words. Labels that cannot be are not learned from:
    see ``laconic.guard.labels``.

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
        none and takes half the time. Several agents need one that broadcasts its model; by default experts that may
        speak after a tenth of their samples, in an entropy code.
    seed : int
        Draws the frequencies.
    n_agents : int
        How many agents share the stream, on a ring. ``bits`` and ``messages`` say what they have sent.
    agent : str
        With several agents the feature that says whose a record is: any name, in the order in which they turn up. A
        record without it goes to the agent whose turn it is, and is predicted by the mean of all.

    Examples
    --------
    >>> import laconic as lc
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | lc.river.Regressor(seed=0)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.278578

    Two hospitals, each with its own records; what is scaled is all but the name:

    >>> from river import compose
    >>> team = lc.river.Regressor(n_agents=2, agent="hospital")
    >>> scaled = compose.Discard("hospital") | preprocessing.StandardScaler()
    >>> model = (scaled + compose.Select("hospital")) | team
    >>> for k in range(200):
    ...     model.learn_one({"hospital": "north" if k % 2 else "south", "age": 40 + k % 10}, (k % 10) ** 2)
    >>> team.agents, 60 < model.predict_one({"hospital": "south", "age": 48}) < 68
    (('south', 'north'), True)
    """

    _binary = False

    def _forget(self) -> None:
        self._mean, self._count = 0.0, 0
        self._guard = LabelGuard(_DEVIATIONS, whole=True)
        self._first: list[tuple[dict[Hashable, Any], float]] | None = []

    def learn_one(self, x: Record, y: float) -> None:
        """Learn from the features ``x`` and their label ``y``."""
        try:
            label = float(y)
        except (TypeError, ValueError):
            label = math.nan
        if not math.isfinite(label):
            raise ValueError(f"y must be a finite number, got {y!r}.")
        held = self._guard(label)
        if not math.isnan(held):
            self._take(x, held)
        if self._first is not None:
            self._first.append((dict(x), label))
            if len(self._first) == PREFIX:
                self._look_back()

    def _take(self, x: Record, label: float) -> None:
        agent, rest = self._whose(x, learning=True)
        count, mean = self._count + 1, self._mean
        if self.n_agents == 1 or count <= PREFIX * self.n_agents:  # later it is what all have agreed on
            mean += (label - mean) / count
        self._learn(rest, agent, [label - mean])
        self._took(x, agent)
        self._count, self._mean = count, mean

    def _look_back(self) -> None:
        """If one of the first labels cannot be, as the others show, begin again without it."""
        first, self._first = self._first or [], None
        labels = np.array([label for _, label in first])
        apart = np.abs(labels - np.median(labels))
        farthest = np.sort(apart)[n_tame(np.sort(apart)) - 1]
        if (apart <= farthest).all():
            return
        self._outputs, self._names, self._turn = [], {}, 0
        self._forget()
        self._first = None
        for (x, label), distance in zip(first, apart, strict=True):
            if distance <= farthest:
                self._take(x, self._guard(label))

    def predict_one(self, x: Record) -> float:
        """The prediction for ``x``; 0 before the first sample."""
        agent, rest = self._whose(x, learning=False)
        return self._mean + sum(self._margins(rest, agent))


@final
class Classifier(_Agents, base.Classifier):
    """Kernel classification, a sample at a time.

    As ``Regressor``, of -1 and +1. Labels are False and True unless others come: 0 and 1, "ham" and "spam", and as many
    classes as turn up. Of K classes all but the first have a model of their own, over the same features, +1 for their
    rows; what they leave is the first one's. A model that comes late begins as one that has never seen its class.

    Parameters
    ----------
    n_frequencies, bandwidth, seed, n_agents, agent
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

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _squared(self) -> bool:
        return self.learner is None or self.learner.loss.name == "squared"

    def learn_one(self, x: Record, y: Hashable) -> None:
        """Learn from the features ``x`` and their label ``y``."""
        agent, rest = self._whose(x, learning=True)
        place = self._place(y)
        n_outputs = max(len(self._labels), place + 1) - 1
        signs = [1.0 if place == k else -1.0 for k in range(1, n_outputs + 1)]
        if self._squared:  # so that a model that knows nothing says -1: its class never came
            signs[1:] = [sign + 1.0 for sign in signs[1:]]
        self._learn(rest, agent, signs)
        self._took(x, agent)
        if place == len(self._labels):
            self._labels.append(y)
            self._seen.append(True)
        elif not self._seen[place]:
            self._labels[place], self._seen[place] = y, True

    def _place(self, y: Hashable) -> int:
        """Which of the labels ``y`` is, or takes the place of; their number, if it is a new one."""
        labels, seen = self._labels, self._seen
        for place, label in enumerate(labels):
            if label == y:
                return place
        return len(labels) if all(seen) else seen.index(False)

    def predict_proba_one(self, x: Record) -> dict[Hashable, float]:
        """The probability of each label; before the first sample, an even one for False and True."""
        agent, rest = self._whose(x, learning=False)
        margins = self._margins(rest, agent) or [0.0]
        if len(self._labels) > 2:
            return self._several(margins)
        margin, (first, second), seen = margins[0], self._labels, self._seen
        if sum(seen) == 1:  # of two labels that are not False and True, the other is still unknown
            known = first if seen[0] else second
            if known not in (False, True):
                return {known: 1.0}
        # Of the squared loss the margin estimates 2 P - 1; and this exponential never overflows.
        likely = min(1.0, (1 + abs(margin)) / 2) if self._squared else 1 / (1 + math.exp(-abs(margin)))
        unlikely = 1.0 - likely
        return {first: unlikely, second: likely} if margin > 0 else {first: likely, second: unlikely}

    def _several(self, margins: list[float]) -> dict[Hashable, float]:
        """Of more than two labels: each as its model says, and the first what they leave."""
        if self._squared:
            shares = [(1 + margins[0]) / 2, *(margin / 2 for margin in margins[1:])]
        else:
            shares = [0.5 * (1.0 + math.tanh(margin / 2)) for margin in margins]
        likely = [min(1.0, max(0.0, share)) for share in (1.0 - sum(shares), *shares)]
        total = sum(likely)
        if not total > 0:
            return dict.fromkeys(self._labels, 1 / len(likely))
        return {label: share / total for label, share in zip(self._labels, likely, strict=True)}
