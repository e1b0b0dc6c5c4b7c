"""Certificates that are no longer good: a list by common name, which agents read again when it changes.

Of a neighbour's certificate zenoh shows, and lets access rules depend on, the common name and nothing else; it knows no
lists of revoked serial numbers, and takes two certificates of one name for one. So the name itself says how often it
was revoked: an agent ``kitchen`` has certificates for ``kitchen`` until one of them is in the wrong hands; from then on
for ``kitchen.2``, then ``kitchen.3``. The list tells everybody which it is now: the first that is not on it. A
certificate that is only renewed, before its time is over, keeps its name, and nobody but its agent needs to know.

The file has a line for each: the common name, and then whatever is good to know. ``#`` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count
from pathlib import Path

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LARGEST = 1 << 20  # bytes of a list


def read_revoked(path: Path | None) -> frozenset[str]:
    """The common names on the list at ``path``; none if there is no list.

    Raises
    ------
    ValueError
        If the file is not such a list: to take it for an empty one would let in whom it was made to keep out.
    OSError
    """
    if path is None:
        return frozenset()
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise type(error)(error.errno, f"cannot read {path}: {error.strerror}") from None
    names = set()
    for line in content[:_LARGEST].decode("utf-8", "replace").splitlines():
        words = line.partition("#")[0].split()
        if words and not _WORD.fullmatch(words[0]):
            raise ValueError(f"{path} must have a common name at the beginning of each line, got {words[0]!r}.")
        names.update(words[:1])
    if len(content) > _LARGEST:
        raise ValueError(f"{path} must be a list of at most {_LARGEST} bytes.")
    return frozenset(names)


def common_name(name: str, revoked: Collection[str]) -> str:
    """The common name that a certificate of ``name`` must have now.

    >>> common_name("kitchen", ()), common_name("kitchen", {"kitchen", "kitchen.2", "hall"})
    ('kitchen', 'kitchen.3')
    """
    if name not in revoked:
        return name
    return next(later for number in count(2) if (later := f"{name}.{number}") not in revoked)


def belongs(common: str, name: str) -> bool:
    """Whether a certificate for ``common`` is one of ``name``, be it good or not.

    >>> belongs("kitchen", "kitchen"), belongs("kitchen.12", "kitchen"), belongs("kitchen.hall", "kitchen")
    (True, True, False)
    """
    return common == name or re.fullmatch(rf"{re.escape(name)}\.[1-9][0-9]*", common) is not None
