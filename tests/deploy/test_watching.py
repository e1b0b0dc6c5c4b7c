"""A real site over zenoh, watched: what agents publish and answer comes to the board, and agents may come and go."""

import pytest
from test_asking import secure
from test_runner import WAIT, House, Running

from laconic.dashboard import Board
from laconic.dashboard.watching import Watcher

pytestmark = [pytest.mark.sockets, pytest.mark.slow]


def until(board, true, what):
    """Look whenever something has changed, as often as a site that goes on changes a lot."""
    for _ in range(20_000):
        version = board.changes()["version"]
        if true():
            return
        assert board.wait(version, WAIT), what
    raise AssertionError(what)


def test_agents_come_go_and_come_back(tmp_path):
    house = House(
        tmp_path, ("ada", "bob"), (("ada", "bob"),), source='kind = "file"\nloop = true', site='checkpoint = "disk"'
    )
    board = Board(house.site.names, patience=1.0)
    watcher = Watcher(house.site, board)  # before anybody is there
    running = []
    try:
        running = [Running(house, name, progress=0.1) for name in ("ada", "bob")]
        rows = lambda: {row[0]: row for row in board.changes()["agents"]}  # noqa: E731
        until(
            board, lambda: len(rows()) == 2 and all(row[2] > 50 and row[4] > 0 for row in rows().values()), "no status"
        )
        until(board, lambda: len(board.changes(0, "ada").get("predictions", [])) > 2, "no predictions")
        assert all(row[3] < 1.0 for row in rows().values())
        until(board, board.past, "no past")
        running.pop().stop()
        until(board, lambda: rows()[1][1] == 0, "bob is not missed")
        running.append(Running(house, "bob", progress=0.1))
        until(board, lambda: rows()[1][1] == 1, "bob is not back")
        words = [event[3] for event in board.changes()["events"]]
        assert "bob does not answer" in words and "bob is back" in words
    finally:
        watcher.close()
        for one in running:
            one.stop()


def test_a_guest_may_watch_where_there_is_mutual_tls(tmp_path):
    house = secure(tmp_path)
    board = Board(house.site.names)
    running = [Running(house, name, progress=0.1) for name in ("ada", "bob")]
    watcher = Watcher(house.site, board)  # as the first guest that there is
    try:
        for name in house.site.names:
            until(
                board, lambda name=name: len(board.changes(0, name).get("predictions", [])) > 2, f"{name} is not heard"
            )
        until(board, lambda: all(row[2] > 0 for row in board.changes()["agents"]), "no status")
    finally:
        watcher.close()
        for one in running:
            one.stop()
