"""A quantizer of one's own: whatever turns the innovation of one agent into bytes, and these into numbers again.

``encode(h)`` gets the innovation h = theta - theta-hat, an array (n_features,), and returns bytes, as many as it likes
up to 16 for each feature and 1024 more. ``decode(data)`` gets such bytes, perhaps from a stranger, and returns the
array (n_features,) that sender and receivers alike add to their replicas of the sender's model. So ``decode`` must give
the same bits wherever it runs, and should refuse what it cannot read with an exception: that is counted as a message
refused, and changes nothing.

What it costs is eight bits for each byte of a message, unless there is a ``message_bits(n_features)`` that accounts for
it otherwise. The simulator codes row by row; if there is a ``__call__(innovations)`` over rows (and ``message_bits``),
it takes that instead, which must give what ``decode(encode(h))`` does. ``outside(innovations)`` may count the entries
of each row that saturate.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from laconic._validate import Array
from laconic.channel.entropy import EntropyQuantizer
from laconic.channel.quantizer import Quantizer


class Coder(Protocol):
    """What a quantizer must have to go over the wire."""

    def encode(self, h: Array, /) -> bytes:
        """The message that says ``h``."""

    def decode(self, data: bytes, /) -> Array:
        """What a message says."""


class Undecodable(ValueError):
    """Bytes that a quantizer makes nothing of."""


def can_code(quantizer: object) -> bool:
    """Whether a quantizer turns innovations into bytes and back."""
    return all(callable(getattr(quantizer, name, None)) for name in ("encode", "decode"))


def longest_message(n_features: int) -> int:
    """Bytes that the message of a quantizer of one's own may have: no stranger's message costs more memory."""
    return 16 * n_features + 1024


def encode_row(quantizer: Any, h: Array) -> bytes:
    """The message of one innovation, checked."""
    data = quantizer.encode(h)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ValueError(f"quantizer.encode must return bytes, got {type(data).__name__} from {quantizer!r}.")
    message = bytes(data)
    most = longest_message(len(h))
    if len(message) > most:
        raise ValueError(f"quantizer.encode must return at most {most} bytes for {len(h)} features, got {len(data)}.")
    return message


def decode_row(quantizer: Any, data: bytes, n_features: int, dtype: np.dtype[Any]) -> Array:
    """The innovation in a message, (n_features,) and finite; ``Undecodable`` if there is none."""
    try:
        # The codes of laconic's own do not tell how many they are.
        sized = isinstance(quantizer, (Quantizer, EntropyQuantizer))
        read = quantizer.decode(data, n_features) if sized else quantizer.decode(data)
        values = np.asarray(read, dtype=dtype)
    except Exception as error:  # a person's code, fed with anybody's bytes
        raise Undecodable(f"quantizer.decode cannot read a message: {error}") from error
    if values.shape != (n_features,):
        raise Undecodable(f"quantizer.decode must return shape ({n_features},), got {values.shape}.")
    if not np.isfinite(values).all():
        raise Undecodable("quantizer.decode must return finite numbers.")
    return values
