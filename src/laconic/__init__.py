"""laconic: online decentralized kernel learning.

Agents that learn one nonlinear model together, send no raw rows, and speak only when they have something to say.

>>> import numpy as np, laconic as lc
>>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=50, bandwidth=0.5, seed=0)
>>> network = lc.Network.random(10, p=0.4, seed=0)
>>> X = np.random.default_rng(0).uniform(size=(1000, 10, 2))
>>> y = np.sin(5 * X[..., 0]) + X[..., 1] ** 2
>>> trace = lc.simulate(lc.QCODKLA(rho=0.5, eta=1.0), features, network, X, y)
>>> bool(trace.mse()[-1] < 0.1)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from laconic import _extras, _late, learners, losses
from laconic._version import __version__ as __version__
from laconic._worded import ArgumentError
from laconic.channel import Budget, Censor, Channel, Codes, EntropyQuantizer, Quantizer, Transmission
from laconic.engine import Diverged, Drawn, simulate, stream, sweep, uniforms
from laconic.features import OwnFeatures, RandomFeatures
from laconic.guard import Guard
from laconic.learners import (
    DOKL,
    ODKLA,
    QCODKLA,
    RFFDOKL,
    Experts,
    Learner,
    Local,
    Personal,
    Sample,
    WaveRLS,
    schedules,
)
from laconic.learners.schedules import Schedule
from laconic.losses import Loss
from laconic.model import Model
from laconic.network import Heard, Network
from laconic.papers import Comparison, Runs, compare
from laconic.trace import State, Trace

if TYPE_CHECKING:
    from laconic import data, defaults, offline
    from laconic.estimators import DecentralizedKernelClassifier, DecentralizedKernelRegressor
    from laconic.estimators import river as river
    from laconic.protocol import Agent, AgentState, Info, Message, NotReady
    from laconic.testing import checks

# Pictures are drawn by a room that knows traces and networks, which do not know it.
_late.provide("draw traces", "laconic.plot", "draw_traces")
_late.provide("draw waves", "laconic.plot", "draw_waves")
_late.provide("draw a network", "laconic.plot", "draw_network")
_late.provide("show runs", "laconic.plot.html", "trace_html")
_late.provide("show a network", "laconic.plot.html", "network_html")

__all__ = [
    "DOKL",
    "ODKLA",
    "QCODKLA",
    "RFFDOKL",
    "Agent",
    "AgentState",
    "ArgumentError",
    "Budget",
    "Censor",
    "Channel",
    "Codes",
    "Comparison",
    "DecentralizedKernelClassifier",
    "DecentralizedKernelRegressor",
    "Diverged",
    "Drawn",
    "EntropyQuantizer",
    "Experts",
    "Guard",
    "Heard",
    "Info",
    "Learner",
    "Local",
    "Loss",
    "Message",
    "Model",
    "Network",
    "NotReady",
    "OwnFeatures",
    "Personal",
    "Quantizer",
    "RandomFeatures",
    "Runs",
    "Sample",
    "Schedule",
    "State",
    "Trace",
    "Transmission",
    "WaveRLS",
    "checks",
    "compare",
    "data",
    "defaults",
    "learners",
    "losses",
    "offline",
    "schedules",
    "simulate",
    "stream",
    "sweep",
    "uniforms",
]

# What needs a large library of its own is imported when it is first asked for.
_LAZY_MODULES = {
    "checks": "laconic.testing.checks",
    "data": "laconic.data",
    "defaults": "laconic.defaults",
    "offline": "laconic.offline",
    "river": "laconic.estimators.river",
}
_LAZY_CLASSES = {
    **dict.fromkeys(("Agent", "AgentState", "Info", "Message", "NotReady"), "laconic.protocol"),
    "DecentralizedKernelClassifier": "laconic.estimators",
    "DecentralizedKernelRegressor": "laconic.estimators",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return _extras.need(_LAZY_MODULES[name], f"laconic.{name}")
    if name in _LAZY_CLASSES:
        try:
            return getattr(importlib.import_module(_LAZY_CLASSES[name]), name)
        except ModuleNotFoundError as error:
            raise _extras.explain(error, f"laconic.{name}") from None
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "river"])  # which is not in __all__: it may not be installed
