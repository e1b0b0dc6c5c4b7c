"""An agent's state, taken out and put back: all that it holds and knows, but not what is under way.

What is not in it: the incarnation, the number of the next call and of the next offer, an outstanding offer. After a
restart no edge is live, and no position can be used twice.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic._validate import shown as _shown
from laconic._worded import ArgumentError
from laconic.protocol.checkpoint import AgentState, Misplaced
from laconic.protocol.dialogue import Dialogue
from laconic.protocol.handshake import COUNT_LIMIT, ROUND_LIMIT
from laconic.protocol.ledger import AWAY, FEW, STRAIN, Ledger
from laconic.protocol.messages import Decide, Kind, Offer, Statement
from laconic.protocol.session import LOGGED, Session, Stage
from laconic.protocol.wave_state import check_waves, put_waves, take_waves
from laconic.protocol.waving import Waves
from laconic.protocol.wire import MODEL_LIMIT, SHARE_LIMIT

VERSION = 3

_ROUNDED = 1 + 1e-6
_APART = 0.1  # how far a dual may be from the sum of its shares, after many rounds in single precision

_COUNTS = ("g", "k", "label", "spoken", "heard", "unheard", "claim", "degree")
_FLAGS = ("intact", "fresh", "counted")
_KEPT = (*_COUNTS, *_FLAGS)
_kept = attrgetter(*_KEPT)


def take_state(dialogue: Dialogue, samples: int) -> AgentState:
    """The state of an agent that has read so many samples of its stream: plain values and copies of arrays."""
    ledger = dialogue.ledger
    about = {
        "version": VERSION,
        "name": dialogue.name,
        "fingerprint": dialogue.wire.mark,
        "round": dialogue.round,
        "finished": dialogue.finished,
        "samples": samples,
        "neighbours": {name: _describe(dialogue, end) for name, end in dialogue.ends.items()},
    }
    if isinstance(ledger, Waves):
        about["waves"], arrays = take_waves(ledger)
        return AgentState(about, arrays)
    row = ledger.row
    arrays = {
        **{_place(part): np.array(row.part(part)) for part in row.parts},
        "pull": row.pull,
        "said": row.replicas.copy(),
        "shares": ledger.shares[1:].copy(),
        **({"memory": row.memory.copy()} if row.memory.size else {}),
        **({"spoken": row.spoken[1:].copy()} if row.heeds else {}),
    }
    yardsticks = {"largest": row.largest, "borrowed": [ledger.borrowed, ledger.vouched]}
    return AgentState({**about, "tell_whole": dialogue.tell_whole, **yardsticks}, arrays)


def _describe(dialogue: Dialogue, end: Session) -> dict[str, Any]:
    wire = dialogue.wire
    pend = [] if end.pend is None else [wire.encode(letter, wire.sender, False).hex() for letter in end.pend]
    return {
        "stage": end.stage.value,
        "tag": end.tag,
        **dict(zip(_KEPT, _kept(end), strict=True)),
        "log": [[s.n, s.label, s.degree, s.digest, int(s.kind), s.data.hex()] for s in end.log],
        "pend": pend,
    }


def put_state(dialogue: Dialogue, state: AgentState) -> int:
    """Put an agent where ``state`` was taken, and return how many samples it had read.

    ValueError, and nothing is changed, if anything in it is no good.
    """
    if not isinstance(state, AgentState):
        raise ArgumentError("state", f"must be an AgentState, from state() or a checkpoint; got {_shown(state)}.")
    about, arrays = state.about, state.arrays
    try:
        if about.get("version") != VERSION:
            raise ValueError(f"state is of version {about.get('version', 1)}, and this agent reads {VERSION}.")
        if about["name"] != dialogue.name:
            raise Misplaced(f"state belongs to agent {about['name']!r}, not to {dialogue.name!r}.")
        if about["fingerprint"] != dialogue.wire.mark:
            raise Misplaced("state comes from an agent with other features, learner, channel, clock or size.")
        kept = about["neighbours"]
        known_ends = {name: _read_end(dialogue, name, values) for name, values in kept.items()}
        ends = {name: end for name, end in known_ends.items() if name in dialogue.ends}
        round, finished = _count(about["round"]), _count(about["finished"])
        if not finished <= round <= finished + 1:
            raise ValueError("state has rounds or a yardstick that no agent can have.")
        samples = _count(about["samples"], ROUND_LIMIT)  # so that there is room for as many more
        ledger, memory = dialogue.ledger, None
        if isinstance(ledger, Waves):
            memory = check_waves(ledger, about["waves"], arrays)
        else:
            tell_whole, (borrowed, vouched) = about["tell_whole"], about["borrowed"]
            largest, borrowed = _yardstick(about["largest"]), _yardstick(borrowed)
            counts = [end.counted for end in known_ends.values()]
            checked = _check_arrays(ledger, arrays, counts, max(largest, borrowed))
            if not isinstance(vouched, bool):
                raise TypeError(f"vouched is {vouched!r}")
            if not isinstance(tell_whole, bool):
                raise TypeError(f"tell_whole is {tell_whole!r}")
    except Exception as error:  # whatever is wrong, nothing has been changed yet
        if isinstance(error, ValueError) and str(error).startswith("state "):
            raise
        raise ValueError(f"state is not that of an agent: {type(error).__name__}: {error}.") from None
    dialogue.round, dialogue.finished = round, finished
    if isinstance(ledger, Ledger):
        dialogue.tell_whole = tell_whole
        row = ledger.row
        row.largest, row.pull = largest, checked["pull"]
        ledger.strained, ledger.harmless = True, 0.0
        ledger.borrowed, ledger.vouched, ledger.labels = borrowed, vouched, FEW * (largest > 0)
        for part in row.parts:
            row.put(part, checked[_place(part)])
        if row.memory.size:
            row.memory[:] = checked["memory"]
        ledger.said(0)[:] = checked["said"][0]
    known = list(kept)
    for name, end in ends.items():
        here, at = dialogue.ends[name], known.index(name)
        end.index, end.leads = here.index, here.leads
        if isinstance(ledger, Ledger):
            dialogue.accounts.open(end.index, checked["said"][1 + at], checked["shares"][at])
            if ledger.row.heeds:
                ledger.row.spoken[end.index] = checked["spoken"][at]
        end.restart()
        _put_end(here, end)
    if isinstance(ledger, Waves) and memory is not None:
        put_waves(ledger, memory, set(ends))
    dialogue.remember()
    counted = [end.index for end in dialogue.ends.values() if end.counted]
    lost = any(end.counted for name, end in known_ends.items() if name not in ends)
    if lost:
        dialogue.settle()
    else:
        dialogue.accounts.count(counted)
    return samples


def _put_end(here: Session, end: Session) -> None:
    for name in (*_COUNTS, *_FLAGS, "stage", "tag", "log", "pend", "out", "call"):
        setattr(here, name, getattr(end, name))


def _check_arrays(ledger: Ledger, arrays: dict[str, Array], counted: list[bool], largest: float) -> dict[str, Array]:
    n, n_kept, dtype, row = ledger.n_features, len(counted), ledger.dtype, ledger.row
    shapes: dict[str, tuple[tuple[int, ...], Any, float]] = {
        **{_place(part): (np.shape(row.part(part)), row.part(part).dtype, np.inf) for part in row.parts},
        "weights": ((n,), dtype, SHARE_LIMIT),
        "said": ((1 + n_kept, n), dtype, MODEL_LIMIT),
        # Those that a neighbour has set to what they may be at most have grown since.
        "shares": ((n_kept, n), np.dtype(np.float64), 2 * SHARE_LIMIT),
        **({"memory": (row.memory.shape, np.dtype(np.float64), np.inf)} if row.memory.size else {}),
        **({"spoken": ((n_kept,), np.dtype(np.uint8), 1)} if row.heeds else {}),
    }
    for name, (shape, kind, limit) in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != kind:
            raise ValueError(f"state has {name} of shape {array.shape} and type {array.dtype}, not {shape} and {kind}.")
        if not np.isfinite(array).all() or not (np.abs(array) <= limit).all():
            raise ValueError(f"state has {name} that are not finite, or too large.")
    pull = arrays["pull"]
    if pull.ndim != 2 or not 1 <= len(pull) <= 2 or pull.shape[1] != n or pull.dtype != dtype:
        raise ValueError(f"state has a pull of shape {pull.shape} and type {pull.dtype}.")
    if not np.isfinite(pull).all():
        raise ValueError("state has a pull that is not finite.")
    _check_sizes(ledger, arrays, counted, largest)
    rows = type(ledger.learner.init(1, n))
    why = ledger.learner.why_not(rows(**{part: arrays[_place(part)][None] for part in row.parts}))
    if why:
        raise ValueError(f"state has {why}.")
    return arrays


def _check_sizes(ledger: Ledger, arrays: dict[str, Array], counted: list[bool], largest: float) -> None:
    """Whether an agent with labels of at most that size can hold these: what it says is seen in what was said."""
    said = np.sqrt((arrays["said"].astype(np.float64) ** 2).sum(axis=1))
    reach = _ROUNDED * max(STRAIN * largest, float(said.max()))
    own = float(np.sqrt((arrays["weights"].astype(np.float64) ** 2).sum()))
    here = max(largest, own)
    followed = said[:1] if ledger.has_duals else said  # who mixes is, after a round, not far from what it was told
    if here and followed.max() > AWAY * here:
        raise ValueError("state has what was said where no such agent can be.")
    if largest and ledger.features.unit and own > reach:
        raise ValueError("state has weights that no agent can have.")
    apart = len(said) * (float(said.max()) + reach)
    if np.abs(arrays["pull"]).max() > 2 * apart:
        raise ValueError("state has a pull that no neighbours can have.")
    rho = ledger.rho
    if rho is not None and not ledger.clips:
        shares = arrays["shares"][counted].sum(axis=0)
        size = max(rho * np.abs(arrays["shares"][counted]).max(initial=0.0), np.abs(arrays["duals"]).max())
        if not (np.abs(arrays["duals"] - rho * shares) <= _APART * size + rho * apart).all():
            raise ValueError("state has duals that are not the sum of its shares.")


def _place(part: str) -> str:
    """The name that a part of the learner's state goes by: only its own parts may be called like the protocol's."""
    return part if part in ("weights", "duals") else f"state.{part}"


def _read_end(dialogue: Dialogue, name: str, values: dict[str, Any]) -> Session:
    end = Session(name, 0, leads=False)
    end.stage, end.tag = Stage(values["stage"]), _count(values["tag"], 1 << 64)
    for key in _COUNTS:
        setattr(end, key, _count(values[key]))
    for key in _FLAGS:
        if not isinstance(values[key], bool):
            raise TypeError(f"{key} of {name!r} is {values[key]!r}")
        setattr(end, key, values[key])
    wire, log = dialogue.wire, []
    for n, label, degree, digest, kind, data in values["log"][-LOGGED:]:
        counts = _count(n), _count(label), _count(degree), _count(digest, 1 << 32)
        statement = Statement(end.tag, *counts, Kind(kind), bytes.fromhex(data))
        wire.decode(wire.encode(statement, 0, False))
        log.append(statement)
    end.log = tuple(log)
    if [s.n for s in log] != list(range(end.spoken - len(log) + 1, end.spoken + 1)):
        raise ValueError(f"state has a log of {name!r} with gaps.")
    if values["pend"]:
        offer, decide = (wire.decode(bytes.fromhex(data)).letter for data in values["pend"])
        if not isinstance(offer, Offer) or not isinstance(decide, Decide):
            raise TypeError(f"no decision is pending with {name!r}")
        end.pend = offer, decide
    return end


def _yardstick(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MODEL_LIMIT:
        raise ValueError("state has rounds or a yardstick that no agent can have.")
    return float(value)


def _count(value: object, limit: int = COUNT_LIMIT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ValueError(f"state has {value!r} where a number is counted.")
    return value
