"""Methods that a room above fills in: a trace can be drawn, but no room below may import what draws it.

The lower room asks for a function by name; the front door, ``laconic/__init__.py``, which knows all rooms, has said
where that is. It is imported when it is first asked for.
"""

from __future__ import annotations

from typing import Any

from laconic import _extras

_places: dict[str, tuple[str, str]] = {}


def provide(name: str, module: str, function: str) -> None:
    """Say that ``name`` is ``function`` of ``module``."""
    _places[name] = module, function


def find(name: str) -> Any:
    """The function that was provided under ``name``."""
    module, function = _places[name]
    return getattr(_extras.need(module, f"to {name}"), function)
