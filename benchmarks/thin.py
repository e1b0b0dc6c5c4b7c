"""What an agent costs on a small device: installed, in memory, and until it starts.

    python benchmarks/thin.py

Builds the wheel, installs it without its dependencies, numpy and eclipse-zenoh into a fresh environment, and runs five
agents in lockstep over zenoh on this machine: two from there, three from the environment of this script. Their replicas
must agree to the bit. Needs a package index, and Linux for the memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np

from laconic import simulate
from laconic.deploy.settings.site import Site

ROOT = Path(__file__).parents[1]
NAMES = ("ada", "bob", "cyd", "dan", "eve")
THIN = ("bob", "dan")
EDGES = [["ada", "bob"], ["bob", "cyd"], ["cyd", "dan"], ["dan", "eve"], ["eve", "ada"], ["ada", "cyd"]]
TARGETS = {"installed": 150.0, "resident": 70.0, "start": 1.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--starts", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = make_environment(folder)
        write_site(folder, options.rounds)
        start_alone(python, folder)  # makes the bytecode that an installed package has
        installed = sum(file.stat().st_size for file in (folder / "thin").rglob("*") if file.is_file()) / 2**20
        starts = [start_alone(python, folder) for _ in range(options.starts)]
        resident = run_five(python, folder, options.rounds)
        replicas, gap = compare(folder)
    wall, cpu = min(starts)
    print(f"installed  {installed:6.1f} MB   (at most {TARGETS['installed']:.0f})")
    print(f"resident   {resident:6.1f} MB   (at most {TARGETS['resident']:.0f}; the most in {options.rounds} rounds)")
    print(
        f"start      {wall:6.2f} s    (at most {TARGETS['start']:.0f}; best of {options.starts}; {cpu:.2f} s of work)"
    )
    print(f"replicas   {replicas} between thin and compiled agents, equal to the bit")
    print(f"model      predictions within {gap:.1g} of the simulator's")
    met = installed <= TARGETS["installed"] and resident <= TARGETS["resident"] and wall <= TARGETS["start"]
    return 0 if met else 1


def run(command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def make_environment(folder):
    """An interpreter that has laconic, numpy and eclipse-zenoh, and nothing else."""
    venv.create(folder / "thin", with_pip=False, symlinks=True)
    python = folder / "thin" / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        run([uv, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT])
        install = [uv, "pip", "install", "--quiet", "--python", python]
    else:
        run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run([*install, "--no-deps", *folder.glob("laconic-*.whl")])
    run([*install, "numpy", "eclipse-zenoh"])
    return python


def write_site(folder, n_rounds):
    random = np.random.default_rng(0)
    X = random.uniform(size=(n_rounds, len(NAMES), 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1] - 0.7
    np.savez(folder / "data.npz", X=X, y=y)
    parts = [
        "[site]\npatience = 60.0\n[model]\nn_inputs = 2\nn_frequencies = 50\nbandwidth = 0.5",
        f'[learner]\nalgorithm = "qcodkla"\n[network]\nedges = {json.dumps(EDGES)}',
        '[source]\nkind = "file"\npath = "{name}.csv"\ninputs = ["a", "b"]\ntarget = "y"',
    ]
    ports = free_ports()
    for k, name in enumerate(NAMES):
        rows = np.column_stack([X[:, k], y[:, k]]).tolist()
        (folder / f"{name}.csv").write_text("\n".join(["a,b,y", *(",".join(map(repr, row)) for row in rows)]) + "\n")
        parts.append(f'[agents.{name}]\nlisten = "tcp/127.0.0.1:{next(ports)}"')
    (folder / "site.toml").write_text("\n".join(parts) + "\n")


def free_ports():
    """Ports that nobody uses, below those of outgoing connections."""
    for port in range(20_000 + os.getpid() % 8_000, 32_000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            yield port


def agent(python, folder, name, *words):
    command = [python, "-m", "laconic", "agent", "--config", folder / "site.toml", "--name", name, "--log", "json"]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" or python == sys.executable}
    return subprocess.Popen([str(word) for word in (*command, *words)], stderr=subprocess.PIPE, text=True, env=own)


def start_alone(python, folder):
    """Seconds until an agent says that it has started, by the clock and of work."""
    began = time.perf_counter()
    process = agent(python, folder, THIN[0])
    for line in process.stderr:
        if '"started"' in line:
            break
    else:
        sys.exit("the thin agent did not start.")
    wall = time.perf_counter() - began
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    process.kill()
    process.communicate()
    return wall, sum(map(int, ticks)) / 100  # of user and of system, in hundredths


def run_five(python, folder, n_rounds):
    """Run all agents; the largest memory of a thin one, in MB."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for name in NAMES:
            interpreter = python if name in THIN else sys.executable
            words = ("--rounds", n_rounds, "--trace", folder / f"{name}.npz", "--predictions", 0)
            processes[name] = agent(interpreter, folder, name, *words)
            stack.callback(processes[name].kill)
        most = 0.0
        while any(process.poll() is None for process in processes.values()):
            for name in THIN:
                try:
                    status = Path(f"/proc/{processes[name].pid}/status").read_text()
                except OSError:
                    continue
                peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
                most = max([most, *(int(peak) / 1024 for peak in peaks)])
            time.sleep(0.02)
        for name, process in processes.items():
            told = process.communicate()[1]
            assert process.returncode == 0, f"{name}: {told}"
    return most


def compare(folder):
    """How many replicas are equal, and how far predictions are from the simulator's."""
    traces = {}
    for name in NAMES:
        with np.load(folder / f"{name}.npz") as file:
            traces[name] = dict(file)
    equal = 0
    for name, trace in traces.items():
        for other, replica in zip(trace["neighbours"], trace["replicas"], strict=True):
            assert replica.tobytes() == traces[str(other)]["broadcast"].tobytes(), (name, other)
            equal += (name in THIN) != (other in THIN)
    site = Site.read(folder / "site.toml")
    with np.load(folder / "data.npz") as data:
        trace = simulate(site.learner(), site.features(), site.network(), data["X"], data["y"])
    columns = [traces[name]["predictions"] for name in site.names]
    return equal, float(np.abs(np.column_stack(columns) - trace.predictions).max())


if __name__ == "__main__":
    sys.exit(main())
