"""Critical temperatures of superconductors."""

from __future__ import annotations

from pathlib import Path

from laconic.data import parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.text import Layout


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    frame = parsing.read_frame(path, entry, Layout(",", header=True))
    parsing.need_columns(path, entry, frame, {"number_of_elements", entry.target})
    return parsing.frame_last_is_label(frame, path, entry)


ENTRY = Entry(
    name="conductivity",
    title="Superconductivity",
    description=(
        "81 properties of the elements in a superconductor (masses, radii, densities, valences and their means and "
        "spreads); the label is its critical temperature in kelvin. The paper takes the first 21260 rows; under "
        "'prepared' all 21263 come."
    ),
    citation=(
        "K. Hamidieh. A data-driven statistical model for predicting the critical temperature of a superconductor. "
        "Computational Materials Science 154:346-354, 2018. doi:10.24432/C53P47"
    ),
    target="critical_temp",
    files=("train.csv",),
    url=f"{UCI}/464/superconductivty+data.zip",
    sha256="4dfb6e3a1f6ffd969e5a5e42f093c4800d1e2a6c8b1e309f8fcd9f23d86952f3",
    size="8.3 MB",
    n_columns=82,
    target_range=(0.0, 250.0),
    paper_rows=21260,
    protocols=True,
    place=5,
    read=_read,
)
