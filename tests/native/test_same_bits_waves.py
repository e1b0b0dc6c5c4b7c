"""The core's arithmetic of waves has the bits of the kernels compiled by numba. Goes when they go."""

import numpy as np
import pytest
from laconic.engine.compiled import aligned

from laconic.engine import wave_coding, wave_describing, wave_inverting, wave_kernels, wave_stepping, wave_turning
from laconic.engine.wave_arithmetic import Factor
from laconic.native import linalg, rice, terms
from laconic.waves.message import heads

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 22, 41, 60, 100, 201]
WORKSPACE = linalg.Workspace()


def symmetric(rng, n, values):
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    made = (basis * values) @ basis.T
    return np.tril(made) + np.tril(made, -1).T


def room_of(n, count=2):
    size = -(-n // 4) * 4
    return aligned(count * size, n, np.float64).reshape(count, size, size)


def factors(rng, n, pivot=None):
    """A matrix, its factor, and what follows from that, by numba and by the core."""
    half = rng.standard_normal((n, 2 * n)) * np.exp(-np.linspace(0, 4, n))[:, None]
    U, lower = half @ half.T / n, np.zeros((n, n))
    wave_kernels.factor(U, 500.0, 0.5, room_of(n)[0], lower)
    return U, lower, Factor(lower), linalg.factor_of(lower)


def reflections(U, lower):
    n = len(lower)
    made = np.empty((heads(n, 0)[0], n))
    return made[: wave_turning.reflections(U, lower, made)]


def same(one, other):
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("low", [False, True])
def test_factors(n, low):
    rng = np.random.default_rng(n)
    half = rng.standard_normal((n, 2 * n))
    matrix = half @ half.T / n + 3.0 * np.eye(n)
    if low:
        matrix[max(0, n - 2), max(0, n - 2)] = 0.01
    old, new, also = np.zeros((3, n, n))
    raised = wave_kernels.factor(matrix, 7.3, 0.3, room_of(n)[0], old)
    assert linalg.factor(matrix, 7.3, 0.3, new, WORKSPACE) == raised
    same(old, new)
    left = room_of(n)[0]
    left[:n, :n] = matrix.T
    raised = wave_kernels.cholesky(left, 0.1, old)
    assert linalg.cholesky(matrix, 0.1, also, WORKSPACE) == raised == low
    same(old, also)
    least = np.linalg.eigvalsh(matrix)[0]
    for bound in (least - 1e-6, least + 1e-6):
        assert linalg.above(matrix, bound, WORKSPACE) == wave_kernels.above(matrix, bound, room_of(n)[0])


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n):
    _, lower, old, new = factors(np.random.default_rng(n), n)
    same(old.room, new.room)
    one, other = np.zeros((2, n, n))
    wave_inverting.square(lower, room_of(n)[0], one)
    linalg.square_of_inverse(lower, other, WORKSPACE)
    same(one, other)


@pytest.mark.parametrize("n", SIZES)
def test_sums_are_scaled(n):
    rng = np.random.default_rng(n)
    old, matrix = rng.standard_normal((2, n, n))
    new = old.copy()
    wave_describing.add_share(old, 0.37, matrix)
    linalg.add_scaled(new, 0.37, matrix)
    same(np.tril(old), np.tril(new))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rank", [0, 1, 3, None])
def test_reflections(n, rank):
    U, lower, _, _ = factors(np.random.default_rng(n), n)
    if rank is not None:
        half = np.random.default_rng(rank).standard_normal((n, rank))
        U = half @ half.T
    old, new = np.full((2, heads(n, 0)[0], n), np.nan)
    count = wave_turning.reflections(U, lower, old)
    assert terms.make_reflections(U, lower, new, WORKSPACE) == count
    same(old[:count], new[:count])


