"""A site on two machines, in small: two processes that share nothing but a pipe for bytes.

On devices zenoh carries the bytes, and ``laconic agent`` drives: see docs/agents.md and docs/deploy.md.
"""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
from shared import axes, save, size

import laconic as lc


def live(name: str, other: str, pipe: Connection, rounds: int, errors: Connection) -> None:
    """One machine: measure, learn, send bytes, wait for bytes."""
    features = lc.RandomFeatures.gaussian(1, n_frequencies=10, bandwidth=0.3)
    agent = lc.Agent(name, [other], features, lc.QCODKLA(eta=1.0, alpha=0.5), n_agents=2, engine="reference")
    rng, found = np.random.default_rng(ord(name)), []

    def talk() -> None:
        for message in agent.outgoing():
            pipe.send_bytes(message.data)

    talk()
    while len(found) < rounds:
        while not agent.ready:
            agent.receive(pipe.recv_bytes(), other)
            talk()
        x = rng.uniform(size=1)
        y = np.sin(6 * x[0]) + 0.05 * rng.standard_normal()
        found.append((agent.learn(x, y).prediction - y) ** 2)
        talk()
    errors.send((found, agent.counters["bytes_out"]))
    pipe.close()


def main() -> None:
    rounds = size(400, 20)
    here, there = multiprocessing.Pipe()
    told = [multiprocessing.Pipe() for _ in range(2)]
    for name, other, end, (_, errors) in (("a", "b", here, told[0]), ("b", "a", there, told[1])):
        multiprocessing.Process(target=live, args=(name, other, end, rounds, errors), daemon=True).start()
    figure, panel = axes()
    for name, (results, _) in zip("ab", told, strict=True):
        found, sent = results.recv()
        panel.semilogy(np.convolve(found, np.ones(10) / 10, "valid"), label=f"machine {name}: {sent / 1e3:.0f} kB sent")
    panel.set(xlabel="round", ylabel="error, mean of ten rounds")
    panel.legend(frameon=False)
    save(figure, "two_processes")


if __name__ == "__main__":
    main()
