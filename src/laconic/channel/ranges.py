"""A binary range coder: yes or no, each with a probability that both ends know, into as few bytes as that is worth.

The interval [low, high] of 32-bit numbers is cut in two at every decision, in proportion to the probability p of a yes,
of 4096; leading bytes on which its ends agree are written and shifted out, so nothing is carried back into what was
written. The end is the shortest number that lies inside; behind the last byte the reader sees zeros.
"""

from __future__ import annotations

from typing import final

HALF = 2048
_WHOLE, _TOP = 0xFFFFFFFF, 1 << 24


@final
class RangeEncoder:
    """Decisions in, bytes out.

    Examples
    --------
    >>> encoder = RangeEncoder()
    >>> for answer in (True, True, False, True):
    ...     encoder.put(answer, 3000)
    >>> encoder.end()
    b'e'
    """

    def __init__(self) -> None:
        self._low, self._high = 0, _WHOLE
        self._written = bytearray()

    def put(self, yes: bool, p: int) -> None:
        """Write a decision that was a yes with probability ``p`` of 4096."""
        middle = self._low + ((self._high - self._low) >> 12) * p
        if yes:
            self._high = middle
        else:
            self._low = middle + 1
        while (self._low ^ self._high) < _TOP:
            self._written.append(self._high >> 24)
            self._low = self._low << 8 & _WHOLE
            self._high = (self._high << 8 & _WHOLE) | 255

    def end(self) -> bytes:
        """All that was written."""
        return bytes(self._written) + ending(self._low, self._high)


@final
class RangeDecoder:
    """Bytes in, decisions out; ValueError if they are not what ``RangeEncoder`` writes."""

    def __init__(self, data: bytes) -> None:
        self._low, self._high = 0, _WHOLE
        self._data, self._shifted = data, 0
        self._code = int.from_bytes(data[:4].ljust(4, b"\0"), "big")

    def get(self, p: int) -> bool:
        """Read a decision that was a yes with probability ``p`` of 4096."""
        middle = self._low + ((self._high - self._low) >> 12) * p
        yes = self._code <= middle
        if yes:
            self._high = middle
        else:
            self._low = middle + 1
        while (self._low ^ self._high) < _TOP:
            if self._shifted == len(self._data):
                raise ValueError("data must not end before all is said.")
            self._shifted += 1
            following = self._shifted + 3
            self._code = (self._code << 8 & _WHOLE) | (self._data[following] if following < len(self._data) else 0)
            self._low = self._low << 8 & _WHOLE
            self._high = (self._high << 8 & _WHOLE) | 255
        return yes

    def end(self) -> None:
        """Make sure that nothing else follows."""
        if self._data[self._shifted :] != ending(self._low, self._high):
            raise ValueError("data must end where all is said.")


def ending(low: int, high: int) -> bytes:
    """The fewest bytes that, with zeros behind them, are a number in [low, high]."""
    for size in range(4):
        rest = _WHOLE >> 8 * size
        number = (low + rest) & ~rest
        if number <= high:
            return (number >> 8 * (4 - size)).to_bytes(size, "big")
    return low.to_bytes(4, "big")
