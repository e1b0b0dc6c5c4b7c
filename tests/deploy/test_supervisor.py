"""The keeper of a site's agents, with real processes and signals; small programs stand in for the agents."""

import io
import json
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import textwrap
import threading
from pathlib import Path

import pytest

from laconic.deploy.operations.screen import Screen
from laconic.deploy.operations.supervisor import Spare, Supervisor
from laconic.deploy.running import logs

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines


@pytest.fixture(autouse=True)
def logging_as_it_was():
    own = logging.getLogger("laconic")
    before = own.handlers[:], own.level, own.propagate
    yield
    own.handlers[:], own.propagate = before[0], before[2]
    own.setLevel(before[1])


def program(code, *words):
    """The command of a small program; it starts faster than an agent."""
    return [sys.executable, "-S", "-E", "-c", textwrap.dedent(code), *map(str, words)]


def keep(commands, **options):
    """Run a site to its end: the exit code, and all lines."""
    stream = io.StringIO()
    screen = Screen(len(commands), stream)
    logs.setup(form=screen.form, stream=screen)
    supervisor = Supervisor(commands, screen, **options)
    guard = threading.Timer(WAIT, supervisor.stop)
    guard.start()
    try:
        code = supervisor.run()
    finally:
        guard.cancel()
    return code, [json.loads(line) for line in stream.getvalue().splitlines()]


def say(event, **fields):
    return f"print({json.dumps({'event': event, **fields})!r}, flush=True)"


class Watch(logging.Handler):
    """Keeps the records of one event, and does something at each."""

    def __init__(self, event, act):
        super().__init__()
        self.event, self.act, self.seen = event, act, []
        logging.getLogger("laconic").addHandler(self)

    def emit(self, record):
        if record.msg == self.event:
            self.seen.append(record)
            self.act(record)


def gone(pid):
    """Wait until a process that is not our child is gone."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], WAIT)[0])
    finally:
        os.close(watch)


# Ends ----------------------------------------------------------------------------------------------------------------


def test_agents_that_come_to_their_end_are_let_go():
    code, lines = keep({name: program(say("progress", agent=name, round=9)) for name in ("one", "two")})
    assert code == 0
    assert sorted(line["agent"] for line in lines if line["event"] == "progress") == ["one", "two"]
    assert sorted(line["who"] for line in lines if line["event"] == "ended") == ["one", "two"]


@pytest.mark.parametrize("final", [2, 3])
def test_one_that_diverged_or_cannot_start_stays_ended_and_the_others_go_on(tmp_path, final):
    # The good one waits until the bad one is gone, so it was not stopped with it.
    bad = program("import sys; sys.exit(int(sys.argv[1]))", final)
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)  # of both ends, so that neither waits for the other to open it
    good = program("import sys; open(sys.argv[1], 'rb', buffering=0).read(1)", tmp_path / "go")
    stream = io.StringIO()
    screen = Screen(2, stream)
    logs.setup(stream=screen)

    Watch("ended", lambda record: os.write(go, b"!") if record.who == "bad" else None)
    supervisor = Supervisor({"bad": bad, "good": good}, screen)
    guard = threading.Timer(WAIT, supervisor.stop)
    guard.start()
    assert supervisor.run() == 1
    guard.cancel()
    os.close(go)
    ended = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["who"], line["level"]) for line in ended] == [("bad", "error"), ("good", "info")]


def test_a_site_without_agents_is_refused():
    with pytest.raises(ValueError, match=r"at least one agent\.$"):
        Supervisor({}, Screen(0, io.StringIO()))


HUGE = "1" + 400 * "0"
ODD_LINES = [
    "[" * 60_000,
    '{"event": "x", "value": ' + "[" * 800 + "]" * 800 + "}",
    '{"event": ' * 800 + '"x"' + "}" * 800,
    f'{{"event": "progress", "round": {HUGE}, "sends": {HUGE}, "bits": -{HUGE}, "alerts": {HUGE}}}',
    f'{{"event": "progress", "round": NaN, "mean_square_error": 1.7e308, "neighbours": {HUGE}}}',
    '{"event": "x", "level": [], "time": {}, "agent": {}, "value": "\\ud800", "more": ["\\ud800"]}',
    '{"event": 1' + 5000 * "0" + "}",
    "\x00\x1b[2J\udcff",
]


@pytest.mark.parametrize("form", ["json", "text", "rows"])
def test_no_line_of_an_agent_ends_the_others(form, tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    (tmp_path / "odd").write_text("\n".join(ODD_LINES), errors="surrogateescape")
    odd = program("import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())", tmp_path / "odd")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    if form == "rows":
        stream.isatty = lambda: True
    screen = Screen(2, stream, "text" if form == "rows" else form, neighbours={"odd": 1, "good": 1})
    logs.setup(form=screen.form, stream=screen)
    supervisor = Supervisor({"odd": odd, "good": program(say("progress", agent="good", round=9))}, screen)
    assert supervisor.run() == 0
    seen = stream.buffer.getvalue().decode()
    assert "good" in seen and "[[[[" in seen and "\x1b[2J" not in seen


# Restarts ------------------------------------------------------------------------------------------------------------

DIE_FIRST = """
    import os, pathlib, signal, sys
    times = pathlib.Path(sys.argv[1])
    with times.open("a") as file:
        file.write("x")
    if len(times.read_text()) <= int(sys.argv[2]):
        if sys.argv[3] == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(int(sys.argv[3]))
