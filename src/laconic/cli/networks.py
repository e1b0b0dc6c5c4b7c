"""``--network``: a kind, a kind with its number, or a file."""

from __future__ import annotations

import difflib
import math
import re

from laconic._files import expanded
from laconic.network import Network

KINDS = ("random", "ring", "path", "star", "complete", "grid", "geometric", "small-world")

_PLAIN = {"ring": Network.ring, "path": Network.path, "star": Network.star, "complete": Network.complete}
_DENSE = 10  # up to so many agents half of all pairs are linked, as in the paper; beyond, a few neighbours each suffice


def agents_of(spec: str) -> int | None:
    """How many agents the network itself asks for: a file and a grid RxC know, the others do not."""
    if _is_file(spec):
        return Network.read(expanded(spec)).n_agents
    size = re.fullmatch(r"grid:(\d+)x(\d+)", spec.lower())
    return int(size[1]) * int(size[2]) if size else None


def make_network(spec: str, n_agents: int, seed: int) -> Network:
    """The network that ``--network`` asks for.

    >>> make_network("grid:2x3", 6, seed=0)
    Network(6 agents, 7 edges)
    >>> make_network("ring:3", 6, seed=0)
    Traceback (most recent call last):
    ValueError: --network ring takes no number, got 'ring:3'.
    """
    if _is_file(spec):
        return Network.read(expanded(spec))
    kind, _, detail = spec.lower().partition(":")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"--network must be a file or one of {', '.join(KINDS)}; got {spec!r}.{hint}")
    if kind in _PLAIN:
        if detail:
            raise ValueError(f"--network {kind} takes no number, got {spec!r}.")
        return _PLAIN[kind](n_agents)
    if kind == "grid":
        return Network.grid(*_sides(detail, n_agents))
    if kind == "small-world":
        neighbours = float(_number(spec, detail, min(4, n_agents - 1)))
        if not neighbours.is_integer():
            raise ValueError(f"--network small-world:K takes a whole number of neighbours, got {spec!r}.")
        return Network.small_world(n_agents, int(neighbours), seed=seed)
    logarithm = math.log(max(n_agents, 2))
    if kind == "geometric":
        return Network.geometric(n_agents, _number(spec, detail, 1.5 * math.sqrt(logarithm / (3 * n_agents))), seed)
    usual = 0.5 if n_agents <= _DENSE else min(0.5, 3 * logarithm / n_agents)
    return Network.random(n_agents, _number(spec, detail, usual), seed)


def _is_file(spec: str) -> bool:
    """Whether ``spec`` means a file: it is there, or only a file could be written so."""
    kind = spec.lower().partition(":")[0]
    return kind not in KINDS and (expanded(spec).is_file() or "/" in spec or "." in spec)


def _sides(detail: str, n_agents: int) -> tuple[int, int]:
    """Rows and columns: those given, or the squarest that hold all agents."""
    if not detail:
        rows = next(r for r in range(math.isqrt(n_agents), 0, -1) if n_agents % r == 0)
        return rows, n_agents // rows
    size = re.fullmatch(r"(\d+)x(\d+)", detail)
    if not size:
        raise ValueError(f"--network grid:RxC takes two whole numbers, as in grid:2x3; got 'grid:{detail}'.")
    return int(size[1]), int(size[2])


def _number(spec: str, detail: str, usual: float) -> float:
    if not detail:
        return usual
    try:
        return float(detail)
    except ValueError:
        raise ValueError(f"--network must have a number after the colon, got {spec!r}.") from None
