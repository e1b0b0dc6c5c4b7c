"""What a run tells of its waves: a row of numbers for each round, and a record for each wave made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.node import Message, Node

_FIELDS = np.dtype([*((name, "i8") for name in ("number", "when", "root", "depth", "terms", "bits")), ("trust", "f8")])


def silent(n_agents: int) -> dict[str, Array]:
    """The columns of a round in which nobody speaks."""
    return {
        "sent": np.zeros(n_agents, dtype=bool),
        "message_sizes": np.zeros(n_agents, dtype=np.int64),
        "info.link_bits": np.zeros(n_agents, dtype=np.int64),
        "info.terms": np.zeros(n_agents, dtype=np.int32),
        "info.wave": np.zeros(4, dtype=np.int64),
        "info.trust": np.zeros(()),
        "info.rebuilt": np.zeros(n_agents, dtype=bool),
    }


class Said(NamedTuple):
    """What was said in one round: (agent, bits, bits on all links, terms) a message; the wave, and the root's trust."""

    messages: list[tuple[int, int, int, int]]
    wave: tuple[int, int, int, int]
    trust: float


def said(mail: Sequence[tuple[int, Message]], nodes: Sequence[Node]) -> Said | None:
    """What there is to record of a round; None if nobody spoke."""
    if not mail:
        return None
    messages, trust = [], 0.0
    for agent, message in mail:
        messages.append((agent, message.bits, message.bits * len(message.to), message.n_terms))
        node = nodes[agent]
        if node.place.parent is None and message.wave == node.adopted:
            trust = float(np.max(node.trust)) if isinstance(node.trust, np.ndarray) else node.trust
    root = next(node.place.agent for node in nodes if node.place.parent is None)
    return Said(messages, (message.wave, message.start, root, node.place.height), trust)


def columns(n_rounds: int, n_agents: int, rounds: Mapping[int, Said]) -> dict[str, Array]:
    """Who spoke in each round, how many bits and terms, of which wave; trust where the root decided."""
    made = {
        name: np.zeros((n_rounds, *nothing.shape), dtype=nothing.dtype) for name, nothing in silent(n_agents).items()
    }
    for t, row in rounds.items():
        if t < n_rounds:
            made["info.wave"][t], made["info.trust"][t] = row.wave, row.trust
    found = [(t, *message) for t, row in rounds.items() if t < n_rounds for message in row.messages]
    if found:
        when, who, bits, on_links, terms = np.array(found).T
        made["sent"][when, who] = True
        np.add.at(made["message_sizes"], (when, who), bits)
        np.add.at(made["info.link_bits"], (when, who), on_links)
        np.add.at(made["info.terms"], (when, who), terms)
    return made


def records(info: Mapping[str, Array], bits: Array) -> Array:
    """A record for each wave: number, when, root, depth, terms, bits, trust."""
    if "wave" not in info:
        return np.zeros(0, dtype=_FIELDS)
    wave, terms, trust = (np.asarray(info[name]) for name in ("wave", "terms", "trust"))
    found = []
    for number in np.unique(wave[wave[:, 0] > 0, 0]):
        rounds = wave[:, 0] == number
        _, when, root, depth = wave[np.argmax(rounds)].tolist()
        found.append((number, when, root, depth, terms[rounds].sum(), bits[rounds].sum(), trust[rounds].max()))
    return np.array(found, dtype=_FIELDS)
