"""How large networks may be: ``python benchmarks/scale.py``, and a part of ``make bench``.

Ratios of CPU times in one process, everybody speaking in every round. The yardstick of a round is a copy of its models,
duals and replicas; another, where it is installed, is the same round in JAX. ``--memory`` runs a million agents in a
process of its own and tells the largest memory it took, once with every round recorded and once with every fifth.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy wakes its threads

import numpy as np

import laconic as lc
from laconic.engine.run import make_engine

D = 5
REPEATS = 9
LOUD = lc.QCODKLA(alpha=1e-9, beta=0.9999)  # a threshold that everybody is above


def network(n_agents: int) -> lc.Network:
    """A field of sensors that have seven neighbours each, on average."""
    if n_agents <= 100:
        return lc.Network.random(n_agents, p=0.5, seed=1)
    return lc.Network.geometric(n_agents, float(np.sqrt(7 / (np.pi * n_agents))), connect=True)


def stream(n_rounds: int, n_agents: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(size=(n_rounds, n_agents, D)).astype(np.float32)
    return X, X[..., 0] * X[..., 1]


class Field:
    """An engine that has learned for a while, ready for more rounds of the same stream."""

    def __init__(self, n_agents: int, n_frequencies: int, learner: lc.Learner = LOUD, threads: int = 1) -> None:
        self.n_agents, self.n_rounds = n_agents, max(1, 100_000 // n_agents)
        self.network = network(n_agents)
        self.features = lc.RandomFeatures.gaussian(D, n_frequencies, bandwidth=1.0, seed=0)
        self.X, self.y = stream(self.n_rounds, n_agents)
        arguments = learner, self.features, self.network, "compiled", "float32"
        self.engine = make_engine(*arguments, threads=threads)
        self.run()

    def run(self) -> None:
        """One turn."""
        self.engine.advance(self.X, self.y)

    def copier(self, n_frequencies: int) -> Callable[[], None]:
        """Copies models, duals and replicas as often as a turn has rounds."""
        here = [np.ones((self.n_agents, 2 * n_frequencies), np.float32) for _ in range(3)]
        there = [np.zeros_like(array) for array in here]

        def copy() -> None:
            for _ in range(self.n_rounds):
                for source, target in zip(here, there, strict=True):
                    np.copyto(target, source)

        return copy


def take_turns(*calls: Callable[[], object], clock: Callable[[], float] = time.process_time) -> np.ndarray:
    """Seconds of each call in each turn, (turns, calls)."""
    taken = np.empty((REPEATS, len(calls)))
    for turn in range(REPEATS):
        for k, call in enumerate(calls):
            start = clock()
            call()
            taken[turn, k] = clock() - start
    return taken


def ratio(taken: np.ndarray) -> float:
    """The median over turns of the first call's time by the second's."""
    return float(np.median(taken[:, 0] / taken[:, 1]))


def against_a_copy(n_agents: int, n_frequencies: int) -> dict[str, float]:
    field = Field(n_agents, n_frequencies)
    taken = take_turns(field.run, field.copier(n_frequencies))
    each = np.array([np.median(taken[:, 0]), taken[:, 0].min()]) / field.n_rounds / n_agents * 1e9
    least = taken.min(axis=0)
    return {
        "agents": n_agents,
        "frequencies": n_frequencies,
        "copies": ratio(taken),
        "ns": float(each[0]),
        "copies, least of each": float(least[0] / least[1]),  # what others do to the machine is mostly not in it
        "ns, least": float(each[1]),
    }


def flatness(n_frequencies: int = 50) -> dict[str, float]:
    large, small = Field(100_000, n_frequencies), Field(1_000, n_frequencies)
    return {"cost at 1e5 / cost at 1e3": ratio(take_turns(large.run, small.run))}  # both 1e5 samples a turn


def against_jax(n_agents: int, n_frequencies: int = 50) -> dict[str, float]:
    """The same rounds by ``lax.scan``, with the quicker of two ways to sum over neighbours."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from yardsticks import jax_rounds

    field = Field(n_agents, n_frequencies)
    ways = [jax_rounds(LOUD, field.features, field.network, field.X, field.y, padded) for padded in (True, False)]
    for way in ways:
        way()
    taken = take_turns(field.run, *ways)
    best = np.median(taken[:, 1:], axis=0).min()
    return {"agents": n_agents, "jax / laconic": float(best / np.median(taken[:, 0]))}


def threads(n_agents: int = 100_000, n_frequencies: int = 50) -> dict[str, float]:
    """Wall time of one thread by that of two: only a quiet machine of two cores tells."""
    one, two = (Field(n_agents, n_frequencies, threads=k) for k in (1, 2))
    before = os.getloadavg()[0]
    return {"one thread / two": ratio(take_turns(one.run, two.run, clock=time.perf_counter)), "load": before}


