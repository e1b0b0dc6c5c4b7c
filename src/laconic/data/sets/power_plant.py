"""Electrical output of a combined cycle power plant."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from laconic.data import files, parsing, workbook
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.text import Layout


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    if files.stem(path).endswith(".xlsx"):
        names, matrix = workbook.read(files.read(path), str(path))
        frame = pl.DataFrame(dict(zip(names, matrix.T, strict=True)))
    else:
        frame = parsing.read_frame(path, entry, Layout(",", header=True))
    parsing.need_columns(path, entry, frame, {"AT", "V", "AP", "RH", entry.target})
    return parsing.frame_last_is_label(frame, path, entry)


ENTRY = Entry(
    name="power-plant",
    title="Combined cycle power plant",
    description=(
        "Hourly means of temperature (AT), exhaust vacuum (V), pressure (AP) and humidity (RH) at a power plant "
        "under full load, 2006-2011; the label is its electrical output in MW."
    ),
    citation=(
        "P. Tüfekci. Prediction of full load electrical power output of a base load operated combined cycle power "
        "plant using machine learning methods. International Journal of Electrical Power and Energy Systems "
        "60:126-140, 2014. doi:10.24432/C5002N"
    ),
    target="PE",
    files=("Folds5x2_pp.xlsx", "Folds5x2_pp.csv"),
    url=f"{UCI}/294/combined+cycle+power+plant.zip",
    size="3.7 MB",
    n_columns=5,
    target_range=(400.0, 520.0),
    place=9,
    read=_read,
)
