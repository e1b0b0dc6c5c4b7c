"""Checks of what people pass in: one clear sentence that names the argument and says what was expected."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from laconic._worded import ArgumentError

Array = npt.NDArray[Any]

_LONGEST = 200
_MEMINFO = Path("/proc/meminfo")
_MOST_NUMBERS = 2**34


def shown(value: object) -> str:
    """``value`` as one line of a sentence, cut off where it is long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def instance(name: str, value: object, kind: type[Any] | tuple[type[Any], ...], what: str) -> None:
    """Refuse a ``value`` that is not of that kind; ``what`` says what is expected."""
    if not isinstance(value, kind):
        raise ArgumentError(name, f"must be {what}, got {shown(value)}.")


def allocatable(name: str, *shape: int) -> None:
    """Refuse an array of ``shape`` that no machine would have the memory for; ``name`` is what made it so large."""
    if math.prod(shape) > _MOST_NUMBERS:
        raise ArgumentError(name, f"must be smaller: {' x '.join(map(str, shape))} numbers do not fit into memory.")


def available() -> float:
    """Bytes of memory that are free; infinite where the system does not tell."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return math.inf


def path(name: str, value: object) -> Path:
    """``value`` as the path of a file."""
    if not isinstance(value, (str, os.PathLike)) or not str(value) or "\0" in str(value):
        raise ArgumentError(name, f"must be the path of a file, got {shown(value)}.")
    return Path(value)


def number(name: str, value: object, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """``value`` as a finite float, larger than ``above`` and not smaller than ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ArgumentError(name, f"must be a number, got {shown(value)}.")
    try:
        result = float(value)
    except OverflowError:  # a whole number beyond all floats
        result = math.inf
    if not math.isfinite(result):
        raise ArgumentError(name, f"must be finite, got {shown(value)}.")
    if not result > above:
        raise ArgumentError(name, f"must be larger than {above:g}, got {shown(value)}.")
    if result < least:
        raise ArgumentError(name, f"must be at least {least:g}, got {shown(value)}.")
    return result


def integer(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """``value`` as an int within [least, most]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ArgumentError(name, f"must be a whole number, got {shown(value)}.")
    result = int(value)
    if result < least or (most is not None and result > most):
        expected = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentError(name, f"must be {expected}, got {shown(value)}.")
    return result


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ArgumentError(name, f"must be one of {options}, got {shown(value)}.")
    return value


def real_array(name: str, value: object, shape: str, ndim: int | None = None) -> Array:
    """``value`` as an array of real numbers; ``shape`` words the expectation, ``ndim`` enforces it."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(name, f"must be an array of shape {shape}: {' '.join(str(error).split())}") from None
    if array.dtype.kind not in "fiub":
        raise ArgumentError(name, f"must hold real numbers, got an array of {array.dtype}.")
    if ndim is not None and array.ndim != ndim:
        raise ArgumentError(name, f"must have shape {shape}, got {array.shape}.")
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    return array


def finite(name: str, array: Array) -> Array:
    """``array`` if all its entries are finite, else the position of the first that is not."""
    good = np.isfinite(array)
    if not good.all():
        where = tuple(int(k) for k in np.argwhere(~good)[0])
        raise ArgumentError(name, f"must be finite, but {name}{list(where)} is {array[where]}.")
    return array
