"""The entropy code over single rows: the bytes of ``channel.EntropyQuantizer``, and the numbers in them.

The interval of the range coder is a pair of whole numbers of 64 bits, of which 32 are used.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.channel.entropy import HALFWAY, LARGEST, MORE_PRICES, PMORE, PNZ, STEPS, ZERO_PRICES
from laconic.channel.ranges import HALF
from laconic.engine.vectors import lean

_NONZERO, _MORE = np.array(PNZ), np.array(PMORE)
_WHOLE, _TOP = 0xFFFFFFFF, 1 << 24


@lean
def nearest_step(size):
    """The j whose step is nearest to ``size``: ``entropy.nearest_step``, line by line."""
    if not size < 4294967296.0:
        return 255
    if not size > 0:
        return 0
    mantissa, exponent = math.frexp(size)
    above = 0
    for halfway in HALFWAY:
        above += 2 * mantissa > halfway
    return min(max(128 + 4 * (exponent - 1) + above, 0), 255)


@lean
def cheapest(prices, n_yes, n_no):
    """The model with which so many answers cost least; of two that cost the same, the first."""
    best, least = 0, prices[0, 0] * n_yes + prices[0, 1] * n_no
    for model in range(1, len(prices)):
        price = prices[model, 0] * n_yes + prices[model, 1] * n_no
        if price < least:
            best, least = model, price
    return best


@lean
def put(yes, p, low, high, written, length):
    """Write a decision: (low, high, bytes written)."""
    middle = low + ((high - low) >> 12) * p
    if yes:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) < _TOP:
        written[length] = high >> 24
        length += 1
        low = (low << 8) & _WHOLE
        high = ((high << 8) & _WHOLE) | 255
    return low, high, length


@lean
def ending(low, high):
    """The shortest number in [low, high] with zeros behind it, and its bytes."""
    for size in range(4):
        rest = _WHOLE >> (8 * size)
        number = (low + rest) & ~rest
        if number <= high:
            return number, size
    return low, 4


@lean
def choose_codes(innovation, n_features, coarseness, dead_zone, chosen):
    """J, and how many entries lie beyond the largest code; ``chosen`` gets the codes."""
    square = 0.0
    for k in range(n_features):
        square += np.float64(innovation[0, k]) * np.float64(innovation[0, k])
    j = nearest_step(coarseness * math.sqrt(square / n_features))
    step, beyond = STEPS[j], 0
    for k in range(n_features):
        value = np.float64(innovation[0, k])
        ratio = abs(value) / step + dead_zone
        size = np.int64(ratio) if ratio < LARGEST else LARGEST
        beyond += abs(value) > (LARGEST + 1 - dead_zone) * step
        chosen[k] = -size if value < 0 else size
    return j, beyond


@lean
def write_codes(j, chosen, n_features, written):
    """The message of these codes into ``written``; how many bytes it has."""
    n_nonzero = n_more = n_ends = 0
    for k in range(n_features):
        size = abs(chosen[k])
        if size:
            n_nonzero += 1
            n_more += size - 1
            n_ends += size < LARGEST
    zero, more = cheapest(ZERO_PRICES, n_nonzero, n_features - n_nonzero), cheapest(MORE_PRICES, n_more, n_ends)
    written[0], written[1] = j, zero << 3 | more
    p_nonzero, p_more = _NONZERO[zero], _MORE[more]
    low, high, length = 0, _WHOLE, 2
    for k in range(n_features):
        size = abs(chosen[k])
        low, high, length = put(size != 0, p_nonzero, low, high, written, length)
        if size:
            low, high, length = put(chosen[k] < 0, HALF, low, high, written, length)
            for _ in range(size - 1):
                low, high, length = put(True, p_more, low, high, written, length)
            if size < LARGEST:
                low, high, length = put(False, p_more, low, high, written, length)
    number, rest = ending(low, high)
    for k in range(rest):
        written[length] = (number >> (24 - 8 * k)) & 255
        length += 1
    return length


@lean
def get(p, low, high, code, data, shifted):
    """Read a decision: (yes or no, low, high, code, bytes shifted out), the last -1 if there are none left."""
    middle = low + ((high - low) >> 12) * p
    yes = code <= middle
    if yes:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) < _TOP:
        if shifted == data.size - 2:
            return yes, low, high, code, -1
        shifted += 1
        following = shifted + 5
        code = ((code << 8) & _WHOLE) | (np.int64(data[following]) if following < data.size else 0)
        low = (low << 8) & _WHOLE
        high = ((high << 8) & _WHOLE) | 255
    return yes, low, high, code, shifted


@lean
def read_codes(data, n_features, chosen):
    """The codes in a message, and whether it is one."""
    if data.size < 2 or data[1] > 127:
        return False
    p_nonzero, p_more = _NONZERO[data[1] >> 3], _MORE[data[1] & 7]
    low, high, code, shifted = 0, _WHOLE, 0, 0
    for k in range(2, 6):
        code = (code << 8) | (np.int64(data[k]) if k < data.size else 0)
    for k in range(n_features):
        chosen[k] = 0
        yes, low, high, code, shifted = get(p_nonzero, low, high, code, data, shifted)
        if shifted < 0:
            return False
        if not yes:
            continue
        negative, low, high, code, shifted = get(HALF, low, high, code, data, shifted)
        size = 1
        while shifted >= 0 and size < LARGEST:
            yes, low, high, code, shifted = get(p_more, low, high, code, data, shifted)
            if not yes:
                break
            size += 1
        if shifted < 0:
            return False
        chosen[k] = -size if negative else size
    number, rest = ending(low, high)
    good = data.size - 2 - shifted == rest
    for k in range(rest if good else 0):
        good &= data[2 + shifted + k] == (number >> (24 - 8 * k)) & 255
    return good


@lean
def add_codes(j, chosen, n_features, broadcast, row):
    """theta-hat <- theta-hat + k step, rounded once to the working precision."""
    real = broadcast.dtype.type
    step = STEPS[j]
    for k in range(n_features):
        broadcast[row, k] += real(np.float64(chosen[k]) * step)
