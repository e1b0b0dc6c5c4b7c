"""``laconic run``: one learner on one data set, and what talking bought."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from laconic import learners, losses
from laconic._files import expanded
from laconic.cli.learners import parameter
from laconic.cli.live import add_live_options, check, played
from laconic.cli.options import Commands, add_quiet, add_stream_options, describe, in_words, number, one_of, span, whole
from laconic.defaults import BUDGETS, TASKS
from laconic.engine import Diverged
from laconic.learners import QCODKLA, Learner, Speech

if TYPE_CHECKING:
    from laconic.cli.inputs import Prepared
    from laconic.experiments.streams import Stream

_USUAL = learners.written(QCODKLA)
#: Who gives one of these knows what is to be run; where none is given, features and learner are chosen.
_NAMING = (
    *("learner", "loss", "rho", "eta", "step", "regularization", "parameter", "bandwidth", "kernel", "scale"),
    *("alpha", "beta", "bits", "range", "rate", "bits_per_round", "burst", "coarseness"),
)
#: And these are for what is chosen.
_CHOOSING = ("task", "encode", "agent_column", "budget")

_ABOUT = """
Learn a data set, each row by one agent of a network, and print what it brought
and cost. Of a file as it is (words, dates, holes) nothing needs to be known:
features and learner are chosen, with the reasons in words, and stand beside the
mean, a linear model, agents alone and a centre.
Who names a learner, a step, a bandwidth, a scale or a channel gets just that,
on columns of numbers, beside the same agents without a word.
Every prediction is made before its label is learned from."""

_EXAMPLES = """
examples:
  laconic run
  laconic run my.csv --target price --agents 10 --network ring
  laconic run patients.csv --target days --agent-column hospital --json
  laconic run my.csv --learner odkla --rho 0.2 --eta 1.5 --out results
  laconic run air-quality --partition sorted-by-target --data-dir raw
  laconic run electricity --loss logistic --partition time --scale running
  laconic run my.csv --live --open --beside qc-odkla"""


def add(commands: Commands) -> None:
    """Add the command ``run``."""
    parser = commands.add_parser(
        "run", help="run a learner on data", usage="laconic run [DATA] [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    add_stream_options(parser)
    group = parser.add_argument_group("nothing to know", "features and learner are chosen unless options name them")
    group.add_argument(
        "--task", type=one_of(*TASKS), metavar="WHAT", help="numbers or classes (default: as labels tell)"
    )
    group.add_argument(
        "--encode",
        type=one_of("one-hot", "off"),
        metavar="HOW",
        help="words one-hot, as columns of 0 and 1 (default), or 'off': left out",
    )
    group.add_argument(
        "--agent-column", metavar="COL", help="whom a row belongs to: one agent for each value, as many rows as it has"
    )
    group.add_argument(
        "--budget", type=one_of(*BUDGETS), metavar="WHAT", help=f"what is sent: {in_words(BUDGETS)} (default: usual)"
    )
    group = parser.add_argument_group("learner")
    known = [learners.written(learner) for learner in learners.every()]
    group.add_argument(
        "--learner",
        type=_learner(known),
        metavar="NAME",
        help=f"{', '.join(known)}, or one of your own as PACKAGE.MODULE:CLASS (default: chosen; "
        f"{_USUAL} where its steps or channel are given)",
    )
    group.add_argument(
        "--loss",
        type=one_of(*losses.LOSSES),
        metavar="NAME",
        help=f"{in_words(losses.LOSSES)} (default: squared for numbers, logistic for two classes)",
    )
    group.add_argument("--rho", type=number, metavar="X", help="penalty on disagreement (0.5; 0.1 for classes)")
    group.add_argument(
        "--eta", type=number, metavar="X", help="weight of the past: larger, slower (2; 0.5 for classes)"
    )
    stepping = [learners.written(learner) for learner in learners.every() if "step" in learner.arguments()]
    group.add_argument(
        "--step", type=number, metavar="X", help=f"step of {in_words(stepping, 'and')} (0.25; 1 for classes)"
    )
    group.add_argument("--regularization", type=number, metavar="X", help="lambda of the ridge (0.0001)")
    group.add_argument(
        "--parameter",
        type=parameter,
        action="append",
        metavar="NAME=VALUE",
        help="any other parameter of the learner; may be given several times",
    )
    group = parser.add_argument_group("channel", "qc-odkla censors and quantizes; others do what is asked for here")
    group.add_argument(
        "--alpha", type=number, metavar="X", help="censor below alpha beta^t: first threshold (0.2, or the paper's)"
    )
    group.add_argument("--beta", type=number, metavar="X", help="and its decay a round (0.9995, or the paper's)")
    group.add_argument("--bits", type=whole, metavar="B", help="bits an entry, 1 to 16 (3)")
    group.add_argument(
        "--range",
        type=span,
        metavar="R",
        help="of the quantizer: adaptive (default), X for [-X, X), or U,V (written --range=-0.1,0.3)",
    )
    group.add_argument(
        "--rate", type=number, metavar="X", help="instead of alpha and beta: so many messages a round, at most"
    )
    group.add_argument("--bits-per-round", type=number, metavar="B", help="or so many bits")
    group.add_argument(
        "--burst", type=number, metavar="X", help="so many at once after a silence (20 messages; 200 rounds' bits)"
    )
    group.add_argument(
        "--coarseness", type=number, metavar="X", help="instead of bits: an entropy code with such steps (1.4 is usual)"
    )
    group = parser.add_argument_group("output")
    group.add_argument("--seed", type=whole, default=0, metavar="S", help="decides shuffle, frequencies and graph (0)")
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    add_quiet(group)
    group.add_argument("--out", metavar="DIR", help="leave trace, model, pictures and run.json there")
    group.add_argument("--progress", action="store_true", help="show a progress bar")
    group = parser.add_argument_group("a run described in a file", "laconic run big.toml: see docs/cluster.md")
    group.add_argument(
        "--engine",
        type=one_of("auto", "compiled", "reference", "mpi"),
        metavar="NAME",
        help="of the run: auto (default), compiled, reference, or mpi: by all processes of mpiexec",
    )
    group.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    add_live_options(parser)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Learn as is chosen or as is told, and print what that brought."""
    check(arguments)
    named = [name for name in _NAMING if getattr(arguments, name) is not None]
    if arguments.data is not None and arguments.data.endswith(".toml"):
        return _run_file(arguments, named)
    if arguments.engine or arguments.resume:
        one = "--engine" if arguments.engine else "--resume"
        raise ValueError(f"{one} is for a run that a file describes: laconic run big.toml {one} ...")
    if not named:
        from laconic.cli.untuned import run_untuned

        return run_untuned(arguments, _folder(arguments.out))
    stray = next((name for name in _CHOOSING if getattr(arguments, name) is not None), None)
    if stray is not None:
        one, other = (f"--{name.replace('_', '-')}" for name in (stray, named[0]))
        raise ValueError(f"{one} is for what is chosen and {other} for what is told: leave one of them out.")
    arguments.learner = arguments.learner or _USUAL
    return run_named(arguments)


