"""Messages spoiled by chance: bits flip, ends are cut off, pieces are swapped, doubled, inserted, or all is noise."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np


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
