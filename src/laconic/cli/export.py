"""``laconic export``: the model of a run, of a file, or of a site that runs, to be taken away."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from laconic._files import expanded, written_whole
from laconic.cli.options import Commands, add_quiet, describe, number
from laconic.cli.words import note, paragraph

if TYPE_CHECKING:
    from laconic.model import Model

_ABOUT = """
Take a model away: from the trace of a run, from another model's file, or from
a site, whose agents are asked while they run; of those that do not, the last
checkpoint is taken. The ending of the output says what it becomes: .npz for
laconic itself, .onnx for any runtime of ONNX, .c for a C compiler."""

_EXAMPLES = """
examples:
  laconic export trace.npz -o model.npz               the mean of all agents' models
  laconic export trace.npz --agent 3 -o model.c       that of one
  laconic export site.toml --agent kitchen -o model.npz
  laconic export model.npz -o model.onnx"""

ENDINGS = (".npz", ".onnx", ".c")


def add(commands: Commands) -> None:
    """Add the command ``export``."""
    parser = commands.add_parser(
        "export",
        help="take a model away, as a file, ONNX or C",
        usage="laconic export FILE -o FILE [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("source", metavar="FILE", help="a trace (.npz), a model (.npz), or a site's settings (.toml)")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="what to write: .npz, .onnx or .c")
    parser.add_argument(
        "--agent", default="mean", metavar="NAME", help="whose model: a name, an index, or mean (default: of all)"
    )
    parser.add_argument(
        "--as", dest="guest", metavar="NAME", help="whose certificate to show a site (default: the agent's own)"
    )
    parser.add_argument("--timeout", type=number, default=5.0, metavar="SEC", help="to wait for a running agent (5)")
    parser.add_argument("--json", action="store_true", help="tell what was written as JSON")
    add_quiet(parser)
    parser.set_defaults(command=export)


def export(arguments: argparse.Namespace) -> int:
    """Find the model, and write it."""
    out = expanded(arguments.out)
    if out.suffix not in ENDINGS:
        raise ValueError(f"--out must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {arguments.out!r}.")
    if not out.parent.is_dir():
        raise ValueError(f"--out must name a file in a folder that exists, got {arguments.out!r}.")
    source = expanded(arguments.source)
    model = _of_site(source, arguments) if source.suffix == ".toml" else _of_file(source, arguments.agent)
    with written_whole(out) as file:
        file.write(_WRITERS[out.suffix](model))
    if arguments.json:
        about = {"inputs": model.inputs, "target": model.target, "classes": model.classes, "about": model.about}
        print(json.dumps({"out": str(out), "model": repr(model), "n_inputs": model.n_inputs, **about}))
    else:
        print(paragraph(f"Wrote {out}: {model!r}."))
    return 0


_WRITERS: dict[str, Callable[[Model], bytes]] = {
    ".npz": lambda model: model.to_bytes(),
    ".onnx": lambda model: bytes(model.to_onnx().SerializeToString()),
    ".c": lambda model: model.to_c().encode(),
}


def _of_file(path: Path, agent: str) -> Model:
    """The model in a trace or a model's file."""
    from laconic.model import Model
    from laconic.trace import Trace

    try:
        trace = Trace.load(path)
    except ValueError as error:
        try:
            model = Model.load(path)
        except ValueError:
            if "header" in str(error):  # a good archive of something else
                raise ValueError(f"{path} is neither a trace nor a model of laconic.") from None
            raise error from None
        if agent != "mean":
            raise ValueError(f"--agent is for traces and sites; {path} holds one model.") from None
        return model
    if agent == "mean":
        return trace.model()
    if not agent.isdecimal() or int(agent) >= trace.n_agents:
        raise ValueError(f"--agent must be mean or an index below {trace.n_agents}, got {agent!r}.")
    return trace.model(int(agent))


def _of_site(path: Path, arguments: argparse.Namespace) -> Model:
    from laconic import _validate
    from laconic.deploy.operations.fetching import Fetched, fetch_model
    from laconic.deploy.settings.site import Site
    from laconic.model.making import mean_model

    timeout = _validate.number("--timeout", arguments.timeout, above=0)
    site = Site.read(path)
    if arguments.agent != "mean":
        site.agent(arguments.agent)
    names = site.names if arguments.agent == "mean" else (arguments.agent,)
    found: dict[str, Fetched] = {}
    absent = []
    for name in names:
        one = fetch_model(site, name, timeout, arguments.guest)
        if one is None:
            absent.append(name)
        else:
            found[name] = one
    if not found:
        if len(names) > 1:
            raise ValueError(f"no agent of {path} runs, or has left a checkpoint here.")
        raise ValueError(f"{names[0]} of {path} does not run, and has left no checkpoint here.")
    for name in absent:
        note(f"{name} neither runs nor has a checkpoint here: left out.")
    for name, one in found.items():
        if not one.running:
            note(f"{name} does not answer: taken from its checkpoint of round {one.model.about.get('round')}.")
    if len(names) == 1:
        return found[names[0]].model
    return mean_model({name: one.model for name, one in found.items()})
