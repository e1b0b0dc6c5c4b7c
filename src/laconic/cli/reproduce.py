"""``laconic reproduce``: the paper's experiments, all of them, into one folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from laconic.cli.options import Commands, add_data_dir, describe, one_of, some_of, whole
from laconic.experiments.settings import METHODS, SETTINGS
from laconic.learners import normalise

_ABOUT = """
Run the paper's experiments on its six data sets: tuning, figures, tables,
theory, and what the paper leaves out. What is finished is not computed again,
so a run that was stopped goes on where it was."""

_EXAMPLES = """
examples:
  laconic reproduce --data-dir raw
  laconic reproduce --quick --out look
  laconic reproduce --set air-quality energy --algorithm ODKLA QC-ODKLA Local"""


def add(commands: Commands) -> None:
    """Add the command ``reproduce``."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments",
        usage="laconic reproduce [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument(
        "--out", default="reproduction", metavar="DIR", help="the folder for report, figures and traces (reproduction)"
    )
    parser.add_argument(
        "--protocol",
        type=one_of("prepared", "paper"),
        default="prepared",
        metavar="NAME",
        help="rows, columns and scaling: 'prepared' (default), as in the prepared sets, or 'paper', as the paper says",
    )
    add_data_dir(parser)
    parser.add_argument(
        "--set",
        type=some_of(*SETTINGS),
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"some of {', '.join(SETTINGS)} (default: all)",
    )
    parser.add_argument(
        "--algorithm",
        type=some_of(*METHODS, alike=normalise),
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"some of {', '.join(METHODS)} (default: all)",
    )
    parser.add_argument("--seeds", type=whole, default=5, metavar="N", help="seeds 0 to N-1 (5)")
    parser.add_argument("--quick", action="store_true", help="a look in a minute: fewer rows, two seeds")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command ``reproduce``."""
    out = Path(arguments.out).expanduser()
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must name a folder, and {arguments.out!r} is a file.")
    from laconic.experiments import reproduce

    results = reproduce(
        out,
        protocol=arguments.protocol,
        data_dir=arguments.data_dir,
        sets=_flat(arguments.set),
        algorithms=_flat(arguments.algorithm),
        seeds=arguments.seeds,
        quick=arguments.quick,
        progress=not arguments.no_progress,
    )
    seconds = results["about"]["seconds"]
    print(f"{summary(results['rows'])}\n\n{seconds:.0f} seconds. The report: {out / 'report.html'}")
    return 0


def summary(rows: Iterable[Mapping[str, Any]]) -> str:
    """Final MSE of each algorithm on each set, in thousandths, and its bits against ODKLA's; shuffled data only."""
    from laconic.cli.words import table, width
    from laconic.experiments.tables import mean_and_spread

    shuffled = [dict(row) for row in rows if row["partition"] == "shuffled"]
    errors, bits = mean_and_spread(shuffled, "mse"), mean_and_spread(shuffled, "bits")
    sets = list(dict.fromkeys(row["set"] for row in shuffled))
    names = list(dict.fromkeys(row["algorithm"] for row in shuffled))
    lines = [["", *sets, "bits"]]
    for name in names:
        cells = [errors.get((chosen, "shuffled", name)) for chosen in sets]
        shown = [f"{1000 * mean[0]:#.3g}".rstrip(".") if mean else "diverged" for mean in cells]
        lines.append([name, *shown, _share(bits, sets, name)])
    seeds = len({row["seed"] for row in shuffled})
    title = f"mse x 1000, mean of {seeds} seed{'s' * (seeds != 1)}, rows shuffled; bits as a share of ODKLA's"
    align = "<" + ">" * (len(sets) + 1)
    text = table(lines, align)
    if len(text.split("\n")[0]) > width():
        # Names of two words take two lines.
        upper = ["", *(chosen.rpartition("-")[0] for chosen in sets), ""]
        lower = ["", *(chosen.rpartition("-")[2] for chosen in sets), "bits"]
        text = table([upper, lower, *lines[1:]], align)
    return f"{title}\n\n{text}"


def _share(bits: Mapping[tuple[str, str, str], tuple[float, float]], sets: list[str], name: str) -> str:
    pairs = [(bits.get((s, "shuffled", name)), bits.get((s, "shuffled", "ODKLA"))) for s in sets]
    shares = [own[0] / whole[0] for own, whole in pairs if own and whole and whole[0]]
    return f"{sum(shares) / len(shares):.1%}" if shares and sum(shares) else "-"


def _flat(parts: list[tuple[str, ...]] | None) -> tuple[str, ...] | None:
    """``--set a b``, ``--set a,b`` and ``--set a --set b`` mean the same."""
    return tuple(dict.fromkeys(name for part in parts for name in part)) if parts else None
