"""Whole numbers as bits: exp-Golomb codes of zigzag integers, and a reader and a writer of bits.

A vector of integers is 3 bits p, then each of them zigzag (k > 0: 2k - 1, else -2k) in the exp-Golomb code of order p:
u + 2^p in binary, after as many zeros as it has digits beyond the p + 1 that it has at least. The sender takes the
cheapest p. Bits are written from the highest of each byte on; the last byte is filled with zeros.
"""

from __future__ import annotations

import numpy as np

from laconic._validate import Array

LARGEST = 2**40  # of an integer's magnitude
_LONGEST = 42  # digits of u + 2^p that a reader accepts


class Writer:
    """Collects bits; ``data`` gives them as bytes."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def number(self, value: int, width: int) -> None:
        """A number of a fixed width."""
        self._parts.append(format(value, f"0{width}b"))

    def vector(self, codes: Array) -> None:
        """A vector of integers, in the cheapest order."""
        unsigned = np.where(codes > 0, 2 * codes - 1, -2 * codes)
        order = cheapest_order(unsigned)
        self.number(order, 3)
        shifted = unsigned + (1 << order)
        widths = 2 * _digits(shifted) - 1 - order
        self._parts += [format(u, f"0{w}b") for u, w in zip(shifted.tolist(), widths.tolist(), strict=True)]

    def data(self) -> tuple[bytes, int]:
        """All bits as bytes, and how many they are without those that fill the last byte."""
        text = "".join(self._parts)
        n_bytes = -(-len(text) // 8)
        return int(text.ljust(8 * n_bytes, "0") or "0", 2).to_bytes(n_bytes, "big"), len(text)


class Reader:
    """Reads what a ``Writer`` wrote; ValueError where bits are missing or mean nothing."""

    def __init__(self, data: bytes) -> None:
        self._text = format(int.from_bytes(data, "big"), f"0{8 * len(data)}b") if data else ""
        self._at = 0

    def number(self, width: int) -> int:
        """A number of a fixed width."""
        start, self._at = self._at, self._at + width
        if self._at > len(self._text):
            raise ValueError("the message ends too early")
        return int(self._text[start : self._at], 2)

    def vector(self, length: int) -> Array:
        """A vector of so many integers."""
        order, text, at = self.number(3), self._text, self._at
        unsigned = []
        for _ in range(length):
            one = text.find("1", at)
            end = 2 * one - at + 1 + order
            if one < 0 or end > len(text) or end - one > _LONGEST:
                raise ValueError("the message ends too early, or holds a number beyond all bounds")
            unsigned.append(int(text[one:end], 2))
            at = end
        self._at = at
        shifted = np.array(unsigned, dtype=np.int64) - (1 << order)
        return np.where(shifted & 1, (shifted + 1) >> 1, -(shifted >> 1))

    def finish(self) -> int:
        """How many bits there were; what is left may only be the filling of the last byte."""
        rest = self._text[self._at :]
        if len(rest) > 7 or "1" in rest:
            raise ValueError("the message is followed by something else")
        return self._at


def vector_bits(codes: Array) -> int:
    """Length of a vector of integers, its 3 bits for the order included.

    >>> vector_bits(np.array([0, 1, -1, 2]))  # 3, and 1 + 3 + 3 + 5 in order 0, 2 + 2 + 4 + 4 in order 1
    15
    """
    unsigned = np.where(codes > 0, 2 * codes - 1, -2 * codes)
    return 3 + int(_lengths(unsigned).min())


def cheapest_order(unsigned: Array) -> int:
    """The order p whose code is shortest, the smallest of several."""
    return int(_lengths(unsigned).argmin())


def _lengths(unsigned: Array) -> Array:
    """Bits of a vector of unsigned integers in each of the orders 0 .. 7."""
    orders = np.arange(8)
    digits = _digits(unsigned[None, :] + (1 << orders)[:, None])
    return np.asarray((2 * digits - 1 - orders[:, None]).sum(axis=1))


def _digits(positive: Array) -> Array:
    """Binary digits of whole numbers from 1 to 2^52."""
    return np.frexp(positive.astype(np.float64))[1]