def rows_for(rng, n, n_terms, n_vectors, scale=9.0):
    rows = np.rint(scale * rng.standard_t(3, (n_terms + n_vectors, n + 2))).astype(np.int64)
    rows[:, 0] = rng.choice([-1, 1], len(rows))
    rows[:, 1] = rng.integers(100, 140, len(rows))
    rows[n_terms:, 0] = -1
    return rows


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_terms", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("turns", [False, True])
def test_messages_are_understood(n, n_terms, turns):
    rng = np.random.default_rng(100 * n + n_terms)
    U, lower, old, new = factors(rng, n)
    turning = reflections(U, lower) if turns else np.empty((0, n))
    rows = rows_for(rng, n, n_terms, 1)
    codes = rows[n_terms, 2:].copy()
    made, spread = np.full((n, n), np.nan), np.full(n, np.nan)
    also, moments = made.copy(), spread.copy()
    given, base = rows[:n_terms], U + 1e-3 * rng.standard_normal((n, n))
    wave_kernels.understand(base, old.columns, turning, given, 30.0, 131, codes, made, spread)
    message = terms.message_of(new, turning, base, given, n_terms, 30.0, WORKSPACE)
    if n_terms:
        terms.add_terms(message, also)
    terms.spread_vector(message, 131, codes, moments)
    same(made, also)
    same(spread, moments)
    wave_kernels.solve_back(lower, wave_kernels.on_grid(77), codes, spread)
    terms.solve_back(lower, 77, codes, moments)
    same(spread, moments)


def spectra(n):
    """Eigenvalues of whitened sums: none beyond the tolerance, few, equal ones, more than may be told, tiny entries."""
    rng = np.random.default_rng(n)
    inner = rng.uniform(-0.9, 0.9, n)
    yield inner
    for beyond in (1, 3, 13, n):
        yield np.where(np.arange(n) < beyond, rng.uniform(1.2, 9.0, n) * rng.choice([-1, 1], n), inner)
    yield np.where(np.arange(n) < 5, 4.0, 0.0)
    yield np.exp(-np.arange(n)) * 40.0


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("turns", [False, True])
def test_what_a_sender_tells(n, outputs, turns):
    for which, values in enumerate(spectra(n)):
        rng = np.random.default_rng(which)
        U, lower, old, new = factors(rng, n)
        turning = reflections(U, lower) if turns else np.empty((0, n))
        information = 30.0 * U + lower @ symmetric(rng, n, values) @ lower.T
        moments = lower @ rng.standard_normal((n, outputs))
        moments = np.ascontiguousarray(moments.T)
        for most, nu, up_to in ((40, 0.2, np.inf), (2, 0.05, 3.0)):
            most = min(most, n)
            one, other = np.zeros((2, most + outputs, n + 2), dtype=np.int64)
            numbers = np.abs(rng.standard_normal((5, outputs)))
            numbers[2, 0], numbers[3, 0] = -1e300, np.nan
            also = numbers.copy()
            data, bytes_ = np.zeros((2, 100 + rice.body_bytes(one)), dtype=np.uint8)
            found, bits = wave_describing.letter(
                old.inverse, old.turned, information, 30.0, U, 1.0, nu, up_to, most, moments, numbers, turning,
                room_of(n), one, 77, data,
            )  # fmt: skip
            message = terms.message_of(new, turning, U, other, most, 30.0, WORKSPACE)
            sums = terms.sums_of(information, moments, 1.0, nu, up_to)
            assert terms.encode_sums(message, sums, 77, also, bytes_) == (found, bits)
            assert np.array_equal(one[: found + outputs], other[: found + outputs])
            assert data[: bits + 7 >> 3].tobytes() == bytes_[: bits + 7 >> 3].tobytes()
            same(numbers, also)
            assert terms.find_terms(message, sums) == found


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("outputs", [1, 5])
def test_what_the_root_solves(n, outputs):
    for which, values in enumerate([*spectra(n), np.linspace(-0.3, 4.0, n), np.linspace(0.02, 1.9, n)]):
        rng = np.random.default_rng(which)
        _, lower, old, new = factors(rng, n)
        information = lower @ symmetric(rng, n, values + (which < 4)) @ lower.T - 0.3 * np.eye(n)
        moments = rng.standard_normal((outputs, n))
        for most in (40, 2):
            most = min(most, n)
            one, other = np.zeros((2, most, n + 2), dtype=np.int64)
            solution, also = np.full((2, outputs, n), np.nan)
            found = wave_describing.settle(
                old.inverse, old.turned, information, 0.3, 1.0, 0.1, np.inf, most, moments, room_of(n), one, solution
            )
            message = terms.message_of(new, np.empty((0, n)), information, other, most, 1.0, WORKSPACE)
            sums = terms.sums_of(information, moments, 1.0, 0.1, np.inf)
            assert terms.solve_sums(message, sums, 0.3, also) == found
            assert np.array_equal(one[:found], other[:found])
            same(solution, also)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("along", [1.0, 0.01, -1.0, np.nan])
