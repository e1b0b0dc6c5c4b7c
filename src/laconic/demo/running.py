"""The runs of the demonstration: every learner on the same samples, what each knew when, and what it said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.defaults import PREFIX, choose
from laconic.demo import landscape
from laconic.engine import simulate
from laconic.features import RandomFeatures
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner, Local, WaveRLS
from laconic.network import Network
from laconic.offline import recursive_least_squares

#: The first seed, the number of rounds, and the fewest that make sense.
SEED, ROUNDS, FEWEST = 0, 2000, 100
#: Steps and thresholds of the gradient learners, chosen by hand on the samples of seed 0.
RHO, ETA, STEP, ALPHA, BETA, BITS = 0.5, 1.0, 0.25, 0.3, 0.9995, 3
_FREQUENCIES, _BANDWIDTH = 50, 0.2
_RIDGE = 0.05  # of the centre: that of the waves
_MOMENTS = 40
_WIDE, _HIGH = 50, 20  # points at which models are held against the landscape
_LATE = 5  # the last fifth shows what models are worth by now
_NUMBER_BITS = 32

ALONE, CENTRE, DEFAULT, REFERENCE = "Local RLS", "a centre", "the default", "ODKLA"


@final
@dataclass(frozen=True, eq=False)
class Run:
    """One learner's run.

    Attributes
    ----------
    name, about : str
        What it is called, and what it is in a few words.
    features : RandomFeatures
        What its models are seen through.
    centre : float
        What is added to a prediction: labels were learned as their distance from it.
    own, everywhere : array (T, N)
        Squared errors of each agent's prediction on its own sample, and of its model on everybody's, in the mean.
    bits : array (T, N)
        What each agent sent in each round, 0 where it kept silent.
    models : array (M, N, D)
        The models after each of the moments; a centre has one for all.
    seconds : float
        Wall time of learning alone, of all agents together.
    tree : bool
        Whether messages go along a tree, one hop a round, and not to all neighbours.
    """

    name: str
    about: str
    features: RandomFeatures
    centre: float
    own: Array
    everywhere: Array
    bits: Array
    models: Array
    seconds: float
    tree: bool = False

    @cached_property
    def off(self) -> Array:
        """Mean squared distance of each model from the landscape as it is, all over it, without noise, (M, N)."""
        points = landscape.grid(_WIDE, _HIGH)
        gaps = self.models @ self.features(points).T + self.centre - landscape.landscape(points)
        return np.asarray((gaps**2).mean(axis=-1))

    @cached_property
    def row(self) -> dict[str, Any]:
        """Its line of the table."""
        late = len(self.own) // _LATE
        return {
            "name": self.name,
            "about": self.about,
            "own_error": float(self.own.mean()),
            "global_error": float(self.everywhere.mean()),
            "late_error": float(self.everywhere[-late:].mean()),
            "bits": int(self.bits.sum()),
            "messages": int((self.bits > 0).sum()),
            "off": float(self.off[-1].mean()),
            "silence": float((self.bits == 0).mean()),
            "seconds": self.seconds,
        }


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """All runs, by name, and what they ran on; ``moments`` are the rounds after which models were kept."""

    runs: dict[str, Run]
    network: Network
    moments: tuple[int, ...]
    seed: int
    seconds: float

    @property
    def n_rounds(self) -> int:
        """Rounds that every learner ran."""
        return self.moments[-1]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table: a row for each learner, ``best`` naming the columns in which no other that sends no raw rows wins.

        Bits and messages are compared among those that end within a tenth of the smallest error on everybody's data:
        saying little is no art if nothing is learned.
        """
        rows = [dict(run.row, best=[]) for run in self.runs.values()]
        apart = [row for row in rows if row["name"] != CENTRE]
        for column in ("own_error", "global_error", "late_error"):
            min(apart, key=lambda row: row[column])["best"].append(column)
        least = min(row["late_error"] for row in apart)
        good = [row for row in apart if row["late_error"] <= 1.1 * least]
        for column in ("bits", "messages"):
            min(good, key=lambda row: row[column])["best"].append(column)
        return rows

    @property
    def hero(self) -> dict[str, Any]:
        """The row of the learner that knows most of everybody's data without having seen it."""
        return next(row for row in self.rows if "global_error" in row["best"])


