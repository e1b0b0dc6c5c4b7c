"""Energy use of the appliances in a low-energy house."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.text import Layout

_MOST = 300.0


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    frame = parsing.read_frame(path, entry, Layout(",", header=True))
    parsing.need_columns(path, entry, frame, {"date", entry.target, "rv1", "rv2"})
    frame = frame.filter(pl.col(entry.target) <= _MOST)
    y = parsing.numbers(frame.select(entry.target), path, entry)[:, 0]
    if protocol == "prepared":
        rest = frame.drop("date", entry.target, "rv1", "rv2")
        return Table(parsing.numbers(rest, path, entry), y, tuple(rest.columns), entry.target)
    # The paper counts 28 inputs, one for each other column, and does not say how the date becomes a number. The time of
    # day is the choice that carries meaning and, like the other inputs, is bounded (and it is what Air quality does).
    clock = frame["date"].cast(pl.String).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    hours = clock.dt.hour().cast(pl.Float64) + clock.dt.minute().cast(pl.Float64) / 60
    rest = frame.drop("date", entry.target)
    X = np.column_stack([hours.to_numpy() / 24, parsing.numbers(rest, path, entry)])
    return Table(X, y, ("hour/24", *rest.columns), entry.target)


ENTRY = Entry(
    name="energy",
    title="Appliances energy",
    description=(
        "Temperature and humidity in the rooms of a low-energy house and the weather outside, every ten minutes "
        "for 4.5 months; the label is the energy use of the appliances in Wh. Rows: those with at most 300 Wh. The "
        "paper counts 28 inputs, all other columns: the date enters as the time of day, a fraction of 24 hours. "
        "The prepared set has 25, without date, rv1 and rv2 (the last two are random noise)."
    ),
    citation=(
        "L. M. Candanedo, V. Feldheim, D. Deramaix. Data driven prediction models of energy use of appliances in a "
        "low-energy house. Energy and Buildings 140:81-97, 2017. doi:10.24432/C5VC8G"
    ),
    target="Appliances",
    files=("energydata_complete.csv",),
    url=f"{UCI}/374/appliances+energy+prediction.zip",
    sha256="2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d",
    size="12 MB",
    n_columns=29,
    target_range=(0.0, 300.0),
    paper_rows=18600,
    protocols=True,
    place=2,
    read=_read,
)
