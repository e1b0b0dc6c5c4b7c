"""``laconic compile``: afterwards nothing that it is for has to be compiled."""

import os
import pty
import signal
import subprocess
import sys
import threading

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


@pytest.mark.slow
def test_ctrl_c_is_one_sentence(tmp_path):
    command = [sys.executable, "-m", "laconic", "compile", "--target", "x86-64-v3", "--out", str(tmp_path / "code")]
    screen, stderr = pty.openpty()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, process_group=0, env={**os.environ, "TERM": "xterm"}
    )
    os.close(stderr)
    guard = threading.Timer(300, process.kill)
    guard.start()
    seen = b""
    while b"0 of " not in seen:  # its processes have begun
        seen += os.read(screen, 4096)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all of them
    try:
        while told := os.read(screen, 4096):
            seen += told
    except OSError:  # nobody has the terminal any more
        pass
    guard.cancel()
    assert process.communicate(timeout=300)[0] == b"" and process.returncode == 130
    os.close(screen)
    assert b"laconic: interrupted." in seen and b"Traceback" not in seen
