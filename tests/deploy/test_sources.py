"""Sources of samples: what they bring, in which order, what they refuse, and that nothing of it stops an agent."""

import gc
import json
import logging
import math
import os
import queue
import random
import shutil
import socket
import subprocess
import sys
import threading

import cbor2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.settings.site import Site
from laconic.deploy.sources import BadSample, Reader
from laconic.deploy.sources.mqtt import MqttSource
from laconic.deploy.sources.text import FileSource, Lines, StdinSource
from laconic.deploy.sources.zenoh import ZenohSource

NAMED = Reader(2, ["warm", "damp"], "power")
LONG = 60  # seconds: a wait that only a mistake makes this long


class Gathered:
    """A driver in small: starts a source, takes what comes, and fails rather than waits for ever."""

    def __init__(self, source, **options):
        self.source, self.events = source, queue.SimpleQueue()
        source.start(lambda: self.events.put(None), **options)

    def take(self, n):
        samples = []
        while len(samples) < n:
            sample = self.source.next()
            if sample is None:
                assert not self.source.ended, f"ended after {len(samples)} samples"
                self.events.get(timeout=LONG)
            else:
                samples.append(sample)
        return samples

    def all(self):
        samples = []
        while not self.source.ended:
            sample = self.source.next()
            if sample is None:
                self.events.get(timeout=LONG)
            else:
                samples.append(sample)
        self.source.close()
        return samples


@pytest.fixture
def logged():
    """All that sources log: a queue to wait on, with a list of what was seen."""
    records = queue.SimpleQueue()

    class Keep(logging.Handler):
        def emit(self, record):
            records.put(record)

    logger = logging.getLogger("laconic.deploy.source")
    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


def seen(records):
    found = []
    while not records.empty():
        found.append(records.get())
    return found


def await_event(records, event):
    while True:
        record = records.get(timeout=LONG)
        if record.getMessage() == event:
            return record


def free_port():
    """A port of loopback that nobody listens on, below those that the system takes for outgoing connections."""
    for port in random.Random(os.getpid()).sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.skip("no free port")


# ---- bytes to samples -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "data", "x", "y"),
    [
        (Reader(2), b'{"x": [1, 2.5], "y": -3}', [1, 2.5], -3),
        (Reader(2), b' \n{"y": null, "x": [1, 2]}', [1, 2], math.nan),
        (Reader(2), b'{"x": [1, 2]}', [1, 2], math.nan),
        (Reader(2), b'{"x": [1, 2], "y": NaN}', [1, 2], math.nan),
        (Reader(2), b"[1, 2, 3]", [1, 2], 3),
        (Reader(2), b"[1, 2, null]", [1, 2], math.nan),
        (Reader(2), cbor2.dumps({"x": [1, 2.5], "y": 3}), [1, 2.5], 3),
        (Reader(2), cbor2.dumps([1, 2, None]), [1, 2], math.nan),
        (Reader(2), b"\xd9\xd9\xf7" + cbor2.dumps([1, 2, 3]), [1, 2], 3),  # CBOR that says that it is CBOR
        (Reader(2), b"\x9f\x01\x02\x03\xff", [1, 2], 3),  # a list of unknown length
        (NAMED, b'{"damp": 0.5, "power": 7, "extra": "x", "warm": 20}', [20, 0.5], 7),
        (NAMED, cbor2.dumps({"damp": 0.5, "warm": 20}), [20, 0.5], math.nan),
        (Reader(1, ["a"]), b'{"a": 1, "y": 5}', [1], math.nan),
        (Reader(1, binary=True), b"[0.5, -1]", [0.5], -1),
        (Reader(1, binary=True), b"[0.5, null]", [0.5], math.nan),
    ],
)
def test_a_sample_is_read(reader, data, x, y):
    got_x, got_y, got_time = reader(data)
    np.testing.assert_array_equal(got_x, x)
    assert got_x.dtype == np.float64 and got_time is None
    assert got_y == y or (math.isnan(got_y) and math.isnan(y))


