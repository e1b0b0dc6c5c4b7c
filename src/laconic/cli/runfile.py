"""A run described in a file: network, features, learner, stream and rounds, for ``laconic run big.toml``."""

from __future__ import annotations

import importlib
import tomllib
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic._files import expanded
from laconic._validate import Array
from laconic.cli.networks import make_network
from laconic.deploy.settings.learning import Model, read_learning, read_model
from laconic.deploy.settings.sections import Section, near
from laconic.engine import Drawn, uniforms
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Network

_TABLES = ("run", "network", "model", "learner", "channel", "stream")
_KINDS = ("drawn", "files", "function")
_WAVES = 8  # of which the landscape of a drawn stream is made


class RunFile(NamedTuple):
    """What a file asks for; the network is drawn only when it is asked for."""

    file: Path
    model: Model
    learner: Learner
    stream: Drawn
    network_spec: str
    n_agents: int
    seed: int
    checkpoint: Path | None
    checkpoint_every: int
    about: str  # the stream, in words: who goes on from a checkpoint must have the same

    def network(self) -> Network:
        """The network, the same in every process; a file of it lies beside this one, or where the command is given."""
        beside = self.file.parent / expanded(self.network_spec)
        try:
            spec = str(beside) if beside.is_file() else self.network_spec
            found = make_network(spec, self.n_agents, self.seed)
        except ValueError as error:
            raise ValueError(f"{self.file}: [network] {str(error).replace('--network ', 'kind ')}") from None
        if found.n_agents != self.n_agents:
            kind = self.network_spec
            raise ValueError(f"{self.file}: [network] agents must be {found.n_agents}, as {kind!r} has them.")
        return found

    def features(self) -> RandomFeatures:
        """The feature map."""
        return self.model.features()


def read_run(path: Path) -> RunFile:
    """The run that a file describes, or one sentence about what is wrong with it."""
    try:
        values = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    if "run" not in values and {"site", "agents"} & values.keys():
        raise ValueError(f"{path} is a site and not a run: `laconic up {path}` starts its agents.")
    for key in values:
        if key not in _TABLES:
            hint = near(key, _TABLES)
            hint = f"; its tables are {', '.join(_TABLES)}." if hint == "." else hint
            raise ValueError(f"{path} has no table [{key}]{hint}")
    tables = {key: Section(path, f"[{key}]", values.get(key, {})) for key in _TABLES}
    run, network = tables["run"], tables["network"]
    rounds = run.integer("rounds", least=1)
    seed = run.integer("seed", 0, least=0, most=2**63 - 1)
    checkpoint = run.path("checkpoint", None)
    every = run.integer("checkpoint_every", 100, least=1)
    run.end()
    n_agents, spec = network.integer("agents", least=1), network.text("kind")
    network.end()
    model = read_model(tables["model"])
    learner = read_learning(tables["learner"], tables["channel"]).learner()
    stream, about = _read_stream(tables["stream"], rounds, n_agents, model.n_inputs, seed)
    return RunFile(path, model, learner, stream, spec, n_agents, seed, checkpoint, every, about)


def _read_stream(table: Section, rounds: int, n_agents: int, n_inputs: int, seed: int) -> tuple[Drawn, str]:
    """Where each agent's samples come from, and what tells that from other places."""
    kind = table.choice("kind", _KINDS, "drawn")
    if kind == "files":
        inputs, labels = (_open(table, key) for key in ("X", "y"))
        table.end()
        if inputs.shape != (len(labels), n_agents, n_inputs) or labels.shape[1:] != (n_agents,) or len(labels) < rounds:
            raise table.wrong(
                f"X and y must have shapes (T, {n_agents}, {n_inputs}) and (T, {n_agents}) with T at least {rounds}, "
                f"got {inputs.shape} and {labels.shape}."
            )
        return Drawn(lambda agents, first, last: (inputs[first:last, agents], labels[first:last, agents]), rounds), kind
    if kind == "function":
        where = table.text("function")
        draw = _import(table, where)
        table.end()
        return Drawn(_blamed(table, where, draw), rounds), f"{kind} {where}"
    noise, drift = table.number("noise", 0.1, least=0), table.number("drift", 0.0)
    table.end()
    pace = drift / rounds
    return Drawn(landscape(n_inputs, seed, noise, pace), rounds), f"{kind} {seed} {noise!r} {pace!r}"


def landscape(n_inputs: int, seed: int, noise: float, drift: float) -> Any:
    """A sum of waves over the unit cube that travel by ``drift`` a round, measured with noise at random places."""
    random = np.random.default_rng(seed)
    slopes, starts = random.normal(0, 2.5, (_WAVES, n_inputs)), random.uniform(0, 2 * np.pi, _WAVES)
    speeds = 2 * np.pi * random.uniform(-1, 1, _WAVES) * drift

    def draw(agents: Array, first: int, last: int) -> tuple[Array, Array]:
        numbers = uniforms(seed, agents, first, last, n_inputs + 2)
        X, u, v = numbers[..., :n_inputs], numbers[..., -2], numbers[..., -1]
        moved = starts + speeds * np.arange(first, last)[:, None]
        phases = np.zeros((*X.shape[:2], _WAVES)) + moved[:, None, :]
        for k in range(n_inputs):  # no product of matrices, whose last bits depend on how many agents are asked for
            phases += X[..., k, None] * slopes[:, k]
        y = np.cos(phases).sum(axis=2) / np.sqrt(_WAVES)
        return X, y + noise * np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)

    return draw


def _open(table: Section, key: str) -> Array:
    """An array in a file, of which each process reads what it needs."""
    path = table.path(key)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise table.wrong(f"{key} must be a file of NumPy, and there is no {path}.") from None
    except (OSError, ValueError, EOFError):
        found = None
    if not isinstance(found, np.ndarray) or not found.ndim:
        raise table.wrong(f"{key} must be a file of NumPy that holds one array, and {path} is none.")
    return found


def _import(table: Section, where: str) -> Any:
    """The function ``package.module:name``."""
    module, _, name = where.partition(":")
    must = f"function must say where one is, as package.module:name; {where!r}"
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise table.wrong(f"{must}: {error}.") from None
    except (Exception, SystemExit) as error:
        raise table.wrong(f"function {where!r} cannot be had: {_where(error)}.") from error
    if not callable(found):
        raise table.wrong(f"{must} is {found!r}.")
    return found


def _blamed(table: Section, where: str, draw: Any) -> Any:
    """The function, and of what goes wrong in it a sentence that says where that was."""

    def blamed(agents: Array, first: int, last: int) -> Any:
        try:
            return draw(agents, first, last)
        except (Exception, SystemExit) as error:
            asked = f"rounds {first} to {last}"
            raise table.wrong(f"function {where!r} failed when asked for {asked}: {_where(error)}.") from error

    return blamed


def _where(error: BaseException) -> str:
    """What went wrong, and the last line that was reached."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{said} ({Path(last.filename).name}, line {last.lineno})"
