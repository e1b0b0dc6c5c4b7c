"""Whether numbers from a file can be those of a node, or of all nodes of a tree: before anybody goes on from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.waves.node import Node
from laconic.waves.rule import THINNEST, ArmNumbers, Rule
from laconic.waves.saving import front_size

_SHAPED = ("weights", "spread", "theta", "link", "wave")  # by which another network or feature map shows
_LONG = ("since", "probe", "pending", "mail", "mail_sizes", "fronts", "guard")  # as long as there was something to say
_FILLED = ("since", "told", "probe", "fronts", "guard")  # up with NaN
_UNBOUNDED = {"moments", "square", "energy"}  # sums of what may be as large as the square root of all numbers
_LARGEST = 1e153  # of these: squares of more would overflow
_ROUNDED = 1 + 1e-6  # how much more rounding may make of what is at most 1
_MISSED, _TINY = 1e3, 1e-300


def limits(rule: Rule, n_features: int) -> dict[str, tuple[float, float]]:
    """The least and the most that numbers of a node's parts can be, by name, whatever it has seen.

    P is at most the inverse of the least diagonal, or of what is left of that where it forgets until it is reminded; by
    how much raised pivots may miss that is a guess. That of the recent arm is at most the inverse of its ridge, or of a
    leak, faded until the next leak of its entry.
    """
    numbers = rule.arms or ArmNumbers()
    left = THINNEST * rule.ridge * rule.forgetting ** (2 * rule.reminding + 1)
    leak = min(1.0, n_features * (1 - numbers.forgetting)) * numbers.ridge
    spread = _MISSED / max(left, _TINY)
    recent = _ROUNDED / max(leak * numbers.forgetting ** (n_features + 1), _TINY)
    made = {
        **dict.fromkeys(("count", "square", "energy"), (0.0, math.inf)),
        "trust": (1.0, math.inf),
        "marked": (-1, 2**62),
        "wave": (0, 2**62),
        "link_number": (0, 2**62),
        "link_n": (-1.0, math.inf),
        "thin": (THINNEST, 1.0),
        "spread": (-spread, spread),
    }
    if rule.arms is None:
        return made
    spreads = max(spread, recent)
    arms = {"turn": (0, n_features - 1), "following": (0, 1), "stack": (0.0, _ROUNDED)}
    return {**made, **arms, "stack_errors": (-_LARGEST, _LARGEST), "arm_spreads": (-spreads, spreads)}


def _shown(limit: float) -> str:
    return f"{limit:g}" if abs(limit) < 1e6 else f"{limit:.0e}"


def check_limits(parts: Mapping[str, Array], rule: Rule, n_features: int) -> None:
    """ValueError unless all numbers of a node, or of all of a tree, are within their ``limits``."""
    for name, (least, most) in limits(rule, n_features).items():
        if not ((parts[name] >= least) & (parts[name] <= most)).all():
            raise ArgumentError(
                "state", f"holds {name} that cannot be: all are from {_shown(least)} to {_shown(most)}."
            )
    if rule.arms is not None and not np.abs(parts["stack"].sum(axis=-1) - 1).max() < _ROUNDED - 1:
        raise ArgumentError("state", "holds a stack that cannot be: its weights add up to 1.")


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
    check_limits(rows, nodes[0].rule, nodes[0].n_features)
    for name in rows.keys() - _UNBOUNDED:
        if (np.abs(rows[name]) > _LARGEST).any():
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
    if not (rows["since"][:, :, n][np.isfinite(rows["since"][:, :, n])] >= 0).all():
        raise ArgumentError("state", "holds samples that cannot be: their weights are at least 0.")
    if probes and rows["probe"].size and not (_probe_sums(rows["probe"], outputs) >= 0).all():
        raise ArgumentError("state", "holds sums of fresh samples that cannot be: they are at least 0.")
    for i, node in enumerate(nodes):
        node.own.check_guard(rows.get("guard", np.zeros((len(nodes), 0)))[i])


def _probe_sums(probe: Array, outputs: int) -> Array:
    """Doubt and number of fresh samples; those of nodes that have no probe are 0."""
    return np.nan_to_num(probe[..., -2 * outputs :])


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
