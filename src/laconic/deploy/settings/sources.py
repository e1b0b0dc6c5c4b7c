"""The ``source`` table of a site's file: which kind of source, and how to open it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from laconic.deploy.settings.sections import Section
from laconic.deploy.sources.base import Source
from laconic.deploy.sources.reading import Reader

KINDS = ("stdin", "file", "zenoh", "mqtt")
_BUFFER = 256
_MOST = 1_000_000


@dataclass(frozen=True)
class SourceSettings:
    """What all kinds have in common.

    Attributes
    ----------
    inputs : tuple of str, optional
        Names of the inputs, where samples have names.
    target : str, optional
        Name of the label.
    buffer : int
        How many samples may wait.
    """

    kind = ""

    inputs: tuple[str, ...] | None
    target: str | None
    buffer: int

    def open(self, reader: Reader, label: str, session: Any = None) -> Source:
        """The source, not yet started. ``session`` is the agent's zenoh session; only a zenoh source needs it."""
        raise NotImplementedError


@final
@dataclass(frozen=True)
class StdinSettings(SourceSettings):
    """Settings of a source that reads standard input."""

    kind = "stdin"

    def open(self, reader: Reader, label: str, session: Any = None) -> Source:
        """Open the source; see ``SourceSettings.open``."""
        from laconic.deploy.sources.text import StdinSource

        return StdinSource(reader, label, self.buffer)


@final
@dataclass(frozen=True)
class FileSettings(SourceSettings):
    """Settings of a source that replays a file."""

    kind = "file"

    path: Path
    rate: float | None
    loop: bool

    def open(self, reader: Reader, label: str, session: Any = None) -> Source:
        """Open the source; see ``SourceSettings.open``."""
        from laconic.deploy.sources.text import FileSource

        return FileSource(reader, label, self.buffer, path=self.path, rate=self.rate, loop=self.loop)


@final
@dataclass(frozen=True)
class ZenohSettings(SourceSettings):
    """Settings of a source that subscribes to a zenoh key."""

    kind = "zenoh"

    key: str

    def open(self, reader: Reader, label: str, session: Any = None) -> Source:
        """Open the source; see ``SourceSettings.open``."""
        from laconic.deploy.sources.zenoh import ZenohSource

        if session is None:
            raise ValueError(f"{label}: a zenoh source needs the agent's zenoh session.")
        return ZenohSource(reader, label, self.buffer, session=session, key=self.key)


@final
@dataclass(frozen=True)
class MqttSettings(SourceSettings):
    """Settings of a source that subscribes to an MQTT topic."""

    kind = "mqtt"

    host: str
    port: int | None
    topic: str
    user: str | None
    password_env: str | None
    tls: bool
    ca: Path | None
    qos: int

    def open(self, reader: Reader, label: str, session: Any = None) -> Source:
        """Open the source; see ``SourceSettings.open``."""
        from laconic.deploy.sources.mqtt import MqttSource

        return MqttSource(
            reader,
            label,
            self.buffer,
            host=self.host,
            port=self.port,
            topic=self.topic,
            user=self.user,
            password_env=self.password_env,
            tls=self.tls,
            ca=self.ca,
            qos=self.qos,
        )


def read_source(table: Section, n_inputs: int, site: str, agent: str) -> SourceSettings:
    """The settings in a ``source`` table; ``{name}`` and ``{site}`` in its texts stand for the agent and its site."""
    table.values = {key: _filled(value, site, agent) for key, value in table.values.items()}
    kind = table.choice("kind", KINDS, "zenoh")
    inputs, target = table.texts("inputs", None), table.text("target", None)
    if inputs is not None and len(inputs) != n_inputs:
        raise table.wrong(f"inputs must be {n_inputs} names, as [model] n_inputs says; got {len(inputs)}.")
    if inputs is None and target is not None:
        raise table.wrong("target is for named inputs: list their names as inputs, too.")
    if inputs is not None and target in inputs:
        raise table.wrong(f"target must not be one of the inputs, got {target!r}.")
    common = {"inputs": inputs, "target": target, "buffer": table.integer("buffer", _BUFFER, least=1, most=_MOST)}
    settings = _READERS[kind](table, common, site, agent)
    table.end()
    return settings


def _read_stdin(table: Section, common: dict[str, Any], site: str, agent: str) -> SourceSettings:
    return StdinSettings(**common)


def _read_file(table: Section, common: dict[str, Any], site: str, agent: str) -> SourceSettings:
    path, rate = table.path("path"), table.number("rate", None, above=0)
    return FileSettings(**common, path=path, rate=rate, loop=table.flag("loop"))


def _read_zenoh(table: Section, common: dict[str, Any], site: str, agent: str) -> SourceSettings:
    key = table.text("key", f"{site}/{agent}/sample")
    # What zenoh's key expressions forbid: empty chunks, and the letters it keeps for itself.
    if any(not chunk for chunk in key.split("/")) or any(letter in key for letter in "#?$"):
        raise table.wrong(f"key must be a zenoh key such as 'site/kitchen/sample', got {key!r}.")
    return ZenohSettings(**common, key=key)


def _read_mqtt(table: Section, common: dict[str, Any], site: str, agent: str) -> SourceSettings:
    host, topic = table.text("host"), table.text("topic")
    try:
        host.encode("idna")
    except UnicodeError:
        raise table.wrong(f"host must be the name or address of a broker, got {host!r}.") from None
    levels = topic.split("/")
    # '#' stands alone and last, '+' stands alone: the broker would refuse anything else, but later.
    joined = any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
    if joined or "#" in levels[:-1]:
        raise table.wrong(f"topic must be an MQTT topic, got {topic!r}.")
    port = table.integer("port", None, least=1, most=65_535)
    user, password = table.text("user", None), table.text("password_env", None)
    if "password" in table:
        raise table.wrong("password must not stand in a file: name an environment variable as password_env.")
    if password is not None and user is None:
        raise table.wrong("password_env needs a user.")
    return MqttSettings(
        **common,
        host=host,
        port=port,
        topic=topic,
        user=user,
        password_env=password,
        tls=table.flag("tls"),
        ca=table.path("ca", None),
        qos=table.integer("qos", 1, least=0, most=2),
    )


_READERS = {"stdin": _read_stdin, "file": _read_file, "zenoh": _read_zenoh, "mqtt": _read_mqtt}


def _filled(value: Any, site: str, agent: str) -> Any:
    """``{name}`` and ``{site}`` filled in. Not ``str.format``: braces may well mean something else in a topic."""
    if isinstance(value, str):
        return value.replace("{name}", agent).replace("{site}", site)
    if isinstance(value, list):
        return [_filled(item, site, agent) for item in value]
    return value
