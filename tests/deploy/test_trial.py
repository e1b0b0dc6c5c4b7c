"""A start that was crashed by its checkpoint goes on from the one before it; one that was killed does not."""

import faulthandler
import signal
import subprocess
import sys

import pytest
from test_runner import House

from laconic.deploy.running.forgetting import set_checkpoint_aside
from laconic.deploy.running.runner import make_agent, run_agent
from laconic.deploy.running.trial import Trial, report_of
from laconic.protocol import AgentState

pytestmark = pytest.mark.sockets

DISK = 'checkpoint = "disk"\ncheckpoint_every = 10'
START = """
import faulthandler, os, signal, sys
from pathlib import Path
from laconic.deploy.running.runner import make_agent, restore
from laconic.deploy.running.trial import Trial
from laconic.deploy.settings.site import Site

site = Site.read(Path(sys.argv[1]))
with Trial(site.checkpoint_path("ada")) as trial:
    agent = make_agent(site, "ada")
    restore(agent, site)
    print(agent.round, flush=True)
    if sys.argv[2] == "crash":
        faulthandler._sigsegv()
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "prove":
        trial.end()
"""


@pytest.fixture
def house(tmp_path):
    """A site with checkpoints of rounds 6, the newest, and 3."""
    house = House(tmp_path, ("ada",), (), site=DISK)
    agent, path = make_agent(house.site, "ada"), house.site.checkpoint_path("ada")
    for t in range(6):
        agent.learn(house.X[t, 0], house.y[t, 0])
        if t % 3 == 2:
            agent.save(path)
    return house


def start(house, how):
    """Start an agent, which ends in that way: the code of its process, and the round that it went on from."""
    command = [sys.executable, "-c", START, str(house.file), how]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, int(run.stdout)


def test_a_crash_leads_to_the_checkpoint_before(house):
    path = house.site.checkpoint_path("ada")
    newest, aside = path.read_bytes(), path.with_name("ada.checkpoint.crashed")
    assert start(house, "crash") == (-signal.SIGSEGV, 6)
    assert b"Segmentation fault" in report_of(path).read_bytes()
    assert start(house, "kill") == (-signal.SIGKILL, 3)
    assert aside.read_bytes() == newest and not path.exists()
    assert start(house, "prove") == (0, 3)
    assert not report_of(path).exists()
    assert start(house, "crash") == (-signal.SIGSEGV, 3)  # and from one that crashes, too, to none
    assert start(house, "end") == (0, 0)


def test_a_process_that_is_killed_or_ends_goes_on_from_the_newest(house):
    for how, code in (("kill", -signal.SIGKILL), ("kill", -signal.SIGKILL), ("end", 0), ("prove", 0)):
        assert start(house, how) == (code, 6)
    assert not report_of(house.site.checkpoint_path("ada")).exists()


def test_an_agent_proves_its_checkpoint_by_its_first_round(house, monkeypatch):
    path, seen = house.site.checkpoint_path("ada"), []
    end = Trial.end

    def ended(trial):
        seen.append((report_of(path).exists(), faulthandler.is_enabled()))
        end(trial)

    monkeypatch.setattr(Trial, "end", ended)
    assert run_agent(house.site, "ada", rounds=12) == 0
    assert seen[0] == (True, True) and len(seen) == 2  # in a round, and when the process ends
    assert not report_of(path).exists()
    assert AgentState.from_bytes(path.read_bytes()).about["round"] >= 12


def test_starting_anew_forgets_a_crash(house):
    report = report_of(house.site.checkpoint_path("ada"))
    report.write_bytes(b"Fatal Python error")
    set_checkpoint_aside(house.site, "ada")
    assert not report.exists()
