"""A neighbour floods a real agent with every kind of message: it learns on, and stops when it is asked to."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from test_runner import NAMES, WAIT, House

from laconic.deploy.running.inbox import MOST_BYTES
from laconic.deploy.running.runner import make_agent, open_link
from laconic.protocol.messages import Call, Confirm, Decide, Farewell, Hello, Kind, Offer, Refused, Request, Statement

pytestmark = [pytest.mark.sockets, pytest.mark.slow]


def words_of(bob):
    """One of each kind, rightly addressed; and rubbish."""
    wire, zeros = bob._wire, np.zeros(bob.features.n_features)
    letters = [
        Hello(1, 2),
        Call(1, 1, 1, 1, 2, False),
        Offer((1, 1), 1, 1, 1, 1, 2, 1, 0, 0, 0, 0, True, False, zeros, zeros),
        Decide((1, 1), 1, 1, 1, 1, 1, False, zeros, zeros),
        Confirm(2),
        Request(2, 0),
        Farewell(2),
        Refused(1),
        *(Statement(2, 5, 1, 1, 0, kind, wire.model(zeros)) for kind in (Kind.FULL, Kind.DIFFERENCE)),
        Statement(2, 5, 1, 1, 0, Kind.SILENCE, b""),
    ]
    ada = bob._dialogue.ends["ada"].number
    return [*(wire.encode(letter, ada, True) for letter in letters), os.urandom(200), os.urandom(100_000)]


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc to see memory in")
def test_an_agent_flooded_with_every_kind_learns_on_and_heeds_sigterm(tmp_path):
    """(H5) Before, memory grew with every request, and a signal waited behind all of them."""
    house = House(tmp_path, NAMES[:2], site='clock = "slotted"\nslot = 0.05', source='kind = "file"\nloop = true')
    command = [sys.executable, "-m", "laconic", "agent", "--config", str(house.file), "--name", "ada", "--log", "json"]
    process = subprocess.Popen([*command, "--progress", "0.2"], stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(WAIT, process.kill)
    guard.start()
    here, over = threading.Event(), threading.Event()
    link = open_link(house.site, "bob", lambda news: here.set())
    words = words_of(make_agent(house.site, "bob"))

    def flood():
        while not over.is_set():
            for word in words:
                link.send(word, "ada")

    thread = threading.Thread(target=flood)
    try:
        assert here.wait(WAIT)
        lines = iter(process.stderr.readline, "")
        assert any('"progress"' in line for line in lines)
        thread.start()
        assert any('"messages dropped"' in line for line in lines)  # it cannot keep up
        before = resident(process.pid)
        for _ in range(10):
            assert any('"progress"' in line for line in lines)
        assert resident(process.pid) < before + 2 * MOST_BYTES  # what may wait, and what it is taken out into
        process.send_signal(signal.SIGTERM)
        assert any('"stopped"' in line for line in lines)
        assert process.wait(WAIT) == 128 + signal.SIGTERM  # while the flood goes on
    finally:
        over.set()
        if thread.is_alive():
            thread.join()
        guard.cancel()
        process.kill()
        process.wait()
        process.stderr.close()
        link.close()
