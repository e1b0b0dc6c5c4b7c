"""Data whose truth is known: a function in the space of a Gaussian kernel, plus noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.features import RandomFeatures

_BLOCK = 2_000_000  # numbers in a block of differences x - c: some 16 MB


@final
@dataclass(frozen=True, eq=False)
class Truth:
    """The function behind synthetic data, f_t(x) = sum_m b_m(t) kappa(c_m, x).

    With drift the coefficients turn, b(t) = cos(a) b + sin(a) b' with a = 2 pi drift (t - 1) / n_rounds: their law
    stays the same while the function changes.

    Attributes
    ----------
    centres : array (n_centres, n_inputs)
        The c_m.
    coefficients, other : array (n_centres,)
        b and b'.
    bandwidth, drift : float
    n_rounds : int
    """

    centres: Array
    coefficients: Array
    other: Array
    bandwidth: float
    drift: float
    n_rounds: int

    def __call__(self, X: object, t: object = None) -> Array:
        """The values f_t(x) at inputs (..., n_inputs), without noise.

        ``t`` counts rounds from 1, and broadcasts against the shape (...). It is needed only if the function drifts.
        """
        n_inputs = self.centres.shape[1]
        inputs = _validate.real_array("X", X, f"(..., {n_inputs})")
        if inputs.ndim == 0 or inputs.shape[-1] != n_inputs:
            raise ValueError(f"X must have shape (..., {n_inputs}), got {inputs.shape}.")
        if self.drift and t is None:
            raise ValueError("t must say at which round, for this function drifts.")
        shape = inputs.shape[:-1]
        rounds = _validate.real_array("t", 1 if t is None else t, f"{shape}, or one that broadcasts to it")
        angle = 2 * math.pi * self.drift * (rounds.astype(np.float64) - 1) / self.n_rounds
        angles = np.broadcast_to(angle, shape).ravel()
        rows = inputs.reshape(-1, n_inputs)
        values = np.empty(len(rows))
        kernel = RandomFeatures.gaussian(n_inputs, 1, self.bandwidth).kernel
        step = max(1, _BLOCK // self.centres.size)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            near = kernel(rows[block], self.centres)
            values[block] = near @ self.coefficients * np.cos(angles[block])
            if self.drift:
                values[block] += near @ self.other * np.sin(angles[block])
        return values.reshape(shape)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Synthetic:
    """A stream and the truth behind it.

    Attributes
    ----------
    X : array (T, N, d)
    y : array (T, N)
    truth : Truth
        ``truth(X, t)`` gives the labels without noise.
    noise : float
        Standard deviation of the noise: noise^2 is the mean squared error of one who knows the truth.
    """

    X: Array
    y: Array
    truth: Truth
    noise: float

    def __repr__(self) -> str:
        n_rounds, n_agents, n_inputs = self.X.shape
        return f"Synthetic: {n_rounds} rounds, {n_agents} agents, {n_inputs} inputs, noise {self.noise:g}"


def synthetic(
    n_rounds: int,
    n_agents: int,
    n_inputs: int,
    *,
    n_centres: int = 20,
    bandwidth: float = 0.5,
    noise: float = 0.1,
    drift: float = 0.0,
    heterogeneity: float = 0.0,
    inputs: str = "uniform",
    centres: object = None,
    coefficients: object = None,
    seed: int = 0,
) -> Synthetic:
    """Draw a stream from a known function: y = sum_m b_m kappa(c_m, x) + noise.

    Parameters
    ----------
    n_rounds, n_agents, n_inputs : int
        T, N, d.
    n_centres : int
        How many c_m.
    bandwidth : float
        Of the Gaussian kernel.
    noise : float
        Standard deviation of the normal noise on each label.
    drift : float
        How many full turns the coefficients make over the stream, see ``Truth``; 0 for none, 0.25 ends with a function
        that has nothing to do with the first.
    heterogeneity : float from 0 to 1
        How far agents live in regions of their own. At 0 all draw from the same law; at 1 the first input of agent i
        lies in the i-th of N equally likely intervals, and no two agents overlap.
    inputs : "uniform" or "normal"
        Inputs and centres uniform on [0, 1]^d, or standard normal.
    centres, coefficients : arrays (n_centres, n_inputs) and (n_centres,), optional
        The c_m and b_m to use; drawn if not given (b_m standard normal).
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import data
    >>> stream = data.synthetic(500, 4, 2, noise=0.2, seed=1)
    >>> stream
    Synthetic: 500 rounds, 4 agents, 2 inputs, noise 0.2
    >>> round(float(np.std(stream.y - stream.truth(stream.X))), 2)
    0.2
    """
    n_rounds = _validate.integer("n_rounds", n_rounds, least=1)
    n_agents = _validate.integer("n_agents", n_agents, least=1)
    n_inputs = _validate.integer("n_inputs", n_inputs, least=1)
    largest = max((n_rounds, "n_rounds"), (n_agents, "n_agents"), (n_inputs, "n_inputs"))[1]
    _validate.allocatable(largest, n_rounds, n_agents, n_inputs)
    bandwidth = _validate.number("bandwidth", bandwidth, above=0)
    noise = _validate.number("noise", noise, least=0)
    drift = _validate.number("drift", drift)
    heterogeneity = _validate.number("heterogeneity", heterogeneity, least=0)
    if heterogeneity > 1:
        raise ValueError(f"heterogeneity must be at most 1, got {heterogeneity!r}.")
    normal = _validate.choice("inputs", inputs, ("uniform", "normal")) == "normal"
    # Each part has a generator of its own: asking for drift or another noise leaves all the rest as it was.
    places, turning, points, errors = (
        np.random.default_rng(child)
        for child in np.random.SeedSequence(_validate.integer("seed", seed, least=0)).spawn(4)
    )
    c, b = _function(centres, coefficients, n_centres, n_inputs, normal, places)
    truth = Truth(c, b, turning.standard_normal(len(c)), bandwidth, drift, n_rounds)
    X = points.uniform(size=(n_rounds, n_agents, n_inputs))
    agent = np.arange(n_agents)
    start = heterogeneity * agent / n_agents
    end = 1 - heterogeneity * (n_agents - 1 - agent) / n_agents
    X[..., 0] = start + X[..., 0] * (end - start)
    if normal:
        from scipy.special import ndtri

        X = ndtri(np.clip(X, 1e-16, 1 - 1e-16))
    rounds = np.arange(1, n_rounds + 1)[:, None]
    y = truth(X, rounds) + noise * errors.standard_normal((n_rounds, n_agents))
    return Synthetic(X, y, truth, noise)


def _function(
    centres: object, coefficients: object, n_centres: int, n_inputs: int, normal: bool, random: np.random.Generator
) -> tuple[Array, Array]:
    if centres is None and coefficients is not None:
        n_centres = len(_validate.real_array("coefficients", coefficients, "(n_centres,)", ndim=1))
    shape = (_validate.integer("n_centres", n_centres, least=1), n_inputs)
    _validate.allocatable("n_centres", *shape)
    if centres is None:
        c = random.standard_normal(shape) if normal else random.uniform(size=shape)
    else:
        c = _validate.finite("centres", _validate.real_array("centres", centres, "(n_centres, n_inputs)", ndim=2))
        if c.shape[1] != n_inputs or not len(c):
            raise ValueError(f"centres must have shape (n_centres, {n_inputs}), got {c.shape}.")
    if coefficients is None:
        return c, random.standard_normal(len(c))
    b = _validate.finite("coefficients", _validate.real_array("coefficients", coefficients, "(n_centres,)", ndim=1))
    if len(b) != len(c):
        raise ValueError(f"coefficients must have one number for each of the {len(c)} centres, got {len(b)}.")
    return c, b
