"""One door to all data: a name from the registry, or a person's own file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from laconic import _validate
from laconic._files import expanded
from laconic._worded import ArgumentError
from laconic.data import files, own, people
from laconic.data.dataset import Dataset, Table
from laconic.data.download import absent
from laconic.data.download import download as bring
from laconic.data.parsing import foreign
from laconic.data.registry import REGISTRY, Entry, info

PROTOCOLS = ("paper", "prepared")


def load(
    name_or_path: str | os.PathLike[str],
    *,
    protocol: str = "paper",
    data_dir: str | os.PathLike[str] | None = None,
    target: str | int | None = None,
    n_rows: int | None = None,
    missing: str = "refuse",
    header: bool | None = None,
    download: bool = True,
    progress: bool = True,
) -> Dataset:
    r"""Inputs, labels and a description of a known data set or of a person's own file.

    Parameters
    ----------
    name_or_path : str or path
        One of ``names()``, or a file: .csv (any separator, with or without header), .parquet or .arff, each also
        compressed as .gz or .xz.
    protocol : "paper" or "prepared"
        Which rows and columns of a known set to take; its description says what each means. "paper" gives the number
        of rows that the paper counts; "prepared", scaled with ``scale(X, "matrix")``, gives the prepared sets.
    data_dir : path, optional
        The folder with the raw files; else the environment variable LACONIC_DATA, else the user's cache. A file that is
        not there is downloaded from its source (needs pooch).
    target : str or int, optional
        The label of a person's own file: a column's name or index. The last column by default. A label of two words
        becomes -1 and +1, in the order of the alphabet.
    n_rows : int, optional
        Take the first so many rows, instead of as many as the protocol says.
    missing : "refuse" or "drop"
        What to do with rows of a person's own file that have a missing or infinite cell.
    header : bool, optional
        Whether line 1 of a person's own file of text holds the names of its columns. By default the file tells, or
        ``target``: a name that stands in line 1.
    download : bool
        Whether a file that is not at hand may be downloaded.
    progress : bool
        Show a progress bar while downloading.

    Raises
    ------
    ValueError
        With one sentence on what is wrong with the file or the arguments.
    Unavailable
        When the file is neither here nor to be had; the message says which file to put where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from laconic import data
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "flats.csv")
    >>> _ = path.write_text("rooms;area;rent\n2;51,5;740\n3;70,0;955\n1;33,8;610\n")
    >>> flats = data.load(path, target="rent")
    >>> flats
    Dataset 'flats.csv': 3 rows, 2 inputs (rooms, area), target rent from 610 to 955
    >>> flats.X[0].tolist()
    [2.0, 51.5]
    >>> folder.cleanup()
    """
    _validate.choice("protocol", protocol, PROTOCOLS)
    _validate.choice("missing", missing, ("refuse", "drop"))
    if n_rows is not None:
        n_rows = _validate.integer("n_rows", n_rows, least=1)
    if not isinstance(name_or_path, str) or name_or_path not in REGISTRY:
        path = _own_path(name_or_path, data_dir)
        table = _cut(own.read(path, target, missing, header), n_rows, path.name)
        words = f"Read from {path.name}."
        if table.classes is not None:
            words += f" -1 stands for {table.classes[0]!r} and +1 for {table.classes[1]!r}."
        return _dataset(path.name, table, words, "", None)
    entry = REGISTRY[name_or_path]
    if target is not None:
        raise ArgumentError("target", f"is for files of your own; {entry.name!r} predicts {entry.target!r}.")
    if header is not None:
        raise ArgumentError("header", f"is for files of your own, and {entry.name!r} is none.")
    table = (
        entry.draw(n_rows) if entry.draw is not None else _known(entry, protocol, data_dir, n_rows, download, progress)
    )
    return _dataset(entry.name, table, entry.description, entry.citation, protocol if entry.protocols else None)


def load_open(
    name_or_path: str | os.PathLike[str],
    *,
    protocol: str = "paper",
    data_dir: str | os.PathLike[str] | None = None,
    target: str | int | None = None,
    n_rows: int | None = None,
    encode: bool = True,
    agent_column: str | int | None = None,
    header: bool | None = None,
) -> people.OpenTable:
    """A known data set or a person's own file as it is: see ``laconic.data.people``. Classes stay words."""
    if isinstance(name_or_path, str) and name_or_path in REGISTRY:
        if agent_column is not None:
            raise ArgumentError("agent_column", f"is for files of your own, and {name_or_path!r} is none.")
        known = load(name_or_path, protocol=protocol, data_dir=data_dir, target=target, n_rows=n_rows, header=header)
        y = known.y
        if known.classes is not None:
            y = np.where(y > 0, known.classes[1], known.classes[0]).astype(object)
        return people.OpenTable(known.X, y, known.names, known.target, None, ())
    path = _own_path(name_or_path, data_dir)
    table = people.read_open(path, target, encode=encode, agent_column=agent_column, header=header)
    if n_rows is None:
        return table
    stop = _validate.integer("n_rows", n_rows, least=1)
    if stop > len(table.y):
        raise ArgumentError("n_rows", f"must be at most {len(table.y)}, the number of rows; got {stop}.")
    owners = None if table.agents is None else table.agents[:stop]
    return table._replace(X=table.X[:stop], y=table.y[:stop], agents=owners)