def test_a_sample_may_have_a_time():
    assert Reader(1)(b'{"x": [1], "y": 2, "time": 1700000000.5}')[2] == 1700000000.5
    assert Reader(1)(b'{"x": [1], "y": 2, "time": "noon"}')[2] is None


@pytest.mark.parametrize(
    ("reader", "data", "why"),
    [
        (Reader(2), b"", "neither JSON nor CBOR"),
        (Reader(2), b"hello", "neither JSON nor CBOR"),
        (Reader(2), b'{"x": [1, 2], "y"', "not JSON"),
        (Reader(2), b'{"x": [1, 2]} {}', "not JSON"),
        (Reader(2), b"\xff\xfe", "neither JSON nor CBOR"),
        (Reader(2), cbor2.dumps({"x": [1, 2], "y": 3})[:-4], "neither JSON nor CBOR"),
        (Reader(2), cbor2.dumps("text"), "must be an object or a list, got 'text'"),
        (Reader(2), b"[1, 2]", "a list must hold 2 inputs and a label, got 2 entries"),
        (Reader(2), b"[1, 2, 3, 4]", "got 4 entries"),
        (Reader(2), b'{"x": [1], "y": 1}', "x must hold 2 numbers, got 1"),
        (Reader(2), b'{"x": 1, "y": 1}', "x must be a list of 2 numbers, got 1"),
        (Reader(2), b'{"y": 1}', "x must be a list of 2 numbers, got None"),
        (Reader(2), b'{"x": [1, NaN], "y": 1}', "inputs must be finite"),
        (Reader(2), b'{"x": [1, 1e400], "y": 1}', "inputs must be finite"),
        (Reader(2), b'{"x": [1, 1' + b"0" * 400 + b'], "y": 1}', "a number of more than 30 digits"),
        (Reader(2), b"[1, 1" + b"0" * 5000 + b", 1]", "not JSON"),  # more digits than Python turns into a number
        (Reader(2), b'{"x": [1, "2"], "y": 1}', "inputs must be numbers, got '2'"),
        (Reader(2), b'{"x": [1, true], "y": 1}', "inputs must be numbers, got True"),
        (Reader(2), b'{"x": [1, null], "y": 1}', "inputs must be numbers, got None"),
        (Reader(2), b'{"x": [1, [2]], "y": 1}', "inputs must be numbers, got a list"),
        (Reader(2), b'{"x": [1, 2], "y": Infinity}', "y must be finite"),
        (Reader(2), b'{"x": [1, 2], "y": 1e30}', "y must be finite and at most 1e.18 in size"),
        (Reader(2), b'{"x": [1, 2], "y": "warm"}', "y must be a number or null, got 'warm'"),
        (Reader(2), b'{"x": [1, 2], "y": false}', "y must be a number or null, got False"),
        (Reader(2), b"[" * 10_000, "not JSON"),
        (Reader(2), b"[" * 100_000, "100000 bytes are more than a sample can need"),
        (Reader(2), b"\x81" * 10_000, "neither JSON nor CBOR"),
        (Reader(2), b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "neither JSON nor CBOR"),  # a list of 2^64 - 1
        (NAMED, b"[1, 2, 3]", "must be an object with named inputs, got a list"),
        (NAMED, b'{"warm": 1, "power": 3}', "there is no input 'damp'"),
        (Reader(1, binary=True), b"[0.5, 0]", "y must be -1 or \\+1 for this loss, got 0"),
    ],
)
def test_a_bad_sample_is_refused(reader, data, why):
    with pytest.raises(BadSample, match=why) as raised:
        reader(data)
    assert len(str(raised.value)) < 300


@given(st.binary(max_size=200))
@example(cbor2.dumps({"x": cbor2.CBORTag(4, [10**9, 1]), "y": 1}))
@example(b'{"x": [1, 2], "y": 1}')
@example(b"1,2,3")
def test_whatever_comes_is_a_sample_or_refused(data):
    for read in (Reader(2), Reader(2).row, NAMED):
        try:
            parts = read(data)
        except BadSample:
            continue
        if parts is not None:
            x, y, _ = parts
            assert x.shape == (2,) and np.isfinite(x).all() and not math.isinf(y)


