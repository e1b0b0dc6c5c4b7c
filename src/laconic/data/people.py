"""A person's file as it is: words, dates, numbers and holes; and what was made of each column, in words.

``own.read`` takes numbers only and refuses the rest. Here categories become columns of 0 and 1, dates become numbers, a
column that only numbers the rows is left out, and holes stay holes: inputs are filled later, in the order in which rows
come, and rows without a label are for prediction only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from laconic._validate import Array
from laconic.data import own
from laconic.data.dressed import is_dressed, undressed

_MOST_LEVELS = 50  # words of a column that become columns; one of more tells rows apart, and little else
_NUMBERING = re.compile(r"(row|record|sample|index|idx|no|nr|id|uuid|guid|key)|.*[_ ](id|uuid|index)|unnamed.*", re.I)
_COUNTED = 10  # rows that a first column without a name numbers, to be taken for no input
_DAY = 86_400_000_000  # microseconds
_DATES = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y")  # the first that fits all cells
_TIMES = ("", " %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M")


class OpenTable(NamedTuple):
    """Inputs, NaN where a cell is missing; labels, as numbers or words; and what was done, in words.

    Attributes
    ----------
    X : array (n, d)
    y : array (n,)
        Numbers with NaN, or words with None, where there is no label.
    names : tuple of str
    target : str
    agents : array (n,) or None
        Whom each row belongs to.
    notes : tuple of str
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    target: str
    agents: Array | None
    notes: tuple[str, ...]


def read_open(
    path: Path,
    target: str | int | None = None,
    *,
    encode: bool = True,
    agent_column: str | int | None = None,
    header: bool | None = None,
) -> OpenTable:
    """Read a file; ``encode`` makes columns of categories, ``agent_column`` says whom a row belongs to."""
    frame, nominal, short = own.read_frame(path, header, (target, agent_column))
    where, notes = path.name, [f"{short}: the rest counts as missing"] if short else []
    if frame.height < 2:
        raise ValueError(f"{where} has {'only one row' if frame.height else 'a header and no rows'}.")
    if frame.width < 2:
        raise ValueError(f"{where} must have at least two columns, inputs and a target; only one was found.")
    name = own.find_column("target", frame.columns, target, where)
    agents = None
    if agent_column is not None:
        owner = own.find_column("agent_column", frame.columns, agent_column, where)
        if owner == name:
            raise ValueError(f"the agents of {where} and its target must be two columns, got {name!r} for both.")
        agents = frame[owner].cast(pl.String).fill_null("?").to_numpy()
        frame = frame.drop(owner)
    bare = None if name in nominal else _as_numbers(frame[name])
    if bare is not None:
        notes.append(bare[1])
        frame = frame.with_columns(bare[0])
    y = _labels(frame[name], name in nominal)
    columns: dict[str, Array] = {}
    for column in frame.drop(name).get_columns():
        made, said = _input(column, column.name in nominal, encode)
        columns |= made
        notes += [said] if said else []
    if not columns:
        raise ValueError(f"{where} has no column besides the target {name!r} that could be learned from.")
    X = np.column_stack(list(columns.values()))
    X[~np.isfinite(X)] = np.nan
    holes = int(np.isnan(X).sum())
    if holes:
        are = "1 missing input is" if holes == 1 else f"{holes} missing inputs are"
        notes.append(f"{are} filled by the mean of what came before")
    absent = int((np.isnan(y) if y.dtype.kind == "f" else np.array([one is None for one in y])).sum())
    if absent == len(y):
        raise ValueError(f"target {name!r} of {where} has no values at all.")
    if absent:
        are = f"1 row without {name!r} is" if absent == 1 else f"{absent} rows without {name!r} are"
        notes.append(f"{are} predicted and not learned from")
    return OpenTable(X, y, tuple(columns), name, agents, tuple(notes))


def _labels(column: pl.Series, nominal: bool) -> Array:
    if column.dtype.is_numeric() and not nominal:
        numbers = column.cast(pl.Float64).to_numpy().astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    words = column.cast(pl.String)
    words = words.str.strip_suffix(".0") if column.dtype.is_numeric() else words
    return np.array(words.to_list(), dtype=object)


def _input(column: pl.Series, nominal: bool, encode: bool) -> tuple[dict[str, Array], str]:
    """The columns of numbers that a column becomes, and what is to be said of it."""
    name, present = column.name, column.drop_nulls()
    if not len(present):
        return {}, f"{name!r} is empty and left out"
    if _numbers_rows(column):
        return {}, f"{name!r} only numbers the rows and is left out"
    days = days_of(column)
    if days is not None:
        return {name: days}, f"{name!r} holds dates: days since 1970{_direction(days)}"
    if (column.dtype.is_numeric() or column.dtype == pl.Boolean) and not nominal:
        return {name: column.cast(pl.Float64).to_numpy().astype(np.float64)}, ""
    bare = None if nominal else _as_numbers(column)
    if bare is not None:
        return {name: bare[0].to_numpy().astype(np.float64)}, bare[1]
    if not encode:
        return {}, f"{name!r} holds words and is left out"
    words = column.cast(pl.String)
    levels = words.drop_nulls().unique().sort().to_list()
    if len(levels) > _MOST_LEVELS:
        return {}, f"{name!r} holds {len(levels)} different words, too many to learn from, and is left out"
    if len(levels) == 1:
        return {}, f"{name!r} is {levels[0]!r} everywhere and left out"
    cells = np.array(words.fill_null("").to_list(), dtype=object)
    kept = levels[1:] if len(levels) == 2 else levels
    made = {f"{name}={level}": (cells == level).astype(np.float64) for level in kept}
    return made, f"{name!r} is one of {len(levels)} words: {len(made)} column{'s' * (len(made) > 1)} of 0 and 1"


