"""Compiled arithmetic for the nodes of a simulator: the shared part with NumPy's bits, the sender's part by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from laconic._validate import Array
from laconic.engine import wave_kernels
from laconic.waves import Arithmetic
from laconic.waves.codes import Reader, Writer
from laconic.waves.message import Said, Term, decode, encode, on_grid

_KEPT = 4  # factors whose inverses are kept: those of the wave under way


class Bits(Writer):
    """Collects bits as entries of an array."""

    def __init__(self, n_features: int, n_terms: int) -> None:
        super().__init__()
        # No code is longer than 2 * 42 bits.
        self._bits = np.empty(128 + (n_terms + 1) * (16 + 84 * n_features), dtype=np.uint8)
        self._end = 0

    def vector(self, codes: Array) -> None:
        """A vector of integers, in the cheapest order."""
        before = np.frombuffer("".join(self._parts).encode(), dtype=np.uint8)
        self._bits[self._end : self._end + len(before)] = before - ord("0")
        self._parts.clear()
        self._end = wave_kernels.write_vector(codes, self._bits, self._end + len(before))

    def data(self) -> tuple[bytes, int]:
        """All bits as bytes, and how many they are without those that fill the last byte."""
        return np.packbits(self._bits[: self._end]).tobytes(), self._end


class BitReader(Reader):
    """Reads bits that are entries of an array."""

    def __init__(self, data: bytes) -> None:
        self._bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8)).astype(np.int64)
        self._at = 0

    def number(self, width: int) -> int:
        """A number of a fixed width."""
        start, self._at = self._at, self._at + width
        if self._at > len(self._bits):
            raise ValueError("the message ends too early")
        return int("".join(map(str, self._bits[start : self._at].tolist())), 2)

    def vector(self, length: int) -> Array:
        """A vector of so many integers."""
        codes = np.empty(length, dtype=np.int64)
        self._at = wave_kernels.read_vector(self._bits, self._at, codes)
        if self._at < 0:
            raise ValueError("the message ends too early, or holds a number beyond all bounds")
        return codes

    def finish(self) -> int:
        """How many bits there were; what is left may only be the filling of the last byte."""
        rest = self._bits[self._at :]
        if len(rest) > 7 or rest.any():
            raise ValueError("the message is followed by something else")
        return self._at


class CompiledArithmetic(Arithmetic):
    """What ``Arithmetic`` does, faster; where agents must agree, with the same bits."""

    def __init__(self) -> None:
        self._inverses: dict[int, tuple[Array, Array]] = {}

    def cholesky(self, matrix: Array, least: float) -> tuple[Array, bool]:
        """Lower L with L L' = ``matrix``, a pivot under ``least`` raised to it; and whether one was."""
        lower = np.zeros_like(matrix)
        return lower, bool(wave_kernels.cholesky(matrix.copy(), lower, least))

    def spread(self, lower: Array, step: int, codes: Array) -> Array:
        """L (k s)."""
        made = np.empty(len(lower))
        wave_kernels.spread_codes(lower, on_grid(step), codes, made)
        return made

    def raised(self, base: Array, lower: Array, terms: Sequence[Term], n: float) -> Array:
        """B + (1/n) sum sign (L k s)(L k s)'."""
        if not terms or not n > 0:
            return base
        signs = np.array([float(term.sign) for term in terms])
        steps = np.array([on_grid(term.step) for term in terms])
        made = np.empty_like(base)
        wave_kernels.add_terms(base, lower, signs, steps, np.array([term.codes for term in terms]), n, made)
        return made

    def back(self, lower: Array, step: int, codes: Array) -> Array:
        """L'^-1 (k s)."""
        made = np.empty(len(lower))
        wave_kernels.solve_back(lower, on_grid(step), codes, made)
        return made

    def encode(self, said: Said) -> tuple[bytes, int]:
        """A message as bytes, and its length in bits."""
        return encode(said, Bits(len(said.codes), len(said.terms)))

    def decode(self, data: bytes, n_features: int, *, down: bool) -> tuple[Said, int]:
        """What a message says, and its length in bits; ValueError if it is none."""
        return decode(data, n_features, down=down, reader=BitReader(data))

    # What a sender alone decides ----------------------------------------------------------------------------------

    def _inverse(self, lower: Array) -> Array:
        """L^-1, kept for as long as the wave may need it."""
        known = self._inverses.get(id(lower))
        if known is None or known[0] is not lower:
            while len(self._inverses) >= _KEPT:
                del self._inverses[next(iter(self._inverses))]
            # The transpose of a C array is Fortran's own: nothing is copied on the way in.
            inverse, _ = lapack.dtrtri(lower.T, lower=0)
            known = self._inverses[id(lower)] = (lower, np.ascontiguousarray(inverse.T))
        return known[1]

    def whitened(self, lower: Array, symmetric: Array) -> Array:
        """L^-1 X L'^-1."""
        inverse = self._inverse(lower)
        whole = inverse @ symmetric @ inverse.T
        return 0.5 * (whole + whole.T)

    def forward(self, lower: Array, vector: Array) -> Array:
        """L^-1 x."""
        return self._inverse(lower) @ vector

    def inverse(self, lower: Array) -> Array:
        """(L L')^-1, symmetric to the bit."""
        rows = self._inverse(lower)
        return rows.T @ rows

    def above(self, symmetric: Array, least: float) -> bool:
        """Whether all eigenvalues are larger than ``least``."""
        test = symmetric.copy()
        test.flat[:: len(test) + 1] -= least
        return bool(lapack.dpotrf(test.T, lower=1, overwrite_a=1, clean=0)[1] == 0)

    def beyond(self, symmetric: Array, tolerance: float) -> tuple[Array, Array]:
        """The eigenvalues of magnitude larger than ``tolerance``, and their eigenvectors as columns."""
        size = len(symmetric)
        values, vectors = [], []
        for sign in (-1.0, 1.0):
            # tol I - M has a Cholesky factor unless some eigenvalue of M is larger; that is ten times sooner known.
            if self.above(-sign * symmetric, -tolerance):
                continue
            largest = float(np.abs(symmetric).sum(axis=1).max()) + tolerance
            found, basis, n, _, info = lapack.dsyevr(
                (sign * symmetric).T, range="V", vl=tolerance, vu=largest, abstol=0.0, overwrite_a=1
            )
            if info:
                return super().beyond(symmetric, tolerance)
            values.append(sign * found[:n])
            vectors.append(basis[:, :n])
        if not values:
            return np.zeros(0), np.zeros((size, 0))
        return np.concatenate(values), np.concatenate(vectors, axis=1)
