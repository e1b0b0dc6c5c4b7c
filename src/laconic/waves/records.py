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
    columns = {name: nothing[None] for name, nothing in silent(len(nodes)).items()}
    note(columns, 0, mail, nodes)
    return {name: column[0] for name, column in columns.items()}


def note(columns: Mapping[str, Array], t: int, mail: Sequence[tuple[int, Message]], nodes: Sequence[Node]) -> None:
    """The same into row t of columns that say nothing of it yet."""
    for agent, message in mail:
        columns["sent"][t, agent] = True
        columns["message_sizes"][t, agent] += message.bits
        columns["info.link_bits"][t, agent] += message.bits * len(message.to)
        columns["info.terms"][t, agent] += message.n_terms
        node = nodes[agent]
        if node.place.parent is None and message.wave == node.adopted:
            columns["info.trust"][t] = np.max(node.trust)
    if mail:
        agent, message = mail[-1]
        root = next(node.place.agent for node in nodes if node.place.parent is None)
        columns["info.wave"][t] = message.wave, message.start, root, nodes[agent].place.height


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
