"""All states of a few agents: the shipped conversation, with whole numbers for vectors, on a network that keeps all.

The network is the set of all letters ever sent: any of them may be delivered at any time, any number of times, or
never, so loss, doubling, reordering, delay across restarts and replay are all in it. Every process adds its own weight
to its broadcast in each round: whatever is said twice differently, or counted twice, shows. ``explore`` goes breadth
first; ``walk`` goes deep at random.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from laconic.protocol.conversation import Conversation
from laconic.protocol.messages import Decide, Farewell, Kind, Offer, Refusal, Statement
from laconic.protocol.session import GONE, LIVE, OPENING, Session
from laconic.protocol.table import TABLE

KEPT = [f.name for f in fields(Session)]
KEPT = KEPT[: KEPT.index("held")]  # the rest is for the driver, or not in the model
_AT = {name: i for i, name in enumerate(KEPT)}
FAULTS = ("newest", "old", "none", "mark", "cut", "clone", "remove", "wipe")
_ENDS = {True: "leader", False: "follower"}
WEIGHTS = (1, 5, 17, 40, 90, 200, 450, 1000, 2100, 4500)


class Broken(Exception):
    """Something that has to hold does not."""


class Whole:
    """A book of whole numbers: see ``laconic.protocol.session.Book``."""

    def __init__(self, hat: int, replicas: dict[int, int], shares: dict[int, int]) -> None:
        self.now, self.replicas, self.shares = hat, replicas, shares

    def hat(self):
        return self.now

    def is_hat(self, hat):
        return hat == self.now

    def is_blank(self, hat):
        return not hat

    def share(self, index):
        return self.shares[index]

    def opposite(self, share):
        return -share

    def nothing(self):
        return 0

    def open(self, index, replica, share):
        self.replicas[index], self.shares[index] = replica or 0, share

    def listen(self, indices, grown):
        for i in set(indices) - set(grown):
            self.shares[i] += self.now - self.replicas[i]

    def let_pass(self, index, rounds):
        self.shares[index] += rounds * (self.now - self.replicas[index])

    def hear(self, index, statement, late, digest_of):
        new = statement.data if statement.kind is Kind.FULL else self.replicas[index] + statement.data
        if statement.digest != (new, digest_of * self.shares[index]):
            raise Broken(f"digests differ: {statement.digest} {(new, digest_of * self.shares[index])}")
        self.shares[index] -= late * (new - self.replicas[index])
        self.replicas[index] = new
        return ""

    def digest(self, index, digest_of):
        return self.now, digest_of * self.shares[index]

    def full(self):
        return Kind.FULL, self.now

    def settle(self, indices):
        pass


class Process(NamedTuple):
    """A process, frozen: ``ends`` are (fields of the session, replica, share); memories are (round, hat, ends)."""

    name: str
    inc: int
    ctr: int
    round: int
    finished: int
    hat: int
    ends: tuple
    newest: tuple = ()
    old: tuple = ()


class World(NamedTuple):
    """Processes, all letters ever sent, the next incarnation, and the faults that are left."""

    processes: tuple
    net: frozenset
    inc: int
    left: tuple


def tag_of(offer: Offer, decide: Decide) -> tuple:
    """Who made it when. In an agent it is a digest of all that is in the two; here even this has to be enough."""
    return decide.inc, decide.ctr, offer.inc, offer.ctr


class Bounded(Conversation):
    """A conversation that is asked to call by the explorer, keeps no more than needed, and stops at some number."""

    held, logged, apart, allowance, witnessed = 0, 2, 3, 10**9, 1
    calls = offers = 99
    quiet = False

    def awaits(self, end):
        return False  # a courtesy that ends: a round may begin at any time

    def handle(self, end, event):
        before = end.stage
        for row in TABLE:
            fits = type(event) is row.event and before in row.stages and row.end in ("", _ENDS[end.leads])
            if fits and (not row.condition or getattr(self, row.condition)(end, event)):
                getattr(self, row.action)(end, event)
                if end.stage not in row.then and not (None in row.then and end.stage is before):
                    raise Broken(f"{row} ended in {end.stage}")
                return

    def seek(self, end, letter=None):
        if not self.quiet:
            super().seek(end, letter)

    call = seek

    def offer(self, end, call):
        if self.ctr < self.offers or (end.out and end.out.echo == (call.inc, call.call)):
            super().offer(end, call)

    def decide(self, end, offer):
        if end.call < self.calls:
            super().decide(end, offer)

    @staticmethod
    def restore(end):
        end.restart()

    def is_of_a_superseded(self, end, letter):
        return False  # fencing has its own tests

    def refuse_replayed(self, end, letter):
        pass


@dataclass
class Model:
    """What is explored: names, edges between them, rounds, how often each fault may befall, and the rules."""

    names: tuple
    links: tuple
    rounds: int
    budget: dict
    slots: bool = False
    ideal: bool = False  # nothing but newest memories: every number has to be that of a run without faults
    rules: type = Bounded
    saves_installs: bool = True
    calls: int = 2
    offers: int = 2
    warm: int = 0

    # -- freezing and thawing

    def thaw(self, p: Process, quiet: bool = True) -> Bounded:
        replicas, shares = {}, {}
        book = Whole(p.hat, replicas, shares)
        c = self.rules(p.name, not self.slots, book, p.inc, tag_of, heartbeat=99)
        c.ctr, c.round, c.finished, c.quiet = p.ctr, p.round, p.finished, quiet
        if quiet:
            c.calls, c.offers = self.calls, self.offers
        for values, replica, share in p.ends:
            end = Session(*values)
            c.ends[end.name] = end
            replicas[end.index], shares[end.index] = replica, share
        return c

    def freeze(self, c: Bounded, newest: tuple, old: tuple, save: bool) -> Process:
        ends = tuple((_values(e), c.book.replicas[e.index], c.book.shares[e.index]) for e in c.ends.values())
        if save:
            newest = (c.round, c.finished, c.book.now, tuple((_remembered(v), r, s) for v, r, s in ends))
        return Process(c.name, c.inc, c.ctr, c.round, c.finished, c.book.now, ends, newest, old)

    def act(self, p: Process, what, save: bool = False, quiet: bool = True):
        """(the process afterwards, letters): ``what`` is done to it; what has to be saved is, before they leave."""
        c = self.thaw(p, quiet)
        what(c)
        letters = [(c.name, end.name, letter) for end, letter in c.letters]
        must = c.must_save and (self.saves_installs or any(isinstance(x, Decide) for _, _, x in letters))
        return self.freeze(c, p.newest, p.old, save or must), letters

    def end(self, p: Process, name: str) -> tuple:
        return next(e for e in p.ends if e[0][0] == name)

    # -- what may happen

    def start(self) -> World:
        processes = []
        for i, name in enumerate(self.names):
            others = [o for o in self.names if (name, o) in self.links or (o, name) in self.links]
            c = self.rules(name, not self.slots, Whole(0, {}, {}), i + 1, tag_of, heartbeat=99)
            for k, other in enumerate(others, 1):
                c.ends[other] = Session(other, k, leads=name < other)
                c.book.replicas[k] = c.book.shares[k] = 0
            processes.append(self.freeze(c, (), (), True))
        left = tuple(self.budget.get(fault, 0) for fault in FAULTS)
        world = World(tuple(processes), frozenset(), len(processes) + 1, left)
        for _ in range(self.warm):  # begin with sessions that have run for some rounds, and a memory of that
            world = self.heal(world)
            processes, sent = list(world.processes), []
            for i, p in enumerate(processes):
                processes[i], letters = self.begin(p)
                sent += letters
            for letter in sent:
                i = self.names.index(letter[1])
                processes[i], _ = self.receive(processes[i], letter)
            world = world._replace(processes=tuple(processes), net=world.net.union(sent))
        if self.warm:
            kept = [self.act(p, lambda c: None, save=True)[0] for p in world.processes]
            world = world._replace(processes=tuple(p._replace(old=p.newest) for p in kept))
        return world

    def weight(self, c) -> int:
        if self.ideal:  # what is said depends on the round only, as if the same sample came again
            return (1 + 2 * self.names.index(c.name)) * (c.round + 1)
        return WEIGHTS[c.inc % 10]

    def begin(self, p: Process, quiet: bool = True):
        def what(c):
            c.finish()
            weight = self.weight(c)
            c.book.now += weight
            c.begin(Kind.DIFFERENCE, weight)

        return self.act(p, what, save=True, quiet=quiet)

    def receive(self, p: Process, letter, quiet: bool = True):
        sender, _, content = letter

        def what(c):
            try:
                c.handle(c.ends[sender], content)
            except Refusal as refusal:
                raise Broken(f"refused: {refusal.reason}") from None

        return self.act(p, what, quiet=quiet)

    def ready(self, p: Process) -> bool:
        return self.slots or not self.thaw(p).waiting()

    def restart(self, p: Process, inc: int, memory: tuple) -> Process:
        c = self.rules(p.name, not self.slots, Whole(0, {}, {}), inc, tag_of, heartbeat=99)
        if memory:
            c.round, c.finished, c.book.now, ends = memory
        else:
            ends = tuple((_values(Session(v[0], v[1], v[2])), 0, 0) for v, _, _ in p.ends)
        for values, replica, share in ends:
            end = Session(*values)
            self.rules.restore(end)
            c.ends[end.name] = end
            c.book.replicas[end.index], c.book.shares[end.index] = replica, share
        return self.freeze(c, (), p.old, True)

    def steps(self, w: World):
        def use(fault):
            i = FAULTS.index(fault)
            return (*w.left[:i], w.left[i] - 1, *w.left[i + 1 :]) if w.left[i] else None

        def after(i, p, letters=(), left=None, inc=None):
            processes = (*w.processes[:i], p, *w.processes[i + 1 :])
            return World(processes, w.net.union(letters) if letters else w.net, inc or w.inc, left or w.left)

        for i, p in enumerate(w.processes):
            if p.round < self.rounds and self.ready(p):
                yield ("begin", p.name, p.inc), after(i, *self.begin(p))
            for values, _, _ in p.ends:
                other, leads, stage = values[0], values[2], values[_AT["stage"]]
                if leads and values[_AT["call"]] < self.calls:
                    q, letters = self.act(p, lambda c, o=other: Conversation.seek_again(c, c.ends[o]))
                    if not w.net.issuperset(letters):
                        yield ("call", p.name, p.inc), after(i, q, letters)
                if stage is not GONE and (left := use("cut")):
                    q, letters = self.act(p, lambda c, o=other: c.disconnected(c.ends[o]))
                    yield ("disconnected", p.name, other), after(i, q, letters, left)
                if stage is GONE and not values[_AT["fresh"]]:
                    q, letters = self.act(p, lambda c, o=other: c.connected(c.ends[o]))
                    yield ("connected", p.name, other), after(i, q, [x for x in letters if not leads])
                if values[_AT["pend"]] and (self.budget.get("cut") or self.budget.get("clone")):
                    q, _ = self.act(p, lambda c, o=other: setattr(c.ends[o], "pend", None))
                    yield ("decision given up", p.name), after(i, q)
                if left := use("remove"):  # and add it again, between two messages

                    def readd(c, o=other):
                        end = c.ends[o]
                        if end.tag:
                            c.send(end, Farewell(end.tag))
                        end.forget(OPENING, fresh=True)
                        c.book.open(end.index, None, 0)

                    q, letters = self.act(p, readd, save=True)
                    yield ("remove and add", p.name, other), after(i, q, letters, left)
            if p.newest != p.old and (left := use("mark")):
                yield ("mark", p.name), after(i, p._replace(old=p.newest), (), left)
            for fault, memory in (("newest", p.newest), ("old", p.old), ("none", ())):
                if (fault != "old" or p.old) and (left := use(fault)):
                    yield (fault, p.name), after(i, self.restart(p, w.inc, memory), (), left, w.inc + 1)
            if len(w.processes) == len(self.names) and (left := use("clone")):
                copy = self.restart(p, w.inc, p.newest)
                yield ("clone", p.name), World((*w.processes, copy), w.net, w.inc + 1, left)
        if left := use("wipe"):
            wiped = tuple(self.restart(p._replace(old=()), w.inc + i, ()) for i, p in enumerate(w.processes))
            yield ("wipe",), World(wiped, w.net, w.inc + len(wiped), left)
        for letter in w.net:
            for i, p in enumerate(w.processes):
                if p.name == letter[1]:
                    q, letters = self.receive(p, letter)
                    if q != p or letters:
                        n = after(i, q, letters)
                        if n != w:
                            yield ("deliver", letter, p.inc), n

    # -- what has to hold

    def check(self, w: World, whole: bool = False) -> str:
        """What does not hold; ``whole``: all have to be together, and have heard all."""
        said, records, offers = {}, {}, {}
        for sender, _, x in w.net:
            if isinstance(x, Statement):
                if said.setdefault((sender, x.tag, x.n), x) != x:
                    return f"a position was used twice: {sender} {x.tag} {x.n}"
            elif isinstance(x, Decide):
                if records.setdefault((x.inc, x.ctr), x) != x:
                    return "two records under one tag"
            elif isinstance(x, Offer):
                offers[x.inc, x.ctr] = x
        for p in w.processes:
            for values, _, _ in p.ends:
                tag = values[_AT["tag"]]
                if values[_AT["stage"]] is LIVE and p.inc not in (tag[0], tag[2]):
                    return "a session used by another incarnation"
        if len(w.processes) > len(self.names):
            return ""
        by = {p.name: p for p in w.processes}
        for a, b in self.links:
            why = self.check_edge(by[a], by[b], whole)
            if why:
                return why
        return ""

    def check_edge(self, p: Process, q: Process, whole: bool) -> str:
        sides = []
        for one, other in ((p, q), (q, p)):
            values, replica, share = self.end(one, other.name)
            sides.append((one, other, Session(*values), replica, share))
        (_, _, x, x_replica, x_share), (_, _, y, y_replica, y_share) = sides
        if self.ideal:
            for one, other, e, replica, share in sides:
                if one.hat != self.told(one.name, one.round):
                    return "own history differs from the run without faults"
                counted = sum(self.told(one.name, i) - self.told(other.name, i) for i in range(1, e.k + 1))
                if e.tag and (replica != self.told(other.name, e.heard) or share != counted):
                    return "edge differs from the run without faults"
        if not (x.stage is LIVE and y.stage is LIVE and x.tag == y.tag):
            return f"not live together: {x.stage} {x.tag} {y.stage} {y.tag}" if whole else ""
        for e, f, replica, other in ((x, y, x_replica, q), (y, x, y_replica, p)):
            if e.heard > f.spoken:
                return "heard more than was said"
            if e.heard == f.spoken and f.intact and replica != other.hat:
                return f"replica differs: {replica} {other.hat}"
        if x.heard == y.spoken and y.heard == x.spoken:
            last = max(x.k, y.k)
            gap = x_share + y_share
            if self.slots:
                gap += (last - x.k) * (p.hat - x_replica) + (last - y.k) * (q.hat - y_replica)
            if gap and (self.slots or x.k == y.k):
                return f"shares do not cancel: {x_share} {y_share} at {x.k} {y.k}"
            if not self.slots and p.round != q.round and x.spoken == y.spoken:
                return "rounds differ"
            return ""
        return "not all heard" if whole else ""

    def told(self, name: str, round: int) -> int:
        return (1 + 2 * self.names.index(name)) * round * (round + 1) // 2

    def check_step(self, before: World, after: World) -> str:
        """Whether each new record's share is nobody's."""
        for _, to, x in after.net - before.net:
            if isinstance(x, Decide) and not x.goes_on:
                leader = next(p for p in after.processes if p.inc == x.inc)
                values, _, share = self.end(leader, to)
                offer = values[_AT["pend"]][0] if values[_AT["pend"]] else None
                if offer and (offer.inc, offer.ctr) == x.echo and x.share not in (0, share, -offer.share):
                    return "a share that neither end held"
        return ""

    def heal(self, w: World) -> World:
        """No more faults, old letters gone: all get together by what each knows and is reminded of; else Broken."""
        processes = list(w.processes[: len(self.names)])
        old = [(p.newest, p.old) for p in processes]
        talk = {p.name: self.thaw(p, quiet=False) for p in processes}
        now = w
        for turn in range(30):
            for c in talk.values():
                for end in c.ends.values():
                    if end.stage is GONE:
                        c.connected(end)
                c.remind()
                if self.slots:  # time passes, and signs of life are given
                    c.finish()
                    c.begin(Kind.SILENCE, 0)
                elif not c.waiting() and (turn > 10 or (turn > 4 and c.round < max(x.round for x in talk.values()))):
                    c.finish()
                    weight = self.weight(c)
                    c.book.now += weight
                    c.begin(Kind.DIFFERENCE, weight)
            for _ in range(200):
                letters = [(c.name, end.name, x) for c in talk.values() for end, x in c.letters]
                if not letters:
                    break
                for c in talk.values():
                    c.letters = []
                for sender, to, x in letters:
                    talk[to].handle(talk[to].ends[sender], x)
            frozen = tuple(self.freeze(c, *memory, True) for c, memory in zip(talk.values(), old, strict=True))
            now = World(frozen, frozenset(), w.inc, w.left)
            if not self.check(now, whole=True):
                return now
        raise Broken("does not heal: " + self.check(now, whole=True))

    def look(self, w: World, thorough: bool) -> None:
        """Check a state; ``thorough``: it heals, and after that, every old letter does no harm."""
        if why := self.check(w):
            raise Broken(why)
        if not thorough:
            return
        good = self.heal(w)
        n = len(self.names)
        if len(w.processes) > n:  # one of two processes of a name stops: either
            copy = w.processes[n]
            self.heal(w._replace(processes=tuple(copy if p.name == copy.name else p for p in w.processes[:n])))
        for letter in w.net:
            i = self.names.index(letter[1])
            p, _ = self.receive(good.processes[i], letter, quiet=False)
            if p[:7] != good.processes[i][:7]:
                after = good._replace(processes=(*good.processes[:i], p, *good.processes[i + 1 :]))
                if why := self.check(after):
                    raise Broken(f"{letter} once more: {why}")
                self.heal(after)


class Result(NamedTuple):
    """What an exploration found: ``broken`` is empty if all holds, and ``path`` leads to where it does not."""

    broken: str
    states: int
    complete: bool
    path: tuple = ()


def explore(model: Model, most: int, heal_every: int = 8) -> Result:
    """Breadth first, until all states have been seen or there are ``most`` of them."""
    first = model.start()
    parent: dict[World, Any] = {first: None}
    queue = deque([first])
    looked = 0
    while queue:
        w = queue.popleft()
        looked += 1
        try:
            model.look(w, heal_every > 0 and looked % heal_every == 0)
            if len(parent) < most:
                for step, n in model.steps(w):
                    if n not in parent:
                        parent[n] = step, w
                        if why := model.check_step(w, n):
                            return Result(why, len(parent), False, _path(parent, n))
                        queue.append(n)
        except Broken as broken:
            return Result(str(broken), len(parent), False, _path(parent, w))
    return Result("", len(parent), len(parent) < most)


def walk(model: Model, walks: int, length: int, seed: int, heal_every: int = 5) -> Result:
    """At random and deep, with all faults together; steps other than deliveries are as likely as deliveries."""
    chance, states = random.Random(seed), 0
    for _ in range(walks):
        w, path = model.start(), []
        try:
            for _ in range(length):
                kinds: dict[str, list] = {}
                for step, n in model.steps(w):
                    kind = step[0] if step[0] in ("begin", "deliver", "call", "connected") else "fault"
                    kinds.setdefault(kind, []).append((step, n))
                if not kinds:
                    break
                weights = [{"fault": 0.25, "deliver": 2.0}.get(kind, 1.0) for kind in sorted(kinds)]
                steps = kinds[chance.choices(sorted(kinds), weights)[0]]
                before = w
                step, w = chance.choice(sorted(steps, key=lambda x: str(x[0])))
                path.append(step)
                states += 1
                if why := model.check_step(before, w):
                    raise Broken(why)
                model.look(w, len(w.processes) == len(model.names) and chance.random() < 1 / heal_every)
        except Broken as broken:
            return Result(str(broken), states, False, tuple(path))
    return Result("", states, False)


def _values(end: Session) -> tuple:
    return tuple([getattr(end, name) for name in KEPT])


def _remembered(values: tuple) -> tuple:
    """What of an end goes into a memory: not the outstanding offer, nor the number of the next call."""
    return tuple(None if n == "out" else 0 if n == "call" else v for n, v in zip(KEPT, values, strict=True))


def _path(parent: dict, w: World) -> tuple:
    path = []
    while parent[w]:
        step, w = parent[w]
        path.append(step)
    return tuple(reversed(path))


PAIR = {"names": ("a", "b"), "links": (("a", "b"),)}
PATH = {"names": ("a", "b", "c"), "links": (("a", "b"), ("b", "c"))}
RING = {"names": ("a", "b", "c"), "links": (("a", "b"), ("b", "c"), ("a", "c"))}
_MORE = {"calls": 4, "offers": 4, "warm": 1, "rounds": 3}

SCENARIOS = {
    "pair/newest x2": Model(**PAIR, rounds=2, budget={"newest": 2}, ideal=True),
    "pair/newest+old": Model(**PAIR, rounds=2, budget={"newest": 1, "old": 1, "mark": 1}),
    "pair/old x2": Model(**PAIR, rounds=2, budget={"old": 2, "mark": 1}),
    "pair/none+newest": Model(**PAIR, rounds=2, budget={"none": 1, "newest": 1}),
    "pair/wipe": Model(**PAIR, rounds=2, budget={"wipe": 1}),
    "pair/cut": Model(**PAIR, rounds=2, budget={"cut": 2}),
    "pair/cut+old x2": Model(**PAIR, rounds=2, budget={"cut": 1, "old": 2, "mark": 1}),
    "pair/clone": Model(**PAIR, rounds=2, budget={"clone": 1}),
    "pair/remove": Model(**PAIR, rounds=2, budget={"remove": 1}),
    "slots/newest x2": Model(**PAIR, rounds=2, budget={"newest": 2}, slots=True),
    "slots/old x2": Model(**PAIR, rounds=2, budget={"old": 2, "mark": 1}, slots=True),
    "slots/wipe": Model(**PAIR, rounds=2, budget={"wipe": 1}, slots=True),
    "slots/cut": Model(**PAIR, rounds=2, budget={"cut": 2}, slots=True),
    "slots/remove": Model(**PAIR, rounds=2, budget={"remove": 1}, slots=True),
    "slots/drift": Model(**PAIR, rounds=4, budget={}, slots=True),
    "warm/old x2": Model(**PAIR, **_MORE, budget={"old": 2}),
    "warm/newest+old": Model(**PAIR, **_MORE, budget={"newest": 1, "old": 1}),
    "warm/newest x2": Model(**PAIR, **_MORE, budget={"newest": 2}, ideal=True),
    "warm/cut+old": Model(**PAIR, **_MORE, budget={"old": 1, "cut": 2}),
    "warm/slots old x2": Model(**PAIR, **_MORE, budget={"old": 2}, slots=True),
    "warm/slots cut+old": Model(**PAIR, **_MORE, budget={"old": 1, "cut": 2}, slots=True),
    "warm/slots wipe": Model(**PAIR, **_MORE, budget={"wipe": 1}, slots=True),
    "small/old x2": Model(**PAIR, rounds=1, budget={"old": 2, "mark": 1}),
    "small/newest x2": Model(**PAIR, rounds=1, budget={"newest": 2}, ideal=True),
    "small/none x2": Model(**PAIR, rounds=1, budget={"none": 2}),
    "small/wipe": Model(**PAIR, rounds=1, budget={"wipe": 1}),
    "small/remove": Model(**PAIR, rounds=1, budget={"remove": 1}),
    "small/clone": Model(**PAIR, rounds=1, budget={"clone": 1}),
    "small/slots newest": Model(**PAIR, rounds=1, budget={"newest": 1}, slots=True),
    "small/slots old": Model(**PAIR, rounds=1, budget={"old": 1, "mark": 1}, slots=True),
    "small/slots cut": Model(**PAIR, rounds=1, budget={"cut": 1}, slots=True),
    "tiny/newest": Model(**PAIR, rounds=1, budget={"newest": 1}, ideal=True, calls=1, offers=1),
    "tiny/old": Model(**PAIR, rounds=1, budget={"old": 1, "mark": 1}, calls=1, offers=2),
    "tiny/wipe": Model(**PAIR, rounds=1, budget={"wipe": 1}, calls=1, offers=1),
    "tiny/slots cut": Model(**PAIR, rounds=1, budget={"cut": 1}, slots=True, calls=1, offers=1),
    "tiny/slots newest": Model(**PAIR, rounds=1, budget={"newest": 1}, slots=True, calls=1, offers=1),
    "path/newest": Model(**PATH, rounds=1, budget={"newest": 1}, ideal=True),
    "path/old": Model(**PATH, rounds=1, budget={"old": 1, "mark": 1}),
    "path/cut": Model(**PATH, rounds=1, budget={"cut": 1}),
    "path/wipe": Model(**PATH, rounds=1, budget={"wipe": 1}),
}
_ALL = {"newest": 2, "old": 2, "none": 1, "mark": 2, "cut": 2, "remove": 1, "wipe": 1}
WALKS = {
    "pair": Model(**PAIR, rounds=6, budget=_ALL, calls=6, offers=6),
    "slots": Model(**PAIR, rounds=6, budget=_ALL, calls=6, offers=6, slots=True),
    "path": Model(**PATH, rounds=5, budget=_ALL, calls=6, offers=6),
    "path, slots": Model(**PATH, rounds=5, budget=_ALL, calls=6, offers=6, slots=True),
    "ring": Model(**RING, rounds=5, budget=_ALL, calls=6, offers=6),
    "clone": Model(**PAIR, rounds=5, budget={**_ALL, "clone": 1}, calls=6, offers=6),
    "newest": Model(**PATH, rounds=5, budget={"newest": 4}, calls=8, offers=8, ideal=True),
}

if __name__ == "__main__":
    import sys
    import time

    which, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    for name, model in SCENARIOS.items():
        if which == "all" or name.startswith(which):
            start = time.perf_counter()
            r = explore(model, most)
            ended = "all of them" if r.complete else "cut off"
            print(
                f"{name:18s} {r.broken or 'ok'}: {r.states} states, {ended}, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
            for step in r.path:
                print("     ", step)
    for name, model in WALKS.items():
        if which == "walk" or which == "walk/" + name:
            start = time.perf_counter()
            r = walk(model, most, 70, seed=0)
            print(
                f"walk {name:13s} {r.broken or 'ok'}: {r.states} states, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
            for step in r.path:
                print("     ", step)
