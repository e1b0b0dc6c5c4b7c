"""The wire format, version 1: what agents say to each other, as bytes.

Every message is a header, a body and a checksum; numbers are little-endian, ``varint`` is LEB128 (seven bits a byte,
lowest first). ``docs/wire.md`` is the same description for people who write an agent in another language.

    header   2 bytes  magic b"lc"
             1        version (upper half), kind (lower half)
             4        fingerprint of features, learner and channel
             4        sender: the identity of its name
             varint   life, round, sequence, degree of the sender
    body     difference  1 bits | 128 if the scale follows; [4 scale, float32]; codes, bit-packed, first in lowest bits
                         1 zero: a quantizer of one's own; its bytes, 16 n + 1024 at most
             dense       1 width of a number, 32 or 64; the model
             silence     nothing: "nothing to say in this round"
             request     4 addressee; 1 flags; varint epoch; varint life, sequence, round of the addressee as known
             snapshot    4 addressee; 1 flags; 1 width; varint epoch; varint life, sequence, round of the addressee as
                         known; the same three of the request that it answers, or zeros; broadcast, its sum (float64);
                         [replica of the addressee, its sum]; [the edge's vector]
             farewell    4 addressee; varint epoch
    checksum 4        CRC-32 of all before

A *life* lasts from one start of an agent to the next at which it had to ask others where it stood; (life, sequence)
orders everything that an agent ever says. ``sequence`` counts its differences and dense models, not its silences.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import TypeVar, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Channel, Quantizer, longest_message
from laconic.protocol.messages import Edge, Farewell, Header, Kind, Position, Refusal, Request, Snapshot, Statement

MAGIC = b"lc"
VERSION = 1

_START = struct.Struct("<2sBII")
_CHECKSUM = struct.Struct("<I")
_SCALE = struct.Struct("<f")
_LEAST = _START.size + 4 + _CHECKSUM.size
_ONE_BYTE = [bytes((value,)) for value in range(128)]
_COUNT_LIMIT = 1 << 48  # no counter of an honest agent gets there, and sums of rounds stay exact in a float64
_MODEL_LIMIT, _SUM_LIMIT = 1e15, 1e30  # a model beyond that has diverged; its sum over all rounds fits in a float32
_SCALE_FOLLOWS = 128
_REJOINING, _LIVE, _MEMORY, _REPLICA, _VECTOR, _REPEATED = 1, 2, 4, 8, 16, 32
_WHOLE, _CONFIRM = 1, 2


def identity(name: str) -> int:
    """The number that stands for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")


