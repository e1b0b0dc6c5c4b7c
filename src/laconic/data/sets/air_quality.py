"""Air quality in an Italian city, measured by a gas multi-sensor device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.text import Layout

_ROWS, _MISSING = 9000, -200.0


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    frame = parsing.read_frame(path, entry, Layout(";", header=True))
    parsing.need_columns(path, entry, frame, {"Date", "Time", entry.target, "AH"})
    frame = frame.head(_ROWS).filter(pl.col(entry.target) != _MISSING)
    hours = frame["Time"].cast(pl.String).str.extract(r"^(\d\d)\.\d\d\.\d\d$", 1).cast(pl.Float64)
    rest = frame.drop("Date", "Time", entry.target)
    X = np.column_stack([hours.to_numpy() / 24, parsing.numbers(rest, path, entry)])
    return Table(
        X, parsing.numbers(frame.select(entry.target), path, entry)[:, 0], ("hour/24", *rest.columns), entry.target
    )


ENTRY = Entry(
    name="air-quality",
    title="Air quality",
    description=(
        "Hourly answers of a gas multi-sensor device in an Italian city, 2004-2005; the label is the reference "
        "concentration of carbon monoxide in mg/m3. Rows: the first 9000 whose label is present; inputs: hour/24 "
        "and the 12 other columns, in which -200 still stands for a missing value."
    ),
    citation=(
        "S. De Vito, E. Massera, M. Piga, L. Martinotto, G. Di Francia. On field calibration of an electronic nose "
        "for benzene estimation in an urban pollution monitoring scenario. Sensors and Actuators B: Chemical "
        "129(2):750-757, 2008. doi:10.24432/C59K5F"
    ),
    target="CO(GT)",
    files=("AirQualityUCI.csv",),
    url=f"{UCI}/360/air+quality.zip",
    sha256="13277ae5d8581e80b7be09d47c7d3d06fe9b8e957078f2cf6e859f955e62f996",
    size="1.5 MB",
    n_columns=15,
    n_inputs=13,  # date and time make one, the hour
    target_range=(0.0, 50.0),
    paper_rows=7320,
    protocols=True,
    place=1,
    read=_read,
)
