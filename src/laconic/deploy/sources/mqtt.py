"""Samples from an MQTT broker, which is where most sensors speak."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, final

from laconic import _extras
from laconic.deploy.sources.base import Source
from laconic.deploy.sources.reading import Reader

_PORT, _TLS_PORT = 1883, 8883
_KEEPALIVE = 30
_FIRST_DELAY, _LAST_DELAY = 1, 8  # seconds between attempts to reconnect


@final
class MqttSource(Source):
    """Every message on a topic is a sample, in JSON or CBOR.

    The broker may be absent, then or later: the source connects and subscribes whenever it can. Messages that the
    broker had retained are passed over, or an agent would learn from the same sample at each reconnection.

    Parameters
    ----------
    reader, label, buffer
        As for ``Source``.
    host, topic : str
        The topic may have MQTT's wildcards.
    port : int, optional
        Default: 1883, with TLS 8883.
    user : str, optional
    password_env : str, optional
        Name of the environment variable that holds the password: secrets do not belong into a file.
    tls : bool
        Whether to speak TLS and check the broker's certificate.
    ca : Path, optional
        Certificate of the authority to trust instead of the system's. Switches TLS on.
    qos : int
        0, 1 or 2.
    """

    def __init__(
        self,
        reader: Reader,
        label: str,
        buffer: int = 256,
        *,
        host: str,
        topic: str,
        port: int | None = None,
        user: str | None = None,
        password_env: str | None = None,
        tls: bool = False,
        ca: Path | None = None,
        qos: int = 1,
    ) -> None:
        super().__init__(reader, label, buffer)
        self.host, self.topic, self.qos = host, topic, qos
        self.user, self.password_env = user, password_env
        self.tls, self.ca = tls or ca is not None, ca
        self.port = port or (_TLS_PORT if self.tls else _PORT)
        self._client: Any = None
        self._failed = False

    def _open(self, skip: int) -> None:
        versions = _extras.need("paho.mqtt.enums", "MQTT").CallbackAPIVersion
        client = _extras.need("paho.mqtt.client", "MQTT").Client(versions.VERSION2)
        if self.user is not None:
            client.username_pw_set(self.user, self._password())
        if self.tls:
            self._trust(client)
        client.on_connect, client.on_disconnect = self._connected, self._disconnected
        client.on_connect_fail, client.on_subscribe = self._not_connected, self._subscribed
        client.on_message = self._heard
        client.reconnect_delay_set(_FIRST_DELAY, _LAST_DELAY)
        client.connect_async(self.host, self.port, _KEEPALIVE)
        client.loop_forever = partial(self._loop, client.loop_forever)  # which the thread of the next line calls
        client.loop_start()
        self._client = client

    def _loop(self, loop: Callable[..., object], **options: object) -> None:
        """Run the client's loop; a broker that is absent does not end it, but a host's name that cannot be does."""
        try:
            loop(**options)
        except Exception as error:
            self._fail(error)

    def _password(self) -> str | None:
        if self.password_env is None:
            return None
        password = os.environ.get(self.password_env)
        if password is None:
            raise ValueError(f"password_env: the environment variable {self.password_env} is not set.")
        return password

    def _trust(self, client: Any) -> None:
        import ssl

        try:
            client.tls_set(None if self.ca is None else str(self.ca))
        except ssl.SSLError as error:
            raise ValueError(f"ca: {self.ca} holds no certificate that can be read ({error}).") from None

    def _connected(self, client: Any, userdata: object, flags: object, reason: Any, properties: object) -> None:
        if reason.is_failure:
            self._complain(f"it refuses: {reason}")
            return
        client.subscribe(self.topic, self.qos)  # here and not once: a subscription does not outlive its connection

    def _subscribed(self, client: Any, userdata: object, mid: int, reasons: Any, properties: object) -> None:
        refused = [reason for reason in reasons if reason.is_failure]
        if refused:
            self._complain(f"it refuses the topic {self.topic!r}: {refused[0]}")
            return
        self._failed = False
        self._log(logging.INFO, "broker connected", host=self.host, port=self.port, topic=self.topic)

    def _not_connected(self, client: Any, userdata: object) -> None:
        self._complain("it does not answer")

    def _disconnected(self, client: Any, userdata: object, flags: object, reason: Any, properties: object) -> None:
        if not self._closed:
            self._complain(f"it is gone: {reason}")

    def _complain(self, what: str) -> None:
        """Once for each time the connection is lost, not at every attempt."""
        if not self._failed:
            self._log(logging.WARNING, "broker not connected", host=self.host, port=self.port, why=what)
        self._failed = True

    def _heard(self, client: Any, userdata: object, message: Any) -> None:
        if not message.retain:
            self._take(message.payload)

    def _shut(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
