"""``laconic tune``: the best steps of some algorithms for one data set, by grid search."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from laconic._worded import printable
from laconic.cli.options import (
    N_FREQUENCIES,
    Commands,
    Parser,
    add_json,
    add_quiet,
    add_stream_options,
    describe,
    number,
    some_of,
    whole,
)
from laconic.experiments.methods import all_methods, channel_of, learner_of
from laconic.features import KERNELS
from laconic.learners import ODKLA, QCODKLA, RFFDOKL, Local, normalise, written

if TYPE_CHECKING:
    from laconic.cli.inputs import Prepared
    from laconic.experiments.halving import Halved
    from laconic.experiments.settings import Setting
    from laconic.experiments.tuning import Point, Tuning

_USUAL = (ODKLA.name, QCODKLA.name, RFFDOKL.name, Local.name)

_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)

_ABOUT = """
Find the step sizes with the smallest mean squared error, by a grid for each
algorithm. A winner on the edge of its grid extends the grid. --prefix 0.1 looks
at the first tenth of the rounds only, as one could in the field. --widths tries
bandwidths, too, --kernels kernels and --sizes numbers of frequencies: all of
them together on a short prefix, the better half on twice as much, and so on;
--budget 60s begins nothing new after a minute."""

_EXAMPLES = """
examples:
  laconic tune my.csv --target price --algorithm ODKLA
  laconic tune my.csv --widths 0.25,0.5,1,2,4 --budget 60s
  laconic tune my.csv --kernels gaussian,matern --sizes 25,50,100
  laconic tune air-quality --algorithm ODKLA,Local --seeds 3 --prefix 0.1"""


def add(commands: Commands) -> None:
    """Add the command ``tune``."""
    parser = commands.add_parser(
        "tune", help="find the best step sizes", usage="laconic tune [DATA] [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    add_stream_options(parser)
    group = parser.add_argument_group("tuning")
    known = all_methods()
    group.add_argument(
        "--algorithm",
        type=some_of(*known, alike=normalise),
        default=_USUAL,
        metavar="NAMES",
        help=f"some of {', '.join(known)}, with commas between them (default: {','.join(_USUAL)})",
    )
    group.add_argument("--seeds", type=whole, default=5, metavar="N", help="average over the seeds 0 to N-1 (5)")
    group.add_argument(
        "--prefix", type=number, default=1.0, metavar="SHARE", help="use the first share of the rounds only (1)"
    )
    group.add_argument(
        "--widths",
        type=_widths,
        metavar="LIST",
        help="bandwidths to try, in multiples of the usual one (with --budget: 0.25,0.5,1,2,4; else only that one)",
    )
    group.add_argument(
        "--kernels", type=some_of(*KERNELS), metavar="LIST", help=f"kernels to try, some of {', '.join(KERNELS)}"
    )
    group.add_argument("--sizes", type=_sizes, metavar="LIST", help="numbers of frequencies to try, such as 25,50,100")
    group.add_argument("--budget", type=_seconds, metavar="TIME", help="for all feature maps together: 60s, 5m, 1h")
    group.add_argument(
        "--alpha", type=number, metavar="X", help="censoring of QC- and C-ODKLA: first threshold (0.2, or the paper's)"
    )
    group.add_argument("--beta", type=number, metavar="X", help="and its decay a round (0.9995, or the paper's)")
    add_json(group, "print winners and all that was tried as one JSON object")
    add_quiet(group)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command ``tune``."""
    from tqdm import tqdm

    from laconic.cli.inputs import prepare
    from laconic.cli.words import count, facts, plural
    from laconic.experiments.halving import halve
    from laconic.experiments.methods import methods
    from laconic.experiments.tuning import tune

    _check(arguments)
    source = prepare(arguments, "squared")
    seeds = range(arguments.seeds)
    n_rounds = len(source.stream(0).head(arguments.prefix).y)  # says what is wrong before the bar appears
    sources = {map_: _seen_through(source, map_) for map_ in _candidates(arguments)}
    done: dict[tuple[Map, float], dict[str, Tuning]] = {}
    with tqdm(desc="tuning", unit=" runs", disable=arguments.hush or None, leave=False) as bar:

        def score(map_: Map, share: float) -> float:
            one = sources[map_]
            done[map_, share] = tune(
                methods(one.setting, arguments.algorithm),
                lambda: (one.stream(seed) for seed in seeds),
                prefix=arguments.prefix * share,
                tick=bar.update,
            )
            return min(tuning.score for tuning in done[map_, share].values())

        halved = halve(sources, score, seconds=arguments.budget)
    source, found = sources[halved.best], done[halved.best, halved.share]
    setting = source.setting
    if len(sources) > 1:
        arguments.bandwidth, arguments.kernel = setting.bandwidth, source.kernel
        arguments.frequencies = None if source.n_frequencies == N_FREQUENCIES else source.n_frequencies
        n_rounds = max(1, int(n_rounds * halved.share))
    best = min(found.values(), key=lambda tuning: tuning.score)
    words = _command(arguments, best, setting)
    if arguments.json:
        told = {"data": source.dataset.name, "agents": setting.n_agents, "rounds": n_rounds, "seeds": len(seeds)}
        told |= {"kernel": source.kernel, "frequencies": source.n_frequencies, "bandwidth": setting.bandwidth}
        tunings = [_told(tuning) for tuning in found.values()]
        print(json.dumps({**told, "best": best.method, "command": words, "algorithms": tunings}))
        return 0
    rounds = plural(n_rounds, "round") + (f" (the first {100 * arguments.prefix:.3g}%)" if arguments.prefix < 1 else "")
    print(
        facts(
            [
                (
                    "data",
                    f"{source.dataset.name}: {plural(len(source.dataset), 'row')}, target {source.dataset.target}",
                ),
                ("runs", f"{plural(setting.n_agents, 'agent')}, {rounds}, {plural(len(seeds), 'seed')}"),
                (
                    "kernel",
                    f"{source.kernel}, {source.n_frequencies} frequencies, bandwidth {setting.bandwidth:g} "
                    f"({source.bandwidth_from})",
                ),
            ]
        )
    )
    if len(sources) > 1:
        print(f"\n{_describe_halving(sources, halved)}")
    for tuning in found.values():
        print(f"\n{describe_tuning(tuning)}")
    tried = sum(len(tuning.table) for tuning in found.values())
    print(f"\n{count(tried)} points tried. The best of all is {best.method}:\n  {printable(words)}")
    return 0


