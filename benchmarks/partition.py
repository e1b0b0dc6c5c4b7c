"""What becomes of agents whose network is cut: ``python benchmarks/partition.py``, as root, on Linux.

Each agent has a host of its own: a network namespace with one cable to a switch. The switch then drops, without a word,
what goes from one group of hosts to the other, and lets it pass again; later it loses packets at random. Who looks at
the agents' checkpoints sees how soon every edge is live again and every replica equal to its origin, whether each side
went on in every slot, and what that did to the error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from laconic.testing.hosted import SAMPLES, agents, graph, labels, write_site
from laconic.testing.hosts import Hosts, stop_in_order
from laconic.testing.watch import Watch


def errors(folder: Path, names: tuple[str, ...], spans: dict[str, dict[str, tuple[int, int]]]) -> dict[str, Any]:
    """Of each span of rounds: the mean square error, and how many of its rounds each agent learned in."""
    found: dict[str, Any] = {}
    for title, span in spans.items():
        squares, learned = [], {}
        for k, name in enumerate(names):
            with np.load(folder / f"{name}.npz") as record:
                rounds, predictions = record["rounds"], record["predictions"]
            sampled = ~np.isnan(predictions)
            truth = labels(k)[1][(np.cumsum(sampled) - 1) % SAMPLES]
            first, last = span[name]
            inside = sampled & (rounds > first) & (rounds <= last)
            squares.append((predictions[inside] - truth[inside]) ** 2)
            learned[name] = int(inside.sum())
        found[title] = {"mean_square_error": float(np.mean(np.concatenate(squares))), "learned": learned}
    return found


def count_logged(folder: Path, names: tuple[str, ...], event: str) -> int:
    """How many log lines tell of an event."""
    return sum(len(re.findall(rf'"{event}"', (folder / f"{name}.log").read_text())) for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--slot", type=float, default=0.05, help="seconds of a round")
    parser.add_argument("--before", type=float, default=15.0, help="seconds before the partition")
    parser.add_argument("--cut", type=float, default=30.0, help="seconds of the partition")
    parser.add_argument("--after", type=float, default=15.0, help="seconds after it")
    parser.add_argument("--lossy", type=float, default=20.0, help="seconds with loss")
    parser.add_argument("--loss", type=float, default=0.05, help="share of packets lost in that time")
    parser.add_argument("--again", type=int, default=12, help="short partitions at the end")
    parser.add_argument("--keep", type=Path, help="folder to leave logs and records in")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "partition.json")
    options = parser.parse_args()
    stop_in_order()
    # In memory if possible: a checkpoint a round, of every agent, is for the onlooker, and not what is measured.
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    names = tuple(f"host{k}" for k in range(options.hosts))
    group = names[: len(names) // 2]
    with tempfile.TemporaryDirectory(dir=shared) as folder, Hosts(names) as hosts:
        try:
            report = measure(Path(folder), hosts, group, options)
        finally:
            if options.keep:
                shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**machine, **report}, indent=1) + "\n")
    print(f"\nwritten to {options.out}")


def short_cuts(hosts: Hosts, watch: Watch, group: tuple[str, ...], count: int) -> dict[str, list[float]]:
    """Seconds until all is exact after cuts of 3 to 7 seconds; of the whole network, and of IP only, in turns."""
    dice = random.Random(0)
    found: dict[str, list[float]] = {"all": [], "IP only": []}
    for k in range(count):
        what = "IP only" if k % 2 else "all"
        hosts.cut(group, only_ip=what == "IP only")
        watch.wait(dice.uniform(3.0, 7.0))
        hosts.heal()
        watch.look()
        found[what].append(watch.until_exact(60, watch.rounds()))
        watch.wait(dice.uniform(1.0, 2.0))
    for what, times in found.items():
        if times:
            median, most = statistics.median(times), max(times)
            print(f"{len(times)} short cuts ({what}): exact after {median:.2f} s, at most {most:.2f} s", flush=True)
    return found


def measure(folder: Path, hosts: Hosts, group: tuple[str, ...], options: argparse.Namespace) -> dict[str, Any]:
    """The whole story, told as it goes."""
    names, slot = hosts.names, options.slot
    site = write_site(folder, hosts, slot=slot)
    watch = Watch(folder / "checkpoints", names)
    marks: list[tuple[str, float, dict[str, int], int]] = []

    def mark(title: str) -> None:
        watch.look()
        marks.append((title, time.monotonic(), watch.rounds(), count_logged(folder, names, "disconnected")))

    edges = graph(names)
    crossing = sum((a in group) != (b in group) for a, b in edges)
    print(f"{len(names)} hosts, {len(edges)} edges, {crossing} of them between the groups; slots of {slot} s")
    with agents(hosts, site):
        started = watch.until_exact(180)
        print(f"started: all edges live and replicas exact after {started:.1f} s", flush=True)
        mark("before")
        watch.wait(options.before)
        hosts.cut(group)
        mark("partition")
        begun = time.monotonic()
        noticed = watch.until(lambda: watch.apart(group), options.cut)
        watch.wait(begun + options.cut - time.monotonic())
        apart = sum(stage == "live" for stage in watch.stages().values())
        print(
            f"cut: edges between the groups suspended after {noticed:.1f} s; "
            f"{apart} of {2 * (len(edges) - crossing)} ends of the others live at the end",
            flush=True,
        )
        hosts.heal()
        mark("healed")
        repaired = watch.until_exact(60, watch.rounds())
        print(f"healed: all edges live and replicas exact after {repaired:.2f} s", flush=True)
        watch.wait(options.after - repaired)
        mark("loss")
        hosts.lose(options.loss)
        watch.wait(options.lossy)
        hosts.heal()
        mark("no loss")
        clean = watch.until_exact(60, watch.rounds())
        print(f"no loss any more: all edges live and replicas exact after {clean:.2f} s", flush=True)
        watch.wait(5.0 + 1.0)
        mark("end")
        more = short_cuts(hosts, watch, group, options.again)
        watch.wait(2 + 4.0)
    watch.look()  # at what the agents left when they were stopped, all at once
    last = [state.about["finished"] for state in watch.states.values()]
    # What was said in the very last slot may still have been on its way.
    exact = watch.exact({name: at - 2 for name, at in watch.rounds().items()})
    spans = {
        title: {name: (rounds[name], marks[k + 1][2][name]) for name in names}
        for k, (title, _, rounds, _) in enumerate(marks[:-1])
    }
    phases = errors(folder, names, spans)
    print(f"\n{'':<12}{'seconds':>8}{'slots':>7}{'rounds learned':>16}{'error':>9}{'disconnected':>14}")
    for (title, at, _, gone), (_, until, _, later) in itertools.pairwise(marks):
        phase, seconds = phases[title], until - at
        phase |= {"seconds": seconds, "slots": seconds / slot, "disconnected": later - gone}
        learned = phase["learned"].values()
        counts = f"{min(learned)} to {max(learned)}"
        error = phase["mean_square_error"]
        print(f"{title:<12}{seconds:>8.1f}{seconds / slot:>7.0f}{counts:>16}{error:>9.4f}{later - gone:>14}")
    print(f"\nreplicas compared with what their origin said: {watch.compared}, of which {watch.wrong} differed")
    print(f"shares of an edge compared at both ends: {watch.cancelled}; they cancel to {watch.off:.1e} of their size")
    how = "exact" if exact else "not exact"
    print(f"stopped together after rounds {min(last)} to {max(last)}: replicas {how}")
    return {
        "hosts": len(names),
        "edges": len(edges),
        "between": crossing,
        "slot": slot,
        "loss": options.loss,
        "seconds_until_suspended": noticed,
        "seconds_until_exact": {"healed": repaired, "no loss": clean, "short cuts": more},
        "replicas": {"compared": watch.compared, "wrong": watch.wrong},
        "shares": {"compared": watch.cancelled, "off": watch.off},
        "exact_at_the_end": exact,
        "phases": phases,
    }


if __name__ == "__main__":
    main()
