"""The names that ``load`` knows, and what is known of each: the source of its file, and what a right file looks like.

``catalogue.py`` holds the facts, ``sets.py`` reads the files. A checksum is that of the uncompressed raw file. Where
the published file could not be compared (``sha256`` empty), the number of columns and the range of the labels are
checked after parsing instead, as they are for every file.
"""

from __future__ import annotations

import difflib

from laconic.data.catalogue import ENTRIES
from laconic.data.entry import Entry

REGISTRY: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}


def names() -> tuple[str, ...]:
    """The names that ``load`` knows.

    Examples
    --------
    >>> from laconic import data
    >>> len(data.names())
    12
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
    raise ValueError(f"name must be a file or one of {known}; got {name!r}.{hint}")