"""


def test_a_killed_agent_is_started_again_at_once(tmp_path):
    code, lines = keep({"one": program(DIE_FIRST, tmp_path / "times", 1, "SIGKILL")})
    assert code == 0
    assert (tmp_path / "times").read_text() == "xx"
    (died,) = [line for line in lines if line["event"] == "died, will be restarted"]
    assert (died["who"], died["cause"], died["pause"]) == ("one", "SIGKILL", 0.0)


@pytest.mark.slow
def test_one_that_keeps_dying_is_started_ever_later(tmp_path):
    code, lines = keep({"one": program(DIE_FIRST, tmp_path / "times", 3, 1)})
    assert code == 0
    assert (tmp_path / "times").read_text() == "xxxx"
    assert [line["pause"] for line in lines if "pause" in line] == [0.0, 0.25, 0.5]
    assert {line["cause"] for line in lines if "cause" in line} == {"exit code 1"}


SPARE = """
    import sys
    print('{"event": "loaded"}', flush=True)
    task = sys.stdin.readline().strip()
    if task:
        print('{"event": "started", "task": "%s"}' % task, flush=True)
"""


def test_a_spare_takes_the_place_of_one_that_died(tmp_path):
    # The first waits until the spare has loaded: until then nothing would be gained by it.
    code = 'import os, signal, sys; print(\'{"event": "started"}\', flush=True); sys.stdin.readline()'
    screen = Screen(2, io.StringIO())
    logs.setup(stream=screen)
    seen = []
    screen.line = lambda name, text, fields: seen.append((name, fields))
    commands = {"one": program(code), "two": program(code)}
    supervisor = Supervisor(commands, screen, spare=Spare(program(SPARE), {"one": "be one", "two": "be two"}))
    one = supervisor._children[0]

    killed = []

    def kill_when_loaded():  # called after all news
        if not killed and supervisor._spare.process is not None and not supervisor._spare.starting:
            killed.append(one.process)
            one.process.kill()

    screen.refresh = kill_when_loaded
    Watch("ended", lambda record: supervisor.stop() if record.who == "one" else None)
    assert supervisor.run() == 128 + signal.SIGTERM
    assert ("one", {"event": "started", "task": "be one"}) in seen
    assert "spare" not in [name for name, _ in seen]
    assert supervisor._spare.process is None or supervisor._spare.process.poll() is not None


def test_a_spare_that_cannot_be_one_is_done_without(tmp_path):
    program_of_one = program(DIE_FIRST, tmp_path / "times", 1, "SIGKILL")
    screen = Screen(1, io.StringIO())
    supervisor = Supervisor({"one": program_of_one}, screen, spare=Spare(program("import sys; sys.exit(2)"), {}))
    assert supervisor.run() == 0
    assert (tmp_path / "times").read_text() == "xx"


def test_a_command_that_cannot_be_run_is_tried_again_and_can_be_stopped():
    screen = Screen(1, io.StringIO())
    logs.setup(stream=screen)
    supervisor = Supervisor({"one": ["/nowhere/python"]}, screen)
    watch = Watch("cannot start", lambda record: supervisor.stop() if len(watch.seen) == 3 else None)
    assert supervisor.run() == 128 + signal.SIGTERM
    assert [record.who for record in watch.seen] == ["one"] * 3


# How they are started ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at_once", "first"), [(1, ["begin", "started"]), (3, ["begin"] * 3)])
def test_only_so_many_start_at_the_same_time(monkeypatch, at_once, first):
    order, popen = [], subprocess.Popen

    def begin(*arguments, **options):
        order.append("begin")
        return popen(*arguments, **options)

    class Noting(Screen):
        def line(self, name, text, fields):
            order.append(fields["event"])

    monkeypatch.setattr("laconic.deploy.operations.supervisor.subprocess.Popen", begin)
    commands = {f"{k}": program(say("started")) for k in range(4)}
    assert Supervisor(commands, Noting(4, io.StringIO()), at_once=at_once).run() == 0
    assert order[: len(first)] == first
    assert sorted(order) == ["begin"] * 4 + ["started"] * 4
    if at_once == 1:
        assert order == first * 4


def test_an_agent_has_one_thread_a_session_and_a_pipe_of_its_own(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = """
    import json, os, stat
    own = {"session": os.getsid(0) == os.getpid(), "pipe": stat.S_ISFIFO(os.fstat(0).st_mode)}
    print(json.dumps({"event": "about", "threads": os.environ["OMP_NUM_THREADS"], **own}))
    """
    code, lines = keep({"one": program(code)})
    assert code == 0
    assert lines[0] == {"event": "about", "threads": "1", "session": True, "pipe": True}


# Stops ---------------------------------------------------------------------------------------------------------------

SITE = """
    import sys
    from laconic.deploy.running import logs
    from laconic.deploy.operations.screen import Screen
    from laconic.deploy.operations.supervisor import Spare, Supervisor
    child = [sys.executable, "-S", "-E", "-c", sys.argv[1]]
    screen = Screen(3)
    logs.setup(form="json", stream=screen)
    sys.exit(Supervisor({name: child for name in "abc"}, screen, grace=float(sys.argv[2])).run())
