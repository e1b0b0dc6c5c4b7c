"""The compiled engine of agents with a prediction of their own: compiled rounds over arms beside the wave's model."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.engine.wave_compiled import Block, BlockOwn, CompiledWaving, Record
from laconic.guard.labels import LabelGuard
from laconic.native.arrays import aligned
from laconic.native.waves import ArmArrays
from laconic.waves import Node, Rule
from laconic.waves.arms import FIRST, PERSONAL, SHRUNK, Stack, rebuilt_arms, shrunk
from laconic.waves.own import reminded
from laconic.waves.rule import ArmNumbers

__all__ = ["CompiledPersonal", "CompiledWaving"]


def make_arms(rule: Rule, n_agents: int, n_features: int) -> ArmArrays:
    """The arms of all agents before their first sample."""

    def rows(n: int) -> Array:
        return aligned(n, n_features, np.float64)

    numbers, size, n_arms = rule.arms or ArmNumbers(), rows(1).shape[1], len(FIRST)
    arms: ArmArrays = ArmArrays.of(
        n_features=n_features,
        forgetting=numbers.forgetting,
        ridge=numbers.ridge,
        step=numbers.step,
        models=rows(n_agents),
        pair=rows(2 * n_agents),
        pair_spread=rows(2 * n_agents * size),
        recent=rows(n_agents),
        recent_spread=rows(n_agents * size),
        quick=rows(n_agents),
        stack=np.tile(FIRST, (n_agents, 1)),
        errors=np.zeros((n_agents, n_arms, n_arms)),
        turns=np.zeros(n_agents, dtype=np.int64),
        first=FIRST.copy(),
        pending=rows(4 * n_agents),
        raised=np.ones(n_agents),
        shared=rows(n_agents),
        adopted=np.zeros(n_agents, dtype=np.bool_),
    )
    for agent in range(n_agents):
        for arm, ridge in enumerate((numbers.shrinkage * rule.ridge, rule.ridge)):
            np.fill_diagonal(_matrix(arms.array("pair_spread"), 2 * agent + arm, n_features), 1.0 / ridge)
        np.fill_diagonal(_matrix(arms.array("recent_spread"), agent, n_features), 1.0 / numbers.ridge)
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
        self, rule: Rule, arithmetic: CompiledArithmetic, block: Block, agent: int, arms: ArmArrays, last: Last
    ) -> None:
        super().__init__(rule, arithmetic, block, agent)
        self.numbers = numbers = rule.arms or ArmNumbers()
        self._arms, self._last = arms, last
        self.theta, self.following = np.zeros(block.n_features), False
        self.guard = None if numbers.deviations is None else LabelGuard(numbers.deviations, numbers.usual)

    def _row(self, name: str) -> Array:
        """A view of the agent's model in one of the arrays of all arms."""
        return self._arms.array(name)[self._agent, : self._block.n_features]

    @property
    def model(self) -> Array:
        """The stack as one model."""
        return self._row("models")

    @property
    def shared(self) -> Array:
        """The model that all share; the wave's own before there is one."""
        return self.theta if self.following else self.weights

    @property
    def stack(self) -> Stack:
        """The weights of the arms, and what they were made of: copies."""
        stack = Stack()
        stack.weights = self._arms.array("stack")[self._agent].copy()
        stack.errors = self._arms.array("errors")[self._agent].copy()
        return stack

    def adopt(self, spread: Array, weights: Array) -> None:
        """What a wave brought, for the arms that follow it; then each sample since."""
        self.theta, self.following = weights.copy(), True
        more = (self.numbers.shrinkage - 1) * self.rule.ridge
        spreads, rows = self._spreads(), self._rows()
        spreads[SHRUNK][:], rows[SHRUNK][:] = self._shrunk(spread, weights, more)
        if self._mark is not None:
            self._block.rounds.replay_arm(self._agent, SHRUNK, self._samples_since())
        super().adopt(spread, weights)
        rows[PERSONAL][:] = self._personal(spreads[PERSONAL])

    def share(self) -> None:
        """Let the core know the model for anybody's data."""
        self._row("shared")[:], self._arms.array("adopted")[self._agent] = self.shared, self.following

    def _shrunk(self, spread: Array, weights: Array, more: float) -> tuple[Array, Array]:
        """``shrunk``, once for all agents that adopt the very same matrix."""
        if self._last.spread is not spread or self._last.weights is not weights:
            self._last.spread, self._last.weights = spread, weights
            self._last.made = shrunk(spread, weights, more)
        return self._last.made

    def remind(self, ridge: float) -> None:
        """Put so much of the ridge back into P, and as many times as much as there was into those of arms."""
        super().remind(ridge)
        for kept, times in zip(self._spreads(), (self.numbers.shrinkage, 1.0), strict=False):
            kept[:] = reminded(_whole(kept), times * ridge)

    def rebuild(self, theta: Array) -> None:
        """Make all arms anew, and trust them as in the beginning."""
        super().rebuild(theta)
        agent, size, places = self._agent, self._block.size, [*self._spreads(), *self._rows()]
        all_rows = ("pair", 2), ("pair_spread", 2 * size), ("recent", 1), ("recent_spread", size), ("quick", 1)
        for name, n_rows in all_rows:
            self._arms.array(name)[agent * n_rows : (agent + 1) * n_rows] = 0.0
        spreads, models = rebuilt_arms(self, self.numbers, theta)
        for place, made in zip(places, [*spreads, *models], strict=True):
            place[:] = made
        self._arms.array("stack")[self._agent] = FIRST
        self._arms.array("errors")[self._agent] = 0.0
        self._arms.mix(self._block.weights)

    def _personal(self, kept: Array) -> Array:
        """w = P (b + ridge theta) of the personal arm, by its matrix: see ``waves.arms``."""
        ridge, n = self.rule.ridge, self._block.n_features
        if self.rule.forgetting < 1:
            inverse = np.linalg.inv(self.information + ridge * np.eye(n))
            kept[:] = 0.5 * (inverse + inverse.T)
        return np.asarray(_whole(kept) @ (self.moments + ridge * self.theta))

    def _rows(self) -> list[Array]:
        """Views of the models of all arms but the wave's."""
        pair = self._arms.array("pair")[2 * self._agent : 2 * self._agent + 2, : self._block.n_features]
        return [*pair, self._row("recent"), self._row("quick")]

    def _spreads(self) -> list[Array]:
        """Views of their matrices, of which nothing is pending."""
        arms, n, agent = self._arms, self._block.n_features, self._agent
        self._block.rounds.settle(agent)
        pair = [_matrix(arms.array("pair_spread"), 2 * agent + arm, n) for arm in (SHRUNK, PERSONAL)]
        return [*pair, _matrix(arms.array("recent_spread"), agent, n)]

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
            "turn": np.array(self._arms.array("turns")[self._agent]),
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
        arms.array("stack")[agent], arms.array("errors")[agent] = parts["stack"], parts["stack_errors"]
        arms.array("turns")[agent] = int(parts["turn"])
        if self.guard is not None:
            self.guard.restore(parts["guard"])
        arms.mix(self._block.weights)


