"""Sentences that must not stand in any file of the project: they would mislead readers, or harm their machines."""

import re
from pathlib import Path

import pytest

import laconic
from laconic import _extras
from laconic.defaults import PREFIX

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


# What messages give away is measured, and more than nothing -----------------------------------------------------------

_DATA = r"(?:data|samples?|rows?|records?|measurements?|observations?)"
_PLACE = (
    r"(?:home|there|local(?:ly)?|private|secret|put|hidden|(?:on|at|in|with|inside) (?:its|their|the|each|own) \w+)"
)
_PROMISES = [
    # Nobody shows anybody a sample; no agent ever sees another's data.
    rf"\b(?:nobody|no one|no-one|no (?:agent|device|neighbou?r|member)|never|nothing)\b[^.:;|]{{0,12}}"
    rf"\b(?:shows?|sees?|hears?|shares?|reveals?|discloses?)\b[^.:;|]{{0,30}}\b{_DATA}\b",
    rf"\b(?:shar(?:e|es|ing)|show(?:s|ing)?|reveal(?:s|ing)?|disclos(?:e|es|ing)|exchang(?:e|es|ing)) (?:no|none of)\b"
    rf"[^.:;|]{{0,20}}\b{_DATA}\b",
    rf"\bwithout (?:ever )?(?:sharing|showing|revealing|disclosing|exchanging|moving)\b[^.:;|]{{0,25}}\b{_DATA}\b",
    rf"\b(?:may|must|can|do|does|will) ?not (?:share|show|reveal|disclose)\b[^.:;|]{{0,15}}\b{_DATA}\b",
    rf"\b{_DATA}\b[^.:;|]{{0,25}}\b(?:never|not|n't)\b[^.:;|]{{0,10}}\bleaves?\b",
    r"\bnever leaves? (?:the|its|their|a|any|an|your) (?:agent|device|site|house|home|machine|hospital|sensor|owner)",
    rf"\bkeep(?:s|ing)? (?:(?:all|its|their|your|the|own|raw) )*{_DATA} (?:to (?:itself|themselves)\b|{_PLACE})",
    rf"\b{_DATA}\b[^.:;|]{{0,30}}\b(?:stays?|remains?|kept) {_PLACE}",
    r"\bprivacy[- ](?:preserving|friendly|safe)|\bpreserv\w+ privacy|\bprivate by (?:design|construction)",
]


def promises(text):
    """Sentences that promise that samples stay unknown to neighbours."""
    text = " ".join(re.sub(r"<[^>]*>|[*`#]", " ", text).split())
    return [match[0] for one in _PROMISES for match in re.finditer(one, text, re.IGNORECASE)]


@pytest.mark.parametrize(
    "text",
    [
        "Nobody shows anybody a sample.",
        "each in one tile of it; nobody shows\n# anybody <b>a sample</b>",
        "Agents that learn one model together, share no raw data, and speak",
        "The best of those that share no sample is marked",
        "agents that keep their data to themselves",
        "Hospitals that may not share rows",
        "data of their own that is to stay there",
        "and nobody hears a measurement",
        "Rows belong to agents and stay there",
        "Raw data never leaves the device.",
        "the samples never leave their agent",
        "No agent ever sees another's rows",
        "learn together without sharing data",
        "privacy-preserving kernel learning",
        "each agent keeps its samples private",
    ],
)
def test_the_rule_about_privacy(text):
    assert promises(text)


def test_no_file_promises_that_samples_stay_unknown():
    """A neighbour recovers 41 to 100% of the samples in a leaf's first message: docs/threat-model.md."""
    assert not promises("No message between agents carries a raw row, but sums over samples can be solved for them.")
    found = {path: promises(text) for path, text in texts()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_threat_model_says_what_a_message_gives_away():
    section = (
        (ROOT / "docs" / "threat-model.md").read_text().split("\n## What a message gives away\n")[1].split("\n## ")[0]
    )
    for figures in (
        "| 1, `WaveRLS()` | 100%",
        "| 4 | 56 to 100%",
        "| 8, `lc.defaults` | 41 to 94%",
        "| 16 | 20 to 86%",
    ):
        assert figures in section
    assert laconic.WaveRLS().first == 1 and PREFIX == 8
    leading = {path for path, text in texts() if "threat-model.md#what-a-message-gives-away" in text}
    assert {"README.md", "docs/index.md", "docs/fit.md", "docs/waves.md"} <= leading
