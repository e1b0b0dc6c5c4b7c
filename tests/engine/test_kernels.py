"""The arithmetic below the compiled engine: accurate, the same bits in any company, and never stale on disk."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import laconic as lc
from laconic.engine import abreast, cache, coding, lanes, moving, rounds, rows, sincos, single
from laconic.engine.compiled import map_features, padded
from laconic.engine.vectors import load, splat, store


@njit
def sine_cosine_of(phases, out):
    for k in range(phases.size):
        out[0, k], out[1, k] = sincos.sine_cosine(phases[k])


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 1.4e-16), (np.float32, 1.0e-7)])
def test_sine_and_cosine_are_accurate_over_their_range(dtype, limit):
    rng = np.random.default_rng(0)
    phases = np.concatenate(
        [
            rng.uniform(-1e4, 1e4, 200_000),
            rng.uniform(-10, 10, 200_000),
            np.arange(-6000, 6000) * np.pi / 4,
            [0.0, -0.0],
        ]
    ).astype(dtype)
    out = np.empty((2, phases.size), dtype=dtype)
    sine_cosine_of(phases, out)
    exact = phases.astype(np.longdouble)
    assert float(np.abs(out[0] - np.sin(exact)).max()) < limit
    assert float(np.abs(out[1] - np.cos(exact)).max()) < limit
    assert out[0, -2] == 0 and out[1, -2] == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_compiled_map_is_the_map(dtype):
    features = lc.RandomFeatures.gaussian(13, 37, bandwidth=0.4, seed=0)
    X = np.random.default_rng(0).normal(size=(301, 13))
    X[5] *= 1e5  # phases beyond the polynomials' range
    mapped = map_features(features, X, dtype)[:, : features.n_features]
    tolerance = 1e-9 if dtype is np.float64 else 0.3  # single precision has no digits left at such phases
    np.testing.assert_allclose(mapped[5], features(X)[5], atol=tolerance)
    rest = np.arange(301) != 5
    np.testing.assert_allclose(mapped[rest], features(X)[rest], atol=1e-14 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_has_the_same_bits_alone_and_in_any_block(dtype):
    rng = np.random.default_rng(0)
    for n_inputs, n_frequencies in ((1, 1), (2, 3), (77, 50), (300, 13)):
        features = lc.RandomFeatures.gaussian(n_inputs, n_frequencies, seed=1)
        X = rng.normal(size=(150, n_inputs))
        together = map_features(features, X, dtype)
        for size in (1, 3, 4, 7, 130):
            parts = [map_features(features, X[k : k + size], dtype) for k in range(0, 150, size)]
            assert np.array_equal(np.concatenate(parts), together)


@njit
def dot(a, b, size):
    return rows.dot_row(a, 0, b, 0, size)


def test_inner_products_are_summed_in_the_written_order():
    rng = np.random.default_rng(0)
    for n in (1, 4, 7, 16, 50, 100):
        a, b = (padded(rng.normal(size=(1, n)), np.float64)[0] for _ in range(2))
        assert dot(a, b, a.size) == pytest.approx(a @ b, rel=1e-14)
        # Exact products and sums: any order gives this, so a lost or doubled entry shows to the last digit.
        a, b = (padded(rng.integers(-99, 99, size=(1, n)).astype(float), np.float64)[0] for _ in range(2))
        assert dot(a, b, a.size) == a @ b


def test_functions_that_only_kernels_call_are_linked_into_them_and_not_compiled_alone():
    """numba would optimise each of them and make machine code of it, and again of each that calls it."""
    assert dot(np.ones(4), np.ones(4), 4) == 4.0
    inner = list(rows.dot_row.overloads.values()) + list(rows.dot_part.overloads.values())
    assert inner and not any(one.library._object_caching_enabled for one in inner)


def test_every_compiled_file_is_in_the_name_of_what_is_kept_on_disk():
    """numba's own cache looks at the file of a function alone, not at the files whose functions it calls."""
    folder = Path(cache.__file__).parent
    compiled = {
        path.stem
        for path in folder.glob("*.py")
        if re.search(r"^@(jit|entry|njit|lean|counted)", path.read_text(), re.M)
    }
    assert compiled <= set(cache.SOURCES)
    assert all(cache.digest() in entry._cache._cache_file._index_name for entry in (rounds.advance, single.learn_one))


