"""Compilation is announced when there is one, and only then: no clock is asked."""

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


def test_what_is_damaged_or_lies_under_the_name_of_another_is_not_there(tmp_path):
    files = cache._Files(str(tmp_path), "function", "stamp")
    files.save("one", list(range(100)))
    files.save("other", "of the other")
    paths = {key: files._named(key)[0] for key in ("one", "other")}
    whole = paths["one"].read_bytes()
    spoiled = [whole[:k] for k in range(len(whole))]
    spoiled += [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(len(whole))]
    for data in (*spoiled, whole + b"!", paths["other"].read_bytes()):
        paths["one"].write_bytes(data)
        assert files.load("one") is None
    paths["one"].unlink()
    paths["one"].mkdir()  # no file at all
    assert files.load("one") is None and files.load("other") == "of the other"


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(cache._Made, "_locator_classes", [cache._Nowhere])

    @cache.entry
    def twice(x):
        return 2 * x

    assert twice(21) == 42
    assert not (twice.stats.cache_hits or cache.Path(twice._cache.cache_path).is_dir())


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


# Sums in the written order of the kernels, over vectors; and a function of C's library.
SHIPPED = """
import pathlib, sys
import numpy as np
from laconic.engine import cache

folder, made = pathlib.Path(sys.argv[1]), sys.argv[2] == "make"
if made:
    cache.check_target("x86-64-v3")
    cache.compile_for("x86-64-v3", folder)
cache.SHIPPED = folder

import kernel

x, y = np.random.default_rng(0).normal(size=(2, 3, 40))
print(kernel.together(x, y).hex(), "numba.np.arraymath" in sys.modules)
"""
KERNEL = """
import math
from laconic.engine.cache import entry
from laconic.engine.rows import dot_row

@entry
def together(x, y):
    total = 0.0
    for k in range(len(x)):
        total += math.exp(dot_row(x, x.shape[1] * k, y, x.shape[1] * k, x.shape[1]) / 10)
    return total
"""


@pytest.mark.slow
def test_code_for_a_kind_of_processors_is_taken_where_it_fits_and_has_the_same_bits(tmp_path, monkeypatch):
    (tmp_path / "kernel.py").write_text(KERNEL)

    def run(word, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-c", SHIPPED, "shipped", word]
        ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300)
        if "it is not x86-64-v3" in ran.stderr:
            pytest.skip("this processor is not of the kind")
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.split()

    (tmp_path / "shipped").mkdir()
    number, compiled = run("make")
    assert compiled == "True"
    (made,) = (tmp_path / "shipped").iterdir()
    assert str(tmp_path).encode() not in made.read_bytes()  # nothing in it is of this machine
    assert not list(tmp_path.glob("__pycache__/*.nbc"))
    assert run("use") == [number, "False"]
    # An old processor has no vectors of that length, and no fused operations: they are called by name.
    assert run("use", NUMBA_CPU_NAME="generic") == [number, "True"]
    assert list(tmp_path.glob("__pycache__/*.nbc"))
