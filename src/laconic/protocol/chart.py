"""Who hears whom, as every agent has it: entries that each writes of itself and all pass on, and the tree they make.

An edge is on the chart where both of its ends have entered it. All that there is to know of a tree, its root, its
height, how many agents there are at each depth, follows from the chart alone: agents with the same chart have the same
tree. Entries are numbered by who they are about; of two the later one counts. Who finds an entry of itself that it
has not made, as after a loss of memory, makes a later one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from laconic.protocol.handshake import COUNT_LIMIT
from laconic.protocol.messages import Refusal
from laconic.protocol.varints import encode_counts, read_counts
from laconic.protocol.wire import identity
from laconic.waves.tree import Place, grow

_LONGEST_NAME = 800  # bytes: 200 characters
_NUMBERS = 1 << 46  # after which they begin again: none is so late that there is no later one


class Record(NamedTuple):
    """What an agent says of itself.

    Attributes
    ----------
    name : str
    number : int
        Counts them.
    term : int
        How many roots it has waited for in vain.
    hears : tuple of int
        The identities of those with whom it has a session, in increasing order.
    """

    name: str
    number: int
    term: int
    hears: tuple[int, ...]

    def encode(self) -> bytes:
        """As bytes."""
        name = self.name.encode()
        counts = encode_counts(len(name), self.number, self.term, len(self.hears))
        return counts + name + b"".join(other.to_bytes(4, "little") for other in self.hears)


class Spot(NamedTuple):
    """Where an agent stands: its place in the tree, who is in its subtree and in its children's, and how high it is."""

    place: Place
    members: dict[int, frozenset[int]]
    below: int
    digest: int


