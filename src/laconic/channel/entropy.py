"""An entropy code: most entries of an innovation are near zero, and what is usual should cost little.

A message is

    1 byte     j: the step is 2^((j - 128)/4), the one nearest to ``coarseness`` times the rms of h
    1 byte     zero model (0 to 15) << 3 | magnitude model (0 to 7)
    the rest   a range code (``ranges``) of k_1, k_2, ..., k_n with k = sign(h) floor(|h|/step + dead_zone)

where each k is a nonzero flag, with probability PNZ of the zero model; if it is not zero a sign, yes for minus, with
probability 1/2; and then |k| - 1 times yes and once no, with probability PMORE of the magnitude model. |k| is 255 at
most, and after the 254th yes there is no no. The sender takes the models that cost least. What is said is k times step.

There is no memory from one message to the next, so a lost one spoils no other. The step is a power of two times one of
four constants, so it is the same double everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.channel.ranges import HALF, RangeDecoder, RangeEncoder

#: 4096 * 0.98 * 0.78^i and 4096 * 0.9 * 0.6^m, rounded.
PNZ = (4014, 3131, 2442, 1905, 1486, 1159, 904, 705, 550, 429, 335, 261, 204, 159, 124, 97)
PMORE = (3686, 2212, 1327, 796, 478, 287, 172, 103)
LARGEST = 255
_FOURTHS = (1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429)
HALFWAY = tuple((one + other) / 2 for one, other in zip(_FOURTHS, (*_FOURTHS[1:], 2.0), strict=True))
_FROM_ZERO, _LARGEST_STEP = 128, 2.0**32


def _prices(chances: tuple[int, ...]) -> Array:
    """What a yes and what a no cost with each model, in 65536ths of a bit, (models, 2)."""
    return np.array([[round(-65536 * math.log2(p / 4096)) for p in (chance, 4096 - chance)] for chance in chances])


ZERO_PRICES, MORE_PRICES = _prices(PNZ), _prices(PMORE)
STEPS = np.array([math.ldexp(_FOURTHS[j % 4], (j - _FROM_ZERO) // 4) for j in range(256)])


def nearest_step(size: float) -> int:
    """The j whose step is nearest to ``size``; of two as near, the smaller.

    >>> nearest_step(1.0), nearest_step(1.2), nearest_step(0.5), nearest_step(0.0), nearest_step(1e30)
    (128, 129, 124, 0, 255)
    """
    if not size < _LARGEST_STEP:
        return LARGEST
    if not size > 0:
        return 0
    mantissa, exponent = math.frexp(size)
    above = sum(2 * mantissa > halfway for halfway in HALFWAY)
    return min(max(_FROM_ZERO + 4 * (exponent - 1) + above, 0), 255)


@dataclass(frozen=True)
class EntropyQuantizer:
    """A quantizer whose messages are as long as what they say: about half of three bits an entry, at the same error.

    Parameters
    ----------
    coarseness : float
        The step, in units of the innovation's root mean square; 0.05 to 16. The default was found on the paper's sets:
        to send less often saves more than to send more coarsely.
    dead_zone : float
        What is added before rounding down: 0.5 rounds to the nearest, less leaves more entries zero. 0 to 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> quantizer = EntropyQuantizer()
    >>> data = quantizer.encode(np.array([0.1, -2.0, 0.0, 0.3]))
    >>> data.hex(" "), quantizer.decode(data, 4)
    ('82 37 42', array([ 0.        , -1.41421356,  0.        ,  0.        ]))
    """

    coarseness: float = 1.4
    dead_zone: float = 0.4

    def __post_init__(self) -> None:
        for name, least, most in (("coarseness", 0.05, 16.0), ("dead_zone", 0.0, 0.5)):
            value = _validate.number(name, getattr(self, name), least=least)
            if value > most:
                raise ArgumentError(name, f"must be at most {most:g}, got {value!r}.")
            object.__setattr__(self, name, value)

    def quantize(self, h: Array) -> tuple[int, Array]:
        """J, and the codes k of an innovation (n_features,)."""
        wide = np.asarray(h, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            square = np.cumsum(wide * wide)[-1] if len(wide) else 0.0  # in this order, as the kernels sum
            j = nearest_step(self.coarseness * math.sqrt(square / max(len(wide), 1)))
            sizes = np.minimum(np.floor(np.abs(wide) / STEPS[j] + self.dead_zone), LARGEST)
        return j, np.where(wide < 0, -sizes, sizes).astype(np.int64)

    def outside(self, innovation: Array) -> Array:
        """How many entries of each row are larger than the largest code says."""
        most = np.array([(LARGEST + 1 - self.dead_zone) * STEPS[self.quantize(row)[0]] for row in innovation])
        beyond: Array = (np.abs(innovation) > most[:, None]).sum(axis=1)
        return beyond

    def encode(self, h: Array) -> bytes:
        """An innovation (n_features,) as it travels."""
        j, codes = self.quantize(h)
        sizes = np.abs(codes)
        n_nonzero = int(np.count_nonzero(sizes))
        n_more = int(sizes.sum()) - n_nonzero
        n_ends = n_nonzero - int((sizes == LARGEST).sum())
        zero = int((ZERO_PRICES @ (n_nonzero, len(codes) - n_nonzero)).argmin())
        more = int((MORE_PRICES @ (n_more, n_ends)).argmin())
        encoder, p_nonzero, p_more = RangeEncoder(), PNZ[zero], PMORE[more]
        for k in codes.tolist():
            encoder.put(k != 0, p_nonzero)
            if k:
                encoder.put(k < 0, HALF)
                for _ in range(abs(k) - 1):
                    encoder.put(True, p_more)
                if abs(k) < LARGEST:
                    encoder.put(False, p_more)
        return bytes((j, zero << 3 | more)) + encoder.end()

    def decode(self, data: bytes, n_features: int, dtype: object = np.float64) -> Array:
        """The innovation in a message of ``encode``; ValueError if it is not one.

        It ends after at most 3 decisions an entry and 53 a byte, whatever the bytes.
        """
        if len(data) < 2 or data[1] > 127:
            raise ValueError(f"data must begin with a step and two models, got {bytes(data[:2]).hex() or 'nothing'}.")
        decoder, p_nonzero, p_more = RangeDecoder(bytes(data[2:])), PNZ[data[1] >> 3], PMORE[data[1] & 7]
        codes = np.zeros(n_features)
        for k in range(n_features):
            if decoder.get(p_nonzero):
                negative, size = decoder.get(HALF), 1
                while size < LARGEST and decoder.get(p_more):
                    size += 1
                codes[k] = -size if negative else size
        decoder.end()
        values: Array = (codes * STEPS[data[0]]).astype(dtype)
        return values
