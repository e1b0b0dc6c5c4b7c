"""Several processes of one MPI job compute what one computes, to the bit."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from breadth import EVERYTHING

import laconic as lc
from laconic.engine.partition import divide, known_to, make_part
from laconic.testing.hosts import Hosts, Unavailable, need_tools

CASES = Path(__file__).with_name("mpi_cases.py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="there is no MPI here: pip install '.[mpi]'"
)
RUN = """
[run]
rounds = {rounds}
checkpoint = "{checkpoint}"
checkpoint_every = 10
[network]
kind = "grid"
agents = 30
[model]
n_inputs = 2
n_frequencies = 8
bandwidth = 0.5
dtype = "float32"
[learner]
algorithm = "qc-odkla"
rho = 0.2
eta = 1.0
[channel]
alpha = 0.3
beta = 0.95
[stream]
{stream}
"""
STREAM = """
import os, signal
from laconic.cli.runfile import landscape
inner = landscape(2, 0, 0.1, 0.0)
how = os.environ.get("DIES")
if how == "import" and os.environ.get("PMI_RANK") == "1":
    raise RuntimeError("there is nothing to import")
def draw(agents, first, last):
    X, y = inner(agents, first, last)
    if first >= 20 and 0 in agents:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raise":
            raise RuntimeError("the sensor is gone")
        if how == "exit":
            raise SystemExit(7)
        if how == "short":
            return X[1:], y[1:]
        if how == "interrupt":
            raise KeyboardInterrupt
    return X, y