def _told(tuning: Tuning) -> dict[str, Any]:
    """One algorithm's grid for a program; the mse of what diverged is null."""
    tried = [
        {**dict(zip(tuning.steps, point, strict=True)), "mse": score if math.isfinite(score) else None}
        for point, score in tuning.table.items()
    ]
    score = tuning.score if math.isfinite(tuning.score) else None
    edge = bool(tuning.axes) and tuning.on_edge()
    return {"algorithm": tuning.method, "steps": tuning.steps, "mse": score, "on_edge": edge, "tried": tried}


def _widths(text: str) -> tuple[float, ...]:
    """Positive numbers with commas between them."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < width < math.inf for width in found):
        raise argparse.ArgumentTypeError(f"must be positive numbers with commas between them, got {text!r}")
    return found


def _seconds(text: str) -> float:
    """A time: 60s, 5m or 1h."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    try:
        seconds = float(text[:-1]) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a time such as 60s, 5m or 1h, got {text!r}")
    return seconds


def _sizes(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    found = tuple(int(part) for part in text.split(",") if part.isdigit())
    if len(found) != len(text.split(",")) or not all(found):
        raise argparse.ArgumentTypeError(f"must be whole numbers with commas between them, got {text!r}")
    return found


class Map(NamedTuple):
    """A feature map to try: a multiple of the usual bandwidth, a kernel, and how many frequencies."""

    width: float
    kernel: str
    size: int


def _candidates(arguments: argparse.Namespace) -> tuple[Map, ...]:
    widths = arguments.widths or (_WIDTHS if arguments.budget is not None else (1.0,))
    kernels = arguments.kernels or (arguments.kernel or "gaussian",)
    sizes = arguments.sizes or (N_FREQUENCIES if arguments.frequencies is None else arguments.frequencies,)
    return tuple(dict.fromkeys(Map(*parts) for parts in itertools.product(widths, kernels, sizes)))


def _seen_through(source: Prepared, map_: Map) -> Prepared:
    """The same data through another map."""
    from dataclasses import replace

    made = replace(source, kernel=map_.kernel, n_frequencies=map_.size)
    if map_.width == 1:
        return made
    bandwidth = float(f"{source.setting.bandwidth * map_.width:.3g}")
    said = f"{map_.width:g} times {source.bandwidth_from}"
    return replace(made, setting=replace(source.setting, bandwidth=bandwidth), bandwidth_from=said)


def _describe_halving(sources: dict[Map, Prepared], halved: Halved[Map]) -> str:
    """Which maps were tried on how much, and what came of it; of what all have in common only bandwidths are named."""
    from laconic.cli.words import paragraph

    shown = [len({getattr(map_, part) for map_ in sources}) > 1 for part in ("kernel", "size")]

    def named(map_: Map) -> str:
        more = [map_.kernel] * shown[0] + [f"{map_.size} frequencies"] * shown[1]
        return ", ".join([f"{sources[map_].setting.bandwidth:g}", *more])

    shares = dict.fromkeys(share for _, share, _ in halved.tried)
    lines = []
    for part in shares:
        scores = sorted((map_, score) for map_, share, score in halved.tried if share == part)
        told = ("; " if any(shown) else ", ").join(f"{named(map_)}: {score:.4g}" for map_, score in scores)
        lines.append(paragraph(f"bandwidths on {100 * part:.3g}% of the rounds, with mse: {told}", 2))
    if halved.share < 1:
        lines.append(paragraph("The time was over before the last ones saw all rounds."))
    return "\n".join(lines)


def describe_tuning(tuning: Tuning) -> str:
    """Grid, winner and neighbours of one algorithm."""
    from laconic.cli.words import paragraph

    if not math.isfinite(tuning.score):
        return f"{tuning.method}: diverged at every point of its grid; is the target scaled to [0, 1]?"
    if not tuning.axes:
        said = f"{tuning.method}: nothing to tune; as it is, its mse is {tuning.score:.4g}"
        return paragraph(said, 2)
    near = sorted(tuning.neighbours().items(), key=lambda item: item[1])
    grew = f", after its grid grew {tuning.extended} times" if tuning.extended > 1 else ""
    grew = ", after its grid grew once" if tuning.extended == 1 else grew
    edge = "; it lies on the edge of its grid all the same" if tuning.on_edge() else ""
    winner = f"{tuning.method}: {_steps(tuning.steps)} with mse {tuning.score:.4g}{grew}{edge}"
    others = "; ".join(
        f"{_steps(dict(zip(tuning.steps, point, strict=True)))}: {_worse(score, tuning.score)}" for point, score in near
    )
    return f"{paragraph(winner, 2)}\n{_grid(tuning)}\n{paragraph(f'  beside it: {others}', 4)}"


def _grid(tuning: Tuning) -> str:
    """All scores, the winner in brackets: rho downwards and eta across, or steps across."""
    from laconic.cli.words import plural, table, width

    exponent = math.floor(math.log10(tuning.score)) if tuning.score > 0 else 0
    exponent = 0 if 0 <= exponent <= 2 else exponent
    names = list(tuning.axes)
    across = names[-1]
    winner = tuple(tuning.steps.values())

    def cell(point: Point) -> str:
        score = tuning.table.get(point, math.nan)
        text = "x" if math.isinf(score) else "" if math.isnan(score) else f"{score / 10.0**exponent:.4g}"
        return f"[{text}]" if point == winner else f"{text} "

    columns = tuning.axes[across]
    downs: list[tuple[float, ...]] = [(value,) for value in tuning.axes[names[0]]] if len(names) == 2 else [()]
    cells = {value: [cell((*down, value)) for down in downs] for value in columns}
    first = [f"  {names[0]} {down[0]:.3g}" if down else "  mse" for down in downs]
    shown = _that_fit(
        {v: max(len(c) for c in (f"{v:.3g} ", *cells[v])) + 2 for v in columns},
        winner[-1],
        width() - max(map(len, first)),
    )
    rows = [[f"  {across}", *(f"{value:.3g} " for value in shown)]]
    rows += [[first[k], *(cells[value][k] for value in shown)] for k in range(len(downs))]
    remarks = [f"mse in units of 1e{exponent}"] if exponent else []
    remarks += ["x: diverged"] if any(math.isinf(score) for score in tuning.table.values()) else []
    remarks += [f"{plural(len(columns) - len(shown), 'column')} left out"] if len(shown) < len(columns) else []
    grid = table(rows, "<" + ">" * len(shown))
    return grid + (f"\n  ({'; '.join(remarks)})" if remarks else "")


def _that_fit(widths: dict[float, int], winner: float, room: int) -> list[float]:
    """As many columns around the winner as the terminal is wide."""
    shown = list(widths)
    while len(shown) > 1 and sum(widths[value] for value in shown) > room:
        place = shown.index(winner)
        shown.pop(0 if place > len(shown) - 1 - place else -1)
    return shown


def _steps(steps: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in steps.items())


def _worse(score: float, best: float) -> str:
    return "diverged" if math.isinf(score) else f"+{score / best - 1:.1%}" if best else f"{score:.4g}"


def _command(arguments: argparse.Namespace, best: Tuning, setting: Setting) -> str:
    """The run that uses the winner."""
    from laconic.cli.learners import STEPS

    learner, channel = learner_of(best.method), channel_of(best.method, setting)
    parser = Parser()
    add_stream_options(parser)
    usual = vars(parser.parse_args([]))
    options = {name: getattr(arguments, name) for name in usual if name != "data"}
    options = {name: value for name, value in options.items() if value != usual[name]}
    if channel.censor is not None:
        options |= {"alpha": channel.censor.alpha, "beta": channel.censor.beta}
    if channel.quantizer is not None:
        options["bits"] = channel.quantizer.bits
    takes = [name for name in ("alpha", "beta") if name in learner.arguments()]
    options |= {name: getattr(arguments, name) for name in takes if getattr(arguments, name) is not None}
    words = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items()]
    own = {name: f"--{name} " if name in STEPS else f"--parameter {name}=" for name in best.steps}
    steps = [f"{own[name]}{value:.6g}" for name, value in best.steps.items()]
    return " ".join(["laconic run", shlex.quote(str(arguments.data)), *words, f"--learner {written(learner)}", *steps])


def _check(arguments: argparse.Namespace) -> None:
    if arguments.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {arguments.seeds}.")
    if not 0 < arguments.prefix <= 1:
        raise ValueError(f"--prefix must be a share of the rounds, above 0 and at most 1; got {arguments.prefix:g}.")
    if not arguments.algorithm:
        raise ValueError("--algorithm must name at least one algorithm.")
