"""What is printed: tables, numbers, and errors as one sentence in the command line's own words."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout

from laconic._worded import Worded, printable
from laconic.cli.options import at_terminal

_IN_ORDER = {"time": "in their order, dealt in turn", "time-stretches": "in their order, a stretch of them an agent"}
_BLANKS = str.maketrans("\t\n\r\v\f", "     ")
_LINE = 100  # longer lines are hard to read, however wide the terminal


def sentence(error: BaseException) -> str:
    """What an error says, in one sentence; names in it, of files and columns, cannot move the cursor."""
    return printable(_said(error))


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        if isinstance(error, FileNotFoundError):
            return f"there is no file {str(error.filename)!r}."
        if isinstance(error, IsADirectoryError):
            return f"{str(error.filename)!r} is a folder, and a file is needed."
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}."
    text = error.args[0] if error.args else ""
    said = text.reworded(at_terminal) if isinstance(text, Worded) else str(error)
    said = " ".join(said.split()) or type(error).__name__
    return said if said.endswith((".", "?", "!")) else said + "."


_hushed = False


@contextmanager
def hushed(result: bool = True) -> Iterator[None]:
    """Print nothing meanwhile but errors; with ``result`` false, only notes are left out."""
    global _hushed
    before, _hushed = _hushed, True
    try:
        with redirect_stdout(io.StringIO()) if result else nullcontext():
            yield
    finally:
        _hushed = before


def note(message: str) -> None:
    """Something worth knowing that is no part of the result."""
    if not _hushed:
        print(f"laconic: {printable(message)}", file=sys.stderr)


def width() -> int:
    """Columns to print in."""
    return max(40, min(shutil.get_terminal_size().columns, _LINE))


def paragraph(text: str, indent: int = 0) -> str:
    """``text`` wrapped to the terminal, all lines after the first indented."""
    return textwrap.fill(
        _on_one_line(text), width(), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _on_one_line(text: str) -> str:
    return printable(text.translate(_BLANKS))


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, a pair a line."""
    longest = max(len(name) for name, _ in pairs) + 2
    lines = []
    for name, what in pairs:
        wrapped = textwrap.wrap(
            _on_one_line(what), width() - longest, break_long_words=False, break_on_hyphens=False
        ) or [""]
        lines += [
            f"{start:<{longest}}{line}" for start, line in zip([name, *[""] * len(wrapped)], wrapped, strict=False)
        ]
    return "\n".join(lines)


def looked_at() -> bool:
    """Whether a person reads what is printed, on a terminal that knows colours and with no wish for none."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def table(rows: Sequence[Sequence[str]], align: str, gap: int = 2, best: int | None = None) -> str:
    """Rows as aligned columns; ``align`` has < or > for each of them.

    With ``best`` the first row is a header, and that row is the one to look at: to a person they are shown so.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(align))]
    lines = [
        (" " * gap).join(f"{cell:{side}{size}}" for cell, side, size in zip(row, align, widths, strict=True))
        for row in rows
    ]
    lines = [line.rstrip() for line in lines]
    if best is not None and looked_at():
        from rich.style import Style

        for row, style in ((0, "dim"), (best, "bold")):
            lines[row] = Style.parse(style).render(lines[row])
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Four digits that count."""
    return "-" if value is None else f"{value:#.4g}".rstrip(".")


def count(value: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{round(value):,}"


def keeps_order(partition: str) -> bool:
    """Whether rows are learned in the order in which they came."""
    return partition in _IN_ORDER


def dealt(partition: str) -> str:
    """How rows are dealt, behind the word "rows"."""
    return _IN_ORDER.get(partition, partition)


def plural(n: int, thing: str) -> str:
    """So many things."""
    return f"{count(n)} {thing}{'' if n == 1 else 's'}"
