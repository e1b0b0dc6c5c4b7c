"""Compiled arithmetic for a simulator's nodes: the shared part with NumPy's bits, the sender's in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final
from weakref import ReferenceType, ref

import numpy as np

from laconic._validate import Array
from laconic.engine import wave_coding, wave_describing, wave_inverting, wave_kernels, wave_stepping, wave_turning
from laconic.native.arrays import aligned
from laconic.waves.arithmetic import Arithmetic, Stepped
from laconic.waves.message import (
    MOST_TERMS,
    Said,
    Term,
    from_header,
    header,
    header_bytes,
    headless,
    heads,
    on_grid,
    with_vectors,
)
from laconic.waves.rule import Fineness, Numbers

_LONGEST_CODE = 13  # bytes
_REMEMBERED = 64  # reflections: those of a wave's senders, until their parents have heard them
_KEPT = 2  # factors whose inverses are kept: that of the wave under way, and one that fronts ask for


class Factor:
    """What follows from a Cholesky factor L: its inverse, padded to whole vectors, and both turned over."""

    def __init__(self, lower: Array, room: Array | None = None) -> None:
        n = len(lower)
        size = -(-n // 4) * 4
        self.lower = lower
        # Their other halves stay 0, so that the room of a factor will do for the next.
        self.room = aligned(3 * size, n, np.float64).reshape(3, size, size) if room is None else room
        self.inverse, self.turned, self.columns = self.room
        wave_inverting.invert(lower, self.inverse, self.turned, self.columns)


class Letter(bytes):
    """The bytes of a message up that remember what they say: within a process nobody has to read them."""

    said: Said
    bits: int

    def __new__(cls, data: bytes, said: Said, bits: int) -> Letter:
        """The bytes, what they say, and its length in bits."""
        made = super().__new__(cls, data)
        made.said, made.bits = said, bits
        return made


@final
class Rows(Sequence[Term]):
    """Terms as rows of numbers, sign, step, codes; each becomes one only when somebody asks for it."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows(self.rows[index])
        row = self.rows[index]
        return Term(int(row[0]), int(row[1]), row[2:])


def rows_of(terms: Sequence[Term], n_features: int) -> Array:
    """Terms as rows."""
    if isinstance(terms, Rows):
        return terms.rows
    rows = np.empty((len(terms), n_features + 2), dtype=np.int64)
    for row, term in zip(rows, terms, strict=True):
        row[0], row[1], row[2:] = term.sign, term.step, term.codes
    return rows


