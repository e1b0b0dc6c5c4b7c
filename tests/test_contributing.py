"""The worked examples of CONTRIBUTING: each diff applies, touches as few files as promised, and passes the battery."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DIFFS = ROOT / "docs" / "contributing"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the whole engine is compiled anew for each
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here to apply a diff with"),
]


def touched(diff):
    """The files that a diff makes or changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", (DIFFS / diff).read_text(), re.MULTILINE)


class Tree:
    """A copy of the package and its tests, with a diff applied."""

    def __init__(self, folder, diff):
        self.folder = folder
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTEST_"))},
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "PYTHONPATH": str(folder / "src"),
            "NUMBA_CACHE_DIR": str(folder / "compiled"),
            "PYTEST_TIMEOUT": "600",
        }
        self.run("git", "apply", str(DIFFS / diff))

    def run(self, *words):
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=800, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def laconic(self, *words):
        return self.run(sys.executable, "-m", "laconic", *words)

    def passed(self, pattern, *tests):
        """How many of the tests whose name has the pattern passed; all of them did."""
        said = self.run(sys.executable, "-m", "pytest", "-v", "-k", pattern, *tests)
        return int(re.search(r"(\d+) passed", said)[1])


def test_a_learner_with_compiled_speed_touches_at_most_five_files(tmp_path):
    assert len(touched("learner.diff")) <= 5
    tree = Tree(tmp_path / "tree", "learner.diff")
    assert "clipped-diffusion" in tree.laconic("run", "--help")
    battery, engines = "tests/testing/test_checks.py", "tests/engine/test_engines.py::test_engines_agree"
    # The battery with two of the four losses, both engines on six graphs with each of them, an agent with each.
    assert tree.passed("clipped and squared", battery, engines, "tests/protocol/test_registered.py") == 2 + 2 * 6 + 2
    assert tree.passed("Clipped", "tests/learners/test_registry.py", "tests/learners/test_parameters.py") == 2


def test_a_loss_with_compiled_speed_touches_at_most_three_files(tmp_path):
    assert len(touched("loss.diff")) <= 3
    tree = Tree(tmp_path / "tree", "loss.diff")
    assert "hinge or pseudo-huber" in " ".join(tree.laconic("run", "--help").split())  # however its lines break
    battery, engines = "tests/testing/test_checks.py", "tests/engine/test_engines.py::test_engines_agree"
    # The rules of losses; two learners with it, and as agents; both engines for one of them on six graphs.
    some = "huber and (odkla or loss_passes)"
    assert tree.passed(some, battery, engines, "tests/protocol/test_registered.py") == 1 + 2 + 6 + 2


def test_a_data_set_is_one_file(tmp_path):
    assert len(touched("data-set.diff")) == 1
    tree = Tree(tmp_path / "tree", "data-set.diff")
    assert "mackey-glass" in tree.laconic("data", "list")
    assert tree.passed("mackey", "tests/testing/test_checks.py") == 1
    assert tree.passed("names_and_info", "tests/data") == 1


def test_the_contributing_page_names_every_diff():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert {path.name for path in DIFFS.iterdir()} == set(re.findall(r"docs/contributing/([\w-]+\.diff)", page))
