"""An agent's memory on disk: written whole or not at all, and checked when it is read.

A file is b"lacheck1", a digest (BLAKE2b, 16 bytes) of all that follows, the length of a JSON text, that text, and the
arrays that it describes, back to back. The one before is kept beside it: a file that was torn or has rotted is refused
and the previous one used.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._files import written_whole
from laconic._validate import Array

log = logging.getLogger("laconic.protocol")

_MAGIC = b"lacheck1"
_DIGEST = 16
_LARGEST_FILE = 1 << 30


class Misplaced(ValueError):
    """A good checkpoint, of another agent or of one with other settings."""


@final
@dataclass(frozen=True, eq=False)
class AgentState:
    """All that an agent needs to go on: ``about`` holds plain values, ``arrays`` its vectors."""

    about: dict[str, Any]
    arrays: dict[str, Array]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentState) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """The state as the content of a file."""
        arrays = {name: np.asarray(array, order="C") for name, array in self.arrays.items()}  # a number stays one
        shapes = {name: [array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()}
        text = json.dumps({"about": self.about, "arrays": shapes}).encode()
        rows = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays.values()]
        payload = b"".join([len(text).to_bytes(4, "little"), text, *rows])
        return _MAGIC + _digest(payload) + payload

    @classmethod
    def from_bytes(cls, data: bytes) -> AgentState:
        """The state in ``data``; ValueError if that is not one, whole and unchanged."""
        _validate.instance("data", data, (bytes, bytearray, memoryview), "the bytes of a checkpoint")
        data = bytes(data)
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _digest(payload):
            raise ValueError("not a whole checkpoint of an agent.")
        try:
            return cls(*_unpacked(payload))
        except Exception as error:  # the digest is right: somebody has made it for something else
            why = " ".join(str(error).split())[:200] or type(error).__name__
            raise ValueError(f"not a checkpoint of an agent: {why}.") from error


def _unpacked(payload: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The plain values and the arrays of a state."""
    end = 4 + int.from_bytes(payload[:4], "little")
    described = json.loads(payload[4:end])
    about, arrays = described["about"], {}
    if not isinstance(about, dict):
        raise ValueError("its values have no names")
    for name, (dtype, shape) in described["arrays"].items():
        kind, count = np.dtype(dtype), math.prod(shape)
        if kind.kind not in "biuf" or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"it holds {dtype} of shape {shape}")
        if end + count * kind.itemsize > len(payload):
            raise ValueError(f"its array {name!r} is cut off")
        arrays[name] = np.frombuffer(payload, dtype=kind, count=count, offset=end).reshape(shape).copy()
        end += arrays[name].nbytes
    return about, arrays


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()


def previous(path: Path) -> Path:
    """Where the checkpoint before the one at ``path`` is kept."""
    return path.with_name(path.name + ".previous")


def write_checkpoint(path: Path, state: AgentState) -> None:
    """Write ``state`` to ``path``; what was there becomes the previous one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    data = state.to_bytes()
    fresh = path.with_name(path.name + ".new")
    with written_whole(fresh) as file:
        file.write(data)
    if _is_whole(path):  # a torn one must not take the place of a good one
        path.replace(previous(path))
    fresh.replace(path)
    # A rename is on disk only when its directory is.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _is_whole(path: Path) -> bool:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return False
        AgentState.from_bytes(path.read_bytes())
    except Exception:
        return False
    return True


def read_checkpoint(path: Path) -> AgentState | None:
    """The state at ``path``, or the previous one if that is missing or no good; None if there is none at all.

    ValueError if there are files and none of them is any good.
    """
    found: list[AgentState] = []
    return found[0] if load_checkpoint(path, found.append) else None


def load_checkpoint(
    path: Path, use: Callable[[AgentState], None], refused: Callable[[str], None] = lambda why: None
) -> bool:
    """Have ``use`` take the state at ``path``, or the previous one if that is missing or no good; False if none is.

    Whatever is wrong with a file, or with what ``use`` finds in it, the one before is tried, a line logged, and
    ``refused`` told why. Then ValueError if there are files and none of them is any good.
    """
    broken, misplaced = [], False
    for candidate in (path, previous(path)):
        try:
            if candidate.stat().st_size > _LARGEST_FILE:
                raise ValueError("it is far too large.")
            use(AgentState.from_bytes(candidate.read_bytes()))
            return True
        except FileNotFoundError:
            continue
        except Exception as error:  # a memory that cannot be read must not be what an agent dies of
            log.warning("checkpoint refused: %s", error, extra={"path": str(candidate)})
            broken.append(f"{candidate.name} ({error})")
            refused(broken[-1])
            misplaced |= isinstance(error, Misplaced)
    if misplaced:
        raise Misplaced(f"no checkpoint of this agent in {path.parent}: {'; '.join(broken)}")
    if broken:
        raise ValueError(f"no good checkpoint in {path.parent}: {'; '.join(broken)}")
    return False
