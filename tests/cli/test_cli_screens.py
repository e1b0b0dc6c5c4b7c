"""Screens fit their terminal, and come up at once."""

import re
import subprocess
import sys

import pytest
from cli_kit import run, set_terminal, write_files

import laconic as lc


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        "", "--help", "data", "data list", "data list --help", "data info --help", "data info synthetic",
        "data fetch --help", "run", "run --help", "run signs.csv --loss logistic", "tune --help",
        "tune --rows 500 --seeds 1", "reproduce --help", "info", "doctor --help",
        "demo --help", "dashboard --help", "cite --help",
    ],
)  # fmt: skip
def test_screens_fit_the_terminal(files, capsys, monkeypatch, words, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    screen, _ = run(capsys, *words.split())
    lines = screen.split("\n")
    assert max(len(line) for line in lines if str(files) not in line) <= columns  # a path is never broken
    assert all(line == line.rstrip() for line in lines)
    if "--help" in words:
        assert "example" in screen and "usage: laconic" in screen


def test_info_tests_the_engine(capsys):
    screen, _ = run(capsys, "info")
    assert f"laconic  {lc.__version__} on Python" in screen
    assert "1 of 12 sets at hand" in " ".join(screen.split())
    assert re.search(r"compiled, works: \d+ ns a sample", screen)


def test_the_module_runs_and_help_is_light():
    done = subprocess.run([sys.executable, "-m", "laconic", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: laconic") and done.stderr == ""
    heavy = ("polars", "networkx", "matplotlib", "sklearn", "scipy", "joblib", "tqdm", "laconic.data")
    code = f"import sys, laconic.cli; laconic.cli.make_parser(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_has_colours_where_a_person_looks(capsys, monkeypatch):
    plain, _ = run(capsys, "run", "--help")
    assert "\033" not in plain
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    dressed, _ = run(capsys, "run", "--help")
    assert re.sub(r"\033\[\d+m", "", dressed) == plain
    assert "\033[1mexamples:\033[0m" in dressed
    assert "  \033[36mlaconic run my.csv --live --open --beside qc-odkla\033[0m\n" in dressed
    assert "  \033[36m--pace R\033[0m  " in dressed
    assert "  \033[36mdemo\033[0m        see it all" in run(capsys, "--help")[0]
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(capsys, "run", "--help")[0] == plain


def test_version(capsys):
    assert run(capsys, "--version")[0] == f"laconic {lc.__version__}\n"
