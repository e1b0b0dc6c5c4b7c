"""Compiled arithmetic for the nodes of a simulator: the shared part with NumPy's bits, the sender's part by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from laconic._validate import Array
from laconic.engine import wave_describing, wave_kernels
from laconic.engine.compiled import aligned
from laconic.waves import Arithmetic
from laconic.waves.message import (
    MOST_TERMS,
    Said,
    Term,
    from_header,
    header,
    header_bytes,
    on_grid,
    vectors,
    with_vectors,
)

_LONGEST_CODE = 104  # bits
_KEPT = 4  # factors whose inverses are kept: those of the wave under way


class CompiledArithmetic(Arithmetic):
    """What ``Arithmetic`` does, faster; where agents must agree, with the same bits."""

    def __init__(self) -> None:
        self._inverses: dict[int, tuple[Array, Array]] = {}
        self._room: Array | None = None

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
        n_terms, n, found = len(said.terms), said.codes.shape[-1], vectors(said)
        rows = np.empty((n_terms + len(found), n + 2), dtype=np.int64)
        for row, term in zip(rows, said.terms, strict=False):
            row[0], row[1], row[2:] = term.sign, term.step, term.codes
        for row, (step, codes) in zip(rows[n_terms:], found, strict=True):
            row[0], row[1], row[2:] = -1, step, codes
        rows[n_terms, 0] = -1 if said.lift is None else said.lift
        bits = np.empty(16 + len(rows) * (16 + _LONGEST_CODE * n), dtype=np.uint8)
        first, end = header(said), wave_kernels.write_body(rows, n_terms, bits)
        return first + np.packbits(bits[:end]).tobytes(), 8 * len(first) + end

    def decode(self, data: bytes, n_features: int, *, down: bool, outputs: int = 1) -> tuple[Said, int]:
        """What a message says, and its length in bits; ValueError if it is none."""
        said, first = from_header(data, down, outputs), header_bytes(down, outputs)
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8, offset=first))
        # Every term takes 14 bits and one for each feature at least.
        most = min(MOST_TERMS, len(bits) // (14 + n_features))
        rows = np.empty((most + outputs, n_features + 2), dtype=np.int64)
        n_terms, end = wave_kernels.read_body(bits, down and said.flag, most, rows)
        if n_terms < 0:
            raise ValueError(
                "the message ends too early, holds a number beyond all bounds, or is followed by something else"
            )
        terms = tuple(Term(int(row[0]), int(row[1]), row[2:]) for row in rows[:n_terms])
        lift = int(rows[n_terms, 0]) if down and said.flag else None
        found = [(int(row[1]), row[2:]) for row in rows[n_terms : n_terms + outputs]]
        return with_vectors(said, terms, lift, found), 8 * first + end

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
        return np.asarray(inverse @ symmetric @ inverse.T)  # of which one half will be read

    def forward(self, lower: Array, vector: Array) -> Array:
        """L^-1 x, of a vector or of each row."""
        return vector @ self._inverse(lower).T

    def solved(self, lower: Array, whitened: Array, vector: Array) -> Array:
        """L'^-1 W^-1 L^-1 x, of a vector or of each row, the eigenvalues of W at least 1/2."""
        inverse = self._inverse(lower)
        half = vector @ inverse.T
        if not self.above(whitened, 0.5):  # only what lies below 1/2 is looked for, and raised
            values, basis, n, _, _ = lapack.dsyevr(whitened.T, range="V", vl=-1e300, vu=0.5, lower=1)
            low = basis[:, :n]
            whitened = whitened + (low * (0.5 - values[:n])) @ low.T
        factor, _ = lapack.dpotrf(whitened, lower=1)
        return np.asarray(lapack.dpotrs(factor, half.T, lower=1)[0].T.reshape(half.shape) @ inverse)

    def inverse(self, lower: Array) -> Array:
        """(L L')^-1, symmetric to the bit."""
        rows = self._inverse(lower)
        return rows.T @ rows

    def above(self, symmetric: Array, least: float) -> bool:
        """Whether all eigenvalues are larger than ``least``."""
        test = symmetric.copy()
        test.flat[:: len(test) + 1] -= least
        return bool(lapack.dpotrf(test.T, lower=1, overwrite_a=1, clean=0)[1] == 0)

    def describe(self, matrix: Array, tolerance: float, nu: float, most: int, positive: bool = False) -> list[Term]:
        """Terms whose sum is ``matrix`` but for what is small."""
        n = len(matrix)
        if self._room is None or len(self._room) != -(-n // 4) * 4:
            self._room = aligned(-(-n // 4) * 4, n, np.float64)
        rest = self._room
        rest[:n, :n] = matrix
        signs, steps, codes = np.empty(most), np.empty(most, dtype=np.int64), np.empty((most, n), dtype=np.int64)
        found = wave_describing.describe(rest, tolerance, nu, most, positive, signs, steps, codes)
        return [Term(int(signs[k]), int(steps[k]), codes[k]) for k in range(found)]
