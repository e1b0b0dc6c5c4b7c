"""Parameters by name, as scikit-learn knows them: ``rho``, and ``channel__censor__alpha`` for a part of a part."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

_SEPARATOR = "__"


@cache
def arguments(made: type) -> dict[str, Any]:
    """Names of the constructor's arguments, and their defaults (``inspect.Parameter.empty`` where there is none)."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(made).parameters.values()
    return {argument.name: argument.default for argument in found if argument.kind not in variable}


def flatten(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters and, of those that have fields (channels, censors, quantizers, schedules), these too.

    >>> from laconic.channel import Censor
    >>> flatten({"rho": 0.5, "censor": Censor(4.0, 0.99)})
    {'rho': 0.5, 'censor': Censor(alpha=4.0, beta=0.99), 'censor__alpha': 4.0, 'censor__beta': 0.99}
    """
    flat = dict(parameters)
    for name, value in parameters.items():
        if _has_fields(value):
            flat |= {f"{name}{_SEPARATOR}{part}": inner for part, inner in flatten(_fields(value)).items()}
    return flat


def replaced(owner: str, parameters: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``parameters`` after ``changes``, whose names may be those that ``flatten`` gives.

    >>> from laconic.channel import Censor
    >>> replaced("it", {"rho": 0.5, "censor": Censor(4.0, 0.99)}, {"rho": 1.0, "censor__alpha": 2.0})
    {'rho': 1.0, 'censor': Censor(alpha=2.0, beta=0.99)}
    """
    changed, inner = dict(parameters), dict[str, dict[str, Any]]()
    for name, value in changes.items():
        first, _, rest = name.partition(_SEPARATOR)
        if first not in parameters:
            raise ValueError(f"{name} is no parameter of {owner}, which takes {', '.join(parameters)}.")
        if rest:
            inner.setdefault(first, {})[rest] = value
        else:
            changed[first] = value
    for first, parts in inner.items():
        value = changed[first]
        if not _has_fields(value):
            name = f"{first}{_SEPARATOR}{next(iter(parts))}"
            raise ValueError(f"{name} is no parameter of {owner}: its {first} is {value!r}.")
        changed[first] = type(value)(**replaced(type(value).__name__, _fields(value), parts))
    return changed


def _has_fields(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
