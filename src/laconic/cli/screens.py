"""What a person sees at a terminal: tables with colour, and a sign of life. Where nobody looks, both are plain."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from laconic.cli.words import table


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str, marked: Collection[tuple[int, int]] = ()
) -> None:
    """Rows under their header; cells ``marked`` by (row, column) stand out, off a terminal by an asterisk.

    >>> print_table(("learner", "error"), [("ODKLA", "0.015"), ("WaveRLS", "0.011")], "<>", {(1, 1)})
    learner   error
    ODKLA     0.015
    WaveRLS  0.011*
    """
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        _print_rich(header, rows, align, marked)
        return
    cells = [[cell + "*" * ((k, j) in marked) for j, cell in enumerate(row)] for k, row in enumerate(rows)]
    # A column with a mark in it keeps room for one in all its rows, so that digits stand below digits.
    roomy = {j for _, j in marked}
    cells = [
        [cell if j not in roomy or cell.endswith("*") else f"{cell} " for j, cell in enumerate(row)] for row in cells
    ]
    print(table([header, *cells], align))


def _print_rich(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str, marked: Collection[tuple[int, int]]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = [max(len(row[j]) for row in rows) if rows else 0 for j in range(len(header))]
    whole = sum(max(width, len(name)) + 2 for width, name in zip(widths, header, strict=True))
    narrow = whole - 2 > console.width  # then headers take two lines: half a number is worth less than none
    made = Table(box=None, pad_edge=False, padding=(0, 1 if narrow else 2, 0, 0))
    for name, side, width in zip(header, align, widths, strict=True):
        least = max(width, *(len(word) for word in name.split()), 1) if narrow else None
        justify: Any = "right" if side == ">" else "left"
        made.add_column(name, justify=justify, header_style="dim", no_wrap=not narrow, width=least, vertical="bottom")
    for k, row in enumerate(rows):
        styles = ["bold green" if (k, j) in marked else "bold" if j == 0 else "" for j in range(len(row))]
        made.add_row(*(Text(cell, style=style) for cell, style in zip(row, styles, strict=True)))
    console.print(made)


@contextmanager
def working(what: str, show: bool = True) -> Iterator[Callable[[str], Any]]:
    """A function that is told what is being worked on, and shows it while that lasts; only to a person."""
    if not (show and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"):
        yield lambda now: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda now: status.update(f"{what}: {now}")
