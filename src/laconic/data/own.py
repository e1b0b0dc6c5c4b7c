"""A person's own table: which column is the label, which are inputs, and what to say about the rest."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError, Setting, Worded
from laconic.data import arff, files, readers, text
from laconic.data.dataset import Table

_PARQUET = (".parquet", ".pq")
ENDINGS = (".csv", ".tsv", ".txt", ".data", ".dat", *_PARQUET, ".arff")

_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d.*)?|\d{1,2}[:.]\d{2}([:.]\d{2})?(\.\d+)?")


def read(path: Path, target: str | int | None, missing: str, header: bool | None = None) -> Table:
    """Inputs and label of a .csv (any separator, with or without header), .parquet or .arff file, also .gz or .xz."""
    frame, nominal, short = read_frame(path, header, (target,))
    return _table(frame, target, missing, path.name, nominal, short)


def read_frame(
    path: Path, header: bool | None = None, named: Iterable[object] = ()
) -> tuple[pl.DataFrame, set[str], str]:
    """The table in a file, which of its columns are nominal, and which line has too few cells, in words.

    ``header`` says whether line 1 of a text holds names; None lets the text tell, and the names in ``named``.
    """
    where, raw = path.name, files.read(path)
    kind = Path(files.stem(path)).suffix.lower()
    if header is not None and kind in (".arff", *_PARQUET):
        raise ArgumentError("header", f"is for tables of text without names of their own, and {where} has names.")
    if kind in (".json", ".jsonl", ".ndjson"):
        raise ValueError(f"{where} is JSON: save it as a table, a .csv or .parquet file with a row a sample.")
    nominal: set[str] = set()
    short = ""
    if kind in _PARQUET:
        frame = readers.parquet(raw, where)
    else:
        content = text.decode(raw, where)
        if kind == ".arff":
            frame, attributes = arff.read(content, where)
            nominal = {
                name for name, column in zip(frame.columns, attributes, strict=True) if column.values is not None
            }
        else:
            layout = text.sniff(content, where, header, named)
            frame = readers.delimited(content, layout, where)
            if frame.width and frame[:, -1].null_count():
                short = readers.short_line(content, layout, frame.width)
    return frame, nominal, short


def _table(
    frame: pl.DataFrame, target: str | int | None, missing: str, where: str, nominal: set[str], short: str
) -> Table:
    if frame.height == 0:
        raise ValueError(f"{where} has a header and no rows.")
    if frame.width < 2:
        raise ValueError(f"{where} must have at least two columns, inputs and a target; only one was found.")
    name = find_column("target", frame.columns, target, where)
    y, classes = _label(frame[name], name, where, name in nominal)
    inputs, dropped = [], []
    for column in frame.drop(name).get_columns():
        if column.null_count() == len(column):
            dropped.append(f"{column.name!r} (empty)")
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            inputs.append(column.cast(pl.Float64))
        else:
            dropped.append(f"{column.name!r} ({_kind_and_cell(column)})")
    if not inputs:
        raise ValueError(f"{where} has no column of numbers besides the target {name!r}.")
    if dropped:
        plural = "column that is" if len(dropped) == 1 else "columns that are"
        warnings.warn(f"{where}: dropped the {plural} not numbers: {', '.join(dropped)}.", stacklevel=4)
    X = np.column_stack([column.to_numpy() for column in inputs])
    names = tuple(column.name for column in inputs)
    X, y = _present(X, y, (*names, name), missing, where, short)
    return Table(X, y, names, name, classes)


def find_column(what: str, columns: list[str], target: str | int | None, where: str) -> str:
    """The column meant by a name, by an index (negative ones count from the end), or by nothing (the last)."""
    if target is None:
        return columns[-1]
    if isinstance(target, str):
        if target in columns:
            return target
        if not re.fullmatch(r"-?\d+", target):
            near = difflib.get_close_matches(target, columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {some(columns)}."
            raise ArgumentError(what, f"must be a column of {where}, which has none called {target!r}: {hint}")
        target = int(target)  # from a command line all comes as text
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise ArgumentError(what, f"must be the name or the index of a column, got {_validate.shown(target)}.")
    if not -len(columns) <= target < len(columns):
        raise ArgumentError(
            what, f"must be an index below {len(columns)}, the number of columns of {where}; got {target}."
        )
    return columns[int(target)]


def _label(column: pl.Series, name: str, where: str, nominal: bool) -> tuple[Array, tuple[str, str] | None]:
    """The label as numbers; two words become -1 and +1 in the order of the alphabet."""
    if column.null_count() == len(column):
        raise ValueError(f"target {name!r} of {where} has no values at all.")
    if column.dtype.is_numeric() and not nominal:
        return column.cast(pl.Float64).to_numpy().astype(np.float64), None
    if column.dtype == pl.Boolean:
        column, words = column.cast(pl.String), ["false", "true"]
    elif column.dtype == pl.String or column.dtype.is_numeric():
        words = column.drop_nulls().unique().sort().cast(pl.String).to_list()
        words = [word.removesuffix(".0") for word in words] if column.dtype.is_numeric() else words
        column = column.cast(pl.String).str.strip_suffix(".0") if column.dtype.is_numeric() else column
    else:
        words = []
    if len(words) != 2 or kind_of(column) == "dates":
        found = kind_of(column)
        if words and found == "text":
            found = f"{len(words)} different words" if len(words) > 1 else "one word"
            found += f" ({some(words)})"
        raise ValueError(f"target {name!r} of {where} must be numbers or two classes, but it holds {found}.")
    signs = column.replace_strict({words[0]: -1.0, words[1]: 1.0}, default=None, return_dtype=pl.Float64)
    return signs.to_numpy().astype(np.float64), (words[0], words[1])


def _present(X: Array, y: Array, names: tuple[str, ...], missing: str, where: str, short: str) -> tuple[Array, Array]:
    """The rows without holes, or a sentence that names the first hole."""
    table = np.column_stack([X, y])
    good = np.isfinite(table)
    rows = good.all(axis=1)
    if rows.all():
        return X, y
    n_bad = int((~rows).sum())
    if missing == "drop":
        if not rows.any():
            raise ValueError(f"{where} has no row without a missing or infinite cell.")
        warnings.warn(f"{where}: dropped {n_bad} of {len(rows)} rows with missing or infinite cells.", stacklevel=5)
        return X[rows], y[rows]
    row, column = (int(k) for k in np.argwhere(~good)[0])
    kind = "missing" if np.isnan(table[row, column]) else "infinite"
    first = short or f"the first is {kind}, in column {names[column]!r}, row {row + 1} of the data"
    count = "a row" if n_bad == 1 else f"{n_bad} rows"
    raise ValueError(
        Worded(
            f"{where} has {count} with missing or infinite cells ({first}): fill them, or ",
            Setting("pass", "missing", "drop"),
            ".",
        )
    )


def kind_of(column: pl.Series) -> str:
    """What a column holds, in a word: dates, text, or the name of its type."""
    if column.dtype.is_temporal():
        return "dates"
    if column.dtype != pl.String:
        return str(column.dtype)
    cells = column.drop_nulls().head(100).to_list()
    return "dates" if cells and all(_DATE.fullmatch(cell) for cell in cells) else "text"


def _kind_and_cell(column: pl.Series) -> str:
    """What a column holds; of text, the first cell that is no number, which may be the only one."""
    kind = kind_of(column)
    if kind != "text":
        return kind
    words = column.filter(column.is_not_null() & column.str.strip_chars().cast(pl.Float64, strict=False).is_null())
    return f"text: {words[0]!r}, for one" if len(words) else kind


def some(words: list[str]) -> str:
    """The first of some words, in quotes."""
    return ", ".join(repr(word) for word in words[:8]) + (", ..." if len(words) > 8 else "")
