"""ARFF, the format of Weka and OpenML: a header of attributes, then lines of values, dense or sparse."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from laconic.data import readers
from laconic.data.text import Layout

_ATTRIBUTE = re.compile(r"@attribute\s+(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|(\S+))\s+(.+)", re.IGNORECASE)
_SPARSE = re.compile(r"\s*(\d+)\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,\s]+)\s*(?:,|$)")
_VALUE = re.compile(r"\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,]*?)\s*(?:,|$)")


@dataclass(frozen=True)
class Attribute:
    """One column: its name, and its declared values where it is nominal."""

    name: str
    values: tuple[str, ...] | None = None


def read(text: str, where: str) -> tuple[pl.DataFrame, tuple[Attribute, ...]]:
    """The table of an ARFF file, and its attributes."""
    attributes: list[Attribute] = []
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            start = number + 1
            break
        if keyword == "@attribute":
            attributes.append(_attribute(line, number + 1, where))
        elif keyword != "@relation":
            raise ValueError(f"{where}: line {number + 1} is not a line of an ARFF header: {line[:60]!r}.")
    if start is None or not attributes:
        raise ValueError(f"{where} is not an ARFF file: it has no {'@data' if attributes else '@attribute'} line.")
    # Comment lines become blank ones, so that the numbers of lines in messages stay those of the file.
    rows = [line.strip() for line in lines[start:]]
    rows = ["" if line.startswith("%") else line for line in rows]
    if not any(rows):
        raise ValueError(f"{where} has a header and no rows.")
    if any(line.startswith("{") for line in rows):
        rows = [_dense(line, attributes, start + k + 1, where) if line else "" for k, line in enumerate(rows)]
    body = "\n".join(rows)
    quote = "'" if "'" in body else '"'
    names = _unique([attribute.name for attribute in attributes])
    frame = readers.delimited(body, Layout(",", header=False), where, names=names, quote=quote, first=start + 1)
    return frame, tuple(attributes)


def _attribute(line: str, number: int, where: str) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise ValueError(
            f"{where}: line {number} does not declare an attribute as '@attribute name type': {line[:60]!r}."
        )
    name = next(group for group in match.groups()[:3] if group is not None)
    kind = match.group(4).strip()
    if not kind.startswith("{"):
        return Attribute(_plain(name))
    inside = kind[1:].split("}")[0]
    values = [_plain(_unquote(found)) for found in _VALUE.findall(inside)]
    return Attribute(_plain(name), tuple(value for value in values if value))


def _dense(line: str, attributes: list[Attribute], number: int, where: str) -> str:
    """A sparse row ``{index value, ...}`` written out; what is not named is 0, or a nominal column's first value."""
    row = [attribute.values[0] if attribute.values else "0" for attribute in attributes]
    position, inside = 0, line.removeprefix("{").removesuffix("}").strip()
    while position < len(inside):
        match = _SPARSE.match(inside, position)
        if match is None or int(match.group(1)) >= len(row):
            raise ValueError(f"{where}: line {number} is not a sparse row of {len(row)} columns: {line[:60]!r}.")
        row[int(match.group(1))] = _unquote(match.group(2))
        position = match.end()
    return ",".join("'" + value + "'" if "," in value else value for value in row)


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _plain(name: str) -> str:
    return name.replace("\\'", "'").replace('\\"', '"').strip()


def _unique(names: list[str]) -> list[str]:
    return [name if names.index(name) == k else f"{name} ({k})" for k, name in enumerate(names)]
