"""A checkpoint on trial: whether the last start that went on from it crashed before its first round was over.

Compiled code that is given what it cannot bear ends the process by a signal. Python's ``faulthandler`` then writes a
report, here into a file beside the checkpoint, which is there from before the checkpoint is read until a round is over.
A process that is killed, or loses power, leaves an empty report, which means nothing.
"""

from __future__ import annotations

import faulthandler
import logging
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from laconic.protocol.checkpoint import previous

_log = logging.getLogger(__name__)


def report_of(checkpoint: Path) -> Path:
    """Where a crash is reported."""
    return checkpoint.with_name(checkpoint.name + ".trial")


@final
class Trial:
    """From before a checkpoint is read until it has proved good.

    If the last start with it crashed, the checkpoint is renamed to ``....crashed`` before anything reads it, so that
    this start goes on from the one before. If that one crashes, too, it is renamed likewise.

    Parameters
    ----------
    checkpoint : Path or None
        Nothing is on trial without one, or on another thread than the main one: reports are of a whole process.
    """

    def __init__(self, checkpoint: Path | None) -> None:
        alone = threading.current_thread() is threading.main_thread()
        self._checkpoint = checkpoint if alone else None
        self._file: Any = None
        self._before = False

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            with suppress(OSError):  # a disk that cannot be written is told of when something is saved
                self._begin(self._checkpoint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end()

    def _begin(self, checkpoint: Path) -> None:
        report = report_of(checkpoint)
        report.parent.mkdir(parents=True, exist_ok=True)
        if report.exists() and report.stat().st_size > 0:
            bad = checkpoint if checkpoint.exists() else previous(checkpoint)
            with suppress(FileNotFoundError):
                aside = bad.replace(checkpoint.with_name(checkpoint.name + ".crashed"))
                _log.error("checkpoint refused", extra={"why": "the last start with it crashed", "path": str(aside)})
        self._file, self._before = report.open("wb"), faulthandler.is_enabled()
        faulthandler.enable(self._file)

    def end(self) -> None:
        """The checkpoint is good, or the process ends in order."""
        if self._file is None or self._checkpoint is None:
            return
        faulthandler.disable()
        if self._before:
            with suppress(OSError, ValueError, AttributeError, RuntimeError):  # stderr may be no file
                faulthandler.enable()
        self._file.close()
        self._file = None
        report_of(self._checkpoint).unlink(missing_ok=True)
