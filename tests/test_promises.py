"""Sentences that must not stand in any file of the project: they would mislead readers, or harm their machines."""

import re
from pathlib import Path

import pytest

import laconic
from laconic import _extras

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "src" / "laconic").is_dir(), reason="an installed package is no project")

#: What ``make`` leaves behind, and what is hidden but belongs to the project.
MADE, HIDDEN = {"build", "demo", "dist", "site"}, {".ci", ".github", ".pre-commit-config.yaml"}


def texts():
    """Every file of the project that is text, with its path."""
    tops = [top for top in ROOT.iterdir() if top.name in HIDDEN or not (top.name in MADE or top.name[0] == ".")]
    for path in (file for top in sorted(tops) for file in (top, *top.rglob("*"))):
        if path.is_file() and path != Path(__file__) and not {"machine_code", "__pycache__"} & set(path.parts):
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text()
            except UnicodeDecodeError:  # a picture
                continue


def test_the_whole_project_is_looked_at():
    found = dict(texts())
    some = ["README.md", "Makefile", "pyproject.toml", ".ci/run", "docs/deploy.md", "deploy/docker/Dockerfile"]
    some += ["src/laconic/_extras.py", "src/laconic/demo/page.html.jinja", "src/laconic/dashboard/charts.js"]
    some += ["examples/slurm.sh", "CITATION.cff", "docs/images/make.py", "tests/conftest.py"]
    assert set(some) <= found.keys()


# On the package index the name is another project's ------------------------------------------------------------------

_INSTALLER = re.compile(r"\b(?:pip3?|pipx|uvx?|conda|mamba|poetry|pdm)\b([^`#;&|\n]*)")
_BY_NAME = re.compile(r"laconic(\[[^\]]*\])?([=<>~!]=?.*)?", re.IGNORECASE)
_EXTRA = re.compile(r"(?<![\w/.-])laconic\[[a-z][a-z, ]*\](?!\s*@)")


def installs_by_name(text):
    """Commands that would install what the package index has under this name."""
    text = re.sub(r"(?<!`)`[^`\n]+\n[^`\n]+`(?!`)", lambda span: span[0].replace("\n", " "), text)
    for rest in _INSTALLER.findall(text):
        words = [word for word in re.split(r"[\s'\"(),]+", re.sub(r"\S+\s*@\s*\S+", "", rest)) if word]
        if any(_BY_NAME.fullmatch(word.rstrip(".")) for word in words):
            yield rest
    yield from (match[0] for match in _EXTRA.finditer(text))


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("pip install laconic", 1),
        ("pip install -U laconic", 1),
        ("/opt/laconic/bin/pip install --no-deps laconic", 1),
        ("uv pip install 'laconic==0.1.0'", 1),
        ("take `pip install laconic\npymetis`.", 1),
        ("python -m pip install numpy laconic.", 1),
        ("metrics need prometheus-client: install laconic[agents].", 1),
        ("uvx laconic demo", 1),
        ("pip install '.[agents]'", 0),
        ("pip install .\nlaconic demo --open", 0),
        ("pip install './laconic-0.1.0-py3-none-any.whl[agents]'", 0),
        ("pip install 'laconic[agents] @ git+https://example.org/laconic'", 0),
        ("pip install git+https://example.org/laconic", 0),
        ("/opt/laconic/bin/pip install '/src[agents]' && laconic up", 0),
    ],
)
def test_the_rule_about_installing(text, n):
    assert len([*installs_by_name(text)]) == n


def test_no_file_tells_people_to_install_the_package_of_another_project():
    # The extras of the package name each other in its own settings: there pip has the package already.
    found = {path: [*installs_by_name(text)] for path, text in texts() if path != "pyproject.toml"}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("module", sorted(_extras._PACKAGES))
def test_no_missing_package_is_looked_for_under_that_name(module):
    sentence = str(_extras.explain(ModuleNotFoundError(name=module), "this"))
    assert "pip install" in sentence and [*installs_by_name(sentence)] == [] and "laconic" not in sentence


def test_wheels_that_documents_name_are_of_this_version():
    found = {name for _, text in texts() for name in re.findall(r"laconic-(\d[\w.]*)-py3-none-any\.whl", text)}
    assert found == {laconic.__version__}
