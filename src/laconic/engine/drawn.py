"""Streams that are drawn or read where they are learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@final
@dataclass(frozen=True)
class Drawn:
    """A stream that nobody holds: what some agents see in some rounds is drawn, or read, when it is needed.

    What an agent sees in a round must depend on nothing else, or runs that cut rounds and agents in other ways see
    other streams. ``uniforms`` gives random numbers with that property.

    Parameters
    ----------
    draw : callable
        ``draw(agents, first, last)`` returns ``X`` (last - first, len(agents), n_inputs) and ``y`` (last - first,
        len(agents)): of the agents with these numbers, the rounds from ``first`` to before ``last``, counted from 0.
    n_rounds : int

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> def draw(agents, first, last):
    ...     X = lc.uniforms(7, agents, first, last, 2)
    ...     return X, np.sin(4 * X[..., 0]) * X[..., 1]
    >>> stream = lc.Drawn(draw, n_rounds=300)
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=0.5, seed=0)
    >>> trace = lc.simulate(lc.ODKLA(rho=0.2, eta=1.0), features, lc.Network.ring(5), stream)
    >>> trace.n_rounds, bool(trace.mse()[-50:].mean() < 0.05)
    (300, True)
    """

    draw: Callable[[Array, int, int], tuple[object, object]]
    n_rounds: int

    def __post_init__(self) -> None:
        if not callable(self.draw):
            raise ArgumentError(
                "draw", f"must be a function draw(agents, first, last), got {_validate.shown(self.draw)}."
            )
        object.__setattr__(self, "n_rounds", _validate.integer("n_rounds", self.n_rounds, least=0))


def uniforms(seed: int, agents: Array, first: int, last: int, n: int) -> Array:
    """``n`` numbers in [0, 1) for each of some agents in each round from ``first`` to before ``last``.

    Each is a function of seed, agent, round and place alone (splitmix64 of their sum), so it is the same whoever
    draws it: (last - first, len(agents), n).

    Examples
    --------
    >>> import numpy as np
    >>> whole = uniforms(0, np.arange(4), 0, 10, 2)
    >>> bool((uniforms(0, np.array([2, 3]), 5, 10, 2) == whole[5:, 2:]).all())
    True
    """
    with np.errstate(over="ignore"):
        who = _mixed(np.asarray(agents, dtype=np.uint64) + _mixed(np.array(seed, dtype=np.uint64) + _GOLDEN))
        when = np.arange(first, last, dtype=np.uint64)[:, None] * np.uint64(n)
        place = (when + np.arange(n, dtype=np.uint64))[:, None, :]
        return (_mixed(who[None, :, None] + _GOLDEN * (place + np.uint64(1))) >> np.uint64(11)) * 2.0**-53


def _mixed(word: Array) -> Array:
    """The finalizer of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