"""
STAY = 'import os, signal, sys; {}; print(\'{{"event": "started", "pid": %d}}\' % os.getpid(), flush=True); {}'
DEAF = STAY.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "signal.pause()")
READS = STAY.format("pass", "sys.stdin.read()")
WAITS = STAY.format("pass", "signal.pause()")


@pytest.fixture
def site():
    """Starts a supervisor in a process of its own: it, and the pids of its three agents."""
    started = []

    def start(child, grace):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SITE), child, str(grace)], stderr=subprocess.PIPE, text=True
        )
        pids = []
        started.append((process, pids))
        guard = threading.Timer(WAIT, process.kill)
        guard.start()
        while len(pids) < 3:
            line = process.stderr.readline()
            assert line, "the site ended early"
            said = json.loads(line)
            if said["event"] == "started":
                pids.append(said["pid"])
        guard.cancel()
        return process, pids

    yield start
    for process, pids in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
        for pid in pids:
            if Path(f"/proc/{pid}").exists() and b"signal.pause()" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_stops_all_and_leaves_nobody(site, number, code):
    process, pids = site(WAITS, 600)
    process.send_signal(getattr(signal, number))
    assert process.wait(WAIT) == code
    assert [json.loads(line)["event"] for line in process.stderr] == ["stopping"]
    for pid in pids:  # reaped, so the supervisor has waited for them
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_one_that_does_not_stop_is_killed(site):
    process, pids = site(DEAF, 0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT) == 143
    events = [json.loads(line)["event"] for line in process.stderr]
    assert events == ["stopping", *["does not stop, killed"] * 3]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_second_signal_does_not_ask(site):
    process, pids = site(DEAF, 600)
    process.send_signal(signal.SIGINT)
    assert json.loads(process.stderr.readline())["event"] == "stopping"
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_agents_hear_that_their_supervisor_was_killed(site):
    process, pids = site(READS, 600)
    process.kill()
    process.wait()
    assert all(gone(pid) for pid in pids)


# The screen ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 60 columns to write to, and what came out at its other end."""
    monkeypatch.setenv("COLUMNS", "60")
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # line ends as they were written
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:

        def seen():
            stream.flush()
            text = b""
            while select.select([ours], [], [], 0)[0]:
                text += os.read(ours, 65536)
            return text.decode()

        yield stream, seen
    os.close(ours)


def test_on_a_terminal_lines_are_short_and_above_a_summary(terminal):
    stream, seen = terminal
    screen = Screen(2, stream)
    fields = {"time": "2026-01-01T12:00:00.000Z", "level": "warning", "agent": "hall", "event": "silent", "for": 2.5}
    screen.line("hall", json.dumps(fields), fields)
    screen.line("attic", "\x1b[2Joops\x07", None)
    text = seen()
    above, summary = text.rsplit("\n", 1)
    shown = [line.rsplit("\x1b[K", 1)[-1] for line in above.split("\n")]
    assert shown[0].endswith(":00 hall: warning: silent for=2.5")
    assert shown[1] == r"attic | \x1b[2Joops\x07"
    assert summary.endswith("\x1b[K0 of 2 agents")
    for name in ("hall", "attic"):
        status = {"event": "progress", "round": 12_000, "mean_square_error": 1 / 3, "sends": 40_000, "bits": 10**9}
        screen.line(name, "", status)
    screen.close()
    text = seen()
    assert "progress" not in text
    last = text.split("\x1b[K")[-1]
    assert last == "round 12,000  mean square error 0.3333  80,000 sends  2,000\n"[:60].rstrip("\n") + "\n"
    assert len(last) == 60


def test_where_nobody_looks_all_lines_are_json():
    stream = io.StringIO()
    screen = Screen(1, stream)
    screen.line("hall", '{"event": "progress", "round": 1}', {"event": "progress", "round": 1})
    screen.line("hall", 'Traceback: "x"\x00', None)
    screen.close()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first == {"event": "progress", "round": 1}
    assert (second["agent"], second["event"], second["line"]) == ("hall", "output", 'Traceback: "x"\x00')


def test_the_summary_survives_odd_numbers():
    screen = Screen(2, io.StringIO())
    screen.line("hall", "", {"event": "progress", "round": "many", "mean_square_error": float("nan"), "sends": None})
    assert screen.summary() == "round 0  0 sends  0 bits  0 repairs  1 of 2 agents"
    screen.gone("hall")
    assert screen.summary() == "round 0  0 sends  0 bits  0 repairs  0 of 2 agents"
