"""Keeps the agents of a site running on one machine: a process each, restarted when it dies, stopped all together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple

from laconic._reports import parse_object
from laconic.deploy.operations.screen import Screen
from laconic.deploy.running.exits import DIVERGED, ENDED, FAILED, NONSENSE, heard

_FINAL = {ENDED: "its data ended", NONSENSE: "its settings make no sense", DIVERGED: "it diverged"}

_STEADY = 3.0  # seconds of life, once started, after which earlier deaths are forgiven
_FIRST, _LONGEST = 0.25, 30.0  # seconds to wait before the second restart in a row, and at most
_PATIENCE = 60.0  # seconds that one agent may keep others from starting
_LINE = 65536  # bytes of a line; what is longer is cut into several

_log = logging.getLogger(__name__)


class _Said(NamedTuple):
    """A line that a process wrote."""

    process: subprocess.Popen[bytes]
    line: bytes


class _Died(NamedTuple):
    """A process has ended."""

    process: subprocess.Popen[bytes]


class _Child:
    """One agent: its command, and the process that runs it now, if any."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name, self.command = name, list(command)
        self.process: subprocess.Popen[bytes] | None = None
        self.starting = False  # until it says that it has started
        self.since = 0.0  # when its process was started, or had started
        self.due: float | None = 0.0  # when to start it; None while it runs and once it ended for good
        self.deaths = 0  # in a row
        self.code: int | None = None  # with which it ended for good


class Spare(NamedTuple):
    """A process that has loaded everything and waits to become any agent.

    It says ``{"event": "loaded"}``, then reads a line from standard input that tells it who it is.
    """

    command: Sequence[str]
    tasks: Mapping[str, str]  # the line for each agent


