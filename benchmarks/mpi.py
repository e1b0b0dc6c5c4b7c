"""Rounds that several processes share: ``python benchmarks/mpi.py``, which starts ``mpiexec`` itself.

Strong scaling is one network on more and more processes, weak scaling a network that grows with them. Everybody speaks
in every round. Times are those on the wall, of the slowest process, between two barriers; bytes are what processes send
each other for their agents. More processes than cores wait for each other by spinning: said, not hidden.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy wakes its threads

import numpy as np
from scale import LOUD, D, network

import laconic as lc
from laconic.engine.crew import Crew

TURNS, ROUNDS = 9, 3  # the median of so many turns, of so many rounds each


def draw(agents: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    X = lc.uniforms(0, agents, first, last, D)
    return X, X[..., 0] * X[..., 1]


def one_of_them(n_agents: int, n_frequencies: int) -> None:
    """What each process does; the first one prints what was found."""
    from mpi4py import MPI

    features = lc.RandomFeatures.gaussian(D, n_frequencies, bandwidth=1.0, seed=0)
    graph = network(n_agents)
    crew = Crew(LOUD, features, graph, lc.Drawn(draw, ROUNDS), engine="mpi", dtype="float32")
    X, y = (array.astype(np.float32) for array in draw(crew.agents, 0, ROUNDS))
    crew.engine.advance(X, y)
    before, taken = crew.sent_bytes, []
    for _ in range(TURNS):
        MPI.COMM_WORLD.Barrier()
        start = time.perf_counter()
        crew.engine.advance(X, y)
        taken.append(MPI.COMM_WORLD.allreduce((time.perf_counter() - start) / ROUNDS, op=MPI.MAX))
    sent = (crew.sent_bytes - before) / (TURNS * ROUNDS)
    if crew.first:
        found = {"ms": 1e3 * float(np.median(taken)), "least": 1e3 * min(taken), "bytes": sent}
        print(json.dumps(found))


def together(n_processes: int, n_agents: int, n_frequencies: int) -> dict[str, float]:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(n_processes), sys.executable, __file__]
    command += ["--one", "--agents", str(n_agents), "--frequencies", str(n_frequencies)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"processes": n_processes, "agents": n_agents, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--agents", type=int, default=100_000, help="of strong scaling; half of them a process of weak")
    parser.add_argument("--frequencies", type=int, default=50)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    if options.one:
        one_of_them(options.agents, options.frequencies)
        return
    for kind in ("strong", "weak"):
        for k in options.processes:
            n_agents = options.agents if kind == "strong" else options.agents // 2 * k
            print(kind, json.dumps(together(k, n_agents, options.frequencies)), flush=True)
    print(f"cores {os.cpu_count()}, load {os.getloadavg()}")


if __name__ == "__main__":
    main()
