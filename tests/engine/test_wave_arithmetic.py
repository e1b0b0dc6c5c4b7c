"""The compiled arithmetic of waves beside NumPy's: what is shared to the bit, what a sender says by its codes."""

import numpy as np
import pytest

from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.waves import Arithmetic
from laconic.waves.message import Said
from laconic.waves.rule import Fineness
from laconic.waves.terms import matrix_of, quantized

SLOW, FAST = Arithmetic(), CompiledArithmetic()


def symmetric(rng, n, values):
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (basis * values) @ basis.T


def factor_of(rng, n):
    half = rng.standard_normal((n, 2 * n))
    return FAST.cholesky(half @ half.T / n, 1e-3)[0]


def same(some, others):
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        assert one[:2] == other[:2] and np.array_equal(one.codes, other.codes)


@pytest.mark.parametrize("n", [1, 3, 8, 22, 41])
def test_factors_have_the_same_bits(n):
    rng = np.random.default_rng(n)
    half = rng.standard_normal((n, 2 * n))
    for low in (True, False):
        matrix = half @ half.T / n + 3.0 * np.eye(n)
        if low:
            matrix[max(0, n - 2), max(0, n - 2)] = 0.01
        (slow, raised), (fast, also) = SLOW.cholesky(matrix, 0.1), FAST.cholesky(matrix, 0.1)
        assert np.array_equal(slow, fast) and raised == also == low
    np.testing.assert_allclose(FAST.forward(fast, matrix), np.linalg.solve(slow, matrix.T).T, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("beyond", [0, 1, 3, 8, 15])  # by none, by bisection, by QL
@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("up_to", [np.inf, 3.0])
@pytest.mark.parametrize("turns", [False, True])
def test_both_say_the_same(beyond, outputs, up_to, turns):
    n, fineness = 22, Fineness(0.2, up_to)
    rng = np.random.default_rng(beyond)
    lower, base = factor_of(rng, n), symmetric(rng, n, rng.uniform(size=n))
    values = np.where(
        np.arange(n) < beyond, rng.uniform(1.2, 9.0, n) * rng.choice([-1, 1], n), rng.uniform(-0.9, 0.9, n)
    )
    information = 30.0 * base + lower @ symmetric(rng, n, values) @ lower.T
    moments = rng.standard_normal(n if outputs is None else (outputs, n))
    sizes = 0.1 if outputs is None else np.array([0.1, 0.03])
    turning = SLOW.turning(base, lower)
    assert np.array_equal(turning, FAST.turning(base, lower)) and len(turning) == 2
    asked = lower, information, 30.0, base, 1.0, fineness
    turning = turning if turns else turning[:0]
    terms, found = (one.told(*asked, 40, turning if turns else None) for one in (SLOW, FAST))
    assert len(terms) == beyond
    same(terms, found)
    (step, codes), (near, rounded) = (one.coded(lower, moments, sizes, turning, terms) for one in (SLOW, FAST))
    assert np.array_equal(step, near) and np.array_equal(codes, rounded)
    same(SLOW.told(*asked, 2, turning), FAST.told(*asked, 2, turning))
    expected = SLOW.raised(base, lower, terms, 30.0, turning)
    for one, other in ((SLOW, found), (FAST, terms)):  # whoever hears it knows the same, to the bit
        assert np.array_equal(one.raised(base, lower, other, 30.0, turning), expected)
    if turns:
        said = Said(1, False, 30.0, 0.0, 0.0, terms, step, codes)
        for mine, theirs in zip(SLOW.understood(base, lower, said), FAST.understood(base, lower, said), strict=True):
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("least", [-0.2, 0.02])
@pytest.mark.parametrize("outputs", [None, 5])
def test_both_settle_the_same(outputs, least):
    n = 22
    rng = np.random.default_rng(1)
    lower = factor_of(rng, n)
    values = np.concatenate([[least, 0.1, 0.4], np.linspace(0.6, 1.9, n - 6), [2.5, 4.0, 30.0]])
    information = lower @ symmetric(rng, n, values) @ lower.T - 0.3 * np.eye(n)
    moments = rng.standard_normal(n if outputs is None else (outputs, n))
    asked = lower, information, 0.3, 1.0, Fineness(n**-0.5), 40, moments
    (terms, change), (found, also) = SLOW.settled(*asked), FAST.settled(*asked)
    assert len(terms) == 3
    same(terms, found)
    np.testing.assert_allclose(change, also, rtol=1e-9, atol=1e-10)
    inner = symmetric(np.random.default_rng(2), n, np.maximum(values, 0.5))  # where W is known, so is the answer
    plain = FAST.settled(np.eye(n), inner - 0.3 * np.eye(n), 0.3, 1.0, Fineness(0.2), 40, moments)[1]
    np.testing.assert_allclose(plain, np.linalg.solve(inner, moments.T).T, rtol=1e-9, atol=1e-10)


def check_settled(matrix, row, n_terms):
    """Of a matrix that is not whitened: its terms, and what solves it with eigenvalues of at least 1/2."""
    n = len(matrix)
    asked = np.eye(n), matrix, 0.0, 1.0, Fineness(0.1), 40, row
    (terms, change), (found, also) = SLOW.settled(*asked), FAST.settled(*asked)
    assert len(found) == n_terms
    same(terms, found)
    values, vectors = np.linalg.eigh(matrix)
    np.testing.assert_allclose(also, vectors @ (vectors.T @ row / np.maximum(values, 0.5)), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(change, also, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("least", [0.02, -0.01, -3.0])
def test_few_eigenvalues_need_not_all_be_found(least):
    """The root solves by those that count; with all of them it comes to the same."""
    n = 40
    rng = np.random.default_rng(3)
    values = np.concatenate([[least, 0.1, 0.1002, 0.4], np.linspace(0.6, 1.9, n - 6), [2.5, 30.0]])
    check_settled(symmetric(rng, n, values), rng.standard_normal(n), 2)


@pytest.mark.parametrize("pivot", [1e-5, -0.1])  # either has an eigenvalue under 0
def test_all_eigenvalues_are_found_where_a_pivot_is_next_to_nothing(pivot):
    n = 40
    tridiagonal = np.diag(np.linspace(0.6, 1.9, n)) + 0.1 * (np.eye(n, k=1) + np.eye(n, k=-1))
    tridiagonal[0, 0] = pivot
    check_settled(tridiagonal, np.ones(n), 1)


def test_nobody_reads_a_message_of_this_process_again():
    n = 22
    rng = np.random.default_rng(4)
    matrix = symmetric(rng, n, np.linspace(-3.0, 3.0, n))
    terms = FAST.told(np.eye(n), matrix, 1.0, np.zeros((n, n)), 1.0, Fineness(0.1), 40)
    step, codes = quantized(rng.standard_normal(n), 0.1)
    said = Said(3, False, 2.0, 0.5, 0.25, terms, step, codes, pull=-1.0, doubt=2.0)
    data, bits = FAST.encode(said)
    assert FAST.decode(data, n, down=False)[0] is said
    for arithmetic in (SLOW, FAST):  # of others it is read, and says the same
        back, length = arithmetic.decode(bytes(bytearray(data)), n, down=False)
        assert back is not said and length == bits == SLOW.encode(said)[1] and data == SLOW.encode(said)[0]
        same(back.terms, terms)
        assert np.array_equal(back.codes, codes) and back[:5] == said[:5] and back[8:] == said[8:]


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("n_samples", [0.0, 30.0, 1e39])
def test_both_write_the_same_letter(outputs, n_samples):
    n, rng = 22, np.random.default_rng(5)
    lower, base = factor_of(rng, n), symmetric(rng, n, rng.uniform(size=n))
    information = 30.0 * base + lower @ symmetric(rng, n, rng.uniform(-3.0, 4.0, n)) @ lower.T
    numbers, sizes = [0.3, 1e-3, -1e300, np.nan], 0.1
    if outputs:
        numbers, sizes = [np.array([x, 1.0 + 2.0**-8]) for x in numbers], np.array([0.1, 0.03])  # and a tie
    moments = rng.standard_normal((outputs, n) if outputs else n)
    asked = lower, information, n_samples, base, 1.0, Fineness(0.2), 40, moments, sizes
    (said, data, bits), (also, written, length) = (one.letter(2**15 - 1, True, numbers, *asked) for one in (SLOW, FAST))
    assert data == written and bits == length and FAST.decode(written, n, down=False, outputs=outputs or 1)[0] is also
    same(said.terms, also.terms)
    assert all(np.array_equal(one, other) for one, other in zip(said[1:5], also[1:5], strict=True))
    assert np.array_equal(said.codes, also.codes) and np.array_equal([said.pull, said.doubt], [also.pull, also.doubt])


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("along", [1.0, 0.01, -1.0, np.nan])  # of the curvature that everybody knows, what was told
def test_both_step_the_same(outputs, along):
    n, rng = 22, np.random.default_rng(6)
    information = symmetric(rng, n, np.linspace(0.0, 3.0, n))
    change = rng.standard_normal(n if outputs is None else (outputs, n))
    residual = along * 30.0 * change @ information
    trust, size = (1.0, 0.1) if outputs is None else (np.array([1.0, 2.0, 1.5]), np.array([0.1, 0.0, 0.03]))
    (slow, *expected), (fast, *found) = (
        one.stepped(information, 30.0, 0.2, change, residual, trust, size) for one in (SLOW, FAST)
    )
    assert np.array_equal(slow[0], fast[0]) and slow[1] == fast[1]
    assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))


@pytest.mark.parametrize("equal", [2, 5, 12])
def test_equal_eigenvalues_are_all_said(equal):
    n = 22
    values = np.concatenate([np.full(equal, 4.0), np.zeros(n - equal)])
    matrix = symmetric(np.random.default_rng(equal), n, values)
    nothing = np.zeros((n, n))
    for information in (matrix, np.diag(values)):
        terms = FAST.told(np.eye(n), information, 1.0, nothing, 1.0, Fineness(0.1), 40)
        rest = information - sum(matrix_of(term) for term in terms)
        assert len(terms) == equal and np.abs(np.linalg.eigvalsh(rest)).max() < 1.0


@pytest.mark.parametrize("graded", [1e-3, 1e-6, 1e-12])  # what one row of a matrix has of the next one
def test_entries_close_to_nothing_spoil_no_eigenvector(graded):
    n, rng = 60, np.random.default_rng(3)
    size = np.maximum(graded ** np.arange(n - 1.0, -1.0, -1.0), 1e-160)
    matrix = 40 * symmetric(rng, n, rng.uniform(0.5, 1.0, n)) * size[:, None] * size
    arguments = np.eye(n), matrix, 1.0, np.zeros((n, n)), 0.5, Fineness(0.1), 40
    slow, fast = SLOW.told(*arguments), FAST.told(*arguments)
    same(slow, fast)
    assert len(slow) > 0


@pytest.mark.parametrize("n", [1, 3, 8, 22])
def test_sums_are_told_by_their_lower_halves(n):
    rng = np.random.default_rng(n)
    S, U, B = (half @ half.T for half in rng.standard_normal((3, n, 2 * n)))
    lower, moments = FAST.cholesky(S + U + B + np.eye(n), 1e-3)[0], rng.standard_normal(n)
    row, column = np.indices((n, n)) // 4
    beyond = column > row  # above the tiles on the diagonal: what nobody reads
    total, hollow = S + 2.0 * U, np.where(beyond, 1e3, S)
    FAST.add_share(hollow, 2.0, np.where(beyond, -1e3, U))
    assert np.array_equal(FAST.entire(hollow), total)
    said = [
        FAST.letter(1, False, [1.0] * 4, lower, sum_, 5.0, B, 0.01, Fineness(0.1), 40, moments, 0.1)[1]
        for sum_ in (total.copy(), hollow.copy())
    ]
    assert said[0] == said[1]
    change = [FAST.settled(lower, sum_, 0.5, 0.5, Fineness(0.1), 40, moments)[1] for sum_ in (total, hollow)]
    assert np.array_equal(*change)
