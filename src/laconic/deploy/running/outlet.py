"""Where what a pacer says is done: messages are sent, predictions and alerts published, lines logged, states saved."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic.deploy.running.classes import Classes
from laconic.deploy.running.metrics import Tally
from laconic.deploy.running.outliers import Sentry
from laconic.deploy.sources.base import Source
from laconic.protocol import Agent, Message
from laconic.protocol.actions import Action, Alert, Begin, Note, Predicted, Progress, Save
from laconic.transport.link import PublicLink

_log = logging.getLogger(__name__)


@final
class Outlet:
    """Does what a pacer says.

    Parameters
    ----------
    agent : Agent
    link : PublicLink
    source : Source
        Not yet started: that has to wait until the agent knows which samples it has learned from.
    wake : callable
        What the source calls, on any thread, when samples have come.
    tally : Tally
    checkpoint : Path, optional
        Where to save the agent.
    sentry : Sentry, optional
        Saved along with the agent.
    wall : callable
        The time of day, for people who read alerts and predictions.
    with_inputs : bool
        Whether predictions are published with their inputs.
    inputs : sequence of str, optional
        Names of these.
    classes : Classes, optional
        What labels are, if they are no numbers.
    """

    def __init__(
        self,
        agent: Agent,
        link: PublicLink,
        source: Source,
        wake: Callable[[], None],
        tally: Tally,
        checkpoint: Path | None = None,
        wall: Callable[[], float] = time.time,
        sentry: Sentry | None = None,
        with_inputs: bool = False,
        inputs: Sequence[str] | None = None,
        classes: Classes | None = None,
    ) -> None:
        self.agent, self.link, self.source, self.tally = agent, link, source, tally
        self._classes = classes
        self.wall, self._wake, self._checkpoint, self._sentry = wall, wake, checkpoint, sentry
        self._with_inputs, self._inputs = with_inputs, inputs
        self._disk_fails = False

    def do(self, actions: list[Action]) -> None:
        """Do all of it, in order."""
        send = self.link.send
        for action in actions:
            if type(action) is Message:  # nearly always
                send(action.data, action.to)
            else:
                self._do_other(action)

    def _do_other(self, action: Action) -> None:
        match action:
            case Begin(skip):
                try:
                    self.source.start(self._wake, skip)
                except OSError as error:
                    self._alert("source failed", {"why": str(error)})
                    raise
            case Predicted():
                self._publish("prediction", self._predicted(action))
            case Alert(event, fields):
                self._alert(event, fields)
            case Note(level, event, fields):
                self._log(level, event, fields)
            case Progress(round, waiting):
                told: dict[str, Any] = {"round": round, "mean_square_error": self.tally.mean_square_error}
                if self.tally.error_rate is not None:
                    told["error_rate"] = self.tally.error_rate
                counters = self.agent.counters
                told |= {
                    name: counters[name]
                    for name in ("sends", "censored", "bits", "repairs", "waves")
                    if name in counters
                }
                if self.tally.beyond:
                    told["beyond_limits"] = sum(self.tally.beyond.values())
                told["neighbours"] = self.tally.connected
                if self.tally.alerts:
                    told["alerts"] = self.tally.alerts.total()
                if self.tally.last_alert is not None:
                    told["last_alert"] = self.tally.last_alert["event"]
                self._log(logging.INFO, "progress", told | ({"waiting": list(waiting)} if waiting else {}))
            case Save():
                self._save()

    def _publish(self, suffix: str, said: dict[str, Any]) -> None:
        self.link.publish(suffix, json.dumps(said).encode())

    def _predicted(self, said: Predicted) -> dict[str, Any]:
        """What is told of a prediction: of a label and its error only where there is one, else null.

        An interval is made of the errors before, not of its own; classes have none.
        """
        told: dict[str, Any] = {
            "round": said.round,
            "time": self.wall() if said.measured is None else said.measured,
        }
        told |= self._number(said) if self._classes is None else self._classes.told(said.prediction, said.label)
        if self._with_inputs:
            values = np.asarray(said.x, dtype=float).tolist()
            told["x"] = values if self._inputs is None else dict(zip(self._inputs, values, strict=True))
        return told

    def _number(self, said: Predicted) -> dict[str, Any]:
        binary, known = self.agent.learner.loss.binary, said.label == said.label
        error: float | None = None
        if known:
            error = float((said.prediction > 0) != (said.label > 0)) if binary else said.prediction - said.label
        radius = None if binary else self.tally.radius(before_last=known)
        return {
            "prediction": said.prediction,
            "label": said.label if known else None,
            "error": error,
            "interval": None if radius is None else [said.prediction - radius, said.prediction + radius],
        }

    def _alert(self, event: str, fields: dict[str, Any]) -> None:
        said = {"agent": self.agent.name, "event": event, "time": self.wall(), **fields}
        self.tally.alert(event, said)
        self._publish("alert", said)

    def _log(self, level: int, event: str, fields: dict[str, Any]) -> None:
        _log.log(level, event, extra={"agent": self.agent.name, **fields})

    def _save(self) -> None:
        if self._checkpoint is None:
            return
        try:
            self.agent.save(self._checkpoint)
            if self._sentry is not None:
                self._sentry.save()
            self._disk_fails = False
        except OSError as error:  # a full disk: the neighbours are the backup
            about = {"path": str(self._checkpoint), "why": str(error)}
            self._log(logging.ERROR, "checkpoint failed", about)
            if not self._disk_fails:  # and not again at every round that is not saved
                self._disk_fails = True
                self._alert("checkpoint failed", about)