def test_more_inputs_may_take_more_bytes():
    data = json.dumps([-0.12345678901234567] * 5001).encode()
    assert len(data) > 65_536
    assert len(Reader(5000)(data)[0]) == 5000
    with pytest.raises(BadSample, match="bytes are more than a sample can need"):
        Reader(2)(data)


# ---- lines of text ----------------------------------------------------------------------------------------------


def replay(tmp_path, content, reader=None, **options):
    path = tmp_path / "samples"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    start = {"skip": options.pop("skip")} if "skip" in options else {}
    source = FileSource(reader or Reader(2), "kitchen", path=path, **options)
    return Gathered(source, **start)


def values(samples):
    return [(*sample.x.tolist(), sample.y) for sample in samples]


GOOD = [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]


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


def test_a_replay_that_was_finished_before_is_over(tmp_path):
    assert replay(tmp_path, "1,2,3\n4,5,6\n", skip=2).all() == []
    assert values(replay(tmp_path, "1,2,3\n4,5,6\n", skip=1).all()) == GOOD[1:]


@pytest.mark.parametrize("content", ["", "a,b,y\n", "\n\n", "bad\n" * 5])
def test_nothing_to_replay_ends_even_a_loop(tmp_path, content, logged):
    assert replay(tmp_path, content, loop=True).all() == []
    assert seen(logged)[-1].getMessage() == "no sample to replay"


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


def closes(source):
    """Close on another thread, so that a source that hangs fails the test and does not hang it."""
    closer = threading.Thread(target=source.close, daemon=True)
    closer.start()
    closer.join(LONG)
    assert not closer.is_alive()


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


# ---- pushed samples ---------------------------------------------------------------------------------------------


class FakeSession:
    """Stands for a session only where no message is to travel."""

    def declare_subscriber(self, key, handler):
        return None


def test_what_is_pushed_too_fast_pushes_out_the_oldest(logged):
    source = ZenohSource(Reader(1), "kitchen", 4, session=FakeSession(), key="k")
    gathered = Gathered(source)
    for k in range(10):
        source._take(b"[0, %d]" % k)
    assert [sample.y for sample in gathered.take(4)] == [6, 7, 8, 9] and source.next() is None
    assert source.counts == {"samples": 10, "unlabelled": 0, "dropped": 0, "lost": 6}
    assert [record.count for record in seen(logged)] == [1, 2, 4]
    source._take(b"[0, 10]")
    assert [sample.y for sample in gathered.take(1)] == [10]
    source.close()
    source._take(b"[0, 11]")
    assert source.next() is None and source.ended


def test_a_callback_never_raises(logged):
    source = ZenohSource(Reader(1), "kitchen", 4, session=FakeSession(), key="k")

    def wake():
        raise RuntimeError("the driver is gone")

    source.start(wake)
    source._take(b"[0, 1]")
    assert seen(logged)[0].getMessage() == "sample not taken in"
    source.close()


# ---- zenoh ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sessions():
    """Two zenoh sessions that know each other by one endpoint and by nothing else."""
    import zenoh

    place = f"tcp/127.0.0.1:{free_port()}"
    opened = []
    for way in ("listen", "connect"):
        config = zenoh.Config()
        settings = {"mode": "peer", f"{way}/endpoints": [place], "scouting/multicast/enabled": False}
        settings |= {"scouting/gossip/enabled": False, "scouting/delay": 0}
        if way == "connect":
            settings["listen/endpoints"] = []
        for key, value in settings.items():
            config.insert_json5(key, json.dumps(value))
        opened.append(zenoh.open(config))
    yield opened
    for session in opened:
        session.close()


