"""What agents that run waves say to each other within a statement: a few parts, one after the other, as bytes.

all        1 kind, then
up         varint wave; 8 standing, 8 tree, 8 base: digests; varint length; the message up
taken      varint wave; 8 digest of the link that came of it, 0 if there was none with that base
front      8 tree; varint length; the message
begin      varint wave; 8 standing                                on slots: the wave has begun
down       varint wave; 8 standing before; varint start of the next, clock; varint length; the message down
standing   varint waves; 8 digest
missed     varint waves before; 8 standing before; varint clock, count; for each: varint start, length; the message
whole      varint waves, start, clock; 8 n (float64); C by its lower triangle, theta, d, e, thin (float64); of several
           outputs theta and d are as many vectors, and e as many numbers
"""

from __future__ import annotations

import struct
from typing import NamedTuple, final

import numpy as np

from laconic.protocol.chart import longest_survey
from laconic.protocol.messages import Refusal
from laconic.protocol.varints import encode_count, encode_counts, read_counts
from laconic.waves.roving import LOGGED, Entry, Standing, Whole
from laconic.waves.saving import joined, packed, unpacked

_LONG, _REAL = struct.Struct("<Q"), struct.Struct("<d")
_MOST_PARTS = 16


class Up(NamedTuple):
    """A message up, by whose child: of which wave, standing and tree, and the digest of the link that it builds on."""

    wave: int
    standing: int
    tree: int
    base: int
    data: bytes


class Taken(NamedTuple):
    """A message up was heard: the digest of the link that came of it, 0 if its base is not known."""

    wave: int
    link: int


class Front(NamedTuple):
    """What is known on this side of an edge of a deep tree, before the first wave."""

    tree: int
    data: bytes


class Begin(NamedTuple):
    """A wave has begun."""

    wave: int
    standing: int


class Down(NamedTuple):
    """A message down, which follows on that standing."""

    wave: int
    standing: int
    clock: int
    entry: Entry


class Missed(NamedTuple):
    """Several messages down, which follow on that standing."""

    standing: Standing
    clock: int
    entries: tuple[Entry, ...]


class Snapshot(NamedTuple):
    """All that everybody knows."""

    clock: int
    whole: Whole


Part = Up | Taken | Front | Begin | Down | Standing | Missed | Snapshot
_KINDS: dict[type, int] = {
    kind: k for k, kind in enumerate((Up, Taken, Front, Begin, Down, Standing, Missed, Snapshot), 1)
}


