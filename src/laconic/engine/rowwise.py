"""States by rows: those of some agents out of all, and those of all out of several parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from laconic._validate import Array
from laconic.trace import State


def _each(states: Sequence[State], do: Callable[[list[Array]], Array]) -> State:
    """The state that ``do`` makes of each array of several states that have the same ones."""
    first = states[0]
    return State(
        first.round,
        {name: do([state.learner[name] for state in states]) for name in first.learner},
        do([state.broadcast for state in states]),
        {name: do([state.channel[name] for state in states]) for name in first.channel},
    )


def chosen(state: State, agents: Array) -> State:
    """The rows of some agents.

    >>> state = State(3, {"weights": np.arange(8.0).reshape(4, 2)}, np.zeros((4, 2)))
    >>> chosen(state, np.array([2, 0])).weights.tolist()
    [[4.0, 5.0], [0.0, 1.0]]
    """
    return _each([state], lambda arrays: np.asarray(arrays[0])[agents])


def joined(parts: Sequence[tuple[Array, State]]) -> State:
    """The rows of all agents, each part with the numbers of its own.

    >>> halves = [(np.array([k]), State(3, {"weights": np.full((1, 2), k)}, np.zeros((1, 2)))) for k in (1, 0)]
    >>> joined(halves).weights.tolist()
    [[0, 0], [1, 1]]
    """
    order = np.argsort(np.concatenate([agents for agents, _ in parts]))
    return _each([state for _, state in parts], lambda arrays: np.asarray(np.concatenate(arrays)[order]))
