"""Neighbours that lie with a right checksum: hostile values in every field of every kind of message, rightly addressed.

Ben has two honest neighbours, abe and cid, and two hostile ones: ann, who leads on her edge, and eve, who follows on
hers. The hostile ones are whole agents, so their sessions, echoes and numbers are real; but much of what they say is
changed, field by field, before ben hears it, and they say more than they should. Whatever they say,

- nothing is raised, and warnings are faults;
- between two rounds ben's model, broadcast, and edges with others stay what they were, to the bit (in lockstep a jump
  of the round opens them anew);
- what ben holds stays finite and within the limits, and so does what waits to be sent;
- when they are gone, ben and the honest ones are together, with equal replicas and shares that cancel.
"""

from __future__ import annotations

import copy
import math
import random
import zlib
from collections import Counter
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.engine import Diverged
from laconic.learners import ODKLA
from laconic.protocol import Agent, AgentState
from laconic.protocol.accounts import Accounts
from laconic.protocol.ends import ALLOWANCE
from laconic.protocol.handshake import COUNT_LIMIT
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Letter,
    Offer,
    Refused,
    Request,
    Statement,
)
from laconic.protocol.session import GONE, HELD, LOGGED, SUPERSEDED, Session
from laconic.protocol.wire import MODEL_LIMIT, SHARE_LIMIT
from laconic.testing.fuzz import FEATURES, TARGETS

AROUND = {"abe": "bc", "ann": "b", "ben": "aAce", "cid": "ab", "eve": "b"}
NAMES = {"a": "abe", "A": "ann", "b": "ben", "c": "cid", "e": "eve"}
HONEST, HOSTILE = ("abe", "ben", "cid"), ("ann", "eve")
START_AGAIN = 250  # lies after which all begin anew
ROUND_EVERY = 6  # lies between two rounds, about
_COUNTS = (0, 1, 2, 3, 7, 8, 9, 10, 11, 64, 65, 1000, 1 << 18, 1 << 20, 1 << 46, (1 << 47) - 2, (1 << 47) - 1, 1 << 50)
_SIZES = (0.0, -0.0, 1e-320, 1e-30, 1.0, 30.0, 1e3, 1e5, 1e6, 1e7, 1e11, 1e15, 1.1e15, 1e30, 1.1e30, 1e38, math.inf)


class Scene:
    """Five agents in the middle of a run, of which ben is lied to."""

    def __init__(self, target: str) -> None:
        channel, self.clock, self.dtype = TARGETS[target]
        self.name, self.learner = target, ODKLA(rho=0.3, eta=2.0, channel=channel)
        self.samples = np.random.default_rng(5)
        options: dict[str, Any] = {"n_agents": 5, "clock": self.clock, "dtype": self.dtype, "heartbeat": 2}
        self.agents = {
            name: Agent(name, [NAMES[key] for key in others], FEATURES, self.learner, **options)
            for name, others in AROUND.items()
        }
        for _ in range(12):
            self.carry()
            self.round()
        self.carry()

    @property
    def ben(self) -> Agent:
        """Who is lied to."""
        return self.agents["ben"]

    def round(self, names: tuple[str, ...] = tuple(AROUND)) -> int:
        """A round of all that are ready, reminders for the others; how many honest models left all bounds."""
        lost = 0
        for name in names:
            agent, x = self.agents[name], self.samples.uniform(size=3)
            if agent.ready:
                try:
                    agent.learn(x, float(np.sin(4 * x[0])))
                except Diverged:
                    lost += name in HONEST
            else:
                agent.remind()
        return lost

    def carry(self, names: tuple[str, ...] = tuple(AROUND)) -> None:
        """Carry what these say to each other until they have nothing left to say."""
        for _ in range(60):
            letters = [(name, message) for name in names for message in self.agents[name].outgoing()]
            if not letters:
                return
            for sender, message in letters:
                if message.to in names:
                    self.agents[message.to].receive(message.data, sender)


