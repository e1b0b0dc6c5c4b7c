"""What a sender says of a matrix, compiled: Lanczos with full orthogonalisation, until all that counts has converged.

Only the sender computes this, so its sums may run in any order; they converge far enough for the codes to be those of a
whole decomposition, but for a tie that is hit once in thousands of runs.
"""

from __future__ import annotations

import math

import numpy as np

from laconic.engine.cache import entry
from laconic.engine.rows import add_row, dot_row
from laconic.engine.vectors import jit
from laconic.engine.wave_rounds import gain_row

_FIRST, _EVERY = 12, 6  # when it is asked whether all has converged
_CONVERGED, _NEAR, _FAR = 1e-12, 0.9, 3.0


@entry
def describe(matrix, tolerance, nu, most, positive, signs, steps, codes):
    """Terms of ``matrix`` (D, D), padded to whole vectors and used up; returns how many there are.

    Each eigenvalue x with |x| > tol (x > tol, if ``positive``) becomes the term of sign(x) z z', z = sqrt|x|
    eigenvector; what they say is subtracted, and the rest described in the same way until nothing is left.
    """
    size, n_features = matrix.shape[1], codes.shape[1]
    basis = np.zeros((n_features, size))
    values, vectors = np.empty(n_features), np.zeros((n_features, size))
    found = 0
    while found < most:
        n = eigenvectors_beyond(matrix, n_features, tolerance, positive, basis, values, vectors)
        before = found
        for _ in range(min(n, most - found)):
            best = 0
            for k in range(1, n):
                if abs(values[k]) > abs(values[best]):
                    best = k
            x, total = values[best], 0.0
            values[best] = 0.0
            for k in range(n_features):
                total += vectors[best, k]
            scale = math.sqrt(abs(x)) if total >= 0.0 else -math.sqrt(abs(x))
            step = grid(nu * tolerance / math.sqrt(max(abs(x), tolerance)))
            width, some = 2.0 ** ((step - 128) / 4), False
            for k in range(n_features):
                code = np.rint(scale * vectors[best, k] / width)
                codes[found, k] = np.int64(code)
                some |= code != 0.0
            if not some:
                continue
            sign = 1.0 if x > 0.0 else -1.0
            signs[found], steps[found] = sign, step
            for i in range(n_features):
                factor = sign * width * width * codes[found, i]
                if factor != 0.0:
                    for j in range(size if i // 4 * 4 + 4 > size else i // 4 * 4 + 4):
                        if j < n_features:
                            matrix[i, j] -= factor * codes[found, j]
            found += 1
        if found == before:
            break
    return found


@jit
def grid(size):
    """The byte of the largest 2^(j/4) that is at most ``size``, as near as bytes go."""
    if not size > 0.0:
        return 0
    return int(min(127.0, max(-128.0, math.floor(4.0 * math.log2(size))))) + 128


@jit
def eigenvectors_beyond(matrix, n_features, tolerance, positive, basis, values, vectors):
    """Eigenvalues beyond the tolerance and their vectors, as rows; returns how many there are.

    M Q = Q T + beta q e', Q orthonormal, T tridiagonal: T's eigenvalues are M's, first the extreme ones, and the last
    entries of its eigenvectors times beta say how nearly.
    """
    size = matrix.shape[1]
    diagonal, beside = np.zeros(n_features), np.zeros(n_features)
    row = np.zeros((1, size))
    seed = 12345
    for k in range(n_features):
        seed = (1103515245 * seed + 12345) % 2147483648
        basis[0, k] = seed / 1073741824.0 - 1.0
    length = math.sqrt(dot_row(basis, 0, basis, 0, size))
    for k in range(n_features):
        basis[0, k] /= length
    largest = 0.0
    for k in range(n_features):
        gain_row(matrix, 0, basis, k, size, row)
        diagonal[k] = dot_row(row, 0, basis, k * size, size)
        beta = math.sqrt(dot_row(row, 0, row, 0, size))
        for _ in range(3):  # again, where much was taken away: what is left may not be orthogonal enough
            before = beta
            for j in range(k, -1, -1):
                add_row(row, 0, -dot_row(row, 0, basis, j * size, size), basis, j * size, size)
            beta = math.sqrt(dot_row(row, 0, row, 0, size))
            if beta > 0.5 * before:
                break
        largest = max(largest, abs(diagonal[k]), beta)
        n = k + 1
        ended = beta <= 1e-14 * largest or n == n_features
        if ended or (n >= _FIRST and (n - _FIRST) % _EVERY == 0):
            theta, off, last = diagonal[:n].copy(), beside[:n].copy(), np.zeros((n, 1))
            last[n - 1, 0] = 1.0
            solve_tridiagonal(theta, off, last)
            count, settled = 0, True
            low, high = np.argmin(theta), np.argmax(theta)
            for i in range(n):
                x, rest = theta[i], abs(beta * last[i, 0])
                counts = x > tolerance or (x < -tolerance and not positive)
                near = x > _NEAR * tolerance or (x < -_NEAR * tolerance and not positive)
                count += counts
                if near and rest > _CONVERGED * largest:
                    settled = False
                # The largest of those that do not count is settled when it is far from counting.
                if (i == high or (i == low and not positive)) and not near and abs(x) + _FAR * rest > tolerance:
                    settled = False
            if ended or settled:
                if count == 0:
                    return 0
                whole = np.eye(n)
                theta, off = diagonal[:n].copy(), beside[:n].copy()
                solve_tridiagonal(theta, off, whole)
                found = 0
                for i in range(n):
                    if theta[i] > tolerance or (theta[i] < -tolerance and not positive):
                        values[found] = theta[i]
                        for j in range(size):
                            vectors[found, j] = 0.0
                        for j in range(n):
                            add_row(vectors, found * size, whole[i, j], basis, j * size, size)
                        found += 1
                return found
        if ended:
            return 0
        beside[k] = beta
        for j in range(size):
            basis[n, j] = row[0, j] / beta
    return 0


@jit
def solve_tridiagonal(diagonal, beside, rows):
    """Eigenvalues of a symmetric tridiagonal matrix into ``diagonal``, by QL with implicit shifts.

    ``beside`` is the other diagonal and is used up. ``rows`` starts as the transposes of what is to be multiplied by
    the matrix of eigenvectors: the identity for all of it, a unit column for a single line of it.
    """
    n = len(diagonal)
    beside[n - 1] = 0.0
    for left in range(n):
        for _ in range(60):
            m = left
            while m < n - 1 and abs(beside[m]) > 1e-16 * (abs(diagonal[m]) + abs(diagonal[m + 1])):
                m += 1
            if m == left:
                break
            g = (diagonal[left + 1] - diagonal[left]) / (2.0 * beside[left])
            r = math.sqrt(g * g + 1.0)
            g = diagonal[m] - diagonal[left] + beside[left] / (g + (r if g >= 0.0 else -r))
            s = c = 1.0
            p = 0.0
            i = m - 1
            while i >= left:
                f, b = s * beside[i], c * beside[i]
                r = math.sqrt(f * f + g * g)
                beside[i + 1] = r
                if r == 0.0:
                    diagonal[i + 1] -= p
                    beside[m] = 0.0
                    break
                s, c = f / r, g / r
                g = diagonal[i + 1] - p
                r = (diagonal[i] - g) * s + 2.0 * c * b
                p = s * r
                diagonal[i + 1] = g + p
                g = c * r - b
                for k in range(rows.shape[1]):
                    upper, under = rows[i, k], rows[i + 1, k]
                    rows[i + 1, k] = s * upper + c * under
                    rows[i, k] = c * upper - s * under
                i -= 1
            if i < left:
                diagonal[left] -= p
                beside[left] = g
                beside[m] = 0.0