class Supervisor:
    """Runs a process for each agent until all have ended, or until a signal stops them.

    An agent that dies is started again at once, by a spare process if there is one; if it dies again soon, after a
    pause that doubles each time. One that ends because its data ended, because it diverged or because its settings make
    no sense stays ended.

    Processes load and compile code before they do anything else, so only as many start at a time as there are cores: no
    later than all at once would, and what the first compile the others find in the cache. They live in sessions of
    their own: Ctrl-C is the supervisor's business. Their standard input is a pipe; it ends when the supervisor is gone,
    however it went, which tells them to stop.

    Parameters
    ----------
    commands : dict
        The command of each agent, by its name.
    screen : Screen
        Shows their lines.
    spare : Spare, optional
    grace : float
        Seconds that they have to stop before they are killed.
    at_once : int, optional
        Processes that may start at the same time; the number of cores if not given.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        screen: Screen,
        *,
        spare: Spare | None = None,
        grace: float = 10.0,
        at_once: int | None = None,
    ) -> None:
        if not commands:
            raise ValueError("a site must have at least one agent.")
        self._children = [_Child(name, command) for name, command in commands.items()]
        self._spare = None if spare is None else _Child("spare", spare.command)
        self._tasks = {} if spare is None else dict(spare.tasks)
        self._screen, self._grace = screen, grace
        self._at_once = at_once or os.cpu_count() or 1
        self._news: SimpleQueue[_Said | _Died | int] = SimpleQueue()
        self._environment = _environment()
        self._stopped: int | None = None  # the first signal that asked to stop
        self._deadline = float("inf")  # when those that still run are killed

    def run(self) -> int:
        """Run the agents until all have ended, in the main thread, which is the one that hears signals.

        Returns 0 if all agents came to the end of their data, 128 and the number of the signal that stopped them, or 1.
        """
        with heard(self._news.put):
            try:
                while any(child.process or child.due is not None for child in self._children):
                    self._start_due()
                    with suppress(Empty):
                        self._take(self._news.get(timeout=self._pause()))
                    self._kill_late()
                    self._screen.refresh()
            finally:  # whatever happened in here: nobody is left behind
                self._end_all()
                self._screen.close()
        if self._stopped is not None:
            return 128 + self._stopped
        return 0 if all(child.code == ENDED for child in self._children) else 1

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ask to stop as the signal would; from any thread."""
        self._news.put(int(number))

    def _take(self, news: _Said | _Died | int) -> None:
        if isinstance(news, int):
            self._stop(news)
            return
        child = next((child for child in self._all() if child.process is news.process), None)
        if child is None:
            return
        if isinstance(news, _Died):
            self._on_exit(child)
            return
        fields = _fields(news.line)
        if fields is not None and fields["event"] in ("started", "loaded"):
            child.starting, child.since = False, time.monotonic()
        if child is not self._spare or fields is None or fields["event"] != "loaded":
            self._screen.line(child.name, news.line.decode(errors="replace"), fields)

    def _all(self) -> list[_Child]:
        return self._children if self._spare is None else [*self._children, self._spare]

    def _places(self) -> int:
        """How many more processes may start now."""
        now = time.monotonic()
        return self._at_once - sum(child.starting and now - child.since < _PATIENCE for child in self._all())

    def _due(self) -> list[_Child]:
        """Those that are to be started, sooner or later; the spare only if there is nothing else to do."""
        due = [child for child in self._children if child.due is not None]
        if self._spare is None or self._spare.due is None or any(child.starting for child in self._children):
            return due
        return due or [self._spare]

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [child for child in self._due() if child.due is not None and child.due <= now]
        for child in due[: max(0, self._places())]:
            # A spare that still loads has a start on any other process.
            if not self._replace(child) and not self._loads(now):
                self._start(child)

    def _loads(self, now: float) -> bool:
        """Whether a spare will soon be there."""
        spare = self._spare
        return spare is not None and spare.process is not None and spare.starting and now - spare.since < _PATIENCE

    def _replace(self, child: _Child) -> bool:
        """Let the spare become ``child``, if there is one and it has loaded."""
        spare = self._spare
        if spare is None or spare is child or spare.process is None or spare.starting:
            return False
        assert spare.process.stdin is not None
        try:
            spare.process.stdin.write(f"{self._tasks[child.name]}\n".encode())
            spare.process.stdin.flush()
        except OSError:  # dead, and not yet known to be
            return False
        child.process, child.starting, child.due, child.since = spare.process, True, None, time.monotonic()
        spare.process, spare.due = None, child.since
        return True

    def _start(self, child: _Child) -> None:
        child.since, child.due = time.monotonic(), None
        try:
            child.process = subprocess.Popen(
                child.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:  # no memory or no process left, perhaps for a moment
            _log.error("cannot start", extra={"who": child.name, "why": str(error)})
            self._restart(child)
            return
        child.starting = True
        # Reads until the pipe ends, so it ends with its process.
        threading.Thread(target=_read, args=(child.process, self._news), daemon=True).start()

    def _on_exit(self, child: _Child) -> None:
        """Note that the process of a child has ended, and start it again unless that was for good."""
        process, started = child.process, not child.starting
        child.process, child.starting = None, False
        assert process is not None
        code = process.wait()
        _close(process)
        self._screen.gone(child.name)
        if self._stopped is not None:
            child.code = code
            return
        if child is self._spare and code in _FINAL:  # nobody asked it to do anything: it cannot be one
            return
        if code in _FINAL:
            child.code = code
            say = _log.info if code == ENDED else _log.error
            say("ended", extra={"who": child.name, "why": _FINAL[code]})
            return
        self._restart(child, _cause(code), started)

    def _restart(self, child: _Child, cause: str = "", started: bool = False) -> None:
        """Start it again: at once, or after a pause if it keeps dying."""
        now = time.monotonic()
        # One that never started, since its port is taken, say, has not lived, however long it took to load.
        if started and now - child.since > _STEADY:
            child.deaths = 0
        pause = min(_FIRST * 2.0 ** (child.deaths - 1), _LONGEST) if child.deaths else 0.0
        child.deaths += 1
        child.due = now + pause
        _log.warning("died, will be restarted", extra={"who": child.name, "cause": cause, "pause": pause})

    def _stop(self, number: int) -> None:
        """Ask all to stop; a second signal does not ask."""
        for child in self._all():
            child.due = None
        if self._stopped is not None:
            self._deadline = 0.0
            self._kill_late()
            return
        self._stopped = number
        self._deadline = time.monotonic() + self._grace
        _log.info("stopping", extra={"signal": signal.Signals(number).name})
        for child in self._all():
            if child.process is not None:
                child.process.terminate()

    def _kill_late(self) -> None:
        if time.monotonic() < self._deadline:
            return
        for child in self._children:
            if child.process is not None:
                _log.error("does not stop, killed", extra={"who": child.name})
                child.process.kill()
        self._deadline = float("inf")

    def _end_all(self) -> None:
        for child in self._all():
            if child.process is not None:
                child.process.kill()
                child.process.wait()
                _close(child.process)

    def _pause(self) -> float:
        """Seconds until something is to be done, whatever comes in."""
        now = time.monotonic()
        waits = [max(0.0, child.due - now) for child in self._due() if child.due is not None]
        # Where nobody can start now, what changes that is news, or the end of the patience with another.
        blocked = self._places() <= 0 or self._loads(now)
        soonest = 1.0 if blocked else min(waits, default=3600.0)
        return max(0.0, min(soonest, self._deadline - now, self._screen.pause()))


def command(config: str, *options: str) -> list[str]:
    """The command of an agent, or of a spare one, that is supervised."""
    own = ["--config", config, "--log", "json", "--supervised", *options]
    return [sys.executable, "-m", "laconic", "agent", *own]


def _environment() -> dict[str, str]:
    """What agents inherit: each has a core at most, so more threads than one only get into each other's way."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**dict.fromkeys(threads, "1"), "PYTHONUNBUFFERED": "1", **os.environ}


def _read(process: subprocess.Popen[bytes], news: SimpleQueue[Any]) -> None:
    """Hand on every line of a process, then its death."""
    assert process.stdout is not None
    while line := process.stdout.readline(_LINE):
        news.put(_Said(process, line.rstrip(b"\r\n")))
    process.wait()
    news.put(_Died(process))


def _close(process: subprocess.Popen[bytes]) -> None:
    pipe: IO[bytes] | None
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _fields(line: bytes) -> dict[str, Any] | None:
    """A line that is JSON, as the agents' own are; None for any other."""
    fields = parse_object(line)
    return fields if fields is not None and isinstance(fields.get("event"), str) else None


def _cause(code: int) -> str:
    if code >= 0:
        return "its source of samples failed" if code == FAILED else f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
