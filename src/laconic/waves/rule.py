"""The numbers of the rule, and what follows from them alone: when waves start, and how much each will carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.losses import LOSSES, Loss

DEEP = 10  # the height of a deep tree: from here on fronts run until the first wave has come
FRONT_LOOSENESS = 12.0  # of what a front says of a matrix, in tolerances: its model makes up for that
_DEEP_LOOSENESS = 1.5  # of all waves there: who has heard fronts can wait for the rest of a matrix
_FRONTS = 3  # that are on their way at once from the root to the deepest agent, and as many back
_TOGETHER = 3.0  # what all senders may leave out in the first wave, in units of the diagonal
_COARSENESS = 2.0  # of steps in the first wave of a deep tree, for the same reason
NEVER = 2**62  # a round that does not come, for which there is room wherever numbers are kept
THINNEST = 2.0**-10  # of what is added to the diagonal, at the least
_CLEAR, _WORTH = 2.5, 0.003  # from how many deviations, and which gain a sample, on that changes
_FADED = 8  # horizons after which P is reminded of the ridge: e^-8 of it is left by then
_FEW = 10  # agents up to which it has to be that; among more it is what the errors of ten of them would be


#: One number, or one for each output.
Numbers = float | Array


def each(numbers: Numbers) -> list[float]:
    """A number of each output."""
    return numbers.tolist() if isinstance(numbers, np.ndarray) else [numbers]


def at_least(least: Numbers, numbers: Numbers) -> Numbers:
    """The larger of the two; what is none stays so."""
    if isinstance(numbers, np.ndarray):
        return np.maximum(least, numbers)
    return least if numbers < least else numbers


def at_most(most: Numbers, numbers: Numbers) -> Numbers:
    """The smaller of the two; what is none stays so."""
    if isinstance(numbers, np.ndarray):
        return np.minimum(most, numbers)
    return most if numbers > most else numbers


@lru_cache(maxsize=64)  # all nodes of a simulator ask for the same
def _carried(start: int, census: tuple[int, ...], horizon: float) -> float:
    total = 0.0
    for depth, agents in enumerate(census):
        total += agents * min(float(start + len(census) - 1 - depth), horizon)
    return total


@lru_cache(maxsize=64)
def _shares(start: int, census: tuple[int, ...], horizon: float) -> float:
    carried, reach = _carried(start, census, horizon), start + len(census) - 1
    senders = list(enumerate(census))[1:]
    return sum(agents * math.sqrt(min(float(reach - depth), horizon) / carried) for depth, agents in senders)


class ArmNumbers(NamedTuple):
    """What an agent's own prediction is made with, by the arms of ``laconic.waves.arms``: see ``laconic.Personal``."""

    deviations: float | None = 20.0
    usual: float | None = None
    shrinkage: float = 10.0
    forgetting: float = 0.98
    ridge: float = 0.1
    step: float = 0.5


class Fineness(NamedTuple):
    """How terms are rounded: by nu, and finer the larger they are, up to a size."""

    nu: float
    up_to: float = math.inf


