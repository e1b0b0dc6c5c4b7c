"""The numbers of the rule, and what follows from them alone: when waves start, and how much each will carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from laconic.losses import LOSSES, Loss

SWEEP_HEIGHT = 10  # from this height on the first wave is preceded by a sweep down


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

    @property
    def horizon(self) -> float:
        """1/(1-f): how many rounds count."""
        return math.inf if self.forgetting >= 1 else 1 / (1 - self.forgetting)

    def thick(self, n: float) -> float:
        """floor n + ridge: what is added to the diagonal of n samples' information."""
        return self.floor * n + self.ridge

    def fineness(self, n_features: int) -> float:
        """nu, by default 1/sqrt(D)."""
        return n_features**-0.5 if self.nu is None else self.nu

    def following(self, start: int, height: int) -> int:
        """When the wave after that of ``start`` starts: s + max(2h+1, ceil((growth-1) min(s, horizon)))."""
        return start + max(2 * height + 1, math.ceil((self.growth - 1) * min(start, self.horizon)))

    def carried(self, start: int, census: Sequence[int]) -> float:
        """n^ = sum over agents of min(s+h-a, horizon): the samples that the wave of ``start`` will carry."""
        total = 0.0
        for depth, agents in enumerate(census):
            total += agents * min(float(start + len(census) - 1 - depth), self.horizon)
        return total

    def looseness(self, n_agents: int, inner: int) -> float:
        """tau of an inner agent's terms, tau^2 = clip(N/I, 1, 4): it speaks for many, and its words are heard twice."""
        return math.sqrt(min(4.0, max(1.0, n_agents / inner)))
