"""The arithmetic of waves in the core: the shared part with NumPy's bits, the sender's in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final
from weakref import ReferenceType, ref

import numpy as np

from laconic._validate import Array
from laconic.native import linalg, rice, terms
from laconic.native.linalg import Factor, Workspace
from laconic.native.terms import Message
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
    with_vectors,
)
from laconic.waves.rule import Fineness, Numbers

_REMEMBERED = 64  # reflections: those of a wave's senders, until their parents have heard them
_KEPT = 2  # factors whose inverses are kept: that of the wave under way, and one that fronts ask for


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
        self._workspace = Workspace()
        self._understood: tuple[Array, Array, Said, tuple[Array, Array]] | None = None
        self._turnings: dict[int, tuple[ReferenceType[Array], ReferenceType[Array], Array]] = {}

    def factor(self, information: Array, n: float, thick: float) -> tuple[Array, bool]:
        """chol(n C + thick I, thick), and whether a pivot was raised."""
        lower = np.zeros_like(information)
        return lower, linalg.factor(information, n, thick, lower, self._workspace)

    def cholesky(self, matrix: Array, least: float) -> tuple[Array, bool]:
        """Lower L with L L' = ``matrix``, a pivot under ``least`` raised to it; and whether one was."""
        lower = np.zeros_like(matrix)
        return lower, linalg.cholesky(matrix, least, lower, self._workspace)

    def turning(self, information: Array, lower: Array) -> Array:
        """The reflections of a message up that builds on U, whitened by L."""
        known = self._turnings.get(id(information))
        if known is None or known[0]() is not information or known[1]() is not lower:
            while len(self._turnings) >= _REMEMBERED:
                del self._turnings[next(iter(self._turnings))]
            made = np.empty((heads(len(lower), 0)[0], len(lower)))
            made = made[: terms.make_reflections(information, lower, made, self._workspace)]
            known = self._turnings[id(information)] = ref(information), ref(lower), made
        return known[2]

    def spread(self, lower: Array, step: int, codes: Array, turning: Array | None = None) -> Array:
        """L x, x = k s or what that is turned back."""
        made = np.empty(len(lower))
        message = self._message(lower, lower, np.empty((0, len(lower) + 2), dtype=np.int64), 0.0, turning)
        terms.spread_vector(message, step, codes, made)
        return made

    def raised(self, base: Array, lower: Array, terms: Sequence[Term], n: float, turning: Array | None = None) -> Array:
        """B + (1/n) sum sign (L k s)(L k s)'."""
        if not terms or not n > 0:
            return base
        return _raised(self._message(lower, base, rows_of(terms, len(base)), n, turning))

    def understood(self, base: Array, lower: Array, said: Said) -> tuple[Array, Array]:
        """B ``raised`` by the terms of a message up, and ``spread`` of its vector, or of that of each output."""
        before = self._understood
        # A child and its parent make the same, one right after the other; in a simulator, of the same arrays.
        if before is not None and before[0] is base and before[1] is lower and _same(before[2], said):
            return before[3]
        rows = rows_of(said.terms, len(base))
        message = self._message(lower, base, rows, said.n, self.turning(base, lower))
        moments = np.empty(said.codes.shape)
        for step, codes, row in zip(np.ravel(said.step), _vectors(said.codes), _vectors(moments), strict=True):
            terms.spread_vector(message, int(step), codes, row)
        made = _raised(message) if len(rows) and said.n > 0 else base, moments
        self._understood = base, lower, said, made
        return made

    def back(self, lower: Array, step: int, codes: Array) -> Array:
        """L'^-1 (k s)."""
        made = np.empty(len(lower))
        terms.solve_back(lower, step, codes, made)
        return made

    def encode(self, said: Said) -> tuple[bytes, int]:
        """A message as bytes, and its length in bits."""
        n_terms, n = len(said.terms), said.codes.shape[-1]
        rows = np.empty((n_terms + said.codes.size // n, n + 2), dtype=np.int64)
        rows[:n_terms] = rows_of(said.terms, n)
        rows[n_terms:, 1], rows[n_terms:, 2:] = said.step, said.codes
        rows[n_terms, 0] = -1 if said.lift is None else said.lift
        first, room = header(said), np.empty(rice.body_bytes(rows), dtype=np.uint8)
        end = rice.write_body(rows, n_terms, headless(said.wave, said.thin is not None), room, 0)
        data, bits = first + room[: (end + 7) >> 3].tobytes(), 8 * len(first) + end
        return (data if said.thin is not None else Letter(data, said, bits)), bits

    def decode(self, data: bytes, n_features: int, *, down: bool, outputs: int = 1) -> tuple[Said, int]:
        """What a message says, and its length in bits; ValueError if it is none."""
        if isinstance(data, Letter) and not down and data.said.codes.size == n_features * outputs:
            return data.said, data.bits
        said, first = from_header(data, down, outputs), header_bytes(down, outputs)
        body = np.frombuffer(data, dtype=np.uint8, offset=first)
        # Every term takes 14 bits and one for each feature at least.
        most = min(MOST_TERMS, 8 * len(body) // (14 + n_features))
        rows = np.empty((most + outputs, n_features + 2), dtype=np.int64)
        n_terms, end = rice.read_body(body, headless(said.wave, down), down and said.flag, most, rows)
        if n_terms < 0:
            raise ValueError(
                "the message ends too early, holds a number beyond all bounds, or is followed by something else"
            )
        lift = int(rows[n_terms, 0]) if down and said.flag else None
        found = [(int(row[1]), row[2:]) for row in rows[n_terms : n_terms + outputs]]
        return with_vectors(said, Rows(rows[:n_terms]), lift, found), 8 * first + end

    # What a sender alone decides ----------------------------------------------------------------------------------

    def _factor(self, lower: Array) -> Factor:
        """What follows from L, kept for as long as the wave may need it."""
        known = self._factors.get(id(lower))
        if known is None or known.array("lower") is not lower:
            room = None
            while len(self._factors) >= _KEPT:
                oldest = self._factors.pop(next(iter(self._factors)))
                room = oldest.room if oldest.n == len(lower) else None
            known = self._factors[id(lower)] = linalg.factor_of(lower, room)
        return known

    def _message(
        self, lower: Array, base: Array, rows: Array, n: float, turning: Array | None = None, outputs: int = 0
    ) -> Message:
        """A message of terms, and room for vectors, in ``rows``, over a link whose ends hold B."""
        turning = np.empty((0, len(base))) if turning is None else turning
        return terms.message_of(self._factor(lower), turning, base, rows, len(rows) - outputs, n, self._workspace)

    def forward(self, lower: Array, vector: Array) -> Array:
        """L^-1 x, of a vector or of each row."""
        return vector @ self._factor(lower).array("inverse")[: len(lower), : len(lower)].T

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
        rows, nothing = _rows_for(most, len(lower), 0), np.empty((0, len(lower)))
        sums = terms.sums_of(information, nothing, tolerance, *fineness)
        return Rows(rows[: terms.find_terms(self._message(lower, base, rows, n, turning), sums)])

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
        vectors = _vectors(moments)
        rows, each = _rows_for(most, len(lower), len(vectors)), np.array([*numbers, sizes]).reshape(5, -1)
        message = self._message(lower, base, rows, n, self.turning(base, lower), len(vectors))
        sums = terms.sums_of(information, vectors, tolerance, *fineness)
        room = np.empty(6 + 8 * len(vectors) + rice.body_bytes(rows), dtype=np.uint8)
        found, bits = terms.encode_sums(message, sums, wave << 1 | flag, each, room)
        q, v, pull, doubt = each[:4, 0].tolist() if moments.ndim == 1 else each[:4]
        step, codes = _vectors_of(rows, found, moments)
        said = Said(wave, flag, n, q, v, Rows(rows[:found]), step, codes, None, pull, doubt)
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
        vectors, rows = _vectors(moments), _rows_for(most, len(lower), 0)
        solution = np.empty_like(vectors)
        sums = terms.sums_of(information, vectors, tolerance, *fineness)
        found = terms.solve_sums(self._message(lower, information, rows, 1.0), sums, thick, solution)
        return Rows(rows[:found]), solution.reshape(moments.shape)

    def stepped(
        self, information: Array, n: float, thick: float, change: Array, residual: Array, trust: Numbers, size: Numbers
    ) -> Stepped:
        """The root's step d, whitened by what it told, shortened and rounded."""
        lower, rows = np.zeros_like(information), _vectors(change)
        said, moved = np.empty((len(rows), len(lower) + 1), dtype=np.int64), np.empty_like(rows)
        numbers, squares = np.array([trust, size]).reshape(2, -1), np.empty(len(rows))
        step = terms.root_step(information, n, thick, rows, _vectors(residual), numbers)
        raised = terms.take_step(step, lower, said, moved, squares, self._workspace)
        if change.ndim == 1:
            return Stepped((lower, raised), int(said[0, 0]), said[0, 1:], moved[0], float(squares[0]))
        return Stepped((lower, raised), said[:, 0], said[:, 1:], moved, squares)

    def inverse(self, lower: Array) -> Array:
        """(L L')^-1, symmetric to the bit."""
        made = np.empty_like(lower)
        linalg.square_of_inverse(lower, made, self._workspace)
        return made

    def inverted(self, matrix: Array) -> Array:
        """H^-1 of a positive definite matrix, symmetric to the bit."""
        return self.inverse(self.cholesky(matrix, 0.0)[0])

    def entire(self, total: Array) -> Array:
        """S with what is above the tiles on its diagonal."""
        return np.asarray(np.tril(total) + np.tril(total, -1).T)

    def add_share(self, total: Array, n: float, information: Array) -> None:
        """S + n U into S."""
        linalg.add_scaled(total, n, information)

    def above(self, symmetric: Array, least: float) -> bool:
        """Whether all eigenvalues are larger than ``least``."""
        return linalg.above(symmetric, least, self._workspace)


def _raised(message: Message) -> Array:
    """What a message's base becomes by its terms."""
    made = np.empty((message.n, message.n))
    terms.add_terms(message, made)
    return made


def _vectors(array: Array) -> Array:
    """A row, or one for each output, that the core can read."""
    return np.ascontiguousarray(array.reshape(-1, array.shape[-1]))


def _rows_for(most: int, n_features: int, outputs: int) -> Array:
    """Room for so many terms at the most, and a vector of each output."""
    return np.empty((min(most, n_features) + outputs, n_features + 2), dtype=np.int64)


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
