"""The compiled engine of learners that run waves: the nodes of the reference engine, over compiled rounds.

Between waves nobody speaks, and rounds run compiled. In rounds in which somebody may, every node is asked, as by the
reference engine. What everybody knows is made once for all of them: they start from the same object.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine import endings
from laconic.engine.chunk import Chunk
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.waving import Waving
from laconic.native.arrays import aligned
from laconic.native.features import map_features
from laconic.native.run import LOSSES
from laconic.native.waves import OwnSums, Rounds, Samples, whole
from laconic.waves import Common, Node, Own, Rule, records
from laconic.waves.own import Probe, Report, Seen, reminded
from laconic.waves.rule import Numbers

_SCALED_ROWS = 32
_LINE = 8  # doubles of a cache line: no wide vector of a matrix straddles two


@final
class Block:
    """The models and data of all agents, and the samples that are learned at the moment."""

    def __init__(self, rule: Rule, n_agents: int, n_features: int) -> None:
        outputs = rule.outputs
        self.n_agents, self.n_features, self.outputs = n_agents, n_features, outputs
        self.weights = aligned(n_agents * outputs, n_features, np.float64)
        self.theta = aligned(n_agents * outputs, n_features, np.float64)
        size = self.size = self.weights.shape[1]
        self.spread = aligned(n_agents * size, -(-n_features // _LINE) * _LINE, np.float64)
        self.pending = aligned(n_agents, n_features, np.float64)  # what is still to be subtracted from each P
        self.scaled = aligned(_SCALED_ROWS, n_features, np.float64)
        for agent in range(n_agents):
            np.fill_diagonal(self.matrix(agent), 1.0 / rule.ridge)
        arrays = self.weights, self.spread, self.pending, self.theta
        self.rounds: Rounds = Rounds.over(*arrays, LOSSES[str(rule.loss.kernel)], rule.forgetting)
        self.changed = False  # whether a model was replaced since the last round
        self._samples: Samples = Samples.of(step=n_agents)
        self.begin(aligned(0, n_features, np.float64))

    def begin(self, phi: Array) -> None:
        """Take other samples, of which none is learned yet."""
        self.phi, self.squares, self.now = phi, np.empty((len(phi), 2 + self.outputs)), 0
        self._samples.put(phi=self.phi, squares=self.squares)

    def models(self, rows: Array, agent: int) -> Array:
        """An agent's model among ``rows`` of all: (D,), or (K, D)."""
        own = rows[agent * self.outputs : (agent + 1) * self.outputs, : self.n_features]
        return own[0] if self.outputs == 1 else own

    def matrix(self, agent: int) -> Array:
        """A view of an agent's P, but for what is pending; tiles above the diagonal are not kept."""
        return self.spread[agent * self.size : agent * self.size + self.n_features, : self.n_features]

    def rows(self, agent: int, first: int) -> tuple[Array, Array]:
        """Features and squares of an agent's samples from round ``first`` of the block to now."""
        part = slice(first * self.n_agents + agent, self.now * self.n_agents, self.n_agents)
        return self.phi[part], self.squares[part]

    def samples(self, agent: int, first: int) -> Samples:
        """The same for the core; good until the next call."""
        self._samples.first, self._samples.stop = first * self.n_agents + agent, self.now * self.n_agents
        return self._samples


