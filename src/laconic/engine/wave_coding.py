"""Messages of waves as bits, compiled: the terms and vectors of ``laconic.waves.message``, with its bits."""

from __future__ import annotations

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.vectors import ladder, lean
from laconic.engine.wave_turning import head_of
from laconic.waves.codes import LONGEST, ORDERS, STEEP


@ladder
def unsigned(k):
    """An integer as one that is not negative."""
    return 2 * k - 1 if k > 0 else -2 * k


@lean
def length_in(codes, order, most):
    """Bits of a vector of integers in an order, without the order itself; more than ``most``, where it is longer.

    As if what is rare took no longer than the shortest of it, it is found for several numbers at a time.
    """
    length = (order + 1) * len(codes)
    for k in codes:
        length += min(unsigned(k) >> order, STEEP)
    if length > most:
        return length
    for k in codes:
        high = unsigned(k) >> order
        if high > STEEP:
            length += 2 * digits_of(high - STEEP + 1) - 2
    return length


@lean
def cheapest_order(codes):
    """The order whose code is shortest, the smallest of several."""
    total = 0
    for k in codes:
        total += unsigned(k)
    guess = min(ORDERS - 1, digits_of(total // (2 * len(codes))))
    order, best = guess, length_in(codes, guess, 1 << 62)
    for p in range(ORDERS):
        if p != guess:
            if (p + 1) * len(codes) > best:
                break
            length = length_in(codes, p, best)
            if length < best or (length == best and p < order):
                order, best = p, length
    return order


@ladder
def put(value, width, data, at, kept, held):
    """``width`` bits more, at most 48: ``kept`` are the last ``held`` < 8 bits, which fill no byte of ``data`` yet."""
    kept, held = kept << width | value, held + width
    while held >= 8:
        held -= 8
        data[at] = kept >> held & 255
        at += 1
    return at, kept & (1 << held) - 1, held


@lean
def write_parts(codes, head, data, at, kept, held):
    """``write_vector`` of a head, if there is one, and of the rest."""
    if head > 0:
        at, kept, held = write_vector(codes[:head], data, at, kept, held)
    return write_vector(codes[head:], data, at, kept, held)


@lean
def write_vector(codes, data, at, kept, held):
    """Order and codes of a vector of integers as bits: see ``put``."""
    order = cheapest_order(codes)
    at, kept, held = put(order, 4, data, at, kept, held)
    for k in codes:
        u = unsigned(k)
        high, low = u >> order, u & (1 << order) - 1
        if high < STEEP:
            at, kept, held = put(1 << order | low, high + 1 + order, data, at, kept, held)
        else:
            digits = digits_of(high - STEEP + 1)
            at, kept, held = put(0, STEEP + digits - 1, data, at, kept, held)
            at, kept, held = put(high - STEEP + 1, digits, data, at, kept, held)
            at, kept, held = put(low, order, data, at, kept, held)
    return at, kept, held


@lean
def read_parts(bits, at, head, codes):
    """Read what ``write_parts`` wrote: see ``read_vector``."""
    if head > 0:
        at = read_vector(bits, at, codes[:head])
    return read_vector(bits, at, codes[head:]) if at >= 0 else at


@entry
def read_vector(bits, at, codes):
    """Read what ``write_vector`` wrote; returns where it ends, or -1 if bits are missing or mean nothing."""
    if at + 4 > len(bits):
        return -1
    order = 0
    for _ in range(4):
        order = order << 1 | np.int64(bits[at])
        at += 1
    for k in range(len(codes)):
        zeros = 0
        while at < len(bits) and bits[at] == 0:
            zeros += 1
            at += 1
        digits = max(zeros - STEEP, 0) + 1
        if at + digits + order > len(bits) or digits + order > LONGEST:
            return -1
        high = 0
        for _ in range(digits):
            high = high << 1 | np.int64(bits[at])
            at += 1
        u = zeros if zeros < STEEP else high + STEEP - 1
        for _ in range(order):
            u = u << 1 | np.int64(bits[at])
            at += 1
        codes[k] = (u + 1) >> 1 if u & 1 else -(u >> 1)
    return at


@entry
def write_body(rows, n_terms, plain, data, at):
    """A row a term, (sign, step, codes), then (lift or -1, step, codes) a vector, from byte ``at`` on.

    With heads, unless the message is ``plain``.

    Returns how many bits there are, those before them counted.
    """
    kept = held = 0
    head = 0 if plain else head_of(rows.shape[1] - 2)
    for k in range(n_terms):
        first = (2 | (1 if rows[k, 0] > 0 else 0)) << 8 | rows[k, 1]
        at, kept, held = put(first, 10, data, at, kept, held)
        at, kept, held = write_parts(rows[k, 2:], head, data, at, kept, held)
    at, kept, held = put(0, 1, data, at, kept, held)
    if rows[n_terms, 0] >= 0:
        at, kept, held = put(rows[n_terms, 0], 8, data, at, kept, held)
    for k in range(n_terms, rows.shape[0]):
        at, kept, held = put(rows[k, 1], 8, data, at, kept, held)
        at, kept, held = write_parts(rows[k, 2:], head + min(n_terms, (head + 1) // 2), data, at, kept, held)
    data[at] = kept << 8 - held
    return 8 * at + held


@entry
def read_body(bits, plain, lifted, most, rows):
    """Read what ``write_body`` wrote, of ``most`` terms at the most: how many there are, and where the bits end.

    -1 terms if it is nothing of the kind. The vectors are as many as ``rows`` has beyond the terms.
    """
    at = n_terms = 0
    head = 0 if plain else head_of(rows.shape[1] - 2)
    while True:
        if at >= len(bits):
            return -1, 0
        more = bits[at] == 1
        at += 1
        if not more:
            break
        if n_terms >= most or at + 9 > len(bits):
            return -1, 0
        rows[n_terms, 0] = 1 if bits[at] else -1
        rows[n_terms, 1] = read_byte(bits, at + 1)
        at = read_parts(bits, at + 9, head, rows[n_terms, 2:])
        if at < 0:
            return -1, 0
        n_terms += 1
    if lifted:
        if at + 8 > len(bits):
            return -1, 0
        rows[n_terms, 0] = read_byte(bits, at)
        at += 8
    for k in range(n_terms, n_terms + rows.shape[0] - most):
        if at + 8 > len(bits):
            return -1, 0
        rows[k, 1] = read_byte(bits, at)
        at = read_parts(bits, at + 8, head + min(n_terms, (head + 1) // 2), rows[k, 2:])
        if at < 0:
            return -1, 0
    if len(bits) - at > 7:
        return -1, 0
    for k in range(at, len(bits)):
        if bits[k]:
            return -1, 0
    return n_terms, at


@entry
def read_byte(bits, at):
    """The number of eight bits."""
    value = 0
    for k in range(at, at + 8):
        value = value << 1 | np.int64(bits[k])
    return value


@entry
def digits_of(positive):
    """Binary digits of a whole number."""
    digits = 0
    while positive > 0:
        digits += 1
        positive >>= 1
    return digits
