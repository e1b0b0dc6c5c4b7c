"""One agent of a network, as a state machine: samples and bytes go in, predictions and bytes come out.

There are no sockets, clocks or threads in here. Whoever drives an agent carries its messages (``laconic.transport``),
tells it who is there, and decides when a round begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import Argument, Worded
from laconic.engine import Diverged
from laconic.engine.endings import BAD_INPUT, DIVERGED
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.protocol.checkpoint import AgentState, read_checkpoint, write_checkpoint
from laconic.protocol.dialogue import Dialogue, Message
from laconic.protocol.edge import Neighbour
from laconic.protocol.fingerprint import fingerprint
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Position
from laconic.protocol.state import put_state, take_state
from laconic.protocol.wire import Wire

LOCKSTEP, SLOTTED = "lockstep", "slotted"
_LAST_ROUND = 1 << 47  # half of what a message can say


class NotReady(RuntimeError):
    """The round is not over: some neighbour has not been heard."""


class Info(NamedTuple):
    """What a round was.

    Attributes
    ----------
    round : int
        Counted from 1.
    prediction : float
        Made before the label was learned from; NaN in a round without a sample.
    label : float
        NaN if it was missing.
    loss : float
        Of the prediction; NaN without a label.
    sent : bool
        Whether the model, or its change, was sent.
    bits : int
        What that cost by the paper's account: 0 if nothing was sent.
    saturated : float
        Share of the message's entries that lay outside the quantizer's range.
    """

    round: int
    prediction: float
    label: float
    loss: float
    sent: bool
    bits: int
    saturated: float


@final
class Agent:
    """An agent that learns from its own samples and from what its neighbours say.

    Parameters
    ----------
    name : str
    neighbours : iterable of str, or mapping from str to int
        Who is heard; the order is the one in which sums are formed. A mapping also gives each one's number of
        neighbours, which diffusion weighs them by; otherwise they say so themselves with their first message.
    features : RandomFeatures
        The same at every agent.
    learner : Learner
        The same at every agent.
    n_agents : int
        Size N of the whole network, which the ridge is divided by.
    clock : "lockstep" or "slotted"
        When a round ends. In lockstep: when every neighbour has been heard, if only to say that it has nothing to say;
        then a network of agents computes what ``lc.simulate`` computes, to the bit. On slots: when whoever drives the
        agent says so; then silence is the censored message and costs no byte.
    dtype : "float64" or "float32"
    heartbeat : int
        On slots, say "nothing to say" after so many silent rounds, so that a neighbour that missed the last message
        finds out; 0 is never.
    engine : "auto", "compiled" or "reference"
        How the rounds are computed: by the simulator's kernels, or by the learner's own steps in NumPy, which needs
        neither numba nor any time to start. Auto takes the kernels where there are. Agents of both kinds understand
        each other.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.5, seed=0)
    >>> learner = lc.QCODKLA(rho=0.5, eta=1.0, alpha=1.0, beta=0.99, bits=3)
    >>> ann = lc.Agent("ann", ["ben"], features, learner, n_agents=2)
    >>> ben = lc.Agent("ben", ["ann"], features, learner, n_agents=2)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(500):
    ...     for agent in (ann, ben):
    ...         x = rng.uniform(size=2)
    ...         info = agent.learn(x, np.sin(5 * x[0]) + x[1])
    ...     for sender, receiver in ((ann, ben), (ben, ann)):
    ...         for message in sender.outgoing():
    ...             receiver.receive(message.data)
    >>> info.sent, info.bits, len(message.data)
    (True, 332, 64)
    >>> bool((ben.replica("ann") == ann.broadcast).all())
    True
    """

    def __init__(
        self,
        name: str,
        neighbours: Iterable[str] | Mapping[str, int],
        features: RandomFeatures,
        learner: Learner,
        *,
        n_agents: int,
        clock: str = LOCKSTEP,
        dtype: str = "float64",
        heartbeat: int = 0,
        engine: str = "auto",
    ) -> None:
        self.name = _check_name("name", name)
        degrees = _check_neighbours(neighbours)
        if not isinstance(features, RandomFeatures):
            raise ValueError(f"features must be laconic.RandomFeatures, got {type(features).__name__}.")
        if not isinstance(learner, Learner):
            raise ValueError(f"learner must be a laconic.Learner, got {type(learner).__name__}.")
        n_agents = _validate.integer("n_agents", n_agents, least=1 + len(degrees))
        self.features, self.learner = features, learner
        self.clock = _validate.choice("clock", clock, (LOCKSTEP, SLOTTED))
        self.heartbeat = _validate.integer("heartbeat", heartbeat, least=0)
        self._speaks = learner.channel is not None
        ledger = Ledger(features, learner, n_agents, len(degrees), dtype, engine)
        mark = fingerprint(features, learner, n_agents, ledger.dtype)
        wire = Wire(self.name, mark, features.n_features, learner.channel, ledger.dtype)
        self._ledger, self._wire = ledger, wire
        self._dialogue = Dialogue(self.name, self.clock == LOCKSTEP, ledger, wire)
        self._silent_for = 0
        for other, degree in degrees.items():
            self._dialogue.register(other, _validate.integer(f"degree of {other!r}", degree, least=0) or len(degrees))
        self._dialogue.hear_live_edges()

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, neighbours={list(self.neighbours)}, round={self.round})"

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def predict(self, x: object) -> float:
        """The model's prediction for an input ``x`` of shape (n_inputs,). Changes nothing."""
        self._ledger.take(x)
        prediction = self._ledger.predict()
        if math.isnan(prediction):
            raise _bad_sample()
        return prediction

    def learn(self, x: object, y: float | None) -> Info:
        """One round: end the last one, predict, learn, speak. A label that is NaN or None is missing.

        Raises
        ------
        NotReady
            If the last round is not over: see ``waiting``.
        ValueError
            If the sample is no good; the round then has not begun.
        Diverged
            If the model left all bounds.
        """
        self._ledger.take(x)
        return self._round(_label(y))

    def idle(self) -> Info:
        """A round without a sample: the model follows the neighbours, and the ridge, but learns nothing new."""
        self._ledger.take(np.zeros(self.features.n_inputs))
        return self._round(math.nan)._replace(prediction=math.nan)

    def end_round(self) -> None:
        """Take in what was heard, and move the dual. ``learn`` does that first thing; nobody else has to.

        Raises
        ------
        NotReady
            If some neighbour has not been heard.
        """
        if not self.ready:
            raise NotReady(f"round {self.round} is not over: {self.name!r} waits for {', '.join(self.waiting)}.")
        self._dialogue.finish()

    def _round(self, label: float) -> Info:
        dialogue, ledger = self._dialogue, self._ledger
        self.end_round()
        t = dialogue.round + 1
        status, prediction = ledger.learn(label, t)
        if status == BAD_INPUT:
            raise _bad_sample()
        if status == DIVERGED:
            lost = f"the model of agent {self.name!r} left all bounds; raise "
            raise Diverged(t, None, Worded(lost, Argument("eta"), " or lower ", Argument("step"), "."))
        sent, outside, scale = ledger.speak(t) if self._speaks else (False, 0, 0.0)
        dialogue.begin_round(sent)
        sent = sent and dialogue.degree > 0
        if dialogue.degree and self._speaks:
            self._say(sent, scale)
            dialogue.follow_up()
        elif not self._speaks:
            dialogue.end_round_alone()
        bits = ledger.message_bits() if sent else 0
        dialogue.count_round(sent, bits)
        saturated = outside / ledger.n_features if sent else 0.0
        return Info(t, prediction, label, ledger.loss(prediction, label), sent, bits, saturated)

    def _say(self, sent: bool, scale: float) -> None:
        dialogue, degree = self._dialogue, self._dialogue.degree
        if sent:
            if self._ledger.row.dense:
                data = self._wire.dense(dialogue.position, degree, self._ledger.said(0))
            else:
                data = self._wire.difference(dialogue.position, degree, self._ledger.row.message, scale)
            dialogue.say(data, spoken=True)
            self._silent_for = 0
            return
        self._silent_for += 1
        if dialogue.lockstep or (self.heartbeat and self._silent_for >= self.heartbeat):
            dialogue.say(self._wire.silence(dialogue.position, degree), spoken=False)
            self._silent_for = 0

    def skip_to(self, round: int) -> None:
        """On slots: let rounds pass in silence until ``round`` is the last one, as after a pause of the device."""
        if self.clock == LOCKSTEP:
            raise ValueError("skip_to is for clock='slotted': in lockstep the others wait.")
        self._dialogue.skip_to(_validate.integer("round", round, least=0, most=_LAST_ROUND))

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

    def receive(self, data: bytes, sender: str | None = None) -> None:
        """Take in a message. Whatever is wrong with it is counted in ``counters`` and logged; nothing is raised.

        ``sender`` is the neighbour that the transport vouches for, if it does: a message from another is refused.
        """
        dialogue, given = self._dialogue, data  # type: Dialogue, object
        if not isinstance(given, (bytes, bytearray, memoryview)):
            dialogue.refuse("not bytes", sender)
            return
        try:
            message = bytes(given)
        except ValueError:  # a view of memory that has been released
            dialogue.refuse("not bytes", sender)
            return
        dialogue.receive(message, sender)

    def outgoing(self) -> list[Message]:
        """The messages to be carried now, in order; each is given out once."""
        return self._dialogue.take_outgoing()

    @property
    def ready(self) -> bool:
        """Whether the next round may begin."""
        return not (self._speaks and self._dialogue.waiting())

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who has to be heard before the next round may begin."""
        return tuple(n.name for n in self._dialogue.waiting()) if self._speaks else ()

    def remind(self) -> None:
        """Ask those again that are waited for. For whoever drives the agent, when nothing has come for a while."""
        self._dialogue.remind()

    # ----------------------------------------------------------------------------------------------------------------
    # Who is there

    def connected(self, name: str) -> None:
        """A neighbour is there, for the first time or again: find out what was missed."""
        self._dialogue.meet(self._neighbour(name))

    def disconnected(self, name: str) -> None:
        """A neighbour is gone: suspend the edge, and wait for it no longer."""
        self._dialogue.miss(self._neighbour(name))

    def rejoin(self) -> None:
        """Start among agents that may already be running: ask them all what this one last said, before it goes on.

        Call it once, after the constructor and perhaps ``restore``. The agent is not ready until all have answered
        whose absence has not been noted by ``disconnected``.
        """
        if self._speaks:
            self._dialogue.rejoin()

    def add(self, name: str, degree: int = 0) -> None:
        """Have a neighbour more; it has to be told likewise. The edge opens when both have agreed."""
        if _check_name("neighbours", name) in self._dialogue.neighbours:
            raise ValueError(f"{name!r} is a neighbour already.")
        self._dialogue.add_neighbour(name, _validate.integer("degree", degree, least=0))

    def remove(self, name: str) -> None:
        """Have a neighbour less: its share of the dual goes with it, and it is told."""
        self._dialogue.remove_neighbour(self._neighbour(name))

    def leave(self) -> None:
        """Say farewell to all neighbours."""
        for name in self.neighbours:
            self.remove(name)

    def _neighbour(self, name: str) -> Neighbour:
        try:
            return self._dialogue.neighbours[name]
        except (KeyError, TypeError):
            known = ", ".join(repr(other) for other in self.neighbours) or "nobody"
            raise ValueError(
                f"{_validate.shown(name)} is no neighbour of {self.name!r}, which hears {known}."
            ) from None

    # ----------------------------------------------------------------------------------------------------------------
    # What there is to see

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Names of all neighbours, there or not."""
        return tuple(self._dialogue.neighbours)

    @property
    def edges(self) -> dict[str, str]:
        """Where each edge stands: "live", "opening" or "gone"."""
        return {name: neighbour.stage.value for name, neighbour in self._dialogue.neighbours.items()}

    @property
    def round(self) -> int:
        """The last round, counted from 1."""
        return self._dialogue.round

    @property
    def position(self) -> Position:
        """(life, sequence, round): how far the agent has come."""
        return self._dialogue.position

    @property
    def weights(self) -> Array:
        """A copy of the model theta."""
        return self._ledger.weights.copy()

    @property
    def duals(self) -> Array:
        """A copy of the dual gamma, as of the last round that has ended."""
        if not self._ledger.has_duals:
            raise AttributeError("this learner keeps no duals.")
        return self._ledger.duals.copy()

    @property
    def broadcast(self) -> Array:
        """A copy of theta-hat: what the neighbours believe the model to be."""
        return self._ledger.said(0).copy()

    def replica(self, name: str) -> Array:
        """A copy of what this agent believes a neighbour's model to be."""
        return self._ledger.said(self._neighbour(name).index).copy()

    def heard(self, name: str) -> Position:
        """How far a neighbour has been heard."""
        return self._neighbour(name).position

    def share(self, name: str) -> Array:
        """A copy of an edge's share of the dual, over rho: gamma is rho times the sum of the live edges' shares."""
        neighbour = self._neighbour(name)
        if neighbour.live:
            return neighbour.share(self._ledger.balance(neighbour.index)).copy()
        return np.zeros(self._ledger.n_features)

    @property
    def counters(self) -> dict[str, Any]:
        """What has happened so far: sends, censored, bits, bytes and messages in and out, repairs, refusals..."""
        names = ("sends", "censored", "bits", "messages_in", "messages_out", "bytes_in", "bytes_out")
        more = ("requests", "repeats", "snapshots", "repairs", "recoveries")
        dialogue = self._dialogue
        return {**{name: dialogue.counters[name] for name in names + more}, "refusals": dict(dialogue.refusals)}

    # ----------------------------------------------------------------------------------------------------------------
    # Memory

    def state(self) -> AgentState:
        """All that the agent needs to go on, as plain values and copies of arrays."""
        return take_state(self._dialogue)

    def restore(self, state: AgentState) -> None:
        """Be where ``state`` was taken; neighbours that it does not know are new, others that it knows are dropped."""
        put_state(self._dialogue, state)

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all; the file before it is kept beside it as ``.previous``."""
        write_checkpoint(_validate.path("path", path), self.state())

    def load(self, path: str | Path) -> bool:
        """Restore from ``path``, or from the one before it if that is torn; False if there is neither."""
        state = read_checkpoint(_validate.path("path", path))
        if state is None:
            return False
        self.restore(state)
        return True


def _label(y: object) -> float:
    if y is None:
        return math.nan
    if isinstance(y, (str, bytes)):  # float would read it
        raise ValueError(f"y must be a number, or NaN where it is missing; got {_validate.shown(y)}.")
    try:
        label = float(y)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"y must be a number, or NaN where it is missing; got {_validate.shown(y)}.") from None
    if math.isinf(label):
        raise ValueError(f"y must be finite, or NaN where it is missing; got {_validate.shown(y)}.")
    return label


def _check_name(what: str, name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        raise ValueError(f"{what} must be given as text of 1 to 200 characters, got {_validate.shown(name)}.")
    return name


def _check_neighbours(neighbours: object) -> dict[str, int]:
    """Names and degrees; 0 where a degree is not known."""
    if isinstance(neighbours, str):
        raise ValueError(f"neighbours must be a list of names, got the single string {neighbours!r}.")
    if not isinstance(neighbours, Iterable):
        raise ValueError(f"neighbours must be a list of names, got {_validate.shown(neighbours)}.")
    degrees = neighbours if isinstance(neighbours, Mapping) else None
    names = [_check_name("neighbours", name) for name in neighbours]
    return {name: 0 if degrees is None else degrees[name] for name in names}


def _bad_sample() -> ValueError:
    return ValueError("x must be finite, and not so large that the phases of the features overflow.")
