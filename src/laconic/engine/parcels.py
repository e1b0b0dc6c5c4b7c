"""What the processes of one job send each other: the messages of the agents that are heard elsewhere, as bytes.

A parcel for another process begins with two bits for each agent that it hears (``coding.SILENT``, ``SAID``, ``SAME``),
and goes on with the messages of those who SAID something: packed codes, after their scale if that travels; an entropy
code, after its length; or the model as it is. These are the bytes that running agents send, without their envelopes.

Rows of agents elsewhere stand behind the ``n_here`` rows of the agents here, in the order in which parcels come.
"""

from __future__ import annotations

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.coding import DENSE, ENTROPY, SAID
from laconic.engine.entropy_coding import read_codes, write_codes
from laconic.engine.vectors import jit

_HALF = 256  # codes of an entropy code are kept as if they were not negative
LENGTH_BYTES = 2  # before an entropy code
SCALE_BYTES = 4  # before codes whose range varies


@jit
def copy_bytes(source, source_at, n_bytes, target, target_at):
    """Bytes from here to there."""
    for k in range(n_bytes):
        target[target_at + k] = source[source_at + k]


@jit
def pack_codes(codes, row, size, n_features, bits, parcel, at):
    """The codes of a row, ``bits`` bits each, the first in the lowest bits; where they end."""
    waiting, n_waiting = np.uint64(0), np.uint64(0)
    for k in range(n_features):
        code = np.uint64(codes[row, k])
        if bits > 8:
            code |= np.uint64(codes[row, size + k]) << np.uint64(8)
        waiting |= code << n_waiting
        n_waiting += np.uint64(bits)
        while n_waiting >= np.uint64(8):
            parcel[at] = np.uint8(waiting & np.uint64(255))
            waiting >>= np.uint64(8)
            n_waiting -= np.uint64(8)
            at += 1
    if n_waiting:
        parcel[at] = np.uint8(waiting)
        at += 1
    return at


@jit
def unpack_codes(parcel, at, n_features, bits, codes, row, size):
    """The inverse of ``pack_codes``."""
    waiting, n_waiting = np.uint64(0), np.uint64(0)
    mask, length = np.uint64((1 << bits) - 1), np.uint64(bits)
    for k in range(n_features):
        while n_waiting < length:
            waiting |= np.uint64(parcel[at]) << n_waiting
            n_waiting += np.uint64(8)
            at += 1
        code = waiting & mask
        codes[row, k] = np.uint8(code & np.uint64(255))
        if bits > 8:
            codes[row, size + k] = np.uint8(code >> np.uint64(8))
        waiting >>= length
        n_waiting -= length
    return at


@jit
def put_message(plan, bits, size, models, scale_bytes, scales, codes, row, chosen, written, parcel, at):
    """What the agent of a row has said, from ``at`` on; where it ends. ``models`` are bytes, a row an agent."""
    n_features = plan.n_features
    if plan.rounding == DENSE:
        n_bytes = models.shape[1] // size * n_features
        copy_bytes(models[row], 0, n_bytes, parcel, at)
        return at + n_bytes
    if plan.rounding == ENTROPY:
        for k in range(n_features):
            chosen[k] = np.int64(codes[row, k]) + _HALF * np.int64(codes[row, size + k]) - _HALF
        length = write_codes(np.int64(scales[row]), chosen, n_features, written)
        parcel[at], parcel[at + 1] = np.uint8(length & 255), np.uint8(length >> 8)
        copy_bytes(written, 0, length, parcel, at + LENGTH_BYTES)
        return at + LENGTH_BYTES + length
    if plan.low == plan.high:
        copy_bytes(scale_bytes, SCALE_BYTES * row, SCALE_BYTES, parcel, at)
        at += SCALE_BYTES
    return pack_codes(codes, row, size, n_features, bits, parcel, at)


@jit
def take_message(plan, bits, size, models, scale_bytes, scales, codes, row, chosen, parcel, at):
    """The inverse of ``put_message``, for the row of an agent elsewhere; a model goes where it is to be."""
    n_features = plan.n_features
    if plan.rounding == DENSE:
        n_bytes = models.shape[1] // size * n_features
        copy_bytes(parcel, at, n_bytes, models[row], 0)
        return at + n_bytes
    if plan.rounding == ENTROPY:
        length = np.int64(parcel[at]) + _HALF * np.int64(parcel[at + 1])
        at += LENGTH_BYTES
        read_codes(parcel[at : at + length], n_features, chosen)
        scales[row] = parcel[at]
        for k in range(n_features):
            code = chosen[k] + _HALF
            codes[row, k], codes[row, size + k] = np.uint8(code & 255), np.uint8(code >> 8)
        return at + length
    if plan.low == plan.high:
        copy_bytes(parcel, at, SCALE_BYTES, scale_bytes, SCALE_BYTES * row)
        at += SCALE_BYTES
    return unpack_codes(parcel, at, n_features, bits, codes, row, size)


@entry
def pack_parcels(plan, bits, size, models, scale_bytes, rows, tell, members, chosen, written, outgoing, counts):
    """Parcels for all other processes, back to back: ``members[tell[k] : tell[k + 1]]`` are the rows for one of them.

    ``models`` are the models of the agents here, as bytes; ``counts`` gets the bytes of each parcel.
    """
    at = 0
    for other in range(tell.size - 1):
        first, begin, end = at, tell[other], tell[other + 1]
        at += (end - begin + 3) // 4
        outgoing[first:at] = 0
        for n in range(begin, end):
            row = members[n]
            outgoing[first + (n - begin) // 4] |= np.uint8(rows.spoken[row] << (2 * ((n - begin) % 4)))
            if rows.spoken[row] == SAID:
                at = put_message(
                    plan, bits, size, models, scale_bytes, rows.scales, rows.codes, row, chosen, written, outgoing, at
                )  # fmt: skip
        counts[other] = at - first


@entry
def open_parcels(plan, bits, size, models, scale_bytes, rows, hear, n_here, chosen, incoming, counts):
    """What came from all other processes, into the rows of the agents elsewhere; False if its lengths do not add up.

    ``models`` are the replicas, as bytes.
    """
    at = 0
    for other in range(hear.size - 1):
        first, begin, end = at, hear[other], hear[other + 1]
        at += (end - begin + 3) // 4
        for n in range(begin, end):
            row = n_here + n
            rows.spoken[row] = (incoming[first + (n - begin) // 4] >> (2 * ((n - begin) % 4))) & 3
            if rows.spoken[row] == SAID:
                at = take_message(
                    plan, bits, size, models, scale_bytes, rows.scales, rows.codes, row, chosen, incoming, at
                )  # fmt: skip
        if at - first != counts[other]:
            return False
    return True