def _known(
    entry: Entry,
    protocol: str,
    data_dir: str | os.PathLike[str] | None,
    n_rows: int | None,
    may_download: bool,
    progress: bool,
) -> Table:
    names = entry.files if protocol == "paper" else entry.files[::-1]
    path = files.find(names, data_dir, prefer=entry.name)
    if path is None and not may_download:
        raise absent(entry, files.folder(data_dir), "downloads are switched off")
    if path is None:
        path = bring(entry, data_dir, progress=progress)
    counted = n_rows if n_rows is not None else entry.paper_rows if protocol == "paper" else None
    table = _read(path, entry, protocol, counted)
    if n_rows is None and counted is not None:
        counted = min(counted, len(table.y))
    return _cut(table, counted, entry.name)


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    """The table of a named set, its cells finite and its labels within their range."""
    assert entry.read is not None  # it has files
    table = entry.read(path, entry, protocol, stop)
    bad = ~np.isfinite(np.column_stack([table.X, table.y])).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{path} has a missing or infinite cell in data row {int(np.argmax(bad)) + 1}: fetch it again."
        )
    low, high = entry.target_range
    if not len(table.y) or table.y.min() < low or table.y.max() > high:
        raise foreign(path, entry, f"{entry.target} must lie between {low:g} and {high:g}")
    return table


def _own_path(name_or_path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None) -> Path:
    if not isinstance(name_or_path, (str, os.PathLike)) or not str(name_or_path):
        raise ArgumentError("name_or_path", f"must be a name or a file, got {_validate.shown(name_or_path)}.")
    path = expanded(name_or_path)
    candidates = [path] if data_dir is None or path.is_absolute() else [path, files.folder(data_dir) / path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
        if candidate.is_dir():
            raise ArgumentError("name_or_path", f"must be a name or a file, and {str(candidate)!r} is a folder.")
    looks_like_a_file = len(path.parts) > 1 or Path(files.stem(path)).suffix.lower() in own.ENDINGS
    if looks_like_a_file:
        raise ArgumentError("name_or_path", f"must be a name or a file, and there is no file {str(path)!r}.")
    info(str(name_or_path))
    raise AssertionError("a known name is never taken for a file")


def _cut(table: Table, n_rows: int | None, name: str) -> Table:
    if n_rows is None:
        return table
    if n_rows > len(table.y):
        raise ArgumentError("n_rows", f"must be at most {len(table.y)}, the number of rows of {name!r}; got {n_rows}.")
    return table._replace(X=table.X[:n_rows], y=table.y[:n_rows])


def _dataset(name: str, table: Table, description: str, citation: str, protocol: str | None) -> Dataset:
    return Dataset(
        name=name,
        X=table.X,
        y=table.y,
        names=table.names,
        target=table.target,
        description=description,
        citation=citation,
        protocol=protocol,
        classes=table.classes,
    )
