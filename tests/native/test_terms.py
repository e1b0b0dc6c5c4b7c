"""Messages of waves in the core beside NumPy's eigenvectors, solves and products."""

import struct

import numpy as np
import pytest

from laconic.native import linalg, rice, terms

WORKSPACE = linalg.Workspace()
SIZES = [1, 5, 8, 22, 101]
N_SAMPLES, STEP = 30.0, 121


def size_of(step):
    return 2.0 ** ((step - 128) / 4)


def symmetric(rng, n, values):
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    made = (basis * values) @ basis.T
    return 0.5 * (made + made.T)


def link(n, seed=0):
    """U that both ends of a link hold, and a factor that whitens."""
    rng = np.random.default_rng([seed, n])
    half = rng.standard_normal((n, 2 * n)) * np.exp(-np.linspace(0, 3, n))[:, None]
    U = half @ half.T / n
    return rng, U, linalg.factor_of(np.linalg.cholesky(200.0 * U + np.eye(n)))


def heads(n):
    return min(8, n // 8)


def reflections_of(U, factor):
    made = np.zeros((heads(factor.n), factor.n))
    return made[: terms.make_reflections(U, factor.array("lower"), made, WORKSPACE)]


def product(reflections, n):
    """H_c .. H_1 as a matrix."""
    whole = np.eye(n)
    for v in reflections:
        whole -= np.outer(v, v @ whole)
    return whole


def more_reflections(reflections, rows):
    """Those that follow from a message's terms: of the codes, reflected by those made before of terms."""
    n, made = rows.shape[1] - 2, np.zeros((0, rows.shape[1] - 2))
    for codes in rows[: (heads(n) + 1) // 2, 2:]:
        v, place = product(made, n) @ codes, len(reflections) + len(made)
        v[:place] = 0.0
        v[place] += np.copysign(np.linalg.norm(v), v[place])
        made = np.vstack([made, v * np.sqrt(2.0) / np.linalg.norm(v)])
    return np.vstack([reflections, made])


def rows_for(rng, n, n_terms):
    rows = np.rint(9.0 * rng.standard_normal((n_terms, n + 2))).astype(np.int64)
    rows[:, 0], rows[:, 1] = rng.choice([-1, 1], n_terms), rng.integers(110, 130, n_terms)
    return rows


def sum_of_terms(rows):
    return sum((sign * size_of(step) ** 2 * np.outer(codes, codes) for sign, step, *codes in rows), 0.0)


@pytest.mark.parametrize("n", [8, 22, 64, 101])
def test_reflections_triangularise_the_first_columns(n):
    _, U, factor = link(n)
    rows, left, columns = reflections_of(U, factor), U.copy(), []
    for _ in range(heads(n)):  # a pivoted Cholesky factor
        pivot = left.diagonal().argmax()
        columns.append(left[:, pivot] / np.sqrt(left[pivot, pivot]))
        left -= np.outer(columns[-1], columns[-1])
    turned = product(rows, n) @ np.linalg.solve(factor.array("lower"), np.array(columns).T)
    np.testing.assert_allclose((rows**2).sum(axis=1), 2.0)
    np.testing.assert_allclose(np.tril(turned, -1), 0.0, atol=1e-10 * np.abs(turned).max())
    assert len(rows) == heads(n) and np.abs(turned.diagonal()).min() > 1e-6


def test_reflections_end_with_the_rank():
    n = 64
    half = np.random.default_rng(0).standard_normal((n, 3))
    U = half @ half.T
    factor = linalg.factor_of(np.linalg.cholesky(U + np.eye(n)))
    assert len(reflections_of(U, factor)) == 3 and len(reflections_of(np.zeros((n, n)), factor)) == 0


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_terms", [0, 1, 6])
def test_what_a_message_means(n, n_terms):
    rng, U, factor = link(n)
    reflections, lower = reflections_of(U, factor), factor.array("lower")
    rows, codes = rows_for(rng, n, n_terms), np.rint(30.0 * rng.standard_normal(n)).astype(np.int64)
    message = terms.message_of(factor, reflections, U, rows, n_terms, N_SAMPLES, WORKSPACE)
    made, vector = np.empty((n, n)), np.empty(n)
    terms.add_terms(message, made)
    back = lower @ product(reflections, n).T
    np.testing.assert_allclose(made, U + back @ sum_of_terms(rows) @ back.T / N_SAMPLES if n_terms else U, rtol=1e-9)
    terms.spread_vector(message, STEP, codes, vector)
    whole = product(more_reflections(reflections, rows), n)
    np.testing.assert_allclose(vector, lower @ whole.T @ codes * size_of(STEP), rtol=1e-9, atol=1e-9)
    terms.solve_back(lower, STEP, codes, vector)
    np.testing.assert_allclose(vector, np.linalg.solve(lower.T, codes * size_of(STEP)), rtol=1e-9, atol=1e-12)


SPECTRA = {
    "none": lambda rng, n: rng.uniform(-0.9, 0.9, n),
    "one": lambda rng, n: np.append(3.0, rng.uniform(-0.9, 0.9, n - 1)),
    "few": lambda rng, n: np.append([5.0, -2.0, 1.5][:n], rng.uniform(-0.9, 0.9, max(0, n - 3))),
    "many": lambda rng, n: rng.uniform(1.5, 9.0, n) * rng.choice([-1, 1], n),
    "equal": lambda rng, n: np.append(np.full(min(3, n), 4.0), rng.uniform(-0.9, 0.9, max(0, n - 3))),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", SPECTRA)
def test_terms_leave_only_small_eigenvalues(n, kind):
    rng, U, factor = link(n)
    reflections, lower = reflections_of(U, factor), factor.array("lower")
    values = SPECTRA[kind](rng, n)
    whitened = symmetric(rng, n, values)
    information = N_SAMPLES * U + lower @ whitened @ lower.T
    rows = np.zeros((n, n + 2), dtype=np.int64)
    message = terms.message_of(factor, reflections, U, rows, n, N_SAMPLES, WORKSPACE)
    sums = terms.sums_of(information, np.zeros((1, n)), 1.0, 1e-3, np.inf)
    found, beyond = terms.find_terms(message, sums), values[np.abs(values) > 1.0]
    assert found == len(beyond)
    told = rows[:found]
    sizes = [
        sign * (size_of(step) ** 2) * (codes @ codes)
        for (sign, step), codes in zip(told[:, :2], told[:, 2:], strict=True)
    ]
    np.testing.assert_allclose(np.sort(sizes), np.sort(beyond), rtol=0.01)
    assert np.all(np.diff(np.abs(sizes)) < 0.02)  # the farthest first
    turn = product(reflections, n)
    left = turn @ whitened @ turn.T - sum_of_terms(told)
    assert np.abs(np.linalg.eigvalsh(left)).max() < 1.001
    few = np.zeros((min(2, n), n + 2), dtype=np.int64)  # and of more than may be told, the farthest
    message = terms.message_of(factor, reflections, U, few, len(few), N_SAMPLES, WORKSPACE)
    assert terms.find_terms(message, sums) == min(len(few), found)
    if kind != "equal":
        assert np.array_equal(few[: min(len(few), found)], rows[: min(len(few), found)])
    message = terms.message_of(factor, reflections, U, rows, n, 0.0, WORKSPACE)
    assert terms.find_terms(message, sums) == 0  # of no samples nothing is told


def test_steps_are_finer_for_large_terms():
    n = 9
    factor, rows = linalg.factor_of(np.eye(n)), np.zeros((n, n + 2), dtype=np.int64)
    message = terms.message_of(factor, np.empty((0, n)), np.zeros((n, n)), rows, n, 1.0, WORKSPACE)
    information = np.diag([256.0, 64.0, 4.0, *(n - 3) * [0.0]])
    for finest, expected in ((np.inf, [112, 116, 124]), (64.0, [116, 116, 124])):
        sums = terms.sums_of(information, np.zeros((1, n)), 2.0, 0.5, finest)  # 1/16, 1/8, 1/2
        assert terms.find_terms(message, sums) == 3
        assert rows[:3, 1].tolist() == expected


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_message_up_as_bytes(n, outputs):
    rng, U, factor = link(n)
    reflections, lower = reflections_of(U, factor), factor.array("lower")
    information = N_SAMPLES * U + lower @ symmetric(rng, n, SPECTRA["few"](rng, n)) @ lower.T
    moments = rng.standard_normal((outputs, n))
    rows = np.zeros((n + outputs, n + 2), dtype=np.int64)
    numbers = rng.standard_normal((5, outputs))
    numbers[4], given = 0.01, numbers.copy()
    data = np.zeros(6 + 8 * outputs + rice.body_bytes(rows), dtype=np.uint8)
    message = terms.message_of(factor, reflections, U, rows, n, N_SAMPLES, WORKSPACE)
    found, bits = terms.encode_sums(message, terms.sums_of(information, moments, 1.0, 0.1, np.inf), 77, numbers, data)
    assert found == min(3, n)
    first, samples, *halves = struct.unpack(f">Hf{4 * outputs}H", data[: 6 + 8 * outputs].tobytes())
    travelled = np.array(struct.unpack(f">{len(halves)}f", struct.pack(f">{len(halves)}I", *(h << 16 for h in halves))))
    assert (first, samples) == (77, N_SAMPLES) and np.array_equal(travelled.reshape(outputs, 4).T, numbers[:4])
    np.testing.assert_allclose(numbers[:4], given[:4], rtol=2.0**-8)
    back = np.zeros((found + outputs, n + 2), dtype=np.int64)
    body = data[6 + 8 * outputs : bits + 7 >> 3].copy()
    assert rice.read_body(body, False, False, found, back) == (found, bits - 8 * (6 + 8 * outputs))
    assert np.array_equal(back[:found], rows[:found]) and np.array_equal(
        back[found:, 1:], rows[found : found + outputs, 1:]
    )
    whitened = np.linalg.solve(lower, moments.T).T @ product(more_reflections(reflections, rows[:found]), n).T
    step = size_of(back[found, 1])
    assert 0.01 / 2**0.25 < step <= 0.01
    np.testing.assert_allclose(back[found:, 2:] * step, whitened, atol=0.5001 * step)


def encode_identity(moments, numbers, n_samples=1.0):
    """Rows and bytes of a message without terms, of moments as they are."""
    n = len(moments)
    factor, rows = linalg.factor_of(np.eye(n)), np.zeros((n + 1, n + 2), dtype=np.int64)
    data = np.zeros(14 + rice.body_bytes(rows), dtype=np.uint8)
    message = terms.message_of(factor, np.empty((0, n)), np.zeros((n, n)), rows, n, n_samples, WORKSPACE)
    sums = terms.sums_of(np.zeros((n, n)), moments[None].astype(float), 1.0, 0.1, np.inf)
    assert terms.encode_sums(message, sums, 0, numbers, data)[0] == 0
    return rows[0, 2:].tolist(), data.tobytes()


def test_halves_are_rounded_towards_zero():
    numbers = np.ones((5, 1))
    moments = np.array([0.5, -0.5, 1.5, 0.51, -2.5, 1e20, -1e20])
    assert encode_identity(moments, numbers)[0] == [0, 0, 1, 1, -2, 2**40, -(2**40)]
    assert encode_identity(np.array([1.0, np.nan]), numbers)[0] == [0, 0]


def test_numbers_that_are_too_large_travel_as_the_largest():
    numbers = np.array([[np.nan], [-1e300], [np.inf], [1.0 + 2.0**-8], [1.0]])
    _, data = encode_identity(np.zeros(3), numbers, 1e39)
    np.testing.assert_allclose(numbers[:4, 0], [3e38, -3e38, 3e38, 1.0], rtol=2.0**-8)
    assert numbers[3, 0] == 1.0 and struct.unpack(">f", data[2:6])[0] == np.float32(3e38)  # a tie goes to the even one


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize("kind", ["few", "all", "negative"])
def test_the_root_solves(n, outputs, kind):
    rng, _, factor = link(n)
    lower = factor.array("lower")
    values = {
        "few": np.linspace(0.6, 1.9, n),
        "all": np.geomspace(0.01, 9.0, n),
        "negative": np.linspace(-0.3, 1.5, n),
    }[kind]
    if kind == "few" and n > 8:
        values[:2], values[-2:] = [0.1, 0.3], [4.0, 30.0]
    whitened = symmetric(rng, n, values)
    information, moments = lower @ whitened @ lower.T - 0.3 * np.eye(n), rng.standard_normal((outputs, n))
    rows, solution = np.zeros((n, n + 2), dtype=np.int64), np.empty((outputs, n))
    message = terms.message_of(factor, np.empty((0, n)), information, rows, n, 1.0, WORKSPACE)
    sums = terms.sums_of(information, moments, 1.0, 0.01, np.inf)
    found = terms.solve_sums(message, sums, 0.3, solution)
    assert found == (values > 2.0).sum() and np.all(rows[:found, 0] == 1)
    held, basis = np.linalg.eigh(whitened)
    inverse = (basis / np.maximum(held, 0.5)) @ basis.T
    K = np.linalg.inv(lower)
    np.testing.assert_allclose(solution, moments @ K.T @ inverse @ K, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("along", [4.0, 0.25, -1.0])  # of the curvature that C knows along the step
def test_the_roots_step(n, along):
    rng, outputs = np.random.default_rng(n), 2
    information, change = symmetric(rng, n, np.linspace(0.5, 3.0, n)), rng.standard_normal((outputs, n))
    numbers, damping = np.array([[1.0, 2.0], [0.01, 0.03]]), np.array([1.0, 2.0])
    whole = 30.0 * information + 0.2 * np.eye(n)
    lower, rows = np.zeros((n, n)), np.zeros((outputs, n + 1), dtype=np.int64)
    moved, squares = np.empty((outputs, n)), np.empty(outputs)
    step = terms.root_step(information, 30.0, 0.2, change, along * change @ whole, numbers)
    assert not terms.take_step(step, lower, rows, moved, squares, WORKSPACE)
    np.testing.assert_allclose(lower, np.linalg.cholesky(whole), rtol=1e-10, atol=1e-12)
    share = np.sqrt(min(1.0, max(0.0, along)))
    for k in range(outputs):
        unit = size_of(rows[k, 0])
        assert numbers[1, k] / 2**0.25 < unit <= numbers[1, k]
        vector = rows[k, 1:] * unit
        np.testing.assert_allclose(vector, change[k] @ lower * share / damping[k], atol=0.5001 * unit)
        np.testing.assert_allclose(moved[k], np.linalg.solve(lower.T, vector), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(squares[k], vector @ vector, rtol=1e-12)


def test_room_for_messages_grows():
    workspace = linalg.Workspace()
    first = workspace.of(20)
    assert workspace.of(20) == first and workspace.of(20, 0, 1) == first and first % 64 == 0
    workspace.of(20, 4000)
    assert workspace.of(20) == workspace.of(20, 4000)