def _as_numbers(column: pl.Series) -> tuple[pl.Series, str] | None:
    """A column of text as the numbers that all its cells are, or all but a few; and what is to be said of it."""
    if column.dtype != pl.String:
        return None
    bare = undressed(column)
    if bare is not None:
        return bare, f"{column.name!r} is read as numbers: {column.drop_nulls()[0]!r}, for one"
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    if not _all_but_a_few(column, numbers):
        cells = [cell if cell is not None and is_dressed(cell) else None for cell in column.to_list()]
        bare = undressed(pl.Series(column.name, cells, dtype=pl.String))
        if bare is None or not _all_but_a_few(column, bare):
            return None
        numbers = bare
    strays = (numbers.is_null() & column.is_not_null()).arg_true()
    first = f"{column[strays[0]]!r} in row {strays[0] + 1} of the data"
    if len(strays) == 1:
        return numbers, f"{column.name!r} is read as numbers, and {first} counts as missing"
    return numbers, f"{column.name!r} is read as numbers, and {len(strays)} cells, {first} for one, count as missing"


def _all_but_a_few(column: pl.Series, numbers: pl.Series) -> bool:
    """Whether nine in ten cells that are there are numbers, of which there are too many to be names of something."""
    known, levels = numbers.len() - numbers.null_count(), numbers.drop_nulls().n_unique()
    present = column.len() - column.null_count()
    return 10 * known >= 9 * present and (levels > _MOST_LEVELS or 2 * levels > known)


def _numbers_rows(column: pl.Series) -> bool:
    """Whether a column is called as one that numbers rows is, and holds no value twice; or has no name and counts."""
    if column.name == "x0" and column.dtype.is_numeric() and len(column) >= _COUNTED and not column.null_count():
        return bool((column.diff().drop_nulls() == 1).all())
    if not _NUMBERING.fullmatch(column.name.strip() or "unnamed") or column.null_count() or len(column) < 3:
        return False
    if column.n_unique() < len(column):
        return False
    whole = column.dtype.is_integer() or column.dtype == pl.String
    return whole or (column.dtype.is_float() and bool((column == column.round()).all()))


def days_of(column: pl.Series) -> Array | None:
    """Dates, or texts that are dates, as days since 1970; of times of day the share of it; None of anything else."""
    if own.kind_of(column) != "dates":
        return None
    dates = column if column.dtype.is_temporal() else _dates(column)
    return None if dates is None else _days(dates)


def _direction(days: Array) -> str:
    """Whether dates rise or fall from row to row, in words; nothing where they do neither."""
    steps = np.diff(days[np.isfinite(days)])
    if not steps.any() or (steps.min() < 0 < steps.max()):
        return ""
    return ", rising from row to row" if steps.max() > 0 else ", the newest first"


def _dates(column: pl.Series) -> pl.Series | None:
    """Texts as dates, by the first form that fits them all."""
    for form in (day + time for day in _DATES for time in _TIMES):
        read = column.str.to_datetime(form, strict=False)
        if read.null_count() == column.null_count():
            return read
    return None


def _days(column: pl.Series) -> Array:
    if column.dtype == pl.Time:
        return column.cast(pl.Int64).cast(pl.Float64).to_numpy().astype(np.float64) / (1000 * _DAY)
    stamps = column.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
    return stamps.to_numpy().astype(np.float64) / _DAY


def fill_running(X: Array, prefix: int) -> Array:
    """Holes of rounds (T, N, d) filled by the mean of all rounds before; if there is none, of the first ``prefix``.

    >>> import numpy as np
    >>> fill_running(np.array([[[1.0]], [[3.0]], [[np.nan]], [[np.nan]]]), prefix=2).ravel()
    array([1., 3., 2., 2.])
    """
    known = ~np.isnan(X)
    if known.all():
        return X
    sums, counts = np.nansum(X, axis=1).cumsum(axis=0), known.sum(axis=1).cumsum(axis=0)
    last = min(prefix, len(X)) - 1
    means = np.where(counts > 0, sums, sums[last]) / np.maximum(np.where(counts > 0, counts, counts[last]), 1)
    before = np.concatenate([means[:1], means[:-1]])
    return np.where(known, X, before[:, None, :])
