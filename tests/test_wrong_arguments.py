"""Whatever is passed to a public name: it works, or one ValueError says in a sentence what is wrong.

Every argument of every public function is replaced by things that people pass by mistake, one at a time. (What the
engines call in every round, as ``Network.listen`` and ``Channel.send``, checks nothing and is left out.)
"""

import inspect
import warnings

import networkx as nx
import numpy as np
import pytest

import laconic as lc
from laconic.offline import Comparator

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=5, bandwidth=0.5)
NETWORK = lc.Network.ring(3)
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(12, 3, 2)), RNG.uniform(size=(12, 3))
FLAT_X, FLAT_Y = X.reshape(-1, 2), Y.reshape(-1)
TRACE = lc.simulate(lc.ODKLA(), FEATURES, NETWORK, X, Y, collective=True)
BEST = lc.offline.comparator(FEATURES, X, Y)
RUN = lc.offline.dkla(FEATURES, NETWORK, X, Y, max_iterations=3)


def fresh_agent():
    return lc.Agent("ann", ["ben"], FEATURES, lc.ODKLA(), n_agents=2)


def all_blocks(*arguments, **options):
    return list(lc.stream(*arguments, **options))


def scaled_twice(values):
    scaler = lc.data.RunningScaler()
    scaler(np.zeros((3, 2)))
    return scaler(values)


CALLS = {
    "RandomFeatures": (lc.RandomFeatures, {"frequencies": np.eye(2)}),
    "RandomFeatures.gaussian": (lc.RandomFeatures.gaussian, {"n_inputs": 2, "n_frequencies": 5}),
    "RandomFeatures.laplacian": (lc.RandomFeatures.laplacian, {"n_inputs": 2, "n_frequencies": 5}),
    "RandomFeatures.matern": (lc.RandomFeatures.matern, {"n_inputs": 2, "n_frequencies": 5}),
    "RandomFeatures()": (FEATURES, {"X": FLAT_X}),
    "RandomFeatures.kernel": (FEATURES.kernel, {"X": FLAT_X, "Z": FLAT_X}),
    "Network": (lc.Network, {"n_agents": 3, "edges": [(0, 1), (1, 2)], "names": ["a", "b", "c"]}),
    "Network.from_edges": (lc.Network.from_edges, {"n_agents": 3, "edges": [(0, 1), (1, 2)]}),
    "Network.from_networkx": (lc.Network.from_networkx, {"graph": nx.path_graph(3)}),
    "Network.read": (lc.Network.read, {"path": "absent.txt"}),
    "Network.complete": (lc.Network.complete, {"n_agents": 3}),
    "Network.ring": (lc.Network.ring, {"n_agents": 3}),
    "Network.path": (lc.Network.path, {"n_agents": 3}),
    "Network.star": (lc.Network.star, {"n_agents": 3}),
    "Network.grid": (lc.Network.grid, {"rows": 2, "columns": 2}),
    "Network.random": (lc.Network.random, {"n_agents": 4, "p": 0.9}),
    "Network.geometric": (lc.Network.geometric, {"n_agents": 4, "radius": 0.9}),
    "Network.small_world": (lc.Network.small_world, {"n_agents": 6}),
    "Censor": (lc.Censor, {"alpha": 1.0, "beta": 0.9}),
    "Quantizer": (lc.Quantizer, {"bits": 3}),
    "Channel": (lc.Channel, {}),
    "ODKLA": (lc.ODKLA, {}),
    "QCODKLA": (lc.QCODKLA, {}),
    "DOKL": (lc.DOKL, {}),
    "RFFDOKL": (lc.RFFDOKL, {}),
    "Local": (lc.Local, {}),
    "schedules.Constant": (lc.schedules.Constant, {"value": 1.0}),
    "schedules.SqrtGrowth": (lc.schedules.SqrtGrowth, {"scale": 1.0}),
    "schedules.SqrtDecay": (lc.schedules.SqrtDecay, {"scale": 1.0}),
    "losses.get": (lc.losses.get, {"loss": "squared"}),
    "simulate": (lc.simulate, {"learner": lc.ODKLA(), "features": FEATURES, "network": NETWORK, "X": X, "y": Y}),
    "stream": (all_blocks, {"learner": lc.ODKLA(), "features": FEATURES, "network": NETWORK, "blocks": [(X, Y)]}),
    "sweep": (lc.sweep, {"learners": [lc.ODKLA()], "features": FEATURES, "network": NETWORK, "X": X, "y": Y}),
    "Trace.windowed_mse": (TRACE.windowed_mse, {"window": 3}),
    "Trace.losses": (TRACE.losses, {}),
    "Trace.regret": (TRACE.regret, {"comparator": BEST}),
    "Trace.collective_regret": (TRACE.collective_regret, {"comparator": BEST}),
    "Trace.load": (lc.Trace.load, {"path": "absent.npz"}),
    "offline.comparator": (lc.offline.comparator, {"features": FEATURES, "X": X, "y": Y}),
    "offline.batch_solution": (lc.offline.batch_solution, {"features": FEATURES, "X": X, "y": Y}),
    "offline.dkla": (lc.offline.dkla, {"features": FEATURES, "network": NETWORK, "X": X, "y": Y, "max_iterations": 3}),
    "offline.coke": (
        lc.offline.coke,
        {"features": FEATURES, "network": NETWORK, "X": X, "y": Y, "v": 1.0, "mu": 0.9, "max_iterations": 3},
    ),
    "offline.coke_experiment": (
        lc.offline.coke_experiment,
        {"n_agents": 3, "n_samples": (5, 9), "n_frequencies": 5, "max_iterations": 2, "network": NETWORK},
    ),
    "offline.recursive_least_squares": (
        lc.offline.recursive_least_squares,
        {"features": FEATURES, "X": X, "y": Y, "centralised": True},
    ),
    "BatchRun.predict": (RUN.predict, {"X": X}),
    "BatchRun.mse": (RUN.mse, {"X": X, "y": Y}),
    "data.info": (lc.data.info, {"name": "synthetic"}),
    "data.fetch": (lc.data.fetch, {"name": "synthetic"}),
    "data.load": (lc.data.load, {"name_or_path": "synthetic", "n_rows": 20}),
    "data.partition": (lc.data.partition, {"X": FLAT_X, "y": FLAT_Y, "n_agents": 3}),
    "data.scale": (lc.data.scale, {"X": FLAT_X}),
    "data.RunningScaler()": (scaled_twice, {"values": np.zeros((3, 2))}),
    "data.synthetic": (lc.data.synthetic, {"n_rounds": 4, "n_agents": 3, "n_inputs": 2}),
    "data.Truth()": (lc.data.synthetic(4, 3, 2, drift=0.5).truth, {"X": X, "t": 1}),
    "checks.check_learner": (lc.checks.check_learner, {"learner": lc.Local(step=0.3)}),
    "Agent": (lc.Agent, {"name": "a", "neighbours": ["b"], "features": FEATURES, "learner": lc.ODKLA(), "n_agents": 2}),
    "Agent.learn": (lambda x, y: fresh_agent().learn(x, y), {"x": np.zeros(2), "y": 1.0}),
    "Agent.predict": (lambda x: fresh_agent().predict(x), {"x": np.zeros(2)}),
    "Agent.receive": (lambda data, sender: fresh_agent().receive(data, sender), {"data": b"", "sender": "ben"}),
    "Agent.connected": (lambda name: fresh_agent().connected(name), {"name": "ben"}),
    "Agent.replica": (lambda name: fresh_agent().replica(name), {"name": "ben"}),
    "Agent.add": (lambda name, degree: fresh_agent().add(name, degree), {"name": "cid", "degree": 1}),
    "Agent.remove": (lambda name: fresh_agent().remove(name), {"name": "ben"}),
    "Agent.skip_to": (
        lambda round: lc.Agent("a", [], FEATURES, lc.ODKLA(), n_agents=1, clock="slotted").skip_to(round),
        {"round": 3},
    ),
    "Agent.restore": (lambda state: fresh_agent().restore(state), {"state": fresh_agent().state()}),
    "Agent.load": (lambda path: fresh_agent().load(path), {"path": "absent"}),
    "Agent.save": (lambda path: fresh_agent().save(path), {"path": "checkpoint"}),
}
for check in lc.checks.CHECKS:
    CALLS[f"checks.{check.__name__}"] = (check, {"learner": lc.Local(step=0.3)})

