"""Networks that change: which one holds in a round, from a list, from pairs, or from a function."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, final

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.network import Network

Given = Network | Callable[[int], Network] | Sequence[Network] | Sequence[tuple[int, Network]]

_WHAT = "a laconic Network, a list of them, one a round, a list of pairs (first round, Network), or a function"


@final
class Timetable:
    """A network for each round, counted from 1 on. All have the same agents; edges come and go.

    Parameters
    ----------
    given : function of the round, list of Network, or list of pairs (first round, Network)
    """

    def __init__(self, given: object) -> None:
        self._function: Callable[[int], Any] | None = None
        self._starts: list[int] = []
        self._listed: list[Network] = []
        if callable(given):
            self._function = given
        elif isinstance(given, Sequence) and not isinstance(given, (str, bytes)) and given:
            self._take(given)
        else:
            raise ArgumentError("network", f"must be {_WHAT}, got {_validate.shown(given)}.")
        self._known: tuple[int, Network] = (0, self._listed[0]) if self._listed else (1, self._asked(1))
        self.n_agents = self._known[1].n_agents
        for start, network in zip(self._starts, self._listed, strict=True):
            self._same_agents(start, network)

    def _take(self, given: Sequence[Any]) -> None:
        pairs = all(isinstance(one, tuple) and len(one) == 2 for one in given)
        if not pairs:
            given = list(enumerate(given, 1))
        for start, network in given:
            _validate.instance("network", network, Network, _WHAT)
            self._starts.append(_validate.integer("network", start, least=1))
            self._listed.append(network)
        if self._starts[0] != 1 or sorted(set(self._starts)) != self._starts:
            raise ArgumentError("network", "must begin with round 1, and name its first rounds in their order.")
        self._last = None if pairs else len(given)

    def _same_agents(self, t: int, network: Network) -> Network:
        if network.n_agents != self.n_agents:
            raise ArgumentError(
                "network",
                f"must have the same agents in every round: {self.n_agents} at first, {network.n_agents} in round {t}.",
            )
        return network

    def _asked(self, t: int) -> Network:
        assert self._function is not None
        try:
            network = self._function(t)
        except TypeError as error:
            raise ArgumentError(
                "network", f"must be a function of the round, and for round {t} it says: {error}"
            ) from error
        if not isinstance(network, Network):
            raise ArgumentError("network", f"must return a Network for round {t}, got {_validate.shown(network)}.")
        return network

    def at(self, t: int) -> Network:
        """The network of round ``t``."""
        if self._function is None:
            if self._last is not None and t > self._last:
                raise ArgumentError("network", f"must hold a Network for each round: it ends before round {t}.")
            return self._listed[max(0, bisect_right(self._starts, t) - 1)]
        if self._known[0] != t:
            self._known = t, self._same_agents(t, self._asked(t))
        return self._known[1]

    def steady(self, t: int, most: int) -> int:
        """For how many rounds from ``t`` on, at most so many, the network stays what it is in round ``t``."""
        network = self.at(t)
        for n in range(1, most):
            other = self.at(t + n)
            if other is not network and other != network:
                return n
        return most

    @property
    def degrees(self) -> Array:
        """Numbers of neighbours, by the network that was last asked for: of a run without rounds."""
        return self._known[1].degrees

    def __repr__(self) -> str:
        words = "a function of the round" if self._function else f"{len(set(self._listed))} in turn"
        return f"Network({self.n_agents} agents, changing: {words})"


def read(given: object) -> Network | Timetable:
    """``network`` as people pass it: one for all rounds, or a timetable."""
    return given if isinstance(given, (Network, Timetable)) else Timetable(given)