class Rule(NamedTuple):
    """Parameters of ``laconic.WaveRLS``, under its names; all agents have the same."""

    ridge: float = 0.05
    floor: float = 1e-4
    growth: float = 1.5
    kappa: float = 1.0
    nu: float | None = None
    delta: float = 0.25
    first: int = 1
    most: int = 40
    forgetting: float = 1.0
    loss: Loss = LOSSES["squared"]
    outputs: int = 1
    arms: ArmNumbers | None = None

    @property
    def horizon(self) -> float:
        """1/(1-f): how many rounds count."""
        return math.inf if self.forgetting >= 1 else 1 / (1 - self.forgetting)

    @property
    def reminding(self) -> int:
        """Every how many rounds P is reminded of the ridge where no waves come; 0 where nothing is forgotten."""
        return 0 if self.forgetting >= 1 else round(_FADED * self.horizon)

    def thick(self, n: float) -> float:
        """floor n + ridge: what is added to the diagonal of n samples' information, before it is thinned."""
        return self.floor * n + self.ridge

    def worth(self, n: float, n_agents: int, height: int) -> float:
        """The least z^2 of n samples for which ``thinned`` changes anything: 0.003 n; of ten agents' samples if N > 10.

        What is thin has to be told of in more terms. The more agents there are, the less each of them has to tell of
        what all know, unless it passes through many hands.
        """
        return _WORTH * n * (1.0 if height >= DEEP else min(1.0, _FEW / n_agents))

    def thinned(
        self, thin: float, asked: float, worth: float, pull: Numbers, doubt: Numbers, noise: Numbers
    ) -> tuple[float, float]:
        """Half or twice ``thin`` where fresh samples clearly ask for less or more; and how clearly they did.

        With u = P theta a little less on the diagonal moves theta by a multiple of u. Over samples that theta has not
        seen, whose errors are e, ``pull`` sums up x = e u.phi, and ``doubt`` x^2, which is its variance if nothing is
        asked for: errors of any distribution, larger in some places than in others, count for what they are, and no
        single one for more than a deviation. z = pull/sqrt(doubt) deviations take about z^2 ``noise`` off the sum of
        e^2, ``noise`` its mean. ``asked`` adds up z, halved from wave to wave, since one wave may err. ``thin`` changes
        if it is beyond 2.5 and z^2 is above ``worth``; it stays between 2^-10 and 1. Outputs count by their precision.
        """
        pulled = doubted = 0.0
        for x, xx, mean in zip(each(pull), each(doubt), each(noise), strict=True):
            if mean > 0:
                pulled, doubted = pulled + x / mean, doubted + xx / (mean * mean)
        if not doubted > 0:
            return thin, asked
        deviations = pulled / math.sqrt(doubted)
        asked = asked / 2 + deviations
        if deviations**2 > worth and abs(asked) > _CLEAR and asked * deviations > 0:
            thin = max(THINNEST, thin / 2) if asked > 0 else min(1.0, thin * 2)
        return thin, asked

    def models(self, n_features: int) -> tuple[int, ...]:
        """The shape of a model: (D,), or (K, D) for several outputs."""
        return (n_features,) if self.outputs == 1 else (self.outputs, n_features)

    def fineness(self, n_features: int, matched: bool = False) -> Fineness:
        """nu, by default 1/sqrt(D). Twice that, up to 1, where vectors make up for what is wrong in matrices.

        1 is what everybody knows and the diagonal together, by which a term is whitened. Of an error e of a larger z
        what counts is e itself: z e' + e z' is small beside z z' + I, however large z is.
        """
        nu = n_features**-0.5 if self.nu is None else self.nu
        return Fineness(_COARSENESS * nu, 1.0) if matched else Fineness(nu)

    def front_fineness(self, n_features: int) -> Fineness:
        """Steps of nu, whatever the tolerance is: an error is measured by what is known already, which is 1."""
        nu = n_features**-0.5 if self.nu is None else self.nu
        return Fineness(nu / math.sqrt(max(1.0, FRONT_LOOSENESS * self.kappa)), 1.0)

    def fronts(self, t: int, depth: int, height: int) -> tuple[bool, bool]:
        """Whether a front passes an agent when ``t`` rounds are over, away from the root; and one towards it.

        The first ones start all over the tree at once, each some hops away from the next; at the root one passes over
        from the one direction into the other.
        """
        since, apart = t - self.first, max(1, height // _FRONTS)
        return since >= 0 and (since - depth) % apart == 0, since >= 0 and (since + depth) % apart == 0

    def following(self, start: int, height: int) -> int:
        """When the wave after that of ``start`` starts: s + max(2h+1, ceil((growth-1) min(s, horizon)))."""
        pause = min((self.growth - 1) * min(start, self.horizon), float(NEVER))
        return min(NEVER, start + max(2 * height + 1, math.ceil(pause)))

    def carried(self, start: int, census: Sequence[int]) -> float:
        """n^ = sum over agents of min(s+h-a, horizon): the samples that the wave of ``start`` will carry."""
        return _carried(start, tuple(census), self.horizon)

    def coarse(self, height: int) -> float:
        """kappa, or more in a deep tree."""
        return self.kappa * (_DEEP_LOOSENESS if height >= DEEP else 1.0)

    def tightness(self, start: int, census: Sequence[int]) -> float:
        """By how much less is left out in the first wave: min(1, 3/(kappa sum of sigma)), over all who send.

        What is left out there is what has been seen, and never less than nothing: it adds up. Where all see the same
        directions, all leave out the same ones, the root is told of next to nothing along them but for the residual,
        and its first step is too long by as much. Up to ten agents together leave out little enough with a kappa of 1.
        (In later waves ``trust`` sees a step that was too long.)
        """
        together = self.kappa * _shares(start, tuple(census), self.horizon)
        return 1.0 if together <= _TOGETHER else _TOGETHER / together

    def looseness(self, n_agents: int, inner: int) -> float:
        """tau of an inner agent's terms, tau^2 = clip(N/I, 1, 4): it speaks for many, and its words are heard twice."""
        return math.sqrt(min(4.0, max(1.0, n_agents / inner)))
