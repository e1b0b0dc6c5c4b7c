"""The board: what changed since one last looked, who is gone, and a past that grows coarser, not longer."""

import itertools
import json
import math

import pytest

from laconic._reports import LARGEST_COUNT, LARGEST_MEASUREMENT
from laconic.dashboard.board import NUMBERS, Board
from laconic.dashboard.serving import Gate

STATUS = {"round": 8, "mean_square_error": 0.5, "bits": 900, "sends": 3, "censored": 5, "repairs": 0, "alerts": 0}


def test_a_reader_is_told_what_changed_and_nothing_twice():
    board = Board(["hall", "study"])
    board.status("hall", STATUS, 1.0)
    first = board.changes()
    assert first["agents"] == [[0, 1, 8, 0.5, 900, 3, 5, 0, 0, 0]]
    board.status("hall", STATUS, 2.0)  # nothing new
    assert board.changes(first["version"])["agents"] == []
    board.status("study", {**STATUS, "round": 9}, 2.0)
    second = board.changes(first["version"])
    assert [row[0] for row in second["agents"]] == [1] and second["agents"][0][2 + NUMBERS.index("round")] == 9
    assert board.changes()["agents"][0] == first["agents"][0]  # who comes late is told all


def test_predictions_are_told_of_whom_one_watches():
    board = Board(["hall", "study"])
    for k in range(300):
        board.prediction("hall", {"round": k, "prediction": k / 7, "label": None if k % 2 else 1.0}, 1.0)
    assert "predictions" not in board.changes() and "predictions" not in board.changes(0, "study")
    told = board.changes(0, "hall")["predictions"]
    assert len(told) == 120 and told[-1] == [299, 42.71, None] and told[-2][2] == 1.0
    assert "predictions" not in board.changes(board.changes()["version"], "hall")


def test_who_says_nothing_is_gone_and_who_speaks_again_is_back():
    board = Board(["hall"], patience=5)
    board.status("hall", STATUS, 1.0)
    board.look(6.0)
    assert board.changes()["agents"][0][1] == 1
    board.look(6.1)
    assert board.changes()["agents"][0][1] == 0
    board.status("hall", {**STATUS, "repairs": 2}, 9.0)
    board.alert("hall", {"agent": "hall", "event": "neighbour is silent", "time": 9.0, "neighbour": "study"}, 10.0)
    assert [event[3] for event in board.changes()["events"]] == [
        "hall does not answer",
        "hall is back",
        "hall restored 2 neighbours from a snapshot",
        "hall hears nothing of study and goes on without",
    ]


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, 10**400, -(10**400), 1.7e308, -1.7e308, "7", None, True, [1], {}]
)
def test_what_makes_no_sense_is_left_out(value):
    board = Board(["hall"])
    board.status("hall", dict.fromkeys(STATUS, value), 1.0)
    board.prediction("hall", {"round": value, "prediction": value, "label": value}, 1.0)
    board.status("eve", STATUS, 1.0)
    board.prediction("eve", {"prediction": 1.0}, 1.0)
    board.alert("eve", {"event": "lies"}, 1.0)
    board.alert("hall", {"event": "x" * 9999, "why": value}, 1.0)
    told = board.changes(0, "hall")
    json.dumps(told, allow_nan=False)
    assert told["agents"] == [[0, 1, 0, None, 0, 0, 0, 0, 0, 0]] and len(told["events"]) == 1
    assert len(told["events"][0][3]) < 500


def test_numbers_that_do_not_fit_leave_no_trace_in_sums_and_means():
    """Two agents that report the largest float: their sums would be infinite, which no JSON has."""
    board = Board(["hall", "study", "attic"])
    board.status("attic", STATUS, 1.0)
    for value in (LARGEST_MEASUREMENT, 1.7e308, 10**400, -1.7e308, 1e25, 1e25 + 2**31, 2.0**53):
        for name in ("hall", "study"):
            board.status(name, dict.fromkeys(STATUS, value), 1.0)
            board.prediction(name, {"round": value, "prediction": value, "label": value}, 1.0)
        board.look(1.0)
        json.dumps([board.changes(0, "hall"), board.past()], allow_nan=False)
        (bits,) = {point["bits"] for point in board.past()[-1:]}
        assert STATUS["bits"] <= bits <= STATUS["bits"] + 2 * LARGEST_COUNT


def test_the_past_grows_coarser_and_not_longer():
    board = Board([f"a{k}" for k in range(1000)])
    for t in range(500):
        board.status("a0", {**STATUS, "round": t, "bits": 10 * t}, float(t))
        board.look(float(t))
    past = board.past()
    assert 20 <= len(past) <= 61
    assert past[0]["time"] == 0.0 and past[-1]["time"] > 480
    steps = {b["time"] - a["time"] for a, b in itertools.pairwise(past)}
    assert max(steps) <= 16
    assert all(point["bits"] == 10 * point["round"] and len(point["errors"]) == 1000 for point in past)


def test_who_comes_late_is_told_the_past_and_who_stays_what_is_added():
    board = Board(["hall", "study"])
    board.status("hall", STATUS, 1.0)
    board.look(1.0)
    first = board.changes()
    assert [point["time"] for point in first["past"]] == [1.0] and "links" not in first
    board.spoken([(0, 1), (1, 0)])
    board.agree(0.25)
    board.happened("wave", "wave 3", 2.0)
    board.look(2.0)
    second = board.changes(first["version"])
    assert "past" not in second and [point["time"] for point in second["points"]] == [2.0]
    assert second["points"][0]["disagreement"] == 0.25 and second["links"] == [[0, 1], [1, 0]]
    assert [event[2:] for event in second["events"]] == [["wave", "wave 3"]]
    third = board.changes(second["version"])
    assert third["points"] == third["links"] == third["events"] == []


def test_the_gate():
    here = Gate()
    for host in ("127.0.0.1:8765", "localhost", "LOCALHOST:80", "[::1]:8765"):
        assert here.open(host, None, None) and here.open(host, f"http://{host}", None)
        assert not here.open(host, "http://evil.example", None)
        assert not here.open(host, "null", None)
    for host in ("evil.example", "127.0.0.1.evil.example", ""):
        assert not here.open(host, None, None)  # a name that was made to lead here
    away = Gate("word")
    for broken in ("[::1", "[", "[evil]", "[::1]evil:80", "localhost:abc", "localhost\u2100", "evil@localhost"):
        assert not here.open(broken, None, None) and not here.open(broken, f"http://{broken}", None)
        for gate in (here, away):
            assert not gate.open("localhost:8765", f"http://{broken}", "word")
    assert away.open("10.0.0.5:8765", None, "word")
    assert not any(away.open("127.0.0.1", None, token) for token in (None, "", "wor", "words", "wörd"))
