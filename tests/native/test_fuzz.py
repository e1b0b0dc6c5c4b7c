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


def run(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(COMPILER == [None], reason="there is no C compiler here")
@pytest.mark.parametrize("source", FUZZERS, ids=lambda path: path.stem)
def test_decoders_survive_random_bytes(source, tmp_path):
    made = run(*COMPILER, *FLAGS, source, "-lm", "-o", tmp_path / "fuzz")
    if "sanitize" in made.stderr or "libasan" in made.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    found = run(tmp_path / "fuzz", str(SECONDS), "1")
    assert found.returncode == 0, found.stderr
    assert int(found.stdout.split()[0]) > 1000
