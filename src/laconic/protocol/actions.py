"""What a pacer is told once, and what it tells whoever holds it to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from laconic.protocol.dialogue import Message


@final
@dataclass(frozen=True)
class Terms:
    """How long, how often, how much.

    Attributes
    ----------
    patience : float
        Seconds after which a neighbour that vanished is given up in lockstep, or one that never came.
    rounds : int, optional
        Stop after so many: counted by all agents together in lockstep, by the agent itself on slots.
    checkpoint_every : int, optional
        Rounds between two checkpoints; None for no checkpoints at all.
    predictions : float
        At most so many are published a second; 0 for none.
    progress : float
        Seconds between two lines that tell how far it is.
    """

    patience: float = 10.0
    rounds: int | None = None
    checkpoint_every: int | None = None
    predictions: float = 10.0
    progress: float = 10.0


class Begin(NamedTuple):
    """The agent has joined the others: gather samples, passing over the first ``skip``, which it has had."""

    skip: int


class Predicted(NamedTuple):
    """Publish a prediction; ``measured`` is when its sample was taken, if the sample says so.

    ``x`` and ``label`` are the sample as it was learned from; a label that is missing is NaN. Of several outputs
    prediction and label are arrays.
    """

    round: int
    prediction: Any
    measured: float | None
    x: Any = None
    label: Any = math.nan


class Alert(NamedTuple):
    """Publish that somebody should look."""

    event: str
    fields: dict[str, Any]


class Note(NamedTuple):
    """Write a line into the log, with a ``level`` of the module ``logging``."""

    level: int
    event: str
    fields: dict[str, Any]


class Progress(NamedTuple):
    """Tell how far the agent is, and whom it waits for."""

    round: int
    waiting: tuple[str, ...]


class Save(NamedTuple):
    """Write a checkpoint of the agent as it is now."""

    round: int


Action = Message | Begin | Predicted | Alert | Note | Progress | Save
