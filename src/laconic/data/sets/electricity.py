"""Prices of electricity in New South Wales, up or down."""

from __future__ import annotations

from pathlib import Path

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import Entry
from laconic.data.text import Layout


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    frame = parsing.read_frame(path, entry, Layout(",", header=True))
    parsing.need_columns(path, entry, frame, {"nswprice", entry.target})
    return parsing.signs(parsing.frame_last_is_label(frame, path, entry), path, entry, ("down", "up"))


ENTRY = Entry(
    name="electricity",
    title="Electricity market",
    description=(
        "Prices and demand in New South Wales and Victoria every half hour, May 1996 to December 1998, in time "
        "order and with drift; the label says whether the price is above (+1) or below (-1) its mean of the last "
        "24 hours."
    ),
    citation=(
        "M. Harries. Splice-2 comparative evaluation: electricity pricing. Technical report UNSW-CSE-TR-9905, 1999."
    ),
    target="class",
    files=("elec.csv",),
    url="https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master/elec.csv",
    sha256="cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff",
    size="3.2 MB",
    n_columns=7,
    target_range=(-1.0, 1.0),
    place=10,
    read=_read,
)
