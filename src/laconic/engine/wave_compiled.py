"""The compiled engine of learners that run waves: the nodes of the reference engine, over compiled rounds.

Between waves nobody speaks, and rounds run compiled. In rounds in which somebody may, every node is asked, as by the
reference engine. What everybody knows is made once for all of them: they start from the same object.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine import endings, wave_rounds, wave_sums
from laconic.engine.chunk import Chunk
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.waving import Waving
from laconic.engine.wide import whole_lines
from laconic.native.arrays import aligned
from laconic.native.features import map_features
from laconic.native.run import LOSSES
from laconic.waves import Common, Node, Own, Rule, records
from laconic.waves.own import Probe, Report, Seen, reminded
from laconic.waves.rule import Numbers

_SCALED_ROWS = 32


@final
class Block:
    """The models and data of all agents, and the samples that are learned at the moment."""

    def __init__(self, n_agents: int, n_features: int, outputs: int = 1) -> None:
        self.n_agents, self.n_features, self.outputs = n_agents, n_features, outputs
        self.weights = aligned(n_agents * outputs, n_features, np.float64)
        self.theta = aligned(n_agents * outputs, n_features, np.float64)
        size = self.size = self.weights.shape[1]
        self.spread = aligned(n_agents * size, whole_lines(n_features), np.float64)
        self.left = aligned(n_agents, n_features, np.float64)  # what is still to be subtracted from each P
        self.gain = aligned(1, n_features, np.float64)
        self.scaled = aligned(_SCALED_ROWS, n_features, np.float64)
        self.changed = False  # whether a model was replaced since the last round
        self.phi, self.squares, self.now = aligned(0, n_features, np.float64), np.empty((0, 2 + outputs)), 0

    def models(self, rows: Array, agent: int) -> Array:
        """An agent's model among ``rows`` of all: (D,), or (K, D)."""
        own = rows[agent * self.outputs : (agent + 1) * self.outputs, : self.n_features]
        return own[0] if self.outputs == 1 else own

    def rows(self, agent: int, first: int) -> tuple[Array, Array]:
        """Features and squares of an agent's samples from round ``first`` of the block to now."""
        part = slice(first * self.n_agents + agent, self.now * self.n_agents, self.n_agents)
        return self.phi[part], self.squares[part]


