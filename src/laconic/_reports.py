"""Reports of other processes: JSON objects and numbers that are bounded where they enter.

Agents report to the supervisor and to the live page, and either may be wrong or lie. Sums of bounded numbers stay
finite, and objects of few levels can be written out again without running out of stack.
"""

from __future__ import annotations

import json
from typing import Any

#: Counts up to here are whole numbers of floats, which is what browsers compute with; measurements have room to spare.
LARGEST_COUNT, LARGEST_MEASUREMENT = 2**53, 1e100
_LEVELS = 16


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """A JSON object of at most 16 levels; None for any other text.

    >>> parse_object('{"round": 8}'), parse_object("[" * 100_000), parse_object("round 8")
    ({'round': 8}, None, None)
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_shallow(found, _LEVELS) else None


def count(value: object) -> float | None:
    """A number from 0 to 2^53; None for any other value.

    >>> count(8), count(-1), count(10**400), count(float("nan")), count("8")
    (8, None, None, None, None)
    """
    return _within(value, 0, LARGEST_COUNT)


def measurement(value: object) -> float | None:
    """A number of at most 1e100 on either side of zero; None for any other value.

    >>> measurement(-0.5), measurement(1.7e308), measurement(True)
    (-0.5, None, None)
    """
    return _within(value, -LARGEST_MEASUREMENT, LARGEST_MEASUREMENT)


def _within(value: object, least: float, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if least <= value <= most else None


def _is_shallow(value: object, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)
