"""The paper's experiments, done again: ``laconic reproduce``.

``settings`` is what the paper fixes, ``streams`` deals the data, ``methods`` and ``tuning`` find the steps, ``runs``
makes the runs, ``ends`` those of an agent alone and of a centre, and ``pieces`` keeps them; ``tables``, ``theory``,
``batch`` and ``figures`` conclude, ``report`` writes it down, and ``reproduction`` does it all in order. Everything is
a function of (data, seed, parameters).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laconic.experiments.settings import METHODS, SETTINGS, Setting

if TYPE_CHECKING:
    from laconic.experiments.reproduction import reproduce

__all__ = ["METHODS", "SETTINGS", "Setting", "reproduce"]


def __getattr__(name: str) -> Any:
    if name == "reproduce":  # brings plotting and templates along, so only when asked for
        from laconic.experiments.reproduction import reproduce

        return reproduce
    raise AttributeError(f"module 'laconic.experiments' has no attribute {name!r}")
