"""Arterial blood pressure from photoplethysmogram and electrocardiogram."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.data import files, parsing
from laconic.data.dataset import Table
from laconic.data.registry import UCI, Entry
from laconic.data.text import Layout


def _read(path: Path, entry: Entry, protocol: str, stop: int | None) -> Table:
    if files.stem(path).endswith(".mat"):
        signals = _records(path, entry, stop or entry.paper_rows or 1)
    else:
        # These files say ECG, Systolic, Diastolic in their header; the columns are PPG, ABP in mmHg, ECG.
        signals = parsing.numbers(parsing.read_frame(path, entry, Layout(",", header=True)), path, entry)
    return Table(np.ascontiguousarray(signals[:, [0, 2]]), signals[:, 1].copy(), ("PPG", "ECG"), entry.target)


def _records(path: Path, entry: Entry, n_rows: int) -> Array:
    """The first ``n_rows`` samples of a MATLAB v7.3 cell array of 3 x n records, one record after the other."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ValueError(
            f"{path} is a MATLAB v7.3 file, for which h5py is needed: install it with 'pip install h5py'."
        ) from None
    parts: list[Array] = []
    try:
        with files.stream(path) as stream, h5py.File(stream, "r") as file:
            for record in _cells(file, Path(files.stem(path)).stem):
                signals = record if record.shape[-1] == 3 else record.T  # MATLAB's columns are HDF5's rows
                parts.append(np.asarray(signals, dtype=np.float64))
                if sum(len(part) for part in parts) >= n_rows:
                    break
    except (OSError, LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        said = str(error).split("\n")[0]
        raise parsing.foreign(path, entry, f"it must be a cell array of 3 x n records ({said})") from None
    if not parts or any(part.ndim != 2 or part.shape[1] != 3 for part in parts):
        raise parsing.foreign(path, entry, "it must be a cell array of 3 x n records")
    return np.concatenate(parts)[:n_rows]


def _cells(file: Any, name: str) -> Iterable[Any]:
    variables = [key for key in file if not key.startswith("#")]
    references = np.asarray(file[name if name in variables else variables[0]])
    return (np.asarray(file[reference]) for reference in references.ravel())


ENTRY = Entry(
    name="blood",
    title="Blood pressure",
    description=(
        "Photoplethysmogram (PPG) and electrocardiogram (ECG) of one patient at 125 Hz; the label is the arterial "
        "blood pressure in mmHg at the same instant. 61000 samples, in time order, from the first record of the "
        "first part on."
    ),
    citation=(
        "M. Kachuee, M. M. Kiani, H. Mohammadzade, M. Shabany. Cuff-less high-accuracy calibration-free blood "
        "pressure estimation using pulse transit time. IEEE International Symposium on Circuits and Systems "
        "(ISCAS), 1006-1009, 2015. doi:10.24432/C5B602"
    ),
    target="ABP",
    files=("Part_1.mat", "patient_0.csv"),
    url=f"{UCI}/340/cuff+less+blood+pressure+estimation.zip",
    size="3.4 GB",
    n_columns=3,
    target_range=(10.0, 350.0),
    paper_rows=61000,
    place=6,
    read=_read,
)
