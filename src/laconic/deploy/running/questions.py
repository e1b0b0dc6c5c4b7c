"""What a running agent is asked to predict, and its answer: JSON in, JSON out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.model import Model

#: Bytes of a question, and inputs in one.
LONGEST, MOST_ROWS = 65_536, 256


def read_inputs(data: bytes, n_inputs: int, names: Sequence[str] | None) -> tuple[Array, bool]:
    """The inputs of a question, (n, n_inputs), and whether it is a single one that was asked for.

    An input is ``{"x": [0.1, 0.2]}``, the bare list, or an object with the names of the inputs; several are a list of
    these. ValueError, in one sentence, if it is none of them.

    Examples
    --------
    >>> read_inputs(b'{"x": [1, 2]}', 2, None)
    (array([[1., 2.]]), True)
    >>> read_inputs(b'[{"damp": 2, "warm": 1}]', 2, ["warm", "damp"])
    (array([[1., 2.]]), False)
    >>> read_inputs(b'[[1, 2], [3]]', 2, None)
    Traceback (most recent call last):
    ValueError: an input must be 2 numbers, got 1.
    """
    if len(data) > LONGEST:
        raise ValueError(f"a question must have at most {LONGEST} bytes, got {len(data)}.")
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError('a question must be JSON, such as {"x": [0.1, 0.2]}.') from None
    if isinstance(asked, dict) and isinstance(asked.get("x"), list) and any(type(one) is list for one in asked["x"]):
        asked = asked["x"]
    several = isinstance(asked, list) and bool(asked) and all(isinstance(one, (list, dict)) for one in asked)
    rows = asked if several else [asked]
    if len(rows) > MOST_ROWS:
        raise ValueError(f"a question must have at most {MOST_ROWS} inputs, got {len(rows)}.")
    return np.array([_read_row(row, n_inputs, names) for row in rows], dtype=np.float64), not several


def _read_row(row: object, n_inputs: int, names: Sequence[str] | None) -> list[float]:
    if isinstance(row, dict) and "x" not in row and names is not None:
        missing = next((name for name in names if name not in row), None)
        if missing is not None:
            raise ValueError(f"an input must have a value for {missing!r}.")
        row = [row[name] for name in names]
    elif isinstance(row, dict):
        row = row.get("x")
    if not isinstance(row, list):
        raise ValueError(f"an input must be a list of {n_inputs} numbers, or an object with these.")
    if len(row) != n_inputs:
        raise ValueError(f"an input must be {n_inputs} numbers, got {len(row)}.")
    for value in row:
        if type(value) not in (int, float) or not -1e300 < value < 1e300:  # exact types: a bool is no measurement
            raise ValueError("an input must be finite numbers.")
    return [float(value) for value in row]


def answer(model: Model, rows: Array, single: bool, radius: float | None) -> dict[str, Any]:
    """Predictions for ``rows``: numbers with an interval around each, or classes with what speaks for them."""
    said: dict[str, Any] = {"prediction": model.predict(rows)}
    if model.classes is not None:
        said["decision"] = model.decision(rows)
        if model.loss == "logistic":
            said["probability"] = model.predict_proba(rows)
    elif radius is not None:
        said["interval"] = np.stack([said["prediction"] - radius, said["prediction"] + radius], axis=-1)
    return {name: (values[0] if single else values).tolist() for name, values in said.items()}


def plain(values: Mapping[str, Any]) -> bytes:
    """A mapping as JSON; numbers that are not finite, which JSON has not, as null."""
    clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
    return json.dumps(clean).encode()
