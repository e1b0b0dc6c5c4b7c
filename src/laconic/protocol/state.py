"""An agent's state, taken out and put back: all that it holds and knows, but not what is under way."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic._validate import shown as _shown
from laconic._worded import ArgumentError
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


def check_state(dialogue: Dialogue, state: object) -> AgentState:
    """``state`` if it is one of this very agent, and whole; nothing is changed before all of it is known to be good."""
    if not isinstance(state, AgentState):
        raise ArgumentError("state", f"must be an AgentState, from state() or a checkpoint; got {_shown(state)}.")
    about, arrays = state.about, state.arrays
    name = about.get("name") if isinstance(about, dict) else None
    if name != dialogue.name:
        raise ValueError(f"state belongs to agent {_shown(name)}, not to {dialogue.name!r}.")
    if about.get("fingerprint") != dialogue.wire.mark:
        raise ValueError("state comes from an agent with other features, learner, channel or number of agents.")
    try:
        _check_content(about, arrays, take_state(dialogue).arrays)
    except Exception as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"state is not whole: {type(error).__name__}, {why}.") from error
    return state


def _check_content(about: dict[str, Any], arrays: dict[str, Array], own: dict[str, Array]) -> None:
    """Read all that ``put_state`` will read, in the forms that the agent's ``own`` arrays have; else some exception."""
    neighbours = about["neighbours"]
    rows = {"said": 1 + len(neighbours), "sums": 1 + len(neighbours), "edges": len(neighbours)}
    for name, mine in own.items():
        array = np.asarray(arrays[name])
        shape = (rows[name], *mine.shape[1:]) if name in rows else mine.shape
        if array.shape != shape or array.dtype.kind != mine.dtype.kind:
            raise ValueError(f"its {name} are {array.dtype} of shape {array.shape}, expected {shape}")
    positions = [about["position"], *(kept["position"] for kept in neighbours.values())]
    positions += [at for at, _, _ in about["recent"]]
    if not all(len(at) == 3 and all(type(n) is int for n in (*at, about["finished"])) for at in positions):
        raise ValueError("a position is not made of whole numbers")
    for _, _, data in about["recent"]:
        bytes.fromhex(data)
    float(about["largest"])
    for name, kept in neighbours.items():
        Stage(kept["stage"])
        if type(kept["degree"]) is not int or type(kept["epoch"]) is not int:
            raise ValueError(f"what it knows of {name!r} is not made of whole numbers")
        bool(kept["remembers"])


def put_state(dialogue: Dialogue, state: AgentState) -> None:
    """Put an agent where ``state`` was taken."""
    state = check_state(dialogue, state)
    about, arrays = state.about, state.arrays
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
    dialogue.hear_live_edges()
    if set(about["neighbours"]) != set(others):
        dialogue.settle()


def _place(part: str) -> str:
    """The name that a part of the learner's state goes by: only its own parts may be called like the protocol's."""
    return part if part in ("weights", "duals") else f"state.{part}"
