"""Agents where only NumPy and zenoh are installed, beside compiled ones."""

import json
import os
import subprocess
import sys
import venv
from contextlib import ExitStack
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from breadth import EVERYTHING
from ports import free_port

import laconic as lc
from laconic.deploy.settings.site import Site

pytestmark = [pytest.mark.sockets, pytest.mark.slow]

NAMES = ("ada", "bob", "cyd")
THIN = ("bob",)
EDGES = [["ada", "bob"], ["bob", "cyd"], ["ada", "cyd"]]
HEAVY = ("scipy", "sklearn", "polars", "matplotlib", "networkx", "joblib", "tqdm", "pooch", "jinja2")
OPTIONAL = ("cbor2", "paho", "prometheus_client", "cryptography", "river")
WAIT = 300.0


@pytest.fixture(scope="module")
def thin(tmp_path_factory):
    """A fresh environment with laconic, numpy and eclipse-zenoh, and nothing else: links to what is installed here."""
    folder = tmp_path_factory.mktemp("thin") / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in ("numpy", "eclipse-zenoh"):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files if file.parts[0] != ".."}:
            (packages / top).symlink_to(found.locate_file(top))
    (packages / "laconic").symlink_to(Path(lc.__file__).parent)
    about = packages / f"laconic-{lc.__version__}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: laconic\nVersion: {lc.__version__}\n")
    return folder / "bin" / "python"


def environment(python):
    """Without the paths that would lend the thin one more than it has."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH" or python == sys.executable}


def ask(python, code):
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, timeout=WAIT, env=environment(python)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_environment_is_thin(thin):
    code = f"import importlib.util as u; print([m for m in {HEAVY + OPTIONAL} if u.find_spec(m)])"
    assert ask(thin, code) == ["[]"]


def test_what_is_missing_is_said_in_a_sentence(thin):
    code = """
import numpy as np, laconic as lc
features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=5)
ring, X = lc.Network.ring(4), np.ones((2, 4, 2))
assert lc.simulate(lc.ODKLA(), features, ring, X, X[..., 0]).about["engine"] == "compiled"
for ask in (
    lambda: lc.Network.random(4),
    lambda: lc.DecentralizedKernelRegressor,
    lambda: lc.data,
    lambda: lc.river,
    lambda: ring.draw(),
):
    try:
        ask()
    except ImportError as error:
        assert isinstance(error, ValueError)
        print(error)
