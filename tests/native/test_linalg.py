"""Factors and inverses of the core beside NumPy's."""

import numpy as np
import pytest

from laconic.native import linalg

WORKSPACE = linalg.Workspace()
SIZES = [1, 3, 4, 22, 101]


def positive(n):
    half = np.random.default_rng(n).standard_normal((n, 2 * n))
    return half @ half.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_factor_is_cholesky(n):
    matrix, lower = positive(n), np.zeros((n, n))
    assert not linalg.factor(matrix, 3.0, 0.5, lower, WORKSPACE)
    np.testing.assert_allclose(lower, np.linalg.cholesky(3.0 * matrix + 0.5 * np.eye(n)), rtol=1e-11, atol=1e-12)
    assert np.array_equal(lower, np.tril(lower))
    linalg.cholesky(matrix, 0.0, lower, WORKSPACE)
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_small_pivots_are_raised(n):
    matrix, lower = positive(n), np.zeros((n, n))
    matrix[-1, -1] = matrix[-1, :-1] @ np.linalg.solve(matrix[:-1, :-1], matrix[:-1, -1]) - 1.0
    assert linalg.cholesky(matrix, 0.01, lower, WORKSPACE)
    product = lower @ lower.T
    np.testing.assert_allclose(product[:-1, :-1], matrix[:-1, :-1], rtol=1e-11, atol=1e-12)
    assert lower[-1, -1] == 0.1 and product[-1, -1] > matrix[-1, -1] + 1.0


@pytest.mark.parametrize("n", SIZES)
def test_only_lower_tiles_are_read(n):
    matrix, row, column = positive(n), *np.indices((n, n)) // 4
    one, other = np.zeros((2, n, n))
    linalg.factor(matrix, 2.0, 0.1, one, WORKSPACE)
    linalg.factor(np.where(column > row, np.nan, matrix), 2.0, 0.1, other, WORKSPACE)
    assert np.array_equal(one, other)


@pytest.mark.parametrize("n", SIZES)
def test_above_agrees_with_eigenvalues(n):
    matrix = positive(n) - 0.3 * np.eye(n)
    least = np.linalg.eigvalsh(matrix)[0]
    assert linalg.above(matrix, least - 1e-9, WORKSPACE) and not linalg.above(matrix, least + 1e-9, WORKSPACE)
    assert not linalg.above(np.full((n, n), np.nan), 0.0, WORKSPACE)


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n):
    lower = np.linalg.cholesky(positive(n))
    factor, size = linalg.factor_of(lower), -(-n // 4) * 4
    assert (factor.n, factor.size) == (n, size) and factor.room.shape == (3, size, size)
    inverse, inverse_t, lower_t = factor.room
    np.testing.assert_allclose(inverse[:n, :n], np.linalg.inv(lower), rtol=1e-9, atol=1e-10)
    assert np.array_equal(inverse, inverse_t.T) and np.array_equal(lower_t[:n, :n], lower.T)
    assert not inverse[n:].any() and not inverse[:, n:].any() and not lower_t[n:].any() and not lower_t[:, n:].any()
    made = np.empty((n, n))
    linalg.square_of_inverse(lower, made, WORKSPACE)
    np.testing.assert_allclose(made, np.linalg.inv(lower @ lower.T), rtol=1e-9, atol=1e-10)
    assert np.array_equal(made, made.T)
    again = linalg.factor_of(np.linalg.cholesky(positive(n) + np.eye(n)), factor.room)  # room of a factor that is done
    np.testing.assert_allclose(again.room[0][:n, :n] @ again.array("lower"), np.eye(n), atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_sums_are_added_by_lower_tiles(n):
    one, other, row, column = *np.random.default_rng(n).standard_normal((2, n, n)), *np.indices((n, n)) // 4
    total, kept = one.copy(), column > row
    linalg.add_scaled(total, 0.3, np.where(kept, np.nan, other))
    assert np.array_equal(np.tril(total), np.tril(one + 0.3 * other)) and np.array_equal(total[kept], one[kept])


def test_arrays_are_checked():
    lower = np.zeros((3, 3))
    for wrong in (np.eye(4), np.eye(3, dtype=np.float32), np.eye(6)[::2, ::2]):
        with pytest.raises(AssertionError):
            linalg.factor(np.eye(3), 1.0, 1.0, wrong, WORKSPACE)
    read_only = np.eye(3)
    read_only.flags.writeable = False
    assert not linalg.factor(read_only, 1.0, 1.0, lower, WORKSPACE) and lower[0, 0] == np.sqrt(2.0)
