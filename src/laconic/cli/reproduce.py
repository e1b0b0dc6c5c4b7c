"""``laconic reproduce``: the paper's experiments, all of them, into one folder."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from laconic._files import expanded
from laconic.cli.options import Commands, add_data_dir, add_json, add_quiet, describe, one_of, some_of, whole
from laconic.experiments.settings import BEST_CENTRE, CENTRALISED_RLS, DEFAULT, LOCAL_RLS, METHODS, SETTINGS, WAVES
from laconic.learners import normalise

_ABOUT = """
Run the paper's experiments on its six data sets: tuning, figures, tables,
theory, and what the paper leaves out. What is finished is not computed again,
so a run that was stopped goes on where it was."""

_EXAMPLES = """
examples:
  laconic reproduce --data-dir raw
  laconic reproduce --quick --out look
  laconic reproduce --set air-quality energy --algorithm ODKLA QC-ODKLA WaveRLS"""

#: What stands in the tables beside the paper's algorithms, and is in no paper.
_BESIDE = {
    WAVES[0]: (
        f"{WAVES[0]} has its defaults, where the steps of the paper's algorithms are the best in hindsight. It needs "
        "what ODKLA does not: O(D^2) work and memory instead of O(D), a tree, and lockstep or slots agreed to within a "
        "hop."
    ),
    LOCAL_RLS: f"{LOCAL_RLS}: recursive least squares at each agent, which never speaks.",
    CENTRALISED_RLS: f"{CENTRALISED_RLS}: the same at a centre that is sent every sample.",
    BEST_CENTRE: f"{BEST_CENTRE}: that, with the best of four ridges in hindsight.",
    DEFAULT: f"{DEFAULT}: what `laconic run` takes where nothing is said.",
}

_ALGORITHMS = (*METHODS, *(name.replace(" ", "-") for name in WAVES))


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
        type=some_of(*_ALGORITHMS, alike=normalise),
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"some of {', '.join(_ALGORITHMS)} (default: all)",
    )
    parser.add_argument("--seeds", type=whole, default=5, metavar="N", help="so many seeds (5)")
    parser.add_argument("--first-seed", type=whole, default=0, metavar="S", help="from this one on (0)")
    parser.add_argument("--quick", action="store_true", help="a look in a minute: fewer rows, two seeds")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    add_json(parser, "tell scores and where the report is as JSON")
    add_quiet(parser)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command ``reproduce``."""
    out = expanded(arguments.out)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must name a folder, and {arguments.out!r} is a file.")
    from laconic.experiments import reproduce

    results = reproduce(
        out,
        protocol=arguments.protocol,
        data_dir=arguments.data_dir,
        sets=_flat(arguments.set),
        algorithms=_known(_flat(arguments.algorithm)),
        seeds=arguments.seeds,
        first_seed=arguments.first_seed,
        quick=arguments.quick,
        progress=sys.stderr.isatty() and not (arguments.no_progress or arguments.hush),
    )
    seconds = results["about"]["seconds"]
    if arguments.json:
        print(
            json.dumps({"report": str(out / "report.html"), "seconds": seconds, "rows": results["rows"]}, default=float)
        )
        return 0
    parts = (summary(results["rows"]), apart(results["rows"]), beside(results["rows"]))
    print("\n\n".join(part for part in parts if part))
    print(f"\n{seconds:.0f} seconds. The report: {out / 'report.html'}")
    return 0


def summary(rows: Iterable[Mapping[str, Any]]) -> str:
    """Final MSE of each algorithm on each set, in thousandths, and its bits against ODKLA's; shuffled data only."""
    return _table([dict(row) for row in rows], "shuffled", "mse", "mse")


def apart(rows: Iterable[Mapping[str, Any]]) -> str:
    """The same of the scores on everybody's data where each agent has seen one band of the labels only."""
    sorted_rows = [dict(row) for row in rows if row.get("global_mse") is not None]
    title = "global mse (every model on everybody's data)"
    return _table(sorted_rows, "sorted-by-target", "global_mse", title)


def beside(rows: Iterable[Mapping[str, Any]]) -> str:
    """What those of the tables are that are not the paper's, and what waves need that ODKLA does not."""
    from laconic.cli.words import paragraph

    there = {row["algorithm"] for row in rows}
    return "\n".join(paragraph(said, indent=2) for name, said in _BESIDE.items() if name in there)


def _table(rows: list[dict[str, Any]], partition: str, column: str, what: str) -> str:
    from laconic.cli.words import paragraph, table, width
    from laconic.experiments.tables import mean_and_spread

    those = [row for row in rows if row["partition"] == partition]
    if not those:
        return ""
    errors, bits = mean_and_spread(those, column), mean_and_spread(those, "bits")
    sets = list(dict.fromkeys(row["set"] for row in those))
    names = list(dict.fromkeys(row["algorithm"] for row in those))
    lines = [["", *sets, "bits"]]
    for name in names:
        cells = [errors.get((chosen, partition, name)) for chosen in sets]
        shown = [f"{1000 * mean[0]:#.3g}".rstrip(".") if mean else "diverged" for mean in cells]
        lines.append([name, *shown, _share(bits, sets, name, partition)])
    seeds = len({row["seed"] for row in those})
    dealt = partition.replace("-", " ").removeprefix("rows ")
    title = paragraph(
        f"{what} x 1000, mean of {seeds} seed{'s' * (seeds != 1)}, rows {dealt}; bits as a share of ODKLA's"
    )
    align = "<" + ">" * (len(sets) + 1)
    text = table(lines, align)
    if len(text.split("\n")[0]) > width():
        # Names of two words take two lines.
        upper = ["", *(chosen.rpartition("-")[0] for chosen in sets), ""]
        lower = ["", *(chosen.rpartition("-")[2] for chosen in sets), "bits"]
        text = table([upper, lower, *lines[1:]], align)
    return f"{title}\n\n{text}"


def _known(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names as the reproduction has them."""
    written = dict(zip(_ALGORITHMS, (*METHODS, *WAVES), strict=True))
    return names and tuple(written[name] for name in names)


def _share(bits: Mapping[tuple[str, str, str], tuple[float, float]], sets: list[str], name: str, partition: str) -> str:
    pairs = [(bits.get((s, partition, name)), bits.get((s, partition, "ODKLA"))) for s in sets]
    shares = [own[0] / whole[0] for own, whole in pairs if own and whole and whole[0]]
    return f"{sum(shares) / len(shares):.1%}" if shares and sum(shares) else "-"


def _flat(parts: list[tuple[str, ...]] | None) -> tuple[str, ...] | None:
    """``--set a b``, ``--set a,b`` and ``--set a --set b`` mean the same."""
    return tuple(dict.fromkeys(name for part in parts for name in part)) if parts else None
