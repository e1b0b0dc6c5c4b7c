"""The ``[model]``, ``[learner]`` and ``[channel]`` tables: what all agents of a site have to have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from laconic import learners, losses
from laconic.channel import Budget, Censor, Channel, EntropyQuantizer, Quantizer
from laconic.defaults.labels import CLASSES, Labels
from laconic.deploy.settings.sections import Section
from laconic.features import KERNELS, RandomFeatures, Scaling
from laconic.features.scaling import REACH
from laconic.learners import QCODKLA, Learner, Speech, parameters

DTYPES = ("float64", "float32")
#: The map that takes raw inputs; what it needs to know of them is in the settings, for all agents alike.
AUTOMATIC = "automatic"

_COMMON = ("regularization", "loss")
_CENSOR, _QUANTIZER = ("alpha", "beta"), ("bits", "range", "rounding")
_SCALED = ("centre", "scale", "linear", "reach")
_BUDGET, _ENTROPY = ("rate", "burst", "gain", "bits_per_round"), ("coarseness", "dead_zone")
_CHANNEL = (*_CENSOR, *_BUDGET, *_QUANTIZER, *_ENTROPY)
_USUAL = learners.written(QCODKLA)
_MOST_CLASSES = 1000
_MOST_INPUTS, _MOST_FREQUENCIES, _MOST_NUMBERS = 100_000, 1_000_000, 100_000_000


@final
@dataclass(frozen=True)
class Model:
    """``[model]``: the feature map. ``nu`` is for the Matern kernel, ``scaled`` for the automatic map only.

    ``classes``, sorted, are what labels name; it is empty where they are numbers.
    """

    kernel: str
    n_inputs: int
    n_frequencies: int
    bandwidth: float
    seed: int
    dtype: str
    nu: float | None
    scaled: tuple[tuple[str, Any], ...] = ()
    classes: tuple[str | int, ...] = ()

    @property
    def labels(self) -> Labels | None:
        """How classes are learned, and the way back; None where labels are numbers."""
        return Labels(CLASSES, classes=self.classes) if self.classes else None

    def features(self) -> RandomFeatures:
        """Draw the frequencies, the same for everybody who has the same settings."""
        if self.kernel == AUTOMATIC:
            return RandomFeatures.scaled(n_frequencies=self.n_frequencies, seed=self.seed, **dict(self.scaled))
        extra = {} if self.nu is None else {"nu": self.nu}
        return KERNELS[self.kernel](
            self.n_inputs, self.n_frequencies, bandwidth=self.bandwidth, seed=self.seed, **extra
        )


@final
@dataclass(frozen=True)
class Learning:
    """``[learner]`` and ``[channel]``: which learner, and the arguments it is made with."""

    algorithm: str
    arguments: tuple[tuple[str, Any], ...]

    def learner(self) -> Learner:
        """Make the learner, a new one at each call."""
        return learners.get(self.algorithm)(**dict(self.arguments))


def read_model(table: Section) -> Model:
    """The feature map that ``[model]`` describes."""
    kernel = table.choice("kernel", (*KERNELS, AUTOMATIC), "gaussian")
    n_inputs = table.integer("n_inputs", least=1, most=_MOST_INPUTS)
    n_frequencies = table.integer("n_frequencies", 50, least=1, most=_MOST_FREQUENCIES)
    if n_inputs * n_frequencies > _MOST_NUMBERS:
        raise table.wrong(f"n_inputs times n_frequencies must be at most {_MOST_NUMBERS}.")
    foreign = ("bandwidth",) if kernel == AUTOMATIC else _SCALED
    for key in foreign:
        if key in table:
            raise table.wrong(f"{key} is not for the kernel {kernel!r}.")
    bandwidth = table.number("bandwidth", 1.0, above=0)
    seed = table.integer("seed", 0, least=0, most=2**63 - 1)
    dtype = table.choice("dtype", DTYPES, "float64")
    if kernel != "matern" and "nu" in table:
        raise table.wrong(f"nu is for the kernel 'matern', not for {kernel!r}.")
    nu = table.number("nu", 1.5, above=0) if kernel == "matern" else None
    scaled = _read_scaled(table, n_inputs) if kernel == AUTOMATIC else ()
    classes = _read_classes(table)
    table.end(elsewhere=_SCALED)
    return Model(kernel, n_inputs, n_frequencies, bandwidth, seed, dtype, nu, scaled, classes)


def _read_classes(table: Section) -> tuple[str | int, ...]:
    """The classes, sorted: their order in the file changes nothing."""
    listed = table.take("classes", None)
    if listed is None:
        return ()
    what = 'classes must be a list of two or more words, or of whole numbers, as in ["ham", "spam"]'
    if not isinstance(listed, list) or {type(one) for one in listed} not in ({str}, {int}):
        raise table.wrong(f"{what}; got {listed!r}.")
    for one in listed:
        if isinstance(one, str) and (not one.isprintable() or one != one.strip() or not one):
            raise table.wrong(f"classes must be words without blanks around them; got {one!r}.")
    if not 2 <= len(set(listed)) == len(listed) <= _MOST_CLASSES:
        raise table.wrong(
            f"{what}, at most {_MOST_CLASSES}, each once; got {len(listed)}, {len(set(listed))} different."
        )
    return tuple(sorted(listed))


def _read_scaled(table: Section, n_inputs: int) -> tuple[tuple[str, Any], ...]:
    """Centre and scale of each input, and whether the map ends with a linear block."""
    centre, scale = table.take("centre"), table.take("scale")
    with table.blame():
        scaling = Scaling(centre, scale, table.number("reach", REACH, above=0))
    if scaling.n_inputs != n_inputs:
        raise table.wrong(f"centre and scale must have n_inputs = {n_inputs} entries, got {scaling.n_inputs}.")
    listed = tuple(scaling.centre.tolist()), tuple(scaling.scale.tolist())
    linear = table.flag("linear", True)
    return ("centre", listed[0]), ("scale", listed[1]), ("linear", linear), ("reach", scaling.reach)


def read_learning(table: Section, channel: Section, labels: Labels | None = None) -> Learning:
    """The learner that ``[learner]`` describes, behind the channel of ``[channel]``; with an output for each class."""
    kind, algorithm = _read_algorithm(table)
    heeded = own_keys(kind)
    others = {key for learner in learners.every() for key in own_keys(learner)}
    for key in sorted(others - set(heeded)):
        if key in table:
            raise table.wrong(f"{key} is not for {algorithm}, which takes {', '.join((*heeded, *_COMMON))}.")
    arguments = {key: table.take(key) for key in heeded if key in table}
    needed = 1 if labels is None else labels.n_models
    if needed > 1 and "outputs" in heeded:
        arguments.setdefault("outputs", needed)
    common = {
        "regularization": table.number("regularization", 1e-4, least=0),
        "loss": table.choice("loss", tuple(losses.LOSSES), "squared"),
    }
    for key, value in common.items():
        if key in kind.arguments():
            arguments[key] = value
        elif key in table:
            raise table.wrong(f"{key} is not for {algorithm}, which has its own.")
    table.end(elsewhere=heeded)
    arguments |= _channel_arguments(channel, kind)
    learning = Learning(algorithm, tuple(arguments.items()))
    with table.blame():
        outputs = learning.learner().outputs
    if outputs > 1 and needed == 1:
        raise table.wrong(
            f"outputs must be 1, since a site's samples have one label, unless [model] classes names three or more; "
            f"got {outputs}."
        )
    if outputs != needed:
        raise table.wrong(
            f"must have an output for each of the {needed} classes of [model], as waverls has; "
            f"{algorithm} has {outputs}."
        )
    return learning


def _read_algorithm(table: Section) -> tuple[type[Learner], str]:
    """The learner that ``algorithm`` names, or the class of one's own that it says where to find; and its name."""
    given = table.values.get("algorithm")
    if isinstance(given, str) and ":" in given:
        path = table.take("algorithm")
        with table.blame():
            return learners.get(path), path
    known = {learners.normalise(learner.name): learner for learner in learners.every()}
    if isinstance(given, str) and learners.normalise(given) in known:
        table.values["algorithm"] = learners.written(known[learners.normalise(given)])
    name = table.choice("algorithm", [learners.written(learner) for learner in known.values()], _USUAL)
    return learners.get(name), name


