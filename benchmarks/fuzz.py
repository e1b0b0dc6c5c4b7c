"""Spoiled messages through ``Agent.receive``: ``python benchmarks/fuzz.py``, a million of them by default.

Real messages of every kind, which their receiver would take, are spoiled: bits flip, ends are cut off, pieces are
swapped, doubled, inserted, or all is noise. As they come, none may be taken: nothing is raised and the state stays what
it is, to the bit. As many are *sealed* again with the right checksum, as a neighbour out of its mind would send them.
Some of those say something and are taken; nothing may be raised then either, and the state stays finite. As many again
are *lies*: well-formed, in real sessions, with right echoes and digests, and hostile values in every field. They may
change their own edge, within limits, and nothing else; when the liars are gone, the honest ones are together.
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

from laconic.testing.fuzz import TARGETS, WAVING, Target, fuzz_as_they_come, fuzz_sealed
from laconic.testing.liar import Liar, Scene, fuzz_hostile
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


def resident() -> float:
    """Memory of this process in MB; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many of each sort (1000000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fuzz.json")
    arguments = parser.parse_args()
    logging.getLogger("laconic.protocol").setLevel(logging.ERROR)
    warnings.simplefilter("error")  # a number that overflows is a fault, too
    spoiler = Spoiler(arguments.seed)
    targets = [Target(name) for name in (*TARGETS, *WAVING)]
    scenes, liar = [Scene(name) for name in TARGETS], Liar(arguments.seed)
    columns: dict[str, Counter[str]] = {}
    rates: dict[str, float] = {}
    grown: dict[str, float] = {}
    for title, fuzz, among, total in (
        ("as they come", lambda target, n: fuzz_as_they_come(target, spoiler, n), targets, arguments.messages),
        ("sealed again", lambda target, n: fuzz_sealed(target, spoiler, n), targets, arguments.messages),
        ("lies", lambda scene, n: fuzz_hostile(scene, liar, n), scenes, arguments.messages),
    ):
        columns[title] = Counter()
        start, done, before = time.perf_counter(), 0, None
        with tqdm(total=total, desc=title, unit=" messages", unit_scale=True, disable=None) as bar:
            while done < total:
                count = min(10_000, total - done)
                columns[title] += fuzz(among[done // 10_000 % len(among)], count)
                done += count
                bar.update(count)
                if before is None and done >= total // 10:  # when all is loaded
                    before = resident()
        rates[title], grown[title] = total / (time.perf_counter() - start), resident() - (before or resident())
    notes = [
        f"{title}: {rate:,.0f} messages/s, spoiling included; {grown[title]:+.1f} MB of memory since the first tenth."
        for title, rate in rates.items()
    ]
    print(
        show(columns, ["", *notes, "Nothing was raised; what was refused changed no state; all stayed within limits."])
    )
    arguments.out.parent.mkdir(exist_ok=True)
    results = {"messages per second": rates, "memory grown in MB": grown, **{t: dict(c) for t, c in columns.items()}}
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
