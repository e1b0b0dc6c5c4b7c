"""The ``[limits]`` table: which samples cannot be, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from laconic.deploy.settings.sections import Section
from laconic.guard import BEYOND, Guard


@final
@dataclass(frozen=True)
class Limits:
    """``[limits]``: as for ``lc.Guard``. Limits that are not given are learned by each agent from its own stream."""

    deviations: float = 20.0
    beyond: str = "clip"
    label: tuple[float, float] | None = None
    inputs: tuple[Any, ...] | None = None

    def guard(self, n_inputs: int, binary: bool) -> Guard:
        """A guard that knows nothing yet; labels that are classes (``binary``) are not guarded."""
        return Guard(
            n_inputs,
            deviations=self.deviations,
            label=self.label,
            inputs=self.inputs,
            beyond=self.beyond,
            guard_labels=not binary,
        )


def read_limits(table: Section, n_inputs: int, binary: bool, named: bool = False) -> Limits:
    """The limits that ``[limits]`` describes; ``named`` where labels are names of classes."""
    deviations = table.number("deviations", 20.0, least=1)
    beyond = table.choice("beyond", BEYOND, "clip")
    label, inputs = (_given(table, key) for key in ("label", "inputs"))
    table.end()
    binary = binary or named
    if label is not None and binary:
        what = "classes" if named else "a loss whose labels are -1 and +1"
        raise table.wrong(f"label is not for {what}.")
    limits = Limits(deviations, beyond, label, inputs)
    with table.blame():
        limits.guard(n_inputs, binary)
    return limits


def _given(table: Section, key: str) -> tuple[Any, ...] | None:
    value = table.take(key, None)
    if value is None:
        return None
    if not isinstance(value, list):
        raise table.wrong(f"{key} must be two numbers, [low, high], got {value!r}.")
    return tuple(tuple(one) if isinstance(one, list) else one for one in value)
