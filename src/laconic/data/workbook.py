"""The first sheet of a plain .xlsx workbook, for the one data set that is published as one."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from xml.etree import ElementTree

import numpy as np

from laconic._validate import Array

_BROKEN = (OSError, EOFError, LookupError, ValueError, RuntimeError)  # what the libraries below say of damaged files
_LARGEST_SHEET = 2**27
_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read(raw: bytes, where: str) -> tuple[tuple[str, ...], Array]:
    """Header and numbers of the first sheet: a row of words, then rows of numbers without holes."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            sheet = ElementTree.fromstring(_unpacked(archive, "xl/worksheets/sheet1.xml"))
            strings = ElementTree.fromstring(_unpacked(archive, "xl/sharedStrings.xml"))
            words = ["".join(part.text or "" for part in item.iter(f"{_NAMESPACE}t")) for item in strings]
            rows = [_row(row, words) for row in sheet.iter(f"{_NAMESPACE}row")]
    except (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, *_BROKEN) as error:
        raise ValueError(f"{where} is not a workbook that can be read ({error}).") from None
    rows = [row for row in rows if row]
    if len(rows) < 2 or any(row.keys() != rows[0].keys() for row in rows):
        raise ValueError(f"{where} must have a header and rows of as many cells in its first sheet.")
    try:
        numbers = np.array([[float(row[column]) for column in rows[0]] for row in rows[1:]])
    except ValueError as error:
        raise ValueError(f"{where} has a cell that is not a number in its first sheet ({error}).") from None
    return tuple(rows[0].values()), numbers


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of a workbook, which is text and never longer than this."""
    if archive.getinfo(name).file_size > _LARGEST_SHEET:
        raise ValueError(f"{name} unpacks to {archive.getinfo(name).file_size} bytes")
    return archive.read(name)


def _row(row: ElementTree.Element, words: list[str]) -> dict[str, str]:
    """Cells by the letters of their column; t="s" marks an index into the shared strings."""
    cells = {}
    for cell in row.iter(f"{_NAMESPACE}c"):
        value = cell.findtext(f"{_NAMESPACE}v")
        if value is not None:
            column = re.sub(r"\d", "", cell.get("r", ""))
            cells[column] = words[int(value)] if cell.get("t") == "s" else value
    return cells
