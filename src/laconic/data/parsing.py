"""What the readers of raw files share: tables of the width that is known, columns by name, labels that come last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from laconic._validate import Array
from laconic.data import files, readers, text
from laconic.data.dataset import Table
from laconic.data.registry import Entry
from laconic.data.text import Layout


def read_frame(path: Path, entry: Entry, layout: Layout) -> pl.DataFrame:
    """A table of text with names in its first line."""
    frame = readers.delimited(text.decode(files.read(path), str(path)), layout, str(path))
    if frame.width != entry.n_columns:
        raise foreign(path, entry, f"it has {frame.width} columns instead of {entry.n_columns}")
    return frame


def read_matrix(path: Path, entry: Entry, n_rows: int | None) -> Array:
    """A large table of numbers without header, straight into float64."""
    schema = {f"x{k}": pl.Float64 for k in range(entry.n_columns)}
    raw = files.read(path)
    width = raw[: raw.find(b"\n") + 1 or None].count(b",") + 1
    if width != entry.n_columns:
        raise foreign(path, entry, f"it has {width} columns instead of {entry.n_columns}")
    try:
        frame = pl.read_csv(raw, has_header=False, schema=schema, n_rows=n_rows)
    except pl.exceptions.PolarsError as error:
        raise foreign(path, entry, str(error).strip().split("\n")[0][:200]) from None
    return np.ascontiguousarray(frame.to_numpy())


def numbers(frame: pl.DataFrame, path: Path, entry: Entry) -> Array:
    """The cells of a frame, all of which must be numbers."""
    for column in frame.get_columns():
        if not column.dtype.is_numeric():
            raise foreign(path, entry, f"its column {column.name!r} has cells that are not numbers")
    return np.ascontiguousarray(frame.cast(pl.Float64).to_numpy())


def need_columns(path: Path, entry: Entry, frame: pl.DataFrame, expected: set[str]) -> None:
    """Refuse a file that lacks one of the expected columns."""
    lacking = sorted(expected - set(frame.columns))
    if lacking:
        raise foreign(path, entry, f"it has no column {lacking[0]!r}")


def last_is_label(matrix: Array, entry: Entry, names: list[str]) -> Table:
    """A matrix whose last column is the label, as a table."""
    return Table(np.ascontiguousarray(matrix[:, :-1]), matrix[:, -1].copy(), tuple(names), entry.target)


def frame_last_is_label(frame: pl.DataFrame, path: Path, entry: Entry) -> Table:
    """A frame whose last column is the label, as a table."""
    return last_is_label(numbers(frame, path, entry), entry, frame.columns[:-1])


def signs(table: Table, path: Path, entry: Entry, classes: tuple[str, str]) -> Table:
    """0 and 1 as -1 and +1."""
    if not np.isin(table.y, (0.0, 1.0)).all():
        raise foreign(path, entry, f"{entry.target} must be 0 or 1")
    return table._replace(y=2 * table.y - 1, classes=classes)


def foreign(path: Path, entry: Entry, reason: str) -> ValueError:
    """The error that says why a file cannot be the one that it is taken for."""
    return ValueError(f"{path} is not the raw file of {entry.name!r}: {reason}.")
