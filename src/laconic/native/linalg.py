"""Cholesky factors and inverses in the core: entry by entry one order of operations, so that agents share the bits."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from laconic._validate import Array
from laconic.native.arrays import aligned
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, address, doubles, function

_LEAST_POSITIVE = 5e-324


@functools.cache
def _core() -> Any:
    square = (POINTER, INTEGER, POINTER, POINTER)
    return SimpleNamespace(
        factor=function("factor_matrix", POINTER, INTEGER, REAL, REAL, REAL, POINTER, POINTER),
        invert=function("invert_factor", POINTER, result=None),
        square=function("invert_square", *square, result=None),
        add=function("add_scaled", POINTER, INTEGER, REAL, POINTER, result=None),
        room=function("message_room", INTEGER, INTEGER, INTEGER),
    )


class Workspace:
    """Memory for the core, of one thread: what a call needs is known before, and kept for the next."""

    def __init__(self) -> None:
        self._room = np.empty(0)
        self._for = (-1, -1, -1)
        self._address = 0

    def __reduce__(self) -> Any:
        return Workspace, ()  # addresses do not travel

    def of(self, n_features: int, n_terms: int = 0, n_outputs: int = 1) -> int:
        """Where there is room for a message of so many terms and vectors, or for any matrix on the way."""
        n, terms, outputs = self._for
        if n != n_features or terms < n_terms or outputs < n_outputs:
            self._for = n_features, n_terms, n_outputs
            self._room = np.empty(_core().room(n_features, n_terms, n_outputs) + 8)
            self._address = -(-address(self._room) // 64) * 64
        return self._address


class Factor(Structure):
    """``Factor`` of ``core/linalg.h``: a Cholesky factor L, its inverse K, and both transposed."""

    _fields_: ClassVar[Any] = [
        ("n", INTEGER),
        ("size", INTEGER),
        *((name, POINTER) for name in ("lower", "inverse", "inverse_t", "lower_t")),
    ]
    room: Array


def factor_of(lower: Array, room: Array | None = None) -> Factor:
    """What follows from L. ``room`` is that of a factor of the same size that is no longer needed."""
    n = len(lower)
    size = -(-n // 4) * 4
    if room is None:  # what is outside the triangles stays 0
        room = aligned(3 * size, n, np.float64).reshape(3, size, size)
    doubles(lower, n, n)
    made: Factor = Factor.of(n=n, size=size, lower=lower, inverse=room[0], inverse_t=room[1], lower_t=room[2])
    made.room = room
    _core().invert(made.address)
    return made


def factor(information: Array, n: float, shift: float, lower: Array, workspace: Workspace) -> bool:
    """chol(n C + shift I) into the lower triangle of ``lower``, a pivot under ``shift`` raised to it; was there one?"""
    size = len(information)
    matrix, made = doubles(information, size, size), doubles(lower, size, size)
    return bool(_core().factor(matrix, size, n, shift, shift, made, workspace.of(size)))


def cholesky(matrix: Array, least: float, lower: Array, workspace: Workspace) -> bool:
    """The same of a matrix as it is, and ``least``."""
    size = len(matrix)
    given, made = doubles(matrix, size, size), doubles(lower, size, size)
    return bool(_core().factor(given, size, 1.0, 0.0, least, made, workspace.of(size)))


def above(symmetric: Array, least: float, workspace: Workspace) -> bool:
    """Whether all eigenvalues are larger than ``least``: whether what is left of the matrix has a factor."""
    size = len(symmetric)
    given = doubles(symmetric, size, size)
    return not _core().factor(given, size, 1.0, -least, _LEAST_POSITIVE, None, workspace.of(size))


def square_of_inverse(lower: Array, product: Array, workspace: Workspace) -> None:
    """(L L')^-1 into ``product``, symmetric to the bit."""
    n = len(lower)
    _core().square(doubles(lower, n, n), n, doubles(product, n, n), workspace.of(n))


def add_scaled(total: Array, scale: float, matrix: Array) -> None:
    """S + scale M into S, in tiles of four by four on and below the diagonal."""
    n = len(total)
    _core().add(doubles(total, n, n), n, scale, doubles(matrix, n, n))
