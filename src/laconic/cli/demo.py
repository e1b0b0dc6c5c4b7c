"""``laconic demo``: ten agents and a landscape of which each sees a tenth; a table, and a page that shows it."""

from __future__ import annotations

import argparse
import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from laconic._files import expanded
from laconic.cli.live import add_live_options, check, open_page, played
from laconic.cli.options import Commands, describe, one_of, whole
from laconic.cli.words import count, paragraph

if TYPE_CHECKING:
    from laconic.demo import Outcome

_ABOUT = """
Ten agents measure a landscape, each in one tile of it, and learn the whole by
talking: the learners of the paper, WaveRLS and the default, beside agents that
never speak and a centre that is sent every sample. Prints a table, and writes
one page to look at, which needs no network and opens on a phone, too."""

_EXAMPLES = """
examples:
  laconic demo --open
  laconic demo --seed 7 -o seven.html
  laconic demo --json --quiet
  laconic demo --live --open --beside ODKLA"""

_PAGE = "laconic-demo.html"
#: Whom ``--live`` shows, and who stands beside it unless somebody else is asked for.
_FIRST, _BESIDE = "WaveRLS", "QC-ODKLA"


def add(commands: Commands) -> None:
    """Add the command ``demo``."""
    parser = commands.add_parser(
        "demo", help="see it all in a few seconds", usage="laconic demo [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    parser.add_argument("-o", "--out", default=_PAGE, metavar="FILE", help=f"where the page goes ({_PAGE})")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument("--rounds", type=whole, default=2000, metavar="T", help="samples of each agent (2000)")
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="decides samples and frequencies (0)")
    parser.add_argument("--json", action="store_true", help="tell the numbers as JSON")
    parser.add_argument("--quiet", action="store_true", help="no table: tell where the page is, and nothing else")
    add_live_options(parser, opens=False)
    parser.set_defaults(command=demo)


def demo(arguments: argparse.Namespace) -> int:
    """Run all learners, write the page, print the table."""
    path = expanded(arguments.out)
    if path.is_dir():
        raise ValueError(f"--out must name a file, and {arguments.out!r} is a folder.")
    check(arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _live(arguments) if arguments.live else nullcontext():
        return _show(arguments, path)


def _live(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """The landscape as it is learned by waves, beside another of those in the table."""
    from laconic import _validate
    from laconic.demo import landscape
    from laconic.demo.running import FEWEST, learners, shared_features
    from laconic.experiments.streams import Stream

    _validate.integer("--rounds", arguments.rounds, least=FEWEST)  # before they are shown, not after
    _validate.integer("--seed", arguments.seed, least=0)
    known = {name: learner for name, (learner, _) in learners(arguments.rounds).items()}
    beside = None
    if arguments.beside != "nobody":
        try:
            beside = known[one_of(*known)(arguments.beside or _BESIDE)]
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"--beside {error}") from None
    X, y = landscape.measure(arguments.rounds, arguments.seed)
    stream = Stream(X, y, shared_features(arguments.seed), landscape.neighbourhood())
    return played(arguments, "ten agents, one landscape", known[_FIRST], beside, stream)


def _show(arguments: argparse.Namespace, path: Path) -> int:
    """All learners, the page and the table."""
    from laconic._files import written_whole
    from laconic.cli.screens import working
    from laconic.demo import render, show

    with working("ten agents are learning", not arguments.quiet) as tell:
        outcome = show(arguments.rounds, arguments.seed, tell)
        with written_whole(path) as file:
            file.write(render(outcome).encode())
    if arguments.json:
        about = {"rounds": outcome.n_rounds, "agents": outcome.network.n_agents, "seed": outcome.seed}
        rows = [{name: value for name, value in row.items() if name != "about"} for row in outcome.rows]
        print(json.dumps({"page": str(path), **about, "seconds": outcome.seconds, "learners": rows}))
    elif arguments.quiet:
        print(path)
    else:
        _tell(outcome, path)
    if arguments.open and not arguments.live:
        open_page(path.resolve().as_uri())
    return 0


def _tell(outcome: Outcome, path: Path) -> None:
    """The table, what is to be seen in it, and where the page is."""
    from laconic.cli.screens import print_table

    header = ("", "own error", "global error", "at the end", "bits", "messages", "seconds")
    columns = ("own_error", "global_error", "late_error", "bits", "messages")
    rows, marked = [], set()
    for k, row in enumerate(outcome.rows):
        errors = [f"{row[column]:.4f}" for column in columns[:3]]
        rows.append((row["name"], *errors, count(row["bits"]), count(row["messages"]), f"{row['seconds']:.3f}"))
        marked |= {(k, 1 + columns.index(column)) for column in row["best"]}
    print(f"{outcome.network}, {count(outcome.n_rounds)} rounds, seed {outcome.seed}; mean squared errors\n")
    print_table(header, rows, "<>>>>>>", marked)
    by_name = {row["name"]: row for row in outcome.rows}
    hero = outcome.hero
    saving = by_name["ODKLA"]["bits"] / hero["bits"]
    above = hero["global_error"] / by_name["a centre"]["global_error"]
    print()
    print(
        paragraph(
            f"{hero['name']}: {above:.2f} times the error of a centre that is sent every sample, {saving:,.0f} times "
            f"fewer bits than ODKLA, silent in {100 * hero['silence']:.1f}% of all rounds. An agent alone is as good "
            "as any where it lives (own error), and lost elsewhere (global error)."
        )
    )
    print(f"\nthe page: {path.resolve()}")