def _run_file(arguments: argparse.Namespace, named: list[str]) -> int:
    """A run that a file describes; of several processes the first one says what is wrong."""
    stray = next((name for name in (*named, *_CHOOSING) if getattr(arguments, name) is not None), None)
    if stray is not None:
        raise ValueError(f"--{stray.replace('_', '-')} is not for a run that a file describes: say it in the file.")
    from laconic.cli.big import run_file

    def go() -> int:
        return run_file(expanded(arguments.data), arguments, _folder(arguments.out))

    return _one_of_many(go) if arguments.engine == "mpi" else go()


def _one_of_many(go: Callable[[], int]) -> int:
    """A run as one process of an MPI job: nobody waits for who cannot go on, and one says why for all."""
    from laconic.engine.exchange import FailedElsewhere, abandon, all_fail, world

    comm = world()
    try:
        return go()
    except BaseException as error:
        # An error that all have met is told by the first, another one by who has it.
        expected = isinstance(error, (ValueError, OSError, Diverged))
        told_elsewhere = isinstance(error, FailedElsewhere) or (expected and comm.rank > 0)
        code = 130 if isinstance(error, KeyboardInterrupt) else 2 if expected and not isinstance(error, Diverged) else 1
        if comm.size == 1 or all_fail(comm):
            if told_elsewhere:
                return code
            raise
        abandon(comm, code)
        raise


def run_named(arguments: argparse.Namespace) -> int:
    """Run the learner and its silent twin, and print what that brought."""
    import dataclasses

    from laconic.cli.inputs import prepare
    from laconic.cli.learners import local_twin, make_learner
    from laconic.cli.records import as_json, write
    from laconic.cli.results import Result
    from laconic.cli.words import note
    from laconic.engine import simulate, sweep

    source = prepare(arguments, arguments.loss)
    learner = make_learner(arguments, source.setting, source.loss)
    stream = source.stream(arguments.seed)
    folder = _folder(arguments.out)
    data = (stream.features, stream.network, stream.X, stream.y)
    twin = local_twin(learner, stream.network, len(stream.y))
    with _live(arguments, source, learner, twin, stream):
        trace = simulate(learner, *data, progress=arguments.progress)
        # The scores of everybody's model on everybody's data cost far more than the run: they are not in its time.
        both = sweep({"learner": learner, "local": twin}, *data, collective=True)
        together = both["learner"]
        trace = dataclasses.replace(
            trace, collective_square=together.collective_square, collective_loss=together.collective_loss
        )
        result = Result(source, learner, stream, trace, twin, both["local"])
        print(as_json(result, arguments) if arguments.json else result)
        if folder is not None:
            written = f"written to {folder}: {', '.join(write(folder, result, arguments))}"
            if arguments.json:
                note(f"{written}.")
            else:
                print(f"\n{written}")
        return 0


def _live(
    arguments: argparse.Namespace, source: Prepared, learner: Learner, twin: Learner, stream: Stream
) -> AbstractContextManager[None]:
    """With ``--live`` the run on a page, beside its twin or whom ``--beside`` names, and then all else; or nothing."""
    if not arguments.live:
        return nullcontext()
    from laconic.cli.learners import usual_learner

    beside: Learner | None = twin if learner.speech is not Speech.NEVER else None
    if arguments.beside is not None:
        beside = usual_learner(arguments.beside, arguments, source.setting, source.loss)
    return played(arguments, source.dataset.name, learner, beside, stream)


def _learner(known: Sequence[str]) -> Callable[[str], str]:
    """The name of a registered learner, or where a class is to be imported from."""
    one = one_of(*known, alike=learners.normalise)

    def check(text: str) -> str:
        return text if ":" in text else one(text)

    check.names = known  # type: ignore[attr-defined]  # for shells that complete them
    return check


def _folder(out: str | None) -> Path | None:
    """The folder of ``--out``, made before any work is done for it."""
    if out is None:
        return None
    folder = expanded(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out must name a folder, and {out!r} is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
