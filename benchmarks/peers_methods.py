"""How each library learns a job of ``peers.py``: everything that knows their names."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import numpy as np

WORD = 32  # bits of a number that is sent
Number = Any  # what seed 0 chooses: a step, or the two of ADMM


@dataclass
class Job:
    """Rows of ten agents, their features, rows to score on, and who hears whom."""

    X: Any
    y: Any
    X_new: Any
    y_new: Any
    phi: Any
    phi_new: Any
    frequencies: Any
    edges: Any
    seed: int
    ridge: float = 1e-3

    @classmethod
    def read(cls, path: Path, seed: int) -> Job:
        """From a file."""
        with np.load(path) as held:
            return cls(**held, seed=seed)

    @property
    def n_agents(self) -> int:
        """Ten."""
        return self.y.shape[1]

    @property
    def size(self) -> int:
        """Numbers of a model."""
        return self.phi.shape[2]

    @property
    def raw_bits(self) -> int:
        """What an agent sends that sends all its rows to a centre."""
        return len(self.y) * (self.X.shape[2] + 1) * WORD

    def adjacency(self) -> Any:
        """1 where two hear each other."""
        joined = np.zeros((self.n_agents, self.n_agents))
        joined[tuple(self.edges.T)] = 1
        return joined + joined.T

    def parabolas(self) -> tuple[Any, Any]:
        """Matrix and vector of each agent's least squares: half the mean squared error, and the ridge."""
        phi, y = self.phi.swapaxes(0, 1), self.y.T[..., None]
        curved = phi.swapaxes(1, 2) @ phi / len(self.y) + self.ridge * np.eye(self.size)
        return curved, phi.swapaxes(1, 2) @ y / len(self.y)


@dataclass
class Run:
    """What each agent (or the one centre) predicts for the rows to score on, and what that took."""

    predictions: Any
    bits: float
    seconds: float


@dataclass(frozen=True)
class Method:
    """A line of the table; ``grid`` holds what seed 0 chooses among."""

    name: str
    run: Callable[[Job, Number], Run]
    grid: tuple[Number, ...] = (0.0,)


def error(job: Job, predictions: Any) -> float:
    with np.errstate(all="ignore"):
        return float(np.mean((predictions - job.y_new) ** 2))


def centre(job: Job, ridge: float) -> Any:
    phi = job.phi.reshape(-1, job.size)
    curved = phi.T @ phi / len(phi) + ridge * np.eye(job.size)
    return job.phi_new @ np.linalg.solve(curved, phi.T @ job.y.ravel() / len(phi))


def steps(job: Job) -> float:
    """The longest step that gradient descent of every agent can take alone."""
    return 1 / float(np.linalg.eigvalsh(job.parabolas()[0]).max())


# laconic


def simulated(make: Callable[[Job, Number], Any]) -> Callable[[Job, Number], Run]:
    def run(job: Job, number: Number) -> Run:
        import laconic as lc

        features, network = lc.RandomFeatures(job.frequencies), lc.Network(job.n_agents, job.edges)
        learner = make(job, number)
        lc.simulate(learner, features, network, job.X[:3], job.y[:3])  # compiled, if it was not yet
        begin = time.perf_counter()
        try:
            trace = lc.simulate(learner, features, network, job.X, job.y)
        except lc.Diverged:
            return Run(np.nan, np.nan, np.nan)
        seconds = time.perf_counter() - begin
        return Run(trace.weights @ job.phi_new.T, trace.bits.sum() / job.n_agents, seconds)

    return run


def waves(_: Job, __: Number) -> Any:
    import laconic as lc

    return lc.WaveRLS()


def alone(job: Job, _: Number) -> Any:
    import laconic as lc

    return lc.WaveRLS().alone(len(job.y))


def odkla(_: Job, number: Number) -> Any:
    import laconic as lc

    return lc.ODKLA(*number)


def qcodkla(_: Job, number: Number) -> Any:
    import laconic as lc

    return lc.QCODKLA(*number[:2], alpha=number[2], beta=0.9995, bits=3)


# One centre that is sent everything: scikit-learn and river


def batch(make: Callable[[Job], Any], raw: bool) -> Callable[[Job, Number], Run]:
    def run(job: Job, _: Number) -> Run:
        model = make(job)
        rows, fresh = (job.X, job.X_new) if raw else (job.phi, job.phi_new)
        begin = time.perf_counter()
        model.fit(rows.reshape(-1, rows.shape[2]), job.y.ravel())
        seconds = time.perf_counter() - begin
        return Run(model.predict(fresh), job.raw_bits, seconds)

    return run


