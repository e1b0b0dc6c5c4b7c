"""Text that may hold a table: its encoding, its separator, whether it has a header, and what is wrong with it."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
"""Cells, in lower case, that say that a value is not there."""

FIELD_LIMIT = 100_000
"""Characters of one cell; more is a quotation mark that was never closed, or no table."""

_SAMPLE = 60  # lines from which separator and header are guessed
_SAMPLE_SIGNS = 2_000_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?")
_MAGIC = {
    b"PK": "a zip archive or a spreadsheet: unpack it, or save the sheet as CSV",
    b"PAR1": "a Parquet file: give it the ending .parquet",
    b"\x89HDF": "an HDF5 file",
    b"MATLAB": "a MATLAB file",
    b"BZh": "compressed with bzip2: unpack it, or use .gz or .xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstandard: unpack it, or use .gz or .xz",
}


@dataclass(frozen=True)
class Layout:
    """How a table is written: ``separator`` " " means runs of blanks."""

    separator: str
    header: bool

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma may be a decimal comma."""
        return self.separator != ","


def decode(raw: bytes, where: str) -> str:
    """The text of a file, its lines ended by line feeds alone, or one sentence on why it is not text."""
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise ValueError(f"{where} is not a table of text but {what}.")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = raw.decode("utf-16", errors="replace")
    else:
        raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("cp1252", errors="replace")  # what spreadsheets write where they do not write UTF-8
    sample = text[:100_000]
    strange = sum(1 for sign in sample if (sign < " " and sign not in "\t\n\r\f") or sign == "�")
    if strange > len(sample) / 200 or "\0" in sample:
        raise ValueError(f"{where} is not a table of text: it holds binary data.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ValueError(f"{where} is empty.")
    return text


def sniff(text: str, where: str, header: bool | None = None, named: Iterable[object] = ()) -> Layout:
    """Separator and header of a table, judged by its first lines.

    The right separator gives lines of one length and cells that are numbers; of two that are equally good, the one that
    gives more cells. ``header`` is taken as it is; where it is None, a first line that holds one of the names in
    ``named`` is a header, whatever its cells look like.
    """
    lines = text[:_SAMPLE_SIGNS].split("\n")
    if len(text) > _SAMPLE_SIGNS and len(lines) > 1:
        lines.pop()  # cut off in the middle
    lines = [line for line in lines if line.strip()][:_SAMPLE]
    best: tuple[float, int] = (-1.0, 0)
    chosen, rows = "", [[line] for line in lines]
    for separator in (",", ";", "\t", "|", " "):
        try:
            table = _split(lines, separator)
        except csv.Error:
            raise ValueError(f"{where}: {explain(text, separator, 0)}.") from None
        width, share = Counter(len(row) for row in table).most_common(1)[0]
        if width < 2:
            continue
        body = [cell for row in table[1:] or table for cell in row]
        numeric = sum(is_number(cell, separator != ",") or _absent(cell) for cell in body) / len(body)
        # A header may lack the name of the first column; one that is not cut at all speaks against what cuts the rest.
        fits = 1.0 if abs(len(table[0]) - width) <= 1 and len(table[0]) > 1 else 0.5
        score = (fits * share / len(table) * (0.5 + numeric), width)
        if score > best:
            best, chosen, rows = score, separator, table
    if header is None:
        header = _has_header(rows, chosen != ",")
        name = next((name for name in named if isinstance(name, str) and name in map(str.strip, rows[0])), None)
        if name is not None and not header:
            header = True
            warnings.warn(f"{where}: its first line is taken for names, since {name!r} is one of them.", stacklevel=2)
    return Layout(chosen or ",", header)


def is_number(cell: str, decimal_comma: bool) -> bool:
    """Whether a cell reads as a number."""
    cell = cell.strip()
    return bool(_NUMBER.fullmatch(cell) or (decimal_comma and _COMMA_NUMBER.fullmatch(cell)))


def single_blanks(text: str) -> str:
    """A table in columns of blanks, with one blank between two cells."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def explain(text: str, separator: str, width: int, quote: str = '"', first: int = 1) -> str:
    """What is wrong with a table that could not be read: the first line that does not fit, in words.

    ``first`` is the number that the first line of ``text`` has in its file.
    """
    reader = csv.reader(io.StringIO(text), delimiter=separator, quotechar=quote, strict=True)
    start = first
    try:
        for row in reader:
            if any(len(cell) > FIELD_LIMIT for cell in row):
                return _huge(start)
            if width and row and len(row) != width:
                return f"line {start} has {len(row)} cells where {width} are expected"
            start = first + reader.line_num
    except csv.Error as error:
        if "limit" in str(error):
            return _huge(start)
        if "unexpected end" in str(error):
            return f"a quotation mark opened in line {start} is never closed"
        return f"line {start} cannot be read ({error})"
    return "it is not a table with the same number of cells in every line"


def _huge(line: int) -> str:
    return f"line {line} has a cell of more than {FIELD_LIMIT} characters (a quotation mark that is never closed?)"


def _split(lines: list[str], separator: str) -> list[list[str]]:
    if separator == " ":
        return [line.split() for line in lines]
    return [row for row in csv.reader(lines, delimiter=separator) if row]


def _absent(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _has_header(rows: list[list[str]], decimal_comma: bool) -> bool:
    """Whether the first line is a header.

    It is one if a column has a word there and numbers below, if no cell is a number, or if it leaves nothing but the
    columns without a name that number the rows.
    """
    first, below = rows[0], rows[1:]
    words = [not is_number(cell, decimal_comma) and not _absent(cell) for cell in first]
    if not below:
        return all(word or _absent(cell) for word, cell in zip(words, first, strict=True)) and any(words)
    if not any(is_number(cell, decimal_comma) for row in rows for cell in row) or _has_row_names(rows):
        return True
    for column, word in enumerate(words):
        cells = [row[column] for row in below if column < len(row) and not _absent(row[column])]
        if word and cells and sum(is_number(cell, decimal_comma) for cell in cells) > len(cells) / 2:
            return True
    return False


def _has_row_names(rows: list[list[str]]) -> bool:
    """Whether the first line begins with empty cells, and below these each row has a number or word of its own."""
    first, below = [cell.strip() for cell in rows[0]], rows[1:]
    n_empty = next((k for k, cell in enumerate(first) if cell), 0)
    if not n_empty or "" in first[n_empty:]:
        return False
    labels = [tuple(cell.strip() for cell in row[:n_empty]) for row in below]
    whole = all(cell and (cell.lstrip("+-").isdigit() or not is_number(cell, True)) for row in labels for cell in row)
    return whole and len(set(labels)) == len(labels)
