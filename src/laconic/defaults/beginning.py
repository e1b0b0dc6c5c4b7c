"""What agents predict with until features can be measured well: a smaller model, of the first rows of all.

Eight rows of each agent tell features for good. Until they are there something is better than the mean of one's labels:
as soon as ten rows have come, two rounds or more, a small map is made of them, of five frequencies or half as many as
inputs, and the same learner shares a model over it. Its bits are few and are counted. After the
eighth round something larger is chosen, of which each agent knows nothing but its own rows until a first wave has come
back; so the small model goes on until then, or for eight more rounds.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.defaults.choice import PREFIX, Choice, choose
from laconic.defaults.labels import NUMBERS, Labels
from laconic.engine import simulate
from laconic.learners import Learner
from laconic.network import Network
from laconic.offline import recursive_least_squares
from laconic.trace import Trace
from laconic.waves import places

_FEWEST_ROWS = 10  # of all agents together, to measure a small map by
_FEWEST_ROUNDS = 2
_FEWEST_FREQUENCIES = 5


class Beginning(NamedTuple):
    """The small model's choice, the round from which it predicts, and the first rounds."""

    choice: Choice
    start: int
    X: Array
    truth: Array
    network: Network
    shift: float
    ratio: float

    def run(self, learner: Learner) -> Trace:
        """The first rounds, learned by ``learner`` over the small map."""
        truth = self.truth if learner.outputs > 1 else self.truth[..., 0]
        return simulate(learner, self.choice.features, self.network, self.X, truth)

    def predictions(self, trace: Trace) -> Array:
        """(rounds, N, K), as of the labels that were chosen later."""
        return np.asarray(trace.predictions.reshape(self.truth.shape) * self.ratio + self.shift)

    def central(self, ridge: float) -> Array:
        """The same, of a centre that is sent every row."""
        parts = [
            recursive_least_squares(self.choice.features, self.X, column, centralised=True, regularization=ridge)
            for column in np.moveaxis(self.truth, -1, 0)
        ]
        return np.stack(parts, axis=-1) * self.ratio + self.shift


def begin(
    X: Array, y: Array, network: Network, present: Array, labels: Labels, *, budget: str, n_frequencies: int, seed: int
) -> Beginning | None:
    """A small model of the first rounds; None where there are too few rows before there is a real one."""
    rows = present[:PREFIX].sum(axis=1).cumsum()
    start = max(_FEWEST_ROUNDS, int(np.searchsorted(rows, _FEWEST_ROWS)) + 1)
    if start >= min(PREFIX, len(y)):
        return None
    first = present[:start]
    n_inputs = X.shape[-1]
    choice = choose(
        X[:start][first],
        y[:start][first],
        task=labels.task,
        classes=labels.classes or None,
        budget=budget,
        n_frequencies=min(n_frequencies, max(_FEWEST_FREQUENCIES, -(-n_inputs // 2))),
        seed=seed,
        prefix=start,
    )
    if choice.channel is not None:
        return None
    end = PREFIX + min(2 * places(network)[0].height, PREFIX)
    encoded = choice.labels.encode(y[:end])
    truth = encoded[..., None] if encoded.ndim == 2 else encoded
    shift = (choice.labels.centre - labels.centre) / labels.unit if labels.task == NUMBERS else 0.0
    return Beginning(choice, start, X[:end], truth, network, shift, choice.labels.unit / labels.unit)


def with_costs(trace: Trace, first: Trace) -> Trace:
    """The trace, and what ``first`` sent until its last prediction; what both send in a round is one message."""
    n = first.n_rounds - 1
    sent, sizes, links = trace.sent.copy(), trace.bits.copy(), trace.link_bits.copy()
    sent[:n] |= first.sent[:n]
    sizes[:n] += first.bits[:n]
    links[:n] += first.link_bits[:n]
    info: dict[str, Any] = {**trace.info, "link_bits": links}
    return dataclasses.replace(trace, sent=sent, message_sizes=sizes, info=info)
