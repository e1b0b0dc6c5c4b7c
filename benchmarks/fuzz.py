"""Spoiled messages through ``Agent.receive``: ``python benchmarks/fuzz.py``, a million of them by default.

Real messages of every kind, which their receiver would take, are spoiled: bits flip, ends are cut off, pieces are
swapped, doubled, inserted, or all is noise. As they come, none may be taken: nothing is raised and the state stays what
it is, to the bit. A tenth as many are *sealed* again with the right checksum, as a neighbour out of its mind would send
them. Some of those say something and are taken; nothing may be raised then either, and the state stays finite.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import random
import struct
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

import laconic as lc
from laconic.engine import Diverged
from laconic.protocol import Agent, AgentState, NotReady

FEATURES = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=8, bandwidth=0.6, seed=4)
CENSOR = lc.Censor(2.0, 0.99)  # with which some rounds are silent and some are not
TARGETS = {
    "dense, lockstep": (lc.Channel(CENSOR), "lockstep", "float64"),
    "dense float32, slotted": (lc.Channel(), "slotted", "float32"),
    "3 bits, slotted": (lc.Channel(quantizer=lc.Quantizer(3)), "slotted", "float64"),
    "5 bits of a fixed range, lockstep": (
        lc.Channel(CENSOR, lc.Quantizer(5, range=(-0.6, 0.5))),
        "lockstep",
        "float64",
    ),
    "3 bits float32, slotted, rejoining": (lc.Channel(CENSOR, lc.Quantizer(3)), "slotted", "float32"),
}
KINDS = {1: "difference", 2: "dense", 3: "silence", 4: "request", 5: "snapshot", 6: "farewell"}
LOOK_EVERY = 500  # messages between two looks at the state
START_AGAIN = 50  # messages of a mad neighbour after which the receiver is put back


class Target:
    """Ben, between ann and cid, in the middle of a run; and what he might be told next.

    Attributes
    ----------
    messages : list of bytes
        Of every kind that occurs there: from ann to him, and some of hers to others.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        channel, self.clock, self.dtype = TARGETS[name]
        self.learner = lc.ODKLA(rho=0.3, eta=2.0, channel=channel)
        self.rejoining = name.endswith("rejoining")
        self._random = np.random.default_rng(0)
        agents = {name: self._make(name, others) for name, others in (("ann", "bc"), ("ben", "ac"), ("cid", "ab"))}
        for _ in range(30):
            self._round(agents)
            self._carry(agents)
        self.state = agents["ben"].state()
        self.messages = list(self._tell(agents))
        self.originals = set(self.messages)

    def _make(self, name: str, others: str) -> Agent:
        names = [next(full for full in ("ann", "ben", "cid") if full[0] == letter) for letter in others]
        options = {"n_agents": 3, "clock": self.clock, "dtype": self.dtype, "heartbeat": 1}
        return Agent(name, names, FEATURES, self.learner, **options)

    def _round(self, agents: dict[str, Agent]) -> None:
        for agent in agents.values():
            x = self._random.uniform(size=3)
            agent.learn(x, float(np.sin(4 * x[0]) + self._random.normal()))

    def _carry(self, agents: dict[str, Agent]) -> None:
        while letters := [(name, message) for name in agents for message in agents[name].outgoing()]:
            for sender, message in letters:
                for name in [message.to] if message.to else agents[sender].neighbours:
                    agents[name].receive(message.data, sender)

    def _tell(self, agents: dict[str, Agent]) -> Iterator[bytes]:
        """What ann says from now on, of every kind."""
        ann, seen = agents["ann"], set()
        for _ in range(40):
            self._round(agents)
            for message in ann._dialogue.outgoing:
                if message.data[2] not in seen:
                    seen.add(message.data[2])
                    yield message.data
            self._carry(agents)
        new = self._make("ben", "ac")
        new.rejoin()
        for message in new.outgoing():
            agents[message.to or ""].receive(message.data, "ben")  # a request for all that ann knows
        ann.connected("ben")  # she asks what she has missed
        ann.disconnected("ben")
        ann.connected("ben")  # she asks for everything
        ann.leave()
        yield from (message.data for message in ann.outgoing())

    def receiver(self) -> Agent:
        """Ben, as he was."""
        ben = self._make("ben", "ac")
        ben.restore(self.state)
        if self.rejoining:
            ben.rejoin()
            ben.outgoing()
        return ben


def digest(agent: Agent) -> bytes:
    """All that a message could change, in short."""
    dialogue = agent._dialogue
    rest = [
        (name, n.stage, n.epoch, n.confirmed, n.answered, n.asked, [held.header for held in n.held])
        for name, n in dialogue.neighbours.items()
    ]
    more = (rest, agent.waiting, dialogue.rejoining, dialogue.outgoing)
    return hashlib.blake2b(agent.state().to_bytes() + repr(more).encode()).digest()


# --------------------------------------------------------------------------------------------------------------------
# Spoiling