def test_the_roots_step(n, along):
    rng, outputs = np.random.default_rng(n), 3
    information = symmetric(rng, n, np.linspace(0.0, 3.0, n))
    change = rng.standard_normal((outputs, n))
    residual, numbers = along * 30.0 * change @ information, np.array([[1.0, 2.0, 1.5], [0.1, 0.0, 0.03]])
    made = []
    for core in (False, True):
        lower, rows = np.zeros((n, n)), np.zeros((outputs, n + 1), dtype=np.int64)
        moved, squares = np.zeros((outputs, n)), np.zeros(outputs)
        if core:
            step = terms.root_step(information, 30.0, 0.2, change, residual, numbers)
            raised = terms.take_step(step, lower, rows, moved, squares, WORKSPACE)
        else:
            raised = wave_stepping.step(
                information, 30.0, 0.2, room_of(n)[0], lower, change, residual, numbers, rows, moved, squares
            )
        made.append((raised, lower.tobytes(), rows.tobytes(), moved.tobytes(), squares.tobytes()))
    assert made[0] == made[1]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.5, 30.0, 1e6, 1e11])
def test_bodies(n, plain, scale):
    rng = np.random.default_rng(n)
    for n_terms, n_vectors in ((0, 1), (3, 1), (9, 4)):
        rows = np.clip(rows_for(rng, n, n_terms, n_vectors, scale), -(2**40), 2**40)
        rows[:, 0] = np.sign(rows[:, 0] + 0.5)
        rows[:, 1] = rng.integers(0, 256, len(rows))
        shift = int(rng.integers(-1, 256)) if plain else -1
        rows[n_terms, 0] = shift
        one, other = np.zeros((2, 5 + rice.body_bytes(rows)), dtype=np.uint8)
        end = wave_coding.write_body(rows, n_terms, plain, one, 3)
        assert rice.write_body(rows, n_terms, plain, other, 3) == end
        same(one, other)
        data, most = one[3 : (end + 7) >> 3], n_terms + 2
        back, again = np.zeros((2, most + n_vectors, n + 2), dtype=np.int64)
        expected = wave_coding.read_body(np.unpackbits(data), plain, shift >= 0, most, back)
        assert rice.read_body(data.copy(), plain, shift >= 0, most, again) == expected == (n_terms, end - 24)
        assert np.array_equal(back[: n_terms + n_vectors, 1:], again[: n_terms + n_vectors, 1:])
        assert np.array_equal(back[:n_terms], rows[:n_terms]) and np.array_equal(again[:n_terms], rows[:n_terms])
        for _ in range(30):  # and what is damaged is read alike, or not at all
            damaged = data[: rng.integers(0, len(data) + 1)].copy() if rng.random() < 0.3 else data.copy()
            if len(damaged):
                damaged[rng.integers(0, len(damaged))] ^= 1 << rng.integers(0, 8)
            back[:], again[:] = 0, 0
            expected = wave_coding.read_body(np.unpackbits(damaged), plain, shift >= 0, most, back)
            found = rice.read_body(damaged, plain, shift >= 0, most, again)
            assert found[0] == expected[0]
            if found[0] >= 0:
                assert found == expected
                assert np.array_equal(back[: found[0] + n_vectors, 1:], again[: found[0] + n_vectors, 1:])
