"""Activity around topics on Twitter."""

from __future__ import annotations

from pathlib import Path

from laconic._validate import Array
from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry

#: The paper that published this set, its classes and Tom's hardware.
KAWALA = (
    "F. Kawala, A. Douzal-Chouakria, E. Gaussier, E. Diemert. Prédictions d'activité dans les réseaux sociaux en "
    "ligne. 4ième conférence sur les modèles et l'analyse des réseaux (MARAMI), 2013."
)
COUNTS = ("NCD", "AI", "AS(NA)", "BL", "NAC", "AS(NAC)", "CS", "AT", "NA", "ADL", "NAD")
WEEKS = 7
_ROWS, _MOST, _COUNT = 14_000, 2219.5, 13_813


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    if protocol == "prepared":
        matrix = prepared(parsing.read_matrix(path, entry, _ROWS), path)
    else:
        matrix = parsing.read_matrix(path, entry, stop)
    return parsing.last_is_label(matrix, entry, [f"{name}_{week}" for name in COUNTS for week in range(WEEKS)])


def prepared(matrix: Array, path: Path) -> Array:
    """The 13813 rows of the prepared set, from the file that holds just these or from the published one.

    Nobody wrote down how they were chosen. By their number and largest label they are those of the first 14000 rows
    whose label is at most 2219.5, as for Tom's hardware; so that is done here, and refused unless it gives 13813 rows.
    """
    rows = matrix[:_ROWS]
    rows = rows[rows[:, -1] <= _MOST]
    if len(rows) != _COUNT:
        raise ValueError(
            f"protocol 'prepared' of 'twitter' needs the {_COUNT} rows of Twitter_subset13813.data, and {path} "
            f"gives {len(rows)}: pass protocol='paper'."
        )
    return rows


ENTRY = Entry(
    name="twitter",
    title="Twitter",
    description=(
        "Seven weeks of activity around a topic on Twitter; the label is the mean number of active discussions in "
        "the weeks after. The paper takes 98700 rows (here the first ones, or all if the file has fewer); the "
        "prepared set has 13813."
    ),
    citation=KAWALA,
    target="mean NAD",
    files=("Twitter.data", "Twitter_subset13813.data"),
    url=f"{UCI}/248/buzz+in+social+media.zip",
    size="33 MB",
    n_columns=78,
    target_range=(0.0, 1e7),
    paper_rows=98700,
    protocols=True,
    place=4,
    read=_read,
)
