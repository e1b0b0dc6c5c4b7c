"""Terms and vectors of a wave's message as bits, in the core."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from laconic._validate import Array
from laconic.native.binding import INTEGER, POINTER, Structure, address, function, integers


class Body(Structure):
    """``Body`` of ``core/rice.h``."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("n_features", "n_terms", "n_vectors", "plain", "shifted")),
        ("rows", POINTER),
        ("end", INTEGER),
    ]


def body_bytes(rows: Array) -> int:
    """Room for a message of these rows in the longest codes."""
    return len(rows) * (10 + 13 * (rows.shape[1] - 2))


@functools.cache
def _core() -> Any:
    return SimpleNamespace(
        write=function("write_body", POINTER, POINTER, INTEGER),
        read=function("read_body", POINTER, POINTER, INTEGER),
    )


def write_body(rows: Array, n_terms: int, plain: bool, data: Array, at: int) -> int:
    """A row a term, (sign, step, codes), then (diagonal shift or -1, step, codes) a vector, from byte ``at`` on.

    ``data`` has room for ``body_bytes``. With heads, unless the message is ``plain``. Returns how many
    bits there are, those before them counted.
    """
    n_rows, length = rows.shape
    assert length > 2 and n_rows > n_terms and data.size >= at + body_bytes(rows)
    body = Body(length - 2, n_terms, n_rows - n_terms, plain, False, integers(rows, n_rows, length))
    return _core().write(body.address, address(data), at)


def read_body(data: Array, plain: bool, shifted: bool, most: int, rows: Array) -> tuple[int, int]:
    """Read bytes that ``write_body`` wrote, of ``most`` terms at the most: how many there are, and where bits end.

    -1 terms if it is nothing of the kind. The vectors are as many as ``rows`` has beyond the terms.
    """
    n_rows, length = rows.shape
    assert length > 2 and n_rows > most and data.dtype == np.uint8 and data.ndim == 1
    body = Body(length - 2, most, n_rows - most, plain, shifted, integers(rows, n_rows, length))
    found = _core().read(body.address, address(data), data.size)
    return found, body.end