def show(n_rounds: int = ROUNDS, seed: int = SEED, tell: Callable[[str], object] = lambda name: None) -> Outcome:
    """Run every learner on the same landscape; ``tell`` hears the name of each before it starts.

    Examples
    --------
    >>> from laconic.demo import show
    >>> rows = {row["name"]: row for row in show(n_rounds=200).rows}
    >>> rows["WaveRLS"]["global_error"] < rows["ODKLA"]["global_error"] < rows["Local"]["global_error"]
    True
    >>> rows["ODKLA"]["bits"] > 20 * rows["WaveRLS"]["bits"]
    True
    """
    n_rounds = _validate.integer("n_rounds", n_rounds, least=FEWEST)
    seed = _validate.integer("seed", seed, least=0)
    started = time.perf_counter()
    network = landscape.neighbourhood()
    X, y = landscape.measure(n_rounds, seed)
    moments = _moments(n_rounds)
    features = shared_features(seed)
    runs = {}
    for name, (learner, about) in learners(n_rounds).items():
        tell(name)
        runs[name] = _run(name, about, learner, features, network, X, y, moments)
    tell(DEFAULT)
    choice = choose(X[:PREFIX], y[:PREFIX], seed=seed)
    centre = choice.labels.centre
    about = f"{choice.learner.name}, features and all, chosen from the first {PREFIX} rounds"
    runs[DEFAULT] = _run(DEFAULT, about, choice.learner, choice.features, network, X, y - centre, moments, centre)
    tell(CENTRE)
    runs[CENTRE] = _centre(features, X, y, moments)
    return Outcome(runs, network, moments, seed, time.perf_counter() - started)


def shared_features(seed: int) -> RandomFeatures:
    """What all learners but the default see the landscape through."""
    return RandomFeatures.gaussian(2, _FREQUENCIES, _BANDWIDTH, seed)


def learners(n_rounds: int) -> dict[str, tuple[Learner, str]]:
    """Those of the paper, waves, and agents that never speak."""
    return {
        "Local": (Local(STEP), "gradient steps, never speaks"),
        ALONE: (WaveRLS().alone(n_rounds), "recursive least squares, never speaks"),
        "RFF-DOKL": (RFFDOKL(STEP), "gradient steps, mixed with the neighbours'"),
        "DOKL": (DOKL(RHO, ETA), "ADMM with an exact step"),
        REFERENCE: (ODKLA(RHO, ETA), "ADMM, linearised"),
        "QC-ODKLA": (QCODKLA(RHO, ETA, alpha=ALPHA, beta=BETA, bits=BITS), "the same, censored, in three bits"),
        "WaveRLS": (WaveRLS(), "least squares, and waves over a tree"),
    }


def _moments(n_rounds: int) -> tuple[int, ...]:
    """Rounds that grow by the same factor, from 1 to the last."""
    return tuple(np.unique(np.geomspace(1, n_rounds, _MOMENTS).round().astype(int)).tolist())


def _run(
    name: str,
    about: str,
    learner: Learner,
    features: RandomFeatures,
    network: Network,
    X: Array,
    y: Array,
    moments: tuple[int, ...],
    centre: float = 0.0,
) -> Run:
    """The run from moment to moment, which has the bits of one without a break; and once more for its time."""
    pieces, state = [], None
    for start, stop in zip((0, *moments), moments, strict=False):
        piece = simulate(learner, features, network, X[start:stop], y[start:stop], state=state, collective=True)
        state = piece.state
        pieces.append(piece)
    simulate(learner, features, network, X[:1], y[:1])  # so that what is compiled is not in its time
    return Run(
        name,
        about,
        features,
        centre,
        own=np.concatenate([piece.squared_errors() for piece in pieces]),
        everywhere=np.concatenate([piece.collective_square for piece in pieces]),
        bits=np.concatenate([piece.bits for piece in pieces]),
        models=np.array([piece.weights for piece in pieces]),
        # Scoring everybody everywhere takes longer than learning: the clock runs on a run without it.
        seconds=simulate(learner, features, network, X, y).seconds,
        tree="wave" in pieces[0].info,
    )


def _centre(features: RandomFeatures, X: Array, y: Array, moments: tuple[int, ...]) -> Run:
    """Least squares in one place, to which every agent sends every sample: two inputs and a label."""
    recursive_least_squares(features, X[:1], y[:1], centralised=True)  # so that what is compiled is not in its time
    started = time.perf_counter()
    predictions = recursive_least_squares(features, X, y, centralised=True, regularization=_RIDGE)
    seconds = time.perf_counter() - started
    own = (predictions - y) ** 2
    everywhere = np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape)
    bits = np.full(y.shape, _NUMBER_BITS * (X.shape[2] + 1))
    about = "least squares on every sample, all sent to it"
    models = np.array([_ridge_model(features, X[:stop], y[:stop]) for stop in moments])[:, None]
    return Run(CENTRE, about, features, 0.0, own, everywhere, bits, models, seconds)


def _ridge_model(features: RandomFeatures, X: Array, y: Array) -> Array:
    """What recursive least squares has arrived at: (sum phi phi' + r I)^-1 sum y phi."""
    phi = features(X.reshape(-1, X.shape[2]))
    return np.asarray(np.linalg.solve(phi.T @ phi + _RIDGE * np.eye(phi.shape[1]), phi.T @ y.ravel()))
