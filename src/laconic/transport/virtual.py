"""A network in one process, under the rule of a clock that is only a number: what goes wrong on it goes wrong again.

``VirtualNetwork`` carries the messages of any number of agents, paces them by the pacer that also runs over zenoh, and
lets faults befall them. All chance is drawn from one seed, and events happen in the order of virtual time, so a run can
be repeated to the last bit. Without faults it is a perfect network, and the agents compute what ``lc.simulate`` does.

The parts: a *host* is the machine an agent runs on, with its disk, its clock and its view of who is there; *wires* lie
between hosts; a *fault* is something that holds from one moment to another. Times are in virtual seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network
from laconic.protocol import Agent, AgentState, Message
from laconic.protocol.actions import Alert, Save, Terms
from laconic.protocol.pacer import Pacer
from laconic.protocol.paces import make_pacer
from laconic.transport.faults import Fault, Hostile
from laconic.transport.hosts import Host, Program, VirtualLink
from laconic.transport.link import Connected, Disconnected, Event, Received
from laconic.transport.wires import Wires

SLOT = 1.0
PATIENCE = 6.0  # how long lockstep waits for a neighbour that is gone
KEPT = 20  # models kept of each agent
WORK = {"lockstep": 0.1, "slotted": 0.6 * SLOT}  # seconds that a round takes: a slow host misses slots


@final
class Disk:
    """Holds a checkpoint; and somewhere there is a copy of each that was ever on it.

    Most are never read: bytes are made of one when it is.
    """

    def __init__(self, content: AgentState | None = None) -> None:
        self.content = content
        self.history: list[tuple[float, AgentState]] = []

    def write(self, content: AgentState, now: float) -> None:
        """Replace the checkpoint."""
        self.content = content
        self.history.append((now, content))

    def read(self) -> AgentState | None:
        """What is on it, as it comes back from bytes."""
        return None if self.content is None else AgentState.from_bytes(self.content.to_bytes())

    def wipe(self) -> None:
        """Lose it."""
        self.content = None

    def put_back(self, time: float) -> None:
        """Have the one again that was there at that time; the first one, if that was later."""
        if self.history:
            before = [content for written, content in self.history if written <= time]
            self.content = before[-1] if before else self.history[0][1]


@final
class Learning:
    """A program that learns from given streams: the pacer, and a disk that is only bytes."""

    def __init__(self, network: VirtualNetwork, number: int, pacer: Pacer, link: VirtualLink, disk: Disk) -> None:
        self.pacer = pacer
        self.fenced = False  # whether it was told that another has its name
        self._network, self._number, self._link, self._disk = network, number, link, disk
        self._next = network.taken[pacer.agent.name]  # what its sensor says next, also while it is a second one

    def start(self, now: float, offset: float = 0.0) -> None:
        """Start the driver of this host at ``now``."""
        self.pacer.start(now, offset)
        self._do()

    def feed(self, items: list[Event], now: float) -> None:
        """Take in what came."""
        for item in items:
            match item:
                case Received(sender, data):
                    self.pacer.received(data, sender, now)
                case Connected(name):
                    self.pacer.connected(name, now)
                case Disconnected(name):
                    self.pacer.disconnected(name, now)

    def turn(self, now: float) -> bool:
        """Do what is due; and a round, if one may begin and its sample is to be had already."""
        pacer, network = self.pacer, self._network
        if now >= pacer.deadline:
            pacer.handle_timer(now)
        agent = pacer.agent
        # On slots everybody has rounds of its own: who is there first goes on, so that the others hear it.
        t = self._next if network.sensors else agent.round
        had_round = pacer.wants_sample and (not network.resting if network.slotted else agent.round < network.target)
        if had_round:
            counts = network.hosts[agent.name].program is self  # and is no second one of that name
            self._next = t + 1
            agent.end_round()
            if counts:
                network.taken[agent.name] = t + 1
                network.models[agent.name].append(agent.weights)
            at = t % len(network.y)
            info = pacer.learn(network.X[at, self._number], network.y[at, self._number], now)
            if pacer.failure is not None:
                raise pacer.failure
            if info is not None and counts:
                network.learned[agent.name] += 1
                network.predicted[agent.name][t] = info.prediction
        self._do()
        return had_round

    def _do(self) -> None:
        for action in self.pacer.actions():
            if type(action) is Message:
                self._link.send(action.data, action.to)
            elif type(action) is Save:
                self._disk.write(self.pacer.agent.state(), self._network.now)
            elif type(action) is Alert and action.event == "another has this name":
                # Who is told so by a neighbour that it has lost is fenced there; the others were only warned.
                self.fenced |= self.pacer.agent.edges.get(action.fields["neighbour"]) == "gone"


@final
class VirtualNetwork:
    """Hosts, and what lies between them.

    Parameters
    ----------
    learner, features, network
        As for ``lc.simulate``.
    X, y : arrays (T, N, d), (T, N)
        The streams. After the last sample comes the first again.
    clock : "lockstep" or "slotted"
    faults : iterable of Fault
    seed : int
        All chance is drawn from it.
    checkpoint_every : int
        Rounds between two writings to disk; 1 loses nothing in a crash.
    heartbeat : int
        Of the agents, on slots.
    sensors : bool, optional
        Whether a round takes the sample that comes next, as from a sensor: so it is on slots. In lockstep round t of
        agent i learns from ``X[t-1, i]``, whenever that round comes, as from a file.
    dtype : "float64" or "float32"
        Of the agents.
    thin : collection of str
        The hosts whose agents compute by NumPy alone, as on a device that has nothing else.

    Attributes
    ----------
    taken : dict
        How many samples each agent has taken; in lockstep, up to which one.
    learned : dict
        How many rounds each agent has learned in; in lockstep it may have jumped over others.
    since : dict
        How many of them nobody can remember, since all agents have lost all they had.
    models : dict
        The models of each agent at the beginnings of its last ``KEPT`` rounds.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> from laconic.transport.faults import Drop
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=8, seed=0)
    >>> X = np.random.default_rng(0).uniform(size=(50, 4, 2))
    >>> y = np.sin(5 * X[..., 0])
    >>> ring, learner = lc.Network.ring(4), lc.ODKLA(rho=0.3, eta=1.0)
    >>> net = VirtualNetwork(learner, features, ring, X, y, faults=[Drop(0.0, 5.0, share=0.3)])
    >>> net.run(50)
    >>> trace = lc.simulate(learner, features, ring, X, y)
    >>> bool((net.predictions() == trace.predictions).all())
    True
    """

    def __init__(
        self,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        X: Array,
        y: Array,
        *,
        clock: str = "lockstep",
        faults: Iterable[Fault] = (),
        seed: int = 0,
        checkpoint_every: int = 5,
        heartbeat: int = 10,
        sensors: bool | None = None,
        dtype: str = "float64",
        thin: Collection[str] = (),
    ) -> None:
        self.X, self.y, self.target = X, y, 0
        self.slotted = clock == "slotted"
        self.sensors = self.slotted if sensors is None else sensors
        self._disks: dict[Host, Disk] = {}
        self.wires = Wires(faults, seed)
        self.hosts = self.wires.hosts
        self.wires.second = self._second
        self._started = False
        terms = Terms(PATIENCE, checkpoint_every=checkpoint_every, predictions=0.0, progress=math.inf)
        names = network.names
        self.predicted: dict[str, dict[int, float]] = {name: {} for name in names}
        self.taken, self.since = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        self.learned = dict.fromkeys(names, 0)
        self.models: dict[str, deque[Array]] = {name: deque(maxlen=KEPT) for name in names}
        random = np.random.default_rng((seed, 1))  # a run is to be repeated to the bit, tags included
        options: dict[str, Any] = {"n_agents": network.n_agents, "clock": clock, "heartbeat": heartbeat, "dtype": dtype}

        def boot(host: Host) -> Program:
            others = [other for other in host.neighbours if other not in host.unlisted]
            inc = int.from_bytes(random.bytes(8), "little")
            engine = "reference" if host.name in thin else "auto"
            agent = Agent(host.name, others, features, learner, incarnation=inc, engine=engine, **options)
            disk = self._disks[host]
            known = disk.read()
            if known is not None:
                agent.restore(known)
            pacer = make_pacer(agent, terms, SLOT)
            return Learning(self, names.index(host.name), pacer, VirtualLink(host), disk)

        self._boot, self._work = boot, WORK[clock]
        for i, name in enumerate(names):
            others = tuple(names[j] for j in network.neighbours[network.starts[i] : network.starts[i + 1]])
            self.hosts[name] = self._host(name, others, Disk())

    def _host(self, name: str, others: tuple[str, ...], disk: Disk) -> Host:
        def wipe() -> None:
            disk.wipe()
            if not any(host.alive or self._disks[host].content is not None for host in self.hosts.values()):
                self.since = dict(self.taken) if self.sensors else dict.fromkeys(self.taken, 0)

        host = Host(self.wires, name, others, self._boot, wipe, self._work, disk.put_back)
        self._disks[host] = disk
        return host

    def _second(self, name: str, disk: bool) -> Host:
        """A second host of that name, with a copy of the disk or without."""
        first = self.hosts[name]
        host = self._host(name, first.neighbours, Disk(self._disks[first].content if disk else None))
        host.unlisted = set(first.unlisted)
        return host

    def run(self, target: int, until: float = math.inf, limit: float = 1e4, talking: float = math.inf) -> None:
        """Let time pass until all agents have finished round ``target`` and all messages have come; or ``until``.

        On slots, where rounds are everybody's own, until all have taken ``target`` samples.
        ``limit`` is the virtual time after which an agent that has not got there counts as stuck, ``talking`` for how
        long agents that have got there may go on talking.
        """
        self.target = target
        if not self._started:
            self._started = True
            self.wires.start()
        for host in self.hosts.values():
            if host.alive:
                host.wake()  # there may be more to learn from
        if until < math.inf:
            self.wires.timeline.run(min(until, limit))
            return
        rested = math.inf

        def done() -> bool:
            nonlocal rested
            if talking < math.inf and rested == math.inf and self.resting:
                rested = self.now
            return self.settled(target) or self.now > rested + talking

        self.wires.timeline.run(limit, done)

    def settled(self, target: int) -> bool:
        """Whether all have finished round ``target``, and nothing is under way; who is hostile is left out."""
        return self.wires.in_flight == 0 and all(
            host.alive and not host.news and self.reached(name) >= target and host.agent.ready
            for name, host in self.honest.items()
        )

    @property
    def honest(self) -> dict[str, Host]:
        """All hosts but those that are hostile now."""
        hostile = {f.host for f in self.wires.faults if isinstance(f, Hostile) and f.start <= self.now < f.stop}
        return {name: host for name, host in self.hosts.items() if name not in hostile}

    @property
    def resting(self) -> bool:
        """Whether all have got there, and what is under way may come to rest."""
        return all(self.reached(name) >= self.target for name in self.honest)

    def reached(self, name: str) -> int:
        """How far an agent has come: its round, or on slots how many samples it has taken."""
        return self.taken[name] if self.slotted else self.hosts[name].agent.round

    @property
    def now(self) -> float:
        """Virtual time."""
        return self.wires.timeline.now

    @property
    def carried(self) -> int:
        """Messages sent so far."""
        return self.wires.carried

    @property
    def lost(self) -> int:
        """Messages that a fault took."""
        return self.wires.lost

    def predictions(self) -> Array:
        """What was predicted, (T, N) or (T, N, K); NaN where an agent had no such round."""
        table = np.full((self.target, len(self.hosts), *self.y.shape[2:]), np.nan)
        for i, name in enumerate(self.hosts):
            for t, prediction in self.predicted[name].items():
                if t < self.target:
                    table[t, i] = prediction
        return table
