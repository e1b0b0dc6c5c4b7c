"""Models of whoever has features, a learner and weights: running agents and estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laconic._validate import Array
from laconic._version import __version__
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.model.maps import FeatureMap
from laconic.model.model import Model


def make_model(
    features: RandomFeatures,
    learner: Learner,
    weights: Array,
    *,
    inputs: Sequence[str] | None = None,
    target: str | None = None,
    centre: float = 0.0,
    scale: float = 1.0,
    classes: Sequence[Any] | None = None,
    **about: Any,
) -> Model:
    """The model with these ``weights``; ``about`` adds to what it says of its origin."""
    feature_map = FeatureMap.of(features)
    if feature_map is None:
        raise ValueError("features of one's own cannot be taken away: no model can be made.")
    origin = {"name": learner.name, "learner": repr(learner), **about, "laconic": __version__}
    return Model(
        feature_map,
        weights,
        loss=learner.loss.name,
        centre=centre,
        scale=scale,
        classes=classes,
        inputs=inputs,
        target=target,
        about=origin,
    )
