"""Fuzzers of the core's decoders, for a moment each; their files say how to run them longer."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

FUZZERS = sorted((Path(__file__).parent / "fuzz").glob("*.c"))
COMPILER = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc")]
FLAGS = ("-std=gnu11", "-O1", "-g", "-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
SECONDS = 2


@pytest.mark.skipif(COMPILER == [None], reason="there is no C compiler here")
@pytest.mark.parametrize("source", FUZZERS, ids=lambda path: path.stem)
def test_decoders_survive_random_bytes(source, tmp_path):
    made = subprocess.run([*COMPILER, *FLAGS, source, "-lm", "-o", tmp_path / "fuzz"], capture_output=True, text=True)
    if "sanitize" in made.stderr or "libasan" in made.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    run = subprocess.run([tmp_path / "fuzz", str(SECONDS), "1"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) > 1000
