"""A neighbour with a valid place in a site floods an agent: ``python benchmarks/flood.py``, ten minutes by default.

Ada and cyd are processes over zenoh; bob is played here. He opens a session with ada like an honest agent, keeps it up,
and beside that sends her as fast as he can whatever might cost her something: greetings, calls, offers, decisions,
requests, statements that are too early, rubbish, in turns. Of ada it is written down how much memory she has, how many
bytes she answers, and how soon she stops when she is asked to, while the flood goes on; of cyd, how far she got.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from laconic.deploy.running.runner import make_agent, open_link
from laconic.deploy.settings.site import Site
from laconic.engine import Diverged
from laconic.protocol import Agent
from laconic.protocol.messages import Call, Confirm, Decide, Hello, Kind, Letter, Offer, Request, Statement
from laconic.transport.link import Connected, Received

SITE = """
[site]
clock = "slotted"
slot = {slot}
checkpoint = "state"
[model]
n_inputs = 2
n_frequencies = {frequencies}
bandwidth = 0.5
[learner]
algorithm = "qcodkla"
[network]
edges = [["ada", "bob"], ["ada", "cyd"]]
[source]
kind = "file"
path = "{{name}}.csv"
loop = true
inputs = ["a", "b"]
target = "y"
"""


def write_site(folder: Path, slot: float, frequencies: int) -> Site:
    """Settings and samples of three agents on free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    text = SITE.format(slot=slot, frequencies=frequencies)
    for name, port in zip(("ada", "bob", "cyd"), sockets, strict=True):
        text += f'[agents.{name}]\nlisten = "tcp/127.0.0.1:{port.getsockname()[1]}"\n'
        rows = np.random.default_rng(port.getsockname()[1]).uniform(size=(500, 2))
        lines = [f"{a},{b},{np.sin(4 * a) + b}" for a, b in rows]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
        port.close()
    (folder / "site.toml").write_text(text)
    return Site.read(folder / "site.toml")


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """One agent as a process, with its log in a file."""
    command = [sys.executable, "-m", "laconic", "agent", "--config", str(folder / "site.toml"), "--name", name]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen([*command, "--log", "json", "--progress", "1"], stderr=log, stdout=log)


def flood(bob: Agent, k: int) -> Iterator[bytes]:
    """A bit of everything, with the numbers of the session that there is."""
    end, wire, dialogue = bob._dialogue.ends["ada"], bob._wire, bob._dialogue
    zeros = np.zeros(bob.features.n_features)
    echo = dialogue.inc, k
    letters: list[Letter] = [
        Hello(k, end.tag),
        Call(k, k, bob.round, 1, 2, False),
        Offer(echo, dialogue.inc, k, bob.round, 1, end.tag, end.g, 0, 0, 0, 0, True, False, zeros, zeros),
        Decide(echo, k, k, bob.round, 1, end.g + 1, False, zeros, zeros),
        Confirm(end.tag),
        Request(end.tag, max(0, end.heard - 1)),
        Statement(end.tag, end.spoken + 2 + k % 9, 1, 1, 0, Kind.FULL, wire.model(zeros)),
    ]
    for letter in letters:
        yield wire.encode(letter, end.number, True)
    yield os.urandom(200)


def resident(process: subprocess.Popen[bytes]) -> float:
    """Memory of a process in MB."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


def rounds(folder: Path, name: str) -> int:
    """The round of an agent's last progress line."""
    lines = [json.loads(line) for line in (folder / f"{name}.log").read_text().splitlines() if '"progress"' in line]
    return int(lines[-1]["round"]) if lines else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--slot", type=float, default=0.05)
    parser.add_argument("--frequencies", type=int, default=250, help="a model has twice as many numbers (250)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        return measure(Path(name), arguments)


def measure(folder: Path, arguments: Any) -> int:
    """Start all, flood, look, stop."""
    site = write_site(folder, arguments.slot, arguments.frequencies)
    processes = {name: start(folder, name) for name in ("ada", "cyd")}
    ada, news, over, sent = processes["ada"], queue.SimpleQueue[Any](), threading.Event(), [0, 0]
    bob, link = make_agent(site, "bob"), open_link(site, "bob", news.put)
    lock = threading.Lock()

    def pour() -> None:
        k = 0
        while not over.is_set():
            k += 1
            with lock:
                words = list(flood(bob, k))
            for word in words:
                link.send(word, "ada")
                sent[0] += 1
                sent[1] += len(word)

    heard = 0
    try:
        thread = threading.Thread(target=pour, daemon=True)
        begin = due = 0.0
        while not begin or time.monotonic() - begin < arguments.seconds:
            time.sleep(arguments.slot)
            with lock:
                while not news.empty():
                    item = news.get()
                    if isinstance(item, Received):
                        heard += len(item.data)
                        bob.receive(item.data, item.sender)
                    elif isinstance(item, Connected) and item.name == "ada":
                        bob.connected("ada")
                if bob.ready:
                    try:
                        bob.idle()
                    except Diverged:  # by what he lies about his own edge: he begins anew
                        bob = make_agent(site, "bob")
                for message in bob.outgoing():
                    link.send(message.data, message.to)
            now = time.monotonic()
            if not begin and bob.edges["ada"] == "live" and rounds(folder, "cyd") > 20:
                begin = due = now
                heard = 0
                thread.start()
            if begin and now >= due:
                due += max(1.0, arguments.seconds / 12)
                row = now - begin, resident(ada), sent[0], heard, rounds(folder, "ada"), rounds(folder, "cyd")
                print(
                    "{:5.0f} s  {:6.1f} MB  {:>9,} sent  {:>12,} bytes back  rounds {:>6} {:>6}".format(*row),
                    flush=True,
                )
        asked = time.monotonic()
        ada.send_signal(signal.SIGTERM)
        code = ada.wait(60)
        print(
            f"{sent[0]:,} messages, {sent[1]:,} bytes; {heard:,} bytes back, {heard / arguments.seconds:,.0f} a second."
        )
        print(f"Asked to stop amid the flood, it ended with code {code} after {time.monotonic() - asked:.2f} s.")
        return 0 if code == 128 + signal.SIGTERM else 1
    finally:
        over.set()
        for process in processes.values():
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        link.close()


if __name__ == "__main__":
    sys.exit(main())
