"""The compiled engine of agents with a prediction of their own: compiled rounds over arms beside the wave's model."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine import personal_rounds
from laconic.engine.personal_rounds import Arms
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.wave_compiled import Block, BlockOwn, CompiledWaving, Record
from laconic.guard.labels import LabelGuard
from laconic.native.arrays import aligned
from laconic.waves import Node, Rule
from laconic.waves.arms import FIRST, PERSONAL, SHRUNK, Stack, rebuilt_arms, shrunk
from laconic.waves.own import reminded
from laconic.waves.rule import ArmNumbers

__all__ = ["CompiledPersonal", "CompiledWaving"]


def make_arms(rule: Rule, numbers: ArmNumbers, n_agents: int, n_features: int) -> Arms:
    """The arms of all agents before their first sample."""

    def rows(n: int) -> Array:
        return aligned(n, n_features, np.float64)

    size, n_arms = rows(1).shape[1], len(FIRST)
    arms = Arms(
        models=rows(n_agents),
        pair=rows(2 * n_agents),
        pair_spread=rows(2 * n_agents * size),
        recent=rows(n_agents),
        recent_spread=rows(n_agents * size),
        quick=rows(n_agents),
        stack=np.tile(FIRST, (n_agents, 1)),
        errors=np.zeros((n_agents * n_arms, n_arms)),
        turns=np.zeros(n_agents, dtype=np.int64),
        first=FIRST.copy(),
        settings=np.array([numbers.forgetting, numbers.ridge, numbers.step, n_features]),
        column=rows(1),
        margins=np.zeros(n_arms),
        slopes=np.zeros(n_arms),
    )
    ridges = numbers.shrinkage * rule.ridge, rule.ridge
    for agent in range(n_agents):
        for arm, ridge in enumerate(ridges):
            _matrix(arms.pair_spread, 2 * agent + arm, n_features)[:] = np.eye(n_features) / ridge
        _matrix(arms.recent_spread, agent, n_features)[:] = np.eye(n_features) / numbers.ridge
    return arms


def _matrix(spread: Array, index: int, n_features: int) -> Array:
    """A view of one of the matrices; of its tiles those above the diagonal are not kept."""
    size = spread.shape[1]
    return spread[index * size : index * size + n_features, :n_features]


def _whole(lower: Array) -> Array:
    """The symmetric matrix of which only the lower half is kept."""
    lower = np.tril(lower)
    return np.asarray(lower + np.tril(lower, -1).T)


@final
class Last:
    """What was shrunk last: most agents adopt the very same matrix, and need not do it again."""

    spread: Array | None = None
    weights: Array | None = None
    made: tuple[Array, Array]


@final
class PersonalBlockOwn(BlockOwn):
    """An agent's own part with arms, in the arrays of a block."""

    def __init__(
        self, rule: Rule, arithmetic: CompiledArithmetic, block: Block, agent: int, arms: Arms, last: Last
    ) -> None:
        super().__init__(rule, arithmetic, block, agent)
        self.numbers = numbers = rule.arms or ArmNumbers()
        self._arms, self._last = arms, last
        self.theta, self.following = np.zeros(block.n_features), False
        self.guard = None if numbers.deviations is None else LabelGuard(numbers.deviations, numbers.usual)

    @property
    def model(self) -> Array:
        """The stack as one model."""
        return self._arms.models[self._agent, : self._block.n_features]

    @property
    def shared(self) -> Array:
        """The model that all share; the wave's own before there is one."""
        return self.theta if self.following else self.weights

    @property
    def stack(self) -> Stack:
        """The weights of the arms, and what they were made of: copies."""
        stack, n_arms = Stack(), len(FIRST)
        stack.weights = self._arms.stack[self._agent].copy()
        stack.errors = self._arms.errors[self._agent * n_arms : (self._agent + 1) * n_arms].copy()
        return stack

    def adopt(self, spread: Array, weights: Array) -> None:
        """What a wave brought, for the arms that follow it; then each sample since."""
        self.theta, self.following = weights.copy(), True
        arms, n = self._arms, self._block.n_features
        more = (self.numbers.shrinkage - 1) * self.rule.ridge
        P, w = self._shrunk(spread, weights, more)
        first = 2 * self._agent + SHRUNK
        _matrix(arms.pair_spread, first, n)[:], arms.pair[first, :n] = P, w
        if self._mark is not None:
            self._replay(arms.pair_spread, arms.pair, first)
        super().adopt(spread, weights)
        self._personalise()

    def _shrunk(self, spread: Array, weights: Array, more: float) -> tuple[Array, Array]:
        """``shrunk``, once for all agents that adopt the very same matrix."""
        if self._last.spread is not spread or self._last.weights is not weights:
            self._last.spread, self._last.weights = spread, weights
            self._last.made = shrunk(spread, weights, more)
        return self._last.made

    def remind(self, ridge: float) -> None:
        """Put so much of the ridge back into P, and as many times as much as there was into those of arms."""
        super().remind(ridge)
        for arm, times in ((SHRUNK, self.numbers.shrinkage), (PERSONAL, 1.0)):
            kept = _matrix(self._arms.pair_spread, 2 * self._agent + arm, self._block.n_features)
            kept[:] = reminded(_whole(kept), times * ridge)

    def rebuild(self, theta: Array) -> None:
        """Make all arms anew, and trust them as in the beginning."""
        super().rebuild(theta)
        arms, agent, size = self._arms, self._agent, self._block.size
        for kept, rows in ((arms.pair, 2), (arms.pair_spread, 2 * size), (arms.recent, 1), (arms.recent_spread, size)):
            kept[agent * rows : (agent + 1) * rows] = 0.0
        arms.quick[agent] = 0.0
        spreads, models = rebuilt_arms(self, self.numbers, theta)
        for place, made in zip([*self._spreads(), *self._rows()], [*spreads, *models], strict=True):
            place[:] = made
        arms.stack[agent], arms.errors[agent * len(FIRST) : (agent + 1) * len(FIRST)] = FIRST, 0.0
        personal_rounds.mix_arms(arms, self._block.weights)

    def _personalise(self) -> None:
        """w = P (b + ridge theta) of the personal arm: see ``waves.arms``."""
        index, ridge, n = 2 * self._agent + PERSONAL, self.rule.ridge, self._block.n_features
        kept = _matrix(self._arms.pair_spread, index, n)
        if self.rule.forgetting < 1:
            inverse = np.linalg.inv(self.information + ridge * np.eye(n))
            kept[:] = 0.5 * (inverse + inverse.T)
        self._arms.pair[index, :n] = _whole(kept) @ (self.moments + ridge * self.theta)

    def _rows(self) -> list[Array]:
        """Views of the models of all arms but the wave's."""
        arms, n, agent = self._arms, self._block.n_features, self._agent
        return [row[:n] for row in (*arms.pair[2 * agent : 2 * agent + 2], arms.recent[agent], arms.quick[agent])]

    def _spreads(self) -> list[Array]:
        """Views of their matrices."""
        arms, n, agent = self._arms, self._block.n_features, self._agent
        pair = [_matrix(arms.pair_spread, 2 * agent + arm, n) for arm in (SHRUNK, PERSONAL)]
        return [*pair, _matrix(arms.recent_spread, agent, n)]

    def check_guard(self, numbers: Array, largest: float = np.inf) -> None:
        """ValueError unless labels of at most that size can have taught its guard these numbers."""
        if self.guard is not None:
            self.guard.check(numbers, largest)

    def parts(self) -> dict[str, Array]:
        """All of it as arrays; ``weights`` are those of the model that all share."""
        n, stack = self._block.n_features, self.stack
        return {
            **super().parts(),
            "weights": self.shared.copy(),
            "adopted": self.theta.copy(),
            "following": np.array(int(self.following)),
            "arms": np.array([self.weights, *self._rows()]),
            "arm_spreads": np.array([spread[np.tril_indices(n)] for spread in self._spreads()]),
            "stack": stack.weights,
            "stack_errors": stack.errors,
            "guard": np.zeros(0) if self.guard is None else self.guard.numbers(),
            "turn": np.array(self._arms.turns[self._agent]),
        }

    def restore(self, parts: dict[str, Array]) -> None:
        """Take over what ``parts`` gave."""
        super().restore({**parts, "weights": parts["arms"][0]})
        arms, agent, n = self._arms, self._agent, self._block.n_features
        self.theta, self.following = parts["adopted"].copy(), bool(parts["following"])
        for place, row in zip(self._rows(), parts["arms"][1:], strict=True):
            place[:] = row
        for place, triangle in zip(self._spreads(), parts["arm_spreads"], strict=True):
            place[np.tril_indices(n)] = triangle
            place[:] = _whole(place)
        arms.stack[agent] = parts["stack"]
        arms.errors[agent * len(FIRST) : (agent + 1) * len(FIRST)] = parts["stack_errors"]
        arms.turns[agent] = int(parts["turn"])
        if self.guard is not None:
            self.guard.restore(parts["guard"])
        personal_rounds.mix_arms(arms, self._block.weights)


