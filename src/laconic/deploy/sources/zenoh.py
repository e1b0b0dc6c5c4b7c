"""Samples from a zenoh key: whoever may publish there feeds the agent."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, final

from laconic.deploy.sources.base import Source
from laconic.deploy.sources.reading import Reader


@final
class ZenohSource(Source):
    """Every message on a key is a sample, in JSON or CBOR.

    Parameters
    ----------
    reader, label, buffer
        As for ``Source``.
    session : zenoh.Session
        Open, and closed by whoever opened it; the agent's link has one.
    key : str
        By custom ``<site>/<name>/sample``.
    """

    def __init__(self, reader: Reader, label: str, buffer: int = 256, *, session: Any, key: str) -> None:
        super().__init__(reader, label, buffer)
        self.key = key
        self._session = session
        self._subscriber: Any = None

    def _open(self, skip: int) -> None:
        try:
            self._subscriber = self._session.declare_subscriber(self.key, self._heard)
        except Exception as error:  # zenoh's own errors have no common base; a key that it does not like is one
            raise ValueError(f"{self.label}: zenoh cannot listen on {self.key!r}: {error}") from None

    def _heard(self, message: Any) -> None:
        # The encoding that a message claims is not looked at: the first byte tells JSON from CBOR, and cannot lie.
        self._take(bytes(message.payload))

    def _shut(self) -> None:
        if self._subscriber is not None:
            with suppress(Exception):  # the session may be gone already, and the subscription with it
                self._subscriber.undeclare()