def _varint(value: int) -> bytes:
    if value < 128:
        return _ONE_BYTE[value]
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_counts(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """So many varints, and where they end."""
    values = []
    for _ in range(count):
        value = data[at]
        at += 1
        if value >= 128:
            value &= 127
            shift, byte = 7, 128
            while byte >= 128:
                if shift > 42:  # eight bytes are too many, and would cost time without end
                    raise Refusal("malformed")
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
            if value >= _COUNT_LIMIT or not byte:
                raise Refusal("malformed")
        values.append(value)
    return values, at


@final
class Wire:
    """Encodes and decodes the messages of one model. Decoding raises ``Refusal``, and nothing else, on bad bytes."""

    def __init__(self, name: str, mark: int, n_features: int, channel: Channel | None, dtype: np.dtype[np.float64]):
        self.mark = mark
        self.sender = identity(name)
        self._n_features = n_features
        self._dtype = dtype.newbyteorder("<")
        self._width = 8 * dtype.itemsize
        quantizer = channel.quantizer if channel else None
        self._quantized = quantizer is not None
        ours = quantizer if type(quantizer) is Quantizer else None
        self._bits = ours.bits if ours else 0
        self._adaptive = ours is not None and ours.adaptive
        self._longest_body = longest_message(n_features) if self._quantized and not ours else None
        self._format = bytes((self._bits | (_SCALE_FOLLOWS if self._adaptive else 0),))
        self._starts = {kind: _START.pack(MAGIC, VERSION << 4 | kind, mark, self.sender) for kind in Kind}
        self.packed_size = -(-n_features * self._bits // 8)
        # The longest message is a snapshot with everything in it; counters take at most seven bytes each.
        self._most = _START.size + 11 * 7 + 6 + n_features * (2 * dtype.itemsize + 24) + _CHECKSUM.size
        if self._longest_body is not None:
            self._most = max(self._most, _START.size + 4 * 7 + 1 + self._longest_body + _CHECKSUM.size)

    # ----------------------------------------------------------------------------------------------------------------

    def _seal(self, kind: Kind, position: Position, degree: int, *body: bytes) -> bytes:
        life, sequence, round = position
        counts = _varint(life) + _varint(round) + _varint(sequence) + _varint(degree)
        data = b"".join((self._starts[kind], counts, *body))
        return data + _CHECKSUM.pack(zlib.crc32(data))

    def difference(self, position: Position, degree: int, packed: Array, scale: float) -> bytes:
        """A quantized innovation."""
        scaled = _SCALE.pack(scale) if self._adaptive else b""
        return self._seal(Kind.DIFFERENCE, position, degree, self._format, scaled, packed.tobytes())

    def dense(self, position: Position, degree: int, model: Array) -> bytes:
        """A model as it is."""
        return self._seal(Kind.DENSE, position, degree, bytes((self._width,)), self._numbers(model))

    def silence(self, position: Position, degree: int) -> bytes:
        """Nothing to say."""
        return self._seal(Kind.SILENCE, position, degree)

    def request(
        self, position: Position, degree: int, to: int, held: Position, epoch: int, whole: bool, confirm: bool
    ) -> bytes:
        """Ask ``to`` for what was missed after ``held``, or for everything."""
        front = struct.pack("<IB", to, _WHOLE * whole | _CONFIRM * confirm) + _varint(epoch)
        return self._seal(Kind.REQUEST, position, degree, front, self._counts(held))

    def snapshot(
        self,
        position: Position,
        degree: int,
        to: int,
        rejoining: bool,
        repeated: bool,
        own: tuple[Array, Array],
        held: Position,
        asked: Position,
        other: tuple[Array, Array] | None,
        edge: Edge,
    ) -> bytes:
        """A state: what the sender has said, what it has heard of the addressee, and their edge."""
        flags = _REJOINING * rejoining | _REPEATED * repeated | _LIVE * edge.live | _MEMORY * edge.remembers
        parts = [self._numbers(own[0]), _doubles(own[1])]
        if other is not None:
            flags |= _REPLICA
            parts += [self._numbers(other[0]), _doubles(other[1])]
        if edge.vector is not None:
            flags |= _VECTOR
            parts.append(_doubles(edge.vector))
        front = struct.pack("<IBB", to, flags, self._width) + _varint(edge.epoch)
        counts = self._counts(held) + self._counts(asked)
        return self._seal(Kind.SNAPSHOT, position, degree, front, counts, *parts)

    def farewell(self, position: Position, degree: int, to: int, epoch: int) -> bytes:
        """Tell ``to`` that its edge is given up."""
        return self._seal(Kind.FAREWELL, position, degree, struct.pack("<I", to), _varint(epoch))

    def _numbers(self, row: Array) -> bytes:
        return row[: self._n_features].astype(self._dtype, copy=False).tobytes()

    def _counts(self, held: Position) -> bytes:
        return _varint(held.life) + _varint(held.sequence) + _varint(held.round)

    # ----------------------------------------------------------------------------------------------------------------

    def decode(self, data: bytes) -> Statement | Request | Snapshot | Farewell:
        """The message in ``data``, or ``Refusal`` with the reason."""
        if len(data) < _LEAST:
            raise Refusal("truncated")
        if len(data) > self._most:
            raise Refusal("oversized")
        magic, kind_of_version, mark, sender = _START.unpack_from(data)
        if magic != MAGIC:
            raise Refusal("magic")
        if kind_of_version >> 4 != VERSION:
            raise Refusal("version")
        body, (checksum,) = data[:-4], _CHECKSUM.unpack(data[-4:])
        if zlib.crc32(body) != checksum:
            raise Refusal("corrupt")
        if mark != self.mark:
            raise Refusal("fingerprint")
        try:
            kind = Kind(kind_of_version & 15)
        except ValueError:
            raise Refusal("kind") from None
        try:
            (life, round, sequence, degree), at = _read_counts(body, _START.size, 4)
            header = Header(kind, sender, Position(life, sequence, round), degree)
            return self._read_body(header, body, at)
        except (IndexError, struct.error):
            raise Refusal("truncated") from None

    def _read_body(self, header: Header, body: bytes, at: int) -> Statement | Request | Snapshot | Farewell:
        kind = header.kind
        if kind is Kind.DIFFERENCE:
            return self._read_difference(header, body, at)
        if kind is Kind.DENSE:
            if body[at] != self._width or self._quantized:
                raise Refusal("dimension")
            (model,) = self._read_vectors(body, at + 1, False)
            return Statement(header, model)
        if kind is Kind.SILENCE:
            return _whole(Statement(header), body, at)
        (to,) = struct.unpack_from("<I", body, at)
        if kind is Kind.REQUEST:
            flags = body[at + 4]
            (epoch, *held), at = _read_counts(body, at + 5, 4)
            request = Request(header, to, Position(*held), epoch, bool(flags & _WHOLE), bool(flags & _CONFIRM))
            return _whole(request, body, at)
        if kind is Kind.FAREWELL:
            (epoch,), at = _read_counts(body, at + 4, 1)
            return _whole(Farewell(header, to, epoch), body, at)
        return self._read_snapshot(header, to, body, at + 4)

    def _read_difference(self, header: Header, body: bytes, at: int) -> Statement:
        if body[at : at + 1] != self._format or not self._quantized:
            raise Refusal("dimension")
        at += 1
        if self._longest_body is not None:
            if len(body) - at > self._longest_body:
                raise Refusal("oversized")
            return Statement(header, np.frombuffer(body, dtype=np.uint8, offset=at))
        scale = 0.0
        if self._adaptive:
            (scale,) = _SCALE.unpack_from(body, at)
            at += _SCALE.size
            if not 0 <= scale < np.inf:
                raise Refusal("not finite")
        if len(body) - at != self.packed_size:
            raise Refusal("dimension")
        return Statement(header, np.frombuffer(body, dtype=np.uint8, offset=at), scale)

    def _read_snapshot(self, header: Header, to: int, body: bytes, at: int) -> Snapshot:
        flags, width = body[at], body[at + 1]
        if width != self._width:
            raise Refusal("dimension")
        (epoch, *counts), at = _read_counts(body, at + 2, 7)
        held, asked = Position(*counts[:3]), Position(*counts[3:])
        sums = [False, True]
        if flags & _REPLICA:
            sums += [False, True]
        if flags & _VECTOR:
            sums.append(True)
        vectors = self._read_vectors(body, at, *sums)
        vector = vectors.pop() if flags & _VECTOR else None
        replica, replica_total = vectors[2:] if flags & _REPLICA else (None, None)
        edge = Edge(epoch, bool(flags & _LIVE), bool(flags & _MEMORY), vector)
        rejoining, repeated = bool(flags & _REJOINING), bool(flags & _REPEATED)
        return Snapshot(
            header, to, rejoining, repeated, vectors[0], vectors[1], held, asked, replica, replica_total, edge
        )

    def _read_vectors(self, body: bytes, at: int, *sums: bool) -> list[Array]:
        """Models and ``sums``, nothing after them, and all finite enough to stay so when they are added up."""
        kinds = [_DOUBLE if is_sum else self._dtype for is_sum in sums]
        if len(body) - at != self._n_features * sum(kind.itemsize for kind in kinds):
            raise Refusal("dimension")
        vectors = []
        for kind, is_sum in zip(kinds, sums, strict=True):
            vector = np.frombuffer(body, dtype=kind, count=self._n_features, offset=at)
            if not (np.abs(vector) <= (_SUM_LIMIT if is_sum else _MODEL_LIMIT)).all():
                raise Refusal("not finite")
            vectors.append(vector)
            at += vector.nbytes
        return vectors


_DOUBLE = np.dtype("<f8")
_M = TypeVar("_M")


def _doubles(row: Array) -> bytes:
    return row.astype(_DOUBLE, copy=False).tobytes()


def _whole(message: _M, body: bytes, at: int) -> _M:
    """The message, if its bytes end where it does."""
    if at != len(body):
        raise Refusal("dimension")
    return message
