"""Data sets by name: what is known of each before it is loaded, and who reads or draws it.

A data set of the package is a module in ``laconic.data.sets``; one of a person's own is registered with ``register``.
A checksum is that of the uncompressed raw file. Where the published file could not be compared (``sha256`` empty), the
number of columns and the range of the labels are checked after parsing instead, as they are for every file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from laconic import _validate
from laconic._worded import ArgumentError
from laconic.data.dataset import Table

#: Where most of the sets were published.
UCI = "https://archive.ics.uci.edu/static/public"


@final
@dataclass(frozen=True)
class Entry:
    """Facts about one data set.

    Attributes
    ----------
    name, title, description, citation : str
    target : str
        Name of the label.
    files : tuple of str
        Names under which the raw file is looked for, the published one first; none for a set that is drawn.
    url, archive_sha256, sha256 : str
        The published archive or file, the checksum of that archive, the checksum of the raw file ``files[0]``. Empty
        where not known.
    size : str
        What the download weighs.
    n_columns : int
        Columns of the raw file, label included.
    n_inputs : int
        Inputs that the paper's protocol makes of them; by default all columns but the label.
    target_range : (float, float)
        Between these bounds every label must lie.
    paper_rows : int or None
        How many rows the paper takes; None for the sets it does not use.
    protocols : bool
        Whether "paper" and "prepared" differ.
    place : int
        Where it stands in lists, the smallest first.
    read : callable or None
        ``read(path, entry, protocol, stop)`` makes a ``Table`` of the raw file.
    draw : callable or None
        ``draw(n_rows)`` makes a ``Table`` without a file; of as many rows as it likes, if that is None.
    """

    name: str
    title: str
    description: str
    citation: str
    target: str = "y"
    files: tuple[str, ...] = ()
    url: str = ""
    archive_sha256: str = ""
    sha256: str = ""
    size: str = ""
    n_columns: int = 0
    n_inputs: int = 0
    target_range: tuple[float, float] = (0.0, 0.0)
    paper_rows: int | None = None
    protocols: bool = False
    place: int = 50
    read: Callable[[Path, Entry, str, int | None], Table] | None = field(default=None, repr=False)
    draw: Callable[[int | None], Table] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.read is None) == (self.draw is None) or bool(self.files) != (self.read is not None):
            raise ValueError(f"entry {self.name!r} must have files and read, or draw and no files.")
        if not self.n_inputs:
            object.__setattr__(self, "n_inputs", self.n_columns - 1)


REGISTRY: dict[str, Entry] = {}


def register(entry: Entry) -> Entry:
    """Let ``load`` and the command line know a data set by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import data
    >>> def ramp(n_rows):
    ...     X = np.linspace(0, 1, n_rows or 100)[:, None]
    ...     return data.Table(X, 2 * X[:, 0], ("x",), "y")
    >>> entry = data.register(data.Entry("ramp", "A ramp", "y = 2 x.", "", n_inputs=1, draw=ramp))
    >>> data.load("ramp", n_rows=3).y.tolist()
    [0.0, 1.0, 2.0]
    >>> _ = data.registry.REGISTRY.pop("ramp")
    """
    if not isinstance(entry, Entry):
        raise ValueError(f"entry must be a laconic.data.Entry, got {entry!r}.")
    if entry.name in REGISTRY:
        raise ValueError(f"entry must have a name of its own, and {entry.name!r} is taken.")
    REGISTRY[entry.name] = entry
    return entry


def names() -> tuple[str, ...]:
    """The names that ``load`` knows.

    Examples
    --------
    >>> from laconic import data
    >>> data.names()[:2]
    ('air-quality', 'energy')
    """
    return tuple(REGISTRY)


def info(name: str) -> Entry:
    """What is known of a data set without loading it.

    Examples
    --------
    >>> from laconic import data
    >>> data.info("power-plant").target
    'PE'
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    near = difflib.get_close_matches(str(name).lower().replace("_", "-"), REGISTRY, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(REGISTRY)
    raise ArgumentError("name", f"must be a file or one of {known}; got {_validate.shown(name)}.{hint}")
