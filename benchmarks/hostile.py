"""What hostile members do to honest agents, with and without ``robust="clip"``: ``python benchmarks/hostile.py``.

Ten agents in lockstep, in one process; what they say goes from one to the other as bytes. None, one or two of them are
hostile: members with everything that a member has, whose messages are valid. A hostile member learns alone, and well,
and says

    huge        its model times 10^6, growing to 10^14
    flipped     its model with the sign turned
    random      in every round another vector, three times as long as its model
    drifting    its model, and 0.01 more in every round, in a direction that stays

The error is that of every honest model on every honest agent's sample, before it is learned from, over the second half
of the rounds, divided by that of the same agents on the same streams when nobody is hostile and nothing is clipped.
"Alone" is an agent that hears nobody (Local), as a yardstick: beyond it, who listens would do better not to.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import laconic as lc
from laconic.engine.endings import FINISHED

N_AGENTS = 10
ATTACKS = ("huge", "flipped", "random", "drifting")
LEARNERS = {"ODKLA": lc.ODKLA, "QC-ODKLA": lc.QCODKLA, "DOKL": lc.DOKL, "RFF-DOKL": lc.RFFDOKL}
STEPS: dict[str, dict[str, Any]] = {
    "ODKLA": {"rho": 0.5, "eta": 2.0},
    "QC-ODKLA": {"rho": 0.5, "eta": 2.0, "alpha": 1.0, "beta": 0.98},
    "DOKL": {"rho": 0.5, "eta": 2.0},
    "RFF-DOKL": {"step": 0.25},
}


def make_stream(seed: int, n_rounds: int, unlike: bool) -> tuple[lc.RandomFeatures, Any, Any]:
    """A feature map, inputs (T, N, 3) and labels (T, N); ``unlike`` agents see a tenth of the first input each."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rounds, N_AGENTS, 3))
    if unlike:
        X[..., 0] = (X[..., 0] + np.arange(N_AGENTS)) / N_AGENTS
    y = np.sin(5 * X[..., 0]) * X[..., 1] + 0.5 * X[..., 2] ** 2 + 0.05 * rng.standard_normal(X.shape[:2])
    return lc.RandomFeatures.gaussian(3, 50, bandwidth=0.7, seed=seed), X, y


class Liar:
    """What a hostile member says, in the place of a model that it has learned alone."""

    def __init__(self, agent: lc.Agent, attack: str, seed: int, n_rounds: int) -> None:
        self.agent, self.attack, self.n_rounds = agent, attack, n_rounds
        self.model = self.said = np.zeros(agent.features.n_features)
        agent._ledger.learn = self._learn  # type: ignore[method-assign]
        self.rng = np.random.default_rng(seed)
        direction = self.rng.standard_normal(len(self.model))
        self.direction = direction / np.linalg.norm(direction)

    def speak(self, phi: Any, label: float, t: int) -> None:
        """Learn alone, then have the agent say something else."""
        self.model = self.model - 0.25 * 2 * (self.model @ phi - label) * phi
        model = self.model
        if self.attack == "huge":
            said = model * 10.0 ** min(14.0, 6 + 8 * t / self.n_rounds)
        elif self.attack == "flipped":
            said = -model
        elif self.attack == "random":
            said = self.rng.standard_normal(len(model)) * 3 * np.linalg.norm(model) / len(model) ** 0.5
        else:
            said = model + 0.01 * t * self.direction
        self.said = said
        self.agent.idle()

    def _learn(self, label: float, t: int) -> tuple[int, float]:
        """In the place of a step: the model is the lie."""
        self.agent._ledger.weights = self.said
        return FINISHED, 0.0


def carry(agents: dict[str, lc.Agent]) -> None:
    """Carry every message to where it belongs, until nobody has anything left to say."""
    while letters := [(name, m) for name, agent in agents.items() for m in agent.outgoing()]:
        for sender, message in letters:
            agents[message.to].receive(message.data, sender)


def wait(agents: dict[str, lc.Agent], honest: list[str], lie: Callable[[], None]) -> None:
    """Remind, as whoever drives agents does, until the honest are ready: one that is refused is given up in time."""
    for _ in range(1000):
        carry(agents)
        if all(agents[name].ready for name in honest):
            return
        lie()  # who was shut out may be back, and then is waited for
        for agent in agents.values():  # a liar is driven like the others, and says again what is asked for
            agent.remind()
    raise SystemExit("honest agents wait for ever")


