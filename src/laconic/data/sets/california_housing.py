"""Values of houses in California, 1990."""

from __future__ import annotations

from pathlib import Path

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import Entry

_HOUSES = ["housingMedianAge", "totalRooms", "totalBedrooms", "population", "households", "medianIncome"]


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    return parsing.last_is_label(parsing.read_matrix(path, entry, stop), entry, ["longitude", "latitude", *_HOUSES])


ENTRY = Entry(
    name="california-housing",
    title="California housing",
    description=(
        "Block groups of the 1990 census of California: place, age and size of the houses, people and income; the "
        "label is the median value of a house in dollars, cut at 500001."
    ),
    citation=(
        "R. K. Pace, R. Barry. Sparse spatial autoregressions. Statistics and Probability Letters 33(3):291-297, 1997."
    ),
    target="medianHouseValue",
    files=("cal_housing.data",),
    url="https://ndownloader.figshare.com/files/5976036",
    archive_sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
    size="0.4 MB",
    n_columns=9,
    target_range=(1e4, 5.1e5),
    place=8,
    read=_read,
)
