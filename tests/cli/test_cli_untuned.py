"""A file as people have it, and nothing said: what is made of it, what is chosen, and one JSON object."""

import csv
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from cli_kit import cells, fail, run, set_terminal, write_files

import laconic as lc
from laconic.data import partition
from laconic.data.people import fill_running, read_open
from laconic.defaults.untuned import learn_untuned


@pytest.fixture(autouse=True)
def people(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)
    draw = random.Random(1)
    lines = ["id,day,colour,size,hospital,stay"]
    for k in range(200):
        colour, size = draw.choice(["red", "green", "blue"]), draw.gauss(50, 10)
        stay = "" if k % 50 == 3 else 3 * math.sin(size / 5) + 4 * (colour == "red") + draw.gauss(0, 0.3)
        shown = "" if k % 17 == 0 else size
        lines.append(f"{k},2024-01-{1 + k % 28:02d},{colour},{shown},{draw.choice(['north', 'north', 'south'])},{stay}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "people.csv"


def result(capsys, *words):
    """What ``--json`` prints: an object without NaN."""
    out, _ = run(capsys, "run", *words, "--json")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_columns_are_taken_as_they_are(people):
    table = read_open(people, agent_column="hospital")
    assert table.names == ("day", "colour=blue", "colour=green", "colour=red", "size")
    assert set(table.agents) == {"north", "south"} and table.X[0, 0] == 19723  # days from 1970 to 2024
    assert np.isnan(table.X[17, 4]) and np.isnan(table.y[53]) and np.isnan(table.y).sum() == 4
    assert "'id' only numbers the rows" in table.notes[0]
    bare = read_open(people, "colour", encode=False)
    assert bare.names == ("day", "size", "stay") and bare.y[0] in ("red", "green", "blue")


def test_holes_are_filled_by_what_came_before():
    X = np.arange(12.0).reshape(6, 2, 1)
    X[4, 0] = np.nan
    assert fill_running(X, 2)[4, 0, 0] == np.arange(8.0).mean()
    assert fill_running(X, 2)[5].tolist() == [[10.0], [11.0]]


def test_the_choice_is_said_and_compared(people, capsys):
    screen, _ = run(capsys, "run", "people.csv", "--agent-column", "hospital")
    said = " ".join(screen.split())
    assert "2 agents (north, south)" in said and "Learner: Personal" in said
    assert "12 missing inputs are filled by the mean of what came before" in said
    assert "4 rows without 'stay' are predicted and not learned from" in said
    found = result(capsys, "people.csv", "--agent-column", "hospital")
    assert list(found["baselines"]) == ["mean", "linear", "local", "central"] and found["data"]["target"] == "stay"
    assert found["r2"] > found["baselines"]["linear"]["r2"] > found["baselines"]["mean"]["r2"]
    assert found["bits"] > 0 and found["messages"] > 0 and found["seconds"] > 0
    assert {"chosen", "r2_last_tenth", "mse", "global_mse"} <= set(found) and "accuracy" not in found
    assert cells(screen, "each agent's own predictions")[0] == f"{found['r2']:.3f}"
    assert cells(screen, "a centre that has all rows")[1] == f"{found['baselines']['central']['r2_last_tenth']:.3f}"


def test_it_is_what_the_library_computes(capsys, tmp_path):
    write_files(tmp_path)
    found = result(capsys, "flats.csv", "--network", "ring", "--seed", 2)
    own = lc.data.load("flats.csv")
    ours = learn_untuned(*partition(own.X, own.y, 5, "time", 2), lc.Network.ring(5), seed=2)
    assert {**ours.scores.summary(), "global_mse": ours.global_mse}.items() <= found.items()
    assert (found["bits"], found["messages"]) == (ours.bits, ours.messages)
    for name, scores in ours.baselines.items():
        assert found["baselines"][name] == scores.summary()
    assert result(capsys, "flats.csv", "--budget", "silent")["messages"] == 0


def test_classes_are_recognised_unless_told_otherwise(capsys, tmp_path):
    write_files(tmp_path)
    found = result(capsys, "signs.csv")
    assert found["chosen"]["task"] == "classes" and found["accuracy"] > found["baselines"]["mean"]["accuracy"]
    assert "'hit' takes 2 whole values and is taken for classes" in found["data"]["made_of_it"][0]
    assert "Labels are 2 classes (0, 1): one model tells them apart." in found["chosen"]["why"]
    screen, _ = run(capsys, "run", "signs.csv")
    assert "mse of scores that are to be 1 for a row's class and -1 for others" in " ".join(screen.split())
    assert "accuracy" not in result(capsys, "signs.csv", "--task", "numbers")
    words = result(capsys, "words.csv")
    assert words["accuracy"] > words["baselines"]["mean"]["accuracy"] + 0.05
    assert words["data"]["inputs"][3:] == [f"street=s{k}" for k in range(7)]
    assert len(result(capsys, "words.csv", "--encode", "off")["data"]["inputs"]) == 3
    three = result(capsys, "text.csv", "--rows", 120)
    assert "Labels are 3 classes (a, b, c)" in three["chosen"]["why"][0] and three["chosen"]["learner"] == "WaveRLS"


def test_streams_of_unequal_length_are_scored_where_they_are(people, capsys):
    found = result(capsys, "people.csv", "--agent-column", "hospital", "--out", "out")
    table = read_open(people, agent_column="hospital")
    sizes = [int((table.agents == name).sum()) for name in ("north", "south")]
    assert found["rounds"] == max(sizes) > 1.5 * min(sizes) and found["agents"] == 2
    with Path("out/predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == list(range(1, 201))  # also where there is no label
    assert [row["agent"] for row in rows] == table.agents.tolist()
    said = np.array([float(row["prediction"]) for row in rows])
    scored = np.isfinite(table.y) & np.array([row["round"] != "1" for row in rows])
    assert found["mse"] == pytest.approx(np.mean((said - table.y)[scored] ** 2))


def test_agents_that_a_network_names_keep_their_places(people, capsys):
    Path("wires.txt").write_text("south north\n")
    first = result(capsys, "people.csv", "--agent-column", "hospital", "--network", "wires.txt")
    other = result(capsys, "people.csv", "--agent-column", "hospital", "--network", "path")
    assert first["network"] == "wires.txt" and first["rounds"] == other["rounds"]
    assert first["r2"] == pytest.approx(other["r2"], abs=0.05)  # another root of the tree, and nothing else


@pytest.mark.parametrize(("name", "target"), [("people.csv", "stay"), ("text.csv", "city")])
def test_what_is_left_behind_can_be_used(people, capsys, name, target):
    write_files(people.parent)
    run(capsys, "run", name, "--out", "out")
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"trace.npz", "model.npz", "predictions.csv", "run.json", "picture.png", "waves.png"}
    model = lc.Model.load("out/model.npz")
    table = read_open(Path(name))
    assert model.inputs == table.names and model.target == target
    whole = np.isfinite(table.X).all(axis=1)
    said = model.predict(table.X[whole])
    if target == "stay":
        labelled = np.isfinite(table.y[whole])
        assert np.mean((said - table.y[whole])[labelled] ** 2) < 0.5 * np.nanvar(table.y)
    else:
        assert set(said) <= {"a", "b", "c"}
    assert json.loads(Path("out/run.json").read_text())["data"]["name"] == name


def test_sets_with_a_name_are_learned_alike(capsys):
    found = result(capsys, "synthetic", "--rows", 400)
    assert found["agents"] == 5 and found["data"]["name"] == "synthetic" and found["chosen"]["learner"] == "Personal"
    named = result(capsys, "synthetic", "--rows", 400, "--learner", "qc-odkla")
    assert named["network"]["agents"] == 5 and named["learner"]["name"] == "QC-ODKLA" and named["result"]["mse"] > 0


def test_the_names_of_columns_are_seen_or_said(tmp_path, capsys):
    """By the target that is named, by the inputs of a model, or by ``--header``, in every command that reads a file."""
    body = "".join(f"{k % 7},{k * k % 5},{3 * (k % 7) + k * k % 5}\n" for k in range(90))
    (tmp_path / "years.csv").write_text("2019,2020,2021\n" + body)
    said = result(capsys, "years.csv", "--target", "2021", "--task", "numbers", "--out", "found")
    assert said["data"]["inputs"] == ["2019", "2020"] and said["data"]["rows"] == 90
    for words in (("--header", "yes"), ("--target", "2021"), ("--header", "yes", "--target", "-1")):
        out, _ = run(capsys, "data", "info", "years.csv", *words, "--json")
        assert json.loads(out)["rows"] == "90"
    out, _ = run(capsys, "data", "info", "years.csv", "--header", "no", "--target", "2", "--json")
    assert json.loads(out)["rows"] == "91"
    out, _ = run(capsys, "predict", "found/model.npz", "years.csv", "--json")
    assert json.loads(out)["rows"] == 90
    run(capsys, "init", "site", "--data", "years.csv", "--target", "2021", "--agents", "2")
    assert (tmp_path / "site" / "site.toml").exists()
    named = ("--target", "2021", "--learner", "local", "--json")
    assert json.loads(run(capsys, "run", "years.csv", *named)[0])["data"]["rows"] == 90


@pytest.fixture
def dated(tmp_path):
    """A trend over days, and the same file with its last day first."""
    draw = random.Random(2)
    lines = ["day,load"]
    lines += [
        f"20{20 + k // 336}-{1 + k // 28 % 12:02d}-{1 + k % 28:02d},{k / 9 + draw.gauss(0, 1):.3f}" for k in range(600)
    ]
    (tmp_path / "dated.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "back.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    return tmp_path


def test_the_rows_of_a_file_keep_their_order_unless_they_are_to_be_shuffled(dated, capsys):
    kept, shuffled = (result(capsys, "dated.csv", *words) for words in ((), ("--shuffle",)))
    assert (kept["partition"], kept["order_kept"]) == ("time", True)
    assert (shuffled["partition"], shuffled["order_kept"]) == ("shuffled", False)
    assert result(capsys, "dated.csv", "--partition", "time")["mse"] == kept["mse"] != shuffled["mse"]
    screen = " ".join(run(capsys, "run", "dated.csv")[0].split())
    assert "rows in their order, dealt in turn" in screen and "learned before earlier ones" not in screen
    assert "'day' holds dates: days since 1970, rising from row to row" in screen
    screen = " ".join(run(capsys, "run", "dated.csv", "--shuffle")[0].split())
    assert "rows shuffled" in screen and "Rows that come later in the data were learned before earlier ones." in screen
    assert "the newest first" in run(capsys, "run", "back.csv")[0]
    assert result(capsys, "synthetic", "--rows", "300")["partition"] == "shuffled"


def test_a_learner_that_is_named_keeps_the_order_too(dated, capsys):
    (dated / "bare.csv").write_text("\n".join(f"{k},{k % 7},{k % 7 + k / 50}" for k in range(100)))
    words = ("run", "bare.csv", "--learner", "local")
    assert "rows in their order, dealt in turn" in " ".join(run(capsys, *words)[0].split())
    assert "rows shuffled" in " ".join(run(capsys, *words, "--shuffle")[0].split())
    assert json.loads(run(capsys, *words, "--json")[0])["data"]["order_kept"] is True


def test_each_agents_rows_keep_their_order_or_are_shuffled(people, capsys):
    words = ("people.csv", "--agent-column", "hospital")
    kept, shuffled = result(capsys, *words), result(capsys, *words, "--shuffle")
    assert kept["partition"] == shuffled["partition"] == "agent-column" and kept["mse"] != shuffled["mse"]
    assert kept["order_kept"] and not shuffled["order_kept"]
    said = fail(capsys, "run", *words, "--partition", "uneven")
    assert "--partition uneven contradicts --agent-column" in said
    said = fail(capsys, "run", "people.csv", "--shuffle", "--partition", "time")
    assert "--partition cannot stand beside --shuffle" in said


def test_a_file_that_is_sorted_by_its_labels_is_told_of(tmp_path, capsys):
    lines = [f"{k % 5},{k},{'abc'[k // 40]}" for k in range(120)]
    (tmp_path / "sorted.csv").write_text("\n".join(["u,v,kind", *lines]) + "\n")
    assert "rows are sorted by 'kind': add --shuffle, unless" in " ".join(run(capsys, "run", "sorted.csv")[0].split())
    assert "are sorted" not in run(capsys, "run", "sorted.csv", "--shuffle")[0]
