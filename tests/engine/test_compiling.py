"""Compilation is announced when there is one, and only then: no clock is asked."""

import os
import subprocess
import sys

import pytest
from numba import njit

from laconic.engine import cache
from laconic.engine.compiling import when_compiling


def test_a_compilation_is_told_once_and_at_its_beginning():
    told = []

    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return inner(x) * 2

    with when_compiling(lambda: told.append(len(outer.signatures))):
        assert outer(3) == 8
    assert told == [0]  # once, though two functions were compiled; before either was there
    with when_compiling(lambda: told.append("again")):
        assert outer(4) == 10
    assert told == [0]


def test_nothing_is_told_outside():
    told = []

    @njit
    def twice(x):
        return 2 * x

    with when_compiling(lambda: told.append(True)):
        pass
    assert twice(2) == 4
    assert told == []


MAP = """
import laconic as lc, numpy as np
from laconic.cli.words import note_of_compiling
from laconic.engine.compiled import map_features
with note_of_compiling():
    map_features(lc.RandomFeatures.gaussian(2, 3), np.zeros((4, 2)))
"""


@pytest.mark.slow
def test_only_a_cold_cache_is_told_of(tmp_path):
    """In processes of their own, with a folder of compiled code that is empty the first time."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", MAP], capture_output=True, text=True, env=environment, check=True)
        said.append(done.stderr)
    assert said == ["laconic: compiling, once for each installation; this takes about ten seconds.\n", ""]


def test_signatures_are_kept_apart(tmp_path):
    """Two processes that compile one function for different arguments at once: each finds what it has made."""
    one, other = (cache._Files(str(tmp_path), "function", "stamp") for _ in range(2))
    assert one.load(("float64",)) is None
    one.save(("float64",), "of one")
    other.save(("float32",), "of the other")
    for files in (one, other):
        assert files.load(("float64",)) == "of one"
        assert files.load(("float32",)) == "of the other"
        assert files.load(("int64",)) is None


SPARED = """
import sys
import laconic.engine.compiled
assert "numba.np.arraymath" in sys.modules
assert "scipy.linalg" not in sys.modules
from numba.np import arraymath, linalg
assert arraymath._HAVE_BLAS
linalg.ensure_blas()
assert "scipy.linalg" in sys.modules
"""


def test_scipy_is_imported_when_a_product_asks_for_it_and_not_before():
    subprocess.run([sys.executable, "-c", SPARED], check=True)