def ridge(job: Job) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(alpha=job.ridge * job.y.size, fit_intercept=False)


def boosted(job: Job) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=job.seed)


def one_by_one(make: Callable[[Job, Number], Any], raw: bool) -> Callable[[Job, Number], Run]:
    def run(job: Job, number: Number) -> Run:
        model = make(job, number)
        rows, fresh = (job.X, job.X_new) if raw else (job.phi, job.phi_new)
        samples = [dict(enumerate(row)) for row in rows.reshape(-1, rows.shape[2]).tolist()]
        begin = time.perf_counter()
        for sample, label in zip(samples, job.y.ravel().tolist(), strict=True):
            model.learn_one(sample, label)
        seconds = time.perf_counter() - begin
        said = [model.predict_one(dict(enumerate(row))) for row in fresh.tolist()]
        return Run(np.array(said), job.raw_bits, seconds)

    return run


def gradient(_: Job, step: Number) -> Any:
    from river import linear_model, optim

    return linear_model.LinearRegression(optim.SGD(step), intercept_lr=0.0)


def bayesian(job: Job, _: Number) -> Any:
    from river import linear_model

    # alpha / beta is the ridge of all rows together
    return linear_model.BayesianLinearRegression(alpha=job.ridge * job.y.size, beta=1.0)


def tree(job: Job, _: Number) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeRegressor(seed=job.seed)


# Solvers over a network, which see all rows of an agent in every iteration: tvopt and disropt


def tvopt(algorithm: str, iterations: int) -> Callable[[Job, Number], Run]:
    def run(job: Job, number: Number) -> Run:
        from tvopt import costs, distributed_solvers, networks

        curved, towards = job.parabolas()
        parts = [costs.Quadratic(A, -b) for A, b in zip(curved, towards, strict=True)]
        network = networks.Network(job.adjacency())
        problem = {"f": costs.SeparableCost(parts), "network": network}
        begin = time.perf_counter()
        with np.errstate(all="ignore"):
            if algorithm == "nids":
                said = distributed_solvers.nids(problem, number * steps(job), num_iter=iterations)
                messages = iterations - 1.0
            else:
                said, _ = distributed_solvers.admm(problem, number, 0.5, num_iter=iterations)
                messages = iterations * float(np.mean(network.degrees))  # another one for each neighbour
        seconds = time.perf_counter() - begin
        return Run((job.phi_new @ said[:, 0]).T, messages * job.size * WORD, seconds)

    return run


def disropt(iterations: int) -> Callable[[Job, Number], Run]:
    """Gradient tracking, an agent a thread: over MPI its processes wait by spinning, and here are fewer cores."""

    def run(job: Job, number: Number) -> Run:
        from disropt.agents import Agent
        from disropt.algorithms import GradientTracking
        from disropt.communicators import Communicator
        from disropt.functions import QuadraticForm, Variable
        from disropt.problems import Problem
        from disropt.utils.graph_constructor import metropolis_hastings

        joined, n = job.adjacency(), job.n_agents
        mail = {(one, other): Queue() for one in range(n) for other in range(n)}

        class Threads(Communicator):
            """Hands arrays over from thread to thread."""

            def __init__(self, rank: int) -> None:
                self.rank, self.size = rank, n

            def neighbors_exchange(self, said: Any, hears: Any, told: Any, *_: Any, **__: Any) -> dict[int, Any]:
                """Tell all, hear all."""
                for other in told:
                    mail[self.rank, other].put(said.copy())
                return {other: mail[other, self.rank].get() for other in hears}

        weights, solvers = metropolis_hastings(joined), []
        for rank, (curved, towards) in enumerate(zip(*job.parabolas(), strict=True)):
            near = np.nonzero(joined[rank])[0].tolist()
            agent = Agent(near, communicator=Threads(rank), in_weights=weights[rank].tolist())
            agent.set_problem(Problem(QuadraticForm(Variable(job.size), curved / 2, -towards)))
            solvers.append(GradientTracking(agent, np.zeros((job.size, 1))))
        begin = time.perf_counter()
        with ThreadPoolExecutor(n) as pool, np.errstate(all="ignore"):
            step = number * steps(job)
            list(pool.map(lambda solver: solver.run(iterations=iterations, stepsize=step), solvers))
        seconds = time.perf_counter() - begin
        said = np.stack([solver.get_result()[:, 0] for solver in solvers])
        return Run(said @ job.phi_new.T, 2 * iterations * job.size * WORD, seconds)

    return run


# Averages of models that were each learned a little further: Flower and p2pfl

LOCAL_STEPS = 20


