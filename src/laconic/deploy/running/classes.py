"""Labels that are classes, at an agent that runs: what it learns of them, and what is told of its predictions."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.defaults.labels import Labels
from laconic.deploy.running.metrics import Tally
from laconic.protocol import Info


@final
class Classes:
    """Between samples, whose label is the place of a class, and an agent, which learns +1 and -1.

    Parameters
    ----------
    labels : Labels
        Of classes.

    Examples
    --------
    >>> colours = Classes(Labels("classes", classes=("blue", "green", "red")))
    >>> colours.learned(1.0), colours.learned(float("nan"))
    (array([-1.,  1., -1.]), None)
    >>> colours.told([0.2, -0.1, -0.9], [-1.0, 1.0, -1.0])
    {'prediction': 'blue', 'decision': [0.2, -0.1, -0.9], 'label': 'green', 'error': 1.0, 'interval': None}
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._signs: Array = labels.encode(labels.classes)

    def learned(self, place: float) -> Any:
        """What an agent learns of the class at this place; None where there is no label."""
        return None if math.isnan(place) else self._signs[int(place)]

    def told(self, scores: Any, label: Any) -> dict[str, Any]:
        """A prediction by the name of its class, what speaks for each, and the label where there is one, else null."""
        said, known = self._name(scores), not np.isnan(label).any()
        truth = self._name(label) if known else None
        return {
            "prediction": said,
            "decision": np.asarray(scores, dtype=float).tolist(),
            "label": truth,
            "error": float(said != truth) if known else None,
            "interval": None,
        }

    def count(self, info: Info, tally: Tally) -> None:
        """Add a round to the tally, if it had a label: its mean square over outputs, and whether the class is wrong."""
        if not np.isnan(info.label).any():
            gap = float(np.sqrt(np.mean(np.square(info.prediction - info.label))))
            tally.learned(info.loss, gap, wrong=self._name(info.prediction) != self._name(info.label))

    def _name(self, scores: Any) -> Any:
        return self.labels.decode(scores).item()
