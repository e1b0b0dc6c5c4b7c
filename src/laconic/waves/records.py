"""What a run tells of its waves: a row of numbers for each round, and a record for each wave made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    }


def spoken(mail: Sequence[tuple[int, Message]], nodes: Sequence[Node]) -> dict[str, Array]:
    """The columns of a round: who spoke, how many bits and terms, of which wave; trust where the root decided."""
    row = silent(len(nodes))
    sent, sizes, on_links, terms = (row[name] for name in ("sent", "message_sizes", "info.link_bits", "info.terms"))
    for agent, message in mail:
        sent[agent] = True
        sizes[agent] += message.bits
        on_links[agent] += message.bits * len(message.to)
        terms[agent] += message.n_terms
        node = nodes[agent]
        if node.place.parent is None and message.wave == node.adopted:
            row["info.trust"] = np.array(np.max(node.trust))
    if mail:
        agent, message = mail[-1]
        root = next(node.place.agent for node in nodes if node.place.parent is None)
        row["info.wave"][:] = message.wave, message.start, root, nodes[agent].place.height
    return row


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
