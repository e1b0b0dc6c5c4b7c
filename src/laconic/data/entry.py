"""What is known of a data set before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Entry:
    """Facts about one data set.

    Attributes
    ----------
    name, title, description, citation : str
    target : str
        Name of the label.
    files : tuple of str
        Names under which the raw file is looked for, the published one first.
    url, archive_sha256, sha256 : str
        The published archive or file, the checksum of that archive, the checksum of the raw file ``files[0]``. Empty
        where not known.
    size : str
        What the download weighs.
    n_columns : int
        Columns of the raw file, label included.
    target_range : (float, float)
        Between these bounds every label must lie.
    paper_rows : int or None
        How many rows the paper takes; None for the sets it does not use.
    protocols : bool
        Whether "paper" and "prepared" differ.
    """

    name: str
    title: str
    description: str
    citation: str
    target: str = "y"
    files: tuple[str, ...] = ()
    url: str = ""
    archive_sha256: str = ""
    sha256: str = ""
    size: str = ""
    n_columns: int = 0
    target_range: tuple[float, float] = (0.0, 0.0)
    paper_rows: int | None = None
    protocols: bool = False
