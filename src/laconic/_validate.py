"""Checks of what people pass in: one clear sentence that names the argument and says what was expected."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def number(name: str, value: object, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """``value`` as a finite float, larger than ``above`` and not smaller than ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    if not result > above:
        raise ValueError(f"{name} must be larger than {above:g}, got {value!r}.")
    if result < least:
        raise ValueError(f"{name} must be at least {least:g}, got {value!r}.")
    return result


def integer(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """``value`` as an int within [least, most]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}.")
    result = int(value)
    if result < least or (most is not None and result > most):
        expected = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {expected}, got {value!r}.")
    return result


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")
    return value


def real_array(name: str, value: object, shape: str, ndim: int | None = None) -> Array:
    """``value`` as an array of real numbers; ``shape`` words the expectation, ``ndim`` enforces it."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of shape {shape}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got an array of {array.dtype}.")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    return array


def finite(name: str, array: Array) -> Array:
    """``array`` if all its entries are finite, else the position of the first that is not."""
    good = np.isfinite(array)
    if not good.all():
        where = tuple(int(k) for k in np.argwhere(~good)[0])
        raise ValueError(f"{name} must be finite, but {name}{list(where)} is {array[where]}.")
    return array
