"""Fetching a raw file from its source: pooch carries it, the archive is searched for it, its checksum is compared."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from laconic._worded import Argument, Worded
from laconic.data import files
from laconic.data.files import Unavailable
from laconic.data.registry import Entry, info

_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None, progress: bool = True) -> Path | None:
    """The raw file of a data set, downloaded if it is not yet at hand; ``load`` calls this by itself.

    Parameters
    ----------
    name : str
        One of ``names()``.
    data_dir : path, optional
        The folder to look in and to download into; else LACONIC_DATA, else the user's cache. (A folder that cannot be
        written to is left alone: its downloads go to the cache.)
    progress : bool
        Show a progress bar while downloading.

    Returns
    -------
    Path or None
        Where the file is; None for "synthetic", which needs none.

    Raises
    ------
    Unavailable
        When it is not there and cannot be downloaded. The message says which file to put where.

    Notes
    -----
    The checksum of the raw file is compared where it is known; for Twitter, the blood pressure records, the power plant
    and the EEG it is not, and ``load`` checks the number of columns and the range of the labels instead.
    """
    entry = info(name)
    if not entry.files:
        return None
    found = files.find(entry.files, data_dir, prefer=entry.name)
    return found if found is not None else download(entry, data_dir, progress=progress)


def download(entry: Entry, data_dir: str | os.PathLike[str] | None, *, progress: bool) -> Path:
    """Bring ``entry.files[0]`` into a subfolder of the folder meant; nothing half-done stays behind."""
    place = files.folder(data_dir)
    if place.exists() and not os.access(place, os.W_OK):
        place = files.cache()
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise absent(entry, place, "pooch, which would fetch it, is not installed") from None
    wanted = place / entry.name / entry.files[0]
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wanted.parent) as temporary:
            work = Path(temporary)
            carried = _carry(pooch, entry, work, progress)
            raw = _unpack(carried, entry.files[0], work)
            if raw is None:
                raise absent(entry, place, f"{entry.url} does not contain it")
            if entry.sha256 and _digest(raw) != entry.sha256:
                raise absent(entry, place, f"what {entry.url} has is not the known file: its checksum differs")
            raw.replace(wanted)
    except Unavailable:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise absent(entry, place, _reason(error, entry)) from None
    finally:
        with contextlib.suppress(OSError):
            wanted.parent.rmdir()  # only if it is empty
    return wanted


def absent(entry: Entry, place: Path, reason: str) -> Unavailable:
    """The one sentence that says which file to put where."""
    names = " or ".join(entry.files)
    return Unavailable(
        Worded(
            f"{entry.name!r} needs the file {names}, which is not at hand, and {reason}: get it from {entry.url} "
            f"({entry.size}) and put it into {place} (plain, .gz or .xz), or name the folder that holds it with ",
            Argument("data_dir"),
            f" or {files.VARIABLE}.",
        )
    )


def _reason(error: Exception, entry: Entry) -> str:
    # The names are those of requests, which pooch uses: nothing else of it is needed here.
    if type(error).__name__ in ("ConnectionError", "ConnectTimeout", "ReadTimeout", "SSLError", "ProxyError"):
        return f"there is no connection to {urlsplit(entry.url).hostname}"
    said = " ".join(str(error).split())[:200].rstrip(".")
    return f"its download failed ({said or type(error).__name__})"


def _carry(pooch: Any, entry: Entry, work: Path, progress: bool) -> Path:
    """Download the archive (or bare file) of ``entry`` into ``work``."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # pooch reports hashes and paths that nobody asked for
    try:
        carried = pooch.retrieve(
            url=entry.url,
            known_hash=f"sha256:{entry.archive_sha256}" if entry.archive_sha256 else None,
            fname="download-" + (Path(urlsplit(entry.url).path).name or "file"),
            path=work,
            progressbar=progress,
        )
    finally:
        logger.setLevel(level)
    return Path(carried)


def _unpack(path: Path, name: str, work: Path) -> Path | None:
    """The file ``name`` from wherever it lies in the archive ``path``, also inside archives within it.

    Only the contents of members are copied, to a place chosen here: a member's own path is never written to.
    """
    if path.name == f"download-{name}":
        return path
    if not (zipfile.is_zipfile(path) or tarfile.is_tarfile(path)):
        return None
    for member, content in _members(path):
        base = Path(member.replace("\\", "/")).name
        if base != name and not base.lower().endswith(_ARCHIVES):
            continue
        copy = Path(tempfile.mkdtemp(dir=work)) / base
        with copy.open("wb") as target:
            shutil.copyfileobj(content, target, 1 << 20)
        if base == name:
            return copy
        inner = _unpack(copy, name, work)
        if inner is not None:
            return inner
        copy.unlink()
    return None


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as packed:
                        yield entry.filename, packed
        return
    with tarfile.open(path) as tape:
        for member in tape:
            content = tape.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
