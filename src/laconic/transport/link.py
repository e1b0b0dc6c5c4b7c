"""What an agent's driver sees of a network: four kinds of news, and a way to send."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Received(NamedTuple):
    """Bytes came in. ``sender`` is who the transport vouches for, not who the bytes claim to come from."""

    sender: str
    data: bytes


class Connected(NamedTuple):
    """A neighbour is there and hears what is sent to it from now on."""

    name: str


class Disconnected(NamedTuple):
    """A neighbour is gone: crashed, hung, or cut off."""

    name: str


class Noticed(NamedTuple):
    """An alert of the link itself, about certificates, say: it is logged and published, and remains to be counted."""

    event: str
    said: str  # in JSON, as it was published


Event = Received | Connected | Disconnected | Noticed


class Question(Protocol):
    """What somebody asks an agent: to be answered, or refused, once, on any thread."""

    size: int

    def payload(self) -> bytes:
        """What came with it."""

    def reply(self, data: bytes) -> None:
        """Answer. Never raises because of the network."""

    def refuse(self, why: str) -> None:
        """Say why there is no answer. Never raises because of the network."""


class Link(Protocol):
    """One agent's place on a network. News go to the function that the link was opened with."""

    def send(self, data: bytes, to: str | None = None) -> None:
        """Send to one neighbour, or to all of them. Never raises because of the network: what is lost is repaired."""

    def close(self) -> None:
        """Say goodbye to the network and free its resources."""


class PublicLink(Link, Protocol):
    """A link by which people, too, hear of an agent: its predictions and its alerts."""

    def publish(self, suffix: str, payload: bytes) -> None:
        """Publish for whoever listens to ``suffix``, "prediction" or "alert". Never raises because of the network."""