def test_samples_come_by_a_zenoh_key(sessions):
    import zenoh

    here, there = sessions
    site = Site.parse('[model]\nn_inputs = 2\n[agents.kitchen]\nlisten = "tcp/127.0.0.1:7447"\n')
    source = site.source("kitchen", here)
    gathered = Gathered(source)
    matching = queue.SimpleQueue()
    publisher = there.declare_publisher("site/kitchen/sample", congestion_control=zenoh.CongestionControl.BLOCK)
    publisher.declare_matching_listener(lambda status: matching.put(status.matching))
    assert publisher.matching_status.matching or matching.get(timeout=LONG)
    send = publisher.put

    send(b'{"x": [1, 2], "y": 3}', encoding="application/cbor")  # which is not true
    there.put("site/hall/sample", b"[9, 9, 9]")
    send(b"nonsense")
    send(b"")
    send(cbor2.dumps({"x": [4, 5], "y": 6}))
    send(b"[7, 8, 9]", encoding="application/json")
    assert values(gathered.take(3)) == [*GOOD, (7, 8, 9)]
    assert source.counts["dropped"] == 2 and source.counts["lost"] == 0 and not source.ended
    source.close()
    assert source.ended


def test_a_zenoh_source_outlives_its_session_without_noise(sessions):
    source = ZenohSource(Reader(2), "kitchen", session=sessions[0], key="site/kitchen/sample")
    source.start(lambda: None)
    sessions[0].close()
    source.close()


def test_a_key_that_zenoh_dislikes(sessions):
    source = ZenohSource(Reader(2), "kitchen", session=sessions[0], key="a*b/c")
    with pytest.raises(ValueError, match=r"kitchen: zenoh cannot listen on 'a\*b/c'"):
        source.start(lambda: None)
    source.close()
    site = Site.parse('[model]\nn_inputs = 2\n[agents.kitchen]\nlisten = "tcp/127.0.0.1:7447"\n')
    with pytest.raises(ValueError, match="kitchen: a zenoh source needs the agent's zenoh session"):
        site.source("kitchen")


# ---- MQTT -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def mosquitto():
    """The broker's program."""
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    found = shutil.which("mosquitto", path=path)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        quiet["env"] = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "mosquitto"]
        if subprocess.run(install, check=False, timeout=300, **quiet).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=False, timeout=300, **quiet)
            subprocess.run(install, check=False, timeout=300, **quiet)
        found = shutil.which("mosquitto", path=path)
    if found is None:
        pytest.skip("there is no mosquitto, and it cannot be installed")
    return found


