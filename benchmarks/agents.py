"""What running agents achieve, shown rather than said: ``python benchmarks/agents.py speed|equal|kills|soak``.

speed   rounds per second of ten agents in lockstep, against bare zenoh on the same graph, in turns
equal   ten processes of ``laconic agent`` over zenoh, 2,000 rounds, compared with ``lc.simulate`` to the bit
kills   agents killed with -9 at random, with and without their disk: are they back, and replicas exact?
soak    agents at full speed for ten minutes: does memory grow, do replicas drift?

With ``--learner waverls`` the agents of equal and kills run waves; the first to be killed is the root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from network import PLAYERS, Seat, free_ports, lattice, race

import laconic as lc
from laconic.protocol.checkpoint import read_checkpoint
from laconic.waves import places

INPUTS = 5
FREQUENCIES = 50
_AT_MOST = 300  # seconds: ten processes that start at once on a busy machine take their time
LEARNER = {"rho": 0.5, "eta": 2.0, "alpha": 1.0, "beta": 0.995, "bits": 3}


class Agents:
    """An agent with the driver of ``laconic agent``, and samples that are at hand."""

    def __init__(self, seat: Seat) -> None:
        from laconic.deploy.running.driver import Driver
        from laconic.deploy.running.inbox import Inbox
        from laconic.deploy.running.metrics import Tally
        from laconic.deploy.running.outlet import Outlet
        from laconic.protocol.actions import Terms
        from laconic.protocol.paces import make_pacer
        from laconic.transport.zenoh import ZenohLink

        features = lc.RandomFeatures.gaussian(INPUTS, FREQUENCIES, bandwidth=1.0, seed=0)
        agent = lc.Agent(seat.name, list(seat.neighbours), features, lc.QCODKLA(**LEARNER), n_agents=seat.n_agents)
        news = Inbox()
        link = ZenohLink(seat.name, listen=seat.listen, neighbours=seat.neighbours, deliver=news.put)
        pacer = make_pacer(agent, Terms(patience=60.0, predictions=0.0, progress=1e9))
        outlet = Outlet(agent, link, Stream(seat.name), lambda: None, Tally())
        self._agent, self._link, self._news, self._rounds = agent, link, news, 0
        self._driver = Driver(pacer, outlet)
        self._driver.start(time.monotonic())
        self._driver.drive(news, lambda: pacer.wants_sample)

    def run(self, rounds: int) -> None:
        """Go through so many rounds with the others."""
        agent, last = self._agent, self._rounds + rounds
        self._rounds = last
        self._driver.drive(self._news, lambda: agent.round >= last)

    def close(self) -> None:
        """Leave."""
        self._link.close()


class Stream:
    """Samples without end."""

    ended = False

    def __init__(self, name: str) -> None:
        from laconic.deploy.sources.base import Reading

        rng = np.random.default_rng(int(name[-2:]))
        X = rng.uniform(size=(1000, INPUTS))
        self._samples = [Reading(x, float(np.sin(3 * x[0]) + x[1])) for x in X]
        self._next = 0
        self.counts = {"dropped": 0, "lost": 0}

    def start(self, wake: Any, skip: int) -> None:
        """They are at hand."""

    def next(self) -> Any:
        """The next one."""
        self._next += 1
        return self._samples[self._next % 1000]


def speed(options: argparse.Namespace) -> None:
    """Agents against bare zenoh."""
    players = {"bare zenoh": PLAYERS["bare zenoh"], "agents": Agents}
    speeds = race(players, lattice(), rounds=400, repeats=options.repeats)
    ratio = statistics.median(a / b for a, b in zip(speeds["agents"], speeds["bare zenoh"], strict=True))
    for name, values in speeds.items():
        print(f"{name:<12} {statistics.median(values):6.0f} rounds/s  ({min(values):.0f} to {max(values):.0f})")
    print(f"agents / bare zenoh: {ratio:.2f}, median of {options.repeats} turns")


TABLES = {
    "qcodkla": [
        "[learner]\nalgorithm = 'qcodkla'\nrho = 0.5\neta = 2.0",
        "[channel]\nalpha = 1.0\nbeta = 0.995\nbits = 3",
    ],
    "waverls": ["[learner]\nalgorithm = 'waverls'"],
}


def write_site(
    folder: Path,
    rounds: int,
    every: int = 20,
    loop: bool = False,
    learner: str = "qcodkla",
    graph: dict[str, list[str]] | None = None,
) -> Path:
    """A site whose samples are replayed from files; without a graph, of ten agents on twenty edges."""
    graph = graph or lattice()
    ports = dict(zip(graph, free_ports(len(graph)), strict=True))
    X, y = streams(rounds, len(graph))
    lines = [
        "[site]\nname = 'bench'",
        "clock = 'lockstep'",
        f"checkpoint = 'checkpoints'\ncheckpoint_every = {every}\npatience = 20.0",
        f"[model]\nkernel = 'gaussian'\nn_inputs = {INPUTS}\nn_frequencies = {FREQUENCIES}\nbandwidth = 1.0\nseed = 0",
        *TABLES[learner],
        f"[network]\nedges = {json.dumps(sorted({tuple(sorted((a, b))) for a, bs in graph.items() for b in bs}))}",
    ]
    for i, name in enumerate(graph):
        np.savetxt(folder / f"{name}.csv", np.column_stack([X[:, i], y[:, i]]), delimiter=",", fmt="%.17g")
        source = f"{{ kind = 'file', path = '{name}.csv', loop = {str(loop).lower()} }}"
        lines.append(f"[agents.{name}]\nlisten = 'tcp/127.0.0.1:{ports[name]}'\nsource = {source}")
    path = folder / "site.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def streams(rounds: int, n_agents: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """What the agents learn from."""
    X = np.random.default_rng(1).uniform(size=(rounds, n_agents, INPUTS))
    return X, np.sin(3 * X[..., 0]) + X[..., 1]


def start(site: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    """One agent, as its own process."""
    command = [sys.executable, "-m", "laconic", "agent", "--config", str(site), "--name", name, *more]
    with (site.parent / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def equal(options: argparse.Namespace) -> None:
    """Processes against the simulator."""
    from laconic.deploy.settings.site import Site

    with tempfile.TemporaryDirectory() as folder:
        path = write_site(Path(folder), options.rounds, every=10**9, learner=options.learner)
        site = Site.read(path)
        begun = time.perf_counter()
        processes = [
            start(path, name, "--rounds", str(options.rounds), "--trace", f"{folder}/{name}.npz") for name in site.names
        ]
        codes = [process.wait(600) for process in processes]
        seconds = time.perf_counter() - begun
        X, y = streams(options.rounds)
        trace = lc.simulate(site.learner(), site.features(), site.network(), X, y)
        same: dict[str, bool] = {}
        for i, name in enumerate(site.names):
            with np.load(f"{folder}/{name}.npz") as record:
                expected = {
                    "predictions": trace.predictions[:, i],
                    "sent": trace.sent[:, i],
                    "weights": trace.state.weights[i],
                }
                if options.learner == "waverls":
                    expected |= {"theta": trace.state.learner["theta"][i], "bits": trace.bits[:, i]}
                else:
                    expected["duals"] = trace.state.duals[i]
                for what, values in expected.items():
                    found = record[{"theta": "broadcast"}.get(what, what)].reshape(values.shape)
                    same[what] = same.get(what, True) and np.array_equal(found, values)
    print(f"{options.rounds} rounds of {len(codes)} processes in {seconds:.1f} s, exit codes {set(codes)}")
    print("equal to the simulator, to the bit:", ", ".join(f"{what} {yes}" for what, yes in same.items()))
    if not all(same.values()):
        raise SystemExit(1)


def kills(options: argparse.Namespace) -> None:
    """Kill -9, again and again."""
    from laconic.deploy.settings.site import Site

    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = write_site(Path(folder), 5000, loop=True, learner=options.learner)
        site = Site.read(path)
        more = ("--rounds", str(options.rounds))
        processes = {name: start(path, name, *more) for name in site.names}
        for name in site.names:
            wait_for(folder, name, "joined", 0)
        back: dict[bool, list[float]] = {True: [], False: []}
        for count in range(options.kills):
            time.sleep(dice.uniform(0.2, 1.0))
            name, disk = dice.choice(site.names), dice.random() < 0.5
            if options.learner == "waverls" and count == 0:
                name = site.names[next(place.agent for place in places(site.network()) if place.parent is None)]
            if processes[name].poll() is not None:
                raise SystemExit(f"the run was over after {count} kills: ask for more --rounds")
            size = Path(folder, f"{name}.log").stat().st_size
            os.kill(processes[name].pid, signal.SIGKILL)
            begun = time.monotonic()
            processes[name].wait()
            if not disk:
                for file in Path(folder, "checkpoints").glob(f"{name}*"):
                    file.unlink()
            processes[name] = start(path, name, *more)
            wait_for(folder, name, "joined", size)
            back[disk].append(time.monotonic() - begun)
        codes = {name: process.wait(600) for name, process in processes.items()}
        for disk, times in ((disk, times) for disk, times in back.items() if times):
            what = "with its disk" if disk else "without"
            print(f"{len(times)} kills {what}: back after {statistics.median(times):.2f} s, at most {max(times):.2f} s")
        look = examine_waves if options.learner == "waverls" else examine
        print(f"exit codes {set(codes.values())}; {look(Path(folder), site.names, options.rounds)}")


def examine_waves(folder: Path, names: tuple[str, ...], rounds: int) -> str:
    """Whether agents that have stopped know the same: from their last checkpoints."""
    states = [read_checkpoint(folder / "checkpoints" / f"{name}.checkpoint") for name in names]
    found = [state for state in states if state is not None]
    at = {state.about["round"] for state in found}
    waves = {int(state.arrays["wave.wave"][2]) for state in found}
    models = {state.arrays["wave.theta"].tobytes() + state.arrays["wave.information"].tobytes() for state in found}
    n = sum(state.about["waves"]["counts"]["counted"] for state in found)
    known = {state.about["waves"]["counts"]["n"] for state in found}
    finished = max(waves) if len(waves) == 1 else waves
    return (
        f"all in round {rounds if at == {rounds} else at}; all have finished wave {finished} "
        f"and know {len(models)} common state; {n:.0f} samples in it, counted as {sorted(known)}"
    )


def examine(folder: Path, names: tuple[str, ...], rounds: int) -> str:
    """Whether agents that have stopped believe of each other what is true: from their last checkpoints."""
    states = {}
    for name in names:
        state = read_checkpoint(folder / "checkpoints" / f"{name}.checkpoint")
        assert state is not None
        states[name] = state
    replicas = [
        np.array_equal(state.arrays["said"][number], states[other].arrays["said"][0])
        for state in states.values()
        for number, other in enumerate(state.about["neighbours"], 1)
    ]
    at = {state.about["round"] for state in states.values()}
    duals = np.array([state.arrays["duals"] for state in states.values()])
    error = np.abs(duals.sum(axis=0)).max() / np.abs(duals).max()
    return (
        f"all in round {rounds if at == {rounds} else at}; {replicas.count(False)} of {len(replicas)} replicas differ "
        f"from their origin; duals add up to {error:.1e} of the largest"
    )


def wait_for(folder: str, name: str, event: str, after: int) -> None:
    """Until an agent's log tells of an event, beyond position ``after``."""
    deadline = time.monotonic() + _AT_MOST
    while time.monotonic() < deadline:
        with open(f"{folder}/{name}.log", "rb") as log:  # noqa: PTH123
            log.seek(after)
            if f'"{event}"'.encode() in log.read():
                return
        time.sleep(0.01)
    raise SystemExit(f"{name} has not {event} within {_AT_MOST} s")


