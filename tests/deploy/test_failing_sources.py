"""Samples that can no longer be read: the agent says so, saves what it has, and ends so that it is started again."""

import errno
import json
import os

import pytest
from source_kit import GOOD, LONG, Gathered, logged_by_sources, values
from test_driver import FEATURES, Samples, Silence, Sleeper
from test_supervisor import DIE_FIRST, keep, program

import laconic as lc
from laconic.cli import main
from laconic.deploy.running.driver import Driver
from laconic.deploy.running.metrics import Tally
from laconic.deploy.running.outlet import Outlet
from laconic.deploy.sources import Reader
from laconic.deploy.sources.text import FileSource, StdinSource
from laconic.deploy.sources.unthreaded import UnthreadedFile
from laconic.deploy.sources.zenoh import ZenohSource
from laconic.protocol.actions import Terms
from laconic.protocol.paces import make_pacer

EIO = OSError(errno.EIO, os.strerror(errno.EIO))
OURS = RuntimeError("a mistake of ours")
TOLD = {EIO: "[Errno 5] Input/output error", OURS: "RuntimeError: a mistake of ours"}


@pytest.fixture
def logged():
    with logged_by_sources() as records:
        yield records


class Spoiled(Reader):
    """Reads two samples, and then nothing any more."""

    error, count = None, 0

    def _spoil(self):
        self.count += 1
        if self.count > 2:
            raise self.error

    def __call__(self, data):
        self._spoil()
        return super().__call__(data)

    def row(self, line):
        self._spoil()
        return super().row(line)


def spoiled(error):
    reader = Spoiled(2)
    reader.error = error
    return reader


def check(gathered, error, logged):
    """All that was read before is handed out; then the source has ended, and says why."""
    assert values(gathered.all()) == GOOD
    assert gathered.source.ended and gathered.source.failure == TOLD[error]
    record = logged.get(timeout=LONG)
    assert (record.msg, record.levelname, record.why) == ("samples cannot be read", "ERROR", TOLD[error])
    assert (record.exc_info is None) == (error is EIO)  # where a mistake is, only the traceback says


@pytest.mark.parametrize("error", [EIO, OURS])
def test_a_file(tmp_path, error, logged):
    (tmp_path / "samples").write_text("1,2,3\n4,5,6\n7,8,9\n")
    reader = spoiled(error)
    reader.count = -1  # the first line is looked at twice
    check(Gathered(FileSource(reader, "kitchen", path=tmp_path / "samples")), error, logged)


@pytest.mark.parametrize("error", [EIO, OURS])
def test_a_file_without_a_thread(tmp_path, error, logged):
    (tmp_path / "samples").write_text("1,2,3\n4,5,6\n7,8,9\n")
    reader = spoiled(error)
    reader.count = -1
    check(Gathered(UnthreadedFile(FileSource(reader, "kitchen", path=tmp_path / "samples"))), error, logged)


@pytest.mark.parametrize("error", [EIO, OURS])
def test_a_pipe(error, logged):
    inlet, outlet = os.pipe()
    gathered = Gathered(StdinSource(spoiled(error), "kitchen", descriptor=inlet))
    os.write(outlet, b"1,2,3\n4,5,6\n7,8,9\n")
    check(gathered, error, logged)
    os.close(inlet)
    os.close(outlet)


def test_what_is_no_pipe(tmp_path):
    """A real error of the system."""
    folder = os.open(tmp_path, os.O_RDONLY)
    gathered = Gathered(StdinSource(Reader(2), "kitchen", descriptor=folder))
    assert gathered.all() == [] and gathered.source.failure == "[Errno 21] Is a directory"
    os.close(folder)


@pytest.mark.parametrize("error", [EIO, OURS])
def test_samples_that_are_pushed(error, logged):
    class Session:
        def declare_subscriber(self, key, handler):
            pass

    source = ZenohSource(spoiled(error), "kitchen", session=Session(), key="k")
    gathered = Gathered(source)
    for message in (b"[1, 2, 3]", b"[4, 5, 6]", b"[7, 8, 9]", b"[7, 8, 9]"):
        source._take(message)
    check(gathered, error, logged)


