"""The wire format, version 2: what agents say to each other, as bytes.

Numbers are little-endian, ``varint`` is LEB128 (seven bits a byte, lowest first). ``docs/wire.md`` is the same
description for people who write an agent in another language.

    all         2 bytes  magic b"lc"
                1        version (upper half), kind (lower half)
    handshake   4        fingerprint of features, learner, channel and clock
                4, 4     sender, addressee: the identities of their names
      hello     8, 8     inc, tag
      call      8        inc; varint call, round, degree; 8 tag; 1 flags: steady
      offer     8        inc of the leader; varint call; 8 inc; varint ctr, round, degree; 8 tag;
                         varint g, k, spoken, heard, logged; 1 flags: intact, fresh; 1 width; broadcast, F (float64)
      decide    8        inc of the follower; varint ctr; 8 inc; varint ctr, round, degree, g; 1 flags: goes on;
                         1 width; [broadcast, F (float64)]
      refused   8        inc
    in session  8        tag: its lowest bit is 1 from who follows, 0 from who leads
      statement          varint n; on slots varint label; varint degree; 4 digest; body
        difference       1 bits | 128 if the scale follows; [4 scale, float32]; codes, bit-packed, first in lowest bits
                         1 zero: an entropy code or a quantizer of one's own; its bytes, 16 n + 1024 at most
        dense, full      1 width of a number, 32 or 64; the model
        silence          nothing: "nothing to say in this round"
        wave             parts: see ``wave_parts``
      request            varint heard
      confirm, farewell  nothing
      survey             8 digest of the sender's chart; varint count; entries: see ``chart``
    checksum    4        CRC-32 of all before

The tag of a session is BLAKE2b of fingerprint, offer and decision, from the first inc on, in 8 bytes.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Channel, Quantizer, longest_message
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Letter,
    Offer,
    Refusal,
    Refused,
    Request,
    Statement,
    Survey,
)
from laconic.protocol.varints import encode_count, encode_counts, read_counts

MAGIC = b"lc"
VERSION = 2
MODEL_LIMIT, SHARE_LIMIT = 1e15, 1e30  # a model beyond that has diverged; sums of shares fit in a float32

_START, _NAMES, _LONG = struct.Struct("<2sB"), struct.Struct("<III"), struct.Struct("<Q")
_CHECKSUM, _DIGEST, _SCALE = struct.Struct("<I"), struct.Struct("<I"), struct.Struct("<f")
_LEAST = _START.size + _LONG.size + _CHECKSUM.size
_SCALE_FOLLOWS = 128
_STATEMENTS = (Kind.DIFFERENCE, Kind.DENSE, Kind.SILENCE, Kind.FULL, Kind.WAVE)
_IN_SESSION = frozenset((*_STATEMENTS, Kind.CONFIRM, Kind.REQUEST, Kind.FAREWELL, Kind.SURVEY))
_BY_NUMBER = {int(kind): kind for kind in Kind}
_KINDS: dict[type, Kind] = {
    Hello: Kind.HELLO,
    Call: Kind.CALL,
    Offer: Kind.OFFER,
    Decide: Kind.DECIDE,
    Confirm: Kind.CONFIRM,
    Request: Kind.REQUEST,
    Farewell: Kind.FAREWELL,
    Refused: Kind.REFUSED,
    Survey: Kind.SURVEY,
}


class Envelope(NamedTuple):
    """A letter and who it is from and for: by their identities, or else by ``follows``, who follows on the edge."""

    letter: Letter
    sender: int | None = None
    to: int | None = None
    follows: bool | None = None


def identity(name: str) -> int:
    """The number that stands for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")


class Words(Protocol):
    """Reads the bodies of statements of a learner that has messages of its own."""

    longest: int

    def decode(self, data: bytes) -> Any:
        """What they say; ``Refusal`` if that is nothing."""


