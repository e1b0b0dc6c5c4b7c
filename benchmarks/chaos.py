"""Real agents over zenoh, mistreated: ``python benchmarks/chaos.py [kills|wipe|twice|hostile ...]``.

kills    100 times kill -9, a third of them of two agents within a slot, with their disk or without
wipe     every agent killed and every checkpoint deleted, then an old checkpoint of one agent turns up
twice    a second process of the same name, with a memory of its own, for a while
hostile  a member with the right settings that says hostile things, without end

Each on slots and in lockstep, with a checkpoint every 100 rounds. At the end all are stopped, and their last
checkpoints are compared: each replica with what its origin said, each share with that at the other end, and the error
of each model with that of a run of the simulator in which nothing happened. The error is that of the function to be
learned, at 2,000 points that nobody learned from; labels have no noise, so it falls for as long as there are samples.
Who is dead learns from none: the simulator is asked after as many rounds, and after as many samples.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from agents import INPUTS, start, streams, wait_for, write_site
from network import free_ports

import laconic as lc
from laconic.deploy.settings.site import Site
from laconic.protocol.checkpoint import AgentState, read_checkpoint
from laconic.protocol.messages import Kind

EVERY = 100


class Place:
    """A site of ten agents, each a process."""

    def __init__(self, folder: Path, clock: str, robust: bool, slot: float) -> None:
        self.folder, self.clock = folder, clock
        self.path = write_site(folder, 5000, every=EVERY, loop=True)
        text = self.path.read_text()
        if clock == "slotted":
            text = text.replace("clock = 'lockstep'", f"clock = 'slotted'\nslot = {slot}")
        if robust:
            text = text.replace("eta = 2.0", "eta = 2.0\nrobust = 'clip'")
        self.path.write_text(text)
        self.site = Site.read(self.path)
        self.names = self.site.names
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._died: dict[str, float] = {}  # in which round
        self.missed = 0.0  # rounds of all agents while they were dead

    def start(self, *names: str) -> None:
        """Start agents, and wait until they are among the others."""
        sizes = {name: self._log(name).stat().st_size if self._log(name).exists() else 0 for name in names}
        for name in names:
            self.processes[name] = start(self.path, name, "--progress", "1")
        for name in names:
            wait_for(str(self.folder), name, "joined", sizes[name])
            if name in self._died:
                self.missed += max(0.0, self._lines(name, "joined")[-1]["round"] - self._died.pop(name))

    def kill(self, *names: str) -> None:
        """End agents without a warning."""
        for name in names:
            *_, before, last = [{"round": 0}, {"round": 0}, *self._lines(name, "progress")]
            since = time.time() - self._log(name).stat().st_mtime  # it reports every second
            self._died[name] = last["round"] + min(since, 1.0) * max(0, last["round"] - before["round"])
            self.processes[name].send_signal(signal.SIGKILL)
        for name in names:
            self.processes[name].wait()

    def forget(self, name: str) -> None:
        """Delete an agent's checkpoints."""
        for file in (self.folder / "checkpoints").glob(f"{name}*"):
            file.unlink()

    def stop(self, names: tuple[str, ...]) -> dict[str, AgentState]:
        """Stop all at once: the last checkpoints."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        for process in self.processes.values():
            process.wait(60)
        print(f"  stopped within {time.monotonic() - begun:.1f} s", end="; ")
        states = {}
        for name in names:
            state = read_checkpoint(self.folder / "checkpoints" / f"{name}.checkpoint")
            assert state is not None
            states[name] = state
        return states

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()

    def logged(self, what: str) -> int:
        """How many log lines of all agents hold these words."""
        return sum(self._log(name).read_text(errors="replace").count(what) for name in self.names)

    def learned(self, name: str) -> int:
        """Rounds of an agent's last process, as its last report says."""
        report = self._report(name)
        return int(report["sends"] + report["censored"])

    def wait(self, rounds: int) -> None:
        """Until some agent has gone through so many rounds more: in lockstep then all have."""
        name = self.names[1]
        last = self._report(name)["round"] + rounds
        while self._report(name)["round"] < last:
            calm(0.5)

    def _report(self, name: str) -> dict[str, Any]:
        return self._lines(name, "progress")[-1]

    def _lines(self, name: str, event: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log(name).read_text().splitlines() if f'"{event}"' in line]

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def calm(seconds: float) -> None:
    """Nothing happens: there is no event to await in that."""
    time.sleep(seconds)


