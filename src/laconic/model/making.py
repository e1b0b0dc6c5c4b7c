"""Models of whoever has features, a learner and weights: running agents and estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic._version import __version__
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.model.maps import FeatureMap
from laconic.model.model import Model


def mean_model(models: Mapping[str, Model]) -> Model:
    """The mean of several agents' models, which see their inputs through one map."""
    first, *rest = models.values()
    _, arrays = first.feature_map.pack()
    for name, other in list(models.items())[1:]:
        described, own = other.feature_map.pack()
        same = described == first.feature_map.pack()[0] and own.keys() == arrays.keys()
        if not same or not all(np.array_equal(own[key], arrays[key]) for key in arrays):
            raise ValueError(f"the model of {name} has other features than that of {next(iter(models))}.")
    return Model(
        first.feature_map,
        np.mean([model.weights for model in (first, *rest)], axis=0),
        loss=first.loss,
        centre=first.centre,
        scale=first.scale,
        classes=first.classes,
        inputs=first.inputs,
        target=first.target,
        about={**first.about, "agent": "mean", "agents": list(models)},
    )


def make_model(
    features: RandomFeatures,
    learner: Learner,
    weights: Array,
    names: tuple[Sequence[str] | None, str | None] = (None, None),
    *,
    centre: float = 0.0,
    scale: float = 1.0,
    classes: Sequence[Any] | None = None,
    **about: Any,
) -> Model:
    """The model with these ``weights``, and ``names`` of inputs and target; ``about`` adds to what is said of it.

    Weights of several outputs are rows, as learners keep them.
    """
    feature_map = FeatureMap.of(features)
    if feature_map is None:
        raise ValueError("features of one's own cannot be taken away: no model can be made.")
    origin = {"name": learner.name, "learner": repr(learner), **about, "laconic": __version__}
    return Model(
        feature_map,
        weights.T,
        loss=learner.loss.name,
        centre=centre,
        scale=scale,
        classes=classes,
        inputs=names[0],
        target=names[1],
        about=origin,
    )
