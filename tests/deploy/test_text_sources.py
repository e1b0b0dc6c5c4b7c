"""Samples from lines of text: files that are replayed, and standard input."""

import os
import subprocess
import sys

import pytest
from source_kit import GOOD, LONG, Gathered, closes, logged_by_sources, seen, values

from laconic.deploy.sources import Reader
from laconic.deploy.sources.text import FileSource, Lines, StdinSource

NAMED = Reader(2, ["warm", "damp"], "power")


@pytest.fixture
def logged():
    with logged_by_sources() as records:
        yield records


def replay(tmp_path, content, reader=None, **options):
    path = tmp_path / "samples"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    start = {"skip": options.pop("skip")} if "skip" in options else {}
    source = FileSource(reader or Reader(2), "kitchen", path=path, **options)
    return Gathered(source, **start)


@pytest.mark.parametrize(
    "content",
    [
        "1,2,3\n4,5,6\n",
        "1,2,3\n4,5,6",
        "a,b,y\n1,2,3\n\n4,5,6\n",
        "\ufeffa;b;y\r\n1;2;3\r\n4;5;6\r\n",
        "a\tb\ty\n1\t 2 \t3\n4\t5\t6\n",
        '"a","b, or c","y"\n"1","2",3\n4,5,6\n',
        '[1, 2, 3]\n{"x": [4, 5], "y": 6}\n',
        "\ufeff[1, 2, 3]\n4,5,6\n",
    ],
)
def test_tables_and_json_lines_are_told_apart(tmp_path, content):
    gathered = replay(tmp_path, content)
    assert values(gathered.all()) == GOOD
    assert gathered.source.counts == {"samples": 2, "unlabelled": 0, "dropped": 0, "lost": 0}


def test_columns_are_found_by_name(tmp_path):
    content = "time,power,damp,warm\n9:00,3,2,1\n9:10,,5,4\n9:20,NA,8,7\n"
    assert str(values(replay(tmp_path, content, NAMED).all())) == "[(1.0, 2.0, 3.0), (4.0, 5.0, nan), (7.0, 8.0, nan)]"
    no_target = Reader(2, ["warm", "damp"])
    assert str(values(replay(tmp_path, content, no_target).all())[0]) == "(1.0, 2.0, nan)"


def test_a_file_without_the_columns_is_refused_at_once(tmp_path):
    for content in ("warm,power\n1,2\n", "1,2,3\n"):
        with pytest.raises(
            ValueError, match="samples has no column '(damp|warm)' in its first row, which must name them"
        ):
            replay(tmp_path, content, NAMED)
    with pytest.raises(FileNotFoundError):
        Gathered(FileSource(Reader(2), "kitchen", path=tmp_path / "absent"))
    with pytest.raises(ValueError, match="must be a file to replay"):
        Gathered(FileSource(Reader(2), "kitchen", path=tmp_path))


def test_wrong_rows_are_dropped_and_counted(tmp_path, logged):
    bad = [
        "1,2",
        "1,2,3,4",
        "x,2,3",
        ",2,3",
        "nan,2,3",
        "inf,2,3",
        "1,2,much",
        "{",
        "[1]",
        "\udcff,1,2",
        '"1,2,3',
        "1,2,1e99",
    ]
    rows = ["a,b,y", "1,2,3", *bad, "4,5,6"]
    gathered = replay(tmp_path, "\n".join(rows).encode("utf-8", "surrogateescape"))
    assert values(gathered.all()) == GOOD
    assert gathered.source.counts["dropped"] == len(bad) == 12
    records = seen(logged)
    assert {record.getMessage() for record in records} == {"bad sample dropped"}
    assert [record.count for record in records] == [1, 2, 4, 8]  # not every time
    assert records[0].agent == "kitchen" and records[0].why == "a row must hold 2 inputs and a label, got 2 cells"


def test_a_bad_first_row_is_no_header(tmp_path):
    gathered = replay(tmp_path, "1,oops,3\n1,2,3\n4,5,6\n")
    assert values(gathered.all()) == GOOD and gathered.source.counts["dropped"] == 1


def test_endless_lines_are_passed_over(tmp_path):
    content = "1,2,3\n" + "9" * 1_000_000 + "\n4,5,6\n" + "9" * 1_000_000
    gathered = replay(tmp_path, content)
    assert values(gathered.all()) == GOOD and gathered.source.counts["dropped"] == 2


def test_lines_keep_no_more_than_they_must():
    lines = Lines(limit=10)
    for _ in range(100):
        assert list(lines.feed(b"x" * 1000)) == []
        assert len(lines._open) <= 10
    assert list(lines.feed(b"\nshort\n")) == [None, b"short"]


@pytest.mark.parametrize(("skip", "first"), [(0, 0), (3, 3), (7, 7), (10, 0), (23, 3), (10_000_007, 7)])
def test_a_replay_goes_round_and_can_begin_in_the_middle(tmp_path, skip, first):
    content = "a,b,y\n" + "".join(f"{k},0,{k}\n" if k % 2 else f"bad\n{k},0,{k}\n" for k in range(10))
    gathered = replay(tmp_path, content, loop=True, skip=skip)
    samples = gathered.take(25)
    gathered.source.close()
    assert [sample.y for sample in samples] == [(first + k) % 10 for k in range(25)]