def kills(place: Place, options: argparse.Namespace) -> tuple[str, ...]:
    """Kill -9, of one or of two agents that are neighbours; some lose their disk, some both."""
    dice, done = random.Random(options.seed), 0
    while done < options.kills:
        calm(dice.uniform(0.1, 0.6))
        edge = dice.choice(place.site.edges)
        victims = edge if dice.random() < 1 / 3 else edge[:1]
        place.kill(*victims)
        for name in victims:
            if dice.random() < 0.5:
                place.forget(name)
        place.start(*victims)
        done += len(victims)
    print(f"  {done} kills", end="; ")
    return place.names


def wipe(place: Place, options: argparse.Namespace) -> tuple[str, ...]:
    """The whole site loses its memory; then one agent finds an old checkpoint."""
    calm(8)
    old = {name: (place.folder / "checkpoints" / f"{name}.checkpoint").read_bytes() for name in place.names}
    calm(5)
    place.kill(*place.names)
    for name in place.names:
        place.forget(name)
    place.start(*place.names)
    calm(4)
    one, other = place.names[0], place.names[3]
    for name in (one, other):
        place.kill(name)
        place.forget(name)
        (place.folder / "checkpoints" / f"{name}.checkpoint").write_bytes(old[name])
        place.start(name)
        calm(2)
    return place.names


def twice(place: Place, options: argparse.Namespace) -> tuple[str, ...]:
    """A second process goes by the name of the first agent, on another port and with a disk of its own."""
    name = place.names[-1]  # who dials the others; who is dialled is found where it always was
    calm(5)
    folder = place.folder / "second"
    folder.mkdir()
    shutil.copy(place.folder / f"{name}.csv", folder)
    (port,) = free_ports(1)
    endpoint = place.site.endpoint(name)
    text = place.path.read_text().replace(endpoint, f"tcp/127.0.0.1:{port}")
    (folder / "site.toml").write_text(text)
    for _ in range(2):
        second = start(folder / "site.toml", name)
        wait_for(str(folder), name, "started", 0)
        calm(8)
        second.kill()
        second.wait()
        calm(2)
    fenced = place.logged("two of one name") + (folder / f"{name}.log").read_text().count("two of one name")
    print(f"  alerts that two go by one name: {fenced}", end="; ")
    calm(45)  # the others lose their patience with the second one, and the first is served again
    return place.names


def hostile(place: Place, options: argparse.Namespace) -> tuple[str, ...]:
    """The last agent is one that lies."""
    liar = place.names[-1]
    calm(3)
    place.kill(liar)
    command = [sys.executable, str(Path(__file__).with_name("liar.py")), str(place.path), liar]
    with (place.folder / f"{liar}.log").open("ab") as log:
        place.processes[liar] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    calm(options.hostile)
    print(f"  quarantines logged: {place.logged('quarantined')}", end="; ")
    return place.names[:-1]


SHOWS = {"kills": kills, "wipe": wipe, "twice": twice, "hostile": hostile}


class End:
    """One end of an edge, as two checkpoints tell of it, after it has heard all that the other end has said."""

    def __init__(self, site: Site, state: AgentState, other: str, said: AgentState) -> None:
        name = state.about["name"]
        mine, theirs = state.about["neighbours"][other], said.about["neighbours"][name]
        at = list(state.about["neighbours"]).index(other)
        self.hat, self.share, self.k, self.spoken = (
            state.arrays["said"][0],
            state.arrays["shares"][at].copy(),
            mine["k"],
            mine["spoken"],
        )
        missed = [entry for entry in theirs["log"] if entry[0] > mine["heard"]]
        # Agents stop where they are: what the other has still said is in its checkpoint.
        self.comparable = mine["tag"] == theirs["tag"] and theirs["spoken"] - mine["heard"] == len(missed)
        listener = lc.Agent(name, [other], site.features(), site.learner(), n_agents=len(site.names), clock=site.clock)
        self._ledger = listener._ledger
        self._ledger.said(1)[:] = state.arrays["said"][1 + at]
        self.replica = self._ledger.said(1)
        for _, label, _, _, kind, data in missed if self.comparable else []:
            content = listener._wire._read_statement(Kind(kind), bytes.fromhex(data))
            before = self.replica.copy()
            if content is not None:
                assert self._ledger.hear(1, Kind(kind), *content)
            if site.clock == "slotted":  # what is late is worked in, and the edge's clock follows the faster end
                self.share -= (self.k + 1 - label) * (self.replica - before)
                self.catch_up(max(self.k, label - 1))

    def catch_up(self, k: int) -> None:
        """End the rounds that the other has ended."""
        self.share += (k - self.k) * (self.hat - self.replica)
        self.k = k


