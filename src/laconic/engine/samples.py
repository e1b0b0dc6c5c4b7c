"""Where the samples come from: two arrays, a stream that is drawn, or blocks of an iterable; checked, in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

import numpy as np

from laconic import _validate
from laconic._timetable import Timetable
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.engine.drawn import Drawn
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network

_CHUNK_ROWS = 32768  # samples between two looks at the clock: short enough for progress bars and Ctrl-C

Blocks = Iterable[tuple[object, object]]


@final
class Samples:
    """The data of a run, checked, in chunks: slices of two arrays, or of block after block of an iterable.

    ``agents`` are those whose samples are wanted, None for all; then a chunk is as many rounds as all of them would
    have, times ``processes``, and no more than ``most``.
    """

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network | Timetable,
        X: object,
        y: object,
        agents: Array | None = None,
        processes: int = 1,
        most: int | None = None,
    ) -> None:
        self._loss, self._n_inputs, self._n_agents = learner.loss, features.n_inputs, network.n_agents
        self._length = min(max(1, _CHUNK_ROWS * processes // network.n_agents), most or _CHUNK_ROWS)
        self._chosen = agents
        self._outputs = learner.outputs
        self._checked: Iterable[tuple[Array, Array]]
        self.n_rounds: int | None = None
        if isinstance(X, Drawn):
            self.n_rounds = X.n_rounds
            self._n_agents, self._chosen = network.n_agents if agents is None else len(agents), None
            self._checked = self._check_each(self._draw(X, np.arange(network.n_agents) if agents is None else agents))
        elif y is not None:
            arrays = self._check(X, y)
            self.n_rounds = len(arrays[1])
            self._checked = [arrays]
        elif isinstance(X, Iterable) and not isinstance(X, (np.ndarray, str)):
            self._checked = self._check_each(X)
        else:
            raise ValueError("y is missing: pass X (T, N, d) with y (T, N), or an iterable of blocks (X, y).")

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """At most ``_CHUNK_ROWS`` samples at a time."""
        for X, y in self._checked:
            for start in range(0, len(y), self._length):
                X_chunk, y_chunk = X[start : start + self._length], y[start : start + self._length]
                chosen = self._chosen
                yield (X_chunk, y_chunk) if chosen is None else (X_chunk[:, chosen], y_chunk[:, chosen])

    def _draw(self, stream: Drawn, agents: Array) -> Blocks:
        for start in range(0, stream.n_rounds, self._length):
            stop = min(start + self._length, stream.n_rounds)
            block = stream.draw(agents, start, stop)
            y = block[1] if isinstance(block, tuple) and len(block) == 2 else None
            if isinstance(y, np.ndarray) and y.ndim and len(y) != stop - start:
                raise ArgumentError("draw", f"must return the {stop - start} rounds it is asked for, got {len(y)}.")
            yield block

    def _streams(self, X: object, y: object) -> tuple[Array, Array] | None:
        """Streams of their own length, one an agent, as two arrays; None if that is not what was passed.

        Where there is nothing the label is NaN, and the input, of which nothing is learned, zero.
        """
        if not (isinstance(X, (list, tuple)) and isinstance(y, (list, tuple))):
            return None
        each = [(_plain(x), _plain(label)) for x, label in zip(X, y, strict=False)]
        unequal = len({x.shape for x, _ in each}) > 1  # so that they cannot be rounds
        if not len(X) == len(y) == self._n_agents:
            if unequal:
                raise ValueError(
                    f"X and y must be lists of {self._n_agents} arrays, one for each agent, got {len(X)} and {len(y)}."
                )
            return None
        lengths = [len(label) if label.ndim else 0 for _, label in each]
        several = (self._outputs,) if self._outputs > 1 else ()
        fit = all(
            x.shape == (n, self._n_inputs) and label.shape == (n, *several)
            for (x, label), n in zip(each, lengths, strict=True)
        )
        if not fit and unequal:
            self._refuse(each, lengths)
        if not fit or set(lengths) == {self._n_agents}:  # which may as well be rounds
            return None
        inputs = np.zeros((max(lengths), self._n_agents, self._n_inputs))
        labels = np.full((max(lengths), self._n_agents, *several), np.nan)
        for agent, (x, label) in enumerate(each):
            inputs[: len(x), agent], labels[: len(label), agent] = x, label
        return inputs, labels

    def _refuse(self, each: list[tuple[Array, Array]], lengths: list[int]) -> None:
        """Say whose stream it is that does not fit."""
        several = f", {self._outputs}" if self._outputs > 1 else ","
        for agent, ((x, label), n) in enumerate(zip(each, lengths, strict=True)):
            if x.shape != (n, self._n_inputs) or label.ndim != 1 + (self._outputs > 1):
                raise ValueError(
                    f"X[{agent}] and y[{agent}], the stream of agent {agent}, must be numbers of shapes (n, "
                    f"{self._n_inputs}) and (n{several}), got {x.shape} and {label.shape}."
                )

    def _check_each(self, blocks: Blocks) -> Iterator[tuple[Array, Array]]:
        for block in blocks:
            try:
                X, y = block
            except (TypeError, ValueError):
                raise ValueError("each block must be a pair (X, y) of arrays (T, N, d) and (T, N).") from None
            yield self._check(X, y)

    def _check(self, X: object, y: object) -> tuple[Array, Array]:
        if (streams := self._streams(X, y)) is not None:
            X, y = streams
        inputs = _validate.real_array("X", X, "(T, n_agents, n_inputs)", ndim=3)
        several = (self._outputs,) if self._outputs > 1 else ()
        shape = "(T, n_agents, outputs)" if several else "(T, n_agents)"
        labels = _validate.real_array("y", y, shape, ndim=2 + len(several))
        expected = (len(labels), self._n_agents, self._n_inputs)
        if inputs.shape != expected or labels.shape != (*expected[:2], *several):
            wanted = ", ".join(map(str, (self._n_agents, *several)))
            raise ValueError(
                f"X and y must have shapes (T, {self._n_agents}, {self._n_inputs}) and (T, {wanted}) for this "
                f"{'learner, ' if several else ''}network and feature map, got {inputs.shape} and {labels.shape}."
            )
        if np.isinf(labels).any():
            raise ValueError("y must be finite, or NaN where a label is missing; it holds an infinite value.")
        if self._loss.binary and not (np.isnan(labels) | (np.abs(labels) == 1)).all():
            raise ValueError(f"y must hold only -1 and +1 (or NaN) for the {self._loss.name} loss.")
        return inputs, labels


def _plain(value: object) -> Array:
    """``value`` as an array of numbers; one without axes if it is none."""
    try:
        array = np.asarray(value)
    except ValueError:
        return np.empty(())
    return array if array.dtype.kind in "fiub" else np.empty(())
