"""What a wave says, as bytes.

    wave 15 | flag 1 | n 32 (float32) | q 16 | v 16 (bfloat16)
    each term: 1 | sign 1 | step 8 | order 3, codes        then 0
    where a message comes down with its flag up: lift 8
    step 8 | order 3, codes                                 the vector

A step is a byte j that stands for 2^((j-128)/4). Sizes are counted in bits; the last byte is filled with zeros.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.codes import Reader, Writer

SWEEP = 0  # the wave number of a sweep; waves count from 1
_WAVES = 2**15 - 1
_FOURTHS = (1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429)  # 2^(k/4)
HEADER_BYTES = 10
MOST_TERMS = 4096
_LARGEST = 3e38  # that a float32 can hold


class Term(NamedTuple):
    """sign (s k)(s k)', a rank-one part of a matrix."""

    sign: int
    step: int
    codes: Array


class Said(NamedTuple):
    """The content of a message, up, down or of a sweep.

    ``flag`` says of a message up that it builds on the information before the newest, of one down that it lifts.
    """

    wave: int
    flag: bool
    n: float
    q: float
    v: float
    terms: tuple[Term, ...]
    step: int
    codes: Array
    lift: int | None = None


def grid(size: float) -> int:
    """The byte of the largest 2^(j/4) that is at most ``size``, as near as bytes go.

    >>> [grid(x) for x in (1.0, 1.19, 0.5, 0.0, 1e30)]
    [128, 129, 124, 0, 255]
    """
    if not size > 0:
        return 0
    if not math.isfinite(size):
        return 255
    return min(127, max(-128, math.floor(4 * math.log2(size)))) + 128


def on_grid(step: int) -> float:
    """2^((j-128)/4), the same double everywhere: a power of two times one of four constants.

    >>> on_grid(128), on_grid(130), on_grid(120)
    (1.0, 1.4142135623730951, 0.25)
    """
    return math.ldexp(_FOURTHS[step & 3], (step >> 2) - 32)


def bfloat16(value: float) -> int:
    """The upper half of the float32 of a number that is at least 0, rounded to the nearest, to the even one of two."""
    (bits,) = struct.unpack(">I", struct.pack(">f", min(value, _LARGEST)))
    return min(0x7F7F, int(bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def from_bfloat16(bits: int) -> float:
    """The number that 16 bits stand for."""
    return float(struct.unpack(">f", struct.pack(">I", bits << 16))[0])


def brief(value: float) -> float:
    """What is left of a number that travels as a bfloat16."""
    return from_bfloat16(bfloat16(value))


def numbered(wave: int) -> int:
    """The 15 bits that a message says of a wave's number; 0 is left to sweeps."""
    return (wave - 1) % _WAVES + 1


def wave_of(data: bytes) -> int:
    """The wave number that a message begins with; ValueError if it is too short to have one."""
    if len(data) < 2:
        raise ValueError("the message ends too early")
    return int.from_bytes(data[:2], "big") >> 1


def header(said: Said) -> bytes:
    """The first 80 bits."""
    first = said.wave << 1 | said.flag
    return struct.pack(">HfHH", first, min(said.n, _LARGEST), bfloat16(said.q), bfloat16(said.v))


def from_header(data: bytes) -> Said:
    """What the first 80 bits say; the rest is empty. ValueError if they are no header."""
    if len(data) < HEADER_BYTES:
        raise ValueError("the message ends too early")
    wave, n, q, v = struct.unpack(">HfHH", data[:HEADER_BYTES])
    said = Said(wave >> 1, bool(wave & 1), n, from_bfloat16(q), from_bfloat16(v), (), 0, np.zeros(0, dtype=np.int64))
    if not all(math.isfinite(number) and number >= 0 for number in said[2:5]):
        raise ValueError("the message's numbers are not finite, or negative")
    return said


def encode(said: Said) -> tuple[bytes, int]:
    """A message as bytes, and its length in bits."""
    writer = Writer()
    for term in said.terms:
        writer.number(1, 1)
        writer.number(term.sign > 0, 1)
        writer.number(term.step, 8)
        writer.vector(term.codes)
    writer.number(0, 1)
    if said.lift is not None:
        writer.number(said.lift, 8)
    writer.number(said.step, 8)
    writer.vector(said.codes)
    body, bits = writer.data()
    return header(said) + body, 8 * HEADER_BYTES + bits


def decode(data: bytes, n_features: int, *, down: bool) -> tuple[Said, int]:
    """What ``encode`` was told, and the length in bits; ValueError for anything else."""
    said, reader = from_header(data), Reader(data[HEADER_BYTES:])
    terms: list[Term] = []
    while reader.number(1):
        if len(terms) == MOST_TERMS:
            raise ValueError("the message has more terms than a matrix could need")
        sign = 1 if reader.number(1) else -1
        terms.append(Term(sign, reader.number(8), reader.vector(n_features)))
    lift = reader.number(8) if down and said.flag else None
    step = reader.number(8)
    codes = reader.vector(n_features)
    bits = 8 * HEADER_BYTES + reader.finish()
    return said._replace(terms=tuple(terms), step=step, codes=codes, lift=lift), bits