def run(learner: lc.Learner, network: lc.Network, stream: Any, hostile: tuple[int, ...], attack: str, seed: int) -> Any:
    """The mean square error of each model (rows) on each agent's samples, over the second half of the rounds."""
    features, X, y = stream
    names = [f"agent{i}" for i in range(N_AGENTS)]
    around = [network.neighbours[network.starts[i] : network.starts[i + 1]] for i in range(N_AGENTS)]
    agents = {
        names[i]: lc.Agent(names[i], [names[j] for j in around[i]], features, learner, n_agents=N_AGENTS)
        for i in range(N_AGENTS)
    }
    honest = [i for i in range(N_AGENTS) if i not in hostile]
    liars = {i: Liar(agents[names[i]], attack, 1000 * seed + i, len(y)) for i in hostile}
    phi = features(X.reshape(-1, X.shape[2])).reshape(*y.shape, -1)
    carry(agents)
    squares, scored = np.zeros((N_AGENTS, N_AGENTS)), len(y) - len(y) // 2
    for t in range(len(y)):
        if t >= len(y) - scored:
            models = np.array([agent.weights for agent in agents.values()])
            squares += (models @ phi[t].T - y[t]) ** 2 / scored

        def lie(t: int = t) -> None:
            for i, liar in liars.items():
                if liar.agent.ready and liar.agent.round < max(agent.round for agent in agents.values()):
                    liar.speak(phi[t, i], y[t, i], t)

        try:
            for i in honest:
                agents[names[i]].learn(X[t, i], y[t, i])
        except lc.Diverged:
            return np.full_like(squares, np.inf)
        wait(agents, [names[i] for i in honest], lie)
    return squares


def alone(stream: Any) -> float:
    """The mean square error of agents that hear nobody, on all samples."""
    features, X, y = stream
    half = len(y) // 2
    trace = lc.simulate(lc.Local(0.25), features, lc.Network.complete(N_AGENTS), X, y, collective=True)
    return float(np.asarray(trace.collective_square)[half:].mean())


def measure(seeds: list[int], n_rounds: int, unlike: bool, reach: float) -> dict[str, dict[str, list[float]]]:
    """For each learner and row of the table: the ratio to the run without hostile members, a number a seed."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in LEARNERS}
    for name, kind in LEARNERS.items():
        for seed in seeds:
            stream, network = make_stream(seed, n_rounds, unlike), lc.Network.random(N_AGENTS, 0.5, seed=seed)
            order = tuple(int(i) for i in np.random.default_rng(seed).permutation(N_AGENTS))
            plain = kind(**STEPS[name])
            base = run(plain, network, stream, (), "", seed)
            for title, learner in (("as it is", plain), ("clip", kind(**STEPS[name], robust="clip", reach=reach))):
                for n_hostile in (0, 1, 2):
                    for attack in ATTACKS if n_hostile else ("none",):
                        row = f"{n_hostile} {attack}, {title}"
                        hostile, honest = order[:n_hostile], np.ix_(order[n_hostile:], order[n_hostile:])
                        squares = base if learner is plain and not hostile else None
                        if squares is None:
                            squares = run(learner, network, stream, hostile, attack, seed)
                        ratio = float(squares[honest].mean() / base[honest].mean())
                        found[name].setdefault(row, []).append(ratio)
            found[name].setdefault("alone", []).append(alone(stream) / float(base.mean()))
    return found


def show(found: dict[str, dict[str, list[float]]]) -> str:
    """A table in Markdown: without clipping and with, the worst of the seeds."""

    def cell(values: list[float]) -> str:
        worst = max(values)
        return "diverges" if worst == np.inf else f"{worst:.2f}" if worst < 1000 else f"{worst:.0e}"

    lines = [
        "| hostile | " + " | ".join(f"{name} | clip" for name in found) + " |",
        "|---" * (1 + 2 * len(found)) + "|",
    ]
    for n_hostile in (0, 1, 2):
        for attack in ATTACKS if n_hostile else ("none",):
            row = f"{n_hostile} {attack}"
            cells = [cell(found[name][f"{row}, {title}"]) for name in found for title in ("as it is", "clip")]
            lines.append(f"| {row if n_hostile else 'nobody'} | " + " | ".join(cells) + " |")
    lines.append("| (alone) | " + " | ".join(f"{cell(found[name]['alone'])} | " for name in found) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--reach", type=float, default=1.5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hostile.json")
    options = parser.parse_args()
    started, tables = time.perf_counter(), {}
    for title, unlike in (("agents alike", False), ("agents unlike", True)):
        tables[title] = measure(options.seeds, options.rounds, unlike, options.reach)
        print(f"{title}: error over that without hostile members, worst of seeds {options.seeds}\n")
        print(show(tables[title]), flush=True)
        print()
    about = {
        "seeds": options.seeds,
        "rounds": options.rounds,
        "reach": options.reach,
        "machine": platform.platform(),
        "seconds": round(time.perf_counter() - started, 1),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"about": about, **tables}, indent=2) + "\n")


if __name__ == "__main__":
    main()
