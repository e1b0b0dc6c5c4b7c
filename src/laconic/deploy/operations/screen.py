"""What people see of a site that runs on their machine: its agents' lines, and one line that sums them up."""

from __future__ import annotations

import logging
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from laconic._reports import count, measurement
from laconic._worded import printable
from laconic.deploy.running import logs

if TYPE_CHECKING:
    from laconic.deploy.operations.rows import Rows

_FRESH = 0.25  # seconds between two drawings of the summary
_CLEAR = "\r\x1b[K"
_OWN = ("time", "level", "agent", "event")  # of every line
_SUMS = ("sends", "bits", "repairs")


class Screen:
    """Shows the lines of agents: short on a terminal, above a line that sums them up; elsewhere as JSON, as they are.

    It is a stream to write to as well, so that the lines of others do not run into the summary.

    Parameters
    ----------
    n_agents : int
    stream : file
        Where to write; stderr if not given.
    form : "auto", "json" or "text"
        Of the lines; auto for text on a terminal and JSON elsewhere.
    level : str
        Lines of a lower level are not shown.
    neighbours : dict, optional
        How many each agent has, by its name: on a terminal every agent then has a row below the lines.
    keys : str
        What the screen tells of keys that can be pressed.

    Examples
    --------
    >>> import io
    >>> screen = Screen(2, io.StringIO())
    >>> screen.line("hall", "", {"event": "progress", "round": 8, "mean_square_error": 0.2, "sends": 3, "bits": 900})
    >>> screen.line("attic", "", {"event": "progress", "round": 7, "mean_square_error": 0.8, "sends": 4, "bits": 1200})
    >>> screen.summary()
    'round 7  mean square error 0.5000  7 sends  2,100 bits  0 repairs  2 of 2 agents'
    """

    def __init__(
        self,
        n_agents: int,
        stream: IO[str] | None = None,
        form: str = "auto",
        level: str = "info",
        *,
        neighbours: Mapping[str, int] | None = None,
        keys: str = "",
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        # A terminal that cannot go back in its line gets lines, one after the other.
        self.live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._rows: Rows | None = None
        self._neighbours, self._keys = neighbours, keys
        self.form = form if form != "auto" else "text" if self._stream.isatty() else "json"
        self._n_agents = n_agents
        self._hidden = logs.LEVELS[: logs.LEVELS.index(level)]
        self._status: dict[str, Mapping[str, Any]] = {}  # the latest of each agent
        self._here: set[str] = set()
        self._drawn = -math.inf  # when the summary was last drawn
        self._stale = False

    def line(self, name: str, text: str, fields: Mapping[str, Any] | None) -> None:
        """An agent wrote a line; ``fields`` is what is in it if it is one of its log."""
        if fields is None:
            self.write(f"{self._foreign(name, text)}\n")
            return
        if fields["event"] in ("started", "progress"):
            self._here.add(name)
        if fields["event"] == "progress":
            self._status[name] = fields
            self._stale = True
            if self.live:
                self.refresh()
                return
        if fields.get("level") not in self._hidden:
            self.write(f"{text if self.form == 'json' else _short(fields)}\n")

    def announce(self, words: str) -> None:
        """Say something that is no agent's, where the page is, say."""
        if self.form == "text":
            self.write(f"{words}\n")
        else:
            record = logging.makeLogRecord({"msg": "announced", "levelname": "INFO", "what": words})
            self.write(f"{logs.Json().format(record)}\n")

    def gone(self, name: str) -> None:
        """Show that an agent's process has ended."""
        self._here.discard(name)
        self._stale = True

    def summary(self) -> str:
        """What all agents have done together: the round that the last of them is in, their mean error, their sums."""
        if not self._status:
            return f"{len(self._here)} of {self._n_agents} agents"
        all_ = list(self._status.values())
        errors = [error for told in all_ if (error := measurement(told.get("mean_square_error"))) is not None]
        rounds = [count(told.get("round")) or 0 for name, told in self._status.items() if name in self._here]
        sums = [f"{sum(count(told.get(name)) or 0 for told in all_):,.0f} {name}" for name in _SUMS]
        alerts = sum(count(told.get("alerts")) or 0 for told in all_)
        parts = [
            f"round {min(rounds or [count(told.get('round')) or 0 for told in all_]):,.0f}",
            *([f"mean square error {sum(errors) / len(errors):#.4g}"] if errors else []),
            *sums,
            *([f"{alerts:,.0f} alerts"] if alerts else []),
            f"{len(self._here)} of {self._n_agents} agents",
        ]
        return "  ".join(parts)

    def write(self, text: str) -> int:
        """Write whole lines, above the summary."""
        rows = self._table()
        if rows is not None:
            rows.above(text)
        else:
            self._stream.write(f"{_CLEAR}{text}" if self.live else text)
        self._stale = True
        self._draw()
        return len(text)

    def flush(self) -> None:
        """Flush the screen."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the screen is a terminal."""
        return self.live

    def pause(self) -> float:
        """Seconds until the summary is to be drawn again."""
        return max(0.0, self._drawn + _FRESH - time.monotonic()) if self.live and self._stale else math.inf

    def refresh(self) -> None:
        """Draw the summary again, if it is time."""
        if self._stale and time.monotonic() - self._drawn >= _FRESH:
            self._draw()

    def close(self) -> None:
        """Leave the summary as the last line."""
        self._keys = ""
        self._draw()
        if self._rows is not None:
            self._rows.close()
            self._rows = self._neighbours = None
        elif self.live:
            self._stream.write("\n")
        self.live = False
        self.flush()

    def _table(self) -> Rows | None:
        """The table of agents, from the first line on, where there can be one."""
        if self._rows is None and self.live and self._neighbours is not None and find_spec("rich") is not None:
            from laconic.deploy.operations.rows import Rows

            self._rows = Rows(self._neighbours, self._stream)
        return self._rows

    def _draw(self) -> None:
        rows = self._table()
        if rows is not None:
            rows.draw(self._status, self._here, self.summary(), self._keys)
            self._drawn, self._stale = time.monotonic(), False
        elif self.live:
            columns = shutil.get_terminal_size().columns
            self._stream.write(f"{_CLEAR}{self.summary()[: columns - 1]}")
            self._drawn, self._stale = time.monotonic(), False
        self.flush()

    def _foreign(self, name: str, text: str) -> str:
        """A line that is no line of a log: a traceback's, or a library's."""
        if self.form == "text":
            return f"{name} | {printable(text)}"
        record = logging.makeLogRecord({"msg": "output", "levelname": "WARNING", "line": text})
        return logs.Json(name).format(record)


def _short(fields: Mapping[str, Any]) -> str:
    """A line of an agent's log in its short form."""
    try:
        clock = datetime.fromisoformat(str(fields.get("time"))).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        clock = "--:--:--"
    rest = {name: value for name, value in fields.items() if name not in _OWN}
    trace = rest.pop("traceback", None)
    line = logs.sentence(clock, str(fields.get("agent", "")), str(fields.get("level")), fields["event"], rest)
    below = [f"  {printable(part)}" for part in str(trace).splitlines()] if trace else []
    return "\n".join([line, *below])
