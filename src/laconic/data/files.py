"""Files on disk: which folder is meant, where in it a raw file lies, and its bytes, plain, .gz or .xz alike."""

from __future__ import annotations

import gzip
import importlib
import io
import lzma
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from laconic import _validate
from laconic._files import expanded
from laconic._worded import ArgumentError

VARIABLE = "LACONIC_DATA"

_SUFFIXES = ("", ".gz", ".xz")
_PIECE = 1 << 20
_SHARE = 1 / 8  # a table takes several times the memory of its text
_SHARE_OF_STREAM = 1 / 2  # and raw bytes take no more
_USUAL_MEMORY = 2.0**35  # where the system does not tell
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


class TooLarge(ValueError):
    """A file that does not fit into memory once it is unpacked."""


class Unavailable(OSError, ValueError):
    """A data set whose file is neither on this machine nor to be had from its source; the message says what to do."""


def cache() -> Path:
    """The user's own cache folder of this package, where downloads go if no other folder is named."""
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        return Path.home() / ".cache" / "laconic"
    return Path(pooch.os_cache("laconic"))


def folder(data_dir: str | os.PathLike[str] | None) -> Path:
    """The folder meant: ``data_dir``, else the environment variable LACONIC_DATA, else the user's cache."""
    if data_dir is not None:
        source, named = "data_dir", expanded(_validate.path("data_dir", data_dir))
    elif os.environ.get(VARIABLE):
        source, named = f"the environment variable {VARIABLE}", expanded(os.environ[VARIABLE])
    else:
        return cache()
    if not named.is_dir():
        raise ArgumentError(source, f"must name a folder, and {str(named)!r} is none.")
    return named


def find(names: tuple[str, ...], data_dir: str | os.PathLike[str] | None, prefer: str = "") -> Path | None:
    """The first of ``names`` that exists: in the folder meant, or one level below it, or in the cache.

    The subfolder ``prefer`` is looked into before the others, for raw files with names as plain as ``train.csv``.
    """
    chosen = folder(data_dir)
    places = [chosen] if chosen == cache() else [chosen, cache()]
    for name in names:
        for place in places:
            for path in _candidates(place, name, prefer):
                if path.is_file():
                    return path
    return None


def _candidates(place: Path, name: str, prefer: str) -> Iterator[Path]:
    for suffix in _SUFFIXES:
        yield place / (name + suffix)
    for suffix in _SUFFIXES:
        if prefer:
            yield place / prefer / (name + suffix)
    if place.is_dir():
        for below in sorted(path for path in place.iterdir() if path.is_dir() and os.access(path, os.R_OK | os.X_OK)):
            for suffix in _SUFFIXES:
                yield below / (name + suffix)


def stem(path: Path) -> str:
    """The file name without .gz and .xz."""
    return path.name.removesuffix(".gz").removesuffix(".xz")


def most_bytes(share: float = _SHARE) -> float:
    """How large a file may be once it is unpacked: a share of the memory that is free."""
    free = _validate.available()
    return share * (free if math.isfinite(free) else _USUAL_MEMORY)


def read(path: Path, share: float = _SHARE) -> bytes:
    """All bytes of a file, uncompressed; what it is compressed with is seen from its first bytes, not from its name.

    A few kilobytes can unpack to more than the memory holds: what takes more than a ``share`` of it is refused.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        if raw.startswith(_GZIP):
            return _unpacked(gzip.GzipFile(fileobj=io.BytesIO(raw)), path, share)
        if raw.startswith(_XZ):
            return _unpacked(lzma.LZMAFile(io.BytesIO(raw)), path, share)
    except MemoryError:  # of which a process may be allowed less than is free
        raise TooLarge(f"{path} unpacks to more than there is memory for.") from None
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again.") from None
    if path.suffix in (".gz", ".xz") and raw:
        raise ValueError(f"{path} is not compressed as its name says: fetch it again, or rename it.")
    return raw


def _unpacked(packed: gzip.GzipFile | lzma.LZMAFile, path: Path, share: float) -> bytes:
    most, found = most_bytes(share), io.BytesIO()
    while piece := packed.read(_PIECE):
        if found.tell() + len(piece) > most:
            raise TooLarge(f"{path} unpacks to more than {most / 1e9:.2g} GB, too much for the memory that is free.")
        found.write(piece)
    return found.getvalue()


def stream(path: Path) -> BinaryIO:
    """The file opened for reading, uncompressed: a large plain file is not brought into memory."""
    with path.open("rb") as file:
        start = file.read(len(_XZ))
    if start.startswith((_GZIP, _XZ)):
        return io.BytesIO(read(path, _SHARE_OF_STREAM))
    return cast(BinaryIO, path.open("rb"))
