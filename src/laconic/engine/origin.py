"""What a state was made with, so that nobody goes on from it with something else.

Models mean nothing with another feature map, though its shapes may be the same; waves build on what was said over the
links of one tree.
"""

from __future__ import annotations

import hashlib

import numpy as np

from laconic._timetable import Timetable
from laconic._worded import ArgumentError
from laconic.features import OwnFeatures, RandomFeatures
from laconic.learners import Learner, Speech
from laconic.network import Network
from laconic.trace import State
from laconic.waves.tree import by_name


def origin_of(learner: Learner, features: RandomFeatures, network: Network | Timetable) -> str:
    """A digest of the feature map and, where waves run, one of the network."""
    map_of = _map_of(features)
    if learner.speech is not Speech.OWN or not isinstance(network, Network):
        return map_of
    order = sorted(range(network.n_agents), key=lambda i: by_name(network.names[i]))  # which decides on the tree, too
    named = () if order == sorted(order) else (np.array(order),)
    return f"{map_of}/{digest_of(network.starts, network.neighbours, *named)}"


def check_origin(state: State, learner: Learner, features: RandomFeatures, network: Network | Timetable) -> None:
    """Refuse a state that is known to come from another feature map, or another tree."""
    if not state.origin:
        return
    (before, *tree), (now, *here) = state.origin.split("/"), origin_of(learner, features, network).split("/")
    if before != now:
        raise ArgumentError("state", "comes from another feature map: go on with the one that its run had.")
    if tree and here and tree != here:
        raise ArgumentError("state", "comes from another network: waves go on over the tree on which they began.")


def _map_of(features: RandomFeatures) -> str:
    if isinstance(features, OwnFeatures):
        return digest_of(np.frombuffer(features.mark(), dtype=np.uint8))
    scaling = features.scaling
    scaled = () if scaling is None else (scaling.centre, scaling.scale)
    return digest_of(features.frequencies, *scaled)


def digest_of(*arrays: np.ndarray) -> str:
    """A digest of arrays, and of their shapes."""
    made = hashlib.blake2b(digest_size=8)
    for array in arrays:
        made.update(str(array.shape).encode())
        made.update(np.ascontiguousarray(array).data)
    return made.hexdigest()
