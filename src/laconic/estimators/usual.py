"""Checks of what the faces are told: a learner, and the width of a kernel for inputs that are scaled already."""

from __future__ import annotations

import copy
from typing import Any, overload

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features import RandomFeatures
from laconic.features.own import read
from laconic.learners import Learner

#: The bandwidth that is none: a map for raw inputs, with many widths at once.
AUTOMATIC = "automatic"


@overload
def checked_learner(learner: Learner, binary: bool) -> Learner: ...
@overload
def checked_learner(learner: None, binary: bool) -> None: ...
def checked_learner(learner: object, binary: bool) -> Learner | None:
    """A copy of ``learner``, or None; ``binary`` says whether labels are -1 and +1."""
    if learner is None:
        return None
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be a laconic learner such as lc.ODKLA(), or None; got {learner!r}.")
    if learner.loss.binary and not binary:
        raise ValueError(f"learner must have a loss for real labels, such as 'squared'; got {learner!r}.")
    return copy.copy(learner)  # what was fitted stays what it was when ``set_params`` changes the learner


def checked_features(features: Any, X: Array, seed: int) -> RandomFeatures:
    """A map of one's own for rows ``X``; what can be fitted is cloned and fitted to them, as scikit-learn does."""
    if hasattr(features, "fit") and not isinstance(features, type):
        from sklearn.base import clone  # which river's face does without

        features = clone(features)
        if features.get_params(deep=False).get("random_state", 0) is None:
            features.set_params(random_state=seed)
        features = features.fit(X, None)
    found = read(features, X)
    if found.n_inputs != X.shape[1]:
        raise ArgumentError("features", f"must take {X.shape[1]} inputs, as X has; they take {found.n_inputs}.")
    return found


def checked_bandwidth(bandwidth: object, n_inputs: int, variance: float, *, besides: str = "") -> float:
    """``bandwidth`` as a number; "scale" is sigma^2 = n_inputs * variance / 2, the gamma="scale" of SVC.

    ``besides`` is a word that the face itself understands.

    >>> checked_bandwidth("scale", 8, 1.0)
    2.0
    """
    if isinstance(bandwidth, str) and bandwidth == "scale":
        # Inputs that do not vary say nothing about their scale.
        return float(np.sqrt(n_inputs * (variance if variance > 0 else 1.0) / 2))
    if isinstance(bandwidth, str):
        known = f"'{besides}', 'scale' or a positive number" if besides else "'scale' or a positive number"
        raise ArgumentError("bandwidth", f"must be {known}, got {_validate.shown(bandwidth)}.")
    return _validate.number("bandwidth", bandwidth, above=0)
