"""Machine code for the tests, made once, before two processes would both make it.

A test run on two processes meets each kernel in both at about the same time, and what one compiles the other has not
yet on disk. In one process the next kernel costs a fifth of the first, because what they call is there. So a run of
everything begins with two processes, one for each precision; a run with a warm cache begins at once.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import laconic as lc

HERE = Path(__file__)


def is_cold():
    """Whether nothing that was made of the files of compiled code as they are is kept on disk."""
    from laconic.engine import cache, rounds

    index = Path(rounds.advance._cache._cache_file._index_path)
    assert cache.digest() in index.name
    return not index.is_file()


def warm():
    """Compile in a process for each precision, side by side."""

    def compile_in_a_process(precision):
        subprocess.run([sys.executable, str(HERE), precision], check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_in_a_process, ("float64", "float32")))


def talk(learner, features, dtype):
    """Two agents that learn and tell each other."""
    agents = {name: lc.Agent(name, [other], features, learner, n_agents=2, dtype=dtype) for name, other in ("ab", "ba")}
    for _ in range(8):  # the first of them to get to know each other
        for agent in agents.values():
            if agent.ready:
                agent.predict(np.zeros(2))
                agent.learn(np.zeros(2), 1.0)
        for name, other in ("ab", "ba"):
            for message in agents[name].outgoing():
                agents[other].receive(message.data, name)


def compile_kernels(dtype):
    """Simulations, resumed ones too, and agents that talk: through channels that reach every kernel of rows."""
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=4, bandwidth=0.5, seed=0)
    run = features, lc.Network.ring(2), np.zeros((2, 2, 2)), np.ones((2, 2))
    quiet = lc.QCODKLA(alpha=0.0, beta=0.5, bits=3)
    for learner in (quiet, lc.Experts()):
        first = lc.simulate(learner, *run, dtype=dtype)
        lc.simulate(learner, *run, dtype=dtype, state=first.state)
        if dtype == "float64":
            lc.simulate(learner, *run, collective=True)
    spoken = lc.RFFDOKL(order="adapt-then-combine", listen="spoken")
    coded = lc.ODKLA(channel=lc.Channel(quantizer=lc.EntropyQuantizer(0.4)))
    for learner in (quiet, lc.ODKLA(robust="clip"), coded, spoken, lc.Experts()):
        talk(learner, features, dtype)


def compile_others():
    """What is compiled in double precision only."""
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=4, bandwidth=0.5, seed=0)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 3, 2))
    for learner in (lc.WaveRLS(), lc.Personal()):
        lc.simulate(learner, features, lc.Network.path(3), X, X[..., 0])
        lc.simulate(learner, features, lc.Network.path(3), X, X[..., 0], collective=True)


if __name__ == "__main__":
    compile_kernels(sys.argv[1])
    if sys.argv[1] == "float64":
        compile_others()