def test_a_client_of_mqtt_whose_thread_ends(logged):
    """A host that no resolver takes: paho tries again after an error of the system, and after no other."""
    from laconic.deploy.sources.mqtt import MqttSource

    gathered = Gathered(MqttSource(Reader(2), "kitchen", host="a..b", topic="t"))
    assert gathered.all() == [] and gathered.source.failure.startswith("UnicodeError: ")
    assert logged.get(timeout=LONG).msg == "samples cannot be read"


def drive(source, tmp_path, clock="lockstep"):
    agent = lc.Agent("ann", [], FEATURES, lc.ODKLA(rho=0.3, eta=1.0), n_agents=1, clock=clock)
    outlet = Outlet(agent, Silence(), source, lambda: None, Tally(), tmp_path / "checkpoint", wall=lambda: 0.0)
    driver = Driver(make_pacer(agent, Terms(checkpoint_every=1000, predictions=0.0), 1.0), outlet)
    sleeper = Sleeper()
    return driver, driver.run(sleeper, sleeper.clock, lambda: sleeper.now)


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_an_agent_learns_what_was_read_saves_itself_and_raises_an_alert(tmp_path, clock):
    source = Samples(5)
    source.failure = "the disk is gone"
    driver, stopped = drive(source, tmp_path, clock)
    assert driver.failed and stopped is None and driver.pacer.over
    assert driver.outlet.tally.alerts == {"source failed": 1}
    assert driver.outlet.tally.last_alert["why"] == "the disk is gone"
    kept = lc.Agent("ann", [], FEATURES, lc.ODKLA(rho=0.3, eta=1.0), n_agents=1, clock=clock)
    assert kept.load(tmp_path / "checkpoint") and kept.round == kept.samples == 5


def test_a_source_that_cannot_even_be_opened_raises_an_alert_too(tmp_path):
    source = UnthreadedFile(FileSource(Reader(2), "ann", path=tmp_path / "absent"))
    agent = lc.Agent("ann", [], FEATURES, lc.ODKLA(rho=0.3, eta=1.0), n_agents=1)
    outlet = Outlet(agent, Silence(), source, lambda: None, Tally())
    driver, sleeper = Driver(make_pacer(agent, Terms()), outlet), Sleeper()
    with pytest.raises(FileNotFoundError):
        driver.run(sleeper, sleeper.clock)
    assert outlet.tally.alerts == {"source failed": 1}


@pytest.mark.sockets
def test_a_process_ends_with_a_code_of_its_own_and_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    from ports import free_port

    (tmp_path / "ada.csv").write_text("a,b,y\n" + "".join(f"{k},0,{k}\n" for k in range(20)))
    (tmp_path / "site.toml").write_text(
        '[site]\ncheckpoint = "disk"\n[model]\nn_inputs = 2\nn_frequencies = 3\n'
        f'[source]\nkind = "file"\npath = "ada.csv"\n[agents.ada]\nlisten = "tcp/127.0.0.1:{free_port()}"\n'
    )
    real, spoil = FileSource._pass, True

    def failing(self):
        for k, sample in enumerate(real(self)):
            if spoil and k == 8:
                raise EIO
            yield sample

    monkeypatch.setattr(FileSource, "_pass", failing)
    command = ["agent", "--config", str(tmp_path / "site.toml"), "--name", "ada", "--log", "json"]
    assert main(command) == 4
    spoil = False
    assert main(command) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["why"] for line in lines if line["event"] == "samples cannot be read"] == [TOLD[EIO]]
    assert [(line["round"], line["samples"]) for line in lines if line["event"] == "joined"] == [(0, 0), (8, 8)]
    assert [line["round"] for line in lines if line["event"] == "stopped"] == [8, 20]


def test_it_is_started_again(tmp_path):
    code, lines = keep({"one": program(DIE_FIRST, tmp_path / "times", 1, 4)})
    assert code == 0
    (died,) = [line for line in lines if line["event"] == "died, will be restarted"]
    assert died["cause"] == "its source of samples failed"