FRESH = """
import sys
import laconic as lc
assert "numba" not in sys.modules, "importing laconic must not import numba"
for heavy in ("sklearn", "matplotlib", "polars", "river", "networkx", "joblib"):
    assert heavy not in sys.modules, heavy
import numpy as np
from laconic.cli.words import note_of_compiling
from laconic.engine import rounds
from laconic.engine.compiled import map_features
with note_of_compiling():
    mapped = map_features(lc.RandomFeatures.gaussian(3, 10), np.random.default_rng(0).uniform(size=(50, 3)))
stats = rounds.map_rows.stats
print(mapped.tobytes().hex(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_gets_the_same_bits(tmp_path):
    """And only the first one says that it compiles. With the kernel that is compiled fastest."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, env=env, check=True)
        for _ in range(2)
    )
    bits, *counts = first.stdout.split()
    assert counts == ["0", "1"] and second.stdout.split() == [bits, "1", "0"]
    assert first.stderr == "laconic: compiling, once for each installation; this takes about a minute.\n"
    assert second.stderr == ""


@njit
def sum_abreast(parts, found):
    abreast.sums_across(parts, found, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_rows_abreast_have_the_order_of_each_alone(dtype):
    width = 32 // np.dtype(dtype).itemsize
    parts, found = np.random.default_rng(0).normal(size=(width, width)).astype(dtype), np.empty((1, width), dtype)
    sum_abreast(parts, found)
    alone = parts[:, 0].copy()
    for lane in range(1, width):
        alone += parts[:, lane]
    assert np.array_equal(found[0], alone)


@njit
def double_few(array, told, count, found):
    some = lanes.load_few(array, 1, count)
    lanes.store_few(found, 1, some + some, count)
    lanes.store_few_bytes(told, 1, lanes.load_few_bytes(told, 1, count, some) + some, count)
    return count


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_behind_the_last_row_is_left_alone(dtype):
    width = 32 // np.dtype(dtype).itemsize
    for count in range(width + 1):
        array, found = np.arange(width + 2).astype(dtype), np.full(width + 2, -1, dtype)
        told = np.full(width + 2, 7, np.uint8)
        double_few(array, told, count, found)
        here = slice(1, 1 + count)
        assert np.array_equal(found[here], 2 * array[here])
        assert np.array_equal(told[here], 7 + np.arange(1, 1 + count))
        assert np.all(np.delete(found, here) == -1)
        assert np.all(np.delete(told, here) == 7)


@njit
def lattices_of(peaks, cells, rounding, abreast, alone):
    real, high = peaks.dtype.type, lanes.upward(load(peaks, 0))
    columns = lanes.lattices(real, rounding, cells, splat(real(0)) - high, high)
    for k in range(4):
        store(abreast, k * peaks.shape[1], columns[k])
    for r in range(peaks.shape[1]):
        top = real(coding.upward_float32(peaks[0, r]))
        alone[0, r], alone[1, r], alone[2, r], alone[3, r] = coding.lattice(real, rounding, cells, -top, top)


@pytest.mark.parametrize("rounding", [coding.RISE, coding.TREAD])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lattices_of_rows_abreast_are_those_of_each_alone(dtype, rounding):
    width = 32 // np.dtype(dtype).itemsize
    for seed in range(20):
        rng = np.random.default_rng(seed)
        peaks = (rng.uniform(size=(1, width)) * 10.0 ** rng.integers(-30, 30, size=(1, width))).astype(dtype)
        together, alone = np.empty((4, width), dtype), np.empty((4, width), dtype)
        lattices_of(peaks, 5, rounding, together, alone)
        assert np.array_equal(together, alone)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_columns_are_taken_in_any_order(dtype):
    rng = np.random.default_rng(0)
    order = rng.permutation(23).astype(np.int32)
    for shape in ((2, 23), (2, 23, 1), (2, 23, 5), (1, 23, 9)):
        array = rng.integers(0, 99, size=shape).astype(dtype)
        assert np.array_equal(moving.taken(array, order), array[:, order])
