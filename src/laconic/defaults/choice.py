"""The one place where it is decided what is used when nothing is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic.channel import Channel, Quantizer
from laconic.defaults.labels import NUMBERS, TASKS, Labels, recognise
from laconic.features import RandomFeatures, Scaling
from laconic.features.own import read
from laconic.features.scaling import REACH
from laconic.learners import RFFDOKL, Learner, Personal, WaveRLS

#: Rows of each agent that are looked at before anything is chosen.
PREFIX = 8
#: What may be sent: what is usual, half of it, or nothing at all.
BUDGETS = ("usual", "frugal", "silent")

_MOST_SQUARED = 2000  # features up to which a matrix of them is kept at each agent: 32 MB
_FREQUENCIES, _MOST_MATCHED = 50, 400  # inputs up to which the number of frequencies grows with them
_MOST_TERMS = 160  # of a message, where inputs outnumber the kernel's waves: on 1500 rows of 600, 40 leave R2 at .85
_WHOLE_REACH = 25.0, 100.0  # deviations to which a whole table's inputs are followed: as far as they go, between these
_NEVER = 2**40  # a round that never comes


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """Features, learner and labels for a task, and the reasons in words.

    Attributes
    ----------
    features : RandomFeatures
        The map that all agents share; it takes raw inputs.
    learner : Learner
    labels : Labels
        What is learned of a label, and the way back.
    why : tuple of str
        A sentence for each part.
    """

    features: RandomFeatures
    learner: Learner
    labels: Labels
    why: tuple[str, ...]

    @property
    def task(self) -> str:
        """Whether labels are "numbers" or "classes"."""
        return self.labels.task

    @property
    def channel(self) -> Channel | None:
        """What carries models, of a learner that broadcasts them; None of one that has messages of its own."""
        return self.learner.channel

    def __str__(self) -> str:
        return "\n".join(self.why)


def choose(
    X_first: object,
    y_first: object = None,
    *,
    task: str | None = None,
    classes: object = None,
    budget: str = "usual",
    n_frequencies: int | None = None,
    seed: int = 0,
    prefix: int = PREFIX,
    whole: bool = False,
    features: object = None,
) -> Choice:
    """Decide on features, learner and labels from the first rows; nothing of it needs to be tuned.

    Parameters
    ----------
    X_first : array (n, n_inputs) or (rounds, agents, n_inputs)
        Raw inputs: eight rows of each agent are enough, or a whole table.
    y_first : array (n,) or (rounds, agents), optional
        Their labels; NaN where there is none.
    task : "numbers", "classes" or None
        What labels are; None lets the labels tell.
    classes : sequence, optional
        All classes that may ever come, if more than ``y_first`` holds.
    budget : "usual", "frugal" or "silent"
        What may be sent: some twenty messages an agent in all, half of their bits, or nothing.
    n_frequencies : int, optional
        Of the features; a whole table deserves 100. None is 50, and of 101 to 400 inputs half as many as there are
        inputs.
    seed : int
        Draws the frequencies.
    prefix : int
        The round after which the first wave starts.
    whole : bool
        Whether ``X_first`` is a whole table: its deviations can be relied upon, so that inputs are followed further.
    features : RandomFeatures, fitted transformer or callable, optional
        A map of one's own, which is then taken as it is.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([20.0, 1e5], [5.0, 2e4], size=(8, 5, 2))  # eight rounds of five agents
    >>> choice = lc.defaults.choose(X, X[..., 0] ** 2)
    >>> print(choice)  # doctest: +ELLIPSIS
    Labels are numbers: what is learned is their distance from 410.2, the median of the first 40.
    Features: 50 frequencies over raw inputs, scaled by the first 40 rows, and the 2 inputs themselves: 103 numbers.
    Learner: Personal...
    >>> trace = lc.simulate(choice.learner, choice.features, lc.Network.ring(5), X, choice.labels.encode(X[..., 0]))
    """
    budget = _validate.choice("budget", budget, BUDGETS)
    if features is None:
        reach = _reach(X_first) if whole else REACH
        n_frequencies = usual_frequencies(X_first) if n_frequencies is None else n_frequencies
        chosen = RandomFeatures.automatic(X_first, n_frequencies, seed, reach=reach)
    else:
        chosen = read(features, X_first)
    rows = np.asarray(X_first).reshape(-1, chosen.n_inputs)
    if task is None:
        task = recognise([0.5] if y_first is None else y_first)
    task = _validate.choice("task", task, TASKS)
    labels = Labels.measure([] if y_first is None else y_first, task, classes)
    learner, reason = _learner(chosen, labels, budget, prefix)
    why = (_labels_in_words(labels, y_first), _features_in_words(chosen, len(rows)), reason)
    return Choice(chosen, learner, labels, why)


def usual_frequencies(X_first: object) -> int:
    """Frequencies used by default: 50, and half as many as inputs that vary where there are 101 to 400 of these.

    >>> import numpy as np
    >>> [usual_frequencies(np.random.default_rng(0).normal(size=(40, d))) for d in (2, 200, 1000)]
    [50, 100, 50]
    """
    rows = np.asarray(X_first)
    if rows.shape[-1] <= 2 * _FREQUENCIES:
        return _FREQUENCIES
    varying = len(Scaling.measure(rows).columns)
    return _FREQUENCIES if varying > _MOST_MATCHED else max(_FREQUENCIES, -(-varying // 2))


def _reach(table: object) -> float:
    """Where the linear block ends: a whole table tells its heavy tails from wild inputs, and all of them are known."""
    rows = np.asarray(table, dtype=np.float64)
    rows = rows.reshape(-1, rows.shape[-1])
    return float(np.clip(Scaling.measure(rows).farthest(rows), *_WHOLE_REACH))


def _learner(features: RandomFeatures, labels: Labels, budget: str, prefix: int) -> tuple[Learner, str]:
    """Waves, and least squares at every agent; where matrices are too large, gradients."""
    D = features.n_features
    if D > _MOST_SQUARED:
        channel = Channel(quantizer=Quantizer(3))
        learner: Learner = RFFDOKL(0.5, "adapt-then-combine", channel=channel)
        return learner, f"Learner: {learner.name}, since least squares would keep {D} x {D} numbers at each agent."
    outputs = labels.n_models
    wide: dict[str, Any] = {"most": _MOST_TERMS} if features.n_direct > 2 * features.n_frequencies else {}
    shared: WaveRLS = (WaveRLS.frugal if budget == "frugal" else WaveRLS)(first=prefix, outputs=outputs, **wide)
    said = {
        "usual": "a few messages, some twenty an agent in a long run, tell everybody what all know together",
        "frugal": "a few coarse messages, some fifteen an agent in a long run, tell everybody what all know together",
        "silent": "nothing is sent, so every agent knows its own rows only",
    }[budget]
    if budget == "silent":
        shared = shared.alone(_NEVER)
    if outputs > 1:  # whose models have one matrix in common, so that a message is hardly longer than for one class
        reason = f"least squares at every agent, nothing to tune; the {outputs} models share one matrix; {said}."
        return shared, f"Learner: {shared.name}, {reason}"
    clipped = 20.0 if labels.task == NUMBERS else None
    learner = Personal(
        shared, deviations=clipped, usual=None if labels.deviation is None else labels.deviation / labels.unit
    )
    guard = "; labels far beyond all others are clipped or left out" if clipped else ""
    return learner, f"Learner: {learner.name}, least squares at every agent, nothing to tune{guard}; {said}."


def _labels_in_words(labels: Labels, y_first: object) -> str:
    if labels.task == NUMBERS:
        if y_first is None:
            return "Labels are numbers: what is learned is their distance from 0."
        n = int(np.isfinite(np.asarray(y_first, dtype=np.float64)).sum())
        centre = f"{labels.centre:.4g}, the median of the first {n}"
        return f"Labels are numbers: what is learned is their distance from {centre}."
    shown = ", ".join(str(one) for one in labels.classes[:6]) + (", ..." if len(labels.classes) > 6 else "")
    models = "one model tells them apart" if labels.n_models == 1 else "one model each, over the same features"
    return f"Labels are {len(labels.classes)} classes ({shown}): {models}."


def _features_in_words(features: RandomFeatures, n_rows: int) -> str:
    if features.scaling is None:
        return f"Features: {features.n_features} numbers, by a map of one's own."
    kept, all_inputs = len(features.scaling.columns), features.n_inputs
    ignored = f"; {all_inputs - kept} of {all_inputs} inputs do not vary and are ignored" if kept < all_inputs else ""
    direct = f", and the {features.n_direct} inputs themselves" if features.n_direct else ""
    direct = ", and the input itself" if features.n_direct == 1 else direct
    return (
        f"Features: {features.n_frequencies} frequencies over raw inputs, scaled by the first {n_rows} rows{direct}: "
        f"{features.n_features} numbers{ignored}."
    )
