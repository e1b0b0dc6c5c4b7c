"""What programs need of the command line: JSON where there is something to tell, silence where that is asked for."""

import argparse
import json
from collections.abc import Iterator

import pytest
from cli_kit import fail, run, set_terminal, write_files

from laconic.cli import make_parser


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)
    return write_files(tmp_path)


def commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command that does something, with its options."""
    parts = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not parts:
        yield words, {option for action in parser._actions for option in action.option_strings}
    for part in parts:
        for name, below in part.choices.items():
            yield from commands(below, (*words, name))


COMMANDS = dict(commands(make_parser()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_can_be_quiet_and_talk_to_programs(words):
    options = COMMANDS[words]
    if words != ("completion",):  # it prints a script, and nothing else
        assert {"--json", "--quiet"} <= options


def test_tuning_for_programs(capsys):
    words = ("tune", "flats.csv", "--seeds", "1", "--algorithm", "local,waverls", "--bandwidth", "0.7", "--agents", "3")
    told = json.loads(run(capsys, *words, "--json")[0])
    local, waves = told["algorithms"]
    assert local["mse"] == min(one["mse"] for one in local["tried"] if one["mse"] is not None)
    assert local["steps"].items() <= next(one for one in local["tried"] if one["mse"] == local["mse"]).items()
    assert waves["steps"] == {} and told["best"] in ("Local", "WaveRLS") and told["command"].startswith("laconic run")
    assert run(capsys, *words, "--quiet") == ("", "")


def test_json(capsys):
    assert json.loads(run(capsys, "data", "fetch", "synthetic", "--json")[0]) == {"name": "synthetic", "file": None}
    assert "site.toml" in json.loads(run(capsys, "init", "there", "--json")[0])["site"]
    assert run(capsys, "cite", "--quiet") == ("", "")
    known = json.loads(run(capsys, "data", "list", "--json")[0])
    assert {one["name"] for one in known} >= {"synthetic", "air-quality"}
    assert [one["drawn"] for one in known if one["name"] == "synthetic"] == [True]
    one = json.loads(run(capsys, "data", "info", "air-quality", "--json")[0])
    assert one["file"] is None and one["url"].startswith("http")
    assert json.loads(run(capsys, "data", "info", "flats.csv", "--json")[0])["rows"] == "300"
    told = json.loads(run(capsys, "faults", "--seeds", "2", "--jobs", "1", "--json")[0])
    assert told["schedules"] == 2 and told["violated"] == {}
    told = json.loads(run(capsys, "faults", "--seed", "1", "--json")[0])
    assert told["violated"] == {} and "seed 1" in told["schedule"]


def test_quiet(capsys, files):
    assert run(capsys, "init", "home", "--quiet") == ("", "") and (files / "home" / "site.toml").exists()
    assert run(capsys, "faults", "--seeds", "1", "--jobs", "1", "--quiet") == ("", "")
    out, err = run(capsys, "faults", "--seeds", "1", "--jobs", "1", "--quiet", "--json")
    assert json.loads(out)["schedules"] == 1 and err == ""
    assert "is there already" in fail(capsys, "init", "home", "--quiet")  # an error is always told


def test_certificates(capsys, files):
    run(capsys, "init", "safe", "--secure", "--agents", "2", "--quiet")
    found = json.loads(run(capsys, "certs", "check", "safe/site.toml", "--json")[0])
    assert all(one["good"] for one in found) and len(found) >= 3
    again = json.loads(run(capsys, "certs", "safe/site.toml", "--json")[0])
    assert {one["what"] for one in again} == {"kept"} and len(again) == len(found)
    gone = json.loads(run(capsys, "certs", "revoke", "safe/site.toml", found[1]["name"], "--json")[0])
    assert gone[0]["name"] == found[1]["name"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--pace", "5"], "--pace makes no sense without --live"),
        (["demo", "--beside", "ODKLA"], "--beside makes no sense without --live"),
        (["run", "--live", "--pace", "0"], "--pace must be"),
        (["demo", "--live", "--port", "70000"], "--port must be"),
        (["demo", "--live", "--beside", "Tom"], "must be one of"),
        (["demo", "--live", "--port", "0", "--rounds", "40"], "--rounds must be at least 100"),
        (["demo", "--live", "--port", "0", "--seed", "-1"], "--seed must be"),
        (["run", "flats.csv", "--learner", "odkla", "--live", "--beside", "tom"], "tom"),
    ],
)
def test_live_options_that_make_no_sense(capsys, words, said):
    assert said in fail(capsys, *words)
