"""The files of models: one ``.npz`` archive with the weights, the arrays of the map, and a header in JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from laconic._npz import Archive
from laconic._validate import Array
from laconic.model.maps import FeatureMap

_KIND, _FORMAT = "laconic model", 1
_LONGEST_HEADER = 4 << 20
_HEADER = ("loss", "centre", "scale", "classes", "inputs", "target", "about")


class Stored(NamedTuple):
    """What a file of a model holds."""

    header: dict[str, Any]
    weights: Array
    feature_map: FeatureMap


def pack(header: dict[str, Any], weights: Array, feature_map: FeatureMap) -> bytes:
    """The content of a file."""
    described, arrays = feature_map.pack()
    try:
        text = json.dumps({"kind": _KIND, "format": _FORMAT, **header, "map": described}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"about must hold plain finite values to be written to a file: {error}.") from None
    content = io.BytesIO()
    words = np.frombuffer(text.encode(), dtype=np.uint8)
    named = {f"map.{name}": array for name, array in arrays.items()}
    np.savez(content, allow_pickle=False, header=words, weights=weights, **named)
    return content.getvalue()


def read_bytes(data: bytes) -> Stored:
    """What the content of a file holds."""
    return read(io.BytesIO(data), "data")


def read(file: IO[bytes], where: str) -> Stored:
    """What a file holds; ValueError in one sentence if that is no model."""
    with blamed(where), Archive(file) as archive:
        return _read(archive)


@contextmanager
def blamed(where: str) -> Iterator[None]:
    """Say of whatever is raised meanwhile which file it is about: zipfile, zlib and json have many ways to complain."""
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise ValueError(f"{where} is not a complete laconic model: {why}.") from error


def _read(archive: Archive) -> Stored:
    forms = dict(archive.forms)
    form = forms.pop("header", None)
    if form is None or form.n_bytes > _LONGEST_HEADER:
        raise ValueError("it has no header, or one that is far too long")
    header = json.loads(archive.read("header").tobytes())
    if not isinstance(header, dict) or header.get("kind") != _KIND:
        raise ValueError("its header is not that of a model")
    if header.get("format") != _FORMAT:
        raise ValueError(f"its format is {str(header.get('format'))[:60]}, this version reads {_FORMAT}")
    for name in forms:
        if name != "weights" and not name.startswith("map."):
            raise ValueError(f"it holds an unknown array {name[:60]!r}")
        if forms[name].dtype.kind not in "fi":
            raise ValueError(f"its {name[:60]} are {forms[name].dtype}")
    if "weights" not in forms:
        raise ValueError("it lacks weights")
    arrays = {name.removeprefix("map."): archive.read(name) for name in forms if name != "weights"}
    feature_map = FeatureMap.unpack(header.get("map"), arrays)
    return Stored({name: header[name] for name in _HEADER}, archive.read("weights"), feature_map)
