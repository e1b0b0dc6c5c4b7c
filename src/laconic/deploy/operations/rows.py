"""The agents of a site as rows of a table that stays below the lines of their logs; for a terminal, by rich."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import IO, TYPE_CHECKING, Any, final

from laconic._reports import count, measurement
from laconic._worded import printable

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("agent", "round", "error", "bits", "censored", "neighbours", "last alert")
_APART = 6  # lines of the screen that are not rows
_GAP = "  "  # between the parts of the summary


@final
class Rows:
    """A table that is drawn again and again in its place, with lines above it.

    Parameters
    ----------
    neighbours : dict
        How many each agent has, by its name.
    stream : file
        A terminal.
    """

    def __init__(self, neighbours: Mapping[str, int], stream: IO[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._neighbours = dict(neighbours)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        #: Whether the stream's alphabet lacks discs and the ellipsis.
        self._poor = self._console.options.ascii_only
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._live.start()

    def above(self, text: str) -> None:
        """Print whole lines above the table."""
        self._console.print(text, end="", soft_wrap=True)

    def draw(self, status: Mapping[str, Mapping[str, Any]], here: Collection[str], summary: str, keys: str) -> None:
        """Draw the table as it is now."""
        from rich.console import Group
        from rich.text import Text

        table = self._table(status, here)
        below = [Text(line, style="bold") for line in self._folded(summary)]
        if keys:
            below.append(Text(keys, style="dim"))
        self._live.update(Group(table, *below), refresh=True)

    def close(self) -> None:
        """Leave the table where it is."""
        self._live.stop()

    def _folded(self, summary: str) -> list[str]:
        """The parts of the summary, in as many lines as they need."""
        lines: list[str] = []
        for part in summary.split(_GAP):
            if lines and len(lines[-1]) + len(_GAP) + len(part) < self._console.size.width:
                lines[-1] += _GAP + part
            else:
                lines.append(part)
        return lines

    def _table(self, status: Mapping[str, Mapping[str, Any]], here: Collection[str]) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for name in _COLUMNS:
            left = name in ("agent", "last alert")
            table.add_column(
                name,
                justify="left" if left else "right",
                header_style="dim",
                no_wrap=True,
                overflow="crop" if self._poor else "ellipsis",
            )
        room = max(3, self._console.size.height - _APART)
        names = list(self._neighbours)
        shown = names if len(names) <= room else self._first(names, status, here)[: room - 1]
        for name in shown:
            table.add_row(*self._cells(name, status.get(name), name in here))
        if len(shown) < len(names):
            table.add_row(Text(f"and {len(names) - len(shown)} more", style="dim"))
        return table

    def _first(self, names: list[str], status: Mapping[str, Mapping[str, Any]], here: Collection[str]) -> list[str]:
        """Those first that somebody should look at: who is gone, who had an alert, then all others as they come."""

        def rank(name: str) -> tuple[bool, bool]:
            return name in here or name not in status, not status.get(name, {}).get("last_alert")

        return sorted(names, key=rank)

    def _cells(self, name: str, told: Mapping[str, Any] | None, here: bool) -> list[Any]:
        from rich.text import Text

        discs = ("+ ", "- ") if self._poor else ("● ", "○ ")
        mark = Text(discs[0] if here else discs[1], style="green" if here else "dim" if told is None else "red")
        who = mark + Text(printable(name), style="bold" if here else "dim")
        total = self._neighbours[name]
        if told is None:
            return [
                who,
                *[Text("-", style="dim")] * 4,
                Text(f"- of {total}", style="dim"),
                Text("starting", style="dim"),
            ]
        sends, censored = (count(told.get(field)) or 0 for field in ("sends", "censored"))
        heard = count(told.get("neighbours"))
        few = heard is not None and heard < total
        alert = told.get("last_alert")
        return [
            who,
            _whole(told.get("round")),
            _digits(told.get("mean_square_error")),
            _whole(told.get("bits")),
            f"{100 * censored / (sends + censored):.1f}%" if sends + censored else "-",
            Text(f"{'-' if heard is None else round(heard)} of {total}", style="red" if few else ""),
            Text(printable(str(alert)), style="yellow") if alert else Text("none", style="dim"),
        ]


def _whole(value: object) -> str:
    known = count(value)
    return "-" if known is None else f"{known:,.0f}"


def _digits(value: object) -> str:
    known = measurement(value)
    return "-" if known is None else f"{known:#.4g}"
