"""Reading ``.npz`` files from anywhere: what they hold is known, and bounded, before any of it is unpacked.

``np.load`` takes what an archive says: a damaged one may raise whatever zlib, zipfile or the parser of headers raise,
and a few megabytes may unpack to many gigabytes. Here a file is looked at first: the sizes that its directory and its
headers declare must agree with each other and with the length of the file, and their sum must be within a limit.
"""

from __future__ import annotations

import ast
import math
import os
import zipfile
from types import TracebackType
from typing import IO, NamedTuple, final

import numpy as np

from laconic._validate import Array

_MAGIC = b"\x93NUMPY\x01\x00"  # the second version is for headers of more than 64 kB, which no array of ours has
_LONGEST_HEADER = 4096
_KINDS = "biufU"
_PIECE = 1 << 20
_ALWAYS = 64 * 2**20
_RATIO = 32


def unpacked_limit(n_bytes: int) -> int:
    """How many bytes of arrays a file of ``n_bytes`` may hold.

    deflate shrinks zeros a thousandfold, real numbers from measurements hardly at all. Whoever writes files that are
    to be read here has to leave them uncompressed where they would shrink more than this.
    """
    return max(_ALWAYS, _RATIO * n_bytes)


class Form(NamedTuple):
    """An array before it is read."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    start: int

    @property
    def n_bytes(self) -> int:
        """Its size in memory."""
        return math.prod(self.shape) * self.dtype.itemsize


@final
class Archive:
    """An ``.npz`` file that is open for reading; ``forms`` is what it holds, by name.

    Whatever is wrong with the file is an exception of some kind, here and in ``read``: the caller says in one sentence
    which file it was.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, os.SEEK_END)
        self._zip = zipfile.ZipFile(file)
        members = self._zip.infolist()
        if sum(member.compress_size for member in members) > size:
            raise ValueError("its parts are longer than the file")
        self.forms: dict[str, Form] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in self.forms or name == member.filename:
                raise ValueError(f"it holds {member.filename[:60]!r} twice or not as an array")
            self.forms[name] = self._look(member)
        unpacked = sum(form.n_bytes for form in self.forms.values())
        if unpacked > unpacked_limit(size):
            raise ValueError(f"its {size} bytes would unpack to {unpacked}")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._zip.close()

    def _look(self, member: zipfile.ZipInfo) -> Form:
        """The form that a member's header declares, if all that is said of its size agrees."""
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise ValueError(f"its part {member.filename[:60]!r} is encrypted or packed in an unknown way")
        with self._zip.open(member) as packed:
            form = _read_form(packed)
        if form.start + form.n_bytes != member.file_size:
            raise ValueError(f"its part {member.filename[:60]!r} is not as long as its header says")
        return form

    def read(self, name: str) -> Array:
        """Unpack an array."""
        form = self.forms[name]
        raw = np.empty(form.n_bytes, dtype=np.uint8)
        with self._zip.open(f"{name}.npy") as packed:
            packed.read(form.start)
            view, at = raw.data, 0
            while at < form.n_bytes:
                piece = packed.read(min(_PIECE, form.n_bytes - at))
                if not piece:
                    raise EOFError(f"its part {name!r} is cut off")
                view[at : at + len(piece)] = piece
                at += len(piece)
            packed.read(1)  # the end is where the checksum is compared
        array: Array = raw.view(form.dtype).reshape(form.shape, order="F" if form.fortran else "C")
        return array


def _read_form(packed: IO[bytes]) -> Form:
    """The header of an array: its magic words, its length, and a dict of three entries in Python's notation."""
    start = packed.read(len(_MAGIC) + 2)
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    if start[: len(_MAGIC)] != _MAGIC or length > _LONGEST_HEADER:
        raise ValueError("it holds something that is no plain array")
    header = ast.literal_eval(packed.read(length).decode("ascii"))
    descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if not isinstance(descr, str) or not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("it holds an array of an unknown form")
    dtype: np.dtype[np.generic] = np.dtype(descr)
    if dtype.kind not in _KINDS or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise ValueError(f"it holds an array of {dtype}, where only numbers and words are expected")
    return Form(dtype, shape, bool(fortran), len(start) + length)
