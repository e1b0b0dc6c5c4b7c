"""The command lines of README, pages and help texts: each is one that there is, and those that take seconds are run."""

import argparse
import re
import shlex
import shutil
import tomllib
import webbrowser
from pathlib import Path

import numpy as np
import pytest
from cli_kit import run, set_terminal

from laconic.cli import make_parser

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the pages are not here")

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: At the beginning of a line, after `mpiexec` and the like, within `$(...)`, or with the folder where it is.
_COMMAND = re.compile(r"^(?:mpiexec -n \d+ |eval \"\$\(|\S*/)?laconic ([a-z][^)>#|]*)")


def blocks(page):
    """The blocks of a page that are set apart, by fences or by four spaces, as lists of lines."""
    found, last, fenced = [], None, False
    for number, line in enumerate(page.read_text().splitlines()):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            if last != number - 1:
                found.append([])
            found[-1].append(line.strip())
            last = number
    return found


def commands_of(lines):
    """What is given to ``laconic`` in lines for a shell: words, without what only explains them."""
    return [shlex.split(match[1]) for line in lines if (match := _COMMAND.match(line))]


def parsers(parser, words=()):
    """Every parser of the command line, by the words that lead to it."""
    yield words, parser
    for part in parser._actions:
        if isinstance(part, argparse._SubParsersAction):
            for name, below in part.choices.items():
                yield from parsers(below, (*words, name))


PARSERS = dict(parsers(make_parser()))
BLOCKS = [
    pytest.param(commands, id=f"{page.stem}-{' '.join(commands[0])}")
    for page in PAGES
    for block in blocks(page)
    if (commands := commands_of(block))
]


@pytest.mark.parametrize("commands", BLOCKS)
def test_a_command_of_a_page_is_one_that_there_is(commands):
    for words in commands:
        assert callable(make_parser().parse_args(words).command)


@pytest.mark.parametrize("words", PARSERS, ids=lambda words: " ".join(words) or "laconic")
def test_the_examples_of_a_help_text_are_commands(words):
    """There, two spaces separate a command from what is said of it."""
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in (PARSERS[words].epilog or "").splitlines()]
    for command in commands_of(lines):
        assert callable(make_parser().parse_args(command).command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_that_a_sentence_names_are_there(page):
    """Such a command may be a part of one, or have SITE and NAME where something is to be filled in."""
    for said in re.findall(r"`laconic ([^`]*)`", page.read_text()):
        words = tuple(said.split())
        if words[0].isupper():  # COMMAND
            continue
        known = max((known for known in PARSERS if words[: len(known)] == known), key=len)
        assert known, said
        options = {option for action in PARSERS[known]._actions for option in action.option_strings}
        assert {word for word in words if word.startswith("-")} <= options, said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_else_a_shell_is_told_is_there(page):
    """Targets of make, extras of pip, and programs of the repository with their options."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = page.read_text()
    for target in re.findall(r"^    make ([a-z-]+)|`make ([a-z-]+)`", text, re.MULTILINE):
        assert "".join(target) in targets
    for extra in re.findall(r"install '(?:\.|laconic)\[([a-z,]+)\]'", text):
        assert set(extra.split(",")) <= set(extras)
    for program, said in re.findall(r"\bpython (\w[\w/]*\.py)([^`\n#]*)", text):
        if "/" in program:
            source = (ROOT / program).read_text()
            assert all(option in source for option in re.findall(r"--[a-z][a-z-]*", said)), (program, said)


# Run --------------------------------------------------------------------------------------------------------------

#: Commands that are not run here, by how they begin: they last, and whoever starts them has a test of its own.
ELSEWHERE = {
    ("agent",): "tests/deploy/test_deployment.py",  # as the unit of systemd has it
    ("up",): "tests/deploy/test_runner.py",
    ("dashboard",): "tests/cli/test_cli_dashboard.py",
    ("demo", "--live"): "tests/cli/test_commands_that_last.py",
    ("demo",): "tests/cli/test_cli_demo.py",
    ("reproduce",): "tests/cli/test_cli_experiments.py",
    ("run", "--live"): "tests/cli/test_commands_that_last.py",
    ("export", "home/site.toml"): "tests/cli/test_commands_that_last.py",
    ("export", "site.toml"): "tests/cli/test_commands_that_last.py",
}


def elsewhere(words):
    """The file that tests such a command, if this one does not."""
    return next((file for part, file in ELSEWHERE.items() if words[0] == part[0] and set(part) <= set(words)), None)


def test_what_is_not_run_here_is_tested_where_it_is_said():
    for (command, *_), file in ELSEWHERE.items():
        assert re.search(rf"""["']{command}\b""", (ROOT / file).read_text()), (command, file)


def big():
    """The run in a file of its page, smaller."""
    (text,) = re.findall(r"```toml\n(\[run\].*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.DOTALL)
    return text.replace("rounds = 1000", "rounds = 30").replace("100_000", "20")


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """A folder with the files that commands of the pages take as given."""
    folder = tmp_path_factory.mktemp("furnished")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(240, 2))
    price = 100 + 50 * np.sin(4 * X[:, 0]) + 20 * X[:, 1]
    rows = [f"{a:.4f},{b:.4f},{c:.2f}" for (a, b), c in zip(X, price, strict=True)]
    (folder / "my.csv").write_text("\n".join(["size,age,price", *rows]))
    (folder / "new.csv").write_text("size,age\n0.1,0.2\n0.3,0.4\n")
    rows = [f"{row},{'ABC'[k % 3]}" for k, row in enumerate(rows)]
    (folder / "patients.csv").write_text("\n".join(["weight,age,days,hospital", *rows]))
    (folder / "big.toml").write_text(big())
    return folder


@pytest.fixture
def place(furnished, tmp_path, monkeypatch):
    """A copy of it, to work in; nothing opens a browser."""
    shutil.copytree(furnished, tmp_path, dirs_exist_ok=True)
    set_terminal(monkeypatch, tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    return tmp_path


def prepare(capsys, commands, place):
    """What the commands of a block find there, unless they are about to make it."""
    named = {word for words in commands for word in words}
    made = {words[1] for words in commands if words[0] == "init"}
    if "trace.npz" in named or "model.npz" in named:
        run(capsys, "run", "my.csv", "--target", "price", "--out", "results", "--quiet")
        shutil.copy(place / "results" / "trace.npz", place)
        run(capsys, "export", "trace.npz", "-o", "model.npz")
    if "home/site.toml" in named and "home" not in made:
        run(capsys, "init", "home", "--secure", "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize("commands", [one for one in BLOCKS if not all(map(elsewhere, one.values[0]))])
def test_the_commands_of_a_block_run_one_after_the_other(commands, place, capsys):
    prepare(capsys, commands, place)
    for words in commands:
        if elsewhere(words) is None:
            run(capsys, *[word for word in words if word not in ("--engine", "mpi")])  # by one process, here
