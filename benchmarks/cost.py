"""What learning costs: by the paper's account, in bytes of payload, and on the wire. ``python benchmarks/cost.py``.

Agents on a ring, over zenoh on TCP, each a process, all in a network namespace of their own (so as root, on Linux):
what its loopback device counts, from the IP header on, is theirs alone. All learners see the same stream for the same
number of rounds: ODKLA, which sends 32 bits a number in every round; ODKLA with 3 bits a number; and QC-ODKLA, which
also says nothing when there is little to say. Whether that pays depends on the clock: in lockstep somebody who has
nothing to say has to say so. Each clock goes at the pace of ``--slot``, and lockstep also as fast as it can.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from network import WAIT, free_ports
from wire import header_bytes, wire_cost

import laconic as lc
from laconic.testing.hosts import Hosts, stop_in_order

INPUTS = 5
FREQUENCIES = 50
STEPS = {"rho": 0.5, "eta": 2.0}
LEARNERS: dict[str, tuple[str, dict[str, float]]] = {
    "ODKLA": ("odkla", {}),
    "3 bits": ("qcodkla", {"alpha": 0.0, "beta": 0.5, "bits": 3}),
    "QC-ODKLA": ("qcodkla", {"alpha": 2.0, "beta": 0.995, "bits": 3}),
}
CLOCKS = ("lockstep, full speed", "lockstep", "slotted")
_INSIDE = "--inside"


class Sniffer:
    """Sorts what goes over the loopback device, with its headers: data, signs of life, bare acknowledgements."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self._socket.bind(("lo", 0x0800))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
        self._socket.settimeout(0.1)
        self.bytes, self.packets = dict.fromkeys(self.KINDS, 0), dict.fromkeys(self.KINDS, 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    KINDS = ("data", "signs of life", "acknowledgements")
    _SIGN = 3  # bytes: zenoh's length of two, and the one that says "still here"

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                packet = self._socket.recv(64)
            except TimeoutError:
                continue
            length, header = int.from_bytes(packet[2:4], "big"), 4 * (packet[0] & 15)
            payload = length - header - 4 * (packet[header + 12] >> 4)
            kind = self.KINDS[0 if payload > self._SIGN else 1 if payload else 2]
            self.bytes[kind] += length
            self.packets[kind] += 1

    def close(self) -> None:
        """Stop, once all that was sent has been seen."""
        time.sleep(0.2)
        self._over.set()
        self._thread.join()
        self._socket.close()


def counted() -> int:
    """Bytes that went over the loopback device so far, IP headers included."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def write_site(folder: Path, options: argparse.Namespace, learner: str, clock: str) -> Path:
    """The file of a ring of agents."""
    algorithm, channel = LEARNERS[learner]
    names = [f"agent{k:02}" for k in range(options.agents)]
    kind = clock.partition(",")[0]
    rate = f", rate = {1 / options.slot}" if clock == "lockstep" else ""
    edges = [sorted((names[k], names[(k + 1) % len(names)])) for k in range(len(names))]
    lines = [
        f"[site]\nname = 'cost'\nclock = '{kind}'\nslot = {options.slot}\npatience = 60.0",
        f"[model]\nn_inputs = {INPUTS}\nn_frequencies = {FREQUENCIES}\nbandwidth = 1.0\nseed = 0\ndtype = 'float32'",
        f"[learner]\nalgorithm = '{algorithm}'\n" + "\n".join(f"{key} = {value}" for key, value in STEPS.items()),
        "[channel]\n" + "\n".join(f"{key} = {value}" for key, value in channel.items()),
        f"[network]\nedges = {json.dumps(edges)}",
    ]
    X = np.random.default_rng(1).uniform(size=(options.rounds, len(names), INPUTS))
    y = np.sin(3 * X[..., 0]) + X[..., 1]
    for k, (name, port) in enumerate(zip(names, free_ports(len(names)), strict=True)):
        np.savetxt(folder / f"{name}.csv", np.column_stack([X[:, k], y[:, k]]), delimiter=",", fmt="%.17g")
        source = f"{{ kind = 'file', path = '{name}.csv', loop = true{rate} }}"
        lines.append(f"[agents.{name}]\nlisten = 'tcp/127.0.0.1:{port}'\nsource = {source}")
    path = folder / "site.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def live(path: Path, name: str, rounds: int, pipe: Connection) -> None:
    """One agent, with the parts of ``laconic agent``: it meets its neighbours, waits for a word, and learns."""
    from laconic.deploy.running.inbox import Inbox
    from laconic.deploy.running.runner import assemble, make_agent, warm
    from laconic.deploy.settings.site import Site
    from laconic.protocol.actions import Terms

    site = Site.read(path)
    warm(site)
    news, squares = Inbox(), []

    class Recorder:
        def add(self, info: Any) -> None:
            squares.append((info.prediction - info.label) ** 2)

    agent = make_agent(site, name)
    terms = Terms(patience=60.0, rounds=rounds, predictions=0.0, progress=1e9)
    stack = ExitStack()
    driver = assemble(stack, site, agent, terms, news.put, recorder=Recorder())
    pacer = driver.pacer
    driver.start(time.monotonic())
    driver.drive(news, lambda: agent.ready)
    pipe.send("ready")
    while not pipe.poll():  # neighbours may still have to ask something
        driver.feed(news.take(0.02), time.monotonic())
        driver.outlet.do(pacer.actions())
    pipe.recv()
    before, now = agent.counters, time.monotonic()
    pacer._begin(now)  # slots are laid out from here
    driver.drive(news, lambda: pacer.over or len(squares) >= rounds)  # whoever measures waits for the others
    after = agent.counters
    numbers = {key: after[key] - before[key] for key in after if key != "refusals"}
    pipe.send({**numbers, "squared_error": float(np.nansum(squares[-200:])), "labels": len(squares[-200:])})
    pipe.recv()
    stack.close()


def measure(options: argparse.Namespace, learner: str, clock: str) -> dict[str, Any]:
    """One row of the table."""
    context = multiprocessing.get_context("spawn")
    team: list[tuple[Any, Connection]] = []

    def answers() -> list[Any]:
        found = []
        for _, pipe in team:
            if not pipe.poll(WAIT + options.rounds * options.slot):
                raise RuntimeError("an agent does not answer")
            found.append(pipe.recv())
        return found

    with tempfile.TemporaryDirectory() as folder:
        path = write_site(Path(folder), options, learner, clock)
        try:
            for k in range(options.agents):
                here, there = context.Pipe()
                process = context.Process(target=live, args=(path, f"agent{k:02}", options.rounds, there), daemon=True)
                process.start()
                there.close()
                team.append((process, here))
            answers()
            time.sleep(1.0)
            before, begun = counted(), time.perf_counter()
            time.sleep(options.idle)
            idle = (counted() - before) / (time.perf_counter() - begun) / options.agents  # as many links as agents
            sniffer = Sniffer()
            before, begun = counted(), time.perf_counter()
            for _, pipe in team:
                pipe.send("go")
            told = answers()
            seconds, wire = time.perf_counter() - begun, counted() - before
            sniffer.close()
            for _, pipe in team:
                pipe.send("enough")
            for process, _ in team:
                process.join(20.0)
        finally:
            for process, _ in team:
                process.kill()
    total = {key: sum(one[key] for one in told) for key in told[0]}
    spoken = total["sends"] + total["censored"]
    return {
        "learner": learner,
        "clock": clock,
        "seconds": seconds,
        "rounds": spoken / options.agents,
        "censored": total["censored"] / spoken,
        "bits": total["bits"],
        "messages": total["messages_out"],
        "payload": total["bytes_out"],
        "wire": wire,
        "wire_by_kind": sniffer.bytes,  # adds up to a little more: it listens a moment longer
        "packets_by_kind": sniffer.packets,
        "repairs": {key: total[key] for key in ("requests", "repeats", "snapshots")},
        "idle_link": idle,
        "mean_square_error": total["squared_error"] / total["labels"],
    }


def message_sizes() -> dict[str, int]:
    """Bytes of payload of what agents say after some rounds."""
    features = lc.RandomFeatures.gaussian(INPUTS, FREQUENCIES, bandwidth=1.0, seed=0)
    sizes = {}
    never = lc.QCODKLA(**STEPS, alpha=1e9, beta=0.9999, bits=3)
    for what, learner in (
        ("marker of silence", never),
        ("difference, 3 bits", lc.QCODKLA(**STEPS, alpha=0.0, beta=0.5, bits=3)),
        ("dense, float32", lc.ODKLA(**STEPS)),
    ):
        pair = [
            lc.Agent(name, [other], features, learner, n_agents=2, dtype="float32")
            for name, other in (("a", "b"), ("b", "a"))
        ]
        for turn in range(310):
            said = []
            for agent in pair:
                if turn >= 10:  # by then they know each other
                    agent.learn(np.full(INPUTS, 0.5), 1.0)
                said.append(agent.outgoing())
            for agent, messages in zip(pair, said[::-1], strict=True):
                for message in messages:
                    agent.receive(message.data)
        sizes[what] = len(said[0][-1].data)
    return sizes


def message_table() -> list[dict[str, Any]]:
    """What single messages cost on one link."""
    rows = []
    for what, size in message_sizes().items():
        lockstep, _ = wire_cost(size, rate=200.0, both_ways=True)
        alone, idle = wire_cost(size, rate=10.0, both_ways=False)
        rows.append({"message": what, "payload": size, "lockstep": lockstep, "alone": alone, "idle_link": idle})
    return rows


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def tell(rows: list[dict[str, Any]], messages: list[dict[str, Any]], degree: int) -> None:
    """All of it, as tables in Markdown."""
    head = ["clock", "learner", "censored", "bits (paper)", "on links (bytes)", "messages", "payload (bytes)"]
    head += ["on the wire (bytes)", "of which ACKs", "signs of life", "per message", "error"]
    body = []
    for row in rows:
        kinds = row["wire_by_kind"]
        cells = [row["clock"], row["learner"], f"{row['censored']:.0%}", f"{row['bits']:,}"]
        cells += [f"{row['bits'] * degree / 8:,.0f}", f"{row['messages']:,}", f"{row['payload']:,}", f"{row['wire']:,}"]
        cells += [f"{kinds['acknowledgements']:,}", f"{kinds['signs of life']:,}"]
        cells += [f"{row['wire'] / row['messages']:.0f}", f"{row['mean_square_error']:.4f}"]
        body.append(cells)
    print(markdown(head, body))
    print("\n'On links' is the paper's account with each broadcast counted once for every neighbour that it goes to.\n")
    head = ["message", "payload (bytes)", "on the wire, lockstep", "on the wire, alone"]
    cells = [[m["message"], str(m["payload"]), f"{m['lockstep']:.0f}", f"{m['alone']:.0f}"] for m in messages]
    print(markdown(head, cells))
    idle = float(np.mean([m["idle_link"] for m in messages]))
    print(
        f"\nA link on which nobody speaks costs {idle:.0f} bytes a second, in signs of life. They stop while somebody "
        f"speaks\nfour times a second or more; of slots that are slower, silence saves less than these cost.\n"
    )
    at = {(row["clock"], row["learner"]): row for row in rows}
    for clock in CLOCKS:
        whole, quantized, both = (at[clock, learner] for learner in LEARNERS)
        saved, account = 1 - both["wire"] / quantized["wire"], 1 - both["bits"] / quantized["bits"]
        print(
            f"{clock}: censoring {both['censored']:.0%} saves {saved:.0%} of the bytes on the wire "
            f"({account:.0%} by the paper's account); QC-ODKLA takes {both['wire'] / whole['wire']:.0%} of ODKLA's "
            f"({both['bits'] / whole['bits']:.0%})"
        )


def inside(options: argparse.Namespace) -> None:
    """All of it, in the namespace."""
    rows = []
    for clock in CLOCKS:
        for learner in LEARNERS:
            rows.append(measure(options, learner, clock))
            print(f"{clock}, {learner}: {rows[-1]['wire']:,} bytes in {rows[-1]['seconds']:.1f} s", file=sys.stderr)
    messages = message_table()
    tell(rows, messages, degree=2)
    asked = {"agents": options.agents, "edges": options.agents, "rounds": options.rounds, "slot": options.slot}
    model = {"inputs": INPUTS, "frequencies": FREQUENCIES, "dtype": "float32", **STEPS, "learners": LEARNERS}
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {**machine, **asked, "model": model, "header": header_bytes(), "rows": rows, "messages": messages}
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwritten to {options.out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=5, help="on a ring")
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--slot", type=float, default=0.05, help="seconds of a round")
    parser.add_argument("--idle", type=float, default=4.0, help="seconds in which nobody speaks, to measure that too")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cost.json")
    parser.add_argument(_INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    stop_in_order()
    if options.inside:
        inside(options)
        return
    with Hosts(["site"]) as hosts:
        process = subprocess.Popen(hosts.command("site", sys.executable, __file__, *sys.argv[1:], _INSIDE))
        try:
            raise SystemExit(process.wait())
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
