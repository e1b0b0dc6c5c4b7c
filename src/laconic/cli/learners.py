"""``--learner`` and its options: which learner, with which steps, behind which channel.

Which options a learner heeds follows from what it says of itself: the arguments of its constructor, and how it speaks.
"""

from __future__ import annotations

import argparse
import ast
from typing import Any

from laconic import learners, losses
from laconic.channel import Budget, Censor, Channel, EntropyQuantizer, Quantizer
from laconic.experiments.settings import BITS, REGULARIZATION, Setting
from laconic.learners import Learner, Local, Speech
from laconic.network import Network

#: Steps that have an option of their own; all other parameters are given by ``--parameter``.
STEPS = ("rho", "eta", "step")
_CHANNEL = ("alpha", "beta", "bits", "range", "rate", "bits_per_round", "burst", "coarseness")


def make_learner(arguments: argparse.Namespace, setting: Setting, loss: str) -> Learner:
    """The learner that the options describe. Options that it would not heed are refused."""
    kind = learners.get(arguments.learner)
    takes = kind.arguments()
    _refuse(arguments, kind, tuple(name for name in (*STEPS, "regularization") if name not in takes))
    made: dict[str, Any] = {
        "loss": loss,
        "regularization": _given(arguments.regularization, REGULARIZATION),
        **kind.usual_steps(losses.get(loss)),
        **{name: getattr(arguments, name) for name in STEPS if getattr(arguments, name) is not None},
        **_channel_arguments(arguments, setting, kind),
        **_others(arguments, kind),
    }
    return kind(**{name: value for name, value in made.items() if name in takes})


def usual_learner(name: str, arguments: argparse.Namespace, setting: Setting, loss: str) -> Learner | None:
    """The learner of that name with its usual steps and channel, whatever options say of another; 'nobody' is None."""
    if name == "nobody":
        return None
    options = (*STEPS, *_CHANNEL, "regularization", "parameter")
    named = argparse.Namespace(**{**vars(arguments), **dict.fromkeys(options), "learner": name})
    return make_learner(named, setting, loss)


def local_twin(learner: Learner, network: Network, n_rounds: int) -> Learner:
    """What agents would have learned had they never spoken: the learner itself, alone, or Local with its steps."""
    alone = learner.alone(n_rounds)
    if alone is not None:
        return alone
    step = learner.local_step(network)
    if step is None:
        step = Local.usual_steps(learner.loss)["step"]
    return Local(step, regularization=learner.regularization, loss=learner.loss)


def describe_learner(learner: Learner) -> str:
    """Its parameters, in words."""
    words = [learner.describe()] if learner.describe() else []
    if "regularization" in learner.arguments():
        words.append(f"ridge {learner.regularization:g}")
    channel = learner.channel
    if channel and channel.censor:
        words.append(_describe_censor(channel.censor))
    if channel and channel.quantizer:
        words.append(_describe_quantizer(channel.quantizer))
    return ", ".join(words) + f"; {learner.loss.name} loss"


def _describe_censor(censor: Any) -> str:
    if not isinstance(censor, Budget):
        return f"alpha {censor.alpha:g}, beta {censor.beta:g}"
    if censor.in_bits:
        return f"at most {censor.income:g} bits a round, and {censor.most:g} at once"
    return f"at most {censor.income:g} messages a round, and {censor.most:g} at once"


def _describe_quantizer(quantizer: Any) -> str:
    if isinstance(quantizer, EntropyQuantizer):
        return f"entropy code, coarseness {quantizer.coarseness:g}"
    span = quantizer.range
    return f"{quantizer.bits} bits, {span if isinstance(span, str) else f'{span[0]:g} to {span[1]:g}'} range"


def parameter(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``: a number, a list or a word."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"must be written NAME=VALUE, got {text!r}")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def _channel_arguments(arguments: argparse.Namespace, setting: Setting, kind: type[Learner]) -> dict[str, Any]:
    """What the channel's options become: a channel, or arguments of a learner that makes its channel itself."""
    takes = kind.arguments()
    if "channel" in takes:
        return {"channel": _channel(arguments, setting)}
    _refuse(arguments, kind, tuple(name for name in _CHANNEL if name not in takes))
    return {
        "alpha": setting.alpha,
        "beta": setting.beta,
        "bits": _given(arguments.bits, BITS),
        "range": _given(arguments.range, "adaptive"),
    }


def _channel(arguments: argparse.Namespace, setting: Setting) -> Channel:
    """A censor, a budget, a quantizer, an entropy code, if one of its options is given; otherwise all is sent."""
    return Channel(_censor(arguments, setting), _quantizer(arguments))


def _censor(arguments: argparse.Namespace, setting: Setting) -> Censor | Budget | None:
    budget = {name: getattr(arguments, name) for name in ("rate", "burst", "bits_per_round")}
    budget = {name: value for name, value in budget.items() if value is not None}
    by_threshold = arguments.alpha is not None or arguments.beta is not None
    if budget and by_threshold:
        raise ValueError("--alpha and --beta make no sense with a budget: leave them out, or --rate and the like.")
    if budget.keys() == {"burst"}:
        raise ValueError("--burst makes no sense without --rate or --bits-per-round.")
    return Budget(**budget) if budget else Censor(setting.alpha, setting.beta) if by_threshold else None


def _quantizer(arguments: argparse.Namespace) -> Quantizer | EntropyQuantizer | None:
    by_bits = arguments.bits is not None or arguments.range is not None
    if arguments.coarseness is not None:
        if by_bits:
            raise ValueError("--bits and --range make no sense with --coarseness, whose messages vary in length.")
        return EntropyQuantizer(arguments.coarseness)
    return Quantizer(_given(arguments.bits, BITS), _given(arguments.range, "adaptive")) if by_bits else None


def _others(arguments: argparse.Namespace, kind: type[Learner]) -> dict[str, Any]:
    """What ``--parameter`` gives."""
    given = dict(arguments.parameter or ())
    options = (*STEPS, *_CHANNEL, "loss", "regularization")
    takes = [name for name in kind.arguments() if name not in options and name != "channel"]
    for name in given:
        if name in options:
            raise ValueError(f"--parameter {name} must be written --{name.replace('_', '-')}.")
        if name not in takes:
            known = f"takes {', '.join(takes)}" if takes else "has none but those with options of their own"
            learner = learners.written(kind)
            raise ValueError(f"--parameter {name} makes no sense with --learner {learner}, which {known}.")
    return given


def _refuse(arguments: argparse.Namespace, kind: type[Learner], names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            silent = kind.speech is Speech.NEVER and name in _CHANNEL
            why = "never speaks" if silent else "has no such parameter"
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} makes no sense with --learner {learners.written(kind)}, which {why}.")


def _given(value: Any, usual: Any) -> Any:
    return usual if value is None else value
