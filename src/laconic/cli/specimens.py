"""Small runs that call every kernel once: what ``laconic compile`` compiles by running it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from laconic.channel import Channel, EntropyQuantizer
from laconic.engine import simulate
from laconic.features import RandomFeatures
from laconic.learners import ODKLA, QCODKLA, RFFDOKL, Experts, Learner, Personal, WaveRLS
from laconic.network import Network

DTYPES = ("float64", "float32")

_SPOKEN: dict[str, Any] = {"order": "adapt-then-combine", "listen": "spoken"}
_CODED = Channel(quantizer=EntropyQuantizer(0.4))


class Specimen(NamedTuple):
    """A run that compiles some kernels; ``shown`` says whether the demonstration needs them."""

    name: str
    run: Callable[[str], object]
    shown: bool = False


def _learn(learner: Learner, dtype: str, collective: bool = False, n_rounds: int = 4) -> None:
    """A run, and its continuation: what a resumed run begins with is a kernel, too."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(n_rounds, 3, 2))
    features = RandomFeatures.gaussian(2, 4)
    run = (learner, features, Network.ring(3))
    y = np.sign(X[..., 0] - 0.5) if learner.loss.binary else X[..., 0]
    half = n_rounds // 2
    trace = simulate(*run, X[:half], y[:half], engine="compiled", dtype=dtype, collective=collective)
    simulate(*run, X[half:], y[half:], engine="compiled", dtype=dtype, collective=collective, state=trace.state)


def _waves(learner: Learner, dtype: str) -> None:
    """Enough rounds for a wave to go through the tree and back."""
    for collective in (False, True):
        _learn(learner, dtype, collective, n_rounds=160)


def _agents(learner: Learner, dtype: str, features: RandomFeatures | None = None) -> None:
    """Two agents that talk, as they do on devices."""
    from laconic.protocol import Agent

    features = features or RandomFeatures.gaussian(2, 4)
    agents = {
        name: Agent(name, [other], features, learner, n_agents=2, clock="slotted", dtype=dtype)
        for name, other in (("ann", "ben"), ("ben", "ann"))
    }
    for k in range(4):
        for agent in agents.values():
            agent.predict(np.array([0.1, 0.2]))
            agent.learn(np.array([0.1, 0.2]) * k, 0.5)
        for _ in range(3):
            for name, agent in agents.items():
                for message in agent.outgoing():
                    agents[message.to].receive(message.data, name)


def _automatic() -> RandomFeatures:
    """Features with all their parts."""
    return RandomFeatures.automatic(np.random.default_rng(0).uniform(size=(20, 2)), n_frequencies=4)


def _parts(dtype: str) -> None:
    """What a process of an MPI job needs beside the rounds, where there is an MPI."""
    if find_spec("mpi4py") is None:
        return
    from laconic.engine.exchange import alone
    from laconic.engine.mpi import Team

    features = RandomFeatures.gaussian(2, 4)
    team = Team(QCODKLA(), features, Network.ring(3), dtype, comm=alone())
    team.advance(np.zeros((1, 3, 2)), np.zeros((1, 3)))


def _least_squares(_: str) -> None:
    from laconic.offline import recursive_least_squares

    X = np.random.default_rng(0).uniform(size=(3, 2, 2))
    recursive_least_squares(RandomFeatures.gaussian(2, 4), X, X[..., 0], centralised=True)


#: Runs that share most of their kernels stand together, to be compiled by one process. Of what is shown both groups
#: have about as much to do: 51 and 50 seconds of processor time, 19 of them for personal rounds.
SPECIMENS: dict[str, tuple[Specimen, ...]] = {
    "rounds": (
        Specimen("rounds", lambda dtype: _learn(QCODKLA(), dtype), shown=True),
        Specimen("rounds, everybody scored", lambda dtype: _learn(QCODKLA(), dtype, collective=True), shown=True),
        Specimen("a part of a network", _parts),
        Specimen("experts", lambda dtype: _learn(Experts(), dtype)),
        Specimen("experts, everybody scored", lambda dtype: _learn(Experts(), dtype, collective=True)),
        Specimen("agents", lambda dtype: _agents(QCODKLA(), dtype)),
        Specimen("agents that say all they know", lambda dtype: _agents(ODKLA(), dtype, _automatic())),
        Specimen("agents of experts", lambda dtype: _agents(Experts(), dtype)),
        Specimen("agents that trust nobody much", lambda dtype: _agents(ODKLA(robust="clip"), dtype)),
        Specimen("agents that mix with who spoke", lambda dtype: _agents(RFFDOKL(**_SPOKEN), dtype)),
        Specimen("agents whose messages vary in length", lambda dtype: _agents(ODKLA(channel=_CODED), dtype)),
    ),
    "waves": (
        Specimen("waves", lambda dtype: _waves(WaveRLS(), dtype), shown=True),
        Specimen("agents of waves", lambda dtype: _agents(WaveRLS(), dtype), shown=True),
        Specimen("least squares", _least_squares, shown=True),
        Specimen("personal waves", lambda dtype: _waves(Personal(), dtype), shown=True),
    ),
}


def compile_group(group: str, dtype: str, shown: bool = False) -> list[str]:
    """Run the specimens of a group, only those ``shown`` or all; a sentence for each that something stood in the way
    of: a package that is not there, say.
    """
    stood = []
    for specimen in SPECIMENS[group]:
        if specimen.shown or not shown:
            try:
                specimen.run(dtype)
            except (ImportError, ValueError) as error:
                stood.append(f"{specimen.name} ({dtype}): {error}")
    return stood