def examine(states: dict[str, AgentState], site: Site) -> tuple[int, int, int, float]:
    """(replicas compared, of which wrong, shares compared, by how much they do not cancel, of the largest)."""
    compared = wrong = cancelled = 0
    worst = largest = 0.0
    for one, two in site.edges:
        if one not in states or two not in states:
            continue
        a, b = End(site, states[one], two, states[two]), End(site, states[two], one, states[one])
        for end, other in ((a, b), (b, a)):
            compared += end.comparable
            wrong += end.comparable and not np.array_equal(end.replica, other.hat)
        near = a.spoken == b.spoken if site.clock == "lockstep" else a.k == b.k
        if a.comparable and b.comparable and near:
            a.catch_up(max(a.k, b.k))
            b.catch_up(max(a.k, b.k))
            cancelled += 1
            worst = max(worst, float(np.abs(a.share + b.share).max()))
            largest = max(largest, float(np.abs(a.share).max()))
    return compared, wrong, cancelled, worst / max(largest, 1e-300)


def errors(states: dict[str, AgentState], site: Site) -> np.ndarray:
    """Mean square error of each agent's model against the function to be learned."""
    X = np.random.default_rng(99).uniform(size=(2000, INPUTS))
    target = np.sin(3 * X[:, 0]) + X[:, 1]
    phi = site.features()(X)
    return np.array([np.mean((phi @ state.arrays["weights"] - target) ** 2) for state in states.values()])


def faultless(site: Site, rounds: int) -> float:
    """The same, of the simulator after so many rounds without any fault: the mean over agents.

    And over eight moments of the last 200 rounds: from one to the next it goes up and down by 5%.
    """
    X, y = streams(5000)
    times, found = -(-rounds // 5000), []
    X, y = np.concatenate([X] * times), np.concatenate([y] * times)
    for end in range(rounds, max(rounds - 200, 0), -25):
        trace = lc.simulate(site.learner(), site.features(), site.network(), X[:end], y[:end])
        state = {str(i): AgentState({}, {"weights": w}) for i, w in enumerate(trace.state.weights)}
        found.append(errors(state, site).mean())
    return float(np.mean(found))


def show(what: str, clock: str, options: argparse.Namespace) -> bool:
    """One kind of mistreatment on one clock; whether all held."""
    print(f"{what}, {clock}:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), clock, options.robust, options.slot)
        try:
            place.start(*place.names)
            begun = time.monotonic()
            honest = SHOWS[what](place, options)
            calm(options.calm)
            place.wait(options.rounds)
            seconds = time.monotonic() - begun
            states = place.stop(honest)
            rounds = [state.about["round"] for state in states.values()]
            # Of a site that was wiped, what came before was forgotten.
            learned = place.learned(place.names[1]) if what == "wipe" else int(np.median(rounds))
        finally:
            place.close()
            if options.keep:
                shutil.copytree(folder, options.keep / f"{what}-{clock}", dirs_exist_ok=True)
    compared, wrong, cancelled, off = examine(states, place.site)
    mse, base = errors(states, place.site), faultless(place.site, max(learned, 1))
    missed = place.missed / len(place.names)
    alive = faultless(place.site, max(learned - round(missed), 1))
    edges = [known["stage"] for s in states.values() for o, known in s.about["neighbours"].items() if o in states]
    print(f"rounds {min(rounds)} to {max(rounds)} in {seconds:.0f} s")
    print(
        f"  {wrong} of {compared} replicas wrong ({len(edges)} ends of edges); {cancelled} shares cancel to {off:.1e}; "
        f"MSE {mse.mean():.3e}, at most {mse.max():.3e}; without faults {base:.3e}: {mse.mean() / base:.3f}, "
        f"after as many samples {mse.mean() / alive:.3f} ({missed:.0f} rounds missed by an agent)",
        flush=True,
    )
    return wrong == 0 and compared > 0 and off < 1e-8 and mse.mean() < 1.1 * alive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*SHOWS, []], default=list(SHOWS))
    parser.add_argument("--clock", choices=["lockstep", "slotted"], help="only this one")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--calm", type=float, default=20.0, help="seconds without faults, before all is examined")
    parser.add_argument("--rounds", type=int, default=0, help="and rounds after that, for a machine that is busy")
    parser.add_argument("--hostile", type=float, default=20.0, help="seconds with a hostile member")
    parser.add_argument("--slot", type=float, default=0.05, help="seconds of a slot; more, on a machine that is busy")
    parser.add_argument("--robust", action="store_true", help="with robust mixing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder to leave logs and checkpoints in")
    options = parser.parse_args()
    clocks = [options.clock] if options.clock else ["lockstep", "slotted"]
    held = [show(what, clock, options) for what in options.what for clock in clocks]
    if not all(held):
        raise SystemExit("not all held")


if __name__ == "__main__":
    main()
