"""Schedules of faults, drawn from a seed: a small network, what runs on it, and what befalls it.

Each kind of fault has a drawer, which draws one or several faults that belong together. All end when the network is
healed. The kind that a seed begins with goes round, so that any row of seeds has all kinds in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from laconic.channel import Budget, Censor, Channel, EntropyQuantizer, Quantizer
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Experts, Learner, Personal, WaveRLS
from laconic.network import Network
from laconic.testing.hostile import WAYS
from laconic.testing.own import Halves, HeavyBall
from laconic.transport.faults import (
    Corruption,
    Crash,
    Delay,
    Drop,
    Duplication,
    Fault,
    Freeze,
    Hostile,
    Interrupt,
    Jump,
    OneWay,
    Partition,
    Replay,
    Rollback,
    Skew,
    Slow,
    Twice,
    Unlisted,
)
from laconic.transport.virtual import PATIENCE
from laconic.transport.wires import NOTICED

HEALED = 16.0  # when the last fault ends

_LOSSY = Channel(Censor(0.3, 0.97), Quantizer(4))
_SPEAKING: dict[str, Learner] = {
    "odkla": ODKLA(rho=0.4, eta=16.0),
    "qc-odkla": QCODKLA(rho=0.4, eta=16.0, alpha=0.3, beta=0.97, bits=4),
    "dokl": DOKL(rho=0.4, eta=16.0, channel=_LOSSY),
    "diffusion": RFFDOKL(step=0.06, order="adapt-then-combine", channel=_LOSSY),
    "own": HeavyBall(channel=Channel(Censor(0.3, 0.97))),
}
WAVING = "waverls"  # drawn apart, so that the others' schedules stay what they were
_CODED = Channel(Budget(bits_per_round=60.0, burst=600), EntropyQuantizer(0.5))
PIECES: dict[str, Learner] = {  # drawn apart as well, in every fifth schedule
    "budget": ODKLA(rho=0.4, eta=16.0, channel=Channel(Budget(0.7, burst=5), Quantizer(4))),
    "spoken": RFFDOKL(step=0.06, order="adapt-then-combine", listen="spoken", channel=_CODED),
    "experts": Experts(steps=(0.05, 0.2), forgetting=(0.999,), channel=_CODED),
    "raw": Experts(steps=(0.05, 0.2), forgetting=(0.999,), channel=Channel(Budget(0.5), EntropyQuantizer())),
    "personal": Personal(WaveRLS(growth=1.2)),
    "classes": WaveRLS(growth=1.2, outputs=3),
}
RAW = ("raw",)  # which see raw inputs, through a map that scales them
LEARNERS: dict[str, Learner] = {**_SPEAKING, WAVING: WaveRLS(growth=1.2), **PIECES}
RARE: dict[str, Learner] = {  # in wide schedules
    "own quantizer": ODKLA(rho=0.4, eta=16.0, channel=Channel(Censor(0.3, 0.97), Halves())),
    "robust": QCODKLA(rho=0.4, eta=16.0, alpha=0.3, beta=0.97, bits=4, robust="clip"),
    "robust diffusion": RFFDOKL(step=0.06, order="adapt-then-combine", channel=_LOSSY, robust="clip"),
}


@final
@dataclass(frozen=True)
class Schedule:
    """A network, what runs on it, and what befalls it. ``seed`` also decides every chance on the way.

    ``thin`` are those who compute by NumPy alone; the others by compiled kernels, where there are. ``unlabelled`` names
    the agents without labels, and from which sample on each has them: infinity for never.
    """

    seed: int
    network: Network
    learner: str
    clock: str
    checkpoint_every: int
    faults: tuple[Fault, ...]
    sensors: bool = False
    dtype: str = "float64"
    thin: tuple[str, ...] = ()
    unlabelled: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        edges = " ".join(f"{i}-{j}" for i, j in self.network.edges)
        faults = "".join(f"\n    {_describe(fault)}" for fault in self.faults) or "\n    (no faults)"
        samples = "sensors" if self.sensors or self.clock == "slotted" else "files"
        about = f"{self.learner}, {self.dtype}, {self.clock}, {samples}, checkpoint every {self.checkpoint_every}"
        thin = f", thin {' '.join(self.thin)}" if self.thin else ""
        without = "".join(f", {name} without labels before {first:g}" for name, first in self.unlabelled)
        return f"seed {self.seed}: {self.network.n_agents} agents ({edges}{thin}), {about}{without}{faults}"

    @property
    def harmless(self) -> bool:
        """Whether all messages reach their destination in the end and nobody forgets: lockstep then is exact."""
        if self.sensors or any(isinstance(f, (Rollback, Twice, Unlisted, Jump, Hostile)) for f in self.faults):
            return False
        crashes = [f for f in self.faults if isinstance(f, (Crash, Interrupt))]
        forgets = any(not f.disk or self.checkpoint_every > 1 for f in crashes)
        # A host whose clock runs too fast is the first to lose its patience.
        hurry = max([1.0, *(f.rate for f in self.faults if isinstance(f, Skew))])
        return not forgets and hurry * (_longest_absence(self.faults) + NOTICED[1]) < PATIENCE

    @property
    def forgetful(self) -> bool:
        """Whether somebody may lose what it has learned, or had no samples while it was away: that stays lost."""
        lost = any(isinstance(f, (Rollback, Twice)) for f in self.faults)
        return lost or any(self.sensors or not f.disk for f in self.faults if isinstance(f, (Crash, Interrupt)))


_ABSENCES = Crash, Interrupt, Partition, OneWay, Freeze


def _longest_absence(faults: tuple[Fault, ...]) -> float:
    """Seconds for which some host may be missed; one that comes back and goes before it was noticed was never back."""
    longest = start = stop = 0.0  # nobody has been noticed yet
    for fault in sorted((f for f in faults if isinstance(f, _ABSENCES)), key=lambda f: f.start):
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
    """What a drawer draws from: the network, and chance; where faults are to meet, they begin within a few seconds."""

    def __init__(self, network: Network, random: np.random.Generator, meet: bool = False) -> None:
        self.network, self.random = network, random
        self._meet_at = self.number(0.5, HEALED - 4) if meet else None

    def number(self, low: float, high: float) -> float:
        """A number between."""
        return float(self.random.uniform(low, high))

    def span(self, least: float = 0.3, last: float = HEALED) -> tuple[float, float]:
        """From when until when: at least so long."""
        latest = last - max(1.0, least)
        start = self.number(0.5, latest) if self._meet_at is None else min(self._meet_at + self.number(0, 2), latest)
        return start, self.number(start + least, last)

    def chance(self, share: float) -> bool:
        """Whether it happens, so often."""
        return bool(self.random.random() < share)

    def host(self) -> str:
        """The name of a host."""
        return str(self.random.choice(self.network.names))

    def edge(self) -> tuple[str, str]:
        """Two neighbours, in any order."""
        i, j = self.random.permutation(self.random.choice(self.network.edges))
        return str(self.network.names[i]), str(self.network.names[j])

    def one_of(self, words: Sequence[str]) -> str:
        """One of these words."""
        return str(self.random.choice(words))

    def some(self) -> frozenset[str]:
        """Some of the hosts, but not all."""
        size = int(self.random.integers(1, self.network.n_agents))
        return frozenset(str(name) for name in self.random.choice(self.network.names, size=size, replace=False))


def _crash(d: Draw) -> Crash:
    start, stop = d.span()
    if d.chance(0.3):
        return Crash(start, min(stop, start + d.number(0.1, 1.5)), d.host(), d.chance(0.7), noticed=False)
    return Crash(start, stop, d.host(), d.chance(0.5))


def _double(d: Draw) -> tuple[Fault, ...]:
    """Two neighbours within a slot; or one host again, hardly that it is back."""
    one, two = d.edge()
    start, stop = d.span(last=HEALED - 2)
    disk = d.chance(0.5)
    if d.chance(0.5):
        second = d.number(start, start + 1)
        return Crash(start, stop, one, disk), Crash(second, d.number(second + 0.3, HEALED), two, d.chance(0.5))
    again = d.number(stop + 0.05, stop + 1.5)
    return Crash(start, stop, one, disk), Crash(again, d.number(again, HEALED), one, d.chance(0.7))


def _interrupt(d: Draw) -> tuple[Fault, ...]:
    """Edges open anew, and somebody dies over one of the messages by which they do."""
    one, two = d.edge()
    start, stop = d.span(last=HEALED - 3)
    opens: Fault = Partition(start, stop, d.some()) if d.chance(0.5) else Crash(start, stop, one, d.chance(0.7))
    faults = [opens]
    for _ in range(1 + d.chance(0.3)):
        host, until = (one if d.chance(0.5) else two), d.number(stop + 1, HEALED)
        faults.append(Interrupt(stop, until, host, d.one_of(_LETTERS), d.chance(0.5), d.chance(0.7)))
    return tuple(faults)


_LETTERS = "hello", "call", "offer", "decide", "confirm", "full", "silence", "difference"


def _rollback(d: Draw) -> tuple[Fault, ...]:
    start, stop = d.span()
    return (Rollback(start, stop, d.host(), d.number(0, start)),)


def _wipe(d: Draw) -> tuple[Fault, ...]:
    """All agents lose all they have; then old messages turn up, or an old checkpoint."""
    start = d.number(2, HEALED - 4)
    names = d.network.names
    crashes = [Crash(d.number(start, start + 0.2), d.number(start + 0.3, start + 2), name, False) for name in names]
    more: list[Fault] = []
    if d.chance(0.6):
        more.append(Replay(start, d.number(start + 1, HEALED), d.number(0.1, 0.9)))
    if d.chance(0.6):
        again = d.number(start + 0.5, HEALED - 1)
        more.append(Rollback(again, d.number(again + 0.2, HEALED), d.host(), d.number(0, start)))
    return (*crashes, *more)


def _twice(d: Draw) -> tuple[Fault, ...]:
    return (Twice(*d.span(least=1.0, last=HEALED - 1), d.host(), d.chance(0.7), d.chance(0.5)),)


def _freeze(d: Draw) -> tuple[Fault, ...]:
    """Suspended, and perhaps missed."""
    host, (start, stop) = d.host(), d.span()
    freeze = Freeze(start, stop, host)
    return (freeze, Partition(start, stop, frozenset({host}))) if d.chance(0.5) else (freeze,)


def _jump(d: Draw) -> tuple[Fault, ...]:
    """A device that was suspended, or all the others while it was not, for seconds or for years."""
    start = d.number(0.5, HEALED - 1)
    hosts = d.some() if d.chance(0.5) else frozenset({d.host()})
    return (Jump(start, start, hosts, 10.0 ** d.number(0, 7.5)),)


def _relink(d: Draw) -> tuple[Fault, ...]:
    """An edge is taken away and added again, at both ends, though not at the same moment."""
    one, two = d.edge()
    start = d.number(0.5, HEALED - 4)
    if d.chance(0.3):  # between two messages
        return (Unlisted(start, start, one, two),)
    ends = [(d.number(start, start + 1), d.number(start + 1, start + 3)) for _ in range(2)]
    return Unlisted(*ends[0], one, two), Unlisted(*ends[1], two, one)


def _disagree(d: Draw) -> tuple[Fault, ...]:
    """Only one of the two knows of the edge; and it may start anew meanwhile."""
    one, two = d.edge()
    start, stop = d.span(least=1.0)
    faults: list[Fault] = [Unlisted(start, stop, one, two)]
    if d.chance(0.5):
        again = d.number(start, stop)
        faults.append(Crash(again, d.number(again, HEALED), one if d.chance(0.5) else two, d.chance(0.7)))
    return tuple(faults)


def _hostile(d: Draw) -> tuple[Fault, ...]:
    """A neighbour is hostile for a while, or for ever; who sets rounds in lockstep sets how far all have come."""
    way, (start, stop) = d.one_of(WAYS), d.span(last=HEALED - 1)
    for_ever = way != "far" and d.chance(0.5)
    return (Hostile(start, math.inf if for_ever else stop, d.host(), way),)


def _one_way(d: Draw) -> tuple[Fault, ...]:
    return (OneWay(*d.span(), d.some(), d.chance(0.5)),)


class FaultKind(NamedTuple):
    """A kind of fault: what it is, in words, and how one is drawn."""

    what: str
    draw: Callable[[Draw], tuple[Fault, ...]]


KINDS = {
    "drop": FaultKind("messages disappear", lambda d: (Drop(*d.span(), d.number(0.05, 0.7)),)),
    "delay": FaultKind(
        "messages take up to four seconds longer, and overtake each other",
        lambda d: (Delay(*d.span(), d.number(0.2, 4.0)),),
    ),
    "duplication": FaultKind("messages arrive twice", lambda d: (Duplication(*d.span(), d.number(0.1, 1.0)),)),
    "corruption": FaultKind("bits flip, and ends are cut off", lambda d: (Corruption(*d.span(), d.number(0.05, 0.5)),)),
    "partition": FaultKind(
        "some agents and the others do not hear each other", lambda d: (Partition(*d.span(), d.some()),)
    ),
    "one-way": FaultKind("some agents hear the others, and are not heard by them", _one_way),
    "replay": FaultKind(
        "what was said long ago, by anybody to anybody, comes again", lambda d: (Replay(*d.span(), d.number(0.1, 0.9)),)
    ),
    "crash": FaultKind("an agent dies, and comes back with its disk or without", lambda d: (_crash(d),)),
    "double": FaultKind("two neighbours die at once, or one dies again when it is hardly back", _double),
    "interrupt": FaultKind("an agent dies over one of the messages by which an edge opens", _interrupt),
    "rollback": FaultKind("an agent dies, and comes back with an old checkpoint", _rollback),
    "wipe": FaultKind("all agents lose all that they have", _wipe),
    "twice": FaultKind("a second process of the same name", _twice),
    "freeze": FaultKind("an agent is suspended for a while", _freeze),
    "jump": FaultKind("clocks leap ahead, by seconds or by a year", _jump),
    "relink": FaultKind("an edge is taken away and added again, at two moments at its two ends", _relink),
    "disagree": FaultKind("only one of two agents has the other in its list", _disagree),
    "hostile": FaultKind("a neighbour lies", _hostile),
    "slow": FaultKind(
        "an agent takes 2 to 20 times as long for everything", lambda d: (Slow(*d.span(), d.host(), d.number(2, 20)),)
    ),
    "skew": FaultKind("a clock runs too fast", lambda d: (Skew(*d.span(), d.host(), d.number(1.05, 3)),)),
}


def draw_schedule(seed: int, kinds: Iterable[str] = (), learner: str | None = None, wide: bool = False) -> Schedule:
    """The schedule that belongs to a seed, of these kinds, or of all, if none is named; with this learner, or any.

    In a wide one faults begin within seconds of each other, every other time; and the learner may be a rare one,
    numbers of single precision, and checkpoints a hundred rounds apart.
    """
    names = list(kinds) or list(KINDS)
    random = np.random.default_rng(seed)
    n_agents = int(random.integers(3, 7))
    network = Network.random(n_agents, p=0.5, seed=int(random.integers(1000)))
    draw = Draw(network, random, meet=wide and seed % 2 == 0)
    drawn = [names[seed % len(names)], *(str(kind) for kind in random.choice(names, size=int(random.integers(0, 4))))]
    faults = tuple(fault for kind in drawn for fault in KINDS[kind].draw(draw))
    hostile = [fault for fault in faults if isinstance(fault, Hostile)]
    faults = tuple(fault for fault in faults if fault not in hostile[1:])  # of one enemy the others are to be safe
    drawn_learner = str(random.choice(list(_SPEAKING)))
    if learner is None and np.random.default_rng((seed, 1)).random() < 1 / 6:
        learner = WAVING
    piece = np.random.default_rng((seed, 3))
    if learner is None and not wide and piece.random() < 1 / 5:
        learner = str(piece.choice(list(PIECES)))
    schedule = Schedule(
        seed,
        network,
        learner=learner or drawn_learner,
        clock=str(random.choice(["lockstep", "slotted"])),
        checkpoint_every=int(random.choice([1, 5])),
        faults=faults,
    )
    if wide and learner is None:
        rare = np.random.default_rng((seed, 2))
        name, dtype = str(rare.choice([drawn_learner, *RARE])), str(rare.choice(["float64", "float32"]))
        every = int(rare.choice([schedule.checkpoint_every, 100]))
        schedule = replace(schedule, learner=name, dtype=dtype, checkpoint_every=every)
    schedule = replace(schedule, sensors=not schedule.harmless and draw.chance(0.5))
    schedule = replace(schedule, thin=_draw_thin(network, np.random.default_rng((seed, 4))))
    return replace(schedule, unlabelled=_draw_unlabelled(network, np.random.default_rng((seed, 5))))


def _draw_unlabelled(network: Network, random: np.random.Generator) -> tuple[tuple[str, float], ...]:
    """In every schedule one agent or more has no labels, for a while or for ever; two at least have them always."""
    size = int(random.integers(1, network.n_agents - 1))
    names = sorted(str(name) for name in random.choice(network.names, size=size, replace=False))
    return tuple((name, math.inf if random.random() < 0.5 else float(random.integers(1, 100))) for name in names)


def _draw_thin(network: Network, random: np.random.Generator) -> tuple[str, ...]:
    """In every third schedule some agents, or all, have nothing but NumPy; drawn apart, as other pieces are."""
    if random.random() > 1 / 3:
        return ()
    size = int(random.integers(1, network.n_agents + 1))
    return tuple(sorted(str(name) for name in random.choice(network.names, size=size, replace=False)))