@final
class Wire:
    """Encodes and decodes the messages of one model. Decoding raises ``Refusal``, and nothing else, on bad bytes.

    ``words`` are those of a learner with messages of its own, whose vectors have no entries.
    """

    def __init__(
        self,
        name: str,
        mark: int,
        n_features: int,
        channel: Channel | None,
        dtype: np.dtype[np.float64],
        lockstep: bool,
        words: Words | None = None,
    ) -> None:
        self.mark, self._words = mark, words
        self.sender = identity(name)
        self._lockstep = lockstep
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
        self._starts = {kind: _START.pack(MAGIC, VERSION << 4 | kind) for kind in Kind}
        self.packed_size = -(-n_features * self._bits // 8)
        # The longest message is an offer; counters take at most seven bytes each.
        self._most = _START.size + _NAMES.size + 3 * 8 + 9 * 7 + 2 + n_features * (dtype.itemsize + 8) + _CHECKSUM.size
        if self._longest_body is not None:
            self._most = max(self._most, _LEAST + 3 * 7 + _DIGEST.size + 1 + self._longest_body)
        if words is not None:
            self._most = max(self._most, _LEAST + 3 * 7 + _DIGEST.size + words.longest)

    # ----------------------------------------------------------------------------------------------------------------
    # Bodies of statements

    def difference(self, packed: Array, scale: float) -> bytes:
        """A quantized innovation."""
        scaled = _SCALE.pack(scale) if self._adaptive else b""
        return self._format + scaled + packed.tobytes()

    def model(self, model: Array) -> bytes:
        """A model as it is."""
        return bytes((self._width,)) + self._numbers(model)

    def _numbers(self, row: Array) -> bytes:
        return row[: self._n_features].astype(self._dtype, copy=False).tobytes()

    # ----------------------------------------------------------------------------------------------------------------
    # Messages

    def encode(self, letter: Letter, to: int, follows: bool) -> bytes:
        """A letter to ``to``; ``follows``: this agent follows on that edge."""
        if isinstance(letter, Statement):
            label = b"" if self._lockstep else encode_count(letter.label)
            front = (
                self._starts[letter.kind],
                _LONG.pack(letter.tag | follows),
                encode_count(letter.n),
                label,
                encode_count(letter.degree),
                _DIGEST.pack(letter.digest),
                letter.data,
            )
            return _seal(b"".join(front))
        start = self._starts[_KINDS[type(letter)]]
        if isinstance(letter, Confirm | Farewell | Request):
            heard = encode_count(letter.heard) if isinstance(letter, Request) else b""
            return _seal(start + _LONG.pack(letter.tag | follows) + heard)
        if isinstance(letter, Survey):
            return _seal(start + _LONG.pack(letter.tag | follows) + letter.data)
        return _seal(start + _NAMES.pack(self.mark, self.sender, to) + self._body(letter))

    def tag_of(self, offer: Offer, decide: Decide) -> int:
        """The name of a session; even, since the lowest bit says who speaks."""
        record = self.mark.to_bytes(4, "little") + self._body(offer) + self._body(decide)
        return int.from_bytes(hashlib.blake2b(record, digest_size=8).digest(), "little") & ~1 or 2

    def _body(self, letter: Hello | Call | Offer | Decide | Refused) -> bytes:
        if isinstance(letter, Hello):
            return _LONG.pack(letter.inc) + _LONG.pack(letter.tag)
        if isinstance(letter, Refused):
            return _LONG.pack(letter.inc)
        if isinstance(letter, Call):
            counts = encode_counts(letter.call, letter.round, letter.degree)
            return _LONG.pack(letter.inc) + counts + _LONG.pack(letter.tag) + bytes((letter.steady,))
        echo, number = letter.echo
        front = _LONG.pack(echo) + encode_count(number) + _LONG.pack(letter.inc)
        front += encode_counts(letter.ctr, letter.round, letter.degree)
        if isinstance(letter, Offer):
            known = letter.g, letter.k, letter.spoken, letter.heard, letter.logged
            front += _LONG.pack(letter.tag) + encode_counts(*known)
            flags = letter.intact | letter.fresh << 1
        else:
            front += encode_count(letter.g)
            flags = letter.goes_on
        vectors = b"" if letter.hat is None else self._numbers(letter.hat) + letter.share.astype("<f8").tobytes()
        return front + bytes((flags, self._width)) + vectors

    # ----------------------------------------------------------------------------------------------------------------

    def decode(self, data: bytes) -> Envelope:
        """The message in ``data``, or ``Refusal`` with the reason."""
        if len(data) < _LEAST:
            raise Refusal("truncated")
        if len(data) > self._most:
            raise Refusal("oversized")
        magic, kind_of_version = _START.unpack_from(data)
        if magic != MAGIC:
            raise Refusal("magic")
        body, (checksum,) = data[:-4], _CHECKSUM.unpack(data[-4:])
        if zlib.crc32(body) != checksum:  # as it was in version 1
            raise Refusal("corrupt")
        if kind_of_version >> 4 != VERSION:
            raise Refusal("version")
        kind = _BY_NUMBER.get(kind_of_version & 15)
        if kind is None:
            raise Refusal("kind")
        try:
            if kind in _IN_SESSION:
                (tag,) = _LONG.unpack_from(body, _START.size)
                return Envelope(self._read(kind, tag & ~1, body, _START.size + 8), follows=bool(tag & 1))
            mark, sender, to = _NAMES.unpack_from(body, _START.size)
            if mark != self.mark:
                raise Refusal("fingerprint")
            return Envelope(self._read_handshake(kind, body, _START.size + _NAMES.size), sender, to)
        except (IndexError, struct.error):
            raise Refusal("truncated") from None

    def _read(self, kind: Kind, tag: int, body: bytes, at: int) -> Confirm | Farewell | Request | Statement | Survey:
        if kind is Kind.REQUEST:
            (heard,), at = read_counts(body, at, 1)
            _end(body, at)
            return Request(tag, heard)
        if kind is Kind.CONFIRM or kind is Kind.FAREWELL:
            _end(body, at)
            return Confirm(tag) if kind is Kind.CONFIRM else Farewell(tag)
        if kind is Kind.SURVEY:
            if self._words is None:
                raise Refusal("kind")
            return Survey(tag, body[at:])
        if self._lockstep:
            (n, degree), at = read_counts(body, at, 2)
            label = 0
        else:
            (n, label, degree), at = read_counts(body, at, 3)
        (digest,) = _DIGEST.unpack_from(body, at)
        at += _DIGEST.size
        data = body[at:]
        return Statement(tag, n, label, degree, digest, kind, data, self._read_statement(kind, data))

    def _read_statement(self, kind: Kind, data: bytes) -> Any:
        """What the body of a statement says: a scale and codes, or a model; or words of one's own."""
        if kind is Kind.SILENCE:
            _end(data, 0)
            return None
        if self._words is not None or kind is Kind.WAVE:
            if self._words is None or kind is not Kind.WAVE:
                raise Refusal("kind")
            return self._words.decode(data)
        if kind is not Kind.DIFFERENCE:
            if data[0] != self._width or (kind is Kind.DENSE and self._quantized):
                raise Refusal("dimension")
            return 0.0, self._read_vectors(data, 1, False)[0]
        if data[:1] != self._format or not self._quantized:
            raise Refusal("dimension")
        if self._longest_body is not None:
            if len(data) - 1 > self._longest_body:
                raise Refusal("oversized")
            return 0.0, np.frombuffer(data, dtype=np.uint8, offset=1)
        at, scale = 1, 0.0
        if self._adaptive:
            (scale,) = _SCALE.unpack_from(data, at)
            at += _SCALE.size
            if not 0 <= scale <= MODEL_LIMIT:
                raise Refusal("not finite")
        if len(data) - at != self.packed_size:
            raise Refusal("dimension")
        return scale, np.frombuffer(data, dtype=np.uint8, offset=at)

    def _read_handshake(self, kind: Kind, body: bytes, at: int) -> Letter:
        (inc,) = _LONG.unpack_from(body, at)
        at += 8
        if kind is Kind.HELLO or kind is Kind.REFUSED:
            if kind is Kind.REFUSED:
                _end(body, at)
                return Refused(inc)
            _end(body, at + 8)
            return Hello(inc, _even(_LONG.unpack_from(body, at)[0]))
        (number,), at = read_counts(body, at, 1)
        if kind is Kind.CALL:
            (round, degree), at = read_counts(body, at, 2)
            (tag,) = _LONG.unpack_from(body, at)
            steady = _flags(body[at + 8], 1)
            _end(body, at + 9)
            return Call(inc, number, round, degree, _even(tag), bool(steady))
        (own,) = _LONG.unpack_from(body, at)
        (ctr, round, degree), at = read_counts(body, at + 8, 3)
        if kind is Kind.OFFER:
            (tag,) = _LONG.unpack_from(body, at)
            (g, k, spoken, heard, logged), at = read_counts(body, at + 8, 5)
            flags = _flags(body[at], 3)
            hat, share = self._read_edge(body, at + 1)
            intact, fresh = bool(flags & 1), bool(flags & 2)
            known = _even(tag), g, k, spoken, heard, logged
            return Offer((inc, number), own, ctr, round, degree, *known, intact, fresh, hat, share)
        (g,), at = read_counts(body, at, 1)
        goes_on = bool(_flags(body[at], 1))
        if goes_on:
            self._check_width(body, at + 1)
            _end(body, at + 2)
            return Decide((inc, number), own, ctr, round, degree, g, goes_on)
        return Decide((inc, number), own, ctr, round, degree, g, goes_on, *self._read_edge(body, at + 1))

    def _read_edge(self, body: bytes, at: int) -> list[Any]:
        self._check_width(body, at)
        return self._read_vectors(body, at + 1, False, True)

    def _check_width(self, body: bytes, at: int) -> None:
        if body[at] != self._width:
            raise Refusal("dimension")

    def _read_vectors(self, body: bytes, at: int, *shares: bool) -> list[Array]:
        """Models and ``shares``, nothing after them, and all finite enough to stay so when they are added up."""
        kinds = [_DOUBLE if is_share else self._dtype for is_share in shares]
        if len(body) - at != self._n_features * sum(kind.itemsize for kind in kinds):
            raise Refusal("dimension")
        vectors = []
        for kind, is_share in zip(kinds, shares, strict=True):
            vector = np.frombuffer(body, dtype=kind, count=self._n_features, offset=at)
            if not (np.abs(vector) <= (SHARE_LIMIT if is_share else MODEL_LIMIT)).all():
                raise Refusal("not finite")
            vectors.append(vector)
            at += vector.nbytes
        return vectors


_DOUBLE = np.dtype("<f8")


def _seal(data: bytes) -> bytes:
    return data + _CHECKSUM.pack(zlib.crc32(data))


def _end(body: bytes, at: int) -> None:
    """The bytes have to end where the message does."""
    if at != len(body):
        raise Refusal("truncated" if at > len(body) else "dimension")


def _even(tag: int) -> int:
    if tag & 1:
        raise Refusal("malformed")
    return tag


def _flags(value: int, known: int) -> int:
    if value & ~known:
        raise Refusal("malformed")
    return value