class BlockOwn(Own):
    """An agent's own part, in the arrays of a block; samples are added to A when it is asked for."""

    def __init__(self, rule: Rule, arithmetic: CompiledArithmetic, block: Block, agent: int) -> None:
        self.rule, self.arithmetic, self._block, self._agent = rule, arithmetic, block, agent
        n, size, outputs = block.n_features, block.size, block.outputs
        self._information, self._moments = aligned(size, n, np.float64), aligned(outputs, n, np.float64)
        self._numbers = np.zeros(1 + outputs)
        self._watched, self._fresh = aligned(2 * outputs, n, np.float64), np.zeros((outputs, 3))
        arrays = self._information, self._moments, self._numbers, block.scaled
        self._sums: OwnSums = OwnSums.over(n, *arrays, rule.forgetting)
        self._sums.put(watched=self._watched, sums=self._fresh)
        self._added = 0  # rounds of the block whose samples are in A
        self._mark: int | None = None  # the round of the block from which on samples are "since"
        self._before: list[tuple[Array, Array]] = []  # samples since, of earlier blocks
        self._direction: Array | None = None
        self._counted = 0  # rounds of the block whose samples are among the fresh ones

    def _place(self, spread: Array, weights: Array) -> None:
        block = self._block
        block.matrix(self._agent)[...], block.pending[self._agent] = spread, 0.0
        block.models(block.weights, self._agent)[...] = weights
        block.changed = True

    def _add(self) -> None:
        block = self._block
        if self._added < block.now:
            self._sums.add(block.samples(self._agent, self._added))
            self._added = block.now

    def watch(self, theta: Array, probe: Probe) -> None:
        """Samples from here on are fresh."""
        n, self._direction, self._counted = self._block.n_features, probe.direction, self._block.now
        self._watched[::2, :n], self._watched[1::2, :n] = theta, probe.direction
        self._fresh[:, 0], self._fresh[:, 1], self._fresh[:, 2] = probe[1:]

    @property
    def probe(self) -> Probe | None:
        """What fresh samples say."""
        if self._direction is None:
            return None
        self._count()
        if self._block.outputs == 1:
            return Probe(self._direction, *self._fresh[0].tolist())
        return Probe(self._direction, *self._fresh.T.copy())

    def _count(self) -> None:
        block = self._block
        if self._direction is not None and self._counted < block.now:
            self._sums.watch(block.samples(self._agent, self._counted))
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
        whole(self._information, made)
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
        block = self._block
        n, outputs = block.n_features, block.outputs
        made, residual, seen = np.empty((n, n)), np.empty((outputs, n)), np.empty((outputs, 5))
        counted = block.now if self._direction is None else self._counted
        rows = theta.reshape(outputs, n), step.reshape(outputs, n)
        samples, first = block.samples(self._agent, self._added), counted * block.n_agents + self._agent
        count = self._sums.report(samples, first, *rows, made, residual, seen)
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
        self._sums.look_back(theta.reshape(outputs, n), step.reshape(outputs, n), residual, seen)
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
        block = self._block
        models = weights.reshape(block.outputs, block.n_features)
        block.rounds.adopt(self._agent, spread, models, self._samples_since())
        self._mark, self._before, block.changed = None, [], True

    def _samples_since(self) -> Samples:
        """The samples since, for the core."""
        if self._before:
            phi, squares = self._samples()
            since: Samples = Samples.of(step=1, stop=len(squares), phi=phi, squares=squares)
            return since
        return self._block.samples(self._agent, self._block.now if self._mark is None else self._mark)

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
        block, n, start = self._block, self._block.n_features, self._agent * self._block.size
        spread = np.empty((n, n))
        block.rounds.finish(self._agent)
        whole(block.spread[start : start + block.size], spread)
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
        self._block, self._every = Block(rule, self.network.n_agents, n), rule.reminding
        common = Common.first(rule, arithmetic, n)
        return [Node(rule, place, self._make_own(rule, arithmetic, place.agent), common) for place in self.places]

    def _make_own(self, rule: Rule, arithmetic: CompiledArithmetic, agent: int) -> BlockOwn:
        return BlockOwn(rule, arithmetic, self._block, agent)

    def _advance(self, X: Array, y: Array, mapped: bool) -> Chunk:
        n_agents = self.network.n_agents
        bad = ~np.isfinite(X).all(axis=(1, 2))
        n_rounds = int(np.argmax(bad)) if bad.any() else len(y)
        samples = X[:n_rounds].reshape(n_rounds * n_agents, X.shape[2]).astype(self.dtype, copy=False)
        self._begin_block(samples, n_rounds, mapped)
        labels = np.ascontiguousarray(y[:n_rounds].astype(self.dtype, copy=False), dtype=np.float64)
        labels = labels.reshape(n_rounds, n_agents, self._block.outputs)
        record = Record(labels.shape, y.shape[2:], self._collective)
        self._targets = self._first_targets(labels)
        block, found = self._block, (record.predictions, self._block.squares, record.found, record.scores)
        block.rounds.record(block.phi, labels, self._targets, *found)
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
        block.begin(phi)
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
            if not sound or (block.changed and not self._block.rounds.measure(self._models(), stop - 1)):
                self.round -= 1
                return endings.DIVERGED, stop - 1, 0
            block.changed = False
        return status, stop, 0

    def _run_quiet(self, labels: Array, record: Record, first: int, stop: int) -> tuple[int, int]:
        """Rounds in which nobody speaks: how they ended, and at which row.

        Models that are lost on the way are rebuilt, once a round, and told of in the record.
        """
        block, rounds, n_agents, resumes = self._block, self._block.rounds, self._block.n_agents, False
        rounds.largest = self._largest
        self._begin_stretch(labels, record, first, stop)
        while True:
            status, row = rounds.advance(first, stop, resumes=resumes)
            self._largest = rounds.largest
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
            if not rebuilt or (status == endings.SPOILED and not rounds.measure_again(first - 1)):
                return endings.DIVERGED, row
            if first == stop:
                return endings.FINISHED, stop * n_agents
            resumes = True

    def _first_targets(self, labels: Array) -> Array:
        """Labels of a chunk as they are learned from."""
        return labels

    def _begin_stretch(self, labels: Array, record: Record, first: int, stop: int) -> None:
        """What there is to do before these rounds."""

    def _models(self) -> Array:
        """The models that predict."""
        return self._block.weights

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
        self.scores = np.empty((2, n_rounds if collective else 0, n_agents))
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
