"""Digests of traces, states, messages and checkpoints stay what they are, in every variant of the core."""

import subprocess
import sys
from pathlib import Path

import pytest

import laconic
from laconic.native.binding import library

ROOT = Path(__file__).parents[2]
GOLDEN = (ROOT / "tests" / "golden" / "bits.txt").read_text().splitlines()
LIBRARIES = sorted(Path(laconic.__file__).parent.glob("native/core-*"))


def runs(path):
    """Whether this processor runs that variant."""
    level = library().core_level()
    return path.stem[5:] in ("generic", "v2", "v3", "v4")[: level + 1]


@pytest.mark.slow
@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.stem)
def test_every_variant_has_the_golden_bits(path, monkeypatch):
    if not runs(path):
        pytest.skip("this processor does not run that variant")
    monkeypatch.setenv("LACONIC_CORE", str(path))
    command = [sys.executable, str(ROOT / "tools" / "bits.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(found) == len(GOLDEN)
    assert [(new, old) for new, old in zip(found, GOLDEN, strict=True) if new != old] == []