def own_keys(learner: type[Learner]) -> tuple[str, ...]:
    """The keys of ``[learner]`` that belong to this learner alone: its arguments that are not the channel's."""
    elsewhere = (*_COMMON, *_CENSOR, *_QUANTIZER, "channel")
    return tuple(name for name in learner.arguments() if name not in elsewhere)


def _channel_arguments(table: Section, learner: type[Learner]) -> dict[str, Any]:
    given = {key: table.take(key) for key in _CHANNEL if key in table}
    table.end(elsewhere=_CHANNEL)
    if "range" in given and isinstance(given["range"], list):
        given["range"] = tuple(given["range"])
    if learner.speech is Speech.NEVER:
        if given:
            name = learners.written(learner)
            raise table.wrong(f"must be empty or absent with the algorithm {name}, which never speaks.")
        return {}
    if "channel" not in learner.arguments():  # it has defaults of its own for what is not said
        own = parameters.arguments(learner)
        foreign = [key for key in given if key not in own]
        if foreign:
            raise table.wrong(f"{foreign[0]} is not for {learners.written(learner)}.")
        given = {key: own[key] for key in (*_CENSOR, "bits") if key in own} | given
    with table.blame():
        made = _make_channel(given)
    return {"channel": made} if "channel" in learner.arguments() else given


def _make_channel(given: dict[str, Any]) -> Channel:
    """A censor if alpha and beta are given, a budget if a rate is; a quantizer if bits are, or an entropy code."""
    censor, budget, quantizer, entropy = (
        {key: given[key] for key in keys if key in given} for keys in (_CENSOR, _BUDGET, _QUANTIZER, _ENTROPY)
    )
    for one, other in ((censor, budget), (quantizer, entropy)):
        if one and other:
            raise ValueError(f"must have {next(iter(one))} or {next(iter(other))}, not both.")
    if len(censor) == 1:
        raise ValueError(f"must have both alpha and beta, or neither; got only {next(iter(censor))}.")
    if budget and not {"rate", "bits_per_round"} & budget.keys():
        raise ValueError(f"must have rate or bits_per_round where it has {next(iter(budget))}.")
    if quantizer and "bits" not in quantizer:
        raise ValueError(f"must have bits where it has {next(iter(quantizer))}.")
    return Channel(
        Censor(**censor) if censor else Budget(**budget) if budget else None,
        Quantizer(**quantizer) if quantizer else EntropyQuantizer(**entropy) if entropy else None,
    )
