"""``laconic cite`` says what CITATION.cff says."""

import json
import re
from pathlib import Path

import pytest
import yaml
from cli_kit import run

from laconic.cli import make_parser

ROOT = Path(__file__).parents[2]


def test_it_agrees_with_the_file(capsys):
    path = ROOT / "CITATION.cff"
    if not path.exists():
        pytest.skip("the sources are not here: this is an installed package")
    stated = yaml.safe_load(path.read_text())
    (paper,) = stated["references"]
    told = json.loads(run(capsys, "cite", "--json")[0])
    names = [f"{one['given-names']} {one['family-names']}" for one in paper["authors"]]
    assert told["paper"] == {"title": paper["title"], "author": names}
    assert told["software"] == {
        "title": stated["title"],
        "author": [one["name"] for one in stated["authors"]],
        "version": stated["version"],
    }
    screen, _ = run(capsys, "cite")
    assert screen.count("{") == screen.count("}") and " and ".join(names) in screen and stated["title"] in screen


def test_every_command_is_on_its_page():
    page = ROOT / "docs" / "command-line.md"
    if not page.exists():
        pytest.skip("the documentation is not here: this is an installed package")
    listed = page.read_text().split("## Exit codes")[0]
    commands = make_parser()._subparsers._group_actions[0].choices
    assert [name for name in commands if not re.search(rf"`{name}\b", listed)] == []
