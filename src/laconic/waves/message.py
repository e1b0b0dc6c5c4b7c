"""What a wave says, as bytes.

    wave 15 | flag 1 | n 32 (float32)
    up, of each output: q 16 | v 16 | pull 16 | doubt 16      down: thin 16      (all bfloat16)
    each term: 1 | sign 1 | step 8 | order 4, codes         then 0
    where a message comes down with its flag up: lift 8
    of each output: step 8 | order 4, codes                  its vector

A step is a byte j that stands for 2^((j-128)/4). In messages up the first few codes of a term or vector, its head, have
an order of their own. Sizes are counted in bits; the last byte is filled with zeros.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.codes import FOURTHS, WIDEST, Reader, Writer
from laconic.waves.rule import Numbers

# The number of this way to say it, which agents compare; 1 had exp-Golomb codes, 2 another doubt, 3 sweeps, 4 no heads.
CODE = 5
FRONT = 0  # the wave number of a front; waves count from 1
_WAVES = 2**15 - 1
MOST_TERMS = 4096
HEAD = 8  # numbers of a term, at most; fewer where there are few features
_NO_CODES = np.zeros(0, dtype=np.int64)


class Term(NamedTuple):
    """sign (s k)(s k)', a rank-one part of a matrix."""

    sign: int
    step: int
    codes: Array


class Said(NamedTuple):
    """The content of a message, up, down or of a front.

    ``flag`` says of a message up that it builds on the information before the newest, of one down that it lifts.
    ``thin`` is None but in messages down, which say nothing of ``q``, ``v``, ``pull`` and ``doubt``. Of several outputs
    these are arrays (K,), as is ``step``, and ``codes`` are (K, D).
    """

    wave: int
    flag: bool
    n: float
    q: Numbers
    v: Numbers
    terms: Sequence[Term]
    step: int | Array
    codes: Array
    lift: int | None = None
    pull: Numbers = 0.0
    doubt: Numbers = 0.0
    thin: float | None = None


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
    return math.ldexp(FOURTHS[step & 3], (step >> 2) - 32)


def bfloat16(values: Sequence[float]) -> list[int]:
    """The upper halves of the float32 of numbers, rounded to the nearest, to the even one of two.

    >>> bfloat16([1.0, -2.5, 1e300])
    [16256, 49184, 32610]
    """
    near = values
    for x in values:
        if not -WIDEST < x < WIDEST:  # NaN too
            near = [x if -WIDEST < x < WIDEST else math.copysign(WIDEST, x) for x in values]
            break
    whole = struct.unpack(f">{len(near)}I", struct.pack(f">{len(near)}f", *near))
    return [bits + 0x7FFF + (bits >> 16 & 1) >> 16 for bits in whole]  # 3e38 is not rounded beyond all numbers


def from_bfloat16(halves: Sequence[int]) -> tuple[float, ...]:
    """The numbers that 16 bits each stand for."""
    return struct.unpack(f">{len(halves)}f", struct.pack(f">{len(halves)}I", *[half << 16 for half in halves]))


def briefly(parts: Sequence[Numbers]) -> tuple[Numbers, ...]:
    """What is left of numbers that travel as bfloat16, or of arrays of them."""
    if not isinstance(parts[0], np.ndarray):
        return from_bfloat16(bfloat16(parts))  # type: ignore[arg-type]
    return tuple(np.array(from_bfloat16(bfloat16(np.asarray(part).tolist()))) for part in parts)


def numbered(wave: int) -> int:
    """The 15 bits that a message says of a wave's number; 0 is left to fronts."""
    return (wave - 1) % _WAVES + 1


def wave_of(data: bytes) -> int:
    """The wave number that a message begins with; ValueError if it is too short to have one."""
    if len(data) < 2:
        raise ValueError("the message ends too early")
    return int.from_bytes(data[:2], "big") >> 1


