"""Messages of waves in the core: terms that a sender finds in its sums, and sums that both ends derive from them.

A row of a message is (sign, step, codes) of a term, a rank-one part of a matrix, or (-1, step, codes) of a vector.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, ClassVar

from laconic._validate import Array
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, address, doubles, function, integers
from laconic.native.linalg import Factor, Workspace
from laconic.native.rice import body_bytes

MOST_REFLECTIONS = 8  # HEAD of core/reflections.h


class Message(Structure):
    """``Message`` of ``core/terms.h``."""

    _fields_: ClassVar[Any] = [
        ("factor", POINTER),
        ("reflections", POINTER),
        ("n_reflections", INTEGER),
        ("base", POINTER),
        ("rows", POINTER),
        ("n_terms", INTEGER),
        ("n_samples", REAL),
        ("room", POINTER),
    ]
    kept: tuple[Any, ...]
    n: int


class Sums(Structure):
    """``Sums`` of ``core/terms.h``."""

    _fields_: ClassVar[Any] = [
        ("information", POINTER),
        ("moments", POINTER),
        ("n_outputs", INTEGER),
        *((name, REAL) for name in ("tolerance", "fineness", "finest_size")),
        ("n_bits", INTEGER),
    ]
    kept: tuple[Array, ...]


class RootStep(Structure):
    """``RootStep`` of ``core/terms.h``."""

    _fields_: ClassVar[Any] = [
        ("information", POINTER),
        ("n", INTEGER),
        ("n_outputs", INTEGER),
        ("n_samples", REAL),
        ("shift", REAL),
        *((name, POINTER) for name in ("change", "residual", "damping", "step")),
    ]
    kept: tuple[Array, ...]


@functools.cache
def _core() -> Any:
    two = (POINTER, POINTER)
    return SimpleNamespace(
        reflect=function("make_reflections", *two, INTEGER, INTEGER, *two),
        add=function("add_terms", *two, result=None),
        spread=function("spread_vector", POINTER, INTEGER, *two, result=None),
        back=function("solve_back", POINTER, INTEGER, INTEGER, *two, result=None),
        find=function("find_terms", *two),
        encode=function("encode_sums", *two, INTEGER, *two),
        solve=function("solve_sums", *two, REAL, POINTER),
        step=function("take_step", *two, *two, *two),
    )


def make_reflections(information: Array, lower: Array, made: Array, workspace: Workspace) -> int:
    """A row of ``made`` for each reflection that U and L make; returns how many, at most as many as rows."""
    n, most = len(lower), len(made)
    assert most <= min(MOST_REFLECTIONS, n // 8)
    given = doubles(information, n, n), doubles(lower, n, n), n, most, doubles(made, most, n)
    return _core().reflect(*given, workspace.of(n))


def message_of(
    factor: Factor,
    reflections: Array,
    base: Array,
    rows: Array,
    n_terms: int,
    n_samples: float,
    workspace: Workspace,
) -> Message:
    """A message over a link whose ends hold U, with so many terms in ``rows``, or at most so many to be found."""
    n, count, n_rows = factor.n, len(reflections), len(rows)
    assert count + (min(n_terms, 4) if n >= 8 else 0) <= n and n_terms <= n_rows
    made = Message(
        factor.address,
        doubles(reflections, count, n),
        count,
        doubles(base, n, n),
        integers(rows, n_rows, n + 2),
        n_terms,
        n_samples,
        workspace.of(n, n_terms, n_rows - n_terms),
    )
    made.kept = factor, reflections, base, rows, workspace
    made.n = n
    return made


def sums_of(information: Array, moments: Array, tolerance: float, fineness: float, finest_size: float) -> Sums:
    """The sums of a subtree, ``moments`` (K, D), and how precisely they are told."""
    outputs, n = moments.shape
    given = doubles(information, n, n), doubles(moments, outputs, n), outputs
    made = Sums(*given, tolerance, fineness, finest_size)
    made.kept = information, moments
    return made


def add_terms(message: Message, made: Array) -> None:
    """U + (1/n) sum sign (L k s)(L k s)' into ``made``, the reflections undone."""
    _core().add(message.address, doubles(made, message.n, message.n))


def spread_vector(message: Message, step: int, codes: Array, made: Array) -> None:
    """L k s into ``made``, the reflections undone, and those that follow from the message's terms."""
    _core().spread(message.address, step, integers(codes, message.n), doubles(made, message.n))


def solve_back(lower: Array, step: int, codes: Array, solution: Array) -> None:
    """L'^-1 (k s), from the last entry to the first."""
    n = len(lower)
    _core().back(doubles(lower, n, n), n, step, integers(codes, n), doubles(solution, n))


def find_terms(message: Message, sums: Sums) -> int:
    """Terms of K (S - n U) K' beyond the tolerance, reflected, into the message's rows; returns how many."""
    return _core().find(message.address, sums.address)


def encode_sums(message: Message, sums: Sums, first: int, numbers: Array, data: Array) -> tuple[int, int]:
    """``find_terms`` and the vectors K r, then all as bytes: how many terms there are, and how many bits.

    ``numbers`` (5, K) are four of each output, which become the values that travel, and the size of a vector's step.
    A message begins with the 16 bits ``first``.
    """
    outputs, rows = sums.n_outputs, message.kept[3]
    assert len(rows) >= message.n_terms + outputs and data.size >= 6 + 8 * outputs + body_bytes(rows)
    found = _core().encode(message.address, sums.address, first, doubles(numbers, 5, outputs), address(data))
    return found, sums.n_bits


def solve_sums(message: Message, sums: Sums, shift: float, solution: Array) -> int:
    """Terms of W = K (S + shift I) K' beyond I, upwards, into rows, and K' W^-1 K r of each output; how many terms.

    W has eigenvalues of at least 1/2.
    """
    return _core().solve(message.address, sums.address, shift, doubles(solution, sums.n_outputs, message.n))


def take_step(step: RootStep, lower: Array, rows: Array, moved: Array, squares: Array, workspace: Workspace) -> bool:
    """chol(n C + shift I) into ``lower``, and for each output a row (step, codes) of L'd, shortened.

    ``moved`` is L'^-1 k s, and ``squares`` |k s|^2. Returns whether a pivot was raised.
    """
    n, outputs = step.n, step.n_outputs
    given = doubles(lower, n, n), integers(rows, outputs, n + 1), doubles(moved, outputs, n), doubles(squares, outputs)
    return bool(_core().step(step.address, *given, workspace.of(n)))


def root_step(
    information: Array, n_samples: float, shift: float, change: Array, residual: Array, numbers: Array
) -> RootStep:
    """The arguments of ``take_step``; ``numbers`` (2, K) are the damping of each output and the size of its step."""
    outputs, n = change.shape
    doubles(numbers, 2, outputs)
    made = RootStep(
        doubles(information, n, n),
        n,
        outputs,
        n_samples,
        shift,
        doubles(change, outputs, n),
        doubles(residual, outputs, n),
        address(numbers),
        address(numbers) + 8 * outputs,
    )
    made.kept = information, change, residual, numbers
    return made