@final
class Chart:
    """The entries that an agent knows, by identity; ``n_agents`` at the most."""

    def __init__(self, name: str, n_agents: int) -> None:
        self.name, self.n_agents, self.me = name, n_agents, identity(name)
        self.records: dict[int, Record] = {}
        self._later: int | None = None  # the number of an entry of this agent that somebody has, and it has not made
        self._digest: int | None = None
        self._spot: Spot | None = None

    def enter(self, hears: Iterable[int], term: int | None = None) -> Record | None:
        """Write of oneself; the entry, if it is a new one."""
        known, heard = self.records.get(self.me), tuple(sorted(hears))
        term = self.term if term is None else term
        if known is not None and (known.hears, known.term) == (heard, term) and self._later is None:
            return None
        last = self._later if self._later is not None else 0 if known is None else known.number
        self._later = None
        return self._put(Record(self.name, (last + 1) % _NUMBERS, term, heard))

    @property
    def contested(self) -> bool:
        """Whether somebody has an entry of this agent that it has not made: the next one will be later than that."""
        return self._later is not None

    def merge(self, records: Iterable[Record]) -> list[Record]:
        """Take over what is later than what is known: the entries that have changed."""
        changed = []
        for record in records:
            number = identity(record.name)
            known = self.records.get(number)
            if known is not None and (record.name != known.name or not _is_later(record, known)):
                continue
            if number == self.me:
                self._later = record.number
                continue
            if known is None and len(self.records) >= self.n_agents and not self._drop():
                continue
            changed.append(self._put(record))
        return changed

    def _put(self, record: Record) -> Record:
        self.records[identity(record.name)] = record
        self._digest = self._spot = None
        return record

    def _drop(self) -> bool:
        """Make room: forget somebody who cannot be reached."""
        away = [number for number in self.records if number not in self._reached()]
        for number in away[:1]:
            del self.records[number]
        return bool(away)

    @property
    def term(self) -> int:
        """The latest that somebody within reach has entered."""
        return max((self.records[number].term for number in self._reached() if number in self.records), default=0)

    @property
    def digest(self) -> int:
        """Of all entries."""
        if self._digest is None:
            hashed = hashlib.blake2b(digest_size=8)
            for number in sorted(self.records):
                hashed.update(self.records[number].encode())
            self._digest = int.from_bytes(hashed.digest(), "little")
        return self._digest

    def missing(self) -> tuple[int, ...]:
        """Who is heard by somebody within reach, and has not been heard of."""
        if self.me not in self.records:
            return (self.me,)
        seen, queue = {self.me}, [self.me]
        for number in queue:
            for other in self.records[number].hears if number in self.records else ():
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        return tuple(sorted(number for number in seen if number not in self.records))

    def _hears(self, number: int) -> Iterator[int]:
        """Whom an agent has an edge with, by the entries of both."""
        record = self.records.get(number)
        for other in record.hears if record is not None else ():
            if other in self.records and number in self.records[other].hears and other != number:
                yield other

    def _reached(self) -> dict[int, int]:
        """Who is connected with this agent, in the order in which they are found, and the place in that order."""
        order, queue = {self.me: 0}, [self.me]
        for number in queue:
            for other in self._hears(number):
                if other not in order:
                    order[other] = len(order)
                    queue.append(other)
        return order

    @property
    def spot(self) -> Spot:
        """The agent's place in the tree over all that it is connected with."""
        if self._spot is None:
            self._spot = self._find_spot()
        return self._spot

    def _find_spot(self) -> Spot:
        order = self._reached()
        numbers = list(order)
        names = [self.records[number].name if number in self.records else self.name for number in numbers]
        near = [[order[other] for other in self._hears(number)] for number in numbers]
        term = self.term
        places = grow(near, names, term)
        members: list[set[int]] = [{number} for number in numbers]
        below = [0] * len(numbers)
        for i in sorted(range(len(numbers)), key=lambda i: -places[i].depth):
            parent = places[i].parent
            if parent is not None:
                members[parent] |= members[i]
                below[parent] = max(below[parent], below[i] + 1)
        mine = places[0]
        parent = None if mine.parent is None else numbers[mine.parent]
        place = mine._replace(agent=self.me, parent=parent, children=tuple(numbers[i] for i in mine.children))
        about = {numbers[i]: frozenset(members[i]) for i in (0, *mine.children)}
        edges = sorted((number, sorted(self._hears(number))) for number in numbers)
        return Spot(place, about, below[0], _digest_of(edges, term))

    # Bytes ----------------------------------------------------------------------------------------------------------

    def encode(self, records: Iterable[Record]) -> bytes:
        """The digest of all that is known, and these entries."""
        records = list(records)
        parts = [self.digest.to_bytes(8, "little"), encode_counts(len(records)), *(r.encode() for r in records)]
        return b"".join(parts)

    def decode(self, data: bytes) -> tuple[int, list[Record]]:
        """What ``encode`` was told; ``Refusal`` for anything else."""
        try:
            digest, ((count,), at) = int.from_bytes(data[:8], "little"), read_counts(data, 8, 1)
            if count > self.n_agents:
                raise Refusal("oversized")
            records = []
            for _ in range(count):
                record, at = self._read(data, at)
                records.append(record)
        except (IndexError, UnicodeDecodeError):
            raise Refusal("truncated") from None
        if at != len(data):
            raise Refusal("dimension")
        return digest, records

    def _read(self, data: bytes, at: int) -> tuple[Record, int]:
        (length, number, term, degree), at = read_counts(data, at, 4)
        end = at + length + 4 * degree
        if end > len(data):
            raise Refusal("truncated")
        if length > _LONGEST_NAME or degree >= self.n_agents or number >= _NUMBERS or term >= COUNT_LIMIT // 2:
            raise Refusal("malformed")
        name = data[at : at + length].decode()
        hears = [int.from_bytes(data[k : k + 4], "little") for k in range(at + length, end, 4)]
        if hears != sorted(set(hears)):
            raise Refusal("malformed")
        return Record(name, number, term, tuple(hears)), end


def longest_survey(n_agents: int) -> int:
    """Bytes of the longest account of a chart."""
    return 8 + 7 + n_agents * (4 * 7 + _LONGEST_NAME + 4 * n_agents)


def _is_later(one: Record, other: Record) -> bool:
    """Whether an entry counts instead of another of the same agent: it is less than half of all numbers ahead."""
    ahead = (one.number - other.number) % _NUMBERS
    return 0 < ahead < _NUMBERS // 2 or (ahead == 0 and one[2:] > other[2:])


def _digest_of(edges: list[tuple[int, list[int]]], term: int) -> int:
    hashed = hashlib.blake2b(term.to_bytes(8, "little"), digest_size=8)
    for number, others in edges:
        hashed.update(b"".join(other.to_bytes(4, "little") for other in (number, *others, number)))
    return int.from_bytes(hashed.digest(), "little")
