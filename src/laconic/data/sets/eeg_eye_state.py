"""Eyes open or closed, from fourteen electrodes."""

from __future__ import annotations

from pathlib import Path

from laconic.data import arff, files, parsing, text
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    frame, _ = arff.read(text.decode(files.read(path), str(path)), str(path))
    parsing.need_columns(path, entry, frame, {"AF3", entry.target})
    return parsing.signs(parsing.frame_last_is_label(frame, path, entry), path, entry, ("open", "closed"))


ENTRY = Entry(
    name="eeg-eye-state",
    title="EEG eye state",
    description=(
        "Fourteen electrodes on one head for 117 seconds, in time order; the label says whether the eyes were "
        "closed (+1) or open (-1)."
    ),
    citation=(
        "O. Rösler, D. Suendermann. A first step towards eye state prediction using EEG. Applied Informatics for "
        "Health and Life Sciences (AIHLS), 2013. doi:10.24432/C57G7J"
    ),
    target="eyeDetection",
    files=("EEG Eye State.arff", "eeg_eye_state.arff"),
    url=f"{UCI}/264/eeg+eye+state.zip",
    size="0.4 MB",
    n_columns=15,
    target_range=(-1.0, 1.0),
    place=11,
    read=_read,
)
