"""What each learner and each loss does to one row, and the ladder that picks it: a new one is a function and a rung.

``LOSSES`` and ``STEPS`` number them by the names that losses and learners declare as their ``kernel``. The simulator
and a running agent climb the same ladder, so they compute the same bits.
"""

from __future__ import annotations

import math

from laconic.engine.vectors import lean

SQUARED, LOGISTIC, HINGE, SQUARED_HINGE = range(4)
LOSSES = {"squared": SQUARED, "logistic": LOGISTIC, "hinge": HINGE, "squared-hinge": SQUARED_HINGE}


# --------------------------------------------------------------------------------------------------------------------
# Losses: the slope l'(m, y), and the slope at the solution of c m + l'(m) = a
# --------------------------------------------------------------------------------------------------------------------


@lean
def slope_of(loss, margin, label):
    """Derivative of the loss in the prediction; a missing label (NaN) pulls nowhere."""
    if math.isnan(label):
        return 0.0
    if loss == SQUARED:
        return 2.0 * (margin - label)
    if loss == LOGISTIC:
        return -label / (1.0 + math.exp(label * margin))
    if loss == SQUARED_HINGE:
        return -2.0 * label * max(0.0, 1.0 - label * margin)
    return -label if label * margin < 1.0 else 0.0


@lean
def value_of(loss, margin, label):
    """The loss itself; NaN where the label is missing."""
    if loss == SQUARED:
        return (margin - label) ** 2
    if loss == LOGISTIC:
        return max(0.0, -label * margin) + math.log1p(math.exp(-abs(label * margin)))
    if loss == SQUARED_HINGE:
        return max(0.0, 1.0 - label * margin) ** 2
    return max(0.0, 1.0 - label * margin)
