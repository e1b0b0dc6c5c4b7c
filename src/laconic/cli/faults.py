"""``laconic faults``: schedules of faults, drawn from seeds, on a virtual network, and what must hold after each."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from laconic.cli.options import Commands, add_quiet, describe, whole

if TYPE_CHECKING:
    from laconic.testing.faults import Schedule

_ABOUT = """
Let everything go wrong that can: messages are lost, late, doubled, spoiled, or
come again after a day; networks fall apart, one way or both; agents crash with
and without their disk, two at once, amid a repair, and come back with old
memories, or twice; hosts are slow or suspended, clocks run fast or leap; lists of
neighbours differ; some agents have no labels; a neighbour is hostile. Each seed is a schedule, on a network in
this process. After each the agents must be whole again: replicas equal to the
bit, duals that add up to zero, or one tree and one common state where waves run;
nobody stuck, everything learned. Whatever is not is shown with its seed and the
smallest schedule that does it."""

_EXAMPLES = """
examples:
  laconic faults                     a thousand schedules, in some minutes
  laconic faults --seeds 20000       twenty thousand
  laconic faults --kinds wipe,twice  of these kinds only
  laconic faults --learner waverls   with this learner only
  laconic faults --seed 379          one of them, in full"""


class Drawn(NamedTuple):
    """What schedules are drawn from: kinds of faults, all if there are none; a learner, or any; and how widely."""

    kinds: tuple[str, ...]
    learner: str | None
    wide: bool


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "faults",
        help="put the agents' protocol to the test",
        usage="laconic faults [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("--seeds", type=whole, default=1000, metavar="N", help="how many schedules (1000)")
    parser.add_argument("--first", type=whole, default=0, metavar="SEED", help="the first seed (0)")
    parser.add_argument("--seed", type=whole, metavar="SEED", help="this one only, and tell what is in it")
    parser.add_argument("--kinds", metavar="KIND,...", help="kinds of faults (all); 'list' tells what they are")
    parser.add_argument("--learner", metavar="NAME", help="what the agents run (any); 'list' names them")
    parser.add_argument("--wide", action="store_true", help="rare learners, single precision; faults that meet")
    parser.add_argument("--jobs", type=whole, metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    parser.add_argument("--json", action="store_true", help="tell the outcome as JSON, in the last line")
    add_quiet(parser)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Do it: exit code 1 if anything is violated."""
    with _quiet():
        return _run(arguments)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Refusals are what a faulty network is about."""
    log = logging.getLogger("laconic.protocol")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _run(arguments: argparse.Namespace) -> int:
    from laconic.testing.faults import KINDS, LEARNERS

    if arguments.kinds == "list":
        longest = max(map(len, KINDS))
        print("\n".join(f"{name:<{longest}}  {kind.what}" for name, kind in KINDS.items()))
        return 0
    if arguments.learner == "list":
        print("\n".join(LEARNERS))
        return 0
    if arguments.learner not in (None, *LEARNERS):
        raise ValueError(f"--learner must be one of {', '.join(LEARNERS)}; got {arguments.learner!r}.")
    kinds = tuple(filter(None, (arguments.kinds or "").split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"--kinds must be some of {', '.join(KINDS)}; got {kind!r}.")
    drawn = Drawn(kinds, arguments.learner, arguments.wide)
    if arguments.seed is not None:
        if arguments.seed < 0:
            raise ValueError(f"--seed must not be negative, got {arguments.seed}.")
        return _one(arguments.seed, drawn, arguments.json)
    if arguments.seeds < 1 or arguments.first < 0:
        raise ValueError("--seeds must be at least 1, and --first not negative.")
    jobs = os.cpu_count() or 1 if arguments.jobs is None else arguments.jobs
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}.")
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return _many(seeds, drawn, jobs, not (arguments.no_progress or arguments.hush), arguments.json)


def _one(seed: int, drawn: Drawn, as_json: bool = False) -> int:
    from laconic.testing.faults import check, draw_schedule

    schedule = draw_schedule(seed, *drawn)
    violations = check(schedule)
    if as_json:
        print(json.dumps({"schedule": str(schedule), "violated": {seed: violations} if violations else {}}))
        return 1 if violations else 0
    print(schedule)
    if not violations:
        print("all is well afterwards.")
        return 0
    _explain(schedule, drawn, violations)
    return 1


def _many(seeds: range, drawn: Drawn, jobs: int, progress: bool, as_json: bool = False) -> int:
    from tqdm import tqdm

    start, violated = time.perf_counter(), dict[int, list[str]]()
    shown = tqdm(
        _results(seeds, drawn, jobs),
        total=len(seeds),
        unit=" schedules",
        disable=not progress or not sys.stderr.isatty(),
        leave=False,
    )
    for seed, violations in shown:
        if violations:
            violated[seed] = violations
            if as_json:
                continue
            shown.clear()
            from laconic.testing.faults import draw_schedule

            _explain(draw_schedule(seed, *drawn), drawn, violations)
    seconds = time.perf_counter() - start
    if as_json:
        print(json.dumps({"first": seeds[0], "schedules": len(seeds), "seconds": seconds, "violated": violated}))
        return 1 if violated else 0
    what = f"{len(seeds)} schedules (seeds {seeds[0]} to {seeds[-1]}) in {seconds:.0f} s"
    print(f"{what}: {len(violated)} violated something." if violated else f"{what}: all is well after each.")
    return 1 if violated else 0


def _results(seeds: range, drawn: Drawn, jobs: int) -> Iterator[tuple[int, list[str]]]:
    result = partial(_result, drawn=drawn)
    if jobs == 1 or len(seeds) < 20:
        yield from map(result, seeds)
        return
    from multiprocessing import get_context

    with get_context("spawn").Pool(jobs, _begin) as pool:
        yield from pool.imap(result, seeds, chunksize=10)


def _begin() -> None:
    """Load all that there is, and have it out of the way of whoever looks for what can be thrown away."""
    import gc

    import laconic.testing.faults  # noqa: F401

    gc.collect()
    gc.freeze()


def _result(seed: int, drawn: Drawn) -> tuple[int, list[str]]:
    from laconic.testing.faults import check, draw_schedule

    with _quiet():
        return seed, check(draw_schedule(seed, *drawn))


def _explain(schedule: Schedule, drawn: Drawn, violations: list[str]) -> None:
    """What was violated, and the least that does it."""
    from laconic.testing.faults import check, shrink

    print(f"\nseed {schedule.seed} violates what must hold:")
    for violation in violations:
        print(f"  {violation}")
    smallest = shrink(schedule)
    print(f"the least of it that still does:\n  {smallest}")
    for violation in check(smallest):
        print(f"  {violation}")
    of_kinds = f" --kinds {','.join(drawn.kinds)}" if drawn.kinds else ""
    of_learner = f" --learner {drawn.learner}" if drawn.learner else ""
    widely = " --wide" if drawn.wide else ""
    print(f"to see it again: laconic faults --seed {schedule.seed}{of_kinds}{of_learner}{widely}", flush=True)
