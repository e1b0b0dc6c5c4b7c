"""The memory of an agent that runs waves, taken out and put back: what ``state`` does not know of.

Symmetric matrices are kept by their lower triangles. A link to a child is kept with its number; whether it still counts
is decided by the chart that is kept along: who comes back to another tree begins its links anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.protocol.chart import Record
from laconic.protocol.handshake import COUNT_LIMIT
from laconic.protocol.ledger import FEW
from laconic.protocol.waving import Waves
from laconic.protocol.wire import MODEL_LIMIT, SHARE_LIMIT, identity
from laconic.waves import Common
from laconic.waves.checking import check_limits
from laconic.waves.node import Link, Told
from laconic.waves.own import number_of
from laconic.waves.roving import ASTRAY, FURTHEST, LOGGED, Entry, RovingNode
from laconic.waves.saving import front_size, joined, node_parts, packed, split, unpacked

_ROUNDING = 1e-6  # how far below zero, of the largest, an eigenvalue may lie
_LEAST_REACH = 32.0  # targets of losses with labels of one
_ROUNDED, _TINY = 1 + 1e-6, 1e-200
_LIMITS = {"theta": MODEL_LIMIT, "step": 2 * MODEL_LIMIT, "since": MODEL_LIMIT, "count": float(COUNT_LIMIT)}
_LIMITS |= dict.fromkeys(("information", "link"), FURTHEST) | dict.fromkeys(("own", "fronts"), FURTHEST * COUNT_LIMIT)


class WaveMemory(NamedTuple):
    """What was kept, checked."""

    parts: dict[str, Array]
    counts: dict[str, float]
    log: list[tuple[Entry, int]]
    links: dict[int, tuple[Link, Link | None, Told | None]]
    about: dict[str, Any]
    records: list[Record]


def take_waves(waves: Waves) -> tuple[dict[str, Any], dict[str, Array]]:
    """What an agent knows of waves: plain values, and arrays."""
    node, size = waves.node, waves.features.n_features
    parts = {
        f"wave.{name}": np.array(array, ndmin=1)  # a copy: what it is of goes on changing
        for name, array in node_parts(node).items()
        if name != "told"
    }
    outputs = node.rule.outputs
    links, befores, tolds = np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, outputs * (size + 4)))
    if node.links:
        links = np.array([[link.n, *packed(link.information)] for link in node.links.values()])
        known = [node.links_before.get(child) for child in node.links]
        befores = np.array(
            [[-1.0, *np.zeros(links.shape[1] - 1)] if b is None else [b.n, *packed(b.information)] for b in known]
        )
        heard = [node.heard.get(child) for child in node.links]
        tolds = np.array([np.zeros(outputs * (size + 4)) if h is None else joined(h) for h in heard])
    about = {
        "clock": waves.clock,
        "largest": waves.waver.largest,
        "borrowed": waves.borrowed,
        "tree": waves.tree,
        "counts": node.counts(),
        "log": [[data.hex(), start, digest] for data, (start, digest) in zip(node.log, node.trail, strict=True)],
        "children": [[child, child in node.heard] for child in node.links],
        "records": [[r.name, r.number, r.term, list(r.hears)] for r in waves.chart.records.values()],
        "inbox": {name: waves.code.encode(parts).hex() for name, parts in waves.inbox.items()},
        "early": {name: waves.code.encode([up]).hex() for name, up in waves.early.items()},
        "begun": sorted(waves.begun),
    }
    return about, {**parts, "wave.links": links, "wave.links_before": befores, "wave.told": tolds}


def check_waves(waves: Waves, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> WaveMemory:
    """What ``take_waves`` said, if an agent with these settings can have said it; otherwise some error."""
    node, size = waves.node, waves.features.n_features
    fresh = {name: array for name, array in node_parts(node).items() if name != "told"}
    parts = {name: arrays[f"wave.{name}"] for name in fresh}
    triangle = len(fresh["link"])
    outputs = node.rule.outputs
    free = {"since": (None, size + 1 + outputs), "fronts": (None,), "probe": (None,), "pending": (None,)}
    for name, array in parts.items():
        kind = np.dtype(np.uint8) if name == "pending" else fresh[name].dtype
        _check(name, array, free.get(name, np.atleast_1d(fresh[name]).shape), kind)
        if np.abs(array).max(initial=0.0) > _LIMITS.get(name, SHARE_LIMIT):
            raise ValueError(f"state has {name} that no agent can have.")
    parts = {name: array.reshape(()) if not fresh[name].ndim else array for name, array in parts.items()}
    largest = _number(about["largest"])
    borrowed = _number(about["borrowed"])
    check_limits(parts, node.rule, size)
    _check_own(node, parts, max(largest, borrowed))
    front, probe = front_size(size, outputs), outputs * (size + 3)
    if len(parts["fronts"]) % front or len(parts["probe"]) not in (0, probe):
        raise ValueError("state has fronts or a probe of another size.")
    for row in parts["fronts"].reshape(-1, front):
        _count(int(row[0]), 1 << 32)
        if row[0] != int(row[0]) or row[1] not in (0, 1) or not 0 < row[2] <= COUNT_LIMIT:
            raise ValueError("state has a front that nobody can have said.")
    if max(int(parts["marked"]), 0) != len(parts["since"]):
        raise ValueError("state has samples that no wave has left.")
    waves_done = [_count(int(number)) for number in parts["wave"]]
    if waves_done[0] != waves_done[2] + 1:
        raise ValueError("state has counts that no agent can have.")
    _check_common(waves, parts, _number(about["counts"]["n"]), largest)
    letter = parts["pending"].tobytes()
    if letter:
        node.arithmetic.decode(letter, size, down=False, outputs=outputs)
    counts = {name: _number(about["counts"][name]) for name in node.counts()}
    log = [(Entry(bytes.fromhex(data), _count(start)), _count(digest, 1 << 64)) for data, start, digest in about["log"]]
    for entry, _ in log:
        node.arithmetic.decode(entry.data, size, down=True, outputs=outputs)
    if len(log) > min(LOGGED, waves_done[2]):
        raise ValueError("state has more waves in its log than there were.")
    links = _check_links(about["children"], arrays, triangle, node)
    records = [_check_record(waves, record) for record in about["records"]]
    kept = {
        name: {who: waves.code.decode(bytes.fromhex(data)) for who, data in about[name].items()}
        for name in ("inbox", "early")
    }
    more = {"clock": _count(about["clock"]), "tree": _count(about["tree"], 1 << 64), "largest": largest, **kept}
    more["borrowed"] = borrowed
    more["begun"] = {_count(number, 1 << 32) for number in about["begun"]}
    return WaveMemory(parts, counts, log, links, more, records)


def put_waves(waves: Waves, memory: WaveMemory, names: set[str]) -> None:
    """Know what was kept; only neighbours that go by these ``names`` can have said something."""
    about, node = memory.about, waves.node
    waves.clock, waves.waver.largest, waves.begun = about["clock"], about["largest"], about["begun"]
    waves.borrowed, waves.labels = about["borrowed"], FEW * (about["largest"] > 0)
    waves.chart.records = {identity(record.name): record for record in memory.records}
    waves.inbox = {name: parts for name, parts in about["inbox"].items() if name in names}
    waves.early = {name: parts[0] for name, parts in about["early"].items() if name in names}
    same = waves.stand_where(about["tree"])
    links = {child: link for child, link in memory.links.items() if same and child in node.place.children}
    told = np.full(node.rule.outputs * (node.n_features + 4), np.nan)
    node.restore({**memory.parts, "told": told}, memory.counts, memory.log, links)
    if not same:
        node.say_again()
        node.fronts.clear()


def _check(name: str, array: Array, shape: tuple[int | None, ...], kind: np.dtype[Any]) -> None:
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != kind:
        raise ValueError(f"state has {name} of shape {array.shape} and type {array.dtype}.")
    if not np.isfinite(array).all():
        raise ValueError(f"state has {name} that is not finite.")


def _check_own(node: RovingNode, parts: Mapping[str, Array], largest: float) -> None:
    """Whether these can be the sums, spread and model of samples with labels of at most that size."""
    rule, n = node.rule, node.n_features
    labels = _ROUNDED * max(largest, _LEAST_REACH)
    count, reach = max(float(parts["count"]), 1.0), max(largest, _LEAST_REACH)
    limits = {"own": count, "moments": count * reach, "square": count * reach * reach, "weights": reach}
    for name, size in {**limits, "arms": reach, "adopted": reach}.items():
        if name in parts and np.abs(parts[name]).max() > FURTHEST * size:
            raise ValueError(f"state has {name} that no agent can have.")
    spreads = [("spread", parts["spread"]), *(("arm_spreads", spread) for spread in parts.get("arm_spreads", ()))]
    for name, triangle in [("own", parts["own"]), *spreads]:
        values = np.linalg.eigvalsh(unpacked(triangle))
        if not values[0] >= -_ROUNDING * values[-1] or (name != "own" and not values[-1] > 0):
            raise ValueError(f"state has {name} that no samples can have.")
    own, square = unpacked(parts["own"]), np.atleast_1d(parts["square"])
    if math.isfinite(node.weight) and np.trace(own) > _ROUNDED * node.weight * count:
        raise ValueError("state has own that no samples can have.")
    for moments, energy in zip(np.atleast_2d(parts["moments"]), square, strict=True):
        _check_sums(own, moments, float(energy))
    phi, weight, target = parts["since"][:, :n], parts["since"][:, n], parts["since"][:, n + 1 :]
    sizes = (phi**2).sum(axis=1, initial=0.0) * weight
    if (
        not ((weight >= 0) & (sizes <= _ROUNDED * min(node.weight, FURTHEST**2))).all()
        or np.abs(target).max(initial=0.0) > labels
    ):
        raise ValueError("state has samples that no agent can have seen.")
    if len(parts["probe"]) and not (parts["probe"][-2 * rule.outputs :] >= 0).all():
        raise ValueError("state has sums of fresh samples that no samples can have.")
    node.own.check_guard(parts.get("guard", np.zeros(0)), labels)


def _check_sums(own: Array, moments: Array, energy: float) -> None:
    """Whether A, b and c can be sums of the same samples: the matrix of all of them is one of inner products."""
    size = math.sqrt(energy / max(float(np.trace(own)), _TINY)) or 1.0
    whole = np.block([[own, moments[:, None] / size], [moments[None] / size, np.array([[energy / size**2]])]])
    values = np.linalg.eigvalsh(whole)
    if not values[0] >= -_ROUNDING * values[-1]:
        raise ValueError("state has moments that no samples can have.")


def _check_common(waves: Waves, parts: Mapping[str, Array], n: float, largest: float) -> None:
    """Whether what all know is sound, as if somebody else had said it, and not far off these samples."""
    node, theta = waves.node, parts["theta"]
    known = unpacked(parts["information"]), theta, parts["step"], number_of(parts["energy"]), float(parts["thin"])
    common = Common(node.rule, node.arithmetic, *known)
    with np.errstate(over="ignore", invalid="ignore"):
        node.check(common, n, int(parts["wave"][1]), 0.0)
        wrong = ((theta @ unpacked(parts["own"]) - 2 * parts["moments"]) * theta).sum(axis=-1) + parts["square"]
        if largest and not (wrong <= max(float(parts["count"]), 1.0) * (ASTRAY * largest) ** 2).all():
            raise ValueError("state has a common model that no agent can have.")


def _check_links(
    children: list[list[Any]], arrays: Mapping[str, Array], triangle: int, node: RovingNode
) -> dict[int, tuple[Link, Link | None, Told | None]]:
    links, n = {}, len(children)
    rows, befores, tolds = (arrays[f"wave.{name}"] for name in ("links", "links_before", "told"))
    for name, array, width in (
        ("links", rows, triangle + 1),
        ("links_before", befores, triangle + 1),
        ("told", tolds, node.rule.outputs * (node.n_features + 4)),
    ):
        if n or array.size:
            _check(name, array, (n, width), np.dtype(np.float64))
    for (child, heard), row, before, told in zip(children, rows, befores, tolds, strict=True):
        if type(heard) is not bool or not 0 <= row[0] <= COUNT_LIMIT:
            raise TypeError("a child's link is none")
        if max(np.abs(row[1:]).max(), np.abs(before[1:]).max()) > FURTHEST or np.abs(told).max() > SHARE_LIMIT:
            raise ValueError("state has links that no agent can have.")
        link = Link(unpacked(row[1:]), float(row[0]))
        older = None if before[0] < 0 else Link(unpacked(before[1:]), float(before[0]))
        said = Told(*split(told, node.rule, 4)) if heard else None
        links[_count(child, 1 << 32)] = link, older, said
    return links


def _check_record(waves: Waves, record: list[Any]) -> Record:
    name, number, term, hears = record
    if not isinstance(name, str):
        raise TypeError("an agent without a name")
    made = Record(name, _count(number), _count(term), tuple(_count(other, 1 << 32) for other in hears))
    waves.chart.decode(waves.chart.encode([made]))
    return made


def _count(value: object, limit: int = COUNT_LIMIT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ValueError(f"state has {value!r} where a number is counted.")
    return value


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value < 1 << 64:
        raise ValueError(f"state has {value!r} where a number is measured.")
    return value