class CompiledArithmetic(Arithmetic):
    """What ``Arithmetic`` does, faster; where agents must agree, with the same bits."""

    def __init__(self) -> None:
        self._factors: dict[int, Factor] = {}
        self._room: Array | None = None
        self._bytes = np.empty(0, dtype=np.uint8)
        self._understood: tuple[Array | None, Array | None, Said | None, tuple[Array, Array]]
        self._understood = None, None, None, (self._bytes, self._bytes)
        self._turnings: dict[int, tuple[ReferenceType[Array], ReferenceType[Array], Array]] = {}

    def factor(self, information: Array, n: float, thick: float) -> tuple[Array, bool]:
        """chol(n C + thick I, thick), and whether a pivot was raised."""
        lower = np.zeros_like(information)
        left = self._room_of(len(information))[0]
        return lower, bool(wave_kernels.factor(information, n, thick, left, lower))

    def cholesky(self, matrix: Array, least: float) -> tuple[Array, bool]:
        """Lower L with L L' = ``matrix``, a pivot under ``least`` raised to it; and whether one was."""
        lower, n = np.zeros_like(matrix), len(matrix)
        left = self._room_of(n)[0]
        left[:n, :n] = matrix.T
        return lower, bool(wave_kernels.cholesky(left, least, lower))

    def turning(self, information: Array, lower: Array) -> Array:
        """The reflections of a message up that builds on U, whitened by L."""
        known = self._turnings.get(id(information))
        if known is None or known[0]() is not information or known[1]() is not lower:
            while len(self._turnings) >= _REMEMBERED:
                del self._turnings[next(iter(self._turnings))]
            made = np.empty((heads(len(lower), 0)[0], len(lower)))
            made = made[: wave_turning.reflections(information, lower, made)]
            known = self._turnings[id(information)] = ref(information), ref(lower), made
        return known[2]

    def spread(self, lower: Array, step: int, codes: Array, turning: Array | None = None) -> Array:
        """L x, x = k s or what that is turned back."""
        made, plain = np.empty(len(lower)), np.empty((0, len(lower)))
        columns = self._factor(lower).columns
        wave_kernels.product(columns, plain if turning is None else turning, plain, on_grid(step), codes, made)
        return made

    def raised(self, base: Array, lower: Array, terms: Sequence[Term], n: float, turning: Array | None = None) -> Array:
        """B + (1/n) sum sign (L k s)(L k s)'."""
        if not terms or not n > 0:
            return base
        made = np.empty_like(base)
        turning = np.empty((0, len(base))) if turning is None else turning
        wave_kernels.add_terms(base, self._factor(lower).columns, turning, rows_of(terms, len(base)), n, made)
        return made

    def understood(self, base: Array, lower: Array, said: Said) -> tuple[Array, Array]:
        """B ``raised`` by the terms of a message up, and ``spread`` of its vector, or of that of each output."""
        of, by, before, made = self._understood
        # A child and its parent make the same, one right after the other; in a simulator, of the same arrays.
        if of is base and by is lower and before is not None and _same(before, said):
            return made
        if said.codes.ndim == 1:
            rows = rows_of(said.terms, len(base))
            made = np.empty_like(base) if len(rows) and said.n > 0 else base, np.empty(len(base))
            columns, turning = self._factor(lower).columns, self.turning(base, lower)
            wave_kernels.understand(base, columns, turning, rows, said.n, said.step, said.codes, *made)
        else:
            made = super().understood(base, lower, said)
        self._understood = base, lower, said, made
        return made

    def back(self, lower: Array, step: int, codes: Array) -> Array:
        """L'^-1 (k s)."""
        made = np.empty(len(lower))
        wave_kernels.solve_back(lower, on_grid(step), codes, made)
        return made

    def encode(self, said: Said) -> tuple[bytes, int]:
        """A message as bytes, and its length in bits."""
        n_terms, n = len(said.terms), said.codes.shape[-1]
        rows = np.empty((n_terms + said.codes.size // n, n + 2), dtype=np.int64)
        rows[:n_terms] = rows_of(said.terms, n)
        rows[n_terms:, 1], rows[n_terms:, 2:] = said.step, said.codes
        rows[n_terms, 0] = -1 if said.lift is None else said.lift
        first, room = header(said), self._bytes_for(rows)
        end = wave_coding.write_body(rows, n_terms, headless(said.wave, said.thin is not None), room, 0)
        data, bits = first + room[: (end + 7) >> 3].tobytes(), 8 * len(first) + end
        return (data if said.thin is not None else Letter(data, said, bits)), bits

    def _bytes_for(self, rows: Array) -> Array:
        """Room for a message of so many terms and vectors."""
        most = 6 + len(rows) * (10 + _LONGEST_CODE * rows.shape[1])
        if len(self._bytes) < most:
            self._bytes = np.empty(most, dtype=np.uint8)
        return self._bytes

    def decode(self, data: bytes, n_features: int, *, down: bool, outputs: int = 1) -> tuple[Said, int]:
        """What a message says, and its length in bits; ValueError if it is none."""
        if isinstance(data, Letter) and not down and data.said.codes.size == n_features * outputs:
            return data.said, data.bits
        said, first = from_header(data, down, outputs), header_bytes(down, outputs)
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8, offset=first))
        # Every term takes 14 bits and one for each feature at least.
        most = min(MOST_TERMS, len(bits) // (14 + n_features))
        rows = np.empty((most + outputs, n_features + 2), dtype=np.int64)
        n_terms, end = wave_coding.read_body(bits, headless(said.wave, down), down and said.flag, most, rows)
        if n_terms < 0:
            raise ValueError(
                "the message ends too early, holds a number beyond all bounds, or is followed by something else"
            )
        terms = Rows(rows[:n_terms])
        lift = int(rows[n_terms, 0]) if down and said.flag else None
        found = [(int(row[1]), row[2:]) for row in rows[n_terms : n_terms + outputs]]
        return with_vectors(said, terms, lift, found), 8 * first + end

    # What a sender alone decides ----------------------------------------------------------------------------------

    def _factor(self, lower: Array) -> Factor:
        """What follows from L, kept for as long as the wave may need it."""
        known = self._factors.get(id(lower))
        if known is None or known.lower is not lower:
            room = None
            while len(self._factors) >= _KEPT:
                oldest = self._factors.pop(next(iter(self._factors)))
                room = oldest.room if len(oldest.lower) == len(lower) else None
            known = self._factors[id(lower)] = Factor(lower, room)
        return known

    def forward(self, lower: Array, vector: Array) -> Array:
        """L^-1 x, of a vector or of each row."""
        return vector @ self._factor(lower).inverse[: len(lower), : len(lower)].T

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
        factor, n_features = self._factor(lower), len(lower)
        rows = np.empty((min(most, n_features), n_features + 2), dtype=np.int64)
        found = wave_describing.tell(
            factor.inverse,
            factor.turned,
            information,
            n,
            base,
            tolerance,
            fineness.nu,  # a pair would be looked up by its types in Python
            fineness.up_to,
            most,
            np.empty((0, n_features)) if turning is None else turning,
            self._room_of(n_features),
            rows,
        )
        return Rows(rows[:found])

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
        """``told`` and ``encode`` of a message up, made in one: what it says, its bytes, and its length in bits."""
        factor, n_features = self._factor(lower), len(lower)
        vectors = moments.reshape(-1, n_features)
        rows = np.empty((min(most, n_features) + len(vectors), n_features + 2), dtype=np.int64)
        each, room = np.array([*numbers, sizes]).reshape(5, -1), self._bytes_for(rows)
        found, bits = wave_describing.letter(
            factor.inverse,
            factor.turned,
            information,
            n,
            base,
            tolerance,
            fineness.nu,
            fineness.up_to,
            most,
            vectors,
            each,
            self.turning(base, lower),
            self._room_of(n_features),
            rows,
            wave << 1 | flag,
            room,
        )
        q, v, pull, doubt = each[:4, 0].tolist() if moments.ndim == 1 else each[:4]
        terms, (step, codes) = Rows(rows[:found]), _vectors_of(rows, found, moments)
        said = Said(wave, flag, n, q, v, terms, step, codes, None, pull, doubt)
        return said, Letter(room[: (bits + 7) >> 3].tobytes(), said, bits), bits

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
        """Terms of W = L^-1 (S + thick I) L'^-1 beyond I, upwards; and L'^-1 W^-1 L^-1 x."""
        factor, n_features = self._factor(lower), len(lower)
        vectors = np.atleast_2d(moments)
        rows = np.empty((min(most, n_features), n_features + 2), dtype=np.int64)
        solution = np.empty_like(vectors)
        found = wave_describing.settle(
            factor.inverse,
            factor.turned,
            information,
            thick,
            tolerance,
            fineness.nu,
            fineness.up_to,
            most,
            vectors,
            self._room_of(n_features),
            rows,
            solution,
        )
        return Rows(rows[:found]), solution.reshape(moments.shape)

    def stepped(
        self, information: Array, n: float, thick: float, change: Array, residual: Array, trust: Numbers, size: Numbers
    ) -> Stepped:
        """The root's step d, whitened by what it told, shortened and rounded."""
        n_features = len(information)
        lower, rows = np.zeros_like(information), change.reshape(-1, n_features)
        said, moved = np.empty((len(rows), n_features + 1), dtype=np.int64), np.empty_like(rows)
        numbers, squares = np.array([trust, size]).reshape(2, -1), np.empty(len(rows))
        raised = wave_stepping.step(
            information,
            n,
            thick,
            self._room_of(n_features)[0],
            lower,
            rows,
            residual.reshape(-1, n_features),
            numbers,
            said,
            moved,
            squares,
        )
        if change.ndim == 1:
            return Stepped((lower, bool(raised)), int(said[0, 0]), said[0, 1:], moved[0], float(squares[0]))
        return Stepped((lower, bool(raised)), said[:, 0], said[:, 1:], moved, squares)

    def _room_of(self, n_features: int) -> Array:
        """Room for two matrices."""
        size = -(-n_features // 4) * 4
        if self._room is None or self._room.shape[1] != size:
            self._room = aligned(2 * size, n_features, np.float64).reshape(2, size, size)
        return self._room

    def inverse(self, lower: Array) -> Array:
        """(L L')^-1, symmetric to the bit."""
        made = np.empty_like(lower)
        wave_inverting.square(lower, self._room_of(len(lower))[0], made)
        return made

    def inverted(self, matrix: Array) -> Array:
        """H^-1 of a positive definite matrix, symmetric to the bit."""
        return self.inverse(self.cholesky(matrix, 0.0)[0])

    def entire(self, total: Array) -> Array:
        """S with what is above the tiles on its diagonal."""
        return np.asarray(np.tril(total) + np.tril(total, -1).T)

    def add_share(self, total: Array, n: float, information: Array) -> None:
        """S + n U into S."""
        wave_describing.add_share(total, n, information)

    def above(self, symmetric: Array, least: float) -> bool:
        """Whether all eigenvalues are larger than ``least``."""
        return bool(wave_kernels.above(symmetric, least, self._room_of(len(symmetric))[0]))


def _vectors_of(rows: Array, found: int, moments: Array) -> tuple[int | Array, Array]:
    """Step and codes of the vector after so many terms, or of that of each output."""
    if moments.ndim == 1:
        return int(rows[found, 1]), rows[found, 2:]
    said = rows[found : found + len(moments)]
    return said[:, 1], said[:, 2:]


def _same(one: Said, other: Said) -> bool:
    """Whether two messages up say the same."""
    if one is other:
        return True
    if one.n != other.n or len(one.terms) != len(other.terms):
        return False
    size = one.codes.shape[-1]
    pairs = (rows_of(one.terms, size), rows_of(other.terms, size)), (one.step, other.step), (one.codes, other.codes)
    return all(np.all(mine == yours) for mine, yours in pairs)
