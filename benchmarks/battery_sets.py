"""The sets of ``battery.py``: tables of rows, and streams whose order means something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets

from laconic import data

Array = np.ndarray[Any, Any]
_MOST_ROWS, _MOST_IN_ORDER = 4000, 1500


@dataclass(frozen=True)
class Set:
    """Rows for a task; what is drawn is drawn anew for each seed."""

    name: str
    classes: bool
    load: Callable[[int], tuple[Array, Array]]


def bundled(load: Callable[..., Any]) -> Callable[[int], tuple[Array, Array]]:
    """A table that scikit-learn brings along."""
    return lambda seed: load(return_X_y=True)


def from_file(name: str, in_order: bool = False) -> Callable[[int], tuple[Array, Array]]:
    """A file in LACONIC_DATA: so many rows of it at random, or, ``in_order``, the first ones."""

    def load(seed: int) -> tuple[Array, Array]:
        known = data.load(name)
        n = min(_MOST_IN_ORDER if in_order else _MOST_ROWS, len(known.y))
        rows = np.arange(n) if in_order else np.random.default_rng(seed).choice(len(known.y), n, replace=False)
        return known.X[rows], known.y[rows]

    return load


def sinc(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, size=(1000, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(1000)


def sine_and_line(seed: int) -> tuple[Array, Array]:
    """y = 3 sin 2a + b and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 2))
    return X, 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(600)


def linear(seed: int, n: int = 1000, d: int = 10, noise: float = 0.3) -> tuple[Array, Array]:
    """Purely linear, inputs of very different scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return X * 10.0 ** rng.integers(-3, 5, d) + 100 * rng.standard_normal(d), y


TABLES = (
    Set("diabetes", False, bundled(datasets.load_diabetes)),
    Set("iris", True, bundled(datasets.load_iris)),
    Set("wine", True, bundled(datasets.load_wine)),
    Set("breast cancer", True, bundled(datasets.load_breast_cancer)),
    Set("digits", True, bundled(datasets.load_digits)),
    Set("Friedman 1", False, lambda seed: datasets.make_friedman1(1000, noise=1.0, random_state=seed)),
    Set("Friedman 1, 200 rows", False, lambda seed: datasets.make_friedman1(200, noise=1.0, random_state=seed)),
    Set("Friedman 2", False, lambda seed: datasets.make_friedman2(1000, noise=50.0, random_state=seed)),
    Set("Friedman 3", False, lambda seed: datasets.make_friedman3(1000, noise=0.1, random_state=seed)),
    Set("sinc", False, sinc),
    Set("sine and line", False, sine_and_line),
    Set("purely linear", False, linear),
    Set("moons", True, lambda seed: datasets.make_moons(1000, noise=0.2, random_state=seed)),
    Set("circles", True, lambda seed: datasets.make_circles(1000, noise=0.1, factor=0.5, random_state=seed)),
    Set(
        "clusters, 5 classes",
        True,
        lambda seed: datasets.make_classification(
            1000, 20, n_informative=6, n_redundant=4, n_classes=5, random_state=seed
        ),
    ),
    Set("air quality", False, from_file("air-quality")),
    Set("energy", False, from_file("energy")),
    Set("Tom's hardware", False, from_file("toms-hardware")),
    Set("Twitter", False, from_file("twitter")),
    Set("conductivity", False, from_file("conductivity")),
    Set("blood pressure", False, from_file("blood")),
    Set("California housing", False, from_file("california-housing")),
    Set("power plant", False, from_file("power-plant")),
    Set("electricity", True, from_file("electricity")),
    Set("EEG", True, from_file("eeg-eye-state")),
)


def from_river(name: str) -> Callable[[int], tuple[Array, Array]]:
    """A stream that river brings along."""

    def load(seed: int) -> tuple[Array, Array]:
        from river import datasets as streams

        pairs = list(getattr(streams, name)())
        X = [[float(value) for value in x.values() if isinstance(value, (int, float))] for x, _ in pairs]
        return np.array(X), np.array([label for _, label in pairs])

    return load


def shuffled(load: Callable[[int], tuple[Array, Array]]) -> Callable[[int], tuple[Array, Array]]:
    """The same rows in an order that means nothing."""

    def loaded(seed: int) -> tuple[Array, Array]:
        X, y = load(seed)
        order = np.random.default_rng(seed).permutation(len(y))
        return X[order], y[order]

    return loaded


STREAMS = (
    Set("air quality", False, from_file("air-quality", in_order=True)),
    Set("energy", False, from_file("energy", in_order=True)),
    Set("California housing", False, from_file("california-housing", in_order=True)),
    Set("power plant", False, from_file("power-plant", in_order=True)),
    Set("electricity", True, from_file("electricity", in_order=True)),
    Set("EEG", True, from_file("eeg-eye-state", in_order=True)),
    Set("Phishing", True, from_river("Phishing")),
    Set("image segments", True, shuffled(from_river("ImageSegments"))),
    Set("Trump approval", False, from_river("TrumpApproval")),
    Set("sine and line", False, sine_and_line),
    Set("purely linear", False, linear),
    Set("Friedman 1", False, lambda seed: datasets.make_friedman1(1500, noise=1.0, random_state=seed)),
)


def chosen(sets: tuple[Set, ...], only: list[str] | None) -> Iterator[Set]:
    """Those whose names contain one of ``only``, or all."""
    return (one for one in sets if not only or any(part.lower() in one.name.lower() for part in only))
