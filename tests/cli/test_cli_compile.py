"""``laconic compile``: afterwards nothing that it is for has to be compiled."""

import subprocess
import sys

import pytest

from laconic.cli import main

DEMO = """
from laconic.demo import show
from laconic.engine.compiling import when_compiling
with when_compiling(lambda: print("compiling")):
    show()
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_demonstration_has_nothing_left_to_compile(capfd):
    assert main(["compile", "--demo", "--jobs", "1"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("compiled in ") and err == ""
    shown = subprocess.run([sys.executable, "-c", DEMO], capture_output=True, text=True, check=True)
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--jobs", "0"], "--jobs must be at least 1, got 0."),
        (["--dtype", "float16"], "--dtype must be one of float64, float32; got 'float16'."),
    ],
)
def test_nonsense_is_refused(capsys, options, sentence):
    assert main(["compile", *options]) == 2
    assert sentence in capsys.readouterr().err
