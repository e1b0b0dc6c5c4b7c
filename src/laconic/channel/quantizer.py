"""Quantization: each entry of an innovation becomes a whole number of a few bits.

The range [u, v) is cut into q = 2^b cells of width D. A mid-rise code k (eq. quantizer of the paper) names the middle
of its cell, u + (k + 1/2) D with D = (v - u)/q. A mid-tread code names a whole multiple of D, zero among them, with D
= (v - u)/(q - 1), so that the q levels still reach to within D/2 of both ends. Either way no entry inside the range
is off by more than D/2, and what lies outside saturates at the nearest code.

With an adaptive range v is the largest entry of the message, rounded up to the float32 that travels with it, and u =
-v. Both ends compute with that float32, in plain IEEE arithmetic without fused operations, so all replicas have the
same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError

_SCALE_BITS = 32
_LARGEST = 1e300
_FLOAT32_MAX = np.finfo(np.float32).max


class Codes(NamedTuple):
    """A quantized innovation as it travels: codes (..., n) and, for an adaptive range, the scale (...) in float32."""

    codes: Array
    scale: Array | None


@dataclass(frozen=True)
class Quantizer:
    """A uniform quantizer of ``bits`` bits an entry.

    Parameters
    ----------
    bits : int
        1 to 16.
    range : "adaptive" or (u, v)
        Adaptive: the range is that of each message, at the price of 32 bits. A fixed range costs nothing, but one
        that is too small saturates, winds up the duals and makes a run diverge: watch ``trace.saturated``.
    rounding : "rise" or "tread"
        Whether zero is an edge between two cells (the paper's) or a code of its own.

    Examples
    --------
    >>> import numpy as np
    >>> Quantizer(2, range=(-1.0, 1.0))(np.array([-5.0, -0.3, 0.0, 0.6]))
    array([-0.75, -0.25,  0.25,  0.75])
    >>> Quantizer(3).message_bits(100)
    332
    """

    bits: int
    range: str | tuple[float, float] = "adaptive"
    rounding: str = "rise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _validate.integer("bits", self.bits, least=1, most=16))
        _validate.choice("rounding", self.rounding, ("rise", "tread"))
        if isinstance(self.range, str):
            _validate.choice("range", self.range, ("adaptive",))
            return
        try:
            low, high = self.range
        except (TypeError, ValueError):
            raise ArgumentError(
                "range", f"must be 'adaptive' or a pair (u, v), got {_validate.shown(self.range)}."
            ) from None
        low, high = _validate.number("range[0]", low), _validate.number("range[1]", high)
        if not low < high:
            raise ArgumentError("range", f"must be a pair (u, v) with u < v, got {_validate.shown(self.range)}.")
        if max(-low, high) > _LARGEST or not (high - low) / self.cells > 0:
            raise ArgumentError(
                "range",
                f"must be neither too wide nor too narrow for floats to divide, got {_validate.shown(self.range)}.",
            )
        object.__setattr__(self, "range", (low, high))

    @property
    def cells(self) -> int:
        """q = 2^bits."""
        return int(2**self.bits)

    @property
    def adaptive(self) -> bool:
        """Whether the range travels with each message."""
        return isinstance(self.range, str)

    def message_bits(self, n_features: int) -> int:
        """Bits of one message: ``bits`` an entry, and 32 for the scale if it travels along."""
        return self.bits * n_features + (_SCALE_BITS if self.adaptive else 0)

    def quantize(self, innovation: Array) -> Codes:
        """The codes of each row of ``innovation``."""
        scale = upward_float32(np.abs(innovation).max(axis=-1)) if self.adaptive else None
        edge, _, _, width = self._lattice(scale, innovation.dtype)
        # A silent row has no width, its codes are set below; an entry far outside may overflow, and saturates.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cell = np.floor((innovation - edge) / width)
        cell = np.where(width > 0, np.clip(cell, 0, self.cells - 1), 0)
        return Codes(cell.astype(np.uint16), scale)

    def dequantize(self, codes: Codes, dtype: object = np.float64) -> Array:
        """The values that ``codes`` stand for."""
        _, base, shift, width = self._lattice(codes.scale, np.dtype(dtype))  # type: ignore[call-overload]
        return base + (codes.codes.astype(width.dtype) + shift) * width

    def __call__(self, innovation: Array) -> Array:
        """Q(h), row by row: what the neighbours will add to their replicas."""
        return self.dequantize(self.quantize(innovation), innovation.dtype)

    def encode(self, h: Array) -> bytes:
        """An innovation (n_features,) as it travels: the scale, float32, if the range is adaptive, then the codes."""
        codes = self.quantize(h)
        scale = b"" if codes.scale is None else np.asarray(codes.scale, dtype="<f4").tobytes()
        return scale + pack(codes.codes, self.bits).tobytes()

    def decode(self, data: bytes, n_features: int, dtype: object = np.float64) -> Array:
        """The innovation in a message of ``encode``; ValueError if it is not one."""
        start = _SCALE_BITS // 8 if self.adaptive else 0
        scale = np.frombuffer(data[:start], dtype="<f4").reshape(()) if self.adaptive else None
        if scale is not None and not 0 <= scale < np.inf:
            raise ValueError(f"data must begin with a scale that is positive and finite, got {scale}.")
        codes = unpack(np.frombuffer(data, dtype=np.uint8, offset=start), n_features, self.bits)
        return self.dequantize(Codes(codes, scale), dtype)

    def outside(self, innovation: Array) -> Array:
        """How many entries of each row lie outside the range and so saturate."""
        if self.adaptive:
            high = upward_float32(np.abs(innovation).max(axis=-1))[..., None].astype(innovation.dtype)
            low = -high
        else:
            low, high = np.asarray(self.range, dtype=innovation.dtype)
        return ((innovation < low) | (innovation > high)).sum(axis=-1)

    def _lattice(self, scale: Array | None, dtype: np.dtype[Any]) -> tuple[Array, Array, Array, Array]:
        """Lower edge, and base, shift, width such that code k stands for ``base + (k + shift) * width``.

        These lines are ``coding.put_codes``'s, to the bit.
        """
        if scale is not None:
            high = np.asarray(scale).astype(dtype)[..., None]
            low = -high
        else:
            low, high = (np.asarray(end, dtype=dtype) for end in self.range)
        if self.rounding == "rise":
            width = (high - low) / self.cells
            # A silent row has width 0: base 0 and any code then decode to 0.
            return low, low, np.asarray(0.5, dtype=dtype), width
        width = (high - low) / (self.cells - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            lowest = np.where(width > 0, np.rint(low / width), 0).astype(dtype)
        return (lowest - dtype.type(0.5)) * width, np.zeros_like(low), lowest, width


def upward_float32(peak: Array) -> Array:
    """The least float32 that is not below ``peak``, at most the largest finite one."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(peak).astype(np.float32)
        rounded = np.where(rounded < peak, np.nextafter(rounded, np.float32(np.inf)), rounded)
    return np.minimum(rounded, _FLOAT32_MAX)


def pack(codes: Array, bits: int) -> Array:
    """Codes in ``bits`` bits each, back to back, the first in the lowest bits: bytes of which the last is filled up."""
    halves = np.ascontiguousarray(codes, dtype="<u2").view(np.uint8).reshape(-1, 2)
    return np.packbits(np.unpackbits(halves, axis=1, bitorder="little")[:, :bits], bitorder="little")


def unpack(packed: Array, n_codes: int, bits: int) -> Array:
    """The codes that ``pack`` packed; ValueError if bytes are missing or too many, or bits left over are not zero."""
    size = -(-n_codes * bits // 8)
    if packed.size != size:
        raise ValueError(f"{n_codes} codes of {bits} bits must take {size} bytes, got {packed.size}.")
    single = np.unpackbits(packed, bitorder="little")
    if single[n_codes * bits :].any():
        raise ValueError("bits left over behind the last code must be zero.")
    wide = np.zeros((n_codes, 16), dtype=np.uint8)
    wide[:, :bits] = single[: n_codes * bits].reshape(n_codes, bits)
    return np.packbits(wide, axis=1, bitorder="little").view("<u2")[:, 0]