class Liar:
    """Makes lies, by chance from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def lie(self, scene: Scene, name: str) -> bytes:
        """What a hostile neighbour says to ben: something that is nearly right, with a right checksum."""
        me, choice = scene.agents[name], self.random.choice
        end, at_ben = me._dialogue.ends["ben"], scene.ben._dialogue.ends[name]
        letter = self._begin(scene, me, choice((end, at_ben)), at_ben)
        fields = letter._fields
        for field in self.random.sample(fields, min(len(fields), choice((0, 1, 1, 1, 2, 3)))):
            if field not in ("kind", "data", "content"):
                letter = letter._replace(**{field: self._spoil(field, getattr(letter, field), scene)})
        if isinstance(letter, Statement) and self.random.random() < 0.7:
            letter = letter._replace(digest=self._digest(scene.ben, at_ben, letter))
        return me._wire.encode(letter, scene.ben._wire.sender, not me._dialogue.ends["ben"].leads)

    def _begin(self, scene: Scene, me: Agent, end: Session, at_ben: Session) -> Letter:
        """A letter of any kind, mostly the one that ben would take now."""
        dialogue, n, choice = me._dialogue, FEATURES.n_features, self.random.choice
        inc = choice((dialogue.inc, dialogue.inc, dialogue.inc, 1, *at_ben.superseded, self.random.getrandbits(64)))
        tags = [end.tag, at_ben.tag, at_ben.tag]
        if at_ben.pend is not None:
            tags.append(scene.ben._wire.tag_of(*at_ben.pend))
        tag, ben = choice(tags), scene.ben._dialogue
        known = tag, end.g, end.k, end.spoken, end.heard, len(end.log), bool(choice((0, 1))), bool(choice((0, 0, 1)))
        hat, share = self._vector(scene, 1.0), self._vector(scene, 30.0)
        said = Kind.DIFFERENCE if scene.ben._wire.packed_size else Kind.DENSE
        kind = choice((said, said, said, said, Kind.SILENCE, Kind.FULL, Kind.DIFFERENCE, Kind.DENSE))
        call = ben.inc, at_ben.call
        out = (at_ben.out.inc, at_ben.out.ctr) if at_ben.out is not None else (ben.inc, ben.ctr)
        leader = at_ben.out.echo[0] if at_ben.out is not None else inc
        return choice(
            (
                Hello(inc, tag),
                Call(inc, self.random.randrange(9), me.round, 1, tag, bool(choice((0, 1)))),
                Offer(call, inc, self.random.randrange(99), me.round, 1, *known, hat, share),
                Decide(out, leader, self.random.randrange(99), ben.round, 1, at_ben.g + 1, False, hat, share),
                Decide(out, leader, self.random.randrange(99), ben.round, 1, at_ben.g + 1, True),
                Confirm(tag),
                Request(tag, choice((0, end.spoken, at_ben.spoken))),
                Farewell(tag),
                Refused(ben.inc if self.random.random() < 0.002 else inc),  # the truth shuts the edge for good
                self._statement(scene, tag, at_ben, kind, hat, n),
                self._statement(scene, tag, at_ben, kind, hat, n),
                self._statement(scene, tag, at_ben, kind, hat, n),
            )
        )

    def _statement(self, scene: Scene, tag: int, at_ben: Session, kind: Kind, hat: Array, n: int) -> Statement:
        wire, data = scene.ben._wire, b""
        if kind is Kind.DIFFERENCE:
            packed = np.frombuffer(self.random.randbytes(wire.packed_size), dtype=np.uint8).copy()
            if n * wire._bits % 8 and packed.size:
                packed[-1] &= (1 << n * wire._bits % 8) - 1
            data = wire.difference(packed, min(abs(self._size()), 3e38))
        elif kind is not Kind.SILENCE:
            data = wire.model(hat)
        return Statement(tag, at_ben.heard + 1, at_ben.k + self.random.choice((0, 1, 1, 2)), 1, 0, kind, data)

    def _digest(self, ben: Agent, end: Session, statement: Statement) -> int:
        """What ben will compute of it, if he takes it."""
        dialogue, ledger = ben._dialogue, ben._ledger
        assert isinstance(ledger, Ledger) and isinstance(dialogue.accounts, Accounts)
        row = ledger.said(end.index)
        before = row.copy()
        try:
            read = dialogue.wire._read_statement(statement.kind, statement.data)
            if read is not None:
                ledger.hear(end.index, statement.kind, *read)
            return dialogue.accounts._digest(end.index, end.index, dialogue.digest_of(end, statement.n))
        except Exception:  # he will refuse it
            return zlib.crc32(b"")
        finally:
            row[:] = before

    def _size(self) -> float:
        return self.random.choice(_SIZES) * self.random.choice((1.0, -1.0))

    def _vector(self, scene: Scene, usual: float) -> Array:
        n, size = FEATURES.n_features, usual if self.random.random() < 0.6 else self._size()
        vector = np.array([self.random.uniform(-1, 1) for _ in range(n)])
        with np.errstate(invalid="ignore", over="ignore"):
            vector = vector * size if self.random.random() < 0.7 else np.full(n, size)
            return vector.astype(scene.dtype)

    def _spoil(self, field: str, value: Any, scene: Scene) -> Any:
        choice = self.random.choice
        if field in ("hat", "share"):
            return None if value is None else self._vector(scene, 1e6)
        if field == "echo":
            return choice((value, (value[0], value[1] + choice((-1, 1))), (self.random.getrandbits(64), value[1])))
        if isinstance(value, bool):
            return not value
        if field == "inc":
            return choice((0, 1, self.random.getrandbits(64)))
        if field == "tag":
            return choice((0, 2, self.random.getrandbits(64) & ~1, value))
        if field == "digest":
            return self.random.getrandbits(32)
        return max(0, choice((*_COUNTS, value + 1, value - 1, value + 10, value + 11, value + (1 << 18))))


def fuzz_hostile(scene: Scene, liar: Liar, n_messages: int) -> Counter[str]:
    """Refusals by reason, lies that were taken, and models lost; AssertionError if anything that must hold does not."""
    outcome: Counter[str] = Counter()
    done = 0
    while done < n_messages:
        count = min(START_AGAIN, n_messages - done)
        outcome += _lie_for_a_while(copy.deepcopy(scene), liar, count)
        done += count
    return outcome


def _lie_for_a_while(scene: Scene, liar: Liar, n_messages: int) -> Counter[str]:
    ben, lost, taken = scene.ben, 0, Counter[str]()
    told, before = Counter(ben.counters["refusals"]), ben.counters["messages_in"]
    for k in range(n_messages):
        name = liar.random.choice(HOSTILE)
        data = liar.lie(scene, name)
        held, round, refused = _whole(ben, name), ben.round, sum(ben.counters["refusals"].values())
        ben.receive(data, name)
        taken["taken"] += sum(ben.counters["refusals"].values()) == refused
        if ben.round == round:
            assert _whole(ben, name) == held, f"{scene.name}: lie {k} of {name} has changed what is not its own."
        else:
            assert ben.clock == "lockstep" and _whole(ben, name)[:2] == held[:2]
        _check_limits(scene, k)
        if liar.random.random() < 0.5:
            scene.carry()
        if liar.random.randrange(ROUND_EVERY) == 0:
            lost += scene.round()
        if ben._dialogue.ends[name].stage is GONE and liar.random.random() < 0.3:  # or it would not be heard any more
            ben.connected(name)
            scene.agents[name].connected("ben")
    refusals = Counter(ben.counters["refusals"]) - told
    assert ben.counters["messages_in"] - before >= n_messages
    for values in ben.state().arrays.values():
        assert np.isfinite(values).all(), f"{scene.name}: what ben holds is not finite."
    _check_honest(scene)
    return refusals + taken + Counter({"models lost": lost})


def _whole(ben: Agent, but: str) -> tuple[Any, ...]:
    """What a lie of one neighbour must not change: model, broadcast, and the edges with all others."""
    ends, ledger = ben._dialogue.ends.values(), ben._ledger
    assert isinstance(ledger, Ledger)
    others = [(e.stage, e.tag, e.heard, e.k, zlib.crc32(ledger.said(e.index).tobytes())) for e in ends if e.name != but]
    shares = [ledger.shares[e.index].tobytes() for e in ends if e.name != but]
    return ledger.weights.tobytes(), ledger.said(0).tobytes(), others, shares


def _check_limits(scene: Scene, k: int) -> None:
    dialogue, ledger = scene.ben._dialogue, scene.ben._ledger
    assert isinstance(ledger, Ledger)
    assert len(dialogue.letters) <= 8 * ALLOWANCE * len(dialogue.ends), f"{scene.name}: too much to say after lie {k}."
    assert len(dialogue.news) <= 64 and len(dialogue.told) <= 32
    assert dialogue.round < COUNT_LIMIT
    for end in dialogue.ends.values():
        assert len(end.held) <= HELD and len(end.log) <= LOGGED and len(end.superseded) <= SUPERSEDED
        assert max(end.g, end.k, end.spoken, end.heard, end.claim, end.degree, end.label) < COUNT_LIMIT
    n = len(dialogue.ends)
    assert np.abs(ledger.row.replicas[1 : 1 + n]).max() <= MODEL_LIMIT
    assert np.abs(ledger.shares[1 : 1 + n]).max() <= 2 * SHARE_LIMIT


def _check_honest(scene: Scene) -> None:
    """The hostile ones are gone: the honest ones get together, or have been."""
    ben, agents = scene.ben, {name: scene.agents[name] for name in HONEST}
    for name in HOSTILE:
        ben.disconnected(name)
    for _ in range(12):
        scene.carry(HONEST)
        for agent in agents.values():
            agent.remind()
    scene.carry(HONEST)
    for name, agent in agents.items():
        for other, stage in agent.edges.items():
            if other in HOSTILE:
                continue
            where = f"{scene.name}: {name} of {other}"
            assert stage == "live", f"{where} is {stage}."
            heard, said = agent.heard(other), agents[other].position(name)
            if agent.clock == "lockstep" and agent.round != agents[other].round:  # a model was lost, so one waits
                waits = agent.round < agents[other].round
                assert heard == said._replace(statement=said.statement - waits), f"{where} is too far behind."
                continue
            assert heard == said, f"{where} has not heard all."
            assert np.array_equal(agent.replica(other), agents[other].broadcast), f"{where}: the replica is wrong."
            behind = max(0, agents[other].edge_round(name) - agent.edge_round(other))
            ahead = max(0, agent.edge_round(other) - agents[other].edge_round(name))
            apart = agent.broadcast.astype(np.float64) - agent.replica(other)
            both = agent.share(other) + agents[other].share(name) + (behind - ahead) * apart
            size = 1 + np.abs(agent.share(other)).max() + (1 + behind + ahead) * np.abs(agent.broadcast).max()
            assert np.abs(both).max() <= 1e-6 * size, f"{where}: shares do not cancel."
    assert AgentState.from_bytes(ben.state().to_bytes()) == ben.state()
