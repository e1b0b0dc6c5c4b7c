"""Arrays as the core takes them: rows padded with zeros to whole vectors, from a cache line on."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array

VECTOR_BYTES = 32  # as in core/vec.h
_CACHE_LINE = 64


def aligned(n_rows: int, length: int, dtype: Any, *, half: bool = False, padded: bool = True) -> Array:
    """Rows of zeros, padded to whole vectors, that start on a cache line: no vector straddles two of them.

    Or to ``half`` vectors, of which some straddle; or not ``padded`` at all.
    """
    width = VECTOR_BYTES // np.dtype(dtype).itemsize // (2 if half else 1) if padded else 1
    shape = (n_rows, -(-length // width) * width)
    n_bytes = n_rows * shape[1] * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + _CACHE_LINE + VECTOR_BYTES, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % _CACHE_LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def padded(rows: Array, dtype: Any) -> Array:
    """A copy of ``rows`` whose length is rounded up to whole vectors with zeros."""
    n_rows, length = rows.shape
    copy = aligned(n_rows, length, dtype)
    copy[:, :length] = rows
    return copy


def plain(array: Array, dtype: Any) -> Array:
    """``array`` contiguous and in that precision, a copy if need be."""
    return np.require(array, dtype, ["C", "A"])
