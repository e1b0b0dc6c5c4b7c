"""The kills of ``chaos.py`` on the virtual network: ``python benchmarks/virtual_kills.py [--clock lockstep]``.

Cheap, and the same again with the same seed: agents are killed one or two at a time, lose their disk or not, and after
some calm the error of their models is compared with that of the simulator after as many samples as they have learned
from, on average. ``--notice`` is how many seconds it takes until a neighbour is seen to be gone, or back, at most.
"""

from __future__ import annotations

import argparse
import logging
import random

import numpy as np
from agents import FREQUENCIES, INPUTS, LEARNER, lattice, streams

import laconic as lc
from laconic.transport import virtual, wires
from laconic.transport.faults import Crash


def draw_kills(options: argparse.Namespace, edges: list[tuple[str, str]]) -> list[Crash]:
    """One agent, or two neighbours at once, time after time."""
    dice, time = random.Random(options.seed), 5.0
    faults: list[Crash] = []
    while len(faults) < options.kills:
        time += dice.uniform(1, 6)
        edge = dice.choice(edges)
        victims = edge if dice.random() < 1 / 3 else edge[:1]
        stop = time + options.down * dice.uniform(0.7, 1.3)
        faults += [Crash(time, stop, name, disk=dice.random() < options.disk) for name in victims]
        time = stop
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=61)
    parser.add_argument("--disk", type=float, default=0.33, help="the share of crashes that leave the disk")
    parser.add_argument("--down", type=float, default=3.0, help="seconds that a crash lasts")
    parser.add_argument("--clock", choices=["slotted", "lockstep"], default="slotted")
    parser.add_argument("--slot", type=float, default=0.1, help="seconds")
    parser.add_argument("--notice", type=float, default=1.5, help="seconds")
    parser.add_argument("--calm", type=float, default=20.0, help="seconds at the end")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.getLogger("laconic.protocol").setLevel(logging.ERROR)
    virtual.SLOT, virtual.WORK["slotted"] = options.slot, 0.3 * options.slot
    wires.NOTICED, wires.LATENCY = (0.2 * options.notice, options.notice), (0.002, 0.05)
    graph = lattice()
    names = list(graph)
    edges = sorted({(min(a, b), max(a, b)) for a, others in graph.items() for b in others})
    network = lc.Network.from_edges(len(names), [(names.index(a), names.index(b)) for a, b in edges], names)
    features = lc.RandomFeatures.gaussian(INPUTS, FREQUENCIES, bandwidth=1.0, seed=0)
    learner = lc.QCODKLA(**LEARNER)
    X, y = streams(5000)
    faults = draw_kills(options, edges)
    run = virtual.VirtualNetwork(
        learner, features, network, X, y, clock=options.clock, faults=faults, seed=options.seed, checkpoint_every=100
    )
    run.run(10**9, until=faults[-1].stop + options.calm)
    points = np.random.default_rng(99).uniform(size=(2000, INPUTS))
    phi, target = features(points), np.sin(3 * points[:, 0]) + points[:, 1]

    def error(models: object) -> float:
        return float(np.mean((np.asarray(models) @ phi.T - target) ** 2))

    learned = int(np.mean([run.learned[name] for name in names]))
    found = error([run.models[name][-1] for name in names])
    calm = error(lc.simulate(learner, features, network, X[:learned], y[:learned]).weights)
    print(f"{len(faults)} kills, {learned} samples an agent: error {found:.3e}, without faults {calm:.3e}: ", end="")
    print(f"{found / calm:.3f}")


if __name__ == "__main__":
    main()
