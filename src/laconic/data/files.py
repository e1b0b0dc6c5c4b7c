"""Files on disk: which folder is meant, where in it a raw file lies, and its bytes, plain, .gz or .xz alike."""

from __future__ import annotations

import gzip
import importlib
import io
import lzma
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
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


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


def read(path: Path) -> bytes:
    """All bytes of a file, uncompressed; what it is compressed with is seen from its first bytes, not from its name."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        if raw.startswith(_GZIP):
            return gzip.decompress(raw)
        if raw.startswith(_XZ):
            return lzma.decompress(raw)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again.") from None
    if path.suffix in (".gz", ".xz") and raw:
        raise ValueError(f"{path} is not compressed as its name says: fetch it again, or rename it.")
    return raw


def stream(path: Path) -> BinaryIO:
    """The file opened for reading, uncompressed: a large plain file is not brought into memory."""
    with path.open("rb") as file:
        start = file.read(len(_XZ))
    if start.startswith((_GZIP, _XZ)):
        return io.BytesIO(read(path))
    return cast(BinaryIO, path.open("rb"))
