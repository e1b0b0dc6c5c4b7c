"""Derive the polynomials and constants of the sine-cosine in ``laconic.engine.sincos``.

On ``|r| <= pi/4`` we want ``sin r = r + r^3 S(r^2)`` and ``cos r = 1 - r^2/2 + r^4 C(r^2)`` with the smallest
possible maximal absolute error, and the coefficients rounded to the working precision. Remez exchange, carried
out in 60 digits, gives them; run ``python tools/sincos_coefficients.py`` (needs mpmath) to print them again.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

mp.mp.dps = 60
EDGE = mp.pi / 4


def remez(target, basis, n_terms: int, rounds: int = 30):
    """Coefficients ``a`` minimising ``max |target(r) - sum_k a_k basis(r, k)|`` over ``0 <= r <= pi/4``."""
    nodes = [EDGE * (1 - mp.cos(mp.pi * (k + mp.mpf(1) / 2) / (n_terms + 1))) / 2 for k in range(n_terms + 1)]
    grid = [EDGE * k / mp.mpf(4000) for k in range(1, 4001)]
    for _ in range(rounds):
        system = mp.matrix(n_terms + 1, n_terms + 1)
        right = mp.matrix(n_terms + 1, 1)
        for row, r in enumerate(nodes):
            for k in range(n_terms):
                system[row, k] = basis(r, k)
            system[row, n_terms] = (-1) ** row
            right[row] = target(r)
        solution = mp.lu_solve(system, right)
        coefficients = list(solution[:n_terms])

        def error(r, coefficients=coefficients):
            return target(r) - sum(a * basis(r, k) for k, a in enumerate(coefficients))

        values = [error(r) for r in grid]
        # One extremum in each run of equal sign: the next set of nodes.
        peaks, best = [], 0
        for k in range(1, len(grid)):
            if mp.sign(values[k]) != mp.sign(values[best]):
                peaks.append(grid[best])
                best = k
            elif abs(values[k]) > abs(values[best]):
                best = k
        peaks.append(grid[best])
        if len(peaks) < n_terms + 1:
            break
        nodes = peaks[-(n_terms + 1) :]
    return coefficients, max(abs(v) for v in values)


def split(value, dtype, bits: int):
    """``value`` as a head of ``bits`` bits and a tail of ``dtype`` (Cody-Waite).

    With 39 bits and fewer than 2^13 quarter turns, the head's multiples are exact in double precision, and so is what
    they leave of the phase: the reduced phase is rounded only once.
    """
    scale = mp.mpf(2) ** (bits - 1)
    head = mp.nint(value * scale) / scale
    return dtype(float(head)), dtype(float(value - head))


def main() -> None:
    for dtype, n_sin, n_cos, bits in ((np.float64, 6, 6, 39), (np.float32, 3, 3, 24)):
        sine, sine_error = remez(lambda r: mp.sin(r) - r, lambda r, k: r ** (2 * k + 3), n_sin)
        cosine, cosine_error = remez(lambda r: mp.cos(r) - 1 + r**2 / 2, lambda r, k: r ** (2 * k + 4), n_cos)
        print(dtype.__name__)
        print("  half pi  ", [repr(float(p)) for p in split(mp.pi / 2, dtype, bits)])
        print("  two / pi ", repr(float(dtype(2 / mp.pi))))
        print("  sine     ", [repr(float(dtype(a))) for a in sine], mp.nstr(sine_error, 3))
        print("  cosine   ", [repr(float(dtype(a))) for a in cosine], mp.nstr(cosine_error, 3))


if __name__ == "__main__":
    main()
