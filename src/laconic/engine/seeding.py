"""What a seed of a sweep stands for: the order of the rounds, the frequencies, and the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic import _validate
from laconic._worded import ArgumentError
from laconic.features import RandomFeatures

VARIED = ("order", "features", "network")
_MOST = 10_000


class Drawn(NamedTuple):
    """What is run for one seed."""

    seed: int
    features: Any
    network: Any
    X: object
    y: object


def draws(
    features: RandomFeatures | Mapping[Any, RandomFeatures],
    network: Any,
    X: object,
    y: object,
    seeds: int | Sequence[int],
    vary: Sequence[str] | None,
) -> list[Drawn]:
    """Everything once for each seed; ``vary`` None changes all that a seed can change."""
    if y is None:
        raise ArgumentError("y", "must be an array of labels where there are seeds.")
    maps = list(features.values()) if isinstance(features, Mapping) else [features]
    can = {
        "order": True,
        "features": all(getattr(one, "has_seed", False) for one in maps),
        "network": bool(getattr(network, "has_seed", False)),
    }
    if vary is None:
        varied = [name for name in VARIED if can[name]]
    else:
        listed = [vary] if isinstance(vary, str) else list(vary)
        varied = [_validate.choice("vary", name, VARIED) for name in listed]
    for name in varied:
        if not can[name]:
            raise ArgumentError("vary", f"names {name!r}, but the {name} given here came from no seed.")
    made = []
    for seed in _seeds(seeds):
        inputs, labels = _shuffled(X, y, seed) if "order" in varied else (X, y)
        drawn: Any = features
        if "features" in varied:
            redrawn = {key: one.redrawn(seed) for key, one in _keyed(features).items()}
            drawn = redrawn if isinstance(features, Mapping) else redrawn[None]
        graph = network.redrawn(seed) if "network" in varied else network
        made.append(Drawn(seed, drawn, graph, inputs, labels))
    return made


def _shuffled(X: object, y: object, seed: int) -> tuple[Any, Any]:
    """The rounds of a stream in another order; of unequal streams, each agent's rows in an order of their own."""
    rng = np.random.default_rng(seed)
    if isinstance(X, (list, tuple)) and isinstance(y, (list, tuple)) and len({np.shape(x) for x in X}) > 1:
        if [np.shape(x)[:1] for x in X] != [np.shape(label)[:1] for label in y]:
            return X, y  # who runs them will say what is wrong
        orders = [rng.permutation(len(label)) for label in y]
        inputs, labels = ([np.asarray(one)[k] for one, k in zip(each, orders, strict=True)] for each in (X, y))
        return inputs, labels
    order = rng.permutation(len(np.asarray(y)))
    return np.asarray(X)[order], np.asarray(y)[order]


def _keyed(features: RandomFeatures | Mapping[Any, RandomFeatures]) -> Mapping[Any, RandomFeatures]:
    return features if isinstance(features, Mapping) else {None: features}


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, (list, tuple, range, np.ndarray)):
        listed = [_validate.integer("seeds", seed, least=0) for seed in seeds]
        if not listed or len(set(listed)) < len(listed):
            raise ArgumentError("seeds", f"must be whole numbers, none of them twice, got {_validate.shown(seeds)}.")
        return listed
    return list(range(_validate.integer("seeds", seeds, least=1, most=_MOST)))
