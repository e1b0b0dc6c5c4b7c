"""The ``laconic`` command: data sets, runs, tuning and the paper's reproduction, from a terminal.

One file a command. Each adds its own parser and imports what it needs when it runs, so that ``laconic --help`` is
quick. Whatever goes wrong is said in one sentence on stderr: exit code 2 for input that makes no sense, 1 for a run
that diverged, 130 after Ctrl-C; ``docs/command-line.md`` has them all.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext

from laconic import _extras
from laconic._version import __version__
from laconic.cli import (
    agents,
    certs,
    cite,
    completion,
    dashboard,
    datasets,
    demo,
    doctor,
    export,
    faults,
    predict,
    reproduce,
    run,
    site,
    tune,
)
from laconic.cli.options import Parser, describe
from laconic.cli.words import hushed, note, sentence
from laconic.engine import Diverged

_ABOUT = """
Agents that learn together and speak only when they have something to say:
online decentralized kernel learning, from a terminal."""

_EXAMPLES = """
examples:
  laconic demo --open                  what it is about, in a few seconds
  laconic run                          a first run, on data that is drawn
  laconic run my.csv --target price    a run on your own data
  laconic tune my.csv --target price   the best step sizes for it
  laconic reproduce --quick            the paper's experiments in a minute
  laconic init                         a site of agents, to run on devices

`laconic COMMAND --help` explains a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; ``argv`` is ``sys.argv[1:]`` if not given."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors != "replace":
        sys.stdout.reconfigure(errors="replace")  # a question mark for what the terminal's alphabet lacks
    with warnings.catch_warnings():
        # What the library warns of (a dropped column, say) is worth a line, not a line of source code.
        warnings.filterwarnings("always", category=UserWarning, module=r"laconic\b")
        warnings.showwarning = lambda message, *_: note(str(message))
        try:
            code = _main(argv)
            sys.stdout.flush()
        except BrokenPipeError:  # `laconic data list | head`: the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            print("\nlaconic: interrupted.", file=sys.stderr)
            return 130
    return code


def _main(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 2
    hush = getattr(arguments, "hush", False)
    try:
        with hushed(not getattr(arguments, "json", False)) if hush else nullcontext():
            return int(arguments.command(arguments))
    except Diverged as error:
        print(f"laconic: {sentence(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        missing = _extras.explain(error, "this command")
        if missing is error and not isinstance(error, _extras.MissingPackage):
            raise
        print(f"laconic: {sentence(missing)}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"laconic: {sentence(error)}", file=sys.stderr)
        return 2


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = Parser(prog="laconic", **describe(_ABOUT, _EXAMPLES))
    parser.add_argument("--version", action="version", version=f"laconic {__version__}")
    parser.set_defaults(command=parser.help)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for room in (
        demo,
        run,
        tune,
        reproduce,
        datasets,
        doctor,
        export,
        predict,
        site,
        certs,
        agents,
        dashboard,
        faults,
        cite,
        completion,
    ):
        room.add(commands)
    return parser


__all__ = ["main", "make_parser"]