WRONG = {
    "None": None,
    "text": "nonsense",
    "empty text": "",
    "bytes": b"\x00\xff",
    "minus one": -1,
    "zero": 0,
    "a fraction": 1.5,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "large": 10**15,
    "huge": 10**30,
    "true": True,
    "complex": 1j,
    "empty list": [],
    "ragged list": [[1, 2], [3]],
    "list of text": ["a", "b"],
    "dict": {"a": 1},
    "object": object(),
    "type": int,
    "function": len,
    "no numbers": np.array([None, "x"], dtype=object),
    "empty array": np.zeros((0, 3, 2)),
    "short array": np.zeros(3),
    "deep array": np.zeros((2, 3, 4, 5)),
    "array of nan": np.full((12, 3), np.nan),
    "array of infinities": np.full((12, 3, 2), np.inf),
    "a learner": lc.Local(),
    "a network": NETWORK,
    "features": FEATURES,
    "a trace": TRACE,
    "another comparator": Comparator(np.zeros(4), np.zeros((5, 2)), np.zeros((5, 2)), 0.1, lc.losses.get("squared")),
}


def arguments_of(call, given):
    """Names of the arguments: those that are given, and those with a default."""
    try:
        known = inspect.signature(call).parameters.values()
    except ValueError:
        return list(given)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [parameter.name for parameter in known if parameter.kind in kinds and parameter.name != "progress"]


def complaint(call, given):
    """How the call ended, if neither well nor with one ValueError in a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**given)
        except (ValueError, FileNotFoundError, lc.Diverged, AssertionError) as error:
            if isinstance(error, AssertionError) and "checks" not in getattr(call, "__module__", ""):
                return f"AssertionError: {error}"
            said = str(error)
            if not said or "\n" in said or len(said) > 1500:
                return f"{type(error).__name__} in many words: {said[:200]!r}"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
    return None


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_get_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    call, given = CALLS[name]
    endless = {("max_iterations", "large"), ("max_iterations", "huge")}  # not wrong, only long
    failed = [
        f"{name}({argument}={what}) -> {ended}"
        for argument in arguments_of(call, given)
        for what, value in WRONG.items()
        if (argument, what) not in endless
        if (ended := complaint(call, {**given, argument: value}))
    ]
    assert not failed, "\n".join(failed)