"""
    rest = "or, in a clone, pip install '.'."
    assert ask(thin, code) == [
        f"a random network needs networkx: pip install networkx, {rest}",
        f"laconic.DecentralizedKernelRegressor needs scikit-learn: pip install scikit-learn, {rest}",
        f"laconic.data needs polars: pip install polars, {rest}",
        "lc.river needs river: pip install river, or, in a clone, pip install '.[river]'.",
        f"a picture needs matplotlib: pip install matplotlib, {rest}",
    ]


def command(python, *words):
    return subprocess.run(
        [python, "-m", "laconic", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
        env=environment(python),
    )


def test_commands_that_need_more_say_so_and_others_run(thin, tmp_path):
    run = command(thin, "run")
    assert run.returncode == 2 and "needs polars: pip install" in run.stderr and "Traceback" not in run.stderr
    info = command(thin, "info")
    assert info.returncode == 0 and "compiled, works" in info.stdout
    assert command(thin, "init", tmp_path / "home").returncode == 0
    text = (tmp_path / "home" / "site.toml").read_text()
    (tmp_path / "home" / "site.toml").write_text(text.replace("rate = 50", ""))
    up = command(thin, "up", tmp_path / "home" / "site.toml", "--rounds", 30, "--trace", tmp_path / "traces")
    assert up.returncode == 0, up.stderr
    assert len(list((tmp_path / "traces").glob("*.npz"))) == 5


@pytest.mark.parametrize(
    ("settings", "agent", "sentence"),
    [
        ("", "metrics_port = {port}", "a metrics port needs prometheus-client: pip install prometheus-client, or"),
        ('[source]\nkind = "mqtt"\nhost = "127.0.0.1"\ntopic = "t"', "", "MQTT needs paho-mqtt"),
    ],
)
def test_what_is_configured_and_missing_is_named(settings, agent, sentence, thin, tmp_path):
    file = write_site(tmp_path, 3, source=settings, agent=agent, patience=0.5)
    done = command(thin, "agent", "--config", file, "--name", "bob", "--rounds", 1)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr


def write_site(folder, n_rounds, source="", agent="", learner='algorithm = "qcodkla"', patience=WAIT):
    """Settings and data of three agents."""
    X = np.random.default_rng(0).uniform(size=(n_rounds, len(NAMES), 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1] - 0.7
    y = np.where(y > 0, 1.0, -1.0) if "logistic" in learner else y
    np.savez(folder / "data.npz", X=X, y=y)
    source = source or '[source]\nkind = "file"\npath = "{name}.csv"\ninputs = ["a", "b"]\ntarget = "y"'
    parts = [
        f"[site]\npatience = {patience}\n[model]\nn_inputs = 2\nn_frequencies = 20\nbandwidth = 0.5",
        f"[learner]\n{learner}\n[network]\nedges = {json.dumps(EDGES)}\n{source}",
    ]
    for k, name in enumerate(NAMES):
        rows = np.column_stack([X[:, k], y[:, k]]).tolist()
        (folder / f"{name}.csv").write_text("\n".join(["a,b,y", *(",".join(map(repr, row)) for row in rows)]) + "\n")
        parts.append(f'[agents.{name}]\nlisten = "tcp/127.0.0.1:{free_port()}"\n{agent.format(port=free_port())}')
    (folder / "site.toml").write_text("\n".join(parts) + "\n")
    return folder / "site.toml"


LEARNERS = {
    "quantized": ('algorithm = "qcodkla"', 1e-10),
    "logistic": ('algorithm = "dokl"\nloss = "logistic"', 1e-10),
    "waves": ('algorithm = "waverls"', 1e-6),  # what is learned alone between two waves has other last digits
}


@pytest.mark.parametrize("kind", LEARNERS if EVERYTHING else ["quantized", "waves"])
def test_thin_and_compiled_agents_hold_the_same_replicas_to_the_bit(kind, thin, tmp_path):
    learner, near = LEARNERS[kind]
    file = write_site(tmp_path, 150, learner=learner)
    with ExitStack() as stack:
        processes = {}
        for name in NAMES:
            python = thin if name in THIN else sys.executable
            words = ["--config", file, "--name", name, "--trace", tmp_path / f"{name}.npz", "--log", "json"]
            processes[name] = subprocess.Popen(
                [str(word) for word in (python, "-m", "laconic", "agent", *words)],
                stderr=subprocess.PIPE,
                text=True,
                env=environment(python),
            )
            stack.callback(processes[name].kill)
        for name, process in processes.items():
            _, told = process.communicate(timeout=WAIT)
            assert process.returncode == 0, f"{name}: {told}"
    traces = {}
    for name in NAMES:
        with np.load(tmp_path / f"{name}.npz") as stored:
            traces[name] = dict(stored)
    for name, trace in traces.items():
        assert len(trace["neighbours"]) == sum(name in edge for edge in EDGES)
        for other, replica in zip(trace["neighbours"], trace["replicas"], strict=True):
            assert replica.tobytes() == traces[str(other)]["broadcast"].tobytes(), (name, other)
    site = Site.read(file)
    with np.load(tmp_path / "data.npz") as data:
        trace = lc.simulate(site.learner(), site.features(), site.network(), data["X"], data["y"])
    predictions = np.column_stack([traces[name]["predictions"] for name in site.names])
    np.testing.assert_allclose(predictions, trace.predictions, rtol=0, atol=near)
