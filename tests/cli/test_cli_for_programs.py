"""What programs need of the command line: JSON where there is something to tell, silence where that is asked for."""

import json

import pytest
from cli_kit import fail, run, set_terminal, write_files


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)
    return write_files(tmp_path)


def test_json(capsys):
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
    assert "--json is for" in fail(capsys, "certs", "safe/site.toml", "--json")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--pace", "5"], "--pace makes no sense without --live"),
        (["demo", "--beside", "ODKLA"], "--beside makes no sense without --live"),
        (["run", "--live", "--pace", "0"], "--pace must be"),
        (["demo", "--live", "--port", "70000"], "--port must be"),
        (["demo", "--live", "--beside", "Tom"], "must be one of"),
        (["run", "flats.csv", "--learner", "odkla", "--live", "--beside", "tom"], "tom"),
    ],
)
def test_live_options_that_make_no_sense(capsys, words, said):
    assert said in fail(capsys, *words)
