"""Where messages of waves go, told from who spoke when: in a wave everybody first speaks up the tree, then down."""

from __future__ import annotations

from typing import final

import numpy as np

from laconic._validate import Array
from laconic.network import Network
from laconic.waves.tree import places


@final
class Routes:
    """Follows who speaks, round by round, and says to whom.

    A wave is over when its root has spoken and the tree's height has passed, which is before the next one starts. So
    of the messages of an agent that has children, every other one goes up; a leaf's go up, the root's down.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.network import Network
    >>> routes = Routes(Network.path(3))
    >>> routes.follow(np.array([[True, False, True], [False, True, False]]))
    [(0, 0, (1,)), (0, 2, (1,)), (1, 1, (0, 2))]
    """

    def __init__(self, network: Network) -> None:
        self.places = places(network)
        self._up: set[int] = set()  # who has spoken up in this wave

    @property
    def links(self) -> list[tuple[int, int]]:
        """The edges of the tree, each as (child, parent)."""
        return [(place.agent, place.parent) for place in self.places if place.parent is not None]

    def follow(self, spoke: Array) -> list[tuple[int, int, tuple[int, ...]]]:
        """Of some rounds (T, N), told by who spoke: all messages as (round, sender, receivers), rounds from 0."""
        told = []
        for t, agent in np.argwhere(spoke).tolist():
            place = self.places[agent]
            down = place.parent is None or agent in self._up
            self._up ^= {agent} if place.children and place.parent is not None else set()
            told.append((t, agent, place.children if down or place.parent is None else (place.parent,)))
        return told
