"""Whole numbers in as many bytes as they need: LEB128, seven bits a byte, lowest first, never longer than needed."""

from __future__ import annotations

from laconic.protocol.messages import Refusal

_ONE_BYTE = [bytes((value,)) for value in range(128)]
_COUNT_LIMIT = 1 << 47  # no counter of an honest agent gets there


def encode_count(value: int) -> bytes:
    """A whole number from 0 on."""
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


def encode_counts(*values: int) -> bytes:
    """Several of them."""
    return b"".join([encode_count(value) for value in values])


def read_counts(data: bytes, at: int, count: int) -> tuple[list[int], int]:
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
