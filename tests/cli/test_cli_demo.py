"""``laconic demo``: a table, a page, and what else it may be asked for."""

import json
import re
from pathlib import Path

import pytest
from cli_kit import cells, fail, run, set_terminal

from laconic import demo
from laconic.cli.live import open_page

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def outcome():
    return demo.show(n_rounds=100)


def test_it_prints_a_table_and_says_where_the_page_is(capsys, tmp_path, outcome, monkeypatch):
    monkeypatch.setattr(demo, "show", lambda *given: outcome)
    screen, _ = run(capsys, "demo", "--rounds", "100", "-o", "new/page.html")
    assert screen.rstrip().endswith(f"the page: {tmp_path / 'new' / 'page.html'}")
    for row in outcome.rows:
        name = row["name"]
        own, everywhere, late, bits, messages, _ = cells(screen, name + "  ")
        assert own.rstrip("*") == f"{row['own_error']:.4f}" and late.rstrip("*") == f"{row['late_error']:.4f}"
        assert everywhere.endswith("*") == ("global_error" in row["best"])
        assert (bits.rstrip("*"), messages.rstrip("*")) == (f"{row['bits']:,}", f"{row['messages']:,}")
    assert max(len(line) for line in screen.split("\n") if str(tmp_path) not in line) <= 80
    assert Path("new/page.html").read_text().startswith("<!doctype html>")


def test_for_programs(capsys, monkeypatch, outcome):
    opened, asked = [], []
    monkeypatch.setattr(demo, "show", lambda *given: asked.append(given[:2]) or outcome)
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    screen, _ = run(capsys, "demo", "--rounds", "100", "--json", "--open")
    told = json.loads(screen)
    assert told["page"] == "laconic-demo.html" and told["rounds"] == 100 and len(told["learners"]) == 9
    assert opened == [Path("laconic-demo.html").resolve().as_uri()]
    assert run(capsys, "demo", "--rounds", "100", "--seed", "7", "--quiet") == ("laconic-demo.html\n", "")
    assert asked == [(100, 0), (100, 7)]


def test_what_makes_no_sense_is_said_before_any_work(capsys, tmp_path):
    assert "is a folder" in fail(capsys, "demo", "-o", tmp_path)
    assert "--rounds must be at least 100" in fail(capsys, "demo", "--rounds", "5")
    assert "--seed must be" in fail(capsys, "demo", "--seed=-1")


def test_a_narrow_terminal_breaks_headers_and_no_number(monkeypatch, capsys):
    from laconic.cli.screens import print_table

    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(("learner", "global error", "bits"), [("the default", "0.0133", "64,000,000")], "<>>", {(0, 1)})
    bare = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert [line.rstrip() for line in bare.splitlines()] == [
        "            global",
        "learner      error       bits",
        "the default 0.0133 64,000,000",
    ]


@pytest.mark.parametrize(("there", "said"), [(True, ""), (False, "laconic: there is no browser here; open the page ")])
def test_who_wants_a_browser_that_is_not_there_is_told(monkeypatch, capsys, there, said):
    monkeypatch.setattr("webbrowser.open", lambda address: there)
    open_page("http://127.0.0.1:8765/")
    assert capsys.readouterr().err.startswith(said) and bool(said) is not there
