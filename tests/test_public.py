"""The public surface: names, defaults, representations."""

import importlib.metadata
import pickle
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import numpy as np
import pytest

import laconic as lc

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there():
    for name in lc.__all__:
        assert getattr(lc, name) is not None
    assert set(lc.__all__) <= set(dir(lc))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lc.nonsense  # noqa: B018


def test_the_version_is_the_package_s():
    assert lc.__version__ == importlib.metadata.version("laconic")
    assert lc.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_calls_of_the_documentation():
    features = lc.RandomFeatures.gaussian(n_inputs=13, n_frequencies=50, bandwidth=0.5, seed=0)
    network = lc.Network.random(10, p=0.4, seed=0)
    assert features(np.zeros((3, 13))).shape == (3, 100)
    lc.ODKLA(rho=0.5, eta=2.0, regularization=1e-4, loss="squared", channel=lc.Channel())
    lc.QCODKLA(rho=0.5, eta=2.0, alpha=4.0, beta=0.99, bits=3, range="adaptive")
    lc.DOKL(0.5, 2.0)
    lc.RFFDOKL(step=0.25, order="combine-then-adapt")
    X, y = np.zeros((5, 10, 13)), np.zeros((5, 10))
    trace = lc.simulate(
        lc.Local(step=0.25), features, network, X, y, engine="compiled", dtype="float64", progress=False, state=None
    )
    assert trace.predictions.shape == trace.sent.shape == trace.bits.shape == trace.saturated.shape == (5, 10)
    assert trace.mse().shape == trace.windowed_mse(2).shape == trace.consensus().shape == (5,)
    assert trace.weights.shape == (10, 100)


def test_representations_say_what_a_thing_is():
    assert repr(lc.Network.ring(3)) == "Network(3 agents, 3 edges)"
    assert repr(lc.Network.ring(1)) == "Network(1 agent, 0 edges)"
    assert "bandwidth=0.5" in repr(lc.RandomFeatures.gaussian(2, 3, bandwidth=0.5))
    assert repr(lc.Local(step=0.1)) == "Local(step=0.1, regularization=0.0001, loss='squared')"
    again = eval(repr(lc.QCODKLA(alpha=1.0, bits=5)), {"QCODKLA": lc.QCODKLA})
    assert again.channel == lc.Channel(lc.Censor(1.0, 0.99), lc.Quantizer(5))


def test_progress_shows_a_bar(capsys, features):
    X = np.random.default_rng(0).uniform(size=(200, 4, 3))
    lc.simulate(lc.ODKLA(), features, lc.Network.ring(4), X, X[..., 0], progress=True)
    lc.sweep([lc.ODKLA()], features, lc.Network.ring(4), X, X[..., 0], progress=True)
    shown = capsys.readouterr().err
    assert "ODKLA: 100%" in shown
    assert "sweep: 100%" in shown


def test_parts_can_be_pickled_and_do_not_change_in_use():
    features = lc.RandomFeatures.matern(2, 5, nu=2.5, seed=1)
    again = pickle.loads(pickle.dumps(features))
    assert np.array_equal(again.frequencies, features.frequencies)
    assert np.array_equal(again.kernel(np.eye(2), np.eye(2)), features.kernel(np.eye(2), np.eye(2)))
    for network in (lc.Network.random(6, seed=1), lc.Network.geometric(6, radius=0.9)):
        before = pickle.dumps(network)
        lc.simulate(lc.RFFDOKL(), features, network, np.zeros((3, 6, 2)), np.zeros((3, 6)), engine="reference")
        assert pickle.dumps(network) == before
        assert pickle.loads(before) == network
    for learner in (lc.QCODKLA(eta=lc.schedules.SqrtGrowth(1.0)), lc.DOKL(loss="hinge"), lc.Local()):
        assert repr(pickle.loads(pickle.dumps(learner))) == repr(learner)


def test_star_import_works_without_the_optional_libraries():
    names = {}
    exec("from laconic import *", names)
    assert names["ODKLA"] is lc.ODKLA
    assert "river" not in lc.__all__
    assert "river" in dir(lc)


def test_extras_are_for_rooms_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"agents", "river", "data", "docs", "test", "dev", "all"} <= set(extras)
    named = set(extras["all"][0].removeprefix("laconic[").removesuffix("]").split(","))
    assert named <= set(extras)
    for extra, room in (("mpi", "engine/mpi.py"), ("dashboard", "dashboard")):
        assert (extra in extras) == (Path(lc.__file__).parent / room).exists()


LIGHT = """
import sys
import laconic as lc
lc.ODKLA(), lc.QCODKLA(), lc.Network.ring(5), lc.RandomFeatures.gaussian(2, 3)
heavy = {"scipy", "sklearn", "polars", "matplotlib", "networkx", "joblib", "zenoh", "tqdm", "pooch", "pandas"}
print(sorted(heavy & set(sys.modules)))
"""


def test_importing_laconic_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]


@pytest.mark.parametrize(
    "name",
    ["Sample", "Heard", "Info", "Message", "NotReady", "AgentState", "Loss", "Schedule", "Codes", "Transmission"],
)
def test_what_ones_own_code_must_name_is_public(name):
    assert name in lc.__all__
    assert getattr(lc, name) is not None


def test_public_names_are_those_that_the_rooms_use():
    from laconic import channel, learners, network, protocol

    assert lc.Sample is learners.Sample
    assert lc.Heard is network.Heard
    assert lc.Loss is lc.losses.Loss
    assert lc.Codes is channel.Codes
    assert lc.Transmission is channel.Transmission
    assert (lc.Agent, lc.AgentState, lc.Info) == (protocol.Agent, protocol.AgentState, protocol.Info)
    assert (lc.Message, lc.NotReady) == (protocol.Message, protocol.NotReady)
    assert issubclass(lc.ArgumentError, ValueError)


def test_every_public_name_is_in_the_reference():
    """A name of its own, or the module of which the page shows the members."""
    text = "".join(page.read_text() for page in sorted((ROOT / "docs" / "reference").glob("*.md")))
    named = {line.split(".")[-1].strip() for line in text.splitlines() if line.startswith(":::")}
    in_prose = set(re.findall(r"`lc\.(\w+)`", text))
    modules = {"checks", "data", "defaults", "losses", "offline", "schedules", "learners"}
    assert set(lc.__all__) - modules <= named | in_prose


def test_functions_of_ones_own_may_name_their_types():
    def step(sample: lc.Sample, heard: lc.Heard) -> lc.Info: ...

    assert typing.get_type_hints(step) == {"sample": lc.Sample, "heard": lc.Heard, "return": lc.Info}