def soak(options: argparse.Namespace) -> None:
    """Full speed, for long."""
    from laconic.deploy.settings.site import Site

    with tempfile.TemporaryDirectory() as folder:
        path = write_site(Path(folder), 5000, loop=True, every=1000)
        site = Site.read(path)
        begun = time.monotonic()
        processes = {name: start(path, name, "--rounds", str(options.rounds)) for name in site.names}
        for name in site.names:
            wait_for(folder, name, "joined", 0)
        print("minutes  resident memory of all agents")
        while any(process.poll() is None for process in processes.values()):
            minutes = (time.monotonic() - begun) / 60
            memory = [resident(process.pid) for process in processes.values() if process.poll() is None]
            if len(memory) == len(processes):
                print(f"{minutes:7.1f}  {sum(memory):8.1f} MB  (largest {max(memory):.1f})", flush=True)
            for _ in range(60):
                time.sleep(0.5)
                if any(process.poll() is not None for process in processes.values()):
                    break
        for process in processes.values():
            process.wait(120)
        seconds = time.monotonic() - begun
        print(f"{options.rounds} rounds in {seconds:.0f} s; {examine(Path(folder), site.names, options.rounds)}")


def resident(pid: int) -> float:
    """Megabytes of memory in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "equal", "kills", "soak"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learner", choices=list(TABLES), default="qcodkla")
    options = parser.parse_args()
    {"speed": speed, "equal": equal, "kills": kills, "soak": soak}[options.what](options)


if __name__ == "__main__":
    main()
