"""A hundred processes on one machine, for ten minutes: ``python benchmarks/site.py --agents 100 --minutes 10``.

Regions of ten agents, each of which hears its next two on either side; neighbouring regions share two edges. All are
started by ``laconic up`` on slots, so that what they take of the machine is theirs and not the clock's. Every ten
seconds their memory and processor time is read; at the end they are stopped, and their last checkpoints compared:
each replica with what its origin said, each share with that at the other end, and the error with that of the simulator
after as many rounds, of least squares by each agent alone, and at a centre.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from agents import streams, write_site
from chaos import errors, examine
from network import lattice

import laconic as lc
from laconic.deploy.settings.site import Site
from laconic.protocol.checkpoint import AgentState, read_checkpoint

REGION = 10
ROWS = 2000  # of each agent's file, which is replayed without end


def regions(n_agents: int) -> dict[str, list[str]]:
    """A ring of regions with two edges between each pair of neighbours."""
    n_regions = n_agents // REGION
    graph = {
        f"r{r:02}-{name}": [f"r{r:02}-{other}" for other in others]
        for r in range(n_regions)
        for name, others in lattice(REGION).items()
    }
    names = list(graph)
    for r in range(n_regions if n_regions > 1 else 0):
        for mine, theirs in ((3, 0), (6, 7)):
            one, two = names[r * REGION + mine], names[(r + 1) % n_regions * REGION + theirs]
            graph[one].append(two)
            graph[two].append(one)
    return {name: sorted(set(others)) for name, others in graph.items()}


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def taken(pids: list[int]) -> tuple[float, float]:
    """(memory in MB, what is shared counted once; processor seconds) of some processes."""
    memory = seconds = 0.0
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        memory += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return memory, seconds


def watch(up: subprocess.Popen[bytes], n_agents: int, minutes: float) -> None:
    """Tell every ten seconds what the site takes, from when all its processes are there."""
    begun = time.monotonic()
    while len(children(up.pid)) < n_agents:
        if up.poll() is not None:
            raise SystemExit(f"the site ended by itself, with {up.returncode}")
        time.sleep(0.5)
    print(f"{n_agents} processes after {time.monotonic() - begun:.0f} s", flush=True)
    begun, (_, before), at = time.monotonic(), taken(children(up.pid)), time.monotonic()
    while time.monotonic() < begun + 60 * minutes:
        time.sleep(10)
        memory, seconds = taken(children(up.pid))
        now = time.monotonic()
        share = (seconds - before) / (now - at)
        print(
            f"{now - begun:5.0f} s  {memory:6.0f} MB  {share:.2f} of a core  load {os.getloadavg()[0]:.1f}", flush=True
        )
        before, at = seconds, now


def compared(states: dict[str, AgentState], site: Site) -> None:
    """What the checkpoints say, beside what could have been."""
    rounds = [state.about["round"] for state in states.values()]
    n_replicas, wrong, cancelled, off = examine(states, site)
    print(f"rounds {min(rounds)} to {max(rounds)}; {wrong} of {n_replicas} replicas wrong; "
          f"{cancelled} shares cancel to {off:.1e}")  # fmt: skip
    length = int(np.median(rounds))
    X, y = streams(ROWS, len(site.names))
    times = -(-length // ROWS)
    X, y = np.concatenate([X] * times)[:length], np.concatenate([y] * times)[:length]
    features = site.features()
    runs = {
        "simulated": lc.simulate(site.learner(), features, site.network(), X, y).state.weights,
        "least squares, each alone": lc.simulate(
            lc.WaveRLS().alone(length), features, site.network(), X, y
        ).state.weights,
    }
    phi = features(X.reshape(-1, X.shape[-1]))
    runs["least squares at a centre"] = np.linalg.solve(phi.T @ phi + 0.05 * np.eye(phi.shape[1]), phi.T @ y.ravel())[
        None
    ]
    print(f"MSE {errors(states, site).mean():.3e}", end="")
    for title, weights in runs.items():
        models = {str(i): AgentState({}, {"weights": row}) for i, row in enumerate(weights)}
        print(f"; {title} {errors(models, site).mean():.3e}", end="")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100, help="a multiple of ten")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--slot", type=float, default=1.0, help="seconds of a slot")
    parser.add_argument("--learner", choices=["qcodkla", "waverls"], default="qcodkla")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_site(folder, ROWS, every=100, loop=True, learner=options.learner, graph=regions(options.agents))
        path.write_text(path.read_text().replace("'lockstep'", f"'slotted'\nslot = {options.slot}\nlease = 10.0"))
        site = Site.read(path)
        command = [sys.executable, "-m", "laconic", "up", str(path), "--log", "json", "--predictions", "0"]
        with (folder / "up.log").open("wb") as log:
            up = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            watch(up, options.agents, options.minutes)
            up.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            code = up.wait(120)
            print(f"stopped within {time.monotonic() - begun:.1f} s, exit code {code}")
        finally:
            if up.poll() is None:
                up.kill()
                up.wait()
        text = (folder / "up.log").read_text(errors="replace")
        told = {word: text.count(f'"{word}"') for word in ("alert", "given up", "restarted")}
        print("in the log:", ", ".join(f"{word} {count}" for word, count in told.items()))
        states = {agent: read_checkpoint(folder / "checkpoints" / f"{agent}.checkpoint") for agent in site.names}
        compared({agent: state for agent, state in states.items() if state is not None}, site)


if __name__ == "__main__":
    main()
