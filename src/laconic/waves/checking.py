"""Whether the rows of a tree, from a file perhaps, can be those of its nodes: before anybody goes on from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.waves.node import Node
from laconic.waves.saving import front_size

_SHAPED = ("weights", "spread", "theta", "link", "wave")  # by which another network or feature map shows
_LONG = ("since", "probe", "pending", "mail", "mail_sizes", "fronts", "guard")  # as long as there was something to say
_FILLED = ("since", "told", "probe", "fronts", "guard")  # up with NaN
_BOUNDED = ("weights", "theta", "spread", "own", "information", "link", "count", "link_n")
_LARGEST = 1e153  # of these: squares of more would overflow
_LEAST = {"count": 0.0, "square": 0.0, "energy": 0.0, "trust": 1.0, "marked": -1, "link_number": 0, "link_n": -1.0}


def check_rows(nodes: Sequence[Node], given: Mapping[str, object], fresh: Mapping[str, Array]) -> dict[str, Array]:
    """``given`` as arrays, if they have the names and shapes of ``fresh`` rows, and numbers that can be."""
    if set(given) != set(fresh):
        raise ArgumentError("state", f"comes from another learner: it holds {sorted(given)}.")
    rows = {name: np.asarray(row) for name, row in given.items()}
    for name in _SHAPED:
        if rows[name].shape != fresh[name].shape:
            raise ArgumentError(
                "state", f"comes from another network or feature map: its {name} are {rows[name].shape}."
            )
    size = 4 * front_size(nodes[0].n_features, nodes[0].rule.outputs)
    if (shape := rows["fronts"].shape[1:]) not in ((0,), (size,)):
        raise ArgumentError("state", f"comes from another version: its fronts are {shape}.")
    for name, row in rows.items():
        _check_form(name, row, fresh[name])
    for name, least in _LEAST.items():
        if not (rows[name] >= least).all():
            raise ArgumentError("state", f"holds {name} that cannot be: all are at least {least:g}.")
    for name in _BOUNDED:
        if not np.abs(rows[name]).max() <= _LARGEST:
            raise ArgumentError("state", f"holds {name} that cannot be: all are at most {_LARGEST:g}.")
    _check_numbers(nodes, rows)
    _check_mail(nodes, rows)
    return rows


def _check_form(name: str, row: Array, fresh: Array) -> None:
    axis = 2 if name in _LONG else 1
    fits = row.ndim == fresh.ndim and len(row) == len(fresh) and row.shape[axis:] == fresh.shape[axis:]
    if not fits or row.dtype.kind not in "biuf" or not np.can_cast(row.dtype, fresh.dtype, "same_kind"):
        raise ArgumentError("state", f"holds {name} of shape {row.shape} and type {row.dtype}, which cannot be.")
    if name not in _FILLED and not np.isfinite(row).all():
        raise ArgumentError("state", f"holds {name} that are not finite: its run has diverged, or it is damaged.")


def _check_numbers(nodes: Sequence[Node], rows: Mapping[str, Array]) -> None:
    """What is filled up with NaN is whole or nothing; counts are within what they count."""
    outputs, n = nodes[0].rule.outputs, nodes[0].n_features
    fronts = rows["fronts"].reshape(len(nodes), 4, -1) if rows["fronts"].size else rows["told"]
    probes = rows["probe"].shape[1] in (0, outputs * (n + 3))
    for whole in (rows["told"], rows["probe"], fronts):
        missing = np.isnan(whole)
        probes &= bool((missing.all(axis=-1) | ~missing.any(axis=-1)).all()) and not np.isinf(whole).any()
    marked = np.isfinite(rows["since"]).all(axis=2).cumprod(axis=1).sum(axis=1)  # rows until there is none
    number, start, adopted = rows["wave"].T
    waves = (number >= 1) & (start >= 1) & (adopted >= 0) & (adopted < number)
    if not (probes and waves.all() and (rows["marked"] <= marked).all()):
        raise ArgumentError("state", "holds counts or sums of waves that cannot be: it is damaged.")
    if not ((rows["thin"] > 0) & (rows["thin"] <= 1)).all():
        raise ArgumentError("state", "holds thin that cannot be: all are above 0 and at most 1.")


def _check_mail(nodes: Sequence[Node], rows: Mapping[str, Array]) -> None:
    """Letters are as long as it says, go where somebody is, and can be read."""
    for i, node in enumerate(nodes):
        place, at = node.place, 0
        for size, way in rows["mail_sizes"][i].tolist():
            if size == 0:
                continue
            ways = {0, 2} if place.parent is not None else set()
            ways |= {1, *range(3, 3 + len(place.children))} if place.children else set()
            letter, at = rows["mail"][i, at : at + size].astype(np.uint8).tobytes(), at + size
            pending = rows["pending"][i, :size].astype(np.uint8).tobytes() if way == 0 else letter
            if size < 0 or way not in ways or len(letter) < size or pending != letter:
                raise ArgumentError("state", "holds messages that cannot be: it is damaged.")
            try:
                node.arithmetic.decode(letter, node.n_features, down=way == 1, outputs=node.rule.outputs)
            except ValueError as error:
                raise ArgumentError("state", f"holds a message that is none: {error}.") from error