class Broker:
    """A mosquitto of our own on loopback, and somebody who publishes there."""

    def __init__(self, program, folder, *lines):
        self.program, self.port, self.process = program, free_port(), None
        self.settings = folder / "mosquitto.conf"
        user = ["user root"] if os.geteuid() == 0 else []  # else it steps down, and cannot read our files
        self.settings.write_text("\n".join([*user, f"listener {self.port} 127.0.0.1", *lines]) + "\n")

    def start(self):
        self.process = subprocess.Popen([self.program, "-c", self.settings], stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if " running" in line:
                return
        pytest.fail(f"mosquitto did not start: {said}")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate(timeout=LONG)
            self.process = None

    def publish(self, *messages, **options):
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for topic, payload in messages:
            client.publish(topic, payload, qos=1, **options).wait_for_publish(LONG)
        client.disconnect()
        client.loop_stop()


@pytest.fixture
def broker(mosquitto, tmp_path):
    made = Broker(mosquitto, tmp_path, "allow_anonymous true")
    yield made
    made.stop()


def test_samples_come_by_an_mqtt_topic(broker, logged):
    broker.start()
    broker.publish(("rooms/kitchen", b"[0, 0, -1]"), retain=True)  # of yesterday
    text = f"""
    [model]
    n_inputs = 2
    [source]
    kind = "mqtt"
    host = "127.0.0.1"
    port = {broker.port}
    topic = "rooms/{{name}}"
    [agents.kitchen]
    listen = "tcp/127.0.0.1:7447"
    """
    source = Site.parse(text).source("kitchen")
    gathered = Gathered(source)
    assert await_event(logged, "broker connected").topic == "rooms/kitchen"
    messages = [b'{"x": [1, 2], "y": 3}', b"", b"\x00", b'{"x": [1]}', cbor2.dumps([4, 5, 6])]
    broker.publish(("rooms/hall", b"[9, 9, 9]"), *(("rooms/kitchen", message) for message in messages))
    assert values(gathered.take(2)) == GOOD
    assert source.counts == {"samples": 2, "unlabelled": 0, "dropped": 3, "lost": 0}
    closes(source)
    assert source.ended


def test_a_broker_may_come_late_and_go_and_come_back(broker, logged):
    source = MqttSource(Reader(2), "kitchen", host="127.0.0.1", port=broker.port, topic="rooms/+")
    gathered = Gathered(source)
    lost = await_event(logged, "broker not connected")
    assert (lost.why, lost.agent, lost.levelname) == ("it does not answer", "kitchen", "WARNING")
    broker.start()
    await_event(logged, "broker connected")
    broker.publish(("rooms/a", b"[1, 2, 3]"))
    assert values(gathered.take(1)) == GOOD[:1]
    broker.stop()
    assert "it is gone" in await_event(logged, "broker not connected").why
    broker.start()
    await_event(logged, "broker connected")
    broker.publish(("rooms/b", b"[4, 5, 6]"))
    assert values(gathered.take(1)) == GOOD[1:]
    closes(source)


# paho leaves the socket of a failed handshake to the garbage collector, which closes it and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_with_tls_and_passwords(mosquitto, tmp_path, logged, monkeypatch):
    text = '[model]\nn_inputs = 2\n[security]\n[agents.broker]\nlisten = "tls/127.0.0.1:7447"\n'
    site = Site.parse(text, tmp_path / "site.toml")
    make_certificates(site)
    stranger = Site.parse(text + "\n", tmp_path / "stranger" / "site.toml")
    make_certificates(stranger)
    ours = site.agent("broker")
    subprocess.run(["mosquitto_passwd", "-b", "-c", tmp_path / "users", "kitchen", "secret"], check=True)
    broker = Broker(
        mosquitto,
        tmp_path,
        "allow_anonymous false",
        f"password_file {tmp_path / 'users'}",
        f"cafile {site.security.ca}",
        f"certfile {ours.certificate}",
        f"keyfile {ours.key}",
    )
    broker.start()
    options = {"host": "127.0.0.1", "port": broker.port, "topic": "t", "user": "kitchen", "password_env": "BROKER_WORD"}

    def opened(ca, password):
        monkeypatch.setenv("BROKER_WORD", password)
        return Gathered(MqttSource(Reader(2), "kitchen", ca=ca, **options))

    try:
        good = opened(site.security.ca, "secret")
        await_event(logged, "broker connected")
        good.source._client.publish("t", b"[1, 2, 3]", qos=1)
        assert values(good.take(1)) == GOOD[:1]
        good.source.close()
        wrong = opened(site.security.ca, "guess")
        assert "it refuses" in await_event(logged, "broker not connected").why
        wrong.source.close()
        elsewhere = opened(stranger.security.ca, "secret")  # to whom we do not tell our password
        assert await_event(logged, "broker not connected").why == "it does not answer"
        elsewhere.source.close()
    finally:
        broker.stop()
        gc.collect()

    monkeypatch.delenv("BROKER_WORD")
    with pytest.raises(ValueError, match="the environment variable BROKER_WORD is not set"):
        MqttSource(Reader(2), "kitchen", **options).start(lambda: None)
    (tmp_path / "empty.pem").write_text("no certificate")
    monkeypatch.setenv("BROKER_WORD", "secret")
    with pytest.raises(ValueError, match=r"empty.pem holds no certificate that can be read"):
        MqttSource(Reader(2), "kitchen", ca=tmp_path / "empty.pem", **options).start(lambda: None)
    with pytest.raises(FileNotFoundError):
        MqttSource(Reader(2), "kitchen", ca=tmp_path / "absent.pem", **options).start(lambda: None)
