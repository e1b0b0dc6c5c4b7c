"""Options: a parser that complains in one sentence, the types of what is typed, and the options of all data."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, final

from laconic._worded import Argument, Setting, printable
from laconic.features import KERNELS

_CHOICE = re.compile(r"argument (\S+): invalid choice: (.+?) \(choose from (.+)\)$")
#: In a help text: a heading, and what is typed, which ends where its description begins.
_HEADING = re.compile(r"^([a-z][a-z ]*:)", re.MULTILINE)
_TYPED = re.compile(r"^(  )((?:-|laconic )\S*(?: \S+)*|[a-z]+(?=  ))", re.MULTILINE)

#: The library speaks of arguments; at a terminal they are options. Those of the learners and channels keep their names.
OPTIONS = {
    "n_agents": "--agents",
    "n_frequencies": "--frequencies",
    "n_rounds": "--rounds",
    "n_rows": "--rows",
    "how": "--partition",
    "name": "data",
    "name_or_path": "data",
    "X_first": "data",
    "data_dir": "--data-dir",
    "bits_per_round": "--bits-per-round",
    "agent_column": "--agent-column",
}
_STEPS = ("bandwidth", "eta", "loss", "regularization", "rho", "step")
_CHANNEL = ("alpha", "beta", "bits", "burst", "coarseness", "range", "rate")
OPTIONS |= {
    name: f"--{name}"
    for name in (*_STEPS, *_CHANNEL, "header", "missing", "protocol", "seed", "seeds", "set", "target")
}
#: What an option is when it is left out, where the library may advise just that.
_LEFT_OUT = {"range": "adaptive"}

#: Frequencies of a learner that is named, if nothing is said of them.
N_FREQUENCIES = 50

#: What ``add_parser`` is called on; argparse keeps the name of its class to itself.
Commands = Any


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Words with a hyphen, names of learners above all, stay whole; commands are listed without a heading."""

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):
            return "".join(super(_Formatter, self)._format_action(part) for part in action._get_subactions())
        return super()._format_action(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


@final
class Parser(argparse.ArgumentParser):
    """argparse, but an error is one sentence, and options are written in full."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def help(self, arguments: argparse.Namespace) -> int:
        """The command of a parser that was given none."""
        self.print_help()
        return 0

    def print_help(self, file: Any = None) -> None:
        """Headings in bold and what can be typed in colour, where a person looks."""
        from laconic.cli.words import looked_at  # which needs the names of options

        text = self.format_help()
        self._print_message(_dressed(text) if file is None and looked_at() else text, file or sys.stdout)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What is not known is said here, by the parser of the command, which knows its options."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown(rest))
        return found, rest

    def _unknown(self, rest: list[str]) -> str:
        option = next((word.partition("=")[0] for word in rest if word.startswith("-") and len(word) > 1), None)
        if option is None:
            return f"there is no place for {' '.join(rest)!r}"
        near = difflib.get_close_matches(option, self._option_string_actions, n=1, cutoff=0.7)
        return f"there is no option {option!r}" + (f": did you mean {near[0]!r}?" if near else "")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where help is to be found."""
        found = _CHOICE.match(message)
        if found:
            name, got, known = found[1], found[2].strip("'\""), re.findall(r"[\w-]+", found[3])
            message = f"{name} {_complaint(known, got)}"
        message = re.sub(r"^the following arguments are required: (.*)", r"\1 must be given", message)
        message = message.removeprefix("argument ").replace(": must", " must").rstrip(".")
        message = message.replace(": not allowed with argument", " cannot stand beside")
        ending = "" if message.endswith("?") else "."
        self.exit(2, f"laconic: {printable(message)}{ending} (See `{self.prog} --help`.)\n")


def _dressed(text: str) -> str:
    """A help text for a terminal with colours; argparse does that itself from Python 3.14 on."""
    return text if "\033" in text else _TYPED.sub("\\1\033[36m\\2\033[0m", _HEADING.sub("\033[1m\\1\033[0m", text))


def describe(about: str, examples: str) -> dict[str, Any]:
    """Description and examples as they are written, line by line."""
    return {
        "description": about.strip("\n"),
        "epilog": examples.strip("\n"),
        "formatter_class": _Formatter,
    }


def at_terminal(part: Argument | Setting) -> str:
    """The words for an argument that a sentence of the library names, or for the advice to set it.

    >>> at_terminal(Argument("n_agents")), at_terminal(Setting("pass", "missing", "drop"))
    ('--agents', 'add --missing drop')
    """
    if isinstance(part, Argument):
        return OPTIONS.get(part, part)
    if _LEFT_OUT.get(part.argument) == part.value:
        return f"leave it {part.value}"
    return f"add {OPTIONS.get(part.argument, part.argument)} {part.value}"


def number(text: str) -> float:
    """Parse an option that takes a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def whole(text: str) -> int:
    """Parse an option that takes a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def span(text: str) -> str | tuple[float, float]:
    """A quantizer's range: "adaptive", "x" for [-x, x), or "u,v"."""
    if text.lower() == "adaptive":
        return "adaptive"
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return -numbers[0], numbers[0]
    if len(numbers) != 2:
        raise argparse.ArgumentTypeError(f"must be 'adaptive', a number X for [-X, X), or U,V; got {text!r}")
    return numbers[0], numbers[1]


def _any_case(name: str) -> str:
    return name.lower().replace("_", "-")


def one_of(*names: str, alike: Callable[[str], str] = _any_case) -> Callable[[str], str]:
    """One of some names, whatever the case of its letters; ``alike`` makes one word of spellings that are the same."""
    known = {alike(name): name for name in names}

    def check(text: str) -> str:
        if alike(text) not in known:
            raise argparse.ArgumentTypeError(_complaint(list(names), text))
        return known[alike(text)]

    check.names = names  # type: ignore[attr-defined]  # for shells that complete them
    return check


def some_of(*names: str, alike: Callable[[str], str] = _any_case) -> Callable[[str], tuple[str, ...]]:
    """Some of the names, with commas between them."""
    one = one_of(*names, alike=alike)
    return lambda text: tuple(one(part.strip()) for part in text.split(",") if part.strip())


def in_words(names: Iterable[str], word: str = "or") -> str:
    """The names as they stand in a sentence.

    >>> in_words(["squared", "logistic", "hinge"])
    'squared, logistic or hinge'
    """
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def _complaint(known: list[str], got: str) -> str:
    near = difflib.get_close_matches(got.lower(), [name.lower() for name in known], n=1, cutoff=0.5)
    hint = next((f". Did you mean {name!r}?" for name in known if near and name.lower() == near[0]), "")
    return f"must be one of {', '.join(known)}; got {got!r}{hint}"


def add_quiet(parser: Any) -> None:
    """Add ``--quiet`` for all who have nothing of their own to say of it: the command line sees to it."""
    parser.add_argument("--quiet", dest="hush", action="store_true", help="print nothing but errors")


def add_json(parser: Any, what: str = "the same as JSON") -> None:
    """Add ``--json``: the result for a program."""
    parser.add_argument("--json", action="store_true", help=what)


def add_data_dir(parser: Any) -> None:
    """Add ``--data-dir``, the folder of raw data files."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with the raw files (default: the environment variable LACONIC_DATA, else the user's cache)",
    )


def add_header(parser: Any) -> None:
    """Add ``--header``, for tables of text that do not tell by themselves."""
    parser.add_argument(
        "--header",
        type=one_of("yes", "no"),
        metavar="WHAT",
        help="'yes' if line 1 of a text holds the names of columns, 'no' if it is data (default: the file tells, or a "
        "column that is named)",
    )


def has_header(arguments: argparse.Namespace) -> bool | None:
    """The value of ``--header`` for the library."""
    return None if arguments.header is None else bool(arguments.header == "yes")


def add_file_options(parser: Any) -> None:
    """What a file of one's own needs to be told."""
    add_header(parser)
    parser.add_argument("--target", metavar="COL", help="the column to predict, by name or index (default: the last)")
    parser.add_argument(
        "--missing",
        type=one_of("refuse", "drop"),
        metavar="WHAT",
        help="'drop' leaves out rows with missing cells, 'refuse' makes them an error (default of learners that are "
        "named; of `run` otherwise: filled by the mean so far)",
    )


def add_protocol(parser: Any) -> None:
    """Which rows and columns of the paper's sets."""
    parser.add_argument(
        "--protocol",
        type=one_of("prepared", "paper"),
        default="prepared",
        metavar="NAME",
        help="rows and columns of the paper's sets: 'prepared' (default) or 'paper'; see `laconic data info NAME`",
    )


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """From data to what agents see: rows, scaling, dealing, network, features."""
    parser.add_argument(
        "data",
        nargs="?",
        default="synthetic",
        metavar="DATA",
        help="a name from `laconic data list`, or a CSV, Parquet or ARFF file (default: synthetic)",
    )
    group = parser.add_argument_group("data")
    add_file_options(group)
    group.add_argument("--rows", type=whole, metavar="N", help="take the first N rows (default: all)")
    add_protocol(group)
    group.add_argument(
        "--scale",
        type=one_of("column", "matrix", "running"),
        metavar="HOW",
        help="to [0, 1] by each column (default), by the whole matrix (default for the paper's sets under 'prepared'), "
        "or 'running': by what has been seen so far, without peeking",
    )
    order = group.add_mutually_exclusive_group()
    order.add_argument(
        "--partition",
        metavar="HOW",
        help="how rows are dealt: time (in their order, in turn: default of files), shuffled (default of sets with a "
        "name), time-stretches, sorted-by-target, sorted-by-feature:K, uneven",
    )
    order.add_argument(
        "--shuffle", dest="partition", action="store_const", const="shuffled", help="short for --partition shuffled"
    )
    add_data_dir(group)
    group = parser.add_argument_group("agents, network and features")
    group.add_argument("--agents", type=whole, metavar="N", help="number of agents (default: 5, or the paper's)")
    group.add_argument(
        "--network",
        default="random",
        metavar="KIND",
        help="random[:P] (default), ring, path, star, complete, grid[:RxC], geometric[:RADIUS], small-world[:K], or a "
        "file (GraphML, GML, or two names a line)",
    )
    group.add_argument(
        "--bandwidth",
        type=number,
        metavar="X",
        help="of the Gaussian kernel (default: the median distance of two inputs, or the paper's)",
    )
    group.add_argument(
        "--kernel", type=one_of(*KERNELS), metavar="NAME", help=f"{in_words(KERNELS)} (default: gaussian)"
    )
    group.add_argument(
        "--frequencies",
        type=whole,
        metavar="L",
        help=f"random frequencies; a model has 2L numbers ({N_FREQUENCIES}; more for over 100 inputs and no learner)",
    )
