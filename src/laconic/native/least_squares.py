"""Recursive least squares whose covariance stays positive, in the core."""

from __future__ import annotations

import functools
from ctypes import byref
from typing import Any, ClassVar

from laconic._validate import Array
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, function


class Bierman(Structure):
    """``Bierman`` of ``core/bierman.c``."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("n_models", "n_features", "size", "n_agents", "n_rounds")),
        ("forgetting", REAL),
        *((name, POINTER) for name in ("phi", "labels", "weights", "factors", "spreads", "predictions", "gain")),
    ]


@functools.cache
def _recursive_rounds() -> Any:
    return function("recursive_rounds", POINTER)


def recursive_rounds(
    phi: Array,
    labels: Array,
    weights: Array,
    factors: Array,
    spreads: Array,
    gain: Array,
    forgetting: float,
    predictions: Array,
) -> int:
    """Recursive least squares over the rounds of ``labels`` (T, N); returns the first row that overflows, or T N.

    ``weights`` and ``spreads`` have a row for each model: N of them, or one that learns from all agents. The covariance
    of model m is U D U^T with U unit upper triangular and D = ``spreads[m]`` > 0; column j of U is row m n + j of
    ``factors``, zero from the diagonal on. ``gain`` is room. Row t N + i of ``phi`` belongs to agent i in round t.
    """
    rounds = Bierman.of(
        n_models=len(weights),
        n_features=spreads.shape[1],
        size=weights.shape[1],
        n_agents=labels.shape[1],
        n_rounds=len(labels),
        forgetting=forgetting,
        phi=phi,
        labels=labels,
        weights=weights,
        factors=factors,
        spreads=spreads,
        predictions=predictions,
        gain=gain,
    )
    return int(_recursive_rounds()(byref(rounds)))
