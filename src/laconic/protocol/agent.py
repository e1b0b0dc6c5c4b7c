"""One agent of a network, as a state machine: samples and bytes go in, predictions and bytes come out.

There are no sockets, clocks or threads in here. Whoever drives an agent carries its messages (``laconic.transport``),
tells it who is there, and decides when a round begins.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.engine import Diverged
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, SPOILED
from laconic.features import RandomFeatures
from laconic.features import read as read_features
from laconic.guard import LARGEST_LABEL
from laconic.learners import Learner, Speech
from laconic.model import Model
from laconic.model.making import make_model
from laconic.protocol.arguments import bad_sample, check_name, check_neighbours, check_size, lost_model, read_label
from laconic.protocol.checkpoint import AgentState, load_checkpoint, write_checkpoint
from laconic.protocol.dialogue import Alert, Message
from laconic.protocol.guard import learn_guarded
from laconic.protocol.handshake import ROUND_LIMIT
from laconic.protocol.info import Info, NotReady
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Kind, Position
from laconic.protocol.parts import LOCKSTEP, SLOTTED, make_dialogue
from laconic.protocol.session import Session
from laconic.protocol.showing import agent_html
from laconic.protocol.state import put_state, take_state
from laconic.protocol.wave_dialogue import WaveDialogue
from laconic.protocol.waving import Waves
from laconic.protocol.wire import identity
from laconic.waves.rule import Numbers

_LARGEST_SQUARE = (DIVERGENCE * LARGEST_LABEL) ** 2  # of a model: entries beyond its root, 1e15, are refused by others


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
        finds out; whoever is not heard for ten rounds more is asked to begin anew.
    engine : "auto", "compiled" or "reference"
        How the rounds are computed: by the core, as in the simulator, or by the learner's own steps in NumPy. Auto
        takes the core where it has the learner. Agents of both kinds understand each other.
    incarnation : int, optional
        64 bits that no other process of this name has; drawn at random if not given, as it should be outside tests.

    Attributes
    ----------
    samples : int
        How far its stream of samples has been read: counted by whoever drives the agent, kept in its checkpoints.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.5, seed=0)
    >>> learner = lc.QCODKLA(rho=0.5, eta=1.0, alpha=1.0, beta=0.99, bits=3)
    >>> ann = lc.Agent("ann", ["ben"], features, learner, n_agents=2)
    >>> ben = lc.Agent("ben", ["ann"], features, learner, n_agents=2)
    >>> agents = {"ann": ann, "ben": ben}
    >>> def carry():
    ...     while messages := ann.outgoing() + ben.outgoing():
    ...         for message in messages:
    ...             agents[message.to].receive(message.data)
    ...     return message
    >>> message = carry()  # at first they get to know each other
    >>> rng = np.random.default_rng(0)
    >>> for t in range(500):
    ...     for agent in agents.values():
    ...         x = rng.uniform(size=2)
    ...         info = agent.learn(x, np.sin(5 * x[0]) + x[1])
    ...     message = carry()
    >>> info.sent, info.bits, len(message.data)
    (True, 332, 65)
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
        heartbeat: int = 10,
        engine: str = "auto",
        incarnation: int | None = None,
    ) -> None:
        self.name = check_name("name", name)
        degrees = check_neighbours(neighbours)
        features = read_features(features)
        if not isinstance(learner, Learner):
            raise ValueError(f"learner must be a laconic.Learner, got {type(learner).__name__}.")
        n_agents = check_size(n_agents, len(degrees))
        self.features, self.learner = features, learner
        self.clock = _validate.choice("clock", clock, (LOCKSTEP, SLOTTED))
        self.heartbeat = _validate.integer("heartbeat", heartbeat, least=0 if clock == LOCKSTEP else 1)
        inc = secrets.randbits(64) if incarnation is None else incarnation
        inc = _validate.integer("incarnation", inc, least=0, most=(1 << 64) - 1)
        options: dict[str, Any] = {"clock": clock, "dtype": dtype, "engine": engine, "inc": inc}
        options["heartbeat"] = self.heartbeat
        self._dialogue = make_dialogue(self.name, features, learner, n_agents, len(degrees), **options)
        self._ledger, self._wire = self._dialogue.ledger, self._dialogue.wire
        self._speaks = learner.channel is not None or learner.speech is Speech.OWN
        self._silent_for = self.samples = 0
        for index, (other, degree) in enumerate(degrees.items(), 1):
            degree = _validate.integer(f"degree of {other!r}", degree, least=0) or len(degrees)
            self._dialogue.register(self._end(other, index, degree))
        self._dialogue.accounts.resize([0] * len(degrees))
        self._dialogue.settle()
        if self._speaks:
            for end in self._dialogue.ends.values():
                self._dialogue.seek(end)

    def _end(self, name: str, index: int, degree: int) -> Session:
        """One's own end of an edge to ``name``."""
        known = self._dialogue.by_identity
        name = check_name("neighbours", name)
        number = identity(name)
        if name == self.name or number == self._wire.sender:
            raise ValueError(f"neighbours must be others than {self.name!r} itself, got {name!r}.")
        if number in known:
            raise ValueError(f"neighbours {known[number].name!r} and {name!r} share a number: rename one.")
        return Session(name, index, leads=self.name < name, degree=degree)

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, neighbours={list(self.neighbours)}, round={self.round})"

    _repr_html_ = agent_html

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def predict(self, x: object) -> Any:
        """The model's prediction for an input ``x`` of shape (n_inputs,), an array if it has several outputs."""
        self._ledger.take(x)
        prediction = self._ledger.predict()
        if np.isnan(prediction).any():
            raise bad_sample()
        return prediction

    def learn(self, x: object, y: Any) -> Info:
        """One round: end the last one, predict, learn, speak. A label that is NaN or None is missing.

        Where the learner has several outputs, ``y`` is an array with a label for each.

        Raises
        ------
        NotReady
            If the last round is not over: see ``waiting``.
        ValueError
            If the sample is no good: not finite, or a label of more than 1e12 in size, of which a model could come that
            cannot be said. The round then has not begun. See ``lc.Guard`` for labels that are only unlikely.
        Diverged
            If the model left all bounds.
        """
        self._ledger.take(x)
        return self._round(read_label(y, self.learner.outputs))

    def idle(self) -> Info:
        """A round without a sample: the model follows the neighbours, and the ridge, but learns nothing new."""
        self._ledger.take(np.zeros(self.features.n_inputs))
        return self._round(read_label(None, self.learner.outputs))._replace(prediction=math.nan)

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

    def _round(self, label: Numbers) -> Info:
        dialogue, ledger = self._dialogue, self._ledger
        self.end_round()
        dialogue.warm_start()
        t = dialogue.round + 1
        status, prediction = learn_guarded(dialogue, label, t)
        if status == BAD_INPUT:
            raise bad_sample()
        if status in (DIVERGED, SPOILED) or not self._can_be_said():
            raise Diverged(t, None, lost_model(self.name, self.learner))
        sent, outside, bits = self._speak(t) if self._speaks else self._say_nothing()
        sent = sent and dialogue.degree > 0
        counters = dialogue.counters
        counters["sends" if sent else "censored"] += 1
        counters["bits"] += bits if sent else 0
        saturated = outside / self.features.n_features if sent else 0.0
        return Info(t, prediction, label, ledger.loss(prediction, label), sent, bits if sent else 0, saturated)

    def _can_be_said(self) -> bool:
        """Whether neighbours would take the model for one; where they do not, all would wait, and nobody know why."""
        weights = self._ledger.weights.ravel()
        return bool(weights.dot(weights) <= _LARGEST_SQUARE)

    def _speak(self, t: int) -> tuple[bool, int, int]:
        """Say what there is to say in round ``t``: (whether that is more than silence, entries that saturate, bits)."""
        dialogue, ledger = self._dialogue, self._ledger
        if isinstance(dialogue, WaveDialogue):
            n_messages, bits = dialogue.ride(self._is_sign_due())
            return n_messages > 0, 0, bits
        assert isinstance(ledger, Ledger)
        if dialogue.tell_whole:
            dialogue.tell_whole = False
            ledger.said(0)[:] = ledger.weights
            kind, data = dialogue.book.full()
            self._silent_for = 0
            dialogue.begin(kind, data)
            return True, 0, 8 * len(data)
        sent, outside, scale = ledger.speak(t)
        if sent:
            self._silent_for = 0
            if ledger.row.dense:
                dialogue.begin(Kind.DENSE, self._wire.model(ledger.said(0)))
            else:
                dialogue.begin(Kind.DIFFERENCE, self._wire.difference(ledger.row.message, scale))
            return True, outside, ledger.message_bits()
        dialogue.begin(Kind.SILENCE, b"", say=self._is_sign_due())
        return False, 0, 0

    def _is_sign_due(self, passed: int = 1) -> bool:
        """Whether silence is worth a message after rounds that passed: always in lockstep, now and then on slots."""
        self._silent_for += passed
        due = self._dialogue.lockstep or self._silent_for >= self.heartbeat
        if due:
            self._silent_for = 0
        return due

    def _say_nothing(self) -> tuple[bool, int, int]:
        """A round of a learner that does not speak."""
        self._dialogue.round += 1
        self._dialogue.finished = self._dialogue.round
        return False, 0, 0

    def skip_to(self, round: int) -> None:
        """On slots: let rounds pass in silence until ``round`` is the last one, as after a pause of the device."""
        if self.clock == LOCKSTEP:
            raise ValueError("skip_to is for clock='slotted': in lockstep the others wait.")
        dialogue = self._dialogue
        missed = _validate.integer("round", round, least=0, most=ROUND_LIMIT) - dialogue.round
        if missed > 0:
            dialogue.let_pass(missed)
            if self._is_sign_due(missed):
                dialogue.say_silence()

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

    def receive(self, data: bytes, sender: str | None = None) -> None:
        """Take in a message. Whatever is wrong with it is counted in ``counters`` and logged; nothing is raised.

        ``sender`` is the neighbour that the transport vouches for, if it does: a message from another is refused.
        """
        dialogue = self._dialogue
        given: object = data
        try:
            message = bytes(given) if isinstance(given, (bytes, bytearray, memoryview)) else None
        except ValueError:  # a view of memory that has been released
            message = None
        if message is None:
            dialogue.refuse("not bytes", None, sender)
            return
        vouched: object = sender
        if vouched is not None and not isinstance(vouched, str):  # what vouches for nobody by name vouches for nobody
            dialogue.refuse("stranger", None, None)
            return
        dialogue.counters["messages_in"] += 1
        dialogue.counters["bytes_in"] += len(message)
        dialogue.receive(message, sender)

    def outgoing(self) -> list[Message]:
        """The messages to be carried now, in order; each is given out once."""
        return self._dialogue.outgoing()

    @property
    def must_save(self) -> bool:
        """Whether something was agreed on since the last ``state``: save it before ``outgoing`` is carried.

        Then a restart from the last checkpoint goes on exactly where the agent was, if all rounds were saved, too.
        """
        return self._dialogue.must_save

    def alerts(self) -> list[Alert]:
        """What somebody should look at, since the last time; each is given out once."""
        news, self._dialogue.news = self._dialogue.news, []
        return [Alert(*one) for one in news]

    @property
    def ready(self) -> bool:
        """Whether the next round may begin."""
        return not self._speaks or not (self._dialogue.who_is_waited_for() or self._dialogue.missing())

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who has to be heard before the next round may begin."""
        dialogue = self._dialogue
        return tuple(end.name for end in dialogue.who_is_waited_for()) or dialogue.missing() if self._speaks else ()

    @property
    def silent(self) -> dict[str, bool]:
        """Those waited for with no session, or no answer to the last ``remind``; and whether two have that name."""
        return {end.name: end.doubled for end in self._dialogue.silent()} if self._speaks else {}

    def remind(self) -> None:
        """Ask those again that are waited for. To be called while the agent is long not ready, whatever comes in."""
        if self._speaks:
            self._dialogue.remind()

    # ----------------------------------------------------------------------------------------------------------------
    # Who is there

    def connected(self, name: str) -> None:
        """A neighbour is there, for the first time or again: find out what was missed."""
        end = self._neighbour(name)
        if end.shut == "quarantined":
            self._dialogue.admit(end)
        elif self._speaks and not end.shut:
            self._dialogue.connected(end)

    def disconnected(self, name: str) -> None:
        """A neighbour is gone: suspend the edge, and wait for it no longer."""
        self._dialogue.lose(self._neighbour(name))

    def rejoin(self) -> None:
        """Start among agents that may already be running: find out where they are, before the first round.

        Call it once, after the constructor and perhaps ``restore``. The agent is not ready until all have answered
        whose absence has not been noted by ``disconnected``; on slots, after three reminders at the latest.
        """
        if self._speaks:
            self._dialogue.rejoin()

    def add(self, name: str, degree: int = 0) -> None:
        """Have a neighbour more; it has to be told likewise. The edge opens when both have agreed."""
        dialogue = self._dialogue
        if check_name("neighbours", name) in dialogue.ends:
            raise ValueError(f"{name!r} is a neighbour already.")
        degree = _validate.integer("degree", degree, least=0)
        end = self._end(name, dialogue.degree + 1, degree or dialogue.degree + 1)
        end.fresh = True
        dialogue.add(end)

    def remove(self, name: str) -> None:
        """Have a neighbour less: its share of the dual goes with it, and it is told."""
        self._dialogue.remove(self._neighbour(name))

    def leave(self) -> None:
        """Say farewell to all neighbours."""
        for name in self.neighbours:
            self.remove(name)

    def _neighbour(self, name: str) -> Session:
        try:
            return self._dialogue.ends[name]
        except (KeyError, TypeError):
            known = ", ".join(repr(other) for other in self.neighbours) or "nobody"
            who = _validate.shown(name)
            raise ValueError(f"{who} is no neighbour of {self.name!r}, which hears {known}.") from None

    # ----------------------------------------------------------------------------------------------------------------
    # What there is to see

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Names of all neighbours, there or not."""
        return tuple(self._dialogue.ends)

    @property
    def edges(self) -> dict[str, str]:
        """Where each edge stands: "live", "opening" or "gone"."""
        return {name: end.stage.value for name, end in self._dialogue.ends.items()}

    @property
    def round(self) -> int:
        """The last round, counted from 1."""
        return self._dialogue.round

    @property
    def weights(self) -> Array:
        """A copy of the model theta."""
        return self._ledger.weights.copy()

    @property
    def duals(self) -> Array:
        """A copy of the dual gamma, as of the last round that has ended."""
        if isinstance(self._ledger, Waves) or not self._ledger.has_duals:
            raise AttributeError("this learner keeps no duals.")
        return self._ledger.duals.copy()

    @property
    def broadcast(self) -> Array:
        """A copy of theta-hat: what the neighbours believe the model to be; where waves run, what all know."""
        return self._ledger.believed(0).copy()

    def model(self, inputs: Sequence[str] | None = None, target: str | None = None, classes: Any = None) -> Model:
        """The model as it is now, apart from the agent: to predict with, to save, to take away.

        ``inputs``, ``target`` and ``classes``, what its outputs stand for, are names that it is to know.
        """
        about: dict[str, Any] = {"classes": classes, "agent": self.name, "round": self.round}
        return make_model(self.features, self.learner, self._ledger.weights, (inputs, target), **about)

    def replica(self, name: str) -> Array:
        """A copy of what this agent believes a neighbour's model to be."""
        return self._ledger.believed(self._neighbour(name).index).copy()

    def position(self, name: str) -> Position:
        """How far this agent has spoken to a neighbour: the session, and the statement in it."""
        end = self._neighbour(name)
        return Position(end.tag >> 1, end.spoken)

    def heard(self, name: str) -> Position:
        """How far a neighbour has been heard: equal to the ``position`` there if nothing is missing."""
        end = self._neighbour(name)
        return Position(end.tag >> 1, end.heard)

    def edge_round(self, name: str) -> int:
        """How many rounds are counted in an edge's share. In lockstep both ends agree, on slots they may be apart."""
        return self._neighbour(name).k

    def share(self, name: str) -> Array:
        """A copy of an edge's share of the dual, over rho: gamma is rho times the sum of the live edges' shares.

        Shares of the two ends cancel where both stand in one ``edge_round`` and have heard all of each other; who is
        ``k`` rounds behind lacks ``k`` times its broadcast less its replica.
        """
        end = self._neighbour(name)
        return self._dialogue.accounts.share(end.index) if end.counted else np.zeros(self._ledger.n_features)

    @property
    def counters(self) -> dict[str, Any]:
        """What has happened so far: sends, censored, bits, bytes and messages in and out, repairs, refusals..."""
        names = ("sends", "censored", "bits", "messages_in", "messages_out", "bytes_in", "bytes_out")
        more = ("requests", "repeats", "snapshots", "sessions", "doubts", "repairs", "recoveries")
        dialogue = self._dialogue
        waves = ("waves",) if isinstance(self._ledger, Waves) else ()
        told = {name: dialogue.counters[name] for name in (*names, *more, *waves)}
        return {**told, "refusals": dict(dialogue.refusals)}

    # ----------------------------------------------------------------------------------------------------------------
    # Memory

    def state(self) -> AgentState:
        """All that the agent needs to go on, as plain values and copies of arrays."""
        self._dialogue.must_save = False
        return take_state(self._dialogue, self.samples)

    def restore(self, state: AgentState) -> None:
        """Be where ``state`` was taken; neighbours that it does not know are new, others that it knows are dropped."""
        self.samples = put_state(self._dialogue, state)

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all; the file before it is kept beside it as ``.previous``."""
        write_checkpoint(_validate.path("path", path), self.state())

    def load(self, path: str | Path) -> bool:
        """Restore from ``path``, or from the one before it if that is no good; False if there is neither.

        ValueError if there are files and none of them is any good.
        """
        news = self._dialogue.news
        where = _validate.path("path", path)
        return load_checkpoint(where, self.restore, lambda why: news.append(("checkpoint refused", "")))
