"""Compilation is announced when there is one, and only then: no clock is asked."""

import subprocess
import sys

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


KEPT = """
from laconic.engine.cache import entry

@entry
def doubled(values):
    return 2 * values.copy()
"""

LOADED = """
import sys
import numba, numpy as np
import kept

assert kept.doubled(np.ones(3)).sum() == 6
print("numba.np.arraymath" in sys.modules, "scipy.linalg" in sys.modules)
assert numba.njit(lambda values: np.dot(values, values))(np.ones(3)) == 3  # and whoever compiles still can
"""


def test_who_loads_what_is_kept_does_not_make_ready_to_compile(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    said = []
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", LOADED], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120
        )
        said.append(ran.stdout.split())
    assert said == [["True", "True"], ["False", "False"]]
