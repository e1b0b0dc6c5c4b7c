"""``laconic info``: versions, folders, and whether the compiled engine works and how fast."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from laconic import _extras
from laconic.cli.options import Commands, add_data_dir, add_json, add_quiet, describe
from laconic.native.binding import library

_ABOUT = "\nVersions, data folders, and a short test of the compiled engine."
_EXAMPLES = "\nexample:\n  laconic info"

_NEEDED = ("numpy", "scipy", "networkx", "scikit-learn", "polars", "matplotlib", "pooch")
_OPTIONAL = ("river", "h5py", "eclipse-zenoh")
_ROUNDS, _AGENTS, _INPUTS, _FREQUENCIES = 4000, 10, 10, 50


def add(commands: Commands) -> None:
    """Add the command ``info``."""
    listed = {"info": {"help": "versions, folders, and a test of the engine"}, "doctor": {}}
    for name, options in listed.items():  # two names for one thing; without a help text a name is not listed
        parser = commands.add_parser(name, **options, **describe(_ABOUT, _EXAMPLES))
        add_data_dir(parser)
        add_json(parser)
        add_quiet(parser)
        parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it; 1 if the compiled engine is there and does not work."""
    from laconic._version import __version__
    from laconic.cli.words import facts

    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    works, engine = _engine()
    known = [*_data(arguments.data_dir), ("engine", engine)]
    if arguments.json:
        packages = {name: _version(name) or None for name in (*_NEEDED, *_OPTIONAL)}
        about = {"laconic": __version__, "system": system, "packages": packages, **dict(known), "works": works}
        print(json.dumps(about))
        return 0 if works else 1
    versions = [
        (title, ", ".join(f"{name} {_version(name) or '(not installed)'}" for name in names))
        for title, names in (("with", _NEEDED), ("extras", _OPTIONAL))
    ]
    print(facts([("laconic", f"{__version__} on {system}"), *versions, *known]))
    return 0 if works else 1


def _data(data_dir: str | None) -> list[tuple[str, str]]:
    """Where data sets are, and which are missing."""
    try:
        from laconic import data
        from laconic.data import files
    except ModuleNotFoundError as error:
        return [("data", str(_extras.explain(error, "reading data sets")))]
    folder = files.folder(data_dir)
    known = [data.info(name) for name in data.names()]
    missing = [e.name for e in known if e.files and files.find(e.files, data_dir, prefer=e.name) is None]
    at_hand = f"{len(known) - len(missing)} of {len(known)} sets at hand"
    told = f"{folder}: {at_hand}" + (f"; missing: {', '.join(missing)}" if missing else "")
    return [("data", told), ("cache", str(files.cache()))]


def _engine() -> tuple[bool, str]:
    """Whether the compiled engine runs and gives what the reference gives, and its time a sample."""
    import numpy as np

    if library() is None:
        return True, "NumPy's, since no C compiler was there when laconic was installed: slow"
    from laconic.engine import simulate
    from laconic.features import RandomFeatures
    from laconic.learners import QCODKLA
    from laconic.network import Network

    random = np.random.default_rng(0)
    X = random.uniform(size=(_ROUNDS, _AGENTS, _INPUTS))
    y = np.sin(X.sum(axis=2))
    features = RandomFeatures.gaussian(_INPUTS, _FREQUENCIES)
    run = (QCODKLA(), features, Network.ring(_AGENTS))
    try:
        compiled = simulate(*run, X[:100], y[:100], engine="compiled")
        gap = 0.0
        with suppress(_extras.MissingPackage):  # the reference engine needs SciPy, which a thin device has not
            reference = simulate(*run, X[:100], y[:100], engine="reference")
            gap = float(np.abs(compiled.predictions - reference.predictions).max())
        start = time.perf_counter()
        simulate(*run, X, y, engine="compiled")
        each = (time.perf_counter() - start) / y.size
    except Exception as error:  # whatever is broken, the doctor has to say so
        return False, f"the compiled engine does not work: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if not gap < 1e-6:
        return False, f"the compiled engine is wrong: its predictions differ from the reference's by {gap:.2g}"
    what = f"QC-ODKLA, {_AGENTS} agents, {_INPUTS} inputs, {_FREQUENCIES} frequencies"
    compared = f"agrees with the reference to {gap:.1g}" if gap else "not compared: the reference engine needs SciPy"
    return True, f"compiled, works: {1e9 * each:.0f} ns a sample ({what}); {compared}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
