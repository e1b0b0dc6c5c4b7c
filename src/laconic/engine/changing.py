"""An engine whose network changes: between two changes one of the others runs, and at a change its state moves on.

What one agent has told all others believe, also those who meet it anew: they are told its broadcast in full, which
``greetings`` counts. What becomes of the duals is said in ``shares``.

Who has duals does at a change what agents do in lockstep. A round begins with hearing what was said in the one before,
so an edge that has gone is not heard any more; and an edge that has come is counted among the neighbours, but pulls
only when something was said over it, a round later. Learners without duals mix over the edges of the round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from numbers import Real
from typing import Any, final

import numpy as np

from laconic._timetable import Timetable
from laconic._validate import Array
from laconic.channel import Channel
from laconic.engine.around import Around
from laconic.engine.chunk import Chunk
from laconic.engine.shares import Shares
from laconic.learners import Learner
from laconic.network import Network
from laconic.trace import State


@final
class Changing(Around):
    """Runs chunks of rounds, one after the other, on the network of each round.

    Parameters
    ----------
    make : function of a network and a state
        Makes an engine that begins in that state.
    learner : Learner
    n_features : int
    networks : Timetable
    state : State or None
    """

    def __init__(
        self,
        make: Callable[[Network, State | None], Any],
        learner: Learner,
        n_features: int,
        networks: Timetable,
        state: State | None = None,
    ) -> None:
        self._make, self._learner, self._networks = make, learner, networks
        self._speaks = learner.channel is not None
        self._greeting = Channel().message_bits(n_features) or 0
        # A state that knows no edges was left by a run on the network that held in its last round.
        edges = state.edges if state else {}
        before = networks.at(max(1, state.round if state else 1))
        if edges:
            before = Network(networks.n_agents, np.asarray(edges["pairs"])[edges["live"]], split=True)
        self._network = before
        self._inner: Any = make(before, state)
        self._owed: Array | None = None  # what the duals lack while new edges are in their first round
        # As with agents: who has duals without a rho keeps them whatever happens to its edges.
        self._rho = getattr(learner, "rho", None)
        shared = "duals" in self._state().learner and (callable(self._rho) or isinstance(self._rho, Real))
        self._shares = Shares(networks.n_agents, n_features, edges) if shared else None
        self._then = self._duals() if self._shares is not None else np.empty(0)
        if self._shares is not None and not edges:
            self._shares.grow(before, self._then)

    def _state(self) -> State:
        state: State = self._inner.state()
        return state if self._owed is None else _with_duals(state, self._duals())

    def _duals(self) -> Array:
        duals = np.array(self._inner.state().learner["duals"], dtype=np.float64)
        return duals if self._owed is None else duals + self._owed

    def __reduce__(self) -> Any:
        parts = (self._make, self._learner, self._n_features, self._networks, self.state())
        return Changing, parts, self._inner.__reduce__()[2]

    @property
    def _n_features(self) -> int:
        return int(self._state().broadcast.shape[1])

    def state(self) -> State:
        """Copies of all that the next round needs, the shares of all edges among them."""
        state = self._state()
        if self._shares is None:
            return state
        self._settle()
        return dataclasses.replace(state, edges=self._shares.keep(self._network))

    def _penalty(self, t: int) -> float:
        """rho of round ``t``; before the first nothing was said."""
        rho: Any = self._rho
        return 0.0 if t == 0 else float(rho(t) if callable(rho) else rho)

    def _settle(self) -> None:
        """Bring the shares of the present edges to where the duals are."""
        assert self._shares is not None
        now = self._duals()
        self._shares.grow(self._network, now - self._then)
        self._then = now

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of ``X`` (T, N, d), or of features if ``mapped``, with labels ``y`` (T, N)."""
        parts: list[dict[str, Array]] = []
        finished, ending, agent = 0, None, 0
        while finished < len(y) and ending is None:
            n = self._networks.steady(self.round + 1, len(y) - finished)
            met = self._move_to(self._networks.at(self.round + 1))
            stop = finished + (n if self._owed is None else 1)
            chunk: Chunk = self._inner.advance(X[finished:stop], y[finished:stop], mapped)
            ending, agent = chunk.ending, chunk.agent
            if chunk.n_rounds:
                shape = (chunk.n_rounds, len(self._network.degrees))
                greetings: Array = np.zeros(shape, dtype=np.int64)
                greetings[0] = met * self._greeting * self._speaks
                degrees = np.broadcast_to(self._network.degrees, shape)
                parts.append({**chunk.columns, "degrees": degrees, "info.greetings": greetings})
            finished += chunk.n_rounds
            self._repay()
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        return Chunk(columns, finished, ending, agent)

    def _move_to(self, network: Network) -> Array:
        """Let edges come and go; how many each agent has met anew."""
        before = self._network
        if network is before or np.array_equal(network.edges, before.edges):
            return np.zeros(network.n_agents, dtype=np.int64)
        state = self._state()
        gone, come = (_only(one, other).degrees for one, other in ((before, network), (network, before)))
        if self._shares is not None:
            self._settle()
            said = state.broadcast.astype(np.float64)
            self._shares.grow_by(_only(before, network), -self._penalty(self.round) * said)
            duals = self._duals()
            changed = (gone + come) > 0
            duals[changed] = self._shares.duals(network)[changed]
            self._then = duals
            # The engine will have the new edges pull at once, by rho (hat_i - hat_j), which is taken back here.
            met = _only(network, before)
            self._owed = self._penalty(self.round + 1) * np.asarray(met.laplacians[0] @ said)
            state = _with_duals(state, duals - self._owed)
        self._go_on(network, state)
        return come

    def _repay(self) -> None:
        """After the first round of new edges: the duals as they are."""
        if self._owed is not None:
            state = _with_duals(self._inner.state(), self._duals())
            self._owed = None
            self._go_on(self._network, state)

    def _go_on(self, network: Network, state: State) -> None:
        kept = self._inner.__reduce__()[2]  # by what divergence is measured
        self._inner = self._make(network, state)
        self._inner.__setstate__(kept)
        self._network = network


def _only(one: Network, other: Network) -> Network:
    """The edges of ``one`` that are not in ``other``."""
    numbers = [edges[:, 0].astype(np.int64) * one.n_agents + edges[:, 1] for edges in (one.edges, other.edges)]
    return Network(one.n_agents, one.edges[~np.isin(numbers[0], numbers[1])], split=True)


def _with_duals(state: State, duals: Array) -> State:
    return dataclasses.replace(state, learner={**state.learner, "duals": duals})