class BlockOwn(Own):
    """An agent's own part, in the arrays of a block; samples are added to A when it is asked for."""

    def __init__(self, rule: Rule, arithmetic: CompiledArithmetic, block: Block, agent: int) -> None:
        self.rule, self.arithmetic, self._block, self._agent = rule, arithmetic, block, agent
        n, size = block.n_features, block.size
        self._information, self._moments = aligned(size, n, np.float64), aligned(block.outputs, n, np.float64)
        self._numbers = np.zeros(1 + block.outputs)
        self._added = 0  # rounds of the block whose samples are in A
        self._mark: int | None = None  # the round of the block from which on samples are "since"
        self._before: list[tuple[Array, Array]] = []  # samples since, of earlier blocks
        self._direction: Array | None = None
        self._watched, self._sums = aligned(2 * block.outputs, n, np.float64), np.zeros((block.outputs, 3))
        self._counted = 0  # rounds of the block whose samples are in these sums
        np.fill_diagonal(block.spread[agent * size : agent * size + n, :n], 1.0 / rule.ridge)

    def _place(self, spread: Array, weights: Array) -> None:
        block, n = self._block, self._block.n_features
        start = self._agent * block.size
        block.spread[start : start + n, :n], block.left[self._agent] = spread, 0.0
        block.models(block.weights, self._agent)[...] = weights
        block.changed = True

    def _add(self) -> None:
        block = self._block
        if self._added < block.now:
            wave_sums.add_samples(
                self._information,
                self._moments,
                self._numbers,
                block.phi,
                self._added * block.n_agents + self._agent,
                block.n_agents,
                block.now * block.n_agents,
                block.squares,
                self.rule.forgetting,
                block.scaled,
            )
            self._added = block.now

    def watch(self, theta: Array, probe: Probe) -> None:
        """Samples from here on are fresh."""
        n, self._direction, self._counted = self._block.n_features, probe.direction, self._block.now
        watched, sums = self._watched, self._sums
        if self._block.outputs == 1:
            watched[0, :n], watched[1, :n] = theta, probe.direction
            sums[0, 0], sums[0, 1], sums[0, 2] = probe[1:]
        else:
            watched[::2, :n], watched[1::2, :n], sums.T[:] = theta, probe.direction, probe[1:]

    @property
    def probe(self) -> Probe | None:
        """What fresh samples say."""
        if self._direction is None:
            return None
        self._count()
        if self._block.outputs == 1:
            return Probe(self._direction, *self._sums[0].tolist())
        return Probe(self._direction, *self._sums.T.copy())

    def _count(self) -> None:
        block = self._block
        if self._direction is not None and self._counted < block.now:
            first, stop = (round_ * block.n_agents + self._agent for round_ in (self._counted, block.now))
            wave_sums.watch(block.phi, first, block.n_agents, stop, block.squares, self._watched, self._sums)
            self._counted = block.now

    def finish_block(self) -> None:
        """The block's arrays are about to be replaced: keep what is still needed."""
        self._add()
        self._count()
        self._added = self._counted = 0
        if self._mark is not None:
            phi, squares = self._block.rows(self._agent, self._mark)
            self._before.append((phi.copy(), squares.copy()))
            self._mark = 0

    @property
    def weights(self) -> Array:  # type: ignore[override]
        """The model w."""
        return self._block.models(self._block.weights, self._agent)

    @property
    def information(self) -> Array:  # type: ignore[override]
        """A = sum s phi phi' of all samples so far: a copy."""
        return self.total()

    def total(self) -> Array:
        """A, to be added to."""
        self._add()
        made = np.empty((self._block.n_features, self._block.n_features))
        wave_sums.whole(self._information, made)
        return made

    @property
    def moments(self) -> Array:  # type: ignore[override]
        """b = sum s z phi."""
        self._add()
        return self._block.models(self._moments, 0)

    @property
    def square(self) -> Numbers:  # type: ignore[override]
        """c = sum s z^2."""
        self._add()
        return float(self._numbers[1]) if self._block.outputs == 1 else self._numbers[1:].copy()

    @property
    def count(self) -> float:  # type: ignore[override]
        """m, the number of labels."""
        self._add()
        return float(self._numbers[0])

    def report(self, theta: Array, step: Array) -> Report:
        """All that there is to say at a model, and of its last step d."""
        block, agent = self._block, self._agent
        n, outputs, n_agents = block.n_features, block.outputs, block.n_agents
        made, residual, seen = np.empty((n, n)), np.empty((outputs, n)), np.empty((outputs, 5))
        counted = block.now if self._direction is None else self._counted
        count = wave_sums.report(
            self._information,
            self._moments,
            self._numbers,
            block.phi,
            self._added * n_agents + agent,
            counted * n_agents + agent,
            n_agents,
            block.now * n_agents,
            block.squares,
            self.rule.forgetting,
            block.scaled,
            self._watched,
            self._sums,
            theta.reshape(outputs, n),
            step.reshape(outputs, n),
            made,
            residual,
            seen,
        )
        self._added = self._counted = block.now
        if outputs == 1:
            energy, *rest = seen[0].tolist()
            return Report(count, made, energy, residual[0], *rest)
        energies, *others = seen.T.copy()
        return Report(count, made, energies, residual, *others)

    def look_back(self, theta: Array, step: Array) -> Seen:
        """What the data say of a model, and of its last step d."""
        self._add()
        n, outputs = self._block.n_features, self._block.outputs
        residual, seen = np.empty((outputs, n)), np.empty((outputs, 2))
        rows = theta.reshape(outputs, n), step.reshape(outputs, n)
        wave_sums.look_back(self._information, self._moments, self._numbers, *rows, residual, seen)
        if outputs == 1:
            return Seen(residual[0], *seen[0].tolist())
        return Seen(residual, *seen.T.copy())

    def mark(self) -> None:
        """Samples from here on are "since"."""
        self._mark, self._before = self._block.now, []

    def _samples(self) -> tuple[Array, Array]:
        parts = [*self._before, self._block.rows(self._agent, self._mark or 0)]
        phi = aligned(sum(len(squares) for _, squares in parts), self._block.n_features, np.float64)
        np.concatenate([rows for rows, _ in parts], out=phi)
        return phi, np.concatenate([squares for _, squares in parts])

    def adopt(self, spread: Array, weights: Array) -> None:
        """P and w of a wave, then each sample since."""
        block, outputs, n = self._block, self._block.outputs, self._block.n_features
        models = block.spread, block.left, block.weights, block.theta, self._agent
        wave_rounds.adopt(spread, weights.reshape(outputs, n), *models, *self._samples_since(), block.gain)
        self._mark, self._before, block.changed = None, [], True

    def _samples_since(self) -> tuple[Array, int, int, int, Array, float]:
        """The samples since, for ``wave_rounds.replay``."""
        block, own, by, forgetting = self._block, self._agent, self._block.n_agents, self.rule.forgetting
        if self._before:
            phi, squares = self._samples()
            return phi, 0, 1, len(squares), squares, forgetting
        first = block.now if self._mark is None else self._mark
        return block.phi, first * by + own, by, block.now * by, block.squares, forgetting

    def _replay(self, spread: Array, models: Array, index: int) -> None:
        """Let one of several models, and its matrix, learn the samples since."""
        wave_rounds.replay(spread, models, index, *self._samples_since(), self._block.gain)

    def replace(self, spread: Array, weights: Array) -> None:
        """P and w that hold all samples so far."""
        self._place(spread, weights)

    def remind(self, ridge: float) -> None:
        """Put so much of the ridge back into P; w stays what it is."""
        self._place(reminded(self._whole_spread(), ridge), self.weights)

    def rebuild(self, theta: Array) -> None:
        """Make P and w anew; what is lost may have spread to the ends of rows, too."""
        block, agent, outputs = self._block, self._agent, self._block.outputs
        block.spread[agent * block.size : (agent + 1) * block.size] = 0.0
        block.weights[agent * outputs : (agent + 1) * outputs] = 0.0
        super().rebuild(theta)

    def _whole_spread(self) -> Array:
        """P: a copy."""
        block, n = self._block, self._block.n_features
        spread = np.empty((n, n))
        wave_rounds.finish(block.spread, block.left, self._agent)
        wave_sums.whole(block.spread[self._agent * block.size : (self._agent + 1) * block.size], spread)
        return spread

    def parts(self) -> dict[str, Array]:
        """All of it as arrays."""
        block, n = self._block, self._block.n_features
        since = np.zeros((0, n + 1 + block.outputs))
        if self._mark is not None:
            phi, squares = self._samples()
            since = np.column_stack([phi[:, :n], squares[:, 0], squares[:, 2:]])
        return {
            "weights": self.weights.copy(),
            "spread": self._whole_spread(),
            "own": self.information,
            "moments": self.moments.copy(),
            "square": np.array(self.square),
            "count": np.array(self.count),
            "marked": np.array(-1 if self._mark is None else len(since)),
            "since": since,
        }

    def restore(self, parts: dict[str, Array]) -> None:
        """Take over what ``parts`` gave."""
        n, marked = self._block.n_features, int(parts["marked"])
        self._place(parts["spread"], parts["weights"])
        self._information[:n, :n], self._moments[:, :n] = parts["own"], parts["moments"]
        self._numbers[0], self._numbers[1:] = parts["count"], parts["square"]
        self._mark, self._before = None, []
        if marked >= 0:
            rows = parts["since"][:marked]
            phi = aligned(marked, n, np.float64)
            phi[:, :n] = rows[:, :n]
            squares = np.column_stack([rows[:, n], np.ones(marked), rows[:, n + 1 :]])
            self._mark, self._before = 0, [(phi, squares)]


