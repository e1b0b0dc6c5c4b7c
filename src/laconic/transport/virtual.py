"""A network in one process, under the rule of a clock that is only a number: what goes wrong on it goes wrong again.

``VirtualNetwork`` carries the messages of any number of agents, drives them as a real driver would, and lets faults
befall them. All chance is drawn from one seed, and events happen in the order of virtual time, so a run can be
repeated to the last bit. Without faults it is a perfect network, and the agents compute what ``lc.simulate`` does.

The parts: a *host* is the machine an agent runs on, with its disk, its clock and its view of who is there; a *fault*
is something that holds from one moment to another. Times are in virtual seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network
from laconic.protocol import Agent, AgentState
from laconic.transport.faults import Corruption, Crash, Delay, Drop, Duplication, Fault, Partition, Skew, Slow

LATENCY = (0.02, 0.2)  # of a message on a good day
WORK = 0.05  # seconds that a round takes a host in lockstep
SLOT = 1.0
NOTICED = (0.2, 1.5)  # how long it takes to notice that a neighbour is gone, or back
PATIENCE = 6.0  # how long lockstep waits for a neighbour that is gone
REMINDER = 1.5  # how long no round has to pass before neighbours are asked again


@final
class Host:
    """The machine that one agent runs on."""

    def __init__(self, network: VirtualNetwork, number: int, make: Callable[[], Agent]) -> None:
        self.network, self.number, self.make = network, number, make
        self.agent = make()
        self.name = self.agent.name
        self.alive, self.starts = True, 0
        self.disk: bytes | None = None
        self.view = dict.fromkeys(self.agent.neighbours, True)
        self.turns = dict.fromkeys(self.agent.neighbours, 0)  # how many times each came or went
        self.busy = False
        self.reminded = -1  # the round in which the last reminder was due
        self.predictions: dict[int, float] = {}

    def start(self, first: bool = False) -> None:
        """Begin, or begin again after a crash."""
        network = self.network
        self.alive, self.busy = True, False
        self.starts += 1
        if not first:
            self.agent = self.make()
            if self.disk is not None:
                self.agent.restore(AgentState.from_bytes(self.disk))
            self.view = dict.fromkeys(self.agent.neighbours, True)
            self.agent.rejoin()
            self.send()
            for other in self.agent.neighbours:
                network.after(network.draw(*NOTICED), self.meet, other, self.starts)
                network.after(PATIENCE, self.miss, other, self.starts, self.turns[other])
        else:
            self.send()
        network.after(REMINDER, self.remind, self.starts)
        if network.slotted:
            network.after(SLOT, self.tick, self.starts)
        else:
            self.work()

    def crash(self, disk: bool) -> None:
        """Lose everything but, perhaps, the disk."""
        self.alive = False
        self.starts += 1
        if not disk:
            self.disk = None

    # ----------------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes, sender: str) -> None:
        """A message has arrived."""
        if self.alive:
            self.agent.receive(data, sender)
            self.send()
            self.work()

    def send(self) -> None:
        """Put what the agent has to say on the network; what has to be remembered of it is saved before."""
        if self.agent.must_save:
            self.disk = self.agent.state().to_bytes()
        for message in self.agent.outgoing():
            self.network.carry(self.name, message.to, message.data)

    def work(self) -> None:
        """In lockstep, begin the next round as soon as it may begin."""
        network = self.network
        if not network.slotted and not self.busy and self.agent.ready and self.agent.round < network.target:
            self.busy = True
            network.after(WORK * network.slowness(self.name), self.learn, self.starts)

    def tick(self, starts: int) -> None:
        """On slots, a round a tick; a slow host misses some of them."""
        if starts != self.starts:
            return
        network = self.network
        slowness = network.slowness(self.name)
        network.after(SLOT / network.clock_rate(self.name), self.tick, starts)
        if slowness > 1 and network.draw(0, 1) > 1 / slowness:
            if self.agent.ready:
                self.agent.skip_to(self.agent.round + 1)
                self.send()
        else:
            self.learn(starts)

    def learn(self, starts: int) -> None:
        """Let the agent learn one round, if it may still do so, and send what it says."""
        network, agent = self.network, self.agent
        last = len(network.y) if network.slotted else network.target  # on slots others may not be there yet
        if starts != self.starts or not agent.ready or agent.round >= last:
            self.busy = False
            return
        self.busy = False
        t = agent.round
        info = agent.learn(network.X[t, self.number], network.y[t, self.number])
        self.predictions[t] = info.prediction
        if agent.round % network.checkpoint_every == 0:
            self.disk = agent.state().to_bytes()
        self.send()
        self.work()

    def remind(self, starts: int) -> None:
        """Ask again, if no round has passed for a while; messages do not count, others may be asking too."""
        if starts != self.starts:
            return
        self.network.after(REMINDER, self.remind, starts)
        stands, self.reminded = self.agent.round == self.reminded, self.agent.round
        if stands and not self.agent.ready:
            self.agent.remind()
            self.send()
            self.work()

    def meet(self, name: str, starts: int) -> None:
        """Notice that a neighbour is there."""
        if starts == self.starts and self.network.reachable(self.name, name):
            self.view[name] = True
            self.agent.connected(name)
            self.send()
            self.work()

    def miss(self, name: str, starts: int, turn: int) -> None:
        """Notice that a neighbour is gone, and has been since ``turn``."""
        if starts != self.starts or turn != self.turns[name]:
            return
        if self.view[name] and not self.network.reachable(self.name, name):
            self.view[name] = False
            self.agent.disconnected(name)
            self.send()
            self.work()


@final
class VirtualNetwork:
    """Hosts, and what lies between them.

    Parameters
    ----------
    learner, features, network
        As for ``lc.simulate``.
    X, y : arrays (T, N, d), (T, N)
        The streams: round t of agent i learns from ``X[t-1, i]``, whenever that round comes.
    clock : "lockstep" or "slotted"
    faults : iterable of Fault
    seed : int
        All chance is drawn from it.
    checkpoint_every : int
        Rounds between two writings to disk; 1 loses nothing in a crash.
    heartbeat : int
        Of the agents, on slots.

    Examples
    --------
    >>> import numpy as np, laconic as lc
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
    ) -> None:
        self.X, self.y = X, y
        self.slotted = clock == "slotted"
        self.faults = tuple(faults)
        self.checkpoint_every = checkpoint_every
        self.now, self.target = 0.0, 0
        self._random = np.random.default_rng(seed)
        self._numbers: list[float] = []
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self.carried = self.lost = self.in_flight = 0
        self._started = False
        names = network.names
        self.hosts: dict[str, Host] = {}
        for i, name in enumerate(names):
            others = [names[j] for j in network.neighbours[network.starts[i] : network.starts[i + 1]]]

            def make(name: str = name, others: list[str] = others) -> Agent:
                options: dict[str, Any] = {"clock": clock, "heartbeat": heartbeat}
                return Agent(name, others, features, learner, n_agents=network.n_agents, **options)

            self.hosts[name] = Host(self, i, make)
        self._arrange_faults()

    def _arrange_faults(self) -> None:
        for fault in self.faults:
            if isinstance(fault, Crash):
                host = self.hosts[fault.host]
                self.at(fault.start, host.crash, fault.disk)
                self.at(fault.stop, host.start)
                self.at(fault.start, self._change_of_view, fault.host)
                self.at(fault.stop, self._change_of_view, fault.host)
            elif isinstance(fault, Partition):
                for name in fault.inside:
                    self.at(fault.start, self._change_of_view, name)
                    self.at(fault.stop, self._change_of_view, name)

    def _change_of_view(self, name: str) -> None:
        """Let all that have to do with a host notice, in a while, whether they reach it."""
        for other in self.hosts[name].agent.neighbours:
            for one, two in ((name, other), (other, name)):
                host = self.hosts[one]
                host.turns[two] += 1
                noticed = self.draw(*NOTICED)
                if self.reachable(one, two):
                    self.after(noticed, host.meet, two, host.starts)
                else:
                    patience = 0.0 if self.slotted else PATIENCE
                    self.after(noticed + patience, host.miss, two, host.starts, host.turns[two])

    # ----------------------------------------------------------------------------------------------------------------
    # Time and chance

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen."""
        self._count += 1
        heapq.heappush(self._queue, (time, self._count, action, arguments))

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen in a while."""
        self.at(self.now + delay, action, *arguments)

    def draw(self, low: float, high: float) -> float:
        """A number uniform in [low, high), from the run's one seed."""
        if not self._numbers:
            self._numbers = self._random.random(256).tolist()
        return low + (high - low) * self._numbers.pop()

    def run(self, target: int, until: float = float("inf"), limit: float = 1e4) -> None:
        """Let time pass until all agents have finished round ``target`` and all messages have come; or ``until``.

        ``limit`` is the virtual time after which an agent that has not got there counts as stuck.
        """
        if not self._started:
            self._start()
        self.target = target
        for host in self.hosts.values():
            if host.alive:
                host.work()
        while self._queue and self._queue[0][0] <= min(until, limit):
            if until == float("inf") and self.settled(target):
                return
            self.now, _, action, arguments = heapq.heappop(self._queue)
            action(*arguments)
        self.now = max(self.now, min(until, limit))

    def _start(self) -> None:
        self._started = True
        for host in self.hosts.values():
            host.start(first=True)

    def settled(self, target: int) -> bool:
        """Whether all have finished round ``target``, and nothing is under way."""
        return self.in_flight == 0 and all(
            host.alive and host.agent.round >= target and host.agent.ready for host in self.hosts.values()
        )

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

    def carry(self, sender: str, receiver: str, data: bytes) -> None:
        """Take a message under way, if the faults of the moment let it."""
        copies = 1
        latency = self.draw(*LATENCY)
        for fault in self.faults:
            if not fault.start <= self.now < fault.stop:
                continue
            if isinstance(fault, Drop) and self.draw(0, 1) < fault.share:
                copies = 0
            elif isinstance(fault, Delay):
                latency += self.draw(0, fault.most)
            elif isinstance(fault, Duplication) and self.draw(0, 1) < fault.share:
                copies *= 2
            elif isinstance(fault, Corruption) and self.draw(0, 1) < fault.share:
                data = self._corrupt(data)
        self.carried += 1
        self.lost += copies == 0
        for copy in range(copies):
            self.in_flight += 1
            self.after(latency + copy * self.draw(0, 1), self._deliver, sender, receiver, data)

    def _deliver(self, sender: str, receiver: str, data: bytes) -> None:
        self.in_flight -= 1
        if self.reachable(sender, receiver, dead_senders=True):
            self.hosts[receiver].receive(data, sender)

    def _corrupt(self, data: bytes) -> bytes:
        if self.draw(0, 1) < 0.3 or not data:
            return data[: int(self.draw(0, len(data)))]
        spoiled = bytearray(data)
        spoiled[int(self.draw(0, len(data)))] ^= 1 << int(self.draw(0, 8))
        return bytes(spoiled)

    def reachable(self, one: str, two: str, dead_senders: bool = False) -> bool:
        """Whether ``two`` can hear ``one`` now."""
        if not self.hosts[two].alive or not (dead_senders or self.hosts[one].alive):
            return False
        return not any(
            isinstance(fault, Partition)
            and fault.start <= self.now < fault.stop
            and (one in fault.inside) != (two in fault.inside)
            for fault in self.faults
        )

    def slowness(self, name: str) -> float:
        """How many times as long as usual a host takes now."""
        return max([1.0, *(f.factor for f in self.faults if isinstance(f, Slow) and self._holds(f, name))])

    def clock_rate(self, name: str) -> float:
        """How much too fast a host's clock runs now."""
        return max([1.0, *(f.rate for f in self.faults if isinstance(f, Skew) and self._holds(f, name))])

    def _holds(self, fault: Slow | Skew, name: str) -> bool:
        return fault.host == name and fault.start <= self.now < fault.stop

    def predictions(self) -> Array:
        """What was predicted, (T, N); NaN where an agent had no such round."""
        table = np.full((self.target, len(self.hosts)), np.nan)
        for i, host in enumerate(self.hosts.values()):
            for t, prediction in host.predictions.items():
                if t < self.target:
                    table[t, i] = prediction
        return table
