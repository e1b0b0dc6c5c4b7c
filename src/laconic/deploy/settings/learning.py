"""The ``[model]``, ``[learner]`` and ``[channel]`` tables: what all agents of a site have to have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from laconic.channel import Censor, Channel, Quantizer
from laconic.deploy.settings.sections import Section
from laconic.features import RandomFeatures
from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Learner, Local

KERNELS = ("gaussian", "laplacian", "matern")
DTYPES = ("float64", "float32")
LOSSES = ("squared", "logistic", "hinge")

_COMMON = ("regularization", "loss")
#: The learners by their names in a file, and the keys that each of them heeds.
_ALGORITHMS: dict[str, tuple[type[Learner], tuple[str, ...]]] = {
    "odkla": (ODKLA, ("rho", "eta")),
    "qcodkla": (QCODKLA, ("rho", "eta")),
    "dokl": (DOKL, ("rho", "eta")),
    "rffdokl": (RFFDOKL, ("step", "order", "mixing")),
    "local": (Local, ("step",)),
}
_STEPS = ("rho", "eta", "step", "order", "mixing")
_CENSOR, _QUANTIZER = ("alpha", "beta"), ("bits", "range", "rounding")
_BITS = 3
_MOST_INPUTS, _MOST_FREQUENCIES, _MOST_NUMBERS = 100_000, 1_000_000, 100_000_000


@final
@dataclass(frozen=True)
class Model:
    """``[model]``: the feature map. ``nu`` is for the Matern kernel only."""

    kernel: str
    n_inputs: int
    n_frequencies: int
    bandwidth: float
    seed: int
    dtype: str
    nu: float | None

    def features(self) -> RandomFeatures:
        """Draw the frequencies, the same for everybody who has the same settings."""
        make: Any = getattr(RandomFeatures, self.kernel)
        extra = {} if self.nu is None else {"nu": self.nu}
        drawn: RandomFeatures = make(
            self.n_inputs, self.n_frequencies, bandwidth=self.bandwidth, seed=self.seed, **extra
        )
        return drawn


@final
@dataclass(frozen=True)
class Learning:
    """``[learner]`` and ``[channel]``: which learner, and the arguments it is made with."""

    algorithm: str
    arguments: tuple[tuple[str, Any], ...]

    def learner(self) -> Learner:
        """Make the learner, a new one at each call."""
        make: Any = _ALGORITHMS[self.algorithm][0]
        made: Learner = make(**dict(self.arguments))
        return made


def read_model(table: Section) -> Model:
    """The feature map that ``[model]`` describes."""
    kernel = table.choice("kernel", KERNELS, "gaussian")
    n_inputs = table.integer("n_inputs", least=1, most=_MOST_INPUTS)
    n_frequencies = table.integer("n_frequencies", 50, least=1, most=_MOST_FREQUENCIES)
    if n_inputs * n_frequencies > _MOST_NUMBERS:
        raise table.wrong(f"n_inputs times n_frequencies must be at most {_MOST_NUMBERS}.")
    bandwidth = table.number("bandwidth", 1.0, above=0)
    seed = table.integer("seed", 0, least=0, most=2**63 - 1)
    dtype = table.choice("dtype", DTYPES, "float64")
    if kernel != "matern" and "nu" in table:
        raise table.wrong(f"nu is for the kernel 'matern', not for {kernel!r}.")
    nu = table.number("nu", 1.5, above=0) if kernel == "matern" else None
    table.end()
    return Model(kernel, n_inputs, n_frequencies, bandwidth, seed, dtype, nu)


def read_learning(table: Section, channel: Section) -> Learning:
    """The learner that ``[learner]`` describes, behind the channel of ``[channel]``."""
    if isinstance(table.values.get("algorithm"), str):
        # QC-ODKLA, qc_odkla and qcodkla are one.
        table.values["algorithm"] = table.values["algorithm"].lower().replace("-", "").replace("_", "")
    algorithm = table.choice("algorithm", tuple(_ALGORITHMS), "qcodkla")
    heeded = _ALGORITHMS[algorithm][1]
    for key in _STEPS:
        if key in table and key not in heeded:
            raise table.wrong(f"{key} is not for {algorithm}, which takes {', '.join(heeded + _COMMON)}.")
    arguments = {key: table.take(key) for key in heeded if key in table}
    arguments |= {
        "regularization": table.number("regularization", 1e-4, least=0),
        "loss": table.choice("loss", LOSSES, "squared"),
    }
    table.end(elsewhere=heeded)
    arguments |= _channel_arguments(channel, algorithm)
    learning = Learning(algorithm, tuple(arguments.items()))
    with table.blame():
        learning.learner()
    return learning


def _channel_arguments(table: Section, algorithm: str) -> dict[str, Any]:
    given = {key: table.take(key) for key in (*_CENSOR, *_QUANTIZER) if key in table}
    table.end(elsewhere=(*_CENSOR, *_QUANTIZER))
    if "range" in given and isinstance(given["range"], list):
        given["range"] = tuple(given["range"])
    if algorithm == "local":
        if given:
            raise table.wrong("must be empty or absent with the algorithm local, which never speaks.")
        return {}
    if algorithm == "qcodkla":  # it has defaults of its own for what is not said
        given = {"alpha": 4.0, "beta": 0.99, "bits": _BITS, **given}
    with table.blame():
        made = _make_channel(given)
    return given if algorithm == "qcodkla" else {"channel": made}


def _make_channel(given: dict[str, Any]) -> Channel:
    """A censor if alpha and beta are given, a quantizer if bits are."""
    censor = {key: given[key] for key in _CENSOR if key in given}
    quantizer = {key: given[key] for key in _QUANTIZER if key in given}
    if len(censor) == 1:
        raise ValueError(f"must have both alpha and beta, or neither; got only {next(iter(censor))}.")
    if quantizer and "bits" not in quantizer:
        raise ValueError(f"must have bits where it has {next(iter(quantizer))}.")
    return Channel(Censor(**censor) if censor else None, Quantizer(**quantizer) if quantizer else None)
