"""Hearing a site over zenoh: a peer that subscribes to what agents publish, asks them how they do, and says nothing."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, final

import numpy as np

from laconic._reports import parse_object
from laconic._validate import Array
from laconic.dashboard.board import Board
from laconic.deploy.operations.fetching import files_of
from laconic.deploy.settings.site import Site
from laconic.model import Model
from laconic.transport.zenoh import load_zenoh
from laconic.transport.zenoh_settings import session_settings

_OFTEN, _A_SECOND = 0.5, 100  # seconds between two questions to an agent, and questions a second to all
_LONGEST = 65_536  # bytes of what is listened to
#: Models are asked for only of so many agents, so many a second, and none that is longer than so many bytes.
_MODELS, _MODELS_A_SECOND, _MODEL_SIZE = 100, 4, 4_000_000
_log = logging.getLogger(__name__)


@final
class Watcher:
    """Feeds a board from a running site until it is closed. Agents may come and go, and need not be there yet.

    Parameters
    ----------
    site : Site
    board : Board
    guest : str, optional
        Whose certificate to show, where there is mutual TLS: a guest's, or an agent's.
    wall : callable
        The time of day.
    """

    def __init__(
        self, site: Site, board: Board, guest: str | None = None, wall: Callable[[], float] = time.time
    ) -> None:
        self.site, self.board, self._wall = site, board, wall
        self.every = max(_OFTEN, site.n_agents / _A_SECOND)
        board.patience = max(board.patience, 4 * self.every)
        zenoh = load_zenoh()
        guest = guest or next(iter(site.security.guests if site.security is not None else ()), site.names[0])
        security = files_of(site, guest)
        where = [str(site.endpoint(name)) for name in site.names]
        settings = session_settings(None, where, site.lease, None if security is None else security.settings(), None)
        self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
        self._error: type[Exception] = zenoh.ZError
        self._subscriptions = [
            self._session.declare_subscriber(f"{site.name}/{name}/{suffix}", self._hears(name, take))
            for name in site.names
            for suffix, take in (("prediction", board.prediction), ("alert", board.alert))
        ]
        self._models: dict[str, Array] = {}
        self._next_model, self._model_due = 0, 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="asks a site", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear nothing any more."""
        self._closed.set()
        self._thread.join()
        self._session.close()

    def _hears(self, name: str, take: Callable[[str, Any, float], None]) -> Callable[[Any], None]:
        def heard(sample: Any) -> None:
            self._take(name, sample.payload, take)

        return heard

    def _take(self, name: str, payload: Any, take: Callable[[str, Any, float], None]) -> None:
        """Hand on a JSON object of bounded size and depth, and drop all else."""
        if len(payload) > _LONGEST:
            return
        said = parse_object(bytes(payload.to_bytes()))
        if said is not None:
            take(name, said, self._wall())

    def _ask(self) -> None:
        """Ask every agent in turn, again and again; answers come on threads of zenoh's."""
        looked = 0.0
        while not self._closed.is_set():
            for name in self.site.names:
                if self._closed.is_set():
                    return
                self._ask_one(name)
                self._ask_model()
                if self.site.n_agents > 1:
                    self._closed.wait(self.every / self.site.n_agents)
            now = time.monotonic()
            if now - looked >= 1:
                looked = now
                self.board.look(self._wall())
            if self.site.n_agents == 1:
                self._closed.wait(self.every)

    def _ask_model(self) -> None:
        """Ask the next agent for its model, if it is time: from them it is told how far models are apart."""
        now = time.monotonic()
        if not 1 < self.site.n_agents <= _MODELS or now < self._model_due:
            return
        self._model_due = now + 1 / _MODELS_A_SECOND
        name = self.site.names[self._next_model]
        self._next_model = (self._next_model + 1) % self.site.n_agents

        def answered(reply: Any) -> None:
            if reply.ok is None or len(reply.ok.payload) > _MODEL_SIZE:
                return
            try:
                weights = Model.from_bytes(bytes(reply.ok.payload.to_bytes())).weights
            except ValueError:  # no model: nobody's business
                return
            self._models[name] = np.asarray(weights, dtype=float)
            self.board.agree(disagreement(list(self._models.values())))

        with suppress(self._error):
            self._session.get(f"{self.site.name}/{name}/model", answered, timeout=2.0)

    def _ask_one(self, name: str) -> None:
        def answered(reply: Any) -> None:
            if reply.ok is not None:
                self._take(name, reply.ok.payload, self.board.status)

        try:
            self._session.get(f"{self.site.name}/{name}/status", answered, timeout=2.0)
        except self._error as error:  # the session is being closed, or zenoh is out of breath: the next turn will tell
            _log.debug("cannot ask", extra={"who": name, "why": str(error)})


def disagreement(models: Sequence[Array]) -> float | None:
    """How far models are from their mean, as a share of their length: |Theta - mean|_F / |Theta|_F.

    None while there are fewer than two, or if they cannot be compared or are too large to.

    >>> import numpy as np
    >>> round(disagreement([np.array([1.0, 0.0]), np.array([0.0, 1.0])]), 6)
    0.707107
    """
    if len(models) < 2 or len({model.shape for model in models}) > 1:
        return None
    stacked = np.array(models)
    with np.errstate(over="ignore", invalid="ignore"):  # of models near the largest float
        length = float(np.linalg.norm(stacked))
        apart = float(np.linalg.norm(stacked - stacked.mean(axis=0)))
    return apart / length if 0 < length < np.inf and apart < np.inf else None
