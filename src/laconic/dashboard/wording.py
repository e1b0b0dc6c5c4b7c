"""What happened, in words: the alerts of agents as sentences that a person at a screen understands at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OWN = ("agent", "event", "time")
_LONGEST = 200

#: What an event is about, and how it is told: {name} of whom it is, the rest from its fields.
_SENTENCES = {
    "neighbour is silent": ("fault", "{name} hears nothing of {neighbour} and goes on without"),
    "neighbour is back": ("here", "{name} hears {neighbour} again"),
    "neighbour is late": ("fault", "{neighbour} is late for long: {name} may have to learn more slowly"),
    "quarantined": ("quarantine", "{name} has put {neighbour} into quarantine: it says what cannot be"),
    "other settings": ("fault", "{name} does without {neighbour}, which runs with other settings"),
    "two of one name": ("fault", "{name} hears two that call themselves {neighbour}"),
    "another has this name": ("fault", "somebody else speaks to {neighbour} as {name}"),
    "disagreement": ("repair", "{name} and {neighbour} do not remember alike: it is being repaired"),
    "waves are damped": ("fault", "waves are damped at {name}: its errors grow"),
    "checkpoint failed": ("fault", "{name} cannot save itself: {why}"),
    "checkpoint refused": ("repair", "{name} has refused a damaged checkpoint, and asks its neighbours"),
    "model rebuilt": ("repair", "{name} has lost its own model, and makes it anew of its sums"),
    "diverged": ("fault", "{name} has diverged in round {round}"),
    "sample beyond limits": ("fault", "{name} measured {what} = {value}, which cannot be: {outcome}"),
}


def sentence(name: str, said: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of an alert, and the alert in words; one that is not known is told as it is.

    >>> sentence("hall", {"event": "neighbour is silent", "neighbour": "attic", "time": 3.0})
    ('fault', 'hall hears nothing of attic and goes on without')
    >>> sentence("hall", {"event": "certificate ends soon", "days": 12})
    ('alert', 'hall: certificate ends soon (days 12)')
    """
    event = " ".join(str(said.get("event", "alert")).split())[:_LONGEST]
    kind, words = _SENTENCES.get(event, ("alert", ""))
    try:
        told = words.format_map({**{key: _brief(value) for key, value in said.items()}, "name": name})
    except KeyError:  # it comes without a field that it should have
        told = ""
    if told:
        return kind, told[: 2 * _LONGEST]
    rest = ", ".join(f"{field.replace('_', ' ')} {value}" for field, value in said.items() if field not in _OWN)
    return "alert", f"{name}: {event}{f' ({rest[:_LONGEST]})' if rest else ''}"


def _brief(value: object) -> str:
    """Numbers with four digits that count, everything else as it is, and not too long."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:_LONGEST]
