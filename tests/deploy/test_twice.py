"""The same site or the same agent started twice on one machine, and starting anew on purpose."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from test_runner import House, lines_until, up  # noqa: F401
from test_supervisor import keep, logging_as_it_was, program, say  # noqa: F401

from laconic.cli import main
from laconic.deploy.operations import supervisor
from laconic.deploy.running.forgetting import set_checkpoint_aside
from laconic.deploy.running.locks import Taken, lock_path, only_one
from laconic.deploy.running.runner import make_agent
from laconic.protocol.checkpoint import read_checkpoint

pytestmark = pytest.mark.sockets

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines
DISK = 'checkpoint = "disk"\ncheckpoint_every = 10'


def said(capsys, code, *words):
    """What a command writes to stderr when it ends with ``code``."""
    assert main([str(word) for word in words]) == code
    return capsys.readouterr().err


@pytest.mark.slow
def test_up_twice_is_one_sentence_and_the_first_goes_on(tmp_path, up, capsys):  # noqa: F811
    """(M6) Before, the second one started its agents again without a pause."""
    house = House(tmp_path, ("ada", "bob"), source='kind = "file"\nloop = true\nrate = 50', site=DISK)
    first = up(house)
    lines_until(first, lambda line: line["event"] == "progress" and line["round"] > 5)
    expected = f"{house.file} is up on this machine already, as process {first.pid}: stop that one first."
    assert expected in " ".join(said(capsys, 2, "up", house.file).split())
    assert expected in " ".join(said(capsys, 2, "up", house.file, "--fresh").split())
    once = said(capsys, 2, "agent", "--config", house.file, "--name", "bob")
    assert f"agent bob of {house.file} runs on this machine already, as process " in " ".join(once.split())
    lines = lines_until(first, lambda line: line["event"] == "progress" and line["round"] > 20)
    assert not [line for line in lines if line["level"] in ("warning", "error")]
    first.send_signal(signal.SIGTERM)
    first.stderr.read()
    assert first.wait(WAIT) == 128 + signal.SIGTERM
    with only_one(lock_path(house.site), "x"), only_one(lock_path(house.site, "ada"), "x"):
        pass  # all is let go


def test_a_supervised_agent_whose_name_is_taken_says_so_and_may_come_again(tmp_path, capsys, logging_as_it_was):  # noqa: F811
    house = House(tmp_path, ("ada", "bob"))
    options = ("--config", house.file, "--name", "ada", "--log", "json")
    with only_one(lock_path(house.site, "ada"), "x"):
        line = json.loads(said(capsys, 1, "agent", *options, "--supervised"))
    assert line["event"] == "failed" and f"as process {os.getpid()}" in line["why"]


@pytest.mark.slow
def test_an_agent_whose_port_is_taken_is_started_ever_later(tmp_path):
    """As real processes: before, each restart had loaded for longer than an agent has to live to be forgiven."""
    house = House(tmp_path, ("ada", "bob"), source='kind = "file"\nloop = true\nrate = 5')
    with socket.create_server(("127.0.0.1", house.ports["ada"])):
        command = [sys.executable, "-m", "laconic", "up", str(house.file), "--log", "json"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        guard = threading.Timer(WAIT, process.kill)
        guard.start()
        try:
            pauses, why = [], ""
            while len(pauses) < 2:
                line = lines_until(process, lambda line: "pause" in line or line["event"] == "failed")[-1]
                if line["event"] == "failed":
                    why = line["why"]
                elif line["who"] == "ada":
                    pauses.append(line["pause"])
            assert pauses == [0.0, 0.25] and "cannot listen on" in why
        finally:
            process.terminate()
            process.stderr.read()
            process.wait(WAIT)
            guard.cancel()
            process.stderr.close()


@pytest.mark.parametrize(("started", "pauses"), [(False, [0.0, 0.25, 0.5]), (True, [0.0, 0.0, 0.0])])
def test_only_one_that_had_started_is_forgiven_by_time(tmp_path, monkeypatch, started, pauses):
    monkeypatch.setattr(supervisor, "_STEADY", 0.0)
    code = f"""
