"""An agent's state, taken out and put back: all that it holds and knows, but not what is under way."""

from __future__ import annotations

import numpy as np

from laconic.protocol.checkpoint import AgentState
from laconic.protocol.dialogue import Dialogue
from laconic.protocol.edge import Stage
from laconic.protocol.messages import Position


def take_state(dialogue: Dialogue) -> AgentState:
    """The state of an agent: plain values and copies of arrays."""
    ledger, others = dialogue.ledger, dialogue.neighbours
    n = ledger.n_features
    neighbours = {
        name: {
            "position": list(other.position),
            "degree": other.degree,
            "stage": other.stage.value,
            "epoch": other.epoch,
            "remembers": other.remembers,
        }
        for name, other in others.items()
    }
    vectors = [np.zeros(n) if other.vector is None else other.vector for other in others.values()]
    row = ledger.row
    arrays = {
        **{_place(part): np.array(row.part(part)) for part in row.parts},
        "pull": row.pull,
        "said": row.replicas.copy(),
        "sums": ledger.sums.copy(),
        "edges": np.array(vectors).reshape(-1, n),
    }
    about = {
        "name": dialogue.name,
        "fingerprint": dialogue.wire.mark,
        "position": list(dialogue.position),
        "finished": dialogue.finished,
        "largest": row.largest,
        "neighbours": neighbours,
        "recent": [[list(position), spoken, data.hex()] for position, spoken, data in dialogue.recent],
    }
    return AgentState(about, arrays)


def put_state(dialogue: Dialogue, state: AgentState) -> None:
    """Put an agent where ``state`` was taken."""
    about, arrays = state.about, state.arrays
    if about["name"] != dialogue.name:
        raise ValueError(f"state belongs to agent {about['name']!r}, not to {dialogue.name!r}.")
    if about["fingerprint"] != dialogue.wire.mark:
        raise ValueError("state comes from an agent with other features, learner, channel or number of agents.")
    ledger, others = dialogue.ledger, dialogue.neighbours
    recent = [(Position(*at), spoken, bytes.fromhex(data)) for at, spoken, data in about["recent"]]
    dialogue.stand_at(Position(*about["position"]), about["finished"], recent)
    row = ledger.row
    row.largest, row.pull = about["largest"], arrays["pull"]
    for part in row.parts:
        row.put(part, arrays[_place(part)])
    ledger.adopt(0, arrays["said"][0], arrays["sums"][0])
    for number, (name, kept) in enumerate(about["neighbours"].items(), 1):
        other = others.get(name)
        if other is not None:
            ledger.adopt(other.index, arrays["said"][number], arrays["sums"][number])
            other.position, other.degree = Position(*kept["position"]), kept["degree"]
            other.stage, other.epoch, other.remembers = Stage(kept["stage"]), kept["epoch"], kept["remembers"]
            vector = arrays["edges"][number - 1]
            other.vector = vector.copy() if vector.any() else None
    for name, other in others.items():
        if name not in about["neighbours"]:
            other.stage = Stage.OPENING
            other.forget()
    dialogue.listen_to_the_living()
    if set(about["neighbours"]) != set(others):
        dialogue.settle()


def _place(part: str) -> str:
    """The name that a part of the learner's state goes by: only its own parts may be called like the protocol's."""
    return part if part in ("weights", "duals") else f"state.{part}"
