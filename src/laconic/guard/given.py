"""Limits that somebody gives, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

#: Labels of larger size are never learned from. A model a thousand times as large has diverged by everybody's account.
LARGEST_LABEL = 1e12


def pair(name: str, limits: object) -> tuple[float, float]:
    """Two finite numbers, the lower one first."""
    if isinstance(limits, str) or not isinstance(limits, Sequence) or len(limits) != 2:
        raise ArgumentError(name, f"must be two numbers, [low, high], got {_validate.shown(limits)}.")
    low, high = _validate.number(name, limits[0]), _validate.number(name, limits[1])
    if not low < high:
        raise ArgumentError(name, f"must have the lower limit first, got {_validate.shown(limits)}.")
    if name == "label" and max(-low, high) > LARGEST_LABEL:
        raise ArgumentError(name, f"must be at most {LARGEST_LABEL:g} in size, got {_validate.shown(limits)}.")
    return low, high


def pairs(limits: object, n_inputs: int) -> Array:
    """Limits of each input, (n_inputs, 2)."""
    listed = list(limits) if isinstance(limits, Sequence) and not isinstance(limits, str) else limits
    if isinstance(listed, list) and any(isinstance(one, Sequence) for one in listed):
        if len(listed) != n_inputs:
            raise ArgumentError("inputs", f"must have a pair for each of {n_inputs} inputs, got {len(listed)}.")
        return np.array([pair("inputs", one) for one in listed])
    return np.tile(pair("inputs", listed), (n_inputs, 1))