import pathlib, sys
times = pathlib.Path(sys.argv[1])
with times.open("a") as file:
    file.write("x")
{say("started") if started else ""}
sys.exit(1 if len(times.read_text()) <= 3 else 0)
"""
    ended, lines = keep({"one": program(code, tmp_path / "times")})
    assert ended == 0 and [line["pause"] for line in lines if "pause" in line] == pauses


def test_a_lock_is_let_go_by_a_process_that_is_killed(tmp_path):
    path = tmp_path / "folder" / ".a.lock"
    code = (
        "import sys; from pathlib import Path; from laconic.deploy.running.locks import only_one\n"
        "with only_one(Path(sys.argv[1]), 'x'): print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    expected = rf"^it is locked already, as process {process.pid}: stop that one first\.$"
    with pytest.raises(Taken, match=expected), only_one(path, "it is locked"):
        pytest.fail("both hold it")
    process.kill()
    process.communicate()
    with only_one(path, "it is locked"):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_lock_whose_file_was_removed_is_made_again(tmp_path):
    path = tmp_path / ".a.lock"
    with only_one(path, "x"):
        path.unlink()
        with only_one(path, "x"), pytest.raises(Taken), only_one(path, "x"):
            pytest.fail("both hold it")


def test_without_a_place_to_write_there_is_no_lock(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "below" / ".a.lock"
    with only_one(path, "x"), only_one(path, "x"):
        assert not path.exists()


# Starting anew -------------------------------------------------------------------------------------------------------


def checkpoints(house):
    return sorted(path.name for path in (house.folder / "disk").iterdir() if path.name[0] != ".")


def test_checkpoints_are_moved_aside(tmp_path):
    house = House(tmp_path, ("ada", "bob"), site=DISK)
    agent, path = make_agent(house.site, "ada"), house.site.checkpoint_path("ada")
    assert set_checkpoint_aside(house.site, "ada") == ()
    for _ in range(2):
        for _ in range(2):
            agent.save(path)
        content = path.read_bytes()
        moved = set_checkpoint_aside(house.site, "ada")
        assert [file.name for file in moved] == ["ada.checkpoint.old", "ada.checkpoint.previous.old"]
        assert checkpoints(house) == ["ada.checkpoint.old", "ada.checkpoint.previous.old"]
        assert moved[0].read_bytes() == content
    assert set_checkpoint_aside(House(tmp_path, ("ada", "bob")).site, "ada") == ()  # no disk, nothing to forget


@pytest.mark.slow
def test_up_fresh_begins_at_the_first_round(tmp_path, up):  # noqa: F811
    house = House(tmp_path, ("ada", "bob"), n_rounds=30, site=DISK)
    for words in ((), ("--fresh",)):
        process = up(house, *words)
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait(WAIT) == 0
        started = {line["agent"]: line["round"] for line in lines if line["event"] == "started"}
        assert started == {"ada": 0, "bob": 0}
        assert read_checkpoint(house.site.checkpoint_path("ada")) is not None
    (line,) = [line for line in lines if line["event"] == "begins anew"]
    assert {name.removeprefix(f"{tmp_path / 'disk'}/") for name in line["moved"]} >= {
        "ada.checkpoint.old", "bob.checkpoint.old",
    }  # fmt: skip


def test_up_fresh_takes_no_checkpoint_of_an_agent_that_runs(tmp_path, capsys, logging_as_it_was):  # noqa: F811
    house = House(tmp_path, ("ada", "bob"), site=DISK)
    make_agent(house.site, "ada").save(house.site.checkpoint_path("ada"))
    with only_one(lock_path(house.site, "bob"), "x"):
        assert "agent bob of" in said(capsys, 2, "up", house.file, "--fresh")
    assert checkpoints(house) == ["ada.checkpoint"]


def test_agent_fresh_moves_its_own_checkpoint_alone(tmp_path, capsys, logging_as_it_was):  # noqa: F811
    house = House(tmp_path, ("ada", "bob"), site=f"{DISK}\npatience = 0.1")
    for name in house.names:
        make_agent(house.site, name).save(house.site.checkpoint_path(name))
    err = said(capsys, 0, "agent", "--config", house.file, "--name", "ada", "--fresh", "--rounds", 1, "--log", "json")
    logging.getLogger("laconic").handlers.clear()
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["moved"] for line in lines if line["event"] == "begins anew"] == [
        [str(tmp_path / "disk" / "ada.checkpoint.old")]
    ]
    assert "bob.checkpoint" in checkpoints(house) and "ada.checkpoint.old" in checkpoints(house)
