"""Spoiled messages through ``Agent.receive``: ``python benchmarks/fuzz.py``, a million of them by default.

Real messages of every kind, which their receiver would take, are spoiled: bits flip, ends are cut off, pieces are
swapped, doubled, inserted, or all is noise. As they come, none may be taken: nothing is raised and the state stays what
it is, to the bit. A tenth as many are *sealed* again with the right checksum, as a neighbour out of its mind would send
them. Some of those say something and are taken; nothing may be raised then either, and the state stays finite.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from laconic.testing.fuzz import TARGETS, Target, fuzz_as_they_come, fuzz_sealed
from laconic.testing.spoiler import Spoiler


def show(columns: dict[str, Counter[str]], out: Iterable[str] = ()) -> str:
    """A table: a row for each reason, a column for each of ``columns``."""
    reasons = sorted(set().union(*columns.values()), key=lambda reason: -next(iter(columns.values()))[reason])
    width = max(map(len, (*reasons, "all of them")))
    lines = [f"{'refused':<{width}}" + "".join(f"{title:>20}" for title in columns)]
    for reason in reasons:
        lines.append(f"{reason:<{width}}" + "".join(f"{counts[reason]:>20,}" for counts in columns.values()))
    lines.append(f"{'all of them':<{width}}" + "".join(f"{counts.total():>20,}" for counts in columns.values()))
    return "\n".join([*lines, *out])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many, as they come (1000000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fuzz.json")
    arguments = parser.parse_args()
    logging.getLogger("laconic.protocol").setLevel(logging.ERROR)
    warnings.simplefilter("error")  # a number that overflows is a fault, too
    spoiler = Spoiler(arguments.seed)
    targets = [Target(name) for name in TARGETS]
    columns: dict[str, Counter[str]] = {"as they come": Counter(), "sealed again": Counter()}
    rates: dict[str, float] = {}
    for title, fuzz, total in (
        ("as they come", fuzz_as_they_come, arguments.messages),
        ("sealed again", fuzz_sealed, arguments.messages // 10),
    ):
        start, done = time.perf_counter(), 0
        with tqdm(total=total, desc=title, unit=" messages", unit_scale=True) as bar:
            while done < total:
                count = min(10_000, total - done)
                columns[title] += fuzz(targets[done // 10_000 % len(targets)], spoiler, count)
                done += count
                bar.update(count)
        rates[title] = total / (time.perf_counter() - start)
    notes = [f"{title}: {rate:,.0f} messages/s, spoiling included." for title, rate in rates.items()]
    print(show(columns, ["", *notes, "Nothing was raised; what was refused changed no state; all stayed finite."]))
    arguments.out.parent.mkdir(exist_ok=True)
    results = {"messages per second": rates, **{title: dict(counts) for title, counts in columns.items()}}
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
