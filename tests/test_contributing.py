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
    pytest.mark.timeout(2400),
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here to apply a diff with"),
]


def touched(diff):
    """The files that a diff makes or changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", (DIFFS / diff).read_text(), re.MULTILINE)


# The battery with two of the four losses, both engines on six graphs with each of them, an agent with each; and what it
# says of itself.
LEARNER = {
    "clipped and squared": 2 + 2 * 6 + 2,
    "clipped and fits_its_constructor": 1,
    "clipped and same_learner_again": 1,
}
# The rules of losses; two learners with it, and as agents; both engines for one of them on six graphs.
LOSS = {"huber and loss_passes": 1, "huber and odkla": 2 + 6 + 2}
DATA_SET = {"mackey": 1, "names_and_info": 1}
TESTS = (
    "tests/testing/test_checks.py",
    "tests/engine/test_engines.py::test_engines_agree",
    "tests/protocol/test_registered.py",
    "tests/learners/test_registry.py",
    "tests/learners/test_parameters.py",
    "tests/data/test_sets.py",
)


class Tree:
    """A copy of the package and its tests, to which diffs are applied."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("core", "src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "hatch_build.py"):
            shutil.copy(ROOT / file, folder)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTEST_"))},
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "PYTHONPATH": str(folder / "src"),
            "PYTEST_TIMEOUT": "1500",
            "LACONIC_TESTS": "all",
        }

    def run(self, *words):
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=2000, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def laconic(self, *words):
        return self.run(sys.executable, "-m", "laconic", *words)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Each diff applies to the package as it is, and all of them to one copy: the core is compiled once."""
    made = Tree(tmp_path_factory.mktemp("contributing") / "tree")
    for diff in DIFFS.iterdir():
        made.run("git", "apply", "--check", str(diff))
    for diff in DIFFS.iterdir():
        made.run("git", "apply", str(diff))
    made.run(sys.executable, "hatch_build.py", "--quiet")
    return made


@pytest.fixture(scope="module")
def passed(tree):
    """The names of the tests that passed there, in small letters; all that were chosen did."""
    chosen = " or ".join(f"({words})" for words in (*LEARNER, *LOSS, *DATA_SET))
    said = tree.run(sys.executable, "-m", "pytest", "-rp", "-k", chosen, *TESTS)
    return re.findall(r"^passed (.+)$", said.lower(), re.MULTILINE)


def count(passed, words):
    """How many have all of the words in their names."""
    return sum(all(word in name for word in words.split(" and ")) for name in passed)


def test_a_learner_with_compiled_speed_touches_at_most_four_files(tree, passed):
    assert len(touched("learner.diff")) <= 4
    assert "clipped-diffusion" in tree.laconic("run", "--help")
    assert {words: count(passed, words) for words in LEARNER} == LEARNER


def test_a_loss_with_compiled_speed_touches_at_most_two_files(tree, passed):
    assert len(touched("loss.diff")) <= 2
    assert "hinge or pseudo-huber" in " ".join(tree.laconic("run", "--help").split())  # however its lines break
    assert {words: count(passed, words) for words in LOSS} == LOSS


def test_a_data_set_is_one_file(tree, passed):
    assert len(touched("data-set.diff")) == 1
    assert "mackey-glass" in tree.laconic("data", "list")
    assert {words: count(passed, words) for words in DATA_SET} == DATA_SET


def test_the_contributing_page_names_every_diff():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert {path.name for path in DIFFS.iterdir()} == set(re.findall(r"docs/contributing/([\w-]+\.diff)", page))