class Spoiler:
    """Spoils messages, by chance from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._ways = (
            self._flip,
            self._flip_many,
            self._set,
            self._cut_end,
            self._cut_front,
            self._cut_out,
            self._insert,
            self._double,
            self._swap,
            self._splice,
            self._fill,
            self._noise,
            self._number,
        )

    def spoil(self, messages: list[bytes]) -> bytes:
        """One of the messages, in one to three ways."""
        self._messages = messages
        data = bytearray(self.random.choice(messages))
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            data = self.random.choice(self._ways)(data)
        return bytes(data)

    def seal(self, messages: list[bytes]) -> bytes:
        """One of the messages with its end spoiled, its beginning mostly not, and the right checksum."""
        self._messages = messages
        data = bytearray(self.random.choice(messages)[:-4])
        first = self.random.choice((0, 3, 7, 11, 11, 11, 11, 20))
        front, back = data[:first], data[first:]
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            back = self.random.choice(self._ways)(back)
        body = bytes(front + back)
        return body + struct.pack("<I", zlib.crc32(body))

    def _place(self, data: bytearray) -> int:
        return self.random.randrange(len(data)) if data else 0

    def _flip(self, data: bytearray) -> bytearray:
        if data:
            data[self._place(data)] ^= 1 << self.random.randrange(8)
        return data

    def _flip_many(self, data: bytearray) -> bytearray:
        for _ in range(self.random.randint(2, 16)):
            data = self._flip(data)
        return data

    def _set(self, data: bytearray) -> bytearray:
        if data:
            data[self._place(data)] = self.random.choice((0, 1, 127, 128, 255, self.random.randrange(256)))
        return data

    def _cut_end(self, data: bytearray) -> bytearray:
        return data[: self._place(data)]

    def _cut_front(self, data: bytearray) -> bytearray:
        return data[self._place(data) :]

    def _cut_out(self, data: bytearray) -> bytearray:
        at = self._place(data)
        return data[:at] + data[at + self.random.randint(1, 9) :]

    def _insert(self, data: bytearray) -> bytearray:
        at = self._place(data)
        return data[:at] + self.random.randbytes(self.random.randint(1, 9)) + data[at:]

    def _double(self, data: bytearray) -> bytearray:
        at, end = sorted((self._place(data), self._place(data)))
        return data[:end] + data[at:]

    def _swap(self, data: bytearray) -> bytearray:
        at, end = sorted((self._place(data), self._place(data)))
        return data[end:] + data[at:end] + data[:at]

    def _splice(self, data: bytearray) -> bytearray:
        other = self.random.choice(self._messages)
        return data[: self._place(data)] + other[self._place(bytearray(other)) :]

    def _fill(self, data: bytearray) -> bytearray:
        at = self._place(data)
        end = min(len(data), at + self.random.randint(1, 16))
        data[at:end] = bytes([self.random.choice((0, 128, 255))]) * (end - at)
        return data

    def _noise(self, data: bytearray) -> bytearray:
        return bytearray(self.random.randbytes(self.random.randrange(2 * len(data) + 2)))

    def _number(self, data: bytearray) -> bytearray:
        """An odd number where there might be a number."""
        value = self.random.choice((np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 1e30, 0.0, -1.0))
        number = struct.pack("<d", value)
        at = self._place(data)
        data[at : at + 8] = number[: max(0, len(data) - at)]
        return data


# --------------------------------------------------------------------------------------------------------------------
# What must hold


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
        ben.receive(spoiler.seal(target.messages), "ann" if k % 4 else None)
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


def show(columns: dict[str, Counter[str]], out: Iterable[str] = ()) -> str:
    """A table: a row for each reason, a column for each of ``columns``."""
    reasons = sorted(set().union(*columns.values()), key=lambda reason: -next(iter(columns.values()))[reason])
    width = max(map(len, (*reasons, "all of them")))
    lines = [f"{'refused':<{width}}" + "".join(f"{title:>20}" for title in columns)]
    for reason in reasons:
        lines.append(f"{reason:<{width}}" + "".join(f"{counts[reason]:>20,}" for counts in columns.values()))
    lines.append(f"{'all of them':<{width}}" + "".join(f"{counts.total():>20,}" for counts in columns.values()))
    return "\n".join([*lines, *out])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many, as they come (1000000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fuzz.json")
    arguments = parser.parse_args()
    logging.getLogger("laconic.protocol").setLevel(logging.ERROR)
    warnings.simplefilter("error")  # a number that overflows is a fault, too
    spoiler = Spoiler(arguments.seed)
    targets = [Target(name) for name in TARGETS]
    columns: dict[str, Counter[str]] = {"as they come": Counter(), "sealed again": Counter()}
    rates: dict[str, float] = {}
    for title, fuzz, total in (
        ("as they come", fuzz_as_they_come, arguments.messages),
        ("sealed again", fuzz_sealed, arguments.messages // 10),
    ):
        start, done = time.perf_counter(), 0
        with tqdm(total=total, desc=title, unit=" messages", unit_scale=True) as bar:
            while done < total:
                count = min(10_000, total - done)
                columns[title] += fuzz(targets[done // 10_000 % len(targets)], spoiler, count)
                done += count
                bar.update(count)
        rates[title] = total / (time.perf_counter() - start)
    notes = [f"{title}: {rate:,.0f} messages/s, spoiling included." for title, rate in rates.items()]
    print(show(columns, ["", *notes, "Nothing was raised; what was refused changed no state; all stayed finite."]))
    arguments.out.parent.mkdir(exist_ok=True)
    results = {"messages per second": rates, **{title: dict(counts) for title, counts in columns.items()}}
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
