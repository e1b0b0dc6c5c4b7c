"""What must hold when a virtual network is healed: of agents and edges, and of what was learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.engine.chunk import Engine
from laconic.engine.run import make_engine
from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.network import Network
from laconic.protocol import Agent
from laconic.testing.wave_aftermath import look_at_waves
from laconic.transport.virtual import VirtualNetwork

LONGEST = 600  # rounds of data at hand
EXACT = 1e-8  # of their size: how far sums that should be zero may be off
_SINGLE = 1e-4  # the same of duals in single precision; shares are in double always
_NOISE = 0.3
_INPUTS = 2
_RAW = np.array([200.0, -3.0]), np.array([1000.0, 0.01])


@cache
def make_data(n_agents: int, outputs: int = 1, raw: bool = False) -> tuple[RandomFeatures, Array, Array, Array, Array]:
    """Features, streams, and a test set: a noisy function of two inputs, or several; ``raw`` are inputs of any size."""
    random = np.random.default_rng(n_agents)
    X = random.uniform(size=(LONGEST, n_agents, _INPUTS))
    test = random.uniform(size=(200, _INPUTS))
    y, label = (1 + 0.3 * np.cos(1.5 * (inputs[..., 0] - inputs[..., 1])) for inputs in (X, test))
    features = RandomFeatures.gaussian(_INPUTS, 6, bandwidth=1.0, seed=1)
    if raw:
        X, test = (_RAW[0] + _RAW[1] * inputs for inputs in (X, test))
        features = RandomFeatures.automatic(X[:8], 6, seed=1)
    if outputs > 1:
        y, label = (np.stack([(-1) ** k * values for k in range(outputs)], axis=-1) for values in (y, label))
    noise = _NOISE * random.standard_normal(y.shape)
    return features, X, y + noise, features(test), label + _NOISE * random.standard_normal(label.shape)


def without_labels(y: Array, names: Iterable[str], unlabelled: Iterable[tuple[str, float]]) -> Array:
    """The labels, but for those of some agents, before a sample of each."""
    y, first = y.copy(), dict(unlabelled)
    for i, name in enumerate(names):
        y[: int(min(first.get(name, 0), len(y))), i] = np.nan
    return y


# ----------------------------------------------------------------------------------------------------------------
# What was learned


def compare_errors(
    virtual: VirtualNetwork, learner: Learner, network: Network, raw: bool = False
) -> tuple[float, float]:
    """The mean square error of the agents' models on the test set, and that of agents to whom nothing happened.

    From one round to the next the error of an online learner goes up and down by 10% and more, with the samples that it
    happens to see. So both are averages over each agent's last ``KEPT`` rounds, and those to whom nothing happened are
    looked at in the rounds in which they have taken the very same samples: on slots each agent ends in a round of its
    own. Then what is left of the difference is what the faults have done. Where everybody has lost everything the
    others begin anew at that moment, too, since what nobody remembers cannot be got back.
    """
    features, _, _, test, label = make_data(network.n_agents, learner.outputs, raw)
    names, honest = list(virtual.hosts), [name in virtual.honest for name in virtual.hosts]
    kept = np.array([len(virtual.models[name]) for name in names])
    ends = np.array([virtual.taken[name] - 1 for name in names])  # models are kept as rounds begin
    # Beyond that nothing is remembered: a round that was moved far ahead costs nothing here.
    first = np.maximum([virtual.since[name] for name in names], ends - (LONGEST - 100))
    ends -= first
    rows = (np.arange(ends.max())[:, None] + first) % LONGEST
    everybody = np.arange(len(names))
    X, y = virtual.X[rows, everybody], virtual.y[rows, everybody]
    kept = np.maximum(kept, 1)
    begin = max(0, int((ends - kept).min()))
    engine = make_engine(learner, features, network)
    _advance(engine, X[:begin], y[:begin])
    calm = np.zeros(len(names))
    for t in range(begin, int(ends.max())):
        _advance(engine, X[t : t + 1], y[t : t + 1])
        looked_at = (ends - kept <= t) & (t < ends)
        if looked_at.any():
            calm += looked_at / kept * _errors(engine.state().weights, test, label)
    errors = [_errors(np.array(virtual.models[name]), test, label).mean() for name in virtual.honest]
    return float(np.mean(errors)), float(calm[honest].mean())


def _errors(models: Array, test: Array, label: Array) -> Array:
    """The mean square error of each model, over its outputs if it has several."""
    apart = models @ test.T - label.T
    return np.asarray((apart**2).reshape(len(models), -1).mean(axis=1))


def _advance(engine: Engine, X: Array, y: Array) -> None:
    """Run rounds to which nothing happens; they cannot end early."""
    if len(y):
        ending = engine.advance(X, y).ending
        assert ending is None, ending


# ----------------------------------------------------------------------------------------------------------------
# Agents and edges


def look_at_agents(agents: Mapping[str, Agent]) -> Iterator[str]:
    """A sentence for everything that is not as it should be among these: edges, replicas, shares, duals; or waves."""
    waves = any(agent.learner.speech is Speech.OWN for agent in agents.values())
    for name, agent in agents.items():
        for values in agent.state().arrays.values():
            if not np.isfinite(values).all():
                yield f"{name} holds numbers that are not finite."
        for other, stage in agent.edges.items():
            if other not in agents:
                continue
            if stage != "live":
                yield f"{name} has not reopened its edge to {other}: {stage}."
            if not waves and not np.array_equal(agent.replica(other), agents[other].broadcast):
                yield f"{name}'s replica of {other} differs from {other}'s broadcast."
            if not waves and name < other and not _cancel(_due(agents, name, other), _due(agents, other, name)):
                yield f"the shares of the edge {name}-{other} do not cancel."
    if waves:
        yield from look_at_waves(agents)
    # Where pulls are clipped, duals are what passes of the shares; and diffusion has none.
    if all(hasattr(agent.learner, "rho") and not agent.learner.clips() for agent in agents.values()):
        yield from _look_at_duals(agents)


def _look_at_duals(agents: Mapping[str, Agent]) -> Iterator[str]:
    total: Any = 0.0
    exact = max(EXACT if agent.weights.dtype == np.float64 else _SINGLE for agent in agents.values())
    for name, agent in agents.items():
        rho: float = agent.learner.rho  # type: ignore[attr-defined]
        if not _cancel(agent.duals, -rho * _total(agent.share(other) for other in agent.neighbours), exact):
            yield f"{name}'s dual is not what its shares say."
        # What the dual has of edges to others is not of these agents' making.
        total += agent.duals - rho * _total(agent.share(other) for other in agent.neighbours)
        total += rho * _total(_due(agents, name, other) for other in agent.neighbours if other in agents)
    size = max(np.abs(agent.duals).max() for agent in agents.values())
    if not np.abs(total).max() <= exact * (1 + size):
        yield f"the duals add up to {np.abs(total).max():.2g}, not to zero."


def _total(shares: Iterable[Array]) -> Any:
    return sum(shares, start=np.zeros(1))


def _due(agents: Mapping[str, Agent], name: str, other: str) -> Array:
    """An edge's share when both ends have come to the same edge round: on slots one may be behind."""
    agent = agents[name]
    behind = max(agents[other].edge_round(name) - agent.edge_round(other), 0)
    share: Array = agent.share(other) + behind * (agent.broadcast - agent.replica(other))
    return share


def _cancel(a: Array, b: Array, exact: float = EXACT) -> bool:
    return bool(np.abs(a + b).max() <= exact * (1 + np.abs(a).max()))
