"""Nodes as plain arrays, and back to the bit: one with all that it knows, or all of a tree with a row an agent.

Symmetric matrices are kept by their lower triangles. What a parent knows of a child, the child knows too, to the bit;
in the rows of a whole tree it is kept once, with the child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.waves.common import Common
from laconic.waves.fronts import Front
from laconic.waves.message import FRONT, wave_of
from laconic.waves.node import Link, Message, Node, Told
from laconic.waves.own import Probe, number_of
from laconic.waves.rule import Numbers, Rule

_NOBODY = -1.0  # the n of a link that there is not


@cache
def _triangle(size: int) -> Array:
    """Where the lower triangle is in a matrix that is laid out row by row."""
    rows, columns = np.tril_indices(size)
    return np.asarray(rows * size + columns)


def packed(matrix: Array) -> Array:
    """The lower triangle of a symmetric matrix, row by row."""
    return np.asarray(matrix.take(_triangle(len(matrix))))


def unpacked(triangle: Array) -> Array:
    """The symmetric matrix of a lower triangle."""
    size = int(np.sqrt(2 * len(triangle)))
    matrix = np.zeros((size, size))
    rows, columns = np.tril_indices(size)
    matrix[rows, columns] = triangle
    matrix[columns, rows] = triangle
    return matrix


def node_parts(node: Node) -> dict[str, Array]:
    """All that a node knows, as arrays."""
    fronts = _fronts_of(node)
    return {**_parts(node), "fronts": np.concatenate(fronts) if fronts else np.zeros(0)}


def _parts(node: Node) -> dict[str, Array]:
    """The same without what came and went over its edges in fronts."""
    own, common, nothing = node.own.parts(), node.common.parts(), np.zeros(0)
    link, told = node.link, node.told
    size, outputs = node.n_features, node.rule.outputs
    return {
        **own,
        "spread": packed(own["spread"]),
        "own": packed(own["own"]),
        **common,
        "information": packed(common["information"]),
        "wave": np.array([node.wave, node.start, node.adopted]),
        "trust": np.array(node.trust),
        "asked": np.array(node.asked),
        "link": np.zeros(len(_triangle(size))) if link is None else packed(link.information),
        "link_n": np.array(_NOBODY if link is None else link.n),
        "link_number": np.array(0 if link is None else link.number),
        "told": np.full(outputs * (size + 4), np.nan) if told is None else joined(told),
        "probe": nothing if node.probe is None else joined(node.probe),
        "pending": _letter(node),
    }


def restore_node(node: Node, parts: Mapping[str, Array], common: Common | None = None) -> None:
    """Let a new node know what ``parts`` says; links to children are the caller's to restore."""
    node.own.restore({**parts, "spread": unpacked(parts["spread"]), "own": unpacked(parts["own"])})
    arithmetic, rule = node.arithmetic, node.rule
    theta, step = parts["theta"].copy(), parts["step"].copy()
    energy, thin = number_of(parts["energy"]), float(parts["thin"])
    known = Common(rule, arithmetic, unpacked(parts["information"]), theta, step, energy, thin)
    node.common = common if common is not None and _same(common, known) else known
    node.wave, node.start, node.adopted = (int(number) for number in parts["wave"])
    node.trust, node.asked = number_of(parts["trust"]), float(parts["asked"])
    node.link, node.told = link_of(parts), told_of(parts, rule)
    probe = parts["probe"]
    node.fronts.clear()
    _restore_fronts(node, parts["fronts"])
    if len(probe) and not np.isnan(probe).any():
        node.own.watch(node.common.theta, Probe(*split(probe, rule, 3)))
    letter = parts["pending"].astype(np.uint8).tobytes()
    read = arithmetic.decode(letter, node.n_features, down=False, outputs=rule.outputs) if letter else (None, 0)
    node.pending = read[0]


def _letter(node: Node) -> Array:
    """What was said to the parent and not acknowledged yet, as bytes."""
    data = b"" if node.pending is None else node.arithmetic.encode(node.pending)[0]
    return np.frombuffer(data, dtype=np.uint8)


def link_of(parts: Mapping[str, Array]) -> Link | None:
    """U_i and n_i of an agent's parts."""
    n = float(parts["link_n"])
    return None if n < 0 else Link(unpacked(parts["link"]), n, int(parts["link_number"]))


def told_of(parts: Mapping[str, Array], rule: Rule) -> Told | None:
    """R, q, v, pull and doubt that the parent has heard in the wave under way."""
    told = parts["told"]
    return None if np.isnan(told).any() else Told(*split(told, rule, 4))


def joined(parts: Sequence[Numbers]) -> Array:
    """A vector and numbers, or those of each output, one after the other."""
    return np.concatenate([np.ravel(part) for part in parts])


def split(flat: Array, rule: Rule, numbers: int) -> list[Any]:
    """A vector and so many numbers, or those of each output, that were joined."""
    tail = numbers * rule.outputs
    vector, rest = flat[:-tail].copy(), flat[-tail:].reshape(numbers, rule.outputs).copy()
    if rule.outputs == 1:
        return [vector, *rest[:, 0].tolist()]
    return [vector.reshape(rule.outputs, -1), *rest]


def tree_rows(nodes: Sequence[Node], mail: Sequence[tuple[int, Message]]) -> dict[str, Array]:
    """All nodes of a tree, and what is on its way, a row an agent; rows of different lengths are filled up."""
    rows: dict[str, Array] = {}
    for i, node in enumerate(nodes):  # one after the other: all their parts would take as much room as the rows
        for name, part in {**_parts(node), "fronts": _fronts_beside(node, nodes)}.items():
            rows[name] = _with_row(rows.get(name), i, len(nodes), part)
    letters: list[list[Message]] = [[] for _ in nodes]
    for sender, message in mail:
        letters[sender].append(message)
    rows["mail"] = _stacked([np.frombuffer(b"".join(m.data for m in own), dtype=np.uint8) for own in letters])
    rows["mail_sizes"] = np.zeros((len(nodes), max(2, *map(len, letters)), 2), dtype=np.int64)
    for sender, own in enumerate(letters):
        for k, message in enumerate(own):
            rows["mail_sizes"][sender, k] = len(message.data), _way(message, nodes[sender])
    return rows