MEMORY = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import numpy as np, laconic as lc
from scale import D, LOUD, network
n, L = {n_agents}, {n_frequencies}
def kilobytes(name):  # of the kernel's own books: getrusage gives a new process the largest memory of its parent
    return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])
# The engine, loaded and compiled, before anything large is there.
small = np.ones((1, 10, D), dtype=np.float32), np.ones((1, 10), dtype=np.float32)
lc.simulate(LOUD, lc.RandomFeatures.gaussian(D, L), network(10), *small, dtype="float32")
graph = network(n)
graph.numbering
made = kilobytes("VmHWM")
ctypes.CDLL(None).malloc_trim(0)  # what making the network has left would otherwise be taken over, and not counted
base = kilobytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the largest memory is counted from here on
def blocks():
    for k in range({n_rounds}):
        X = np.random.default_rng(k).random(size=(1, n, D), dtype=np.float32)
        yield X, X[..., 0] * X[..., 1]
features = lc.RandomFeatures.gaussian(D, L, bandwidth=1.0, seed=0)
trace = lc.simulate(LOUD, features, graph, blocks(), dtype="float32", every={every})
peak = kilobytes("VmHWM")
numbered = 8 * (n + 1) + 4 * len(graph.neighbours) + 8 * n  # the graph of the run: its lists, and who is where
print(made * 1024, base * 1024, peak * 1024, numbered, 4 * n * (D + 1), trace.seconds)
"""


def memory(n_agents: int = 1_000_000, n_frequencies: int = 10, n_rounds: int = 5, every: int = 1) -> dict[str, float]:
    """The largest memory of a run that records every so many of its rounds; what is recorded is part of it."""
    code = MEMORY.format(
        folder=str(Path(__file__).parent),
        n_agents=n_agents,
        n_frequencies=n_frequencies,
        n_rounds=n_rounds,
        every=every,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    made, base, peak, graph, block, seconds = map(float, done.stdout.split())
    array = n_agents * 2 * n_frequencies * 4
    return {
        "agents": n_agents,
        "frequencies": n_frequencies,
        "rounds": n_rounds,
        "rounds recorded": n_rounds // every,
        "MB while the network is made": made / 1e6,
        "MB with the network": base / 1e6,
        "MB of the run": (peak - base) / 1e6,
        "in arrays of N x 2L": (peak - base) / array,
        "beside graph and block": (peak - base - graph - block) / array,
        "seconds": seconds,
    }


MATRICES = """
import sys, time
sys.path.insert(0, {folder!r})
import numpy as np, laconic as lc
from scale import D, network
n, L, T = {n_agents}, {n_frequencies}, {n_rounds}
learner = lc.{learner}()
features = lc.RandomFeatures.gaussian(D, L, bandwidth=1.0, seed=0)
X = np.random.default_rng(0).uniform(size=(T, n, D))
y = X[..., 0] * X[..., 1]
lc.simulate(learner, features, network(10), X[:2, :10], y[:2, :10])
graph = network(n)
def largest():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
before, took = largest(), time.process_time()
lc.simulate(learner, features, graph, X, y)
print(largest() - before, time.process_time() - took)
"""


def matrices(learner: str, n_agents: int, n_frequencies: int = 25, n_rounds: int = 20) -> dict[str, object]:
    """CPU time and memory of a learner that keeps matrices: all of a run, its beginning and end included."""
    code = MATRICES.format(
        folder=str(Path(__file__).parent),
        learner=learner,
        n_agents=n_agents,
        n_frequencies=n_frequencies,
        n_rounds=n_rounds,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    taken, seconds = map(float, done.stdout.split())
    return {
        "learner": learner,
        "agents": n_agents,
        "us an agent and round": seconds / n_agents / n_rounds * 1e6,
        "MB": taken * 1024 / 1e6,
        "in matrices": taken * 1024 / (8 * n_agents * (2 * n_frequencies) ** 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["copy", "flat", "jax", "threads"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "scale.json")
    options = parser.parse_args()
    found: dict[str, object] = {}
    makers: dict[str, Callable[[], object]] = {
        "copy": lambda: [against_a_copy(100_000, 50), against_a_copy(1_000_000, 10)],
        "flat": flatness,
        "jax": lambda: [against_jax(n) for n in (10, 1_000, 100_000)],
        "threads": threads,
        "memory": lambda: [memory(), memory(every=5), memory(n_frequencies=50), memory(n_frequencies=50, every=5)],
        "matrices": lambda: [matrices(name, n) for name in ("Experts", "WaveRLS") for n in (1_000, 10_000)],
    }
    for part in options.parts:
        try:
            found[part] = makers[part]()
        except ImportError as error:
            found[part] = f"left out: {error}"
        print(f"{part:<10}{json.dumps(found[part], default=float)}", flush=True)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, load {os.getloadavg()}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1, default=float))


if __name__ == "__main__":
    main()
