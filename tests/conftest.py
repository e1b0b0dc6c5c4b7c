"""What tests need, what they skip without, and streams, networks and channels that many of them share."""

import functools
import gc
import importlib.util
import os
import shutil
import signal
import socket
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from breadth import examples
from hypothesis import settings
from raw_data import FOLDER

import laconic as lc

# The same examples on every machine and in every run, however slow it is.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=examples(100))
settings.load_profile("fixed")

# Who is started in the background of a shell ignores Ctrl-C, and so does whoever it starts; here programs are started
# as people start them.
signal.signal(signal.SIGINT, signal.default_int_handler)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MOSQUITTO = shutil.which("mosquitto", path=os.environ["PATH"] + os.pathsep + "/usr/sbin")


@functools.cache
def lacks(need):
    """Why this machine has not what a marker says that a test needs; nothing if it has. Tests install nothing."""
    if need == "data" and not FOLDER.is_dir():
        return f"the raw data sets are not in {FOLDER}: LACONIC_DATA may name another folder"
    if need == "broker" and MOSQUITTO is None:
        return "there is no mosquitto here"
    if need == "browser":
        if CHROMIUM is None:
            return "there is no chromium here"
        if importlib.util.find_spec("playwright") is None:
            return "playwright is not installed"
    if need == "sockets":
        try:
            socket.create_server(("127.0.0.1", 0)).close()
        except OSError as error:
            return f"there are no sockets on 127.0.0.1: {error}"
    if need == "namespaces":
        from laconic.testing.hosts import Unavailable, need_tools

        try:
            need_tools()
        except Unavailable as error:
            return str(error)
    return None


@functools.cache
def group_of(nodeid):
    """The tests that run in one process, one after the other: those of a file, or of all files that open sockets.

    What a file compiles, trains or builds is then made once; tests with sockets share ports, and wait for each other. A
    part of a long test, whose parameter is so called, goes wherever there is time for it. (xdist's own groups are lost
    under pytest 9.2, where it no longer can write them into the name of a test.)
    """
    path = Path(__file__).parents[1] / nodeid.split("::")[0]
    if "[part " in nodeid:
        return nodeid
    return "sockets" if path.suffix == ".py" and "pytest.mark.sockets" in path.read_text() else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Groups go to processes in the order in which they are collected."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)


def pytest_collection_modifyitems(config, items):
    """On several processes what takes longest comes first, so that nobody is left with it in the end."""
    if hasattr(config, "workerinput"):
        sizes = Counter({"sockets": 100_000})
        for item in items:
            sizes[group_of(item.nodeid)] += 20 if item.get_closest_marker("slow") else 1
        items.sort(key=lambda item: (-sizes[group_of(item.nodeid)], group_of(item.nodeid)))


def pytest_runtest_setup(item):
    for need in ("data", "broker", "browser", "sockets", "namespaces"):
        if item.get_closest_marker(need) and (reason := lacks(need)):
            pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    """A real browser without a window; what is opened in it is closed with it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def serious(tab):
    """What axe-core finds of serious and critical faults."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(tab).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in bad]


def pytest_collection_finish(session):
    gc.freeze()  # modules and tests stay: the collector need not walk through half a million objects


NETWORKS = {
    "path": lc.Network.path(6),
    "ring": lc.Network.ring(6),
    "star": lc.Network.star(6),
    "complete": lc.Network.complete(6),
    "random": lc.Network.random(6, p=0.5, seed=3),
    "alone": lc.Network.from_edges(1, []),
}

CHANNELS = {
    "dense": lc.Channel(),
    "censor": lc.Channel(censor=lc.Censor(0.5, 0.95)),
    "adaptive": lc.Channel(quantizer=lc.Quantizer(3)),
    "fixed": lc.Channel(quantizer=lc.Quantizer(5, range=(-0.6, 0.5))),
    "tread": lc.Channel(quantizer=lc.Quantizer(4, rounding="tread")),
    "both": lc.Channel(lc.Censor(0.5, 0.95), lc.Quantizer(3)),
    "budget": lc.Channel(lc.Budget(0.6, burst=2), lc.Quantizer(4)),
    "entropy": lc.Channel(lc.Budget(bits_per_round=70.0, burst=500), lc.EntropyQuantizer(0.4)),
}


# Every registered learner in each of its variants: "odkla", "combine-then-adapt", ...
KINDS = {
    "-".join(v for v in variant.values() if v) or "-".join([lc.learners.written(learner), *variant]): (learner, variant)
    for learner in lc.learners.every()
    for variant in learner.variants
}
STEPS = {"rho": 0.3, "eta": 1.0, "step": 0.4}


def make_learner(kind, loss="squared", channel=None):
    """A learner of each kind with steps that suit the streams below."""
    learner, variant = KINDS[kind]
    usual = learner.usual_steps(lc.losses.get(loss))
    given = {**usual, **STEPS, "regularization": 1e-3, "loss": loss, "channel": channel or lc.Channel(), **variant}
    return learner(**{name: value for name, value in given.items() if name in learner.arguments()})


# Those with kernels, behind a channel that can be chosen (QC-ODKLA, which has its own, is ODKLA behind "both"); and
# last those that never speak.
LEARNERS = sorted(
    (
        kind
        for kind, (learner, _) in KINDS.items()
        if learner.kernel is not lc.Learner.kernel
        and ("channel" in learner.arguments() or learner.speech is lc.learners.Speech.NEVER)
    ),
    key=lambda kind: KINDS[kind][0].speech is lc.learners.Speech.NEVER,
)
LOSSES = tuple(lc.losses.LOSSES)


def make_stream(n_rounds, n_agents, n_inputs=3, binary=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rounds, n_agents, n_inputs))
    y = np.sin(4 * X[..., 0]) + X[..., -1] - 0.7
    return X, (np.where(y > 0, 1.0, -1.0) if binary else y)


@pytest.fixture(scope="session")
def features():
    return lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=11, bandwidth=0.6, seed=4)
