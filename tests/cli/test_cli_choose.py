"""A file as people have it, and nothing said: what is made of it, what is chosen, and one JSON object."""

import json
import math
import random

import numpy as np
import pytest
from cli_kit import run, set_terminal

from laconic.data.people import fill_running, read_open


@pytest.fixture(autouse=True)
def people(monkeypatch, tmp_path, compiled):
    set_terminal(monkeypatch, tmp_path)
    draw = random.Random(1)
    lines = ["id,day,colour,size,hospital,stay"]
    for k in range(200):
        colour, size = draw.choice(["red", "green", "blue"]), draw.gauss(50, 10)
        stay = "" if k % 50 == 3 else 3 * math.sin(size / 5) + 4 * (colour == "red") + draw.gauss(0, 0.3)
        shown = "" if k % 17 == 0 else size
        lines.append(f"{k},2024-01-{1 + k % 28:02d},{colour},{shown},{draw.choice(['north', 'south'])},{stay}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "people.csv"


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
    assert "2 agents (north, south)" in " ".join(screen.split()) and "Learner: Personal" in screen
    out, _ = run(capsys, "run", "people.csv", "--agent-column", "hospital", "--json")
    found = json.loads(out)
    assert list(found["baselines"]) == ["mean", "linear", "local", "central"] and found["data"]["target"] == "stay"
    assert found["r2"] > found["baselines"]["mean"]["r2"] and found["bits"] > 0 and found["messages"] > 0
    assert {"chosen", "r2_last_tenth", "mse", "global_mse", "seconds"} <= set(found)
