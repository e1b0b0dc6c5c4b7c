"""Topics on Twitter: buzz or not."""

from __future__ import annotations

from pathlib import Path

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import Entry
from laconic.data.sets.twitter import COUNTS, KAWALA, WEEKS


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    names = [f"{name}_{week}" for name in COUNTS for week in range(WEEKS)]
    return parsing.signs(
        parsing.last_is_label(parsing.read_matrix(path, entry, stop), entry, names), path, entry, ("no buzz", "buzz")
    )


ENTRY = Entry(
    name="twitter-classes",
    title="Twitter, buzz or not",
    description=(
        "The inputs of 'twitter'; the label says whether the activity around the topic then rose by 500 or more "
        "(+1, a buzz) or not (-1)."
    ),
    citation=KAWALA,
    target="buzz",
    files=("Twitter-Absolute-Sigma-500.data", "Twitter-Absolute-Sigma-500_8000samples.data"),
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/00248/classification.tar.gz",
    size="about 30 MB",
    n_columns=78,
    target_range=(-1.0, 1.0),
    place=7,
    read=_read,
)