def heads(n_features: int, n_terms: int) -> tuple[int, int]:
    """How many numbers of a term are its head in a message up, and of a vector after so many terms.

    >>> heads(100, 0), heads(100, 9), heads(20, 9), heads(7, 9)
    ((8, 8), (8, 12), (2, 3), (0, 0))
    """
    head = min(HEAD, n_features // HEAD)
    return head, head + min(n_terms, (head + 1) // 2)


def headless(wave: int, down: bool) -> bool:
    """Whether a message has no heads: one down, whose terms are what nobody knew, or a front."""
    return down or wave == FRONT


def header(said: Said) -> bytes:
    """What comes before the terms, in whole bytes."""
    first = struct.pack(">Hf", said.wave << 1 | said.flag, min(said.n, WIDEST))
    if said.thin is not None:
        return first + struct.pack(">H", *bfloat16([said.thin]))
    numbers: Sequence[Any] = said.q, said.v, said.pull, said.doubt
    if said.codes.ndim > 1:
        numbers = np.array(numbers, dtype=np.float64).T.ravel().tolist()
    return first + struct.pack(f">{len(numbers)}H", *bfloat16(numbers))


def header_bytes(down: bool, outputs: int) -> int:
    """The length of that."""
    return 8 if down else 6 + 8 * outputs


def from_header(data: bytes, down: bool, outputs: int) -> Said:
    """What a header says; the rest is empty. ValueError if it is none."""
    length = header_bytes(down, outputs)
    if len(data) < length:
        raise ValueError("the message ends too early")
    wave, n = struct.unpack(">Hf", data[:6])
    numbers = from_bfloat16(struct.unpack(f">{length // 2 - 3}H", data[6:length]))
    said = Said(wave >> 1, bool(wave & 1), n, 0.0, 0.0, (), 0, _NO_CODES)
    sizes = [n, *numbers] if down else [n, *numbers[::4], *numbers[1::4], *numbers[3::4]]
    if not all(map(math.isfinite, [n, *numbers])) or min(sizes) < 0:
        raise ValueError("the message's numbers are not finite, or negative")
    if down:
        if not 0 < numbers[0] <= 1:
            raise ValueError("the message thins by more than all, or thickens")
        return said._replace(thin=numbers[0])
    q, v, pull, doubt = numbers if outputs == 1 else np.array(numbers).reshape(outputs, 4).T.copy()
    return said._replace(q=q, v=v, pull=pull, doubt=doubt)


def encode(said: Said) -> tuple[bytes, int]:
    """A message as bytes, and its length in bits."""
    writer = Writer()
    head, longer = heads(said.codes.shape[-1], len(said.terms))
    if headless(said.wave, said.thin is not None):
        head = longer = 0
    for term in said.terms:
        writer.number(1, 1)
        writer.number(term.sign > 0, 1)
        writer.number(term.step, 8)
        writer.vector(term.codes, head)
    writer.number(0, 1)
    if said.lift is not None:
        writer.number(said.lift, 8)
    for step, codes in vectors(said):
        writer.number(step, 8)
        writer.vector(codes, longer)
    body, bits = writer.data()
    first = header(said)
    return first + body, 8 * len(first) + bits


def decode(data: bytes, n_features: int, *, down: bool, outputs: int = 1) -> tuple[Said, int]:
    """What ``encode`` was told, and the length in bits; ValueError for anything else."""
    said, first = from_header(data, down, outputs), header_bytes(down, outputs)
    reader = Reader(data[first:])
    terms: list[Term] = []
    plain = headless(said.wave, down)
    head = 0 if plain else heads(n_features, 0)[0]
    while reader.number(1):
        if len(terms) == MOST_TERMS:
            raise ValueError("the message has more terms than a matrix could need")
        sign = 1 if reader.number(1) else -1
        terms.append(Term(sign, reader.number(8), reader.vector(n_features, head)))
    lift = reader.number(8) if down and said.flag else None
    head = 0 if plain else heads(n_features, len(terms))[1]
    found = [(reader.number(8), reader.vector(n_features, head)) for _ in range(outputs)]
    bits = 8 * first + reader.finish()
    return with_vectors(said, terms, lift, found), bits


def vectors(said: Said) -> list[tuple[int, Array]]:
    """Step and codes of each output's vector."""
    if said.codes.ndim == 1:
        return [(int(said.step), said.codes)]
    return list(zip(np.asarray(said.step).tolist(), said.codes, strict=True))


def with_vectors(said: Said, terms: Sequence[Term], lift: int | None, found: Sequence[tuple[int, Array]]) -> Said:
    """What is said, with what comes after the header."""
    step, codes = found[0]
    if len(found) > 1:
        return said._replace(
            terms=terms,
            lift=lift,
            step=np.array([step for step, _ in found]),
            codes=np.array([codes for _, codes in found]),
        )
    return said._replace(terms=terms, lift=lift, step=step, codes=codes)
