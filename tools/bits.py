"""Print digests of runs and of agents' messages, in both precisions: the same lines wherever code has the same bits.

    python tools/bits.py > bits.txt         # all of them
    python tools/bits.py ODKLA messages     # those whose line has these words

``tests/golden/bits.txt`` has what they are; ``tests/native/test_golden.py`` compares.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import laconic as lc
from laconic.engine.support import supports

LOSSES = tuple(lc.losses.LOSSES)
CHANNELS = (lc.Channel(lc.Censor(0.3, 0.99), lc.Quantizer(3)), lc.Channel(lc.Budget(0.6), lc.EntropyQuantizer(0.4)))
NAMES = ("ann", "ben", "cat")


def make(kind: type[lc.Learner], loss: str, **options: object) -> lc.Learner:
    given = {**kind.usual_steps(lc.losses.get(loss)), "loss": loss, **options}
    return kind(**{name: value for name, value in given.items() if name in kind.arguments()})


def stream(learner: lc.Learner, n_rounds: int, n_agents: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(size=(n_rounds, n_agents, 3))
    y = np.sin(4 * X[..., 0]) + X[..., -1] - 0.7
    return X, np.sign(y) if learner.loss.binary else y


def digest_of(arrays: list[np.ndarray | bytes]) -> str:
    seen = hashlib.sha256()
    for array in arrays:
        seen.update(array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes())
    return seen.hexdigest()[:16]


def trace_digest(learner: lc.Learner, dtype: str) -> str:
    X, y = stream(learner, 400, 8)
    features, network = lc.RandomFeatures.gaussian(3, 13, bandwidth=0.6, seed=4), lc.Network.random(8, p=0.4, seed=1)
    trace = lc.simulate(learner, features, network, X, y, dtype=dtype, engine="compiled", collective=True)
    columns = trace.predictions, trace.sent, trace.saturated, trace.consensus_error, trace.collective_loss
    return digest_of(list(columns))


def state_digest(learner: lc.Learner, dtype: str) -> str:
    X, y = stream(learner, 120, 8)
    features, network = lc.RandomFeatures.automatic(X[:5], 14, seed=4), lc.Network.random(8, p=0.4, seed=1)
    state = lc.simulate(learner, features, network, X, y, dtype=dtype, engine="compiled").state
    parts = [array for _, array in sorted({**state.learner, **state.channel}.items())]
    return digest_of([np.asarray(array) for array in [*parts, state.broadcast]])


def messages_digest(learner: lc.Learner, dtype: str) -> str:
    """Of every message of three agents in a row."""
    return digest_of(agents_of(learner, dtype)[1])


def checkpoints_digest(learner: lc.Learner, dtype: str) -> str:
    """Of the checkpoints of three agents in a row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        written = []
        for agent in agents_of(learner, dtype)[0].values():
            agent.save(path)
            written.append(path.read_bytes())
    return digest_of(list(written))


def agents_of(learner: lc.Learner, dtype: str) -> tuple[dict[str, lc.Agent], list[np.ndarray | bytes]]:
    """Three agents in a row after 60 rounds, and what they have sent."""
    X, y = stream(learner, 60, 3)
    features = lc.RandomFeatures.gaussian(3, 13, bandwidth=0.6, seed=4)
    neighbours = {"ann": ["ben"], "ben": ["ann", "cat"], "cat": ["ben"]}
    agents = {
        name: lc.Agent(name, neighbours[name], features, learner, n_agents=3, dtype=dtype, incarnation=k + 1)
        for k, name in enumerate(NAMES)
    }
    said: list[np.ndarray | bytes] = []
    _carry(agents, said)
    for x, label in zip(X, y, strict=True):
        for k, agent in enumerate(agents.values()):
            agent.learn(x[k], label[k])
        _carry(agents, said)
    return agents, said


def _carry(agents: dict[str, lc.Agent], said: list[np.ndarray | bytes]) -> None:
    while messages := [(name, message) for name, agent in agents.items() for message in agent.outgoing()]:
        for name, message in messages:
            said.append(message.data)
            agents[message.to].receive(message.data, name)


def digests() -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of each digest, and what computes it."""
    kinds = {
        "trace": trace_digest,
        "state": state_digest,
        "messages": messages_digest,
        "checkpoints": checkpoints_digest,
    }
    for kind in lc.learners.every():
        for variant in kind.variants:
            for loss in LOSSES:
                for number, channel in enumerate(CHANNELS):
                    learner = make(kind, loss, channel=channel, **variant)
                    for what, compute in kinds.items() if supports(learner) else ():
                        for dtype in ("float64", "float32"):
                            name = f"{what} {kind.__name__} {variant} {loss} {number} {dtype}"
                            yield name, lambda compute=compute, learner=learner, dtype=dtype: compute(learner, dtype)


def main(words: list[str]) -> None:
    for name, compute in digests():
        if all(word in name for word in words):
            try:
                found = compute()
            except (ValueError, lc.Diverged) as error:
                found = type(error).__name__
            print(name, found, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
