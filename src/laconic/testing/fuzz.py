"""Spoiled messages through ``Agent.receive``, and what must hold of whoever is told them.

Real messages of every kind, which their receiver would take, are spoiled. As they come, none may be taken: nothing is
raised and the state stays what it is, to the bit. Others are *sealed* again with the right checksum, as a neighbour out
of its mind would send them. Some of those say something and are taken; nothing may be raised then either, and the state
stays finite. ``benchmarks/fuzz.py`` does this a million times.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np

from laconic.channel import Censor, Channel, Quantizer
from laconic.engine import Diverged
from laconic.features import RandomFeatures
from laconic.learners import ODKLA, Learner, WaveRLS
from laconic.protocol import Agent, AgentState, NotReady
from laconic.protocol.dialogue import Message
from laconic.protocol.messages import Farewell, Kind, Refused
from laconic.testing.spoiler import Spoiler

FEATURES = RandomFeatures.gaussian(n_inputs=3, n_frequencies=8, bandwidth=0.6, seed=4)
CENSOR = Censor(2.0, 0.99)  # with which some rounds are silent and some are not
TARGETS = {
    "dense, lockstep": (Channel(CENSOR), "lockstep", "float64"),
    "dense float32, slotted": (Channel(), "slotted", "float32"),
    "3 bits, slotted": (Channel(quantizer=Quantizer(3)), "slotted", "float64"),
    "5 bits of a fixed range, lockstep": (
        Channel(CENSOR, Quantizer(5, range=(-0.6, 0.5))),
        "lockstep",
        "float64",
    ),
    "3 bits float32, slotted, rejoining": (Channel(CENSOR, Quantizer(3)), "slotted", "float32"),
}
WAVING = {"waves, lockstep": (WaveRLS(), "lockstep", "float64"), "waves, slotted": (WaveRLS(), "slotted", "float64")}
KINDS = {int(kind): kind.name.lower() for kind in Kind}
LOOK_EVERY = 500  # messages between two looks at the state
START_AGAIN = 50  # messages of a mad neighbour after which the receiver is put back


class Target:
    """Ben, between ann and cid, in the middle of a run; and what he might be told next.

    Attributes
    ----------
    messages : list of bytes
        Of every kind: from ann, who leads, and those of a follower from cid.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.learner: Learner
        if name in WAVING:
            self.learner, self.clock, self.dtype = WAVING[name]
        else:
            channel, self.clock, self.dtype = TARGETS[name]
            self.learner = ODKLA(rho=0.3, eta=2.0, channel=channel)
        self.rejoining = name.endswith("rejoining")
        self._random = np.random.default_rng(0)
        agents = {name: self._make(name, others) for name, others in (("ann", "bc"), ("ben", "ac"), ("cid", "ab"))}
        self._carry(agents)
        for _ in range(30):
            self._round(agents)
            self._carry(agents)
        self._ben = copy.deepcopy(agents["ben"])
        self.messages = list(self._tell(agents))
        self.originals = set(self.messages)

    def _make(self, name: str, others: str) -> Agent:
        names = [next(full for full in ("ann", "ben", "cid") if full[0] == letter) for letter in others]
        return Agent(name, names, FEATURES, self.learner, n_agents=3, clock=self.clock, dtype=self.dtype, heartbeat=1)

    def _round(self, agents: dict[str, Agent]) -> None:
        for agent in agents.values():
            x = self._random.uniform(size=3)
            agent.learn(x, float(np.sin(4 * x[0]) + self._random.normal()))

    def _carry(self, agents: dict[str, Agent]) -> None:
        while letters := [(name, message) for name in agents for message in agents[name].outgoing()]:
            for sender, message in letters:
                agents[message.to].receive(message.data, sender)

    def _tell(self, agents: dict[str, Agent]) -> Iterator[bytes]:
        """What ben's neighbours say to him from now on, of every kind: ann, who leads, and cid, who follows."""
        seen: set[int] = set()

        def heard(letters: list[tuple[str, Message]]) -> Iterator[bytes]:
            for sender, message in letters:
                kind = message.data[2] & 15
                if message.to != "ben" or (sender == "cid" and kind not in _FOLLOWERS):
                    continue
                if kind not in seen or kind >= Kind.HELLO:
                    seen.add(kind)
                    yield message.data

        def carry() -> Iterator[bytes]:
            while letters := [(name, message) for name in agents for message in agents[name].outgoing()]:
                yield from heard(letters)
                for sender, message in letters:
                    agents[message.to].receive(message.data, sender)

        ann = agents["ann"]._dialogue
        ann.send(ann.ends["ben"], Farewell(ann.ends["ben"].tag))  # not that she means it
        yield agents["ann"].outgoing()[-1].data
        for _ in range(40):
            self._round(agents)
            yield from carry()
        for again in range(2):  # edges close, and open again: the same session goes on, or after a round a new one does
            for one, two in (("ann", "ben"), ("ben", "cid")):
                agents[one].disconnected(two)
                agents[two].disconnected(one)
            for _ in range(again):
                self._round(agents)
            agents["ann"].connected("ben")
            agents["cid"].connected("ben")
            yield from carry()
        agents["ann"].connected("ben")  # she asks what she has missed
        agents["ann"].leave()
        yield from heard([("ann", message) for message in agents["ann"].outgoing()])
        cid = agents["cid"]._dialogue
        cid.send(cid.ends["ben"], Refused(1))
        yield agents["cid"].outgoing()[-1].data

    def receiver(self) -> Agent:
        """Ben, as he was: the same process."""
        ben = copy.deepcopy(self._ben)
        if self.rejoining:
            ben.rejoin()
            ben.outgoing()
        return ben


