"""The agents of a site as rows of a table that stays below the lines of their logs; for a terminal, by rich."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import IO, TYPE_CHECKING, Any, final

from laconic.deploy.running.logs import printable

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("agent", "round", "error", "bits", "censored", "neighbours", "last alert")
_APART = 5  # lines of the screen that are not rows


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
        below = [Text(summary, style="bold", no_wrap=True, overflow="ellipsis")]
        if keys:
            below.append(Text(keys, style="dim"))
        self._live.update(Group(table, *below), refresh=True)

    def close(self) -> None:
        """Leave the table where it is."""
        self._live.stop()

    def _table(self, status: Mapping[str, Mapping[str, Any]], here: Collection[str]) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for name in _COLUMNS:
            left = name in ("agent", "last alert")
            table.add_column(
                name, justify="left" if left else "right", header_style="dim", no_wrap=True, overflow="ellipsis"
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

        mark = Text("● " if here else "○ ", style="green" if here else "dim" if told is None else "red")
        who = mark + Text(printable(name), style="bold" if here else "dim")
        total = self._neighbours[name]
        if told is None:
            return [
                who,
                *[Text("-", style="dim")] * 4,
                Text(f"- of {total}", style="dim"),
                Text("starting", style="dim"),
            ]
        sends, censored = (_number(told.get(field)) or 0 for field in ("sends", "censored"))
        heard = _number(told.get("neighbours"))
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


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def _whole(value: object) -> str:
    known = _number(value)
    return "-" if known is None else f"{known:,.0f}"


def _digits(value: object) -> str:
    known = _number(value)
    return "-" if known is None else f"{known:#.4g}"