@final
class PartCode:
    """Encodes and decodes parts. Decoding raises ``Refusal``, and nothing else, on bad bytes.

    ``longest`` is how long a statement can be, that of an agent that says whatever it can say at once, or a chart.
    """

    def __init__(self, n_features: int, most_terms: int, n_agents: int, outputs: int = 1) -> None:
        self.n_features, self._outputs = n_features, outputs
        self._triangle = n_features * (n_features + 1) // 2
        # A message: its header, and codes of at most 84 bits a number.
        self._message = 56 + 8 * outputs + (most_terms + 2 * n_features + outputs) * (2 + 11 * n_features)
        #: Bytes of a snapshot: what was missed is said by its messages only where these are shorter.
        self.whole = 56 + 8 * (self._triangle + outputs * (2 * n_features + 1))
        self.longest = max(3 * self._message + 2 * self.whole + 1024, longest_survey(n_agents))

    def encode(self, parts: list[Part]) -> bytes:
        """All of them."""
        return b"".join(bytes((_KINDS[type(part)],)) + self._body(part) for part in parts)

    def _body(self, part: Part) -> bytes:
        match part:
            case Up(wave, standing, tree, base, data):
                return encode_count(wave) + _longs(standing, tree, base) + _framed(data)
            case Taken(wave, link):
                return encode_count(wave) + _longs(link)
            case Front(tree, data):
                return _longs(tree) + _framed(data)
            case Begin(wave, standing):
                return encode_count(wave) + _longs(standing)
            case Down(wave, standing, clock, entry):
                return encode_count(wave) + _longs(standing) + encode_counts(entry.start, clock) + _framed(entry.data)
            case Standing(waves, digest):
                return encode_count(waves) + _longs(digest)
            case Missed(standing, clock, entries):
                front = encode_count(standing.waves) + _longs(standing.digest) + encode_counts(clock, len(entries))
                return front + b"".join(encode_count(entry.start) + _framed(entry.data) for entry in entries)
            case Snapshot(clock, whole):
                front = encode_counts(whole.waves, whole.start, clock) + _REAL.pack(whole.n)
                numbers = joined((packed(whole.information), whole.theta, whole.step, whole.energy, whole.thin))
                return front + numbers.astype("<f8").tobytes()

    def decode(self, data: bytes) -> list[Part]:
        """The parts in ``data``."""
        parts: list[Part] = []
        at = 0
        try:
            while at < len(data):
                if len(parts) == _MOST_PARTS:
                    raise Refusal("malformed")
                part, at = self._read(data[at], data, at + 1)
                parts.append(part)
        except (IndexError, struct.error):
            raise Refusal("truncated") from None
        if at != len(data):
            raise Refusal("truncated")
        return parts

    def _read(self, kind: int, data: bytes, at: int) -> tuple[Part, int]:
        if kind == _KINDS[Front]:
            (tree,), at = _read_longs(data, at, 1)
            message, at = self._unframed(data, at)
            return Front(tree, message), at
        (count,), at = read_counts(data, at, 1)
        if kind == _KINDS[Up]:
            (standing, tree, base), at = _read_longs(data, at, 3)
            message, at = self._unframed(data, at)
            return Up(count, standing, tree, base, message), at
        if kind == _KINDS[Snapshot]:
            return self._read_whole(count, data, at)
        (digest,), at = _read_longs(data, at, 1)
        if kind == _KINDS[Taken]:
            return Taken(count, digest), at
        if kind == _KINDS[Begin]:
            return Begin(count, digest), at
        if kind == _KINDS[Standing]:
            return Standing(count, digest), at
        if kind == _KINDS[Down]:
            (start, clock), at = read_counts(data, at, 2)
            message, at = self._unframed(data, at)
            return Down(count, digest, clock, Entry(message, start)), at
        if kind == _KINDS[Missed]:
            return self._read_missed(Standing(count, digest), data, at)
        raise Refusal("kind")

    def _read_missed(self, standing: Standing, data: bytes, at: int) -> tuple[Missed, int]:
        (clock, count), at = read_counts(data, at, 2)
        if count > LOGGED:
            raise Refusal("oversized")
        entries = []
        for _ in range(count):
            (start,), at = read_counts(data, at, 1)
            message, at = self._unframed(data, at)
            entries.append(Entry(message, start))
        return Missed(standing, clock, tuple(entries)), at

    def _read_whole(self, waves: int, data: bytes, at: int) -> tuple[Snapshot, int]:
        (start, clock), at = read_counts(data, at, 2)
        (n,) = _REAL.unpack_from(data, at)
        models, shape = self._outputs * self.n_features, (self._outputs, self.n_features)
        size = self._triangle + 2 * models + self._outputs + 1
        end = at + 8 + 8 * size
        if end > len(data):
            raise Refusal("truncated")
        numbers = np.frombuffer(data, dtype="<f8", count=size, offset=at + 8).astype(np.float64)
        at = self._triangle
        triangle, theta, step, energy = np.split(numbers[:-1], [at, at + models, at + 2 * models])
        thin = float(numbers[-1])
        if not (np.isfinite(numbers).all() and 0 <= n < np.inf and (energy >= 0).all() and 0 < thin <= 1):
            raise Refusal("not finite")
        if self._outputs == 1:
            return Snapshot(clock, Whole(waves, start, n, unpacked(triangle), theta, step, float(energy[0]), thin)), end
        known = unpacked(triangle), theta.reshape(shape), step.reshape(shape), energy, thin
        return Snapshot(clock, Whole(waves, start, n, *known)), end

    def _unframed(self, data: bytes, at: int) -> tuple[bytes, int]:
        (length,), at = read_counts(data, at, 1)
        if length > self._message:
            raise Refusal("oversized")
        if at + length > len(data):
            raise Refusal("truncated")
        return data[at : at + length], at + length


def _longs(*values: int) -> bytes:
    return b"".join(_LONG.pack(value) for value in values)


def _read_longs(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    return [_LONG.unpack_from(data, at + 8 * k)[0] for k in range(count)], at + 8 * count


def _framed(data: bytes) -> bytes:
    return encode_count(len(data)) + data
