"""What both engines share: the columns they record, and the state they start from and leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel import Channel
from laconic.features import RandomFeatures
from laconic.learners import Learner, Sample
from laconic.learners.base import row_dot
from laconic.network import Network
from laconic.trace import State

#: Recorded in every round, in the order of ``rounds.Columns``; the last two only when collective scores are wanted.
COLUMNS = (
    "predictions",
    "sent",
    "outside",
    "consensus_error",
    "energy",
    "replica_error",
    "collective_square",
    "collective_loss",
)


_MOST_ROUNDS = 2**53  # up to here each round has a number of its own


class Chunk(NamedTuple):
    """Some rounds of a run: their columns, how many there are, and why they ended early if they did.

    ``ending`` is None, "bad input" or "diverged"; then ``agent`` is where it was noticed, in the round after the last
    one.
    """

    columns: dict[str, Array]
    n_rounds: int
    ending: str | None
    agent: int


@runtime_checkable
class Releasing(Protocol):
    """An engine that can hand over its state for good, which takes less memory than a copy."""

    def release(self) -> State:
        """All that the next round would need; the engine is of no use any more."""


class Engine(Protocol):
    """Runs chunks of rounds one after the other."""

    @property
    def name(self) -> str:
        """Which engine it is."""

    @property
    def round(self) -> int:
        """Rounds finished so far."""

    @property
    def energy_before(self) -> float:
        """Of the models that it began with."""

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of one chunk."""

    def state(self) -> State:
        """All that the next round needs."""


def make_sample(features: RandomFeatures, phi: Array, label: Array, t: int) -> Sample:
    """What ``learner.step`` is given: with |phi|^2, where that is not 1 for every input of this map."""
    return Sample(phi, label, t, None if features.unit else row_dot(phi, phi))


def snapshot(
    round: int,
    learner: Mapping[str, Array],
    broadcast: Array,
    channel: Channel | None = None,
    memory: Array | None = None,
) -> State:
    """A state of its own: copies, so that a run that goes on does not change it.

    ``memory`` (n_agents, ...) is what the channel's censor remembers.
    """
    copies = {name: array.copy() for name, array in learner.items()}
    return make_state(round, copies, broadcast.copy(), channel, memory)


def make_state(
    round: int, learner: Mapping[str, Array], broadcast: Array, channel: Channel | None, memory: Array | None
) -> State:
    """A state of these very arrays."""
    parts = {} if channel is None or memory is None else dict(zip(channel.memory, memory.T.copy(), strict=True))
    return State(round, learner, broadcast, parts)


def first_memory(learner: Learner, n_agents: int, state: State | None) -> Array:
    """What the learner's censor remembers of each agent in ``state``, or before the first round: (n_agents, ...)."""
    if learner.channel is None:
        return np.zeros((n_agents, 0))
    fresh, names = learner.channel.begin(n_agents), learner.channel.memory
    if state is None:
        return fresh
    if set(state.channel) != set(names):
        raise ValueError(
            f"state comes from another channel: it remembers {sorted(state.channel) or 'nothing'}, "
            f"{learner.channel.censor!r} remembers {sorted(names) or 'nothing'}."
        )
    for column, name in enumerate(names):
        kept = np.asarray(state.channel[name], dtype=np.float64)
        if kept.shape != (n_agents,):
            raise ValueError(f"state comes from another network: its {name} has shape {kept.shape}, not ({n_agents},).")
        fresh[:, column] = kept
    return fresh


def check_numbers(state: State) -> None:
    """Refuse a state, of a file perhaps, whose numbers no run can have left."""
    if not isinstance(state.round, (int, np.integer)) or not 0 <= state.round <= _MOST_ROUNDS:
        raise ArgumentError("state", f"must have a whole number of rounds, got {state.round!r:.60}.")
    parts = {"broadcast": state.broadcast, **state.channel, **state.learner}
    for name, array in parts.items():
        if not np.isfinite(array).all():
            raise ArgumentError("state", f"holds {name} that are not finite: its run has diverged, or it is damaged.")


def check_state_of(learner: Learner, state: State) -> None:
    """Refuse a state of the right shapes that this learner cannot have come to."""
    rows = type(learner.init(1, 1))
    why = learner.why_not(rows(**{name: np.asarray(array) for name, array in state.learner.items()}))
    if why:
        raise ArgumentError("state", f"holds {why}: it is damaged.")


def first_state(
    learner: Learner,
    network: Network,
    n_features: int,
    dtype: np.dtype[Any],
    state: State | None,
    *,
    copy: bool = True,
) -> State:
    """A private copy of ``state`` in the working precision, or the learner's first state with all replicas at zero.

    Without ``copy`` the arrays are those of the state, for who copies them anyway.
    """
    fresh = learner.init(network.n_agents, n_features)._asdict()
    if state is None:
        state = State(0, fresh, np.zeros((network.n_agents, n_features)))
    if not isinstance(state, State):
        raise ValueError(f"state must be the state of a trace, got {type(state).__name__}.")
    if set(state.learner) != set(fresh):
        raise ValueError(
            f"state comes from another learner: it holds {sorted(state.learner)}, "
            f"{type(learner).__name__} keeps {sorted(fresh)}."
        )
    for name, array in state.learner.items():
        if np.shape(array) != np.shape(fresh[name]):
            raise ValueError(
                f"state comes from another network or feature map: its {name} have shape {np.shape(array)}, "
                f"expected {np.shape(fresh[name])}."
            )
    check_numbers(state)
    if not copy:
        return state
    whole = learner.precise()
    kept = {
        name: np.array(array, dtype=np.float64 if name in whole else dtype, order="C")
        for name, array in state.learner.items()
    }
    return State(state.round, kept, np.array(state.broadcast, dtype=dtype, order="C"))