@final
class CompiledPersonal(CompiledWaving):
    """Runs chunks of rounds, one after the other, from a first or a given state."""

    def make_nodes(self) -> list[Node]:
        """A node for each place, over the arrays of one block and of its arms."""
        self._arms = make_arms(self.learner.rule(), self.network.n_agents, self.features.n_features)
        self._last = Last()
        nodes = super().make_nodes()
        self._block.rounds.put(arms=self._arms)
        return nodes

    def _make_own(self, rule: Rule, arithmetic: CompiledArithmetic, agent: int) -> BlockOwn:
        return PersonalBlockOwn(rule, arithmetic, self._block, agent, self._arms, self._last)

    def _models(self) -> Array:
        """The mixtures of everybody's arms, after a wave may have moved them."""
        self._arms.mix(self._block.weights)
        return self._arms.array("models")

    def _first_targets(self, labels: Array) -> Array:
        """Labels of a chunk, to be held to what is usual at each agent."""
        numbers = self.learner.rule().arms or ArmNumbers()
        return labels if numbers.deviations is None else labels.copy()

    def _begin_stretch(self, labels: Array, record: Record, first: int, stop: int) -> None:
        """Hold the labels to what is usual at each agent."""
        if record.stack is None:
            record.stack = np.empty((*labels.shape[:2], len(FIRST)))
            self._arms.put(stacks=record.stack)
        for agent, node in enumerate(self.nodes):
            own: Any = node.own
            own.share()
            if own.guard is not None:
                given = labels[first:stop, agent, 0].tolist()
                self._targets[first:stop, agent, 0] = [own.guard(label) for label in given]
