"""Activity around topics in a forum on computer hardware."""

from __future__ import annotations

from pathlib import Path

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.sets.twitter import KAWALA

_ROWS, _MOST = 10_000, 27_611.0
_COUNTS = ["NCD", "BL", "NAD", "AI", "NAC", "ND", "CS", "AT", "NA", "ADL", "AS(NA)", "AS(NAC)"]


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    prepared = protocol == "prepared"
    matrix = parsing.read_matrix(path, entry, _ROWS if prepared else stop)
    if prepared:
        matrix = matrix[matrix[:, -1] <= _MOST]
    return parsing.last_is_label(matrix, entry, [f"{name}_{week}" for name in _COUNTS for week in range(8)])


ENTRY = Entry(
    name="toms-hardware",
    title="Tom's hardware",
    description=(
        "Eight weeks of activity around a topic in a forum on computer hardware; the label is the mean number of "
        "displays of the topic in the weeks after. The paper takes the first 11000 rows; the prepared set those of "
        "the first 10000 whose label is at most 27611 (9725 rows)."
    ),
    citation=KAWALA,
    target="mean ND",
    files=("TomsHardware.data",),
    url=f"{UCI}/248/buzz+in+social+media.zip",
    sha256="eb18c0265e669813c6a9d32d11eb4d01125970fa46a7d4f75c3da0f0ccb3110c",
    size="33 MB",
    n_columns=97,
    target_range=(0.0, 1e7),
    paper_rows=11000,
    protocols=True,
    place=3,
    read=_read,
)
