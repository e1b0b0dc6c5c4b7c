"""What is printed: tables, numbers, and errors as one sentence in the command line's own words."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

#: The library speaks of arguments; at a terminal they are options.
_OPTIONS = {
    "n_agents": "--agents",
    "n_frequencies": "--frequencies",
    "n_rows": "--rows",
    "how": "--partition",
    "name": "data",
    "name_or_path": "data",
    "data_dir": "--data-dir",
}
_STEPS = ("alpha", "bandwidth", "beta", "bits", "eta", "loss", "range", "regularization", "rho", "step")
_OPTIONS |= {name: f"--{name}" for name in (*_STEPS, "missing", "protocol", "seed", "seeds", "set", "target")}
_PHRASES = {
    "pass missing='drop'": "add --missing drop",
    "with data_dir or": "with --data-dir or",
    "widen range or use range='adaptive'": "widen --range or leave it adaptive",
    "lower step.": "lower --step.",
    "raise eta (": "raise --eta (",
    " or rho (": " or --rho (",
}
_LINE = 100  # longer lines are hard to read, however wide the terminal


def sentence(error: BaseException) -> str:
    """What an error says, in one sentence."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        if isinstance(error, FileNotFoundError):
            return f"there is no file {str(error.filename)!r}."
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}."
    said = " ".join(str(error).split()) or type(error).__name__
    first = re.match(r"(\w+)(?= (?:must|is for)\b)", said)
    if first and first[1] in _OPTIONS:
        said = _OPTIONS[first[1]] + said[first.end() :]
    for phrase, words in _PHRASES.items():
        said = said.replace(phrase, words)
    return said if said.endswith((".", "?", "!")) else said + "."


def note(message: str) -> None:
    """Something worth knowing that is no part of the result."""
    print(f"laconic: {message}", file=sys.stderr)


@contextmanager
def note_of_compiling() -> Iterator[None]:
    """Say so if something is compiled meanwhile, for it takes longer than one likes to wait without a word."""
    from laconic.engine.compiling import when_compiling

    with when_compiling(lambda: note("compiling, once for each installation; this takes about ten seconds.")):
        yield


def width() -> int:
    """Columns to print in."""
    return max(40, min(shutil.get_terminal_size().columns, _LINE))


def paragraph(text: str, indent: int = 0) -> str:
    """``text`` wrapped to the terminal, all lines after the first indented."""
    return textwrap.fill(text, width(), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, a pair a line."""
    longest = max(len(name) for name, _ in pairs) + 2
    lines = []
    for name, what in pairs:
        wrapped = textwrap.wrap(what, width() - longest, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [
            f"{start:<{longest}}{line}" for start, line in zip([name, *[""] * len(wrapped)], wrapped, strict=False)
        ]
    return "\n".join(lines)


def table(rows: Sequence[Sequence[str]], align: str, gap: int = 2) -> str:
    """Rows as aligned columns; ``align`` has < or > for each of them."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(align))]
    lines = [
        (" " * gap).join(f"{cell:{side}{size}}" for cell, side, size in zip(row, align, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None) -> str:
    """Four digits that count."""
    return "-" if value is None else f"{value:#.4g}".rstrip(".")


def count(value: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{round(value):,}"


def plural(n: int, thing: str) -> str:
    """So many things."""
    return f"{count(n)} {thing}{'' if n == 1 else 's'}"
