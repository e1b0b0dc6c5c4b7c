"""Schedules of faults, drawn from a seed, and what must hold after each: the protocol's claims, put to the test.

A schedule is a small network, a learner, a clock, and faults that all end at the same moment, when the network is
healed. After that the agents run on for a number of rounds, and then

- no agent is stuck: all have finished all rounds, and every edge is in use on both sides;
- every replica equals its origin, to the bit, and the two shares of every edge cancel;
- the duals are what the shares say, and add up to zero over all agents;
- everything is finite;
- the mean square error is at most 5% above that of agents to whom nothing happened;
- and where no crash or long absence took rounds away, lockstep has computed what ``lc.simulate`` computes, to the bit.

``check`` runs one schedule and returns what is violated; ``shrink`` takes faults away, and shortens them, as long as
something still is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Censor, Channel, Quantizer
from laconic.engine import simulate
from laconic.features import RandomFeatures
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner
from laconic.network import Network
from laconic.protocol import Agent
from laconic.transport.faults import Corruption, Crash, Delay, Drop, Duplication, Fault, Partition, Skew, Slow
from laconic.transport.virtual import PATIENCE, VirtualNetwork
from laconic.transport.wires import NOTICED

HEALED = 16.0  # when the last fault ends
AFTERWARDS = 60  # rounds from then on
_LONGEST = 600  # rounds of data at hand
_LIMIT = 1000.0  # virtual seconds after which an agent counts as stuck
_TOLERANCE = 0.05
_NOISE = 0.3
_INPUTS = 2

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
    if "inside" in values:
        values["inside"] = "{" + ", ".join(sorted(values["inside"])) + "}"
    more = ", ".join(
        f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
    return f"{fault.start:6.2f} to {fault.stop:6.2f} s  {type(fault).__name__.lower()}: {more}"


def draw_schedule(seed: int) -> Schedule:
    """The schedule that belongs to a seed."""
    random = np.random.default_rng(seed)
    n_agents = int(random.integers(3, 7))
    network = Network.random(n_agents, p=0.5, seed=int(random.integers(1000)))
    kinds = [str(kind) for kind in random.choice(list(_DRAWERS), size=int(random.integers(1, 5)))]
    faults = tuple(_draw_fault(kind, network, random) for kind in kinds)
    return Schedule(
        seed,
        network,
        learner=str(random.choice(list(LEARNERS))),
        clock=str(random.choice(["lockstep", "slotted"])),
        checkpoint_every=int(random.choice([1, 5])),
        faults=_without_overlapping_crashes(faults),
    )


def _draw_fault(kind: str, network: Network, random: np.random.Generator) -> Fault:
    start = float(random.uniform(0.5, HEALED - 1))
    stop = float(random.uniform(start + 0.3, HEALED))
    return _DRAWERS[kind](start, stop, network, random)


def _some(network: Network, random: np.random.Generator) -> frozenset[str]:
    size = int(random.integers(1, network.n_agents))
    return frozenset(str(name) for name in random.choice(network.names, size=size, replace=False))


_DRAWERS: dict[str, Callable[[float, float, Network, np.random.Generator], Fault]] = {
    "drop": lambda a, b, network, random: Drop(a, b, float(random.uniform(0.05, 0.7))),
    "delay": lambda a, b, network, random: Delay(a, b, float(random.uniform(0.2, 4.0))),
    "duplication": lambda a, b, network, random: Duplication(a, b, float(random.uniform(0.1, 1.0))),
    "corruption": lambda a, b, network, random: Corruption(a, b, float(random.uniform(0.05, 0.5))),
    "partition": lambda a, b, network, random: Partition(a, b, _some(network, random)),
    "crash": lambda a, b, network, random: Crash(a, b, str(random.choice(network.names)), bool(random.random() < 0.5)),
    "slow": lambda a, b, network, random: Slow(a, b, str(random.choice(network.names)), float(random.uniform(2, 20))),
    "skew": lambda a, b, network, random: Skew(a, b, str(random.choice(network.names)), float(random.uniform(1.05, 3))),
}


def _without_overlapping_crashes(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """A host that is down cannot crash: of crashes that overlap on one host, the first stays."""
    kept: list[Fault] = []
    for fault in faults:
        if not isinstance(fault, Crash) or not any(
            isinstance(other, Crash)
            and other.host == fault.host
            and other.start < fault.stop
            and fault.start < other.stop
            for other in kept
        ):
            kept.append(fault)
    return tuple(kept)


@cache
def _data(n_agents: int) -> tuple[RandomFeatures, Array, Array, Array, Array]:
    """Features, streams, and a test set; a noisy function of two inputs."""
    random = np.random.default_rng(n_agents)
    X = random.uniform(size=(_LONGEST, n_agents, _INPUTS))
    test = random.uniform(size=(200, _INPUTS))
    y, label = (1 + 0.3 * np.cos(1.5 * (inputs[..., 0] - inputs[..., 1])) for inputs in (X, test))
    features = RandomFeatures.gaussian(_INPUTS, 6, bandwidth=1.0, seed=1)
    noise = _NOISE * random.standard_normal(y.shape)
    return features, X, y + noise, features(test), label + _NOISE * random.standard_normal(label.shape)


def check(schedule: Schedule) -> list[str]:
    """Run a schedule, and return a sentence for everything that should have held and did not."""
    features, X, y, test, label = _data(schedule.network.n_agents)
    learner = LEARNERS[schedule.learner]
    virtual = VirtualNetwork(
        learner,
        features,
        schedule.network,
        X,
        y,
        clock=schedule.clock,
        faults=schedule.faults,
        seed=schedule.seed,
        checkpoint_every=schedule.checkpoint_every,
        heartbeat=6,
    )
    virtual.run(_LONGEST - AFTERWARDS - 1, until=HEALED)
    target = max(host.agent.round for host in virtual.hosts.values()) + AFTERWARDS
    virtual.run(target, limit=_LIMIT)
    if not virtual.settled(target):
        return [_stuck(virtual, target)]
    for host in virtual.hosts.values():
        host.agent.end_round()
    violations = list(_look_at_agents(virtual, "duals" in learner.init(1, 1)._fields))
    trace = simulate(learner, features, schedule.network, X[:target], y[:target])
    weights = np.array([host.agent.weights for host in virtual.hosts.values()])
    error = float(((weights @ test.T - label) ** 2).mean())
    # On slots agents end in rounds of their own, and from one round to the next the error goes up and down by 10%.
    ends = range(target, 1 + max(host.agent.round for host in virtual.hosts.values()))
    models = (simulate(learner, features, schedule.network, X[:end], y[:end]).state.weights for end in ends)
    fault_free = max(float(((model @ test.T - label) ** 2).mean()) for model in models)
    if not error <= (1 + _TOLERANCE) * fault_free:
        violations.append(f"the mean square error is {error:.4g}, without faults it is {fault_free:.4g}.")
    if (
        schedule.clock == "lockstep"
        and schedule.harmless
        and not np.array_equal(virtual.predictions(), trace.predictions)
    ):
        t, i = np.argwhere(virtual.predictions() != trace.predictions)[0]
        violations.append(f"lockstep differs from the simulator, first in round {t + 1} of agent {i}.")
    return violations


def _stuck(virtual: VirtualNetwork, target: int) -> str:
    states = ", ".join(
        f"{name} in round {host.agent.round} waits for {'/'.join(host.agent.waiting) or 'nobody'}"
        for name, host in virtual.hosts.items()
    )
    return f"some agent is stuck before round {target}: {states}."


def _look_at_agents(virtual: VirtualNetwork, has_duals: bool) -> Iterator[str]:
    agents = {name: host.agent for name, host in virtual.hosts.items()}
    for name, agent in agents.items():
        for values in agent.state().arrays.values():
            if not np.isfinite(values).all():
                yield f"{name} holds numbers that are not finite."
        for other, stage in agent.edges.items():
            if stage != "live":
                yield f"{name} has not reopened its edge to {other}: {stage}."
            if not np.array_equal(agent.replica(other), agents[other].broadcast):
                yield f"{name}'s replica of {other} differs from {other}'s broadcast."
            if has_duals and name < other and not _cancel(_due(agents, name, other), _due(agents, other, name)):
                yield f"the shares of the edge {name}-{other} do not cancel."
        if has_duals:
            shares: Any = sum(agent.share(other) for other in agent.neighbours)
            if not _cancel(agent.duals, -agent.learner.rho * shares):  # type: ignore[attr-defined]
                yield f"{name}'s dual is not what its sums say."
    if has_duals:
        total: Any = sum(
            agent.duals + agent.learner.rho * sum(_due(agents, name, o) - agent.share(o) for o in agent.neighbours)  # type: ignore[attr-defined]
            for name, agent in agents.items()
        )
        size = max(np.abs(agent.duals).max() for agent in agents.values())
        if not np.abs(total).max() <= 1e-9 * (1 + size):
            yield f"the duals add up to {np.abs(total).max():.2g}, not to zero."


def _due(agents: dict[str, Agent], name: str, other: str) -> Array:
    """An edge's share when both ends have come to the same edge round: on slots one may be behind."""
    agent = agents[name]
    behind = max(agents[other].edge_round(name) - agent.edge_round(other), 0)
    share: Array = agent.share(other) + behind * (agent.broadcast - agent.replica(other))
    return share


def _cancel(a: Array, b: Array) -> bool:
    return bool(np.abs(a + b).max() <= 1e-9 * (1 + np.abs(a).max()))


def shrink(schedule: Schedule, violated: Callable[[Schedule], bool] = lambda s: bool(check(s))) -> Schedule:
    """A schedule with as few and as short faults as will do to violate something still."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(schedule):
            if violated(smaller):
                schedule, changed = smaller, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    faults = schedule.faults
    for k in range(len(faults)):
        yield replace(schedule, faults=faults[:k] + faults[k + 1 :])
    for k, fault in enumerate(faults):
        length = fault.stop - fault.start
        if length > 0.5:
            for shorter in (
                replace(fault, stop=fault.start + length / 2),
                replace(fault, start=fault.start + length / 2),
            ):
                yield replace(schedule, faults=(*faults[:k], shorter, *faults[k + 1 :]))