_FOLLOWERS = (Kind.HELLO, Kind.OFFER, Kind.CONFIRM)


def digest(agent: Agent) -> bytes:
    """All that a message could change, in short."""
    dialogue = agent._dialogue
    rest = [
        (name, end.stage, end.shut, end.held, end.out, end.call, end.asked, end.requested, end.claim)
        for name, end in dialogue.ends.items()
    ]
    more = (rest, agent.waiting, dialogue.joining, dialogue.letters)
    return hashlib.blake2b(agent.state().to_bytes() + repr(more).encode()).digest()


def fuzz_as_they_come(target: Target, spoiler: Spoiler, n_messages: int) -> Counter[str]:
    """Refusals by reason; AssertionError if anything else happens than a refusal."""
    ben = target.receiver()
    before = digest(ben)
    for k in range(n_messages):
        data = spoiler.spoil(target.messages)
        while data in target.originals:
            data = spoiler.spoil(target.messages)
        ben.receive(data, ("ann", "ann", "cid", None)[k % 4])
        if (k + 1) % LOOK_EVERY == 0 or k + 1 == n_messages:
            assert digest(ben) == before, f"{target.name}: the state has changed by message {k + 1} or shortly before."
    refusals = Counter(ben.counters["refusals"])
    assert refusals.total() == n_messages, f"{target.name}: {n_messages - refusals.total()} messages were taken."
    return refusals


def fuzz_sealed(target: Target, spoiler: Spoiler, n_messages: int) -> Counter[str]:
    """Refusals by reason, and how many were taken; AssertionError if the state does not stay finite."""
    outcome: Counter[str] = Counter()
    ben = target.receiver()
    for k in range(n_messages):
        ben.receive(spoiler.seal(target.messages), ("ann", "ann", "cid", None)[k % 4])
        if k % 7 == 0:
            try:
                ben.idle()
            except (NotReady, Diverged):
                ben.remind()
        ben.outgoing()
        if (k + 1) % START_AGAIN == 0 or k + 1 == n_messages:
            for name, values in ben.state().arrays.items():
                assert np.isfinite(values).all(), f"{target.name}: {name} is not finite after message {k + 1}."
            assert AgentState.from_bytes(ben.state().to_bytes()) == ben.state()
            refusals = Counter(ben.counters["refusals"])
            outcome += refusals + Counter(taken=ben.counters["messages_in"] - refusals.total())
            ben = target.receiver()
    return outcome