"""


def start(n, *command, **environment):
    done = subprocess.run(
        [MPIEXEC, "-n", str(n), sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def alone():
    sys.path.insert(0, str(CASES.parent))
    import mpi_cases

    return mpi_cases.run_all("compiled")


def compare(path, alone):
    with np.load(path) as found:
        assert set(found.files) == set(alone)
        for name, array in alone.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("n", [1, 2, 3, 4] if EVERYTHING else [3])
def test_any_number_of_processes_gives_the_bits_of_one(n, alone, tmp_path):
    code, _, said = start(n, CASES, tmp_path / "found.npz")
    assert code == 0, said
    compare(tmp_path / "found.npz", alone)


@needs_mpi
@pytest.mark.slow
@pytest.mark.namespaces
@pytest.mark.timeout(600)
def test_two_machines_over_tcp(alone, tmp_path):
    """Each process in a network namespace of its own, started by hand as on machines without a common launcher."""
    try:
        need_tools()
        hosts = Hosts(["a", "b"])
    except Unavailable as reason:
        pytest.skip(str(reason))
    with hosts:
        environment = os.environ | {"FI_PROVIDER": "tcp", "UCX_TLS": "tcp,self"}
        where = [
            "-launcher",
            "manual",
            "-hosts",
            ",".join(hosts.addresses.values()),
            "-localhost",
            hosts.addresses["a"],
        ]
        command = [MPIEXEC, *where, "-n", "2", sys.executable, str(CASES), str(tmp_path / "found.npz")]
        options = {"text": True, "env": environment, "stdin": subprocess.DEVNULL}
        job = subprocess.Popen(
            hosts.command("a", *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
        )
        proxies, said = [], []
        try:
            for line in job.stdout:
                said.append(line)
                if line.startswith("HYDRA_LAUNCH: "):
                    words = shlex.split(line.partition(": ")[2])
                    name = hosts.names[len(proxies)]
                    proxies.append(subprocess.Popen(hosts.command(name, *words), **options))
            assert job.wait() == 0, "".join(said)
        finally:
            for process in (job, *proxies):
                process.kill()
                process.wait()
            job.stdout.close()
        sent = subprocess.run(
            hosts.command("b", "cat", "/sys/class/net/eth0/statistics/tx_bytes"), capture_output=True, check=True
        )
        assert int(sent.stdout) > 50_000  # it was the wire that carried it
    compare(tmp_path / "found.npz", alone)


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_that_dies_ends_the_job_and_three_go_on_where_two_were(tmp_path):
    (tmp_path / "drawing.py").write_text(STREAM)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for name, stream in (("alone", 'kind = "drawn"'), ("shared", 'kind = "function"\nfunction = "drawing:draw"')):
        text = RUN.format(rounds=35, checkpoint=name, stream=stream)
        (tmp_path / f"{name}.toml").write_text(text)
    run = ("-m", "laconic", "run")
    subprocess.run([sys.executable, *run, tmp_path / "alone.toml"], check=True, capture_output=True)
    code, _, _ = start(2, *run, tmp_path / "shared.toml", "--engine", "mpi", PYTHONPATH=path, DIES="kill")
    assert code != 0
    assert (tmp_path / "shared" / "round-20" / "1.npz").exists()
    again = ("--engine", "mpi", "--resume", "--json")
    code, told, said = start(3, *run, tmp_path / "shared.toml", *again, PYTHONPATH=path)
    assert code == 0, said
    assert '"processes": 3, "rounds": 35' in told
    one, other = ((tmp_path / name / "rounds.csv").read_text() for name in ("alone", "shared"))
    assert one == other
    # And the models: of one process in one file, of three in three.
    with np.load(tmp_path / "alone" / "round-35" / "0.npz") as whole:
        for part in range(3):
            with np.load(tmp_path / "shared" / "round-35" / f"{part}.npz") as found:
                for array in ("learner.weights", "learner.duals", "broadcast"):
                    np.testing.assert_array_equal(found[array], whole[array][found["agents"]])


FUNCTION = 'kind = "function"\nfunction = "drawing:draw"'
FAILURES = {
    "raise": (2, "failed when asked for rounds 20 to 30: RuntimeError: the sensor is gone (drawing.py, line "),
    "exit": (2, "failed when asked for rounds 20 to 30: SystemExit: 7 (drawing.py, line "),
    "short": (2, "draw must return the 10 rounds it is asked for, got 9."),
    "import": (2, "function 'drawing:draw' cannot be had: RuntimeError: there is nothing to import (drawing.py, line "),
    "interrupt": (130, "KeyboardInterrupt"),  # of one process: all others wait for a moment, and are ended
}


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", FAILURES if EVERYTHING else ["raise", "import", "interrupt"])
def test_what_fails_in_one_process_ends_all_with_one_sentence(how, tmp_path):
    (tmp_path / "drawing.py").write_text(STREAM)
    (tmp_path / "big.toml").write_text(RUN.format(rounds=35, checkpoint="kept", stream=FUNCTION))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = ("-m", "laconic", "run", tmp_path / "big.toml", "--engine", "mpi")
    code, _, said = start(3, *command, PYTHONPATH=path, DIES=how)
    expected, sentence = FAILURES[how]
    assert code == expected, said
    if how == "interrupt":  # and who started them may lose what was on its way
        assert not said or sentence in said
    else:
        assert sentence in said and said.count("laconic: ") == said.count("\n") == 1, said


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_checkpoint_that_only_some_processes_can_read_ends_all(tmp_path):
    file = tmp_path / "big.toml"
    file.write_text(RUN.format(rounds=20, checkpoint="kept", stream='kind = "drawn"'))
    again = ("-m", "laconic", "run", file, "--engine", "mpi", "--resume")
    assert start(2, *again[:-1])[0] == 0
    part = tmp_path / "kept" / "round-20" / "1.npz"
    part.write_bytes(part.read_bytes()[:-100])
    code, _, said = start(3, *again)
    assert code == 2
    assert said.startswith(f"laconic: {part} is not a readable part of a checkpoint: ")
    assert said.count("\n") == 1


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_process_for_each_agent_draws_the_stream_of_one(tmp_path):
    found = []
    for name, command in (("one", ()), ("four", ("--engine", "mpi"))):
        text = RUN.format(rounds=20, checkpoint=name, stream='kind = "drawn"').replace("agents = 30", "agents = 4")
        (tmp_path / f"{name}.toml").write_text(text)
        code, _, said = start(4 if command else 1, "-m", "laconic", "run", tmp_path / f"{name}.toml", *command)
        assert code == 0, said
        found.append((tmp_path / name / "rounds.csv").read_text())
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["metis", "contiguous"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_parts_know_whom_they_hear_and_tell(n, method):
    if method == "metis":
        pytest.importorskip("pymetis")
    network = lc.Network.random(40, 0.12, seed=2)
    owner = divide(network, n, method)
    parts = [make_part(network, owner, k) for k in range(n)]
    assert sorted(np.concatenate([part.agents for part in parts])) == list(range(40))
    assert max(len(part.agents) for part in parts) <= 40 // n + 4
    for k, part in enumerate(parts):
        known = known_to(part)
        for i, agent in enumerate(part.agents):
            listed = network.neighbours[network.starts[agent] : network.starts[agent + 1]]
            assert (known[part.neighbours[part.starts[i] : part.starts[i + 1]]] == listed).all()
        for n_other, other in enumerate(part.others):
            back = parts[other].others.tolist().index(k)
            told = part.agents[part.members[part.tell[n_other] : part.tell[n_other + 1]]]
            heard = parts[other].elsewhere[parts[other].hear[back] : parts[other].hear[back + 1]]
            assert (told == heard).all()


def run_of(learner, **options):
    features, X = lc.RandomFeatures.gaussian(1, 3), np.zeros((2, 3, 1))
    return lc.simulate(learner, features, lc.Network.ring(3), X, np.zeros((2, 3)), engine="mpi", **options)


def test_what_cannot_be_shared_is_refused():
    with pytest.raises(ValueError, match="engine must not be 'mpi' for WaveRLS: its waves go over one tree"):
        run_of(lc.WaveRLS())
    with pytest.raises(ValueError, match="collective must be False with engine='mpi'"):
        run_of(lc.ODKLA(), collective=True)
    with pytest.raises(ValueError, match="n_parts must be at most the number of agents"):
        divide(lc.Network.ring(3), 4)