class CompiledWaving(Waving):
    """Runs chunks of rounds, one after the other, from a first or a given state."""

    name = "compiled"

    def make_nodes(self) -> list[Node]:
        """A node for each place, over the arrays of one block; what everybody knows they share."""
        rule, arithmetic, n = self.learner.rule(), CompiledArithmetic(), self.features.n_features
        self._block, self._forgetting = Block(self.network.n_agents, n, rule.outputs), rule.forgetting
        self._every = rule.reminding
        self._loss = LOSSES[str(self.learner.loss.kernel)]
        common = Common.first(rule, arithmetic, n)
        return [
            Node(rule, place, BlockOwn(rule, arithmetic, self._block, place.agent), common) for place in self.places
        ]

    def _advance(self, X: Array, y: Array, mapped: bool) -> Chunk:
        n_agents = self.network.n_agents
        bad = ~np.isfinite(X).all(axis=(1, 2))
        n_rounds = int(np.argmax(bad)) if bad.any() else len(y)
        samples = X[:n_rounds].reshape(n_rounds * n_agents, X.shape[2]).astype(self.dtype, copy=False)
        self._begin_block(samples, n_rounds, mapped)
        labels = np.ascontiguousarray(y[:n_rounds].astype(self.dtype, copy=False), dtype=np.float64)
        labels = labels.reshape(n_rounds, n_agents, self._block.outputs)
        record = Record(labels.shape, y.shape[2:], self._collective)
        finished = ending = 0
        while finished < n_rounds and ending == endings.FINISHED:
            ending, finished, agent = self._stretch(labels, record, finished, n_rounds)
        self._end_block(finished)
        if ending != endings.FINISHED:
            return Chunk(record.columns(finished, self.dtype), finished, "diverged", agent)
        if n_rounds < len(y):
            agent = int(np.argmax(~np.isfinite(X[n_rounds]).all(axis=1)))
            return Chunk(record.columns(finished, self.dtype), finished, "bad input", agent)
        return Chunk(record.columns(finished, self.dtype), finished, None, 0)

    def _begin_block(self, samples: Array, n_rounds: int, mapped: bool) -> None:
        block = self._block
        if mapped:
            phi = aligned(len(samples), block.n_features, np.float64)
            phi[:, : block.n_features] = samples[:, : block.n_features]
        else:
            phi = map_features(self.features, samples.astype(np.float64, copy=False))
        block.phi, block.squares, block.now = phi, np.empty((len(phi), 2 + block.outputs)), 0
        for agent, node in enumerate(self.nodes):  # of a state that was given; later on it is adopted
            block.models(block.theta, agent)[...] = node.common.theta

    def _end_block(self, finished: int) -> None:
        self._block.now = finished
        for node in self.nodes:
            assert isinstance(node.own, BlockOwn)
            node.own.finish_block()
        self._block.now = 0

    def _stretch(self, labels: Array, record: Record, first: int, n_rounds: int) -> tuple[int, int, int]:
        """Rounds until somebody may speak, that one included: how they ended, where, and the agent that it concerns."""
        block, n_agents = self._block, self._block.n_agents
        ahead = self._next_talk() - self.round
        stop = min(n_rounds, first + ahead)
        status, row = self._run_quiet(labels, record, first, stop)
        if status != endings.FINISHED:
            self.round += row // n_agents - first
            return endings.DIVERGED, row // n_agents, row % n_agents
        self.round += stop - first
        block.now = stop
        if stop == first + ahead:
            sound = self.talk(self.round)
            said = records.said(self._mail, self.nodes) if sound else None
            if said is not None:
                record.spoken[stop - 1] = said
            if not sound or (block.changed and not self._measure(record, stop - 1)):
                self.round -= 1
                return endings.DIVERGED, stop - 1, 0
            block.changed = False
        return status, stop, 0

    def _run_quiet(self, labels: Array, record: Record, first: int, stop: int) -> tuple[int, int]:
        """``_quiet``; models that are lost on the way are rebuilt, once a round, and told of in the record."""
        block, n_agents = self._block, self._block.n_agents
        largest = np.array([self._largest])
        self._begin_stretch(labels, first, stop)
        while True:
            status, row = self._quiet(labels, record, first, stop, largest)
            self._largest = float(largest[0])
            if status == endings.FINISHED:
                return status, row
            first, agent = row // n_agents, row % n_agents
            lost = np.arange(n_agents) == agent
            if status == endings.SPOILED:  # the round is over, for all of them
                lost = np.array([not np.isfinite(node.weights).all() for node in self.nodes])
                first += 1
            block.now = first
            lost &= [(row // n_agents, other) not in record.rebuilt for other in range(n_agents)]
            rebuilt = np.flatnonzero(self._rebuild(lost)).tolist()
            record.rebuilt.update((row // n_agents, other) for other in rebuilt)
            if not rebuilt or (status == endings.SPOILED and not self._measure(record, first - 1)):
                return endings.DIVERGED, row
            if first == stop:
                return endings.FINISHED, stop * n_agents

    def _begin_stretch(self, labels: Array, first: int, stop: int) -> None:
        """What there is to do once before these rounds, however often ``_quiet`` has to begin."""

    def _measure(self, record: Record, t: int) -> bool:
        """How far models are apart after a round in which some were adopted; False if they have left all bounds."""
        block = self._block
        return bool(wave_rounds.measure(self._models(), block.outputs, block.theta, block.gain, record.found, t))

    def _models(self) -> Array:
        """The models that predict."""
        return self._block.weights

    def _quiet(self, labels: Array, record: Record, first: int, stop: int, largest: Array) -> tuple[int, int]:
        """Rounds in which nobody speaks: how they ended, and at which row."""
        block = self._block
        ended: tuple[int, int] = wave_rounds.quiet_rounds(
            block.phi,
            labels,
            first,
            stop,
            self._loss,
            self._forgetting,
            block.weights,
            block.spread,
            block.theta,
            block.gain,
            largest,
            record.predictions,
            block.squares,
            record.found,
            record.scores,
            block.left,
        )
        return ended

    def _next_talk(self) -> int:
        """When somebody may speak next, from the start of a wave until all have adopted it; or P be reminded."""
        reminding = self.round + (self._every - self.round % self._every if self._every else 2**40)
        if self.network.n_agents == 1:
            return reminding
        return min(reminding, max(self.round + 1, min([node.start for node in self.nodes])))


class Record:
    """The columns of a chunk."""

    def __init__(self, shape: tuple[int, ...], outputs: tuple[int, ...], collective: bool) -> None:
        n_rounds, n_agents, _ = shape
        self.n_agents, self._outputs = n_agents, outputs
        self.predictions, self.found = np.empty(shape), np.empty((n_rounds, 3))
        self._collective = collective
        self.scores = np.empty((2, n_rounds if collective else 0, n_agents))  # of one type: kernels are compiled once
        self.stack: Array | None = None
        self.spoken: dict[int, records.Said] = {}
        self.rebuilt: set[tuple[int, int]] = set()  # round of the chunk, and agent

    def columns(self, finished: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        """All columns of the rounds that were finished."""
        columns = {
            "predictions": self.predictions[:finished].reshape(finished, self.n_agents, *self._outputs).astype(dtype),
            "outside": np.zeros((finished, self.n_agents), dtype=np.int32),
            "consensus_error": self.found[:finished, 0].copy(),
            "energy": self.found[:finished, 1].copy(),
            "replica_error": self.found[:finished, 2].copy(),
        }
        columns |= records.columns(finished, self.n_agents, self.spoken)
        for t, agent in self.rebuilt:
            if t < finished:
                columns["info.rebuilt"][t, agent] = True
        if self.stack is not None:
            columns["info.stack"] = self.stack[:finished].copy()
        if self._collective:
            columns["collective_square"], columns["collective_loss"] = self.scores[:, :finished].copy()
        return columns
