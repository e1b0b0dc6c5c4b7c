"""Where the raw data sets are, for tests that need them: they are not part of the package.

LACONIC_DATA names their folder, or they lie in ``../shared/data`` beside the project. Tests that need them are marked
``data`` and skip where the folder is not there.
"""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("LACONIC_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data").resolve()


def find_raw(name):
    """The one file of this name, wherever it lies in the folder; the test skips without it."""
    found = sorted(FOLDER.glob(f"*/{name}"))
    if not found:
        pytest.skip(f"{name} is not in {FOLDER}")
    return found[0]
