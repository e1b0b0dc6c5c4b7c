"""Rows to predict: the inputs of a model, found in a file as people have it.

A model that was learned from words and dates (``people``) has inputs that no file has as such: ``city=Bern`` is made of
the column ``city`` again, a day of a date.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from laconic._validate import Array
from laconic.data import own
from laconic.data.dressed import undressed
from laconic.data.people import days_of


class Rows(NamedTuple):
    """Inputs to predict from: all rows of a file, in its order.

    Attributes
    ----------
    X : array (n, d)
        NaN where a cell is missing or infinite.
    y : array of numbers or words, or None
        The label, if the file has it; NaN or None where it is missing.
    names : tuple of str
        The inputs that were found, in the model's order.
    """

    X: Array
    y: Array | None
    names: tuple[str, ...]


def read_inputs(
    path: Path, n_inputs: int, names: Sequence[str] | None, target: str | None, header: bool | None = None
) -> Rows:
    """The inputs of a model in a file of any kind that ``own.read`` takes: by name, or all its columns of numbers."""
    known = [name.split("=")[0] for name in names or ()]
    where, (frame, _, _) = path.name, own.read_frame(path, header, (*known, target))
    if frame.height == 0:
        raise ValueError(f"{where} has a header and no rows.")
    if names is None:
        names = [column.name for column in frame.get_columns() if _is_numeric(column) and column.name != target]
        if len(names) != n_inputs:
            raise ValueError(
                f"{where} has {len(names)} columns of numbers and the model takes {n_inputs} inputs, whose names it "
                "does not know."
            )
    X = np.column_stack([_input(frame, name, where) for name in names])
    X[~np.isfinite(X)] = np.nan
    _tell_of_strangers(frame, names, where)
    y = None if target is None or target not in frame.columns else _label(frame[target])
    return Rows(X, y, tuple(names))


def _input(frame: pl.DataFrame, name: str, where: str) -> Array:
    """One input: a column of numbers, of dates, of numbers in other clothes, or whether a column says a word."""
    if name not in frame.columns:
        source = _source(frame, name)
        if source is None:
            near = difflib.get_close_matches(name, frame.columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {own.some(frame.columns)}."
            raise ValueError(f"{where} has no column {name!r}, which the model needs: {hint}")
        words = frame[source].cast(pl.String).fill_null("")
        return (words == name[len(source) + 1 :]).cast(pl.Float64).to_numpy().astype(np.float64)
    column = frame[name]
    if _is_numeric(column) or column.null_count() == frame.height:
        return column.cast(pl.Float64).to_numpy().astype(np.float64)
    days = days_of(column)
    if days is not None:
        return days
    bare = undressed(column)
    if bare is None:
        raise ValueError(f"{where}: the column {name!r} must hold numbers, but it holds {own.kind_of(column)}.")
    return bare.to_numpy().astype(np.float64)


def _source(frame: pl.DataFrame, name: str) -> str | None:
    """The column that ``name``, such as city=Bern, asks for a word of; both may have an = of their own."""
    places = [k for k, letter in enumerate(name) if letter == "="]
    return next((name[:k] for k in places if name[:k] in frame.columns), None)


def _tell_of_strangers(frame: pl.DataFrame, names: Sequence[str], where: str) -> None:
    """Of three words or more a model knows all by name; others are none of them, which is worth a line."""
    known: dict[str, set[str]] = {}
    for name in names:
        source = None if name in frame.columns else _source(frame, name)
        if source is not None:
            known.setdefault(source, set()).add(name[len(source) + 1 :])
    for source, words in known.items():
        strange = sorted(set(frame[source].cast(pl.String).drop_nulls().unique().to_list()) - words)
        if len(words) > 1 and strange:
            said = own.some(strange)
            warnings.warn(
                f"{where}: the model knows no {said} in {source!r}: taken for none of its words.", stacklevel=3
            )


def _label(column: pl.Series) -> Array:
    bare = undressed(column)
    return np.asarray((column if bare is None else bare).to_numpy())


def _is_numeric(column: pl.Series) -> bool:
    return column.dtype.is_numeric() or column.dtype == pl.Boolean
