"""Numbers as people write them: with a currency, a percent sign, separators of thousands, or brackets for a minus."""

from __future__ import annotations

import re

import polars as pl

_MONEY = r"[$€£¥₹]|CHF|EUR|USD|GBP|kr"
_DIGITS = r"\d[\d.,'’   ]*"
_DRESSED = re.compile(rf"(\()?([-+−]?)\s*(?:{_MONEY})?\s*([-+−]?)\s*({_DIGITS})\s*(?:%|{_MONEY})?\s*(\))?", re.I)
_THOUSANDS = {mark: re.compile(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+") for mark in ".,"}


def undressed(column: pl.Series) -> pl.Series | None:
    """The numbers of a column of text, or None if one of its cells is none; a percent sign stays a unit.

    Which of point and comma stands before decimals is told by all cells together: the last one where a cell has both,
    else the one that groups of three digits would not explain.

    >>> undressed(pl.Series(["$1,250.00", "($20.50)", None])).to_list()
    [1250.0, -20.5, None]
    >>> undressed(pl.Series(["20,5 €", "1.250,25 €"])).to_list(), undressed(pl.Series(["12,000", "7,500"])).to_list()
    ([20.5, 1250.25], [12000.0, 7500.0])
    >>> undressed(pl.Series(["12 %", "red"])) is None
    True
    """
    if column.dtype != pl.String:
        return None
    found: list[tuple[str, str] | None] = []
    for cell in column.to_list():
        if cell is None:
            found.append(None)
            continue
        match = _DRESSED.fullmatch(cell.strip())
        if match is None or bool(match[1]) != bool(match[5]) or (match[2] and match[3]):
            return None
        minus = bool(match[1]) or (match[2] or match[3]) in ("-", "−")
        found.append(("-" if minus else "", re.sub(r"['’   ]", "", match[4]).rstrip(".,")))
    digits = [one[1] for one in found if one is not None]
    decimal = _decimal(digits) if digits else None
    if decimal is None:
        return None
    other = "," if decimal == "." else "."
    try:
        values = [
            None if one is None else float(one[0] + one[1].replace(other, "").replace(decimal, ".")) for one in found
        ]
    except ValueError:
        return None
    return pl.Series(column.name, values, dtype=pl.Float64)


def is_dressed(cell: str) -> bool:
    """Whether a cell alone is a number as people write it.

    >>> is_dressed("$1,250.00"), is_dressed("12 %"), is_dressed("oops")
    (True, True, False)
    """
    return undressed(pl.Series([cell])) is not None if _DRESSED.fullmatch(cell.strip()) else False


def _decimal(cells: list[str]) -> str | None:
    """The mark before decimals: "." or ","; None if cells contradict each other."""
    both = {max(".,", key=cell.rfind) for cell in cells if "." in cell and "," in cell}
    if both:
        return both.pop() if len(both) == 1 else None
    for mark, other in ((",", "."), (".", ",")):
        marked = [cell for cell in cells if mark in cell]
        if marked and not all(_THOUSANDS[mark].fullmatch(cell) for cell in marked):
            return mark if all(cell.count(mark) == 1 for cell in marked) else None
        if marked and (mark == "," or any(cell.count(mark) > 1 for cell in marked)):
            return other
    return "."