def descend(curved: Any, towards: Any, weights: Any, step: float) -> Any:
    for _ in range(LOCAL_STEPS):
        weights = weights - step * (curved @ weights - towards)
    return weights


class Inside:
    """Flower's grid without its runtime: clients are called one after the other, in this process."""

    def __init__(self, client: Any, n_agents: int) -> None:
        self.client, self.n_agents = client, n_agents

    def get_node_ids(self) -> list[int]:
        """Numbers above zero, which has a meaning of its own."""
        return list(range(1, self.n_agents + 1))

    def send_and_receive(self, messages: Any, **_: Any) -> list[Any]:
        """All answers."""
        said = []
        for message in messages:
            there = SimpleNamespace(node_config={"partition-id": message.metadata.dst_node_id - 1})
            said.append(self.client(message, there))
        return said


def flower(rounds: int) -> Callable[[Job, Number], Run]:
    """Flower's FedAvg and client, without the processes of Ray."""

    def run(job: Job, number: Number) -> Run:
        import logging

        from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
        from flwr.clientapp import ClientApp
        from flwr.serverapp.strategy import FedAvg
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1  # as its runtime would
        logging.getLogger("flwr").setLevel(logging.ERROR)
        curved, towards = job.parabolas()
        step, n_rows, n = number * steps(job), len(job.y), job.n_agents
        client = ClientApp()

        @client.train()
        def train(message: Any, context: Any) -> Any:
            agent = int(context.node_config["partition-id"])
            (weights,) = message.content["arrays"].to_numpy_ndarrays()
            weights = descend(curved[agent], towards[agent], weights, step)
            content = {"arrays": ArrayRecord([weights]), "metrics": MetricRecord({"num-examples": n_rows})}
            return Message(content=RecordDict(content), reply_to=message)

        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=n, min_available_nodes=n)
        begin = time.perf_counter()
        result = strategy.start(Inside(client, n), ArrayRecord([np.zeros((job.size, 1))]), num_rounds=rounds)
        seconds = time.perf_counter() - begin
        (weights,) = result.arrays.to_numpy_ndarrays()
        return Run(job.phi_new @ weights[:, 0], rounds * job.size * WORD, seconds)

    return run


def p2pfl(rounds: int) -> Callable[[Job, Number], Run]:
    def run(job: Job, number: Number) -> Run:
        from peers_p2pfl import learn

        curved, towards = job.parabolas()
        said, messages, seconds = learn(curved, towards, job.adjacency(), rounds, number * steps(job), len(job.y))
        return Run(said @ job.phi_new.T, messages / job.n_agents * job.size * WORD, seconds)

    return run


TRIED = (1.0, 0.5, 0.25, 0.1)
PAIRS = tuple((rho, eta) for rho in (0.02, 0.1, 0.5, 2.0) for eta in (0.25, 0.5, 1.0, 2.0))
METHODS = {
    "laconic": (
        Method("WaveRLS, as it comes", simulated(waves)),
        Method("ODKLA", simulated(odkla), PAIRS),
        Method("QC-ODKLA", simulated(qcodkla), tuple((*pair, alpha) for pair in PAIRS for alpha in (0.3, 0.1, 0.03))),
        Method("alone: no word to anybody", simulated(alone)),
    ),
    "scikit-learn": (
        Method("centre: ridge over the same features", batch(ridge, raw=False)),
        Method("centre: boosted trees on raw rows", batch(boosted, raw=True)),
    ),
    "river": (
        Method("centre: SGD over the same features", one_by_one(gradient, raw=False), (0.05, 0.1, 0.2, 0.5, 1.0)),
        Method("centre: Bayesian linear regression, same features", one_by_one(bayesian, raw=False)),
        Method("centre: adaptive Hoeffding tree on raw rows", one_by_one(tree, raw=True)),
    ),
    "tvopt": tuple(
        Method(f"{title}, {iterations:,} iterations", tvopt(algorithm, iterations), grid)
        for algorithm, title, grid in (
            ("nids", "NIDS", (1.8, *TRIED)),
            ("admm", "ADMM", (1.0, 0.1, 0.01, 0.001)),
        )
        for iterations in (100, 1000)
    ),
    "disropt": (Method("gradient tracking, 100 iterations", disropt(100), (0.25, 0.1, 0.03)),),
    "flwr": (Method(f"FedAvg, 50 rounds of {LOCAL_STEPS} steps", flower(50), (1.8, 1.0, 0.5)),),
    "p2pfl": (Method(f"FedAvg by gossip, 5 rounds of {LOCAL_STEPS} steps", p2pfl(5), (1.0,)),),
}
