"""Structured log lines: JSON for machines, a short form for people.

Anything in the package logs as ``logging.getLogger("laconic....").info("event", extra={"neighbour": "hall"})``: the
message is the event, a few fixed words, and what varies are fields. One process is one agent, so its name is the
formatter's.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from laconic import _validate
from laconic._worded import printable

FORMS = ("auto", "json", "text")
LEVELS = ("debug", "info", "warning", "error")

#: What every record has: the rest are fields.
_OWN = frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"))
_BARE = re.compile(r"[^\s\"'=\x00-\x1f\x7f-\x9f]+")


class Stream(Protocol):
    """A text stream that log lines are written to."""

    def write(self, text: str, /) -> int:
        """Write text to the stream."""

    def flush(self) -> None:
        """Flush the stream."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""


class Json(logging.Formatter):
    """A JSON object a line: time, level, agent, event, and the fields.

    Examples
    --------
    >>> import logging
    >>> record = logging.makeLogRecord({"msg": "connected", "levelname": "INFO", "created": 0.0, "neighbour": "hall"})
    >>> print(Json("kitchen").format(record))
    {"time": "1970-01-01T00:00:00.000Z", "level": "info", "agent": "kitchen", "event": "connected", "neighbour": "hall"}
    """

    def __init__(self, agent: str | None = None) -> None:
        super().__init__()
        self.agent = agent

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        agent, said = _who(self.agent, record)
        line: dict[str, Any] = {
            "time": f"{stamp}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            **({"agent": agent} if agent else {}),
            "event": record.getMessage(),
        }
        # A field cannot take the place of what every line has.
        line |= {name: _plain(value) for name, value in said.items() if name not in line}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, allow_nan=False, default=str)


class Text(logging.Formatter):
    """Time of day, agent, event and fields, for eyes.

    Examples
    --------
    >>> import logging
    >>> record = logging.makeLogRecord({"msg": "refused", "levelname": "WARNING", "created": 0.0, "reason": "bad crc"})
    >>> Text("kitchen").format(record)[8:]
    ' kitchen: warning: refused reason="bad crc"'
    """

    def __init__(self, agent: str | None = None) -> None:
        super().__init__()
        self.agent = agent

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        agent, said = _who(self.agent, record)
        line = sentence(clock, agent, record.levelname.lower(), record.getMessage(), said)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Limit(logging.Filter):
    """At most ``most`` lines of one event in ``period`` seconds: a stranger's flood must not fill a disk.

    The first line after a silence tells how many were left out.
    """

    def __init__(self, most: int = 20, period: float = 10.0) -> None:
        super().__init__()
        self.most, self.period = most, period
        self._seen: dict[tuple[str, str], list[float]] = {}  # event: start of its period, lines in it

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be written."""
        event = record.name, str(record.msg)
        if len(self._seen) > 1000:  # somebody made events of what should be fields
            self._seen.clear()
        seen = self._seen.setdefault(event, [record.created, 0])
        if not 0 <= record.created - seen[0] < self.period:
            if seen[1] > self.most:
                record.left_out = int(seen[1]) - self.most
            seen[:] = [record.created, 0]
        seen[1] += 1
        return seen[1] <= self.most


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What the record says beside its event: all that was passed as ``extra``."""
    return {name: value for name, value in record.__dict__.items() if name not in _OWN}


def _who(agent: str | None, record: logging.LogRecord) -> tuple[str | None, dict[str, Any]]:
    """Whose line it is, the formatter's agent's or one that the record names, and the other fields."""
    said = fields(record)
    named = said.pop("agent", None)
    return agent or (str(named) if named else None), said


def sentence(clock: str, agent: str | None, level: str, event: str, fields: Mapping[str, Any]) -> str:
    """The short form of a line; nothing in it can end the line or move the cursor."""
    said = [printable(event), *(f"{printable(name)}={_shown(value)}" for name, value in fields.items())]
    who = f" {printable(agent)}:" if agent else ""
    loud = f" {level}:" if level not in ("info", "debug") else ""
    return f"{clock}{who}{loud} {' '.join(said)}"


def setup(
    agent: str | None = None, *, form: str = "auto", level: str = "info", stream: Stream | None = None
) -> logging.Handler:
    """Send what the package logs to ``stream`` (stderr), in place of where an earlier call sent it.

    ``form`` is "json", "text", or "auto": text on a terminal and JSON elsewhere. Returns the handler.
    """
    _validate.choice("form", form, FORMS)
    _validate.choice("level", level, LEVELS)
    stream = sys.stderr if stream is None else stream
    if form == "auto":
        form = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Json(agent) if form == "json" else Text(agent))
    handler.addFilter(Limit())
    handler.set_name("laconic")
    logger = logging.getLogger("laconic")
    for other in [h for h in logger.handlers if h.get_name() == "laconic"]:
        logger.removeHandler(other)
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    return handler


def _plain(value: object) -> object:
    """``value`` as JSON can hold it: numbers of NumPy as numbers, what is not finite as a word."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(part) for part in value]
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", None) == 0:
        return _plain(item())
    return value


def _shown(value: object) -> str:
    """``value`` for eyes: numbers short, words in quotes if a blank or worse is in them."""
    value = _plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and value and all(isinstance(part, str) and _BARE.fullmatch(part) for part in value):
        return printable(",".join(value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False))
