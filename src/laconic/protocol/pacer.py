"""When an agent does what, as a state machine: events and ``now`` go in, actions and the next deadline come out.

There is no clock, queue or socket in here, so the same object paces an agent over zenoh, where ``now`` is read from a
clock, and on a virtual network, where it is only a number. Whoever holds a pacer

1. tells it what happened: ``start``, ``received``, ``connected``, ``disconnected``, ``stop``, each with ``now``;
2. calls ``handle_timer(now)`` once ``deadline`` has come, early or late calls doing no harm;
3. while ``wants_sample``, answers with ``learn``, ``no_sample`` or ``samples_ended``;
4. then does what ``actions()`` says, in that order; until ``over``.

``now`` is in seconds, by any clock that never goes back. Messages to send are the agent's own ``Message``, handed on as
they are: a round makes no object more than it did without a pacer.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from typing import Any

from laconic.engine import Diverged
from laconic.protocol.actions import Action, Alert, Begin, Note, Predicted, Progress, Save, Terms
from laconic.protocol.agent import Agent
from laconic.protocol.info import Info
from laconic.protocol.parts import LOCKSTEP

_REMIND, _REMIND_LATER = 0.25, 2.0  # seconds without a round after which neighbours are asked again, and at most


class Pacer(ABC):
    """Paces one agent, from its start until it is stopped or its samples end.

    Parameters
    ----------
    agent : Agent
        New or restored, not yet joined.
    terms : Terms

    Attributes
    ----------
    over : bool
        Nothing is left to do but the last ``actions``.
    failure : Diverged or None
        Why it is over, if the model left all bounds.
    here, given_up : set of str
        Neighbours that are there; and those that were waited for in vain.
    took : float
        Seconds from the last round but one to the last.
    """

    def __init__(self, agent: Agent, terms: Terms) -> None:
        self.agent, self.terms = agent, terms
        self.over, self.failure = False, None  # type: bool, Diverged | None
        self.here: set[str] = set()
        self.given_up: set[str] = set()
        self.took = 0.0
        self._joined = False
        self._actions: list[Action] = []
        self._saves = False  # whether a checkpoint is due
        self._lost: dict[str, float] = {}  # when to give up those that are not there
        self._moved = self._heard = math.nan  # when the last round was over, and when anything last came in
        self._remind_after = _REMIND
        self._remind_at = self._next_progress = self._next_prediction = math.inf
        self._next_checkpoint = math.inf

    # ----------------------------------------------------------------------------------------------------------------
    # What happens

    def start(self, now: float, offset: float = 0.0) -> None:
        """Begin, for the first time or again: find out where the others are.

        ``offset`` is what has to be added to ``now`` to have the time of day, by which slots are laid out.
        """
        terms = self.terms
        self._lost = dict.fromkeys(self.agent.neighbours, now + terms.patience)
        self._moved = self._heard = now
        self._remind_at = now + self._remind_after
        self._next_progress = now + terms.progress
        self._next_prediction = now if terms.predictions else math.inf
        self._offset = offset
        self.agent.rejoin()
        self._look_whether_joined(now)

    def received(self, data: bytes, sender: str | None, now: float) -> None:
        """Bytes came in; ``sender`` is who the transport vouches for."""
        self.agent.receive(data, sender)
        self._heard = now
        if not self._joined:
            self._look_whether_joined(now)

    def connected(self, name: str, now: float) -> None:
        """A neighbour is there, for the first time or again."""
        if name not in self.agent.neighbours:
            return
        self._heard = now
        self.here.add(name)
        self._lost.pop(name, None)
        if name in self.given_up:
            self.given_up.discard(name)
            self._act(Alert("neighbour is back", {"neighbour": name}))
        self._act(Note(logging.INFO, "connected", {"neighbour": name}))
        self.agent.connected(name)

    def disconnected(self, name: str, now: float) -> None:
        """A neighbour is gone: it is given up if it stays away."""
        if name not in self.agent.neighbours:
            return
        self._heard = now
        self.here.discard(name)
        if name not in self.given_up:
            self._lost.setdefault(name, now + self._grace())
        self._act(Note(logging.WARNING, "disconnected", {"neighbour": name}))

    def add(self, name: str, now: float) -> None:
        """Have a neighbour more, which is waited for like those of the start."""
        self.agent.add(name)
        self._lost[name] = now + self.terms.patience

    def remove(self, name: str) -> None:
        """Have a neighbour less: nobody waits for it, or misses it."""
        self.agent.remove(name)
        self._lost.pop(name, None)
        self.here.discard(name)
        self.given_up.discard(name)

    def stop(self, now: float) -> None:
        """Somebody asks to stop: nothing is left to do but to save."""
        self._finish()

    # ----------------------------------------------------------------------------------------------------------------
    # What is due

    @property
    def deadline(self) -> float:
        """When to call ``handle_timer`` at the latest; infinity once it is over."""
        if self.over:
            return math.inf
        due = min(self._remind_at, self._next_progress, self._next_step())
        return min(due, *self._lost.values()) if self._lost else due

    def handle_timer(self, now: float) -> None:
        """Do what is due; nothing, if called too early."""
        if self.over:
            return
        for name in [name for name, deadline in self._lost.items() if now >= deadline]:
            self._give_up(name)
        if now >= self._remind_at:
            self._remind(now)
        if now >= self._next_progress:
            self._next_progress = now + self.terms.progress
            self._act(Progress(self.agent.round, self.agent.waiting))
        if not self._joined:
            self._look_whether_joined(now)
        self._step(now)

    def actions(self) -> list[Action]:
        """What is to be done now, in order; each is given out once.

        A checkpoint comes first, before the messages that tell of what is in it: whoever dies in between has not
        said what it does not remember.
        """
        agent, every = self.agent, self.terms.checkpoint_every
        for what, neighbour in agent.alerts():
            self._act(Alert(what, {"neighbour": neighbour} if neighbour else {}))
        if agent.must_save and every is not None:
            self._saves = True
        if not self._actions and not self._saves:
            return agent.outgoing()  # type: ignore[return-value]  # the way of every round: a list given away
        actions = [Save(agent.round)] if self._saves else []  # type: list[Action]
        actions += self._actions
        actions += agent.outgoing()
        self._actions, self._saves = [], False
        return actions

    def _act(self, action: Action) -> None:
        self._actions += self.agent.outgoing()  # what was said before comes first
        self._actions.append(action)

    def _give_up(self, name: str) -> None:
        self._lost.pop(name, None)
        if name not in self.given_up:
            self._act(Alert("neighbour is silent", {"neighbour": name}))
        self.given_up.add(name)
        self._act(Note(logging.WARNING, "given up", {"neighbour": name}))
        self.agent.disconnected(name)

    def _remind(self, now: float) -> None:
        """Ask again, each time after twice as long; who only waits for a sample has nothing to ask."""
        waits = not self.agent.ready
        if waits or self.agent.clock == LOCKSTEP:  # time has passed also for who waits for a sample: it answers again
            self.agent.remind()
        if waits:
            self._remind_after = min(2 * self._remind_after, _REMIND_LATER)
        self._remind_at = now + self._remind_after

    def _look_whether_joined(self, now: float) -> None:
        if not self.agent.ready:
            return
        agent, every = self.agent, self.terms.checkpoint_every
        self._joined = True
        self._moved, self._remind_after = now, _REMIND
        self._remind_at = now + _REMIND
        self._next_checkpoint = math.inf if every is None else agent.round + every
        about = {"round": agent.round, "samples": agent.samples, "neighbours": sorted(self.here)}
        self._act(Note(logging.INFO, "joined", about))
        self._act(Begin(agent.samples))
        self._begin(now)

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    @property
    @abstractmethod
    def wants_sample(self) -> bool:
        """Whether a round may begin: answer with ``learn``, ``no_sample`` or ``samples_ended``."""

    def learn(self, x: object, y: Any, now: float, measured: float | None = None) -> Info | None:
        """A round with a sample; None if the agent refused it, or diverged."""
        self.agent.samples += 1
        try:
            info = self.agent.learn(x, y)
        except ValueError as error:  # too large for the feature map, say: no reason to die
            self._act(Note(logging.WARNING, "sample refused", {"why": str(error)}))
            self._round_over(now)
            return None
        except Diverged as error:
            self._fail(error)
            return None
        if now >= self._next_prediction:
            self._next_prediction = now + 1 / self.terms.predictions
            self._act(Predicted(info.round, info.prediction, measured, x, info.label))
        return self._count(info, now)

    @abstractmethod
    def no_sample(self, now: float) -> Info | None:
        """No sample is there now, though others may come."""

    @abstractmethod
    def samples_ended(self, now: float) -> None:
        """No sample will come any more."""

    def _count(self, info: Info, now: float) -> Info:
        self.took = now - self._moved
        self._moved, self._remind_after = now, _REMIND
        self._remind_at = now + _REMIND
        self._next_checkpoint = min(self._next_checkpoint, info.round + (self.terms.checkpoint_every or math.inf))
        if info.round >= self._next_checkpoint:
            self._save()
        self._round_over(now)
        return info

    def _save(self) -> None:
        every = self.terms.checkpoint_every
        if every is not None:
            self._next_checkpoint = self.agent.round + every
            self._saves = True

    def _fail(self, error: Diverged) -> None:
        """A model that is lost is not worth saving."""
        about = {"round": error.round, "advice": error.advice}
        self._act(Alert("diverged", about))
        self._act(Note(logging.ERROR, "diverged", about))
        self.over, self.failure = True, error

    def _finish(self) -> None:
        if not self.over:
            self._save()
            self.over = True

    # ----------------------------------------------------------------------------------------------------------------
    # What differs between paces

    @abstractmethod
    def _grace(self) -> float:
        """Seconds until a neighbour that went is given up."""

    @abstractmethod
    def _begin(self, now: float) -> None:
        """The agent has joined the others."""

    @abstractmethod
    def _next_step(self) -> float:
        """When ``_step`` is due."""

    @abstractmethod
    def _step(self, now: float) -> None:
        """Do what only this pace does by the clock."""

    @abstractmethod
    def _round_over(self, now: float) -> None:
        """A round has passed, or its sample was refused."""
