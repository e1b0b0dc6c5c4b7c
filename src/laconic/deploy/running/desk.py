"""Where a running agent answers: what it would predict, its model, and how it does.

Questions come on threads of the transport and are answered on a thread of the desk's own, from a snapshot of the agent.
Only the agent's loop touches the agent: it is asked for a snapshot through its inbox, like everything else that it
hears, and at most so many times a second. So a flood of questions costs the loop a few copies of a vector, and nobody
waits for the desk but those who ask.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

from laconic._validate import Array
from laconic._version import __version__
from laconic.deploy.running.questions import LONGEST, answer, plain, read_inputs
from laconic.model import FeatureMap, Model
from laconic.protocol import Agent
from laconic.transport.link import Question

#: Questions that may wait, that are answered a second, and that may come at once after a pause.
MOST_WAITING, A_SECOND, AT_ONCE = 64, 50.0, 100.0
#: Seconds that a snapshot of the agent serves all who ask, and that a new one is waited for.
FRESH, PATIENCE = 0.05, 1.0

_log = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """An agent at one moment.

    Attributes
    ----------
    weights : array
        A copy.
    status : dict
        What is told of it, in plain values; ``round`` and ``time`` are among them.
    radius : float or None
        How far predictions are usually off; None while that is not known.
    """

    weights: Array
    status: dict[str, Any]
    radius: float | None


@runtime_checkable
class Answering(Protocol):
    """A link by which an agent can be asked."""

    def answer(self, suffix: str, take: Callable[[Question], None]) -> Any:
        """Hand what is asked on ``suffix`` to ``take``, on any thread."""


@final
class Desk:
    """Answers questions about an agent until it is closed.

    Parameters
    ----------
    agent : Agent
        Of which only what never changes is read here.
    ring : callable
        Asks the agent's loop to call ``refresh``; from any thread.
    inputs, target, classes : optional
        Names that the model is to know.
    clock : callable
        Seconds, by which questions are counted.

    Attributes
    ----------
    answered, refused : int
    """

    def __init__(
        self,
        agent: Agent,
        ring: Callable[[], None],
        inputs: Sequence[str] | None = None,
        target: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        classes: Sequence[str | int] | None = None,
    ) -> None:
        self.name, self.answered, self.refused = agent.name, 0, 0
        self._map = FeatureMap.of(agent.features)
        self._learner, self._names, self._classes = agent.learner, (inputs, target), classes or None
        self._ring, self._clock = ring, clock
        self._tokens, self._counted = AT_ONCE, clock()
        self._waiting: deque[tuple[str, Question]] = deque()
        self._changed = threading.Condition()
        self._snapshot: Snapshot | None = None
        self._taken = -FRESH
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"answers for {agent.name}", daemon=True)

    def open(self, link: Answering) -> None:
        """Begin to answer what is asked by ``link``."""
        self._thread.start()
        for suffix in ("predict", "model", "status"):
            link.answer(suffix, lambda question, suffix=suffix: self.take(suffix, question))  # type: ignore[misc]

    def close(self) -> None:
        """Answer nobody any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    # On threads of the transport ------------------------------------------------------------------------------------

    def take(self, suffix: str, question: Question) -> None:
        """Let a question wait for its turn, or refuse it where there are too many."""
        with self._changed:
            now = self._clock()
            self._tokens = min(AT_ONCE, self._tokens + A_SECOND * (now - self._counted))
            self._counted = now
            full = self._closed or self._tokens < 1 or len(self._waiting) >= MOST_WAITING
            if not full and question.size <= LONGEST:
                self._tokens -= 1
                self._waiting.append((suffix, question))
                self._changed.notify_all()
                return
            self.refused += 1
        why = "too many questions: ask again later." if full else f"a question must have at most {LONGEST} bytes."
        question.refuse(why)

    # On the agent's loop --------------------------------------------------------------------------------------------

    def refresh(self, snapshot: Snapshot) -> None:
        """Answer from this snapshot on."""
        with self._changed:
            self._snapshot, self._taken = snapshot, self._clock()
            self._changed.notify_all()

    # On the desk's own thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    waiting, self._waiting = self._waiting, deque()
                    break
                suffix, question = self._waiting.popleft()
            try:
                self._answer(suffix, question)
            except Exception:  # a mistake of ours: the next question may do better
                _log.exception("a question could not be answered", extra={"agent": self.name})
                question.refuse("this question could not be answered.")
        for _, question in waiting:
            question.refuse(f"{self.name} stops.")

    def _answer(self, suffix: str, question: Question) -> None:
        snapshot = self._fresh()
        if snapshot is None:
            question.refuse(f"{self.name} is busy: ask again later.")
            return
        try:
            said = self._said(suffix, question.payload(), snapshot)
        except ValueError as error:
            self.refused += 1
            question.refuse(str(error))
            return
        self.answered += 1
        question.reply(said)

    def _fresh(self) -> Snapshot | None:
        """A snapshot of the agent as it is now; where its loop has no time, the last one that there is."""
        with self._changed:
            if self._clock() - self._taken >= FRESH:
                before = self._snapshot
                self._ring()
                self._changed.wait_for(lambda: self._closed or self._snapshot is not before, PATIENCE)
            return self._snapshot

    def _said(self, suffix: str, payload: bytes, snapshot: Snapshot) -> bytes:
        status = snapshot.status
        if suffix == "status":
            return plain(status)
        model = self._model(snapshot)
        if suffix == "model":
            return model.to_bytes()
        rows, single = read_inputs(payload, model.n_inputs, model.inputs)
        told = {name: status[name] for name in ("agent", "round", "time")}
        return plain({**told, **answer(model, rows, single, snapshot.radius)})

    def _model(self, snapshot: Snapshot) -> Model:
        if self._map is None:
            raise ValueError(f"{self.name} has features of its own, which cannot be taken away.")
        inputs, target = self._names
        about = {
            "name": self._learner.name,
            "learner": repr(self._learner),
            "agent": self.name,
            "round": snapshot.status["round"],
            "time": snapshot.status["time"],
            "laconic": __version__,
        }
        loss = self._learner.loss.name
        names: dict[str, Any] = {"classes": self._classes, "inputs": inputs, "target": target}
        return Model(self._map, snapshot.weights.T, loss=loss, about=about, **names)
