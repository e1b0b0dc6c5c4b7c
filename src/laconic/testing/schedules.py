"""Schedules of faults, drawn from a seed: a small network, what runs on it, and what befalls it.

Each kind of fault has a drawer, which draws one or several faults that belong together. All end when the network is
healed. The kind that a seed begins with goes round, so that any row of seeds has all kinds in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from laconic.channel import Censor, Channel, Quantizer
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner
from laconic.network import Network
from laconic.transport.faults import Corruption, Crash, Delay, Drop, Duplication, Fault, Partition, Skew, Slow
from laconic.transport.virtual import PATIENCE
from laconic.transport.wires import NOTICED

HEALED = 16.0  # when the last fault ends

_LOSSY = Channel(Censor(0.3, 0.97), Quantizer(4))
LEARNERS: dict[str, Learner] = {
    "odkla": ODKLA(rho=0.4, eta=16.0),
    "qc-odkla": QCODKLA(rho=0.4, eta=16.0, alpha=0.3, beta=0.97, bits=4),
    "dokl": DOKL(rho=0.4, eta=16.0, channel=_LOSSY),
    "diffusion": RFFDOKL(step=0.06, order="adapt-then-combine", channel=_LOSSY),
}


@final
@dataclass(frozen=True)
class Schedule:
    """A network, what runs on it, and what befalls it. ``seed`` also decides every chance on the way."""

    seed: int
    network: Network
    learner: str
    clock: str
    checkpoint_every: int
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        edges = " ".join(f"{i}-{j}" for i, j in self.network.edges)
        faults = "".join(f"\n    {_describe(fault)}" for fault in self.faults) or "\n    (no faults)"
        about = f"{self.learner}, {self.clock}, checkpoint every {self.checkpoint_every}"
        return f"seed {self.seed}: {self.network.n_agents} agents ({edges}), {about}{faults}"

    @property
    def harmless(self) -> bool:
        """Whether all messages reach their destination in the end and nobody forgets: lockstep then is exact."""
        forgets = any(isinstance(f, Crash) and (not f.disk or self.checkpoint_every > 1) for f in self.faults)
        # A host whose clock runs too fast is the first to lose its patience.
        hurry = max([1.0, *(f.rate for f in self.faults if isinstance(f, Skew))])
        return not forgets and hurry * (_longest_absence(self.faults) + NOTICED[1]) < PATIENCE


def _longest_absence(faults: tuple[Fault, ...]) -> float:
    """Seconds for which some host may be missed; one that comes back and goes before it was noticed was never back."""
    longest = start = stop = 0.0  # nobody has been noticed yet
    for fault in sorted((f for f in faults if isinstance(f, (Crash, Partition))), key=lambda f: f.start):
        if fault.start > stop + NOTICED[1]:
            start, stop = fault.start, fault.stop
        stop = max(stop, fault.stop)
        longest = max(longest, stop - start)
    return longest


def _describe(fault: Fault) -> str:
    values = {name: value for name, value in vars(fault).items() if name not in ("start", "stop")}
    shown = {
        name: "{" + ", ".join(sorted(value)) + "}" if isinstance(value, frozenset) else value
        for name, value in values.items()
    }
    more = ", ".join(
        f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value}" for name, value in shown.items()
    )
    return f"{fault.start:6.2f} to {fault.stop:6.2f} s  {type(fault).__name__.lower()}: {more}"


# ----------------------------------------------------------------------------------------------------------------
# Drawing


@final
class Draw:
    """What a drawer draws from: the network, and chance."""

    def __init__(self, network: Network, random: np.random.Generator) -> None:
        self.network, self.random = network, random

    def number(self, low: float, high: float) -> float:
        """A number between."""
        return float(self.random.uniform(low, high))

    def span(self, least: float = 0.3, last: float = HEALED) -> tuple[float, float]:
        """From when until when: at least so long."""
        start = self.number(0.5, last - max(1.0, least))
        return start, self.number(start + least, last)

    def chance(self, share: float) -> bool:
        """Whether it happens, so often."""
        return bool(self.random.random() < share)

    def host(self) -> str:
        """The name of a host."""
        return str(self.random.choice(self.network.names))

    def some(self) -> frozenset[str]:
        """Some of the hosts, but not all."""
        size = int(self.random.integers(1, self.network.n_agents))
        return frozenset(str(name) for name in self.random.choice(self.network.names, size=size, replace=False))


def _crash(d: Draw) -> Crash:
    return Crash(*d.span(), d.host(), d.chance(0.5))


KINDS: dict[str, Callable[[Draw], tuple[Fault, ...]]] = {
    "drop": lambda d: (Drop(*d.span(), d.number(0.05, 0.7)),),
    "delay": lambda d: (Delay(*d.span(), d.number(0.2, 4.0)),),
    "duplication": lambda d: (Duplication(*d.span(), d.number(0.1, 1.0)),),
    "corruption": lambda d: (Corruption(*d.span(), d.number(0.05, 0.5)),),
    "partition": lambda d: (Partition(*d.span(), d.some()),),
    "crash": lambda d: (_crash(d),),
    "slow": lambda d: (Slow(*d.span(), d.host(), d.number(2, 20)),),
    "skew": lambda d: (Skew(*d.span(), d.host(), d.number(1.05, 3)),),
}


def draw_schedule(seed: int, kinds: Iterable[str] = ()) -> Schedule:
    """The schedule that belongs to a seed, of these kinds; of all, if none is named."""
    names = list(kinds) or list(KINDS)
    random = np.random.default_rng(seed)
    n_agents = int(random.integers(3, 7))
    network = Network.random(n_agents, p=0.5, seed=int(random.integers(1000)))
    draw = Draw(network, random)
    drawn = [names[seed % len(names)], *(str(kind) for kind in random.choice(names, size=int(random.integers(0, 4))))]
    faults = tuple(fault for kind in drawn for fault in KINDS[kind](draw))
    return Schedule(
        seed,
        network,
        learner=str(random.choice(list(LEARNERS))),
        clock=str(random.choice(["lockstep", "slotted"])),
        checkpoint_every=int(random.choice([1, 5])),
        faults=faults,
    )
