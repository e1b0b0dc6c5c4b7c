"""The core's library, and structures that hold pointers into arrays.

A structure of ``core/*.h`` is declared here as well, field by field. Arrays are checked where they enter a structure:
the core trusts what it is given.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
#: Variants of the library from the most portable to the fastest.
_VARIANTS = ("generic", "v2", "v3", "v4")

INTEGER, REAL, POINTER = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


@functools.cache
def library() -> ctypes.CDLL | None:
    """The fastest variant that this processor runs; None where the core was not built.

    ``LACONIC_CORE`` names another one: one to be debugged, or made by another compiler.
    """
    if os.environ.get("LACONIC_CORE"):
        return ctypes.CDLL(os.environ["LACONIC_CORE"])
    folder = Path(__file__).parent
    built = {name: folder / f"core-{name}{_SUFFIX}" for name in _VARIANTS}
    built = {name: path for name, path in built.items() if path.exists()}
    if not built:
        return None
    smallest = ctypes.CDLL(str(built[min(built, key=_VARIANTS.index)]))
    level = smallest.core_level() if len(built) > 1 else 0
    best = [name for name in built if _VARIANTS.index(name) <= level] or list(built)
    return ctypes.CDLL(str(built[max(best, key=_VARIANTS.index)]))


@functools.cache
def function(name: str, *arguments: Any, result: Any = INTEGER) -> Any:
    """The function of that name, with the types of its arguments."""
    core = library()
    if core is None:
        raise ValueError(
            "the compiled engine needs the core, which was not built when laconic was installed: install a C compiler, "
            "or ziglang, and then laconic again."
        )
    found = core[name]
    found.argtypes, found.restype = arguments, result
    return found


_DOUBLE, _INTEGER = np.dtype(np.float64), np.dtype(np.int64)
# Four times as fast as an array's own description of itself, but of an array that can be written only.
_nothing_of: Any = (ctypes.c_char * 0).from_buffer
_addressof = ctypes.addressof


def address(array: np.ndarray) -> int:
    """Where a contiguous, writable or read-only array begins."""
    try:
        return _addressof(_nothing_of(array))
    except TypeError:
        assert array.flags.c_contiguous
        return array.__array_interface__["data"][0]


def doubles(array: np.ndarray, *shape: int) -> int:
    """Where a contiguous array of doubles of this shape begins."""
    assert array.shape == shape and (array.dtype is _DOUBLE or array.dtype == _DOUBLE)
    try:
        return _addressof(_nothing_of(array))
    except TypeError:
        return address(array)


def integers(array: np.ndarray, *shape: int) -> int:
    """Where a contiguous array of 64-bit integers of this shape begins."""
    assert array.shape == shape and (array.dtype is _INTEGER or array.dtype == _INTEGER)
    return address(array)


class Structure(ctypes.Structure):
    """A structure of the core that keeps the arrays it points into.

    Examples
    --------
    >>> class Pair(Structure):
    ...     _fields_ = [("count", INTEGER), ("values", POINTER)]
    >>> pair = Pair.of(count=3, values=np.zeros(3))
    >>> pair.count, pair.array("values").size
    (3, 3)
    """

    _fields_: ClassVar[Any] = []

    @classmethod
    def of(cls, **values: Any) -> Any:
        """A structure with these fields; those not named are zero."""
        made = cls()
        made.put(**values)
        return made

    def put(self, **values: Any) -> None:
        """Set fields: numbers as they are, arrays by their address."""
        kept = self.__dict__.setdefault("_kept", {})
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                kept[name] = value
                setattr(self, name, address(value))
            elif isinstance(value, ctypes.Structure):
                kept[name] = value
                setattr(self, name, ctypes.addressof(value))
            else:
                setattr(self, name, value)

    def __reduce__(self) -> Any:
        # Addresses do not travel: a copy has arrays of its own, and points into them.
        numbers = {name: getattr(self, name) for name, kind in self._fields_ if kind is not POINTER}
        return type(self).of, (), {**self.__dict__, "_numbers": numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept, numbers = state.pop("_kept"), state.pop("_numbers")
        self.__dict__.update(state)
        self.put(**numbers, **kept)

    @property
    def address(self) -> int:
        """Where the structure lies."""
        return ctypes.addressof(self)

    def array(self, name: str) -> np.ndarray:
        """The array that a field points into."""
        return self._kept[name]

    def structure(self, name: str) -> Any:
        """The structure that a field points to."""
        return self._kept[name]
