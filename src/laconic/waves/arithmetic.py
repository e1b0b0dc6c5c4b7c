"""The arithmetic that two agents must share: + - * / sqrt, every entry in one written order, nothing fused.

There is no BLAS here and no library of linear algebra, whose sums run in an order of their own. A compiled version that
keeps the order of each entry gives the same bits: ``core/linalg.c`` and ``core/terms.c`` are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.message import Said, Term, briefly, decode, encode, on_grid
from laconic.waves.rule import Fineness, Numbers
from laconic.waves.terms import Spectrum, describe, dots, quantized_each, shortened
from laconic.waves.turning import longer, reflections, turned, turned_back, turned_matrix


class Stepped(NamedTuple):
    """A factor L and whether a pivot was raised; a step's codes; L'^-1 k s and |k s|^2."""

    factor: tuple[Array, bool]
    step: int | Array
    codes: Array
    change: Array
    square: Numbers


class Arithmetic:
    """The shared operations in NumPy; a compiled subclass replaces them one by one."""

    def thickened(self, information: Array, n: float, thick: float) -> Array:
        """n C + thick I."""
        total = n * information
        total.flat[:: len(total) + 1] += thick
        return total

    def factor(self, information: Array, n: float, thick: float) -> tuple[Array, bool]:
        """chol(n C + thick I, thick), and whether a pivot was raised."""
        return self.cholesky(self.thickened(information, n, thick), thick)

    def cholesky(self, matrix: Array, least: float) -> tuple[Array, bool]:
        """Lower L with L L' = ``matrix``, a pivot under ``least`` raised to it; and whether one was.

        Right-looking: entry (i, j) is h_ij - l_i0 l_j0 - l_i1 l_j1 - ..., from left to right.
        """
        left, lower, raised = matrix.copy(), np.zeros_like(matrix), False
        for j in range(len(left)):
            pivot = left[j, j]
            if not pivot >= least:
                pivot, raised = least, True
            lower[j, j] = np.sqrt(pivot)
            lower[j + 1 :, j] = left[j + 1 :, j] / lower[j, j]
            column = lower[j + 1 :, j]
            left[j + 1 :, j + 1 :] -= column[:, None] * column[None, :]
        return lower, raised

    def turning(self, information: Array, lower: Array) -> Array:
        """The reflections of a message up that builds on U, whitened by L."""
        return reflections(information, lower)

    def longer(self, turning: Array, terms: Sequence[Term]) -> Array:
        """Those of its vectors, after these terms."""
        return longer(turning, terms)

    def spread(self, lower: Array, step: int, codes: Array, turning: Array | None = None) -> Array:
        """L x, x = k s or that turned back: each entry the sum l_i0 x_0 + l_i1 x_1 + ..., from left to right."""
        scaled = codes.astype(np.float64) * on_grid(step)
        if turning is not None:
            scaled = turned_back(turning, scaled)
        return np.add.accumulate(lower.T * scaled[:, None], axis=0)[-1].copy()

    def raised(self, base: Array, lower: Array, terms: Sequence[Term], n: float, turning: Array | None = None) -> Array:
        """B + (1/n) sum sign (L k s)(L k s)', the terms added up from the first to the last."""
        if not terms or not n > 0:
            return base
        total = np.zeros_like(base)
        for term in terms:
            column = self.spread(lower, term.step, term.codes, turning)
            total += term.sign * (column[:, None] * column[None, :])
        return base + total / n

    def understood(self, base: Array, lower: Array, said: Said) -> tuple[Array, Array]:
        """B ``raised`` by the terms of a message up, and ``spread`` of its vector, or of that of each output."""
        turning = self.turning(base, lower)
        all_of_it = self.longer(turning, said.terms)

        def spread(lower: Array, step: int, codes: Array) -> Array:
            return self.spread(lower, step, codes, all_of_it)

        information = self.raised(base, lower, said.terms, said.n, turning)
        return information, _each(spread, lower, said.step, said.codes)

    def back_each(self, lower: Array, step: int | Array, codes: Array) -> Array:
        """``back`` of a vector, or of the vector of each output."""
        return _each(self.back, lower, step, codes)

    def back(self, lower: Array, step: int, codes: Array) -> Array:
        """L'^-1 (k s), from the last entry to the first."""
        solution = codes.astype(np.float64) * on_grid(step)
        for j in range(len(solution) - 1, -1, -1):
            solution[j] /= lower[j, j]
            solution[:j] -= lower[j, :j] * solution[j]
        return solution

    def square(self, step: int | Array, codes: Array) -> Numbers:
        """|k s|^2, from the first entry to the last; of the vector of each output."""
        if codes.ndim > 1:
            return np.array([self.square(*pair) for pair in zip(np.asarray(step).tolist(), codes, strict=True)])
        scaled = codes.astype(np.float64) * on_grid(int(step))
        return float(np.add.accumulate(scaled * scaled)[-1])

    def encode(self, said: Said) -> tuple[bytes, int]:
        """A message as bytes, and its length in bits."""
        return encode(said)

    def decode(self, data: bytes, n_features: int, *, down: bool, outputs: int = 1) -> tuple[Said, int]:
        """What a message says, and its length in bits; ValueError if it is none."""
        return decode(data, n_features, down=down, outputs=outputs)

    # What a sender alone decides: any method is right. ------------------------------------------------------------

    def entire(self, total: Array) -> Array:
        """S of a subtree, whole: of that some arithmetic reads and makes no more than its lower half."""
        return total

    def add_share(self, total: Array, n: float, information: Array) -> None:
        """S + n U into S."""
        total += n * information

    def whitened(self, lower: Array, symmetric: Array) -> Array:
        """L^-1 X L'^-1."""
        half = np.linalg.solve(lower, symmetric)
        whole = np.linalg.solve(lower, half.T)
        return 0.5 * (whole + whole.T)

    def forward(self, lower: Array, vector: Array) -> Array:
        """L^-1 x, of a vector or of each row."""
        return np.linalg.solve(lower, vector.T).T

    def told(
        self,
        lower: Array,
        information: Array,
        n: float,
        base: Array,
        tolerance: float,
        fineness: Fineness,
        most: int,
        turning: Array | None = None,
    ) -> Sequence[Term]:
        """Terms of L^-1 (S - n B) L'^-1, which may be turned."""
        if not n > 0:
            return ()
        whitened = self.whitened(lower, information - n * base)
        if turning is not None:
            whitened = turned_matrix(turning, whitened)
        return tuple(describe(Spectrum(whitened), tolerance, fineness, most))

    def coded(
        self, lower: Array, moments: Array, sizes: Numbers, turning: Array, terms: Sequence[Term]
    ) -> tuple[int | Array, Array]:
        """Step and codes of L^-1 r, turned, or of that of each output, after these terms."""
        whitened, all_of_it = self.forward(lower, moments), self.longer(turning, terms)
        if whitened.ndim == 1:
            return quantized_each(turned(all_of_it, whitened), sizes)
        return quantized_each(np.array([turned(all_of_it, row) for row in whitened]), sizes)

    def letter(
        self,
        wave: int,
        flag: bool,
        numbers: Sequence[Numbers],
        lower: Array,
        information: Array,
        n: float,
        base: Array,
        tolerance: float,
        fineness: Fineness,
        most: int,
        moments: Array,
        sizes: Numbers,
    ) -> tuple[Said, bytes, int]:
        """A message up of what is ``told`` and of q, v, pull, doubt: what it says, its bytes, its length in bits.

        S may be used up.
        """
        turning = self.turning(base, lower)
        terms = self.told(lower, information, n, base, tolerance, fineness, most, turning)
        step, codes = self.coded(lower, moments, sizes, turning, terms)
        q, v, pull, doubt = briefly(numbers)
        said = Said(wave, flag, n, q, v, terms, step, codes, pull=pull, doubt=doubt)
        return said, *self.encode(said)

    def settled(
        self,
        lower: Array,
        information: Array,
        thick: float,
        tolerance: float,
        fineness: Fineness,
        most: int,
        moments: Array,
    ) -> tuple[Sequence[Term], Array]:
        """Terms of W = L^-1 (S + thick I) L'^-1 beyond I, upwards; and L'^-1 W^-1 L^-1 x, of a vector or of each row.

        W is solved with its eigenvalues at least 1/2. S may be used up.
        """
        spectrum = Spectrum(self.whitened(lower, information + thick * np.eye(len(lower))))
        terms = describe(spectrum, tolerance, fineness, most, origin=1.0, positive=True)
        return terms, self.solved(lower, spectrum, moments)

    def solved(self, lower: Array, spectrum: Spectrum, vector: Array) -> Array:
        """L'^-1 W^-1 L^-1 x, of a vector or of each row: what is asked of W is solved, its eigenvalues at least 1/2."""
        turned = (self.forward(lower, vector) @ spectrum.basis) / np.maximum(spectrum.values, 0.5)
        return np.linalg.solve(lower.T, spectrum.basis @ turned.T).T

    def stepped(
        self, information: Array, n: float, thick: float, change: Array, residual: Array, trust: Numbers, size: Numbers
    ) -> Stepped:
        """The root's step d, whitened by what it told, shortened and rounded: L = chol(n C + thick I, thick)."""
        factor = self.factor(information, n, thick)
        step, codes = quantized_each(shortened(change @ factor[0], dots(change, residual), trust), size)
        return Stepped(factor, step, codes, self.back_each(factor[0], step, codes), self.square(step, codes))

    def inverse(self, lower: Array) -> Array:
        """(L L')^-1, symmetric to the bit."""
        rows = np.linalg.solve(lower, np.eye(len(lower)))
        product = rows.T @ rows
        return 0.5 * (product + product.T)

    def inverted(self, matrix: Array) -> Array:
        """H^-1 of a positive definite matrix, symmetric to the bit."""
        inverse = np.linalg.inv(matrix)
        return 0.5 * (inverse + inverse.T)

    def above(self, symmetric: Array, least: float) -> bool:
        """Whether all eigenvalues are larger than ``least``: whether what is left of it has a Cholesky factor."""
        try:
            np.linalg.cholesky(symmetric - least * np.eye(len(symmetric)))
        except np.linalg.LinAlgError:
            return False
        return True

    def least(self, symmetric: Array) -> tuple[float, Array]:
        """The least eigenvalue, and its eigenvector."""
        values, vectors = np.linalg.eigh(symmetric)
        return float(values[0]), vectors[:, 0]


def _each(solve: Callable[[Array, int, Array], Array], lower: Array, step: int | Array, codes: Array) -> Array:
    if codes.ndim == 1:
        return solve(lower, int(step), codes)
    return np.array([solve(lower, s, k) for s, k in zip(np.asarray(step).tolist(), codes, strict=True)])