def test_a_replay_that_was_finished_before_is_over(tmp_path, logged):
    assert replay(tmp_path, "1,2,3\n4,5,6\n", skip=2).all() == []
    assert values(replay(tmp_path, "1,2,3\n4,5,6\n", skip=1).all()) == GOOD[1:]
    assert [(record.msg, record.count) for record in seen(logged)] == [("passes over samples", n) for n in (2, 1)]


def test_a_file_that_is_shorter_than_what_was_taken_from_it_is_told_of(tmp_path, logged):
    assert replay(tmp_path, "1,2,3\n4,5,6\n", skip=3).all() == []
    last = seen(logged)[-1]
    assert (last.msg, last.count, last.levelname) == ("fewer samples than were taken", 2, "WARNING")


@pytest.mark.parametrize("content", ["", "a,b,y\n", "\n\n", "bad\n" * 5])
def test_nothing_to_replay_is_a_failure_of_a_loop_and_the_end_of_a_file(tmp_path, content):
    for loop in (False, True):
        gathered = replay(tmp_path, content, loop=loop)
        assert gathered.all() == []
        assert gathered.source.failure == (f"{tmp_path / 'samples'} holds no sample to replay." if loop else None)


def test_a_file_waits_for_whoever_learns(tmp_path):
    content = "".join(f"{k},0,{k}\n" for k in range(5000))
    gathered = replay(tmp_path, content, buffer=8)
    for k in range(5000):
        (sample,) = gathered.take(1)
        assert sample.y == k
        assert gathered.source.counts["samples"] <= k + 1 + 8  # never further ahead than its buffer
    assert gathered.all() == [] and gathered.source.counts["lost"] == 0


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self):
        self.now, self.waits = 0.0, []

    def monotonic(self):
        return self.now

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds
        return False

    def is_set(self):
        return False

    def set(self):
        pass


def test_a_replay_keeps_its_rate(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("laconic.deploy.sources.text.time", clock)
    (tmp_path / "samples").write_text("1,2,3\n4,5,6\n" * 3)
    source = FileSource(Reader(2), "kitchen", path=tmp_path / "samples", rate=50.0)
    source._stop = clock
    assert len(Gathered(source).all()) == 6
    assert clock.waits == pytest.approx([0.0] + [1 / 50] * 5)


def test_a_slow_replay_can_be_closed_at_once(tmp_path):
    gathered = replay(tmp_path, "1,2,3\n4,5,6\n", rate=1e-6)
    assert values(gathered.take(1)) == GOOD[:1]
    closes(gathered.source)
    assert gathered.source.ended and gathered.source.next() is None
    gathered.source.close()


def test_a_full_buffer_does_not_hold_up_closing(tmp_path):
    gathered = replay(tmp_path, "1,2,3\n" * 1000, buffer=4)
    gathered.take(1)
    closes(gathered.source)


# ---- standard input ---------------------------------------------------------------------------------------------


def test_a_pipe_is_read_as_it_fills():
    inlet, outlet = os.pipe()
    gathered = Gathered(StdinSource(Reader(2), "kitchen", descriptor=inlet))
    os.write(outlet, b"a,b,y\n1,2,3\n4,")
    assert values(gathered.take(1)) == GOOD[:1]
    assert gathered.source.next() is None and not gathered.source.ended
    os.write(outlet, b"5,6\nbad\n")
    assert values(gathered.take(1)) == GOOD[1:]
    os.write(outlet, b"[7, 8, 9]")
    os.close(outlet)
    assert values(gathered.all()) == [(7, 8, 9)] and gathered.source.counts["dropped"] == 1
    os.close(inlet)


def test_a_silent_pipe_can_be_closed():
    inlet, outlet = os.pipe()
    gathered = Gathered(StdinSource(Reader(2), "kitchen", descriptor=inlet))
    closes(gathered.source)
    assert gathered.source.ended
    os.close(inlet)
    os.close(outlet)


def test_no_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    source = StdinSource(Reader(2), "kitchen")
    with pytest.raises(ValueError, match="there is no standard input"):
        source.start(lambda: None)
    source.close()


PROGRAM = """
import queue
from laconic.deploy.sources import Reader
from laconic.deploy.sources.text import StdinSource
events = queue.SimpleQueue()
source = StdinSource(Reader(2), "kitchen")
source.start(lambda: events.put(None))
taken = 0
while taken < 2 and not source.ended:
    sample = source.next()
    if sample is None:
        events.get()
    else:
        taken += 1
        print(sample.x.tolist(), sample.y, flush=True)
"""


def test_a_real_standard_input(tmp_path):
    """A process may also end while its input is open and read: Python's own buffered stdin would crash it."""
    expected = "[1.0, 2.0] 3.0\n[4.0, 5.0] 6.0\n"
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"1,2,3\n4,5,6\n")
        process.stdin.flush()
        assert process.wait(LONG) == 0  # its input is still open here
        assert (process.stdout.read().decode(), process.stderr.read()) == (expected, b"")
    (tmp_path / "samples.csv").write_text("1,2,3\n4,5,6\n")
    with (tmp_path / "samples.csv").open() as file:
        done = subprocess.run(command, stdin=file, capture_output=True, timeout=LONG, check=True)
    assert (done.stdout.decode(), done.stderr) == (expected, b"")
