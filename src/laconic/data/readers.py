"""Tables of any kind as a polars frame: columns of numbers where every cell is a number, of text elsewhere."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import polars as pl

from laconic.data import text as texts
from laconic.data.files import TooLarge, most_bytes
from laconic.data.text import FIELD_LIMIT, MISSING, Layout

_GUESS_ROWS = 1000


def delimited(
    text: str, layout: Layout, where: str, *, names: Sequence[str] | None = None, quote: str = '"', first: int = 1
) -> pl.DataFrame:
    """A table of text; lines without any cell and nameless columns without any cell are passed over.

    Parameters
    ----------
    text : str
        As ``texts.decode`` gives it.
    layout : Layout
    where : str
        How messages call the file.
    names : sequence of str, optional
        Names of the columns, where the text itself has no header.
    quote : str
        The quotation mark.
    first : int
        The number that the first line of ``text`` has in the file, for messages.
    """
    separator = layout.separator
    if separator == " ":
        text = texts.single_blanks(text)
    first += len(text) - len(text.lstrip("\n"))
    text = text.strip("\n") + "\n"
    frame = _read(text, separator, layout.header, quote, where, first)
    if names is not None and len(names) != frame.width:
        raise ValueError(f"{where}: {texts.explain(text, separator, len(names), quote, first)}.")
    frame = frame.select(clean(column, layout.decimal_comma) for column in frame.get_columns())
    for column in frame.get_columns():
        longest = column.str.len_chars().max() if column.dtype == pl.String else None
        if isinstance(longest, int) and longest > FIELD_LIMIT:
            raise ValueError(f"{where}: {texts.explain(text, separator, 0, quote, first)}.")
    frame = _named(frame, layout.header, names)
    return frame.filter(~pl.all_horizontal(pl.all().is_null())) if frame.width else frame


def _named(frame: pl.DataFrame, header: bool, names: Sequence[str] | None) -> pl.DataFrame:
    if names is not None:
        return frame.rename(dict(zip(frame.columns, names, strict=True)))
    kept: dict[str, pl.Series] = {}
    for k, column in enumerate(frame.get_columns()):
        name = column.name.strip() if header else ""
        name = "" if name.startswith("_duplicated_") else name  # how polars calls the second column without a name
        if not name and column.null_count() == len(column):
            continue
        name = name or f"x{k}"
        kept[name if name not in kept else f"{name} ({k})"] = column
    return pl.DataFrame(kept)


def short_line(text: str, layout: Layout, width: int) -> str:
    """Which line has too few cells, in words; empty if all have enough."""
    if layout.separator == " ":
        text = texts.single_blanks(text)
    said = texts.explain(text.strip("\n") + "\n", layout.separator, width)
    return said if said.startswith("line ") else ""


def parquet(raw: bytes, where: str) -> pl.DataFrame:
    """A Parquet file; columns of text that hold numbers become numbers."""
    if not raw:
        raise ValueError(f"{where} is empty.")
    try:
        with _without_backtrace():
            lazy = pl.scan_parquet(io.BytesIO(raw))
            size = 8.0 * lazy.select(pl.len()).collect().item() * len(lazy.collect_schema())
            frame = pl.read_parquet(io.BytesIO(raw)) if size <= most_bytes() else None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"{where} is not a Parquet file that can be read ({_first_line(error)}).") from None
    if frame is None:
        raise TooLarge(f"{where} unpacks to {size / 1e9:.2g} GB, too much for the memory that is free.")
    return frame.select(clean(column, decimal_comma=False) for column in frame.get_columns())


@contextmanager
def _without_backtrace() -> Iterator[None]:
    """Keep from stderr what polars prints there of a file that it cannot read, before it raises an error."""
    try:
        before = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def clean(column: pl.Series, decimal_comma: bool) -> pl.Series:
    """A column as float64 if all its cells are numbers or missing; else as it is, text without blanks around it."""
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        return column
    cells = column.str.strip_chars()
    cells = cells.set(cells.str.to_lowercase().is_in(list(MISSING)), None)
    attempts = [cells]
    if decimal_comma:
        simple = cells.str.contains(r"^[^.,]*,[^.,]*$")
        attempts.append(cells.zip_with(~simple.fill_null(False), cells.str.replace(",", ".", literal=True)))
    for attempt in attempts:
        numbers = attempt.cast(pl.Float64, strict=False)
        if numbers.null_count() == cells.null_count():
            return numbers
    return cells


def _read(text: str, separator: str, header: bool, quote: str, where: str, first: int) -> pl.DataFrame:
    # Types are guessed from the first rows, which is quick; where a later row does not fit, all cells are read as text.
    raw = text.encode()
    error: BaseException | None = None
    if text.count(quote) % 2:  # seldom, and not always wrong: 5" is a legal cell
        said = texts.explain(text, separator, 0, quote, first)
        if said.startswith("a quotation mark"):
            raise ValueError(f"{where}: {said}.")
    for guess in (_GUESS_ROWS, 0):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return pl.read_csv(
                    raw, separator=separator, has_header=header, quote_char=quote, infer_schema_length=guess
                )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as caught:
            error = caught
    width = len(next(csv.reader([text.split("\n", 1)[0]], delimiter=separator, quotechar=quote)))
    said = texts.explain(text, separator, width, quote, first)
    raise ValueError(f"{where}: {said}.") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]