@final
class CompiledPersonal(CompiledWaving):
    """Runs chunks of rounds, one after the other, from a first or a given state."""

    def make_nodes(self) -> list[Node]:
        """A node for each place, over the arrays of one block and of its arms."""
        nodes = super().make_nodes()
        rule, n, n_agents = self.learner.rule(), self.features.n_features, self.network.n_agents
        self._arms = make_arms(rule, rule.arms or ArmNumbers(), n_agents, n)
        self._shared, last = aligned(n_agents, n, np.float64), Last()
        for node in nodes:
            arithmetic: Any = node.arithmetic
            node.own = PersonalBlockOwn(rule, arithmetic, self._block, node.place.agent, self._arms, last)
        return nodes

    def _models(self) -> Array:
        """The mixtures of everybody's arms, after a wave may have moved them."""
        personal_rounds.mix_arms(self._arms, self._block.weights)
        return self._arms.models

    def _begin_stretch(self, labels: Array, first: int, stop: int) -> None:
        """Hold the labels to what is usual at each agent."""
        self._clipped = labels
        for agent, node in enumerate(self.nodes):
            own: Any = node.own
            if own.guard is not None:
                self._clipped = labels.copy() if self._clipped is labels else self._clipped
                given = labels[first:stop, agent, 0].tolist()
                self._clipped[first:stop, agent, 0] = [own.guard(label) for label in given]

    def _quiet(self, labels: Array, record: Record, first: int, stop: int, largest: Array) -> tuple[int, int]:
        """Rounds in which nobody speaks: how they ended, and at which row."""
        block = self._block
        if record.stack is None:
            record.stack = np.empty((*labels.shape[:2], len(FIRST)))
        adopted = np.zeros(block.n_agents, dtype=bool)
        for agent, node in enumerate(self.nodes):
            own: Any = node.own
            self._shared[agent, : block.n_features], adopted[agent] = own.shared, own.following
        ended: tuple[int, int] = personal_rounds.personal_rounds(
            block.phi,
            labels,
            self._clipped,
            first,
            stop,
            self._loss,
            self._forgetting,
            block.weights,
            block.spread,
            self._arms,
            self._shared,
            adopted,
            block.theta,
            block.gain,
            largest,
            record.predictions,
            block.squares,
            record.found,
            record.scores,
            record.stack,
        )
        return ended
