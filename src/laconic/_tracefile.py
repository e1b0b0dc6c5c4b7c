"""The files of traces: one ``.npz`` archive with a column for each field, and a header in JSON.

A file of a whole run has columns (T, N). One of a single agent of a site (``laconic agent --trace``) leaves out the
axis of agents, and holds beside the columns what the agent knew of its neighbours. Both hold the feature map, described
in the header and with its arrays beside the columns, so that models can be taken out of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic._files import written_whole
from laconic._npz import Archive, Form, unpacked_limit
from laconic._validate import Array

_FORMAT = 1
_LONGEST_HEADER = 2**23  # the scaling of a hundred thousand inputs

#: Columns with an entry for each round and agent, and the kind of number that it is.
_WIDE = {"predictions": "f", "labels": "f", "sent": "bi", "saturated": "f"}
_SEVERAL = ("predictions", "labels")  # which have an axis more where there are several outputs
_ROUNDS = ("consensus_error", "energy", "replica_error")
_COLLECTIVE = ("collective_square", "collective_loss")
_SIZES = {"message_sizes": "iu"}  # where messages vary in length
_KINDS = _WIDE | _SIZES | {"degrees": "i"}
#: What a file of a single agent holds besides, by these names.
#: What is kept of edges that come and go.
_EDGES = ("edges.pairs", "edges.live", "edges.shares")
_AGENT_STATE = ("weights", "duals")
_AGENT_INFO = ("rounds", "bits", "neighbours", "replicas", "heard", "position")
_ABOUT: dict[str, type] = {
    "name": str,
    "loss": str,
    "message_bits": int,
    "regularization": Real,
    "energy_before": Real,
    "seconds": Real,
}


class Content(NamedTuple):
    """What a file of a trace holds: the trace's fields but for its state, and the state's."""

    columns: dict[str, Array]
    info: dict[str, Array]
    about: dict[str, Any]
    round: int
    learner: dict[str, Array]
    broadcast: Array
    map: tuple[dict[str, Any], dict[str, Array]] | None = None
    channel: dict[str, Array] = {}
    edges: dict[str, Array] = {}
    origin: str = ""


def write(path: Path, content: Content, *, agent: bool = False) -> None:
    """Write a file of a trace, complete or not at all; with ``agent``, that of a single agent."""
    arrays = dict(content.columns)
    if agent:
        arrays = {name: array[:, 0] if array.ndim > 1 else array for name, array in arrays.items()}
        arrays |= content.info
        for name, rows in content.learner.items():
            arrays[name if name in _AGENT_STATE else f"state.{name}"] = rows[0]
        arrays["broadcast"] = content.broadcast[0]
    else:
        arrays |= {f"info.{name}": array for name, array in content.info.items()}
        arrays |= {f"state.{name}": array for name, array in content.learner.items()}
        arrays["broadcast"] = content.broadcast
    arrays |= {f"channel.{name}": array for name, array in content.channel.items()}
    arrays |= {f"edges.{name}": array for name, array in content.edges.items()}
    header = {"format": _FORMAT, "round": content.round, "about": content.about, "origin": content.origin}
    if content.map is not None:
        header["map"], parts = content.map
        arrays |= {f"map.{name}": array for name, array in parts.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with written_whole(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
        if sum(np.asarray(array).nbytes for array in arrays.values()) > unpacked_limit(file.tell()):
            file.seek(0)
            file.truncate()
            np.savez(file, allow_pickle=False, **arrays)


def read(path: Path) -> Content:
    """Read what ``write`` wrote; ValueError in one sentence if this is something else, FileNotFoundError if nothing."""
    try:
        with path.open("rb") as file, Archive(file) as archive:
            return _read(archive)
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile, zlib and json have many ways to say that a file is damaged
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is not a complete laconic trace: {why}.") from error


def _read(archive: Archive) -> Content:
    forms = dict(archive.forms)
    header_form = forms.pop("header", None)
    if header_form is None or header_form.n_bytes > _LONGEST_HEADER:
        raise ValueError("it has no header, or one that is far too long")
    header = json.loads(archive.read("header").tobytes())
    round, about = _check_header(header)
    if about["message_bits"] is None and not _SIZES.keys() <= forms.keys():
        raise ValueError("it does not say how long its messages are")
    single = len(forms["sent"].shape) == 1 if "sent" in forms else False
    names = _check_forms(forms, single)
    arrays = {name: archive.read(name) for name in forms}
    if round < len(arrays["predictions"]):
        raise ValueError("it has more rounds than it says")
    columns = {name: arrays[name] for name in names.columns}
    learner = {name.removeprefix("state."): arrays[name] for name in names.learner}
    info = {name.removeprefix("info."): arrays[name] for name in names.info}
    broadcast = arrays["broadcast"]
    if single:
        columns = {name: array[:, None] if name in _WIDE | _SIZES else array for name, array in columns.items()}
        learner = {name: row[None] for name, row in learner.items()}
        broadcast = broadcast[None]
    described = header.get("map")
    parts = {name.removeprefix("map."): arrays[name] for name in names.map}
    channel = {name.removeprefix("channel."): arrays[name] for name in names.channel}
    kept = None if described is None else (described, parts)
    edges = {name.removeprefix("edges."): arrays[name] for name in names.edges}
    if edges and not (edges["pairs"].min(initial=0) >= 0 and edges["pairs"].max(initial=0) < len(broadcast)):
        raise ValueError("its edges are between agents that it does not have")
    origin = header.get("origin", "")  # files of before have none
    if not isinstance(origin, str):
        raise ValueError(f"its header says {str(origin)[:60]!r} for origin")
    return Content(columns, info, about, round, learner, broadcast, kept, channel, edges, origin)


def _check_header(header: Any) -> tuple[int, dict[str, Any]]:
    """The rounds behind the run, and what it was: at least what the methods of a trace make use of."""
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        found = header.get("format") if isinstance(header, dict) else header
        raise ValueError(f"its format is {str(found)[:60]}, this version reads {_FORMAT}")
    round, about = header.get("round"), header.get("about")
    if type(round) is not int or not 0 <= round < 2**63 or not isinstance(about, dict):
        raise ValueError("its header is not that of a trace")
    for name, kind in _ABOUT.items():
        value = about.get(name)
        if name == "message_bits" and name in about and value is None:  # they vary, and stand in a column of their own
            continue
        if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and abs(value) >= 2**63):
            raise ValueError(f"its header says {str(value)[:60]!r} for {name}")
    return round, about


class _Names(NamedTuple):
    """The arrays of a file by what they are for."""

    columns: list[str]
    learner: list[str]
    info: list[str]
    map: list[str]
    channel: list[str]
    edges: list[str]


def _check_forms(forms: Mapping[str, Form], single: bool) -> _Names:
    """Sort the arrays of a file; ValueError if one is missing, unknown, or has a form that does not suit the others."""
    required = [*_WIDE, *_ROUNDS, "degrees", "broadcast"]
    names = _Names([*_WIDE, *_ROUNDS, "degrees"], [], [], [], [], [])
    for name in forms:
        if name in _SIZES or (name in _COLLECTIVE and not single):
            names.columns.append(name)
        elif (name in _AGENT_STATE and single) or name.startswith("state."):
            names.learner.append(name)
        elif (name in _AGENT_INFO and single) or name.startswith("info."):
            names.info.append(name)
        elif name.startswith("map."):
            names.map.append(name)
        elif name.startswith("channel."):
            names.channel.append(name)
        elif name in _EDGES and not single:
            names.edges.append(name)
        elif name not in required:
            raise ValueError(f"it holds an unknown array {name[:60]!r}")
    missing = [name for name in required if name not in forms]
    if not {"weights", "state.weights"} & set(names.learner):
        missing.append("weights")
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    wide, predicted = forms["sent"].shape, forms["predictions"].shape
    n_agents = 1 if single else wide[-1] if len(wide) == 2 else 0
    rows = forms["broadcast"].shape
    outputs = rows[len(wide) - 1 : -1]  # of several there is an axis more
    if n_agents < 1 or len(predicted) != len(wide) + len(outputs) or 0 in predicted[1:]:
        raise ValueError(f"its predictions have shape {predicted} instead of (rounds, agents)")
    for name in names.columns:
        shape = (n_agents,) if name == "degrees" else wide[:1] if name in _ROUNDS else wide
        shape = wide + outputs if name in _SEVERAL else shape
        if name == "degrees" and not single and len(forms[name].shape) == 2:  # of a network that changes
            shape = wide
        _check_form(name, forms[name], shape, _KINDS.get(name, "f"))
    first = outputs if single else (n_agents, *outputs)
    if not rows or rows[:-1] != first or len(outputs) > 1 or 1 in outputs:
        raise ValueError(f"its broadcast has shape {rows}")
    for name in names.learner:
        weights = name.removeprefix("state.") == "weights"
        if not single and forms[name].shape[:1] != (n_agents,):
            raise ValueError(f"its {name} have shape {forms[name].shape} instead of a row for each agent")
        _check_form(name, forms[name], rows if weights else forms[name].shape, "f" if weights else "biuf")
    _check_form("broadcast", forms["broadcast"], rows, "f")
    if names.edges:
        if len(names.edges) < len(_EDGES):
            raise ValueError("it holds only a part of what its edges are")
        n_edges = (*forms[_EDGES[0]].shape, 0)[0]
        for name, width, kinds in zip(_EDGES, ((2,), (), rows[1:]), ("i", "b", "f"), strict=True):
            _check_form(name, forms[name], (n_edges, *width), kinds)
    for name in names.channel:
        _check_form(name, forms[name], (n_agents,), "f")
    return names


def _check_form(name: str, form: Form, shape: tuple[int, ...], kinds: str) -> None:
    if form.shape != shape or form.dtype.kind not in kinds:
        raise ValueError(f"its {name} are {form.dtype} of shape {form.shape}, expected {shape}")
