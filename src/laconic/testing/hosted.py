"""A site with one agent on each host: its settings, its data, and its processes."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from laconic._validate import Array
from laconic.testing.hosts import Hosts

INPUTS = 5
FREQUENCIES = 50
SAMPLES = 4000
PORT = 7447


def graph(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """A ring with chords to the opposite side."""
    n = len(names)
    pairs = [(names[k], names[(k + 1) % n]) for k in range(n)]
    if n > 3:
        pairs += [(names[k], names[(k + n // 2) % n]) for k in range(0, n, 2)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


def labels(k: int) -> tuple[Array, Array]:
    """What the agent of number ``k`` learns from, again and again."""
    X = np.random.default_rng((7, k)).uniform(size=(SAMPLES, INPUTS))
    noise = np.random.default_rng((8, k)).normal(scale=0.1, size=SAMPLES)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + noise


def write_site(folder: Path, hosts: Hosts, *, slot: float) -> Path:
    """The file of a site with one agent on each host."""
    lines = [
        f"[site]\nname = 'hosts'\nclock = 'slotted'\nslot = {slot}",
        "checkpoint = 'checkpoints'\ncheckpoint_every = 1\npatience = 20.0",
        f"[model]\nkernel = 'gaussian'\nn_inputs = {INPUTS}\nn_frequencies = {FREQUENCIES}\nbandwidth = 1.0\nseed = 0",
        "[learner]\nalgorithm = 'qcodkla'\nrho = 0.5\neta = 5.0",
        "[channel]\nalpha = 1.0\nbeta = 0.99\nbits = 3",
        f"[network]\nedges = {json.dumps(graph(hosts.names))}",
    ]
    for k, name in enumerate(hosts.names):
        np.savetxt(folder / f"{name}.csv", np.column_stack(labels(k)), delimiter=",", fmt="%.17g")
        source = f"{{ kind = 'file', path = '{name}.csv', loop = true }}"
        lines.append(f"[agents.{name}]\nlisten = 'tcp/{hosts.addresses[name]}:{PORT}'\nsource = {source}")
    path = folder / "site.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@contextlib.contextmanager
def agents(hosts: Hosts, site: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """An agent on each host; stopped together at the end, and killed if that does not help."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in hosts.names:
            words = ["-m", "laconic", "agent", "--config", str(site), "--name", name]
            words += ["--trace", str(site.parent / f"{name}.npz")]
            with (site.parent / f"{name}.log").open("ab") as log:
                processes[name] = subprocess.Popen(
                    hosts.command(name, sys.executable, *words), stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )
        yield processes
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for process in processes.values():
            process.wait(120)
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
