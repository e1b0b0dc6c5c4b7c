"""Agents of a site over real zenoh, as processes and as threads: what they compute, and what they survive."""

import json
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import zenoh
from ports import free_ports

import laconic as lc
from laconic.cli import main
from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.running.inbox import Inbox
from laconic.deploy.running.runner import run_agent
from laconic.deploy.settings.site import Site

pytestmark = [pytest.mark.sockets]

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines
PATIENT = f"patience = {WAIT}"  # agents in lockstep that give each other up skip rounds
NAMES = ("ada", "bob", "cyd", "dan", "eve")
EDGES = (("ada", "bob"), ("bob", "cyd"), ("cyd", "dan"), ("dan", "eve"), ("eve", "ada"), ("ada", "cyd"))


class House:
    """A site in a folder: its settings, and the data that its agents replay."""

    def __init__(
        self, folder, names=NAMES, edges=EDGES, n_rounds=100, *, seed=0, source="", site="", learner="", agent=""
    ):
        self.folder, self.names = folder, names
        rng = np.random.default_rng(seed)
        self.X = rng.uniform(size=(n_rounds, len(names), 2))
        self.y = np.sin(4 * self.X[..., 0]) + self.X[..., 1] - 0.7
        for k, name in enumerate(names):
            rows = np.column_stack([self.X[:, k], self.y[:, k]]).tolist()
            lines = ["a,b,y", *(",".join(map(repr, row)) for row in rows)]
            (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        self.file = folder / "site.toml"
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        pairs = [list(edge) for edge in edges if set(edge) <= set(names)]
        text = f"""
            [site]
            {site}
            [model]
            n_inputs = 2
            n_frequencies = 20
            bandwidth = 0.5
            [learner]
            {learner or 'algorithm = "qcodkla"'}
            [network]
            edges = {json.dumps(pairs)}
            [source]
            {source or 'kind = "file"'}
            {'path = "{name}.csv"' if "file" in (source or "file") else ""}
            inputs = ["a", "b"]
            target = "y"
        """
        text += "".join(f'\n[agents.{n}]\nlisten = "tcp/127.0.0.1:{p}"\n{agent}\n' for n, p in self.ports.items())
        self.file.write_text(text)
        self.site = Site.read(self.file)

    def simulate(self, n_rounds=None):
        site, upto = self.site, slice(n_rounds)
        return lc.simulate(site.learner(), site.features(), site.network(), self.X[upto], self.y[upto])

    def traces(self, folder="traces"):
        found = {}
        for name in self.names:
            with np.load(self.folder / folder / f"{name}.npz") as file:
                found[name] = dict(file)
        return found

    def session(self, name):
        """A zenoh session that is connected to one agent, as a dashboard would be."""
        settings = {"mode": "client", "connect": {"endpoints": [f"tcp/127.0.0.1:{self.ports[name]}"]}}
        settings["scouting"] = {"multicast": {"enabled": False}}
        return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def check_replicas(traces):
    """Whoever has heard all that a neighbour said has the very model of which the neighbour believes so."""
    exact = 0
    for name, trace in traces.items():
        for other, replica, heard in zip(trace["neighbours"], trace["replicas"], trace["heard"], strict=True):
            said = traces[str(other)]
            spoken = said["position"][list(said["neighbours"]).index(name)]
            if tuple(heard) == tuple(spoken):
                assert np.array_equal(replica, said["broadcast"]), (name, other)
                exact += 1
            else:  # it spoke after this one had gone
                assert heard[0] != spoken[0] or heard[1] < spoken[1], (name, other)
    return exact


# Processes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def up():
    """Starts ``laconic up`` in a process; afterwards nothing of it may be left."""
    started = []

    def start(house, *words):
        command = [sys.executable, "-m", "laconic", "up", str(house.file), "--progress", "0.2", *map(str, words)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        guard = threading.Timer(WAIT, process.kill)
        guard.start()
        started.append((process, guard))
        return process

    yield start
    for process, guard in started:
        guard.cancel()
        if process.poll() is None:
            process.kill()  # its agents hear of it
        process.wait()
        process.stderr.close()


def lines_until(process, done):
    """Read log lines until ``done(line)`` is true of one; all of them."""
    lines = []
    for text in process.stderr:
        lines.append(json.loads(text))
        if done(lines[-1]):
            return lines
    raise AssertionError(f"the site ended early: {lines[-3:]}")


@pytest.mark.slow
def test_three_processes_compute_what_the_simulator_computes_to_the_bit(tmp_path, up):
    house = House(tmp_path, NAMES[:3], n_rounds=200, site=PATIENT)
    process = up(house, "--trace", tmp_path / "traces", "--live", "--port", 0)  # who is watched does the same
    said = process.stderr.read()
    assert process.wait(WAIT) == 0 and "is shown at http://127.0.0.1:" in said, said
    simulated, traces = house.simulate(), house.traces()
    for k, name in enumerate(house.names):
        trace = traces[name]
        assert np.array_equal(trace["rounds"], np.arange(1, 201))
        assert np.array_equal(trace["predictions"], simulated.predictions[:, k])
        assert np.array_equal(trace["sent"], simulated.sent[:, k])
        assert np.array_equal(trace["duals"], simulated.state.duals[k])
        assert np.array_equal(trace["weights"], simulated.state.weights[k])
    assert 0 < simulated.sent.mean() < 1
    assert check_replicas(traces) == 2 * 3


@pytest.mark.slow
def test_an_agent_killed_amid_the_run_comes_back_and_ctrl_c_leaves_nobody(tmp_path, up):
    names = NAMES[:3]
    house = House(
        tmp_path,
        names,
        source='kind = "file"\nloop = true\nrate = 100',
        site='checkpoint = "disk"\ncheckpoint_every = 20',
    )
    process = up(house, "--trace", tmp_path / "traces")
    pids, joined = {}, {}

    def all_in(line):
        if line["event"] == "started":
            pids[line["agent"]] = line["pid"]
        if line["event"] == "joined":
            joined[line["agent"]] = line["round"]
        # Of some rounds: a mean of a few samples says nothing.
        return len(joined) == 3 and line["event"] == "progress" and line["round"] > joined[line["agent"]] + 50

    learned = {}

    def all_know(line):
        if line["event"] == "progress":
            learned[line["agent"]] = float(line["mean_square_error"])
        return all_in(line) and len(learned) == 3 and all(error < 0.05 for error in learned.values())

    lines_until(process, all_know)
    for name in names[:2]:  # with its disk, then without
        before = pids[name]
        os.kill(before, signal.SIGSTOP)
        if name == names[1]:
            for file in (tmp_path / "disk").glob(f"*{name}*"):
                file.unlink(missing_ok=True)
        os.kill(before, signal.SIGKILL)
        died = lines_until(process, lambda line: "cause" in line)[-1]
        assert (died["who"], died["cause"]) == (name, "SIGKILL")
        del joined[name]
        back = lines_until(process, lambda line, name=name: all_in(line) and line["agent"] == name)[-1]
        assert back["mean_square_error"] < 0.1  # it knows what it knew
        assert pids[name] != before
    process.send_signal(signal.SIGINT)
    process.stderr.read()
    assert process.wait(WAIT) == 130
    for pid in pids.values():
        assert not Path(f"/proc/{pid}").exists()
    traces = house.traces()
    check_replicas(traces)  # a signal comes before messages, so that perhaps nobody took in the last of the others
    assert all((tmp_path / "disk" / f"{name}.checkpoint").exists() for name in names)


@pytest.mark.slow
def test_an_agent_stops_when_its_supervisor_is_gone(tmp_path):
    house = House(tmp_path, ("ada",), (), source='kind = "file"\nloop = true\nrate = 50')
    command = [sys.executable, "-m", "laconic", "agent", "--config", house.file, "--name", "ada", "--supervised"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(WAIT, process.kill)
        guard.start()
        lines_until(process, lambda line: line["event"] == "joined")
        process.stdin.close()
        assert json.loads(process.stderr.readlines()[-1])["event"] == "stopped"
        assert process.wait(WAIT) == 143
        guard.cancel()


# Threads -------------------------------------------------------------------------------------------------------------


class Running:
    """An agent on a thread of its own."""

    def __init__(self, house, name, **options):
        self.news, self.code = Inbox(), None
        self.options = {"news": self.news, **options}
        self._thread = threading.Thread(target=self._run, args=(house.site, name))
        self._thread.start()

    def _run(self, site, name):
        try:
            self.code = run_agent(site, name, **self.options)
        except Exception as error:
            self.code = error

    def join(self):
        self._thread.join(WAIT)
        assert not self._thread.is_alive()
        return self.code

    def stop(self):
        self.news.put(int(signal.SIGTERM))
        return self.join()


@pytest.fixture
def run():
    started = []

    def start(house, name, **options):
        started.append(Running(house, name, **options))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def events():
    """What agents log from now on."""
    seen = queue.SimpleQueue()

    class Keep(logging.Handler):
        def emit(self, record):
            seen.put(record)

    logger = logging.getLogger("laconic")
    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")

    def wait_for(event, good=lambda record: True):
        while True:
            record = seen.get(timeout=WAIT)
            if record.msg == event and good(record):
                return record

    yield wait_for
    logger.removeHandler(handler)
    logger.setLevel(level)


def speaker(session, key):
    """A publisher that somebody hears: nobody is told what was said before they listened."""
    publisher, heard = session.declare_publisher(key), queue.SimpleQueue()
    listener = publisher.declare_matching_listener(lambda status: heard.put(status.matching))
    while not publisher.matching_status.matching:
        heard.get(timeout=WAIT)
    listener.undeclare()
    return publisher


def listen(session, key):
    """What is published under a key from now on, as a queue."""
    heard = queue.SimpleQueue()
    session.declare_subscriber(key, lambda sample: heard.put(json.loads(sample.payload.to_bytes())))
    return heard


def run_all(run, house, folder="traces", **options):
    (house.folder / folder).mkdir(exist_ok=True)
    return [run(house, name, trace=house.folder / folder / f"{name}.npz", **options) for name in house.names]


def test_a_run_that_was_stopped_goes_on_where_it_was_to_the_bit(tmp_path, run):
    house = House(tmp_path, NAMES[:3], n_rounds=80, site=f'{PATIENT}\ncheckpoint = "disk"\ncheckpoint_every = 30')
    assert [agent.join() for agent in run_all(run, house, "first", rounds=40)] == [0, 0, 0]
    assert [agent.join() for agent in run_all(run, house, "second")] == [0, 0, 0]
    first, second, simulated = house.traces("first"), house.traces("second"), house.simulate()
    for k, name in enumerate(house.names):
        both = np.concatenate([first[name]["predictions"], second[name]["predictions"]])
        assert np.array_equal(both, simulated.predictions[:, k])
        assert np.array_equal(second[name]["duals"], simulated.state.duals[k])


@pytest.mark.slow
def test_slots_tick_without_samples_and_replicas_are_exact(tmp_path, run, events):
    source = 'kind = "file"\nloop = true\nrate = 25'
    house = House(tmp_path, NAMES[:3], site='clock = "slotted"\nslot = 0.02', source=source)
    agents = run_all(run, house, progress=0.1)
    going = set()
    while len(going) < 3:  # until all have had some rounds
        going.add(events("progress", lambda record: record.sends + record.censored >= 30).agent)
    assert [agent.stop() for agent in agents] == [143] * 3
    traces = house.traces()
    for trace in traces.values():
        idle = np.isnan(trace["predictions"])
        assert (np.diff(trace["rounds"]) > 0).all()
        assert 0 < idle.sum() < len(idle)
    assert check_replicas(traces) >= 3


class Stall:
    """A source without samples that holds its agent up when it is asked for the n-th time, until it is let go."""

    def __init__(self, at):
        self.counts = {"dropped": 0, "lost": 0}
        self.ended, self.asked, self.at = False, 0, at
        self.holds, self.go = threading.Event(), threading.Event()

    def start(self, wake, skip):
        pass

    def next(self):
        self.asked += 1
        if self.asked == self.at:
            self.holds.set()
            assert self.go.wait(WAIT)

    def close(self):
        pass


@pytest.mark.slow
def test_on_slots_an_agent_that_was_held_up_asks_where_the_others_are(tmp_path, run, events, monkeypatch):
    monkeypatch.setattr("laconic.protocol.paces._AWAY", 0.3)
    sources = {"ada": Stall(None), "bob": Stall(20)}
    monkeypatch.setattr(Site, "source", lambda self, name, session=None: sources[name])
    house = House(tmp_path, NAMES[:2], site='clock = "slotted"\nslot = 0.02')
    agents = run_all(run, house, progress=0.1)
    assert sources["bob"].holds.wait(WAIT)
    held = events("progress", lambda record: record.agent == "ada").round
    events("progress", lambda record: record.agent == "ada" and record.round >= held + 50)  # a second of slots
    sources["bob"].go.set()
    away = events("was away")
    assert away.agent == "bob" and away.rounds >= 14
    ticks = events("progress", lambda record: record.agent == "bob").round
    events("progress", lambda record: record.agent == "bob" and record.round > ticks + 20)
    assert [agent.stop() for agent in agents] == [143] * 2
    rounds = house.traces()["bob"]["rounds"]
    assert np.diff(rounds).max() >= 14  # the slots that it slept through are gone
    assert len(rounds) > 40
    check_replicas(house.traces())


def test_rounds_on_slots_go_on_from_the_checkpoint(tmp_path, run):
    house = House(tmp_path, ("ada",), (), site='clock = "slotted"\nslot = 0.02\ncheckpoint = "disk"')
    assert run(house, "ada", rounds=5, trace=tmp_path / "first.npz").join() == 0
    assert run(house, "ada", rounds=5, trace=tmp_path / "second.npz").join() == 0
    first, second = (np.load(tmp_path / f"{name}.npz")["rounds"] for name in ("first", "second"))
    assert first[0] == 1 and len(first) == len(second) == 5
    assert second[0] > first[-1]


@pytest.mark.slow
def test_on_slots_an_agent_that_returns_is_told_where_the_others_are(tmp_path, run, events):
    site = 'clock = "slotted"\nslot = 0.02\npatience = 2'
    house = House(tmp_path, NAMES[:2], site=site, source='kind = "file"\nloop = true')
    ada, bob = run_all(run, house, progress=0.1)
    events("progress", lambda record: record.agent == "bob" and record.sends > 5)
    with house.session("ada") as session:
        alerts, said = listen(session, "site/ada/alert"), listen(session, "site/ada/prediction")
        said.get(timeout=WAIT)  # so it knows that we listen
        assert bob.stop() == 143
        assert alerts.get(timeout=WAIT)["event"] == "neighbour is silent"
        bob = run(house, "bob", trace=tmp_path / "traces" / "bob.npz", progress=0.1)
        back = alerts.get(timeout=WAIT)
        assert (back["event"], back["neighbour"]) == ("neighbour is back", "bob")
        events("joined", lambda record: record.agent == "bob")
        events("progress", lambda record: record.agent == "bob" and record.sends > 5)
    assert (bob.stop(), ada.stop()) == (143, 143)
    traces = house.traces()
    assert check_replicas(traces) >= 1
    said = traces["bob"]["predictions"]
    assert abs(said[~np.isnan(said)][0]) > 0.01  # by the model that the neighbour kept for it: a new one says 0


@pytest.mark.slow
def test_a_neighbour_that_never_comes_is_given_up(tmp_path, run, events):
    house = House(tmp_path, NAMES[:2], n_rounds=50, site="patience = 0.5")
    alone = run(house, "ada", trace=tmp_path / "ada.npz")
    assert events("given up").neighbour == "bob"
    assert alone.join() == 0
    with np.load(tmp_path / "ada.npz") as trace:
        assert len(trace["rounds"]) == 50


def test_samples_come_by_zenoh_and_predictions_go_out_no_faster_than_asked(tmp_path, run, events):
    house = House(tmp_path, ("ada",), (), source='kind = "zenoh"')
    agent = run(house, "ada", predictions=1e-3, progress=0.1)  # one in a thousand seconds
    events("joined")
    with house.session("ada") as session:
        said = listen(session, "site/ada/prediction")
        publisher = speaker(session, "site/ada/sample")
        publisher.put(json.dumps({"a": 0.1, "b": 0.2, "y": 0.5, "time": 12.0}))
        expected = {"round": 1, "time": 12.0, "prediction": 0.0, "label": 0.5, "error": -0.5, "interval": None}
        assert said.get(timeout=WAIT) == expected
        for _ in range(50):
            publisher.put(json.dumps({"a": 0.1, "b": 0.2, "y": 0.5}))
        events("progress", lambda record: record.round == 51)
        assert agent.stop() == 143
    assert said.empty()


def test_an_agent_that_diverges_says_so_and_ends_with_a_code_of_its_own(tmp_path, run, events):
    learner = 'algorithm = "odkla"\neta = 0.01\nrho = 0.01'
    site = 'checkpoint = "disk"\ncheckpoint_every = 10000'
    house = House(tmp_path, ("ada",), (), learner=learner, site=site, source='kind = "zenoh"')
    agent = run(house, "ada")
    events("joined")
    with house.session("ada") as session:
        alerts = listen(session, "site/ada/alert")
        publisher = speaker(session, "site/ada/sample")
        for x, y in zip(house.X[:, 0].tolist(), house.y[:, 0].tolist(), strict=True):
            publisher.put(json.dumps({"a": x[0], "b": x[1], "y": y}))
        assert alerts.get(timeout=WAIT)["event"] == "diverged"
    assert agent.join() == 3
    assert "eta" in events("diverged").advice
    assert not (tmp_path / "disk" / "ada.checkpoint").exists()  # a model that is lost is not worth keeping


def test_a_site_with_certificates_learns_what_one_without_does(tmp_path, run):
    house = House(tmp_path, NAMES[:2], n_rounds=40, site=PATIENT)
    house.file.write_text(house.file.read_text().replace("tcp/", "tls/") + "\n[security]\n")
    house.site = Site.read(house.file)
    make_certificates(house.site)
    assert [agent.join() for agent in run_all(run, house)] == [0, 0]
    traces, simulated = house.traces(), house.simulate()
    for k, name in enumerate(house.names):
        assert np.array_equal(traces[name]["predictions"], simulated.predictions[:, k])


@pytest.mark.slow
def test_the_metrics_of_a_running_agent_can_be_scraped(tmp_path, run, events):
    (port,) = free_ports(1)
    house = House(
        tmp_path, ("ada",), (), n_rounds=60, source='kind = "file"\nloop = true', agent=f"metrics_port = {port + 50}"
    )
    agent = run(house, "ada", progress=0.1)
    events("progress", lambda record: record.round > 60)
    with urllib.request.urlopen(f"http://127.0.0.1:{port + 50}/metrics", timeout=WAIT) as answer:
        found = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
    assert float(found['laconic_round{agent="ada"}']) > 60
    assert float(found['laconic_loss_count{agent="ada"}']) > 60
    assert agent.stop() == 143


# What is wrong is said -----------------------------------------------------------------------------------------------


def test_a_checkpoint_of_other_settings_is_refused_and_kept(tmp_path, run):
    house = House(tmp_path, ("ada",), (), n_rounds=20, site='checkpoint = "disk"')
    assert run(house, "ada").join() == 0
    before = (tmp_path / "disk" / "ada.checkpoint").read_bytes()
    house.file.write_text(house.file.read_text().replace("bandwidth = 0.5", "bandwidth = 0.6"))
    house.site = Site.read(house.file)
    error = run(house, "ada").join()
    assert isinstance(error, ValueError)
    assert str(error).endswith("Move it away to start anew.")
    assert (tmp_path / "disk" / "ada.checkpoint").read_bytes() == before


def test_an_agent_with_a_torn_checkpoint_begins_anew(tmp_path, run, events):
    house = House(tmp_path, ("ada",), (), n_rounds=20, site='checkpoint = "disk"')
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "ada.checkpoint").write_bytes(b"half a chec")
    agent = run(house, "ada", trace=tmp_path / "ada.npz")
    events("checkpoint refused")
    assert agent.join() == 0
    with np.load(tmp_path / "ada.npz") as trace:
        assert np.array_equal(trace["predictions"], house.simulate().predictions[:, 0])


def test_mistakes_at_the_command_line_are_one_sentence(tmp_path, capsys):
    house = House(tmp_path, ("ada", "bob"), EDGES, source='kind = "stdin"')
    for words, expected in (
        (["agent", "--config", house.file, "--name", "adam"], "did you mean 'ada'?"),
        (["agent", "--config", tmp_path / "none.toml", "--name", "ada"], "there is no file"),
        (["agent", "--config", house.file, "--name", "ada", "--rounds", 0], "--rounds must be at least 1"),
        (["agent", "--config", house.file, "--name", "ada", "--predictions", "nan"], "--predictions must be finite"),
        (["agent", "--config", house.file, "--name", "ada", "--progress", 0], "--progress must be larger than 0"),
        (["up", house.file], "reads standard input: run it by itself"),
        (["up", tmp_path / "none.toml"], "there is no file"),
    ):
        assert main([str(word) for word in words]) == 2
        out, err = capsys.readouterr()
        assert out == "" and expected in err
        assert err.startswith("laconic: ") and err.count("\n") == 1


def test_a_port_that_is_taken_is_one_line_and_may_be_tried_again(tmp_path, capsys):
    house = House(tmp_path, ("ada",), ())
    with socket.create_server(("127.0.0.1", house.ports["ada"])):
        assert main(["agent", "--config", str(house.file), "--name", "ada", "--log", "json"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "address already in use" in json.loads(line)["why"].lower()
