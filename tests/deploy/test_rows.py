"""What ``laconic up`` shows on a terminal: a row for each agent below their lines, and a key that leaves."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import textwrap

import pytest

from laconic.deploy.operations.screen import Screen

WAIT = 60
PROGRESS = {"event": "progress", "level": "info", "sends": 30, "censored": 10, "repairs": 0}


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 24 lines, and a function that reads what was written to it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:

        def seen():
            stream.flush()
            text = b""
            while select.select([ours], [], [], 0)[0]:
                text += os.read(ours, 65536)
            return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r", "")

        yield stream, seen
    os.close(ours)


def test_every_agent_has_a_row(terminal):
    stream, seen = terminal
    screen = Screen(3, stream, neighbours={"hall": 2, "attic": 2, "cellar": 1}, keys="q stops")
    screen.line("hall", "", {"event": "started", "level": "info", "agent": "hall", "time": "2026-01-01T12:00:00Z"})
    screen.line("attic", "\x1b[2Joops\x07", None)
    text = seen()
    assert r"attic | \x1b[2Joops\x07" in text and "q stops" in text
    assert re.search(r"○ cellar +- +- +- +- +- of 1 +starting", text)
    screen.line("hall", "", {**PROGRESS, "round": 12_000, "mean_square_error": 1 / 3, "bits": 10**6, "neighbours": 2})
    told = {
        "round": 7,
        "mean_square_error": float("nan"),
        "bits": "many",
        "neighbours": 1,
        "last_alert": "neigh\x07bour",
    }
    screen.line("attic", "", {**PROGRESS, **told})
    screen.gone("attic")
    screen.close()
    text = seen()
    assert re.search(r"● hall +12,000 +0\.3333 +1,000,000 +25\.0% +2 of 2 +none", text)
    last = text[text.rindex("agent ") :]
    assert re.search(r"○ attic +7 +- +- +25\.0% +1 of 2 +neigh\\x07bour", last)
    assert "1 of 3 agents" in last and "q stops" not in last
    screen.write("after that, lines\n")
    assert seen() == "after that, lines\n"


def test_of_many_agents_those_are_shown_that_need_it(terminal):
    stream, seen = terminal
    names = [f"a{k}" for k in range(60)]
    screen = Screen(60, stream, neighbours=dict.fromkeys(names, 1))
    for name in names:
        screen.line(name, "", {**PROGRESS, "round": 5})
    screen.line("a50", "", {**PROGRESS, "round": 5, "last_alert": "quarantined"})
    screen.gone("a51")
    screen.close()
    last = seen()
    last = last[last.rindex("agent ") :]
    assert "○ a51" in last and "● a50" in last and "● a0 " in last and "● a59" not in last
    assert re.search(r"and 4\d more", last) and last.count("\n") <= 24


def test_what_the_terminal_cannot_show_is_put_otherwise(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream, seen = terminal
    poor = io.TextIOWrapper(stream.buffer, encoding="ascii", errors="strict", write_through=True)
    monkeypatch.setattr(poor, "isatty", lambda: True, raising=False)
    screen = Screen(2, poor, neighbours={"hall": 1, "attic": 1})
    for name in ("hall", "attic"):
        screen.line(name, "", {**PROGRESS, "round": 4006, "mean_square_error": 0.001266, "bits": 886_606})
    screen.gone("attic")
    screen.close()
    last = seen()
    last = last[last.rindex("agent ") :]
    assert "+ hall" in last and "- attic" in last
    # Nothing of the summary is cut off: what does not fit is in a line below.
    assert "60 sends  1,773,212 bits  0 repairs\n1 of 2 agents" in last
    poor.detach()


def test_a_dumb_terminal_gets_lines_alone(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream, seen = terminal
    screen = Screen(1, stream, neighbours={"hall": 0})
    screen.line("hall", "", {"event": "started", "level": "info", "agent": "hall", "time": "2026-01-01T12:00:00Z"})
    screen.line("hall", "", {**PROGRESS, "round": 5, "agent": "hall", "time": "2026-01-01T12:00:01Z"})
    screen.close()
    first, second = seen().splitlines()
    assert first.endswith("hall: started") and "progress" in second and "round=5" in second


KEYS = """
    import fcntl, sys, termios, threading
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    from laconic.deploy.operations.keys import heard_keys
    done = threading.Event()
    before = termios.tcgetattr(0)
    with heard_keys(lambda key: (print(key, flush=True), done.set() if key == "q" else None)) as there:
        print(there, flush=True)
        done.wait(60)
    print(termios.tcgetattr(0) == before)
"""


def test_keys_are_heard_at_once_and_the_terminal_is_left_as_it_was():
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", textwrap.dedent(KEYS)]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True, start_new_session=True)
    os.close(theirs)
    try:
        assert process.stdout.readline() == "True\n"
        for key in "xq":
            os.write(ours, key.encode())
            assert process.stdout.readline() == f"{key}\n"
        assert process.stdout.readline() == "True\n" and process.wait(WAIT) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(ours)


def test_without_a_keyboard_nothing_is_heard():
    code = "from laconic.deploy.operations.keys import heard_keys\nwith heard_keys(print) as there: print(there)"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