def _way(message: Message, node: Node) -> int:
    """Up 0, down 1; a front to the parent 2, to the k-th child 3 + k."""
    place = node.place
    if wave_of(message.data) != FRONT:
        return int(message.to == place.children)
    return 2 if message.to == (place.parent,) else 3 + place.children.index(message.to[0])


def _there(way: int, node: Node) -> tuple[int, ...]:
    """To whom a message went that way."""
    place = node.place
    if way in (0, 2):
        return (place.parent or 0,)
    return place.children if way == 1 else (place.children[way - 3],)


def restore_tree(nodes: Sequence[Node], rows: Mapping[str, Array]) -> list[tuple[int, Message]]:
    """Let new nodes know what ``tree_rows`` kept; returns what is on its way."""
    shared: Common | None = None
    together = all(node.common is nodes[0].common for node in nodes)
    all_parts = [_row(rows, i) for i in range(len(nodes))]
    mail = []
    for i, node in enumerate(nodes):
        restore_node(node, {**all_parts[i], "fronts": np.zeros(0)}, shared)
        shared = node.common if together else None
        at = 0
        for size, way in rows["mail_sizes"][i].tolist():
            if size:
                data = rows["mail"][i, at : at + size].astype(np.uint8).tobytes()
                mail.append((i, Message(_there(way, node), data, 0, 0, 0, 0)))
                at += size
    for i, node in enumerate(nodes):
        both = all_parts[i]["fronts"]
        if len(both) and node.place.parent is not None:
            own, others = both.reshape(2, -1)
            _restore_fronts(node, own)
            _restore_fronts(nodes[node.place.parent], others)
        for child in node.place.children:
            link, told = link_of(all_parts[child]), told_of(all_parts[child], node.rule)
            if link is not None:
                node.links[child] = link
            if told is not None and nodes[child].wave == node.wave:
                node.heard[child] = told
    return mail


def _row(rows: Mapping[str, Array], agent: int) -> dict[str, Array]:
    """An agent's parts: its rows without what filled them up."""
    parts = {name: column[agent] for name, column in rows.items()}
    pending = 0
    for size, way in rows["mail_sizes"][agent].tolist():
        pending = size if size and way == 0 else pending
    return {**parts, "pending": parts["pending"][:pending]}


def _with_row(rows: Array | None, i: int, n_rows: int, part: Array) -> Array:
    """Rows with one more, after i others; what is shorter is filled up with NaN, or with 0 where it is whole."""
    if part.ndim == 0:
        rows = np.empty(n_rows, dtype=part.dtype) if rows is None else rows
        rows[i] = part
        return rows
    nothing = np.nan if part.dtype.kind == "f" else 0
    if rows is None or len(part) > rows.shape[1]:
        longer = np.empty((n_rows, *part.shape), dtype=part.dtype)
        if rows is not None:
            longer[:i, : rows.shape[1]], longer[:i, rows.shape[1] :] = rows[:i], nothing
        rows = longer
    rows[i, : len(part)] = part
    if len(part) < rows.shape[1]:
        rows[i, len(part) :] = nothing
    return rows


def _stacked(arrays: Sequence[Array]) -> Array:
    """Arrays on top of each other."""
    rows: Array | None = None
    for i, array in enumerate(arrays):
        rows = _with_row(rows, i, len(arrays), array)
    assert rows is not None
    return rows


def front_size(n_features: int, outputs: int) -> int:
    """How many numbers a front is kept in."""
    return 3 + len(_triangle(n_features)) + outputs * (n_features + 1)


def _fronts_of(node: Node, only: int | None = None) -> list[Array]:
    """Of each front the neighbour, which may be a given one ``only``; whether it was told or heard; what it said."""
    known = [(0.0, node.fronts.heard), (1.0, node.fronts.told)]
    return [
        np.concatenate([[other, told, front.n], packed(front.information), joined((front.model, front.square))])
        for told, fronts in known
        for other, front in fronts.items()
        if only is None or other == only
    ]


def _fronts_beside(node: Node, nodes: Sequence[Node]) -> Array:
    """What went over the edge to the parent, as its lower end has it, then as the upper one: two fronts at most each.

    Kept with the edge: agents have one to their parent, but up to hundreds of children.
    """
    parent = node.place.parent
    if parent is None:
        return np.zeros(0)
    each = _fronts_of(node, parent), _fronts_of(nodes[parent], node.place.agent)
    if not any(each):
        return np.zeros(0)
    both = np.full((2, 2 * front_size(node.n_features, node.rule.outputs)), np.nan)
    for row, fronts in zip(both, each, strict=True):
        if fronts:
            flat = np.concatenate(fronts)
            row[: len(flat)] = flat
    return both.ravel()


def _restore_fronts(node: Node, flat: Array) -> None:
    end = 3 + len(_triangle(node.n_features))
    for row in flat[~np.isnan(flat)].reshape(-1, front_size(node.n_features, node.rule.outputs)):
        fronts = node.fronts.told if row[1] else node.fronts.heard
        fronts[int(row[0])] = Front(float(row[2]), unpacked(row[3:end]), *split(row[end:], node.rule, 1))


def _same(one: Common, other: Common) -> bool:
    return all(np.array_equal(mine, other.parts()[name]) for name, mine in one.parts().items())
